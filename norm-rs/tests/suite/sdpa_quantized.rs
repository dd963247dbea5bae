//! Attention to keys and values of s8 and f8_e4m3 compared with f64 loops; the bits of f32; refusals.

use norm_rs::primitive::Arg;
use norm_rs::reorder::{Reorder, ReorderArgs};
use norm_rs::sdpa::{Backward, Forward, ForwardArgs, ForwardBuilder};
use norm_rs::{Attr, DataType, Engine, ErrorKind, Memory, MemoryDesc, Result, Stream, Tag, bf16};

use crate::attention::Case;
use crate::data::{Number, bits, elements, f64s, memory, numbers};

const SIZES: [usize; 7] = [2, 4, 2, 9, 13, 16, 24];

/// Scales of keys or values: the mask, and the value of each index of sequence, head and token.
struct Scales {
    mask: u16,
    list: Vec<f32>,
}

impl Scales {
    /// Powers of 2, or any numbers; the token is dimension 3 of keys and 2 of values.
    fn new(mask: u16, token: usize, exact: bool) -> Self {
        let [batch, _, groups, _, keys, ..] = SIZES;
        let has = |dim: usize, all: usize| if mask >> dim & 1 == 1 { all } else { 1 };
        let count = has(0, batch) * has(1, groups) * has(token, keys);
        let list: Vec<f32> = numbers(u64::from(mask) + 20, count, 0.005, 0.02);
        let exact_list = list.iter().map(|x| x.log2().round().exp2()).collect();
        Self { mask, list: if exact { exact_list } else { list } }
    }

    fn of(&self, token: usize, [b, g, j]: [usize; 3]) -> f64 {
        let [batch, _, groups, _, keys, ..] = SIZES;
        let mut at = 0;
        for (dim, index, all) in [(0, b, batch), (1, g, groups), (token, j, keys)] {
            if self.mask >> dim & 1 == 1 {
                at = at * all + index;
            }
        }
        f64::from(self.list[at])
    }
}

