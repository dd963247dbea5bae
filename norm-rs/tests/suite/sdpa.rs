//! Attention compared with f64 loops: every option, both directions, element types, strides, pages, a decode; and
//! refusals.

use norm_rs::primitive::Arg;
use norm_rs::sdpa::{
    Backward, BackwardArgs, BackwardBuilder, Causal, Forward, ForwardArgs, ForwardBuilder, Window,
};
use norm_rs::{DataType, Engine, ErrorKind, Memory, MemoryDesc, Result, Stream, Tag, bf16, f16};

use crate::attention::{Case, Slopes};
use crate::data::{Number, bits, elements, f64s, memory, numbers};

/// The descriptors of queries, keys and values of a case, dense as a model has them.
fn descs<T: Number>(case: &Case) -> [MemoryDesc; 3] {
    let [batch, heads, groups, queries, keys, d, e] = case.sizes;
    let dense = |dims: &[usize], tag| MemoryDesc::with_tag(dims, T::DATA_TYPE, tag).unwrap();
    [
        dense(&[batch, heads, queries, d], Tag::Abcd),
        dense(&[batch, groups, d, keys], Tag::Abdc),
        dense(&[batch, groups, keys, e], Tag::Abcd),
    ]
}

fn of<T: Number>(list: &[f64]) -> Vec<T> {
    list.iter().map(|x| T::of(*x)).collect()
}

/// The memories of a case, of queries, keys and values rounded to a type.
struct Given {
    tensors: [Memory<'static>; 3],
    mask: Option<Memory<'static>>,
    sinks: Option<Memory<'static>>,
    slopes: Option<Memory<'static>>,
    lengths: [Option<Memory<'static>>; 2],
}

impl Given {
    fn new<T: Number>(engine: &Engine, case: &mut Case) -> Self {
        for list in [&mut case.q, &mut case.k, &mut case.v] {
            list.iter_mut().for_each(|x| *x = T::of(*x).to());
        }
        let [batch, heads, _, queries, keys, ..] = case.sizes;
        let mut lists = [&case.q, &case.k, &case.v].into_iter();
        let tensors = descs::<T>(case).map(|desc| {
            let mut memory = Memory::new(engine, &desc).unwrap();
            memory.copy_from_slice(&of::<T>(lists.next().unwrap())).unwrap();
            memory
        });
        let per_head = |list: &Option<Vec<f64>>| {
            list.as_ref().map(|list| memory(engine, &[heads], &of::<f32>(list)))
        };
        let lengths = [&case.query_lengths, &case.key_lengths];
        Self {
            tensors,
            mask: case
                .mask
                .as_ref()
                .map(|mask| memory(engine, &[batch, heads, queries, keys], &of::<f32>(mask))),
            sinks: per_head(&case.sinks),
            slopes: per_head(&case.slopes),
            lengths: lengths.map(|list| list.as_ref().map(|list| memory(engine, &[batch], list))),
        }
    }
}

/// The options of a case, which both builders have.
macro_rules! options {
    ($builder:expr, $case:expr, $mask:expr) => {{
        let mut builder = $builder.causal($case.causal).window($case.window);
        if $case.soft_cap > 0.0 {
            builder = builder.soft_cap($case.soft_cap as f32);
        }
        if let Some(mask) = $mask {
            builder = builder.mask(mask);
        }
        if $case.slopes.is_some() {
            builder = builder.alibi();
        }
        if $case.sinks.is_some() {
            builder = builder.sinks();
        }
        if $case.query_lengths.is_some() {
            builder = builder.query_lengths();
        }
        if $case.key_lengths.is_some() {
            builder = builder.key_lengths();
        }
        builder
    }};
}

/// The arguments of the options.
macro_rules! optional {
    ($args:expr, $given:expr) => {{
        let mut args = $args;
        if let Some(mask) = &$given.mask {
            args = args.mask(mask);
        }
        if let Some(sinks) = &$given.sinks {
            args = args.sinks(sinks);
        }
        if let Some(slopes) = &$given.slopes {
            args = args.alibi_slopes(slopes);
        }
        if let [Some(lengths), _] = &$given.lengths {
            args = args.query_lengths(lengths);
        }
        if let [_, Some(lengths)] = &$given.lengths {
            args = args.key_lengths(lengths);
        }
        args
    }};
}

fn forward<'b>(builder: ForwardBuilder<'b>, case: &Case, mask: Option<&'b MemoryDesc>) -> Forward {
    options!(builder, case, mask).entropy().build().unwrap()
}

fn backward<'b>(
    builder: BackwardBuilder<'b>,
    case: &Case,
    mask: Option<&'b MemoryDesc>,
) -> Backward {
    options!(builder, case, mask).build().unwrap()
}

#[track_caller]
fn near(what: &str, got: &[f64], want: &[f64], allowed: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (at, (got, want)) in got.iter().zip(want).enumerate() {
        let apart = (got - want).abs();
        assert!(got == want || apart <= allowed, "{what}[{at}] is {got}, not {want}");
    }
}

/// Runs both directions of a case and compares every result.
#[track_caller]
fn check<T: Number>(case: &mut Case, allowed: f64) {
    let (engine, [batch, heads, _, queries, _, _, e]) = (Engine::cpu().unwrap(), case.sizes);
    let stream = Stream::new(&engine).unwrap();
    let given = Given::new::<T>(&engine, case);
    let [query, key, value] = descs::<T>(case);
    let mask = given.mask.as_ref().map(|mask| mask.desc().unwrap());
    let builder = Forward::training(&engine, &query, &key, &value);
    let primitive = forward(builder, case, mask.as_ref());
    let new = |arg| Memory::new(&engine, &primitive.primitive().arg_desc(arg).unwrap().unwrap());
    let (mut dst, mut sums) = (new(Arg::Dst).unwrap(), new(Arg::Workspace).unwrap());
    let mut entropy = new(Arg::Entropy).unwrap();
    let [q, k, v] = &given.tensors;
    let args = optional!(ForwardArgs::new(q, k, v, &mut dst), given);
    let args = args.log_sum_exp(&mut sums).entropy(&mut entropy);
    primitive.execute(&stream, args).unwrap();
    let expected = case.forward();
    near("dst", &f64s(&elements::<T>(&dst)), &expected.dst, allowed);
    near("log-sum-exp", &f64s(&elements::<f32>(&sums)), &expected.sums, 4e-6);
    near("entropy", &f64s(&elements::<f32>(&entropy)), &expected.entropy, 4e-6);

    let diff: Vec<T> = numbers(9, batch * heads * queries * e, -1.0, 1.0);
    let diff_dst = memory(&engine, &[batch, heads, queries, e], &diff);
    let builder = Backward::new(&engine, &query, &key, &value);
    let primitive = backward(builder, case, mask.as_ref());
    let mut gradients = [&query, &key, &value].map(|desc| Memory::new(&engine, desc).unwrap());
    let mut diff_sinks = memory(&engine, &[heads], &vec![9f32; heads]);
    let [dq, dk, dv] = &mut gradients;
    let args = BackwardArgs::new((q, k, v), (&dst, &sums), &diff_dst, (dq, dk, dv));
    let mut args = optional!(args, given);
    if case.sinks.is_some() {
        args = args.diff_sinks(&mut diff_sinks);
    }
    primitive.execute(&stream, args).unwrap();
    let Slopes { q, k, v, sinks } = case.backward(&f64s(&diff));
    let [dq, dk, dv] = gradients.map(|memory| f64s(&elements::<T>(&memory)));
    near("diff_queries", &dq, &q, 8.0 * allowed);
    near("diff_keys", &dk, &k, 8.0 * allowed);
    near("diff_values", &dv, &v, 8.0 * allowed);
    if case.sinks.is_some() {
        near("diff_sinks", &f64s(&elements::<f32>(&diff_sinks)), &sinks, 16.0 * allowed);
    }
}

const SIZES: [usize; 7] = [2, 4, 2, 9, 13, 16, 24];

#[test]
fn every_type() {
    check::<f32>(&mut Case::new(SIZES), 2e-6);
    check::<f16>(&mut Case::new(SIZES), 2e-3);
    check::<bf16>(&mut Case::new(SIZES), 2e-2);
    // Beyond a block of keys.
    check::<f32>(&mut Case::new([1, 1, 1, 3, 700, 32, 32]), 2e-6);
}