fn reordered(engine: &Engine, from: &Memory<'_>, to: &MemoryDesc) -> Result<Memory<'static>> {
    let mut memory = Memory::new(engine, to)?;
    let reorder = Reorder::new(engine, &from.desc()?, to)?;
    reorder.execute(&Stream::new(engine)?, ReorderArgs::new(from, &mut memory))?;
    Ok(memory)
}

/// A tensor of B x G x T x `size` numbers of a type, and those numbers, which are integers for s8.
fn quantized(
    engine: &Engine,
    seed: u64,
    (size, data_type): (usize, DataType),
) -> Result<(Memory<'static>, Vec<f32>)> {
    let [batch, _, groups, _, keys, ..] = SIZES;
    let dims = [batch, groups, keys, size];
    let list: Vec<f32> = numbers(seed, dims.iter().product(), -127.0, 127.0);
    let wide = memory(engine, &dims, &list);
    let narrow = reordered(engine, &wide, &MemoryDesc::dense(&dims, data_type)?)?;
    let back = reordered(engine, &narrow, &MemoryDesc::dense(&dims, DataType::F32)?)?;
    Ok((narrow, elements(&back)))
}

/// The same elements in memory, with axes 2 and 3 exchanged.
fn turned(engine: &Engine, memory: &Memory<'static>) -> Result<Memory<'static>> {
    let desc = memory.desc()?;
    let to = desc.permute_axes(&[0, 1, 3, 2])?;
    let mut keys = Memory::new(engine, &to)?;
    match desc.data_type() {
        Some(DataType::S8) => keys.copy_from_slice(memory.as_slice::<i8>()?)?,
        Some(DataType::F32) => keys.copy_from_slice(memory.as_slice::<f32>()?)?,
        // Via f32, which represents every number of f8_e4m3.
        _ => {
            let wide = reordered(engine, memory, &MemoryDesc::dense(&desc.dims(), DataType::F32)?)?;
            return reordered(engine, &turned(engine, &wide)?, &to);
        }
    }
    Ok(keys)
}

/// Attention to quantized keys and values, with the case in f64.
fn run<T: Number>(data_type: DataType, masks: [Option<u16>; 2], exact: bool) -> Result<()> {
    let engine = Engine::cpu()?;
    let [batch, heads, groups, queries, keys, d, e] = SIZES;
    let mut case = Case::new(SIZES);
    case.scale = f64::from(0.1f32);
    case.q.iter_mut().for_each(|x| *x = T::of(*x).to());
    let (k, k_numbers) = quantized(&engine, 5, (d, data_type))?;
    let (v, v_numbers) = quantized(&engine, 6, (e, data_type))?;
    let tokens = [3, 2];
    let [of_k, of_v] = [0, 1].map(|i| masks[i].map(|mask| Scales::new(mask, tokens[i], exact)));
    let scaled = |numbers: &[f32], size: usize, scales: &Option<Scales>, token| -> Vec<f64> {
        let scale = |at: usize| {
            let row = at / size;
            let place = [row / keys / groups, row / keys % groups, row % keys];
            scales.as_ref().map_or(1.0, |scales| scales.of(token, place))
        };
        numbers.iter().enumerate().map(|(at, x)| f64::from(*x) * scale(at)).collect()
    };
    case.k = scaled(&k_numbers, d, &of_k, 3);
    case.v = scaled(&v_numbers, e, &of_v, 2);

    let mut attr = Attr::new()?;
    for (arg, scales) in [(Arg::Keys, &of_k), (Arg::Values, &of_v)] {
        if let Some(scales) = scales {
            attr.set_scales(arg, scales.mask)?;
        }
    }
    let k = turned(&engine, &k)?;
    let query = MemoryDesc::dense(&[batch, heads, queries, d], T::DATA_TYPE)?;
    let result = MemoryDesc::dense(&[batch, heads, queries, e], DataType::F32)?;
    let (key, value) = (k.desc()?, v.desc()?);
    let builder = |key, value| {
        let builder: ForwardBuilder<'_> = Forward::inference(&engine, &query, key, value);
        builder.dst(&result).scale(0.1)
    };
    let primitive = builder(&key, &value).attr(&attr).build()?;
    let of = |arg, scales: &Option<Scales>| -> Result<Option<Memory<'static>>> {
        let desc = primitive.primitive().arg_desc(arg)?;
        assert_eq!(desc.is_some(), scales.is_some());
        let (Some(desc), Some(scales)) = (desc, scales) else { return Ok(None) };
        let mut memory = Memory::new(&engine, &desc)?;
        memory.copy_from_slice(&scales.list)?;
        Ok(Some(memory))
    };
    let scales = [of(Arg::KeyScales, &of_k)?, of(Arg::ValueScales, &of_v)?];
    let q: Vec<T> = case.q.iter().map(|x| T::of(*x)).collect();
    let q = memory(&engine, &query.dims(), &q);
    let mut dst = Memory::new(&engine, &result)?;
    let mut args = ForwardArgs::new(&q, &k, &v, &mut dst);
    if let Some(scales) = &scales[0] {
        args = args.key_scales(scales);
    }
    if let Some(scales) = &scales[1] {
        args = args.value_scales(scales);
    }
    let stream = Stream::new(&engine)?;
    primitive.execute(&stream, args)?;
    let got = elements::<f32>(&dst);
    let expected = case.forward().dst;
    let largest = expected.iter().fold(0f64, |m, x| m.max(x.abs()));
    let allowed = largest * if T::DATA_TYPE == DataType::Bf16 { 1e-2 } else { 4e-6 };
    for (at, (got, want)) in f64s(&got).iter().zip(&expected).enumerate() {
        assert!((got - want).abs() <= allowed, "{data_type} {masks:?} [{at}]: {got}, not {want}");
    }
    if !exact || T::DATA_TYPE != DataType::F32 {
        return Ok(());
    }
    // With scales that are powers of 2, the bits of the numbers themselves.
    let wide = |dims: &[usize], list: &[f64]| {
        memory(&engine, dims, &list.iter().map(|x| *x as f32).collect::<Vec<_>>())
    };
    let k = turned(&engine, &wide(&[batch, groups, keys, d], &case.k))?;
    let v = wide(&[batch, groups, keys, e], &case.v);
    let primitive = builder(&k.desc()?, &v.desc()?).build()?;
    primitive.execute(&stream, ForwardArgs::new(&q, &k, &v, &mut dst))?;
    assert_eq!(bits(&elements::<f32>(&dst)), bits(&got), "{data_type} {masks:?}");
    Ok(())
}

#[test]
fn every_mask() -> Result<()> {
    for masks in [[0, 0], [2, 2], [11, 7], [11, 0], [2, 7], [8, 4]] {
        for data_type in [DataType::S8, DataType::F8E4m3] {
            run::<f32>(data_type, masks.map(Some), false)?;
            run::<f32>(data_type, masks.map(Some), true)?;
        }
        run::<bf16>(DataType::S8, masks.map(Some), false)?;
    }
    run::<f32>(DataType::F8E4m3, [Some(2), None], true)?;
    run::<f32>(DataType::F8E4m3, [None, Some(7)], false)
}

/// Pages have their own scales: N x G x 1 x P of keys, and N x G x P x 1 of values.
#[test]
fn pages_have_scales() -> Result<()> {
    let engine = Engine::cpu()?;
    let query = MemoryDesc::dense(&[1, 1, 1, 1], DataType::F32)?;
    let key = MemoryDesc::with_tag(&[3, 1, 1, 2], DataType::S8, Tag::Abdc)?;
    let value = MemoryDesc::dense(&[3, 1, 2, 1], DataType::S8)?;
    let table = MemoryDesc::dense(&[1, 2], DataType::S32)?;
    let mut attr = Attr::new()?;
    attr.set_scales(Arg::Keys, 11)?;
    attr.set_scales(Arg::Values, 7)?;
    let builder = Forward::inference(&engine, &query, &key, &value).attr(&attr);
    let attention = builder.page_table(&table).key_lengths().build()?;
    let of = |arg| attention.primitive().arg_desc(arg).map(Option::unwrap);
    assert_eq!(of(Arg::KeyScales)?.dims()[..], [3, 1, 1, 2]);
    assert_eq!(of(Arg::ValueScales)?.dims()[..], [3, 1, 2, 1]);

    // Even weights of three keys, in pages 2 and 0. Keys that are not visible may be anything.
    let q = memory(&engine, &[1, 1, 1, 1], &[0f32]);
    let k = Memory::from_slice(&engine, &key, &[1i8, 2, 3, 4, 5, 6])?;
    let v = Memory::from_slice(&engine, &value, &[30i8, 99, 98, 97, 60, 90])?;
    let nan = f32::NAN;
    let key_scales = [1f32, nan, nan, nan, 1.0, 1.0];
    let value_scales = [2f32, nan, nan, nan, 0.5, 0.1];
    let (key_desc, value_desc) = (of(Arg::KeyScales)?, of(Arg::ValueScales)?);
    let key_scales = Memory::from_slice(&engine, &key_desc, &key_scales)?;
    let value_scales = Memory::from_slice(&engine, &value_desc, &value_scales)?;
    let table = memory(&engine, &[1, 2], &[2i32, 0]);
    let lengths = memory(&engine, &[1], &[3i32]);
    let mut dst = Memory::new(&engine, &query)?;
    let args = ForwardArgs::new(&q, &k, &v, &mut dst).page_table(&table).key_lengths(&lengths);
    let args = args.key_scales(&key_scales).value_scales(&value_scales);
    attention.execute(&Stream::new(&engine)?, args)?;
    let got = dst.as_slice::<f32>()?[0];
    assert!((got - (60.0 * 0.5 + 90.0 * 0.1 + 30.0 * 2.0) / 3.0).abs() < 1e-5, "{got}");
    Ok(())
}

#[test]
fn errors_say_what_to_change() -> Result<()> {
    let refused = |result: Result<()>, kind, words: &[&str]| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
    };
    let engine = Engine::cpu()?;
    let stream = Stream::new(&engine)?;
    let query = MemoryDesc::dense(&[1, 1, 1, 2], DataType::F32)?;
    let key = MemoryDesc::with_tag(&[1, 1, 2, 3], DataType::S8, Tag::Abdc)?;
    let value = MemoryDesc::dense(&[1, 1, 3, 2], DataType::S8)?;
    let plain = MemoryDesc::dense(&[1, 1, 3, 2], DataType::F32)?;
    let builder = Forward::inference(&engine, &query, &key, &value);
    let kind = ErrorKind::InvalidArguments;
    refused(builder.build().map(|_| ()), kind, &["key is s8", "no scale"]);
    let mut attr = Attr::new()?;
    attr.set_scales(Arg::Keys, 0)?;
    refused(builder.attr(&attr).build().map(|_| ()), kind, &["value is s8", "no scale"]);
    attr.set_scales(Arg::Values, 7)?;
    let of_plain = Forward::inference(&engine, &query, &key, &plain).attr(&attr);
    refused(of_plain.build().map(|_| ()), kind, &["scale for value", "f32"]);
    let backward = Backward::new(&engine, &query, &key, &value).build();
    refused(backward.map(|_| ()), ErrorKind::Unimplemented, &["key: ", "s8"]);
    let mut of_elements = Attr::new()?;
    of_elements.set_scales(Arg::Keys, 4)?;
    of_elements.set_scales(Arg::Values, 0)?;
    let result = builder.attr(&of_elements).build().map(|_| ());
    refused(result, ErrorKind::Unimplemented, &["key", "per element"]);

    let attention = builder.attr(&attr).build()?;
    let q = memory(&engine, &[1, 1, 1, 2], &[0f32; 2]);
    let k = Memory::from_slice(&engine, &key, &[0i8; 6])?;
    let v = Memory::from_slice(&engine, &value, &[0i8; 6])?;
    let mut dst = Memory::new(&engine, &query)?;
    let result = attention.execute(&stream, ForwardArgs::new(&q, &k, &v, &mut dst));
    refused(result, kind, &["key_scales", "missing", "with key_scales()"]);
    let one = memory(&engine, &[1, 1, 1, 1], &[1f32]);
    let args = ForwardArgs::new(&q, &k, &v, &mut dst).key_scales(&one).value_scales(&one);
    refused(attention.execute(&stream, args), kind, &["value_scales", "arg_desc"]);
    let dense = MemoryDesc::dense(&[1, 1, 2, 3], DataType::F32)?;
    let attention = Forward::inference(&engine, &query, &dense, &plain).build()?;
    let (k, v) = (Memory::new(&engine, &dense)?, Memory::new(&engine, &plain)?);
    let args = ForwardArgs::new(&q, &k, &v, &mut dst).key_scales(&one);
    refused(attention.execute(&stream, args), kind, &["key_scales", "Attr::set_scales"]);
    Ok(())
}