#[test]
fn every_option() {
    let [batch, heads, _, queries, keys, ..] = SIZES;
    for causal in [Causal::No, Causal::TopLeft, Causal::BottomRight] {
        for window in [Window::None, Window::WithSelf(3), Window::BeforeSelf(3)] {
            check::<f32>(&mut Case { causal, window, ..Case::new(SIZES) }, 2e-6);
        }
    }
    let slopes = || Some((1..=heads).map(|h| 0.5f64.powi(h as i32)).collect());
    let sinks = || Some((0..heads).map(|h| h as f64 / 2.0 - 0.5).collect());
    let mask = || {
        let mut mask: Vec<f32> = numbers(7, batch * heads * queries * keys, -2.0, 2.0);
        mask.iter_mut().step_by(5).for_each(|x| *x = f32::NEG_INFINITY);
        Some(f64s(&mask))
    };
    let query_lengths = || Some(vec![9, 4]);
    let key_lengths = || Some(vec![11, 6]);
    check::<f32>(&mut Case { soft_cap: 0.75, ..Case::new(SIZES) }, 2e-6);
    check::<f32>(&mut Case { slopes: slopes(), ..Case::new(SIZES) }, 2e-6);
    check::<f32>(&mut Case { sinks: sinks(), ..Case::new(SIZES) }, 2e-6);
    check::<f32>(&mut Case { mask: mask(), ..Case::new(SIZES) }, 2e-6);
    check::<f32>(&mut Case { key_lengths: key_lengths(), ..Case::new(SIZES) }, 2e-6);
    let mut all = Case {
        causal: Causal::BottomRight,
        window: Window::BeforeSelf(6),
        soft_cap: 0.75,
        slopes: slopes(),
        sinks: sinks(),
        mask: mask(),
        query_lengths: query_lengths(),
        key_lengths: key_lengths(),
        ..Case::new(SIZES)
    };
    check::<f32>(&mut all, 2e-6);
}

/// The results of one call of attention, from keys and values as they are in memory.
fn run(attention: &Forward, given: [&Memory<'_>; 3], lengths: Option<&Memory<'_>>) -> Vec<u64> {
    let engine = Engine::cpu().unwrap();
    let desc = attention.primitive().arg_desc(Arg::Dst).unwrap().unwrap();
    let mut dst = Memory::new(&engine, &desc).unwrap();
    let [q, k, v] = given;
    let mut args = ForwardArgs::new(q, k, v, &mut dst);
    if let Some(lengths) = lengths {
        args = args.key_lengths(lengths);
    }
    attention.execute(&Stream::new(&engine).unwrap(), args).unwrap();
    bits(&elements::<f32>(&dst))
}

#[test]
fn a_decoded_token_has_the_bits_of_the_prefill() {
    let (engine, count) = (Engine::cpu().unwrap(), 300);
    let mut case = Case::new([1, 4, 2, count, count, 16, 16]);
    let Given { tensors: [q, k, v], .. } = Given::new::<f32>(&engine, &mut case);
    let [query, key, value] = descs::<f32>(&case);
    let all = Forward::inference(&engine, &query, &key, &value).causal(Causal::TopLeft);
    let prefill = run(&all.build().unwrap(), [&q, &k, &v], None);

    // Each step has one query, and sees one more token of the same cache.
    let one = MemoryDesc::dense(&[1, 4, 1, 16], DataType::F32).unwrap();
    let step = Forward::inference(&engine, &one, &key, &value);
    let step = step.causal(Causal::BottomRight).key_lengths().build().unwrap();
    let [rows, new_keys, new_values] = [&q, &k, &v].map(elements::<f32>);
    // Elements beyond the length are not read.
    let (mut k, mut v) =
        (Memory::new(&engine, &key).unwrap(), Memory::new(&engine, &value).unwrap());
    k.as_mut_slice::<f32>().unwrap().fill(f32::NAN);
    v.as_mut_slice::<f32>().unwrap().fill(f32::INFINITY);
    for token in 0..count {
        for group in 0..2 {
            let own = (group * count + token) * 16;
            let own = own..own + 16;
            k.as_mut_slice().unwrap()[own.clone()].copy_from_slice(&new_keys[own.clone()]);
            v.as_mut_slice().unwrap()[own.clone()].copy_from_slice(&new_values[own]);
        }
        let head = |h: usize| &rows[(h * count + token) * 16..][..16];
        let queries =
            memory(&engine, &[1, 4, 1, 16], &(0..4).flat_map(head).copied().collect::<Vec<_>>());
        let lengths = memory(&engine, &[1], &[token as i32 + 1]);
        let decoded = run(&step, [&queries, &k, &v], Some(&lengths));
        let expected = (0..4).flat_map(|h| &prefill[(h * count + token) * 16..][..16]);
        assert!(decoded.iter().eq(expected), "token {token}");
    }
}

#[test]
fn strides_and_pages_change_no_bit() -> Result<()> {
    let engine = Engine::cpu()?;
    let mut case = Case::new([2, 2, 1, 5, 12, 8, 8]);
    let Given { tensors: [q, k, v], .. } = Given::new::<f32>(&engine, &mut case);
    let [query, key, value] = descs::<f32>(&case);
    let dense = Forward::inference(&engine, &query, &key, &value).build()?;
    let expected = run(&dense, [&q, &k, &v], None);

    // A token's key and value next to each other.
    let (keys, values) = (elements::<f32>(&k), elements::<f32>(&v));
    let mut packed: Vec<f32> = Vec::new();
    for (key, value) in keys.chunks(8).zip(values.chunks(8)) {
        packed.extend(key.iter().chain(value));
    }
    let key_desc = MemoryDesc::with_strides(&[2, 1, 8, 12], DataType::F32, &[192, 192, 1, 16])?;
    let value_desc = MemoryDesc::with_strides(&[2, 1, 12, 8], DataType::F32, &[192, 192, 16, 1])?;
    let (mut copy, mut values_at) = (packed.clone(), packed.split_off(8));
    let keys_at = Memory::from_mut_slice(&engine, &key_desc, &mut copy)?;
    let values_at = Memory::from_mut_slice(&engine, &value_desc, &mut values_at)?;
    let strided = Forward::inference(&engine, &query, &key_desc, &value_desc).build()?;
    assert_eq!(run(&strided, [&q, &keys_at, &values_at], None), expected);

    // Pages of 4 keys in any order, one of them unused.
    let order = [5usize, 0, 3, 1, 6, 2];
    let (mut paged_keys, mut paged_values) = (vec![f32::NAN; 7 * 32], vec![f32::NAN; 7 * 32]);
    for (from, to) in order.iter().enumerate() {
        paged_keys[to * 32..][..32].copy_from_slice(&keys[from * 32..][..32]);
        paged_values[to * 32..][..32].copy_from_slice(&values[from * 32..][..32]);
    }
    let key_desc = MemoryDesc::with_tag(&[7, 1, 8, 4], DataType::F32, Tag::Abdc)?;
    let value_desc = MemoryDesc::dense(&[7, 1, 4, 8], DataType::F32)?;
    let table_desc = MemoryDesc::dense(&[2, 3], DataType::S32)?;
    let paged = Forward::inference(&engine, &query, &key_desc, &value_desc);
    let paged = paged.page_table(&table_desc).build()?;
    let table = memory(&engine, &[2, 3], &order.map(|page| page as i32));
    let paged_keys = Memory::from_slice(&engine, &key_desc, &paged_keys)?;
    let paged_values = Memory::from_slice(&engine, &value_desc, &paged_values)?;
    let mut dst = Memory::new(&engine, &query)?;
    let args = ForwardArgs::new(&q, &paged_keys, &paged_values, &mut dst).page_table(&table);
    paged.execute(&Stream::new(&engine)?, args)?;
    assert_eq!(bits(&elements::<f32>(&dst)), expected);

    let wrong = memory(&engine, &[2, 3], &[0i32, 1, 2, 3, 4, 7]);
    let args = ForwardArgs::new(&q, &paged_keys, &paged_values, &mut dst).page_table(&wrong);
    let error = paged.execute(&Stream::new(&engine)?, args).unwrap_err();
    assert!(error.to_string().contains('7'), "{error}");
    assert_eq!(bits(&elements::<f32>(&dst)), expected, "nothing is written");
    Ok(())
}

#[test]
fn dst_overwrites_the_queries() -> Result<()> {
    let engine = Engine::cpu()?;
    let mut case = Case::new([1, 2, 2, 3, 4, 8, 8]);
    let Given { tensors: [mut q, k, v], .. } = Given::new::<f32>(&engine, &mut case);
    let [query, key, value] = descs::<f32>(&case);
    let attention = Forward::inference(&engine, &query, &key, &value).build()?;
    let expected = run(&attention, [&q, &k, &v], None);
    attention.execute(&Stream::new(&engine)?, ForwardArgs::in_place(&mut q, &k, &v))?;
    assert_eq!(bits(&elements::<f32>(&q)), expected);
    Ok(())
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T>, words: &[&str]) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{error} does not say {word:?}");
    }
}

#[test]
fn errors_say_what_to_change() -> Result<()> {
    let engine = Engine::cpu()?;
    let stream = Stream::new(&engine)?;
    let mut case = Case::new([1, 4, 2, 3, 5, 8, 8]);
    let Given { tensors: [q, k, v], .. } = Given::new::<f32>(&engine, &mut case);
    let [query, key, value] = descs::<f32>(&case);
    let builder = Forward::inference(&engine, &query, &key, &value);
    refused(builder.window(Window::WithSelf(0)).build(), &["window", "1"]);
    refused(builder.window(Window::BeforeSelf(usize::MAX)).build(), &["window", "too large"]);
    refused(builder.scale(f32::NAN).build(), &["scale"]);
    refused(builder.soft_cap(-1.0).build(), &["soft_cap"]);
    let three = MemoryDesc::dense(&[1, 3, 3, 8], DataType::F32)?;
    refused(Forward::inference(&engine, &three, &key, &value).build(), &["3 heads", "multiple"]);
    // The cache's layout instead of its permutation.
    let cache = MemoryDesc::dense(&[1, 2, 5, 8], DataType::F32)?;
    refused(Forward::inference(&engine, &query, &cache, &value).build(), &["key", "dimension 2"]);
    let flat = MemoryDesc::dense(&[3, 8], DataType::F32)?;
    refused(Forward::inference(&engine, &flat, &key, &value).build(), &["query: ", "4"]);
    let mask = MemoryDesc::dense(&[1, 1, 3, 4], DataType::F32)?;
    refused(builder.mask(&mask).build(), &["mask: ", "3, 4"]);

    let attention = builder.key_lengths().build()?;
    let mut dst = Memory::new(&engine, &query)?;
    let missing = attention.execute(&stream, ForwardArgs::new(&q, &k, &v, &mut dst));
    refused(missing, &["key_lengths", "missing", "with key_lengths()"]);
    let lengths = memory(&engine, &[1], &[6i32]);
    let args = ForwardArgs::new(&q, &k, &v, &mut dst).key_lengths(&lengths);
    refused(attention.execute(&stream, args), &["key_lengths: 6", "from 0 to 5"]);
    let sinks = memory(&engine, &[4], &[0f32; 4]);
    let lengths = memory(&engine, &[1], &[5i32]);
    let args = ForwardArgs::new(&q, &k, &v, &mut dst).key_lengths(&lengths).sinks(&sinks);
    refused(
        attention.execute(&stream, args),
        &["sinks", "not used", "build the primitive with it"],
    );
    let mut sums = memory(&engine, &[1, 4, 3, 1], &[0f32; 12]);
    let args = ForwardArgs::new(&q, &k, &v, &mut dst).key_lengths(&lengths).log_sum_exp(&mut sums);
    refused(attention.execute(&stream, args), &["workspace", "Forward::training"]);
    // Values in place of keys have another descriptor.
    let args = ForwardArgs::new(&q, &v, &v, &mut dst).key_lengths(&lengths);
    refused(attention.execute(&stream, args), &["keys", "arg_desc(Arg::Keys)"]);
    Ok(())
}

/// Two sequences one after another have the bits of each alone.
#[test]
fn packed_sequences() -> Result<()> {
    let engine = Engine::cpu()?;
    let stream = Stream::new(&engine)?;
    let (rows, size) = (7usize, 4usize);
    let numbers: Vec<f32> = (0..rows * size).map(|i| (i as f32 * 0.7).sin()).collect();
    let desc = |sequences: usize, rows: usize, turned: bool| {
        let (dims, strides) = match turned {
            false => ([sequences, 1, rows, size], [0, size, size, 1]),
            true => ([sequences, 1, size, rows], [0, size, 1, size]),
        };
        MemoryDesc::with_strides(&dims, DataType::F32, &strides)
    };
    let run = |sequences: usize, numbers: &[f32], offsets: Option<&[i32]>| -> Result<Vec<f32>> {
        let rows = numbers.len() / size;
        let (row, key) = (desc(sequences, rows, false)?, desc(sequences, rows, true)?);
        let mut builder =
            Forward::inference(&engine, &row, &key, &row).dst(&row).causal(Causal::TopLeft);
        if offsets.is_some() {
            builder = builder.query_offsets().key_offsets();
        }
        let attention = builder.build()?;
        let (mut q, mut k) = (Memory::new(&engine, &row)?, Memory::new(&engine, &key)?);
        let mut dst = Memory::new(&engine, &row)?;
        q.copy_from_slice(numbers)?;
        k.copy_from_slice(numbers)?;
        let args = ForwardArgs::new(&q, &k, &q, &mut dst);
        match offsets {
            None => attention.execute(&stream, args)?,
            Some(offsets) => {
                let offsets = memory(&engine, &[offsets.len()], offsets);
                let args = args.query_offsets(&offsets).key_offsets(&offsets);
                attention.execute(&stream, args)?;
            }
        }
        Ok(dst.as_slice::<f32>()?.to_vec())
    };
    let packed = run(2, &numbers, Some(&[0, 3, 7]))?;
    let alone = [run(1, &numbers[..3 * size], None)?, run(1, &numbers[3 * size..], None)?].concat();
    assert_eq!(packed, alone);
    let words = ["query_offsets: 2", "below 3"];
    refused(run(2, &numbers, Some(&[0, 3, 2])), &words);
    Ok(())
}

/// Even weights of two keys, whose values are 1 and 3: dS is p * (diff_dst * v - delta).
#[test]
fn the_gradient_of_a_mask() -> Result<()> {
    let engine = Engine::cpu()?;
    let stream = Stream::new(&engine)?;
    let dense = |dims: [usize; 4]| MemoryDesc::dense(&dims, DataType::F32);
    let (row, keys, mask) = (dense([1, 1, 1, 1])?, dense([1, 1, 1, 2])?, dense([1, 1, 1, 2])?);
    let values = dense([1, 1, 2, 1])?;
    let one = |x: f32| memory(&engine, &[1, 1, 1, 1], &[x]);
    let k = memory(&engine, &[1, 1, 1, 2], &[5f32, 5.0]);
    let v = memory(&engine, &[1, 1, 2, 1], &[1f32, 3.0]);
    let added = memory(&engine, &[1, 1, 1, 2], &[0f32, 0.0]);
    let builder = Backward::new(&engine, &row, &keys, &values).mask(&mask);
    let backward = builder.diff_mask(&mask).build()?;
    let mut gradients = [Memory::new(&engine, &row)?, Memory::new(&engine, &keys)?];
    let [diff_q, diff_k] = &mut gradients;
    let (mut diff_v, mut diff_mask) =
        (Memory::new(&engine, &values)?, Memory::new(&engine, &mask)?);
    let (q, dst, sums, diff_dst) = (one(0.0), one(2.0), one(2f32.ln()), one(1.0));
    let args =
        BackwardArgs::new((&q, &k, &v), (&dst, &sums), &diff_dst, (diff_q, diff_k, &mut diff_v));
    backward.execute(&stream, args.mask(&added).diff_mask(&mut diff_mask))?;
    let found = diff_mask.as_slice::<f32>()?;
    assert!((found[0] + 0.5).abs() < 1e-6 && (found[1] - 0.5).abs() < 1e-6, "{found:?}");
    let bytes = MemoryDesc::dense(&[1, 1, 1, 2], DataType::U8)?;
    let builder = Backward::new(&engine, &row, &keys, &values);
    refused(builder.mask(&bytes).diff_mask(&mask).build(), &["diff_mask: ", "u8"]);
    let builder = Backward::new(&engine, &row, &keys, &values);
    refused(builder.diff_mask(&mask).build(), &["diff_mask: ", "but mask is"]);
    let builder = Backward::new(&engine, &row, &keys, &values).mask(&mask);
    refused(builder.diff_mask(&row).build(), &["diff_mask: ", "dimensions"]);
    Ok(())
}
