//! Outputs over inputs in every pair that the operations allow: the same results as with separate memories. Dynamic
//! scales of gated activations.

use norm_rs::attr::DynamicScale;
use norm_rs::binary::{Binary, BinaryArgs, BinaryPrimitive};
use norm_rs::gated::{self, Activation, Packing};
use norm_rs::post_ops::Eltwise;
use norm_rs::primitive::{Arg, Args};
use norm_rs::{Attr, DataType, Engine, Memory, MemoryDesc, Result, Stream, eltwise, rope, softmax};

use crate::data::numbers;

const DIMS: [usize; 2] = [3, 38];
const COUNT: usize = DIMS[0] * DIMS[1];

struct Setting {
    engine: Engine,
    desc: MemoryDesc,
}

impl Setting {
    fn new() -> Result<Self> {
        Ok(Self { engine: Engine::cpu()?, desc: MemoryDesc::dense(&DIMS, DataType::F32)? })
    }

    /// A memory of reproducible numbers.
    fn tensor(&self, seed: u64) -> Result<Memory<'_>> {
        let mut memory = Memory::new(&self.engine, &self.desc)?;
        memory.as_mut_slice::<f32>()?.copy_from_slice(&numbers::<f32>(seed, COUNT, -2.0, 2.0));
        Ok(memory)
    }

    fn same(&self, a: &Memory<'_>, b: &Memory<'_>) -> Result<()> {
        assert_eq!(a.as_slice::<f32>()?, b.as_slice::<f32>()?);
        Ok(())
    }
}

#[test]
fn a_binary_function_over_either_source() -> Result<()> {
    let setting = Setting::new()?;
    let (engine, desc) = (&setting.engine, &setting.desc);
    let stream = Stream::new(engine)?;
    let subtract = BinaryPrimitive::new(engine, Binary::Sub, desc, desc).build()?;
    let (mut src0, mut src1) = (setting.tensor(1)?, setting.tensor(2)?);
    let mut dst = Memory::new(engine, desc)?;
    subtract.execute(&stream, BinaryArgs::new(&src0, &src1, &mut dst))?;
    subtract.execute(&stream, BinaryArgs::in_place_of_src1(&src0, &mut src1))?;
    setting.same(&src1, &dst)?;
    let src1 = setting.tensor(2)?;
    subtract.execute(&stream, BinaryArgs::in_place(&mut src0, &src1))?;
    setting.same(&src0, &dst)
}

#[test]
fn gradients_over_what_backward_reads() -> Result<()> {
    let setting = Setting::new()?;
    let (engine, desc) = (&setting.engine, &setting.desc);
    let stream = Stream::new(engine)?;
    let (data, diff) = (setting.tensor(1)?, setting.tensor(2)?);
    let (mut shared, mut separate) = (setting.tensor(1)?, Memory::new(engine, desc)?);
    let swish = eltwise::Backward::new(engine, desc, Eltwise::Swish).alpha(1.0).build()?;
    swish.execute(&stream, eltwise::BackwardArgs::new(&swish, &data, &diff, &mut separate))?;
    let args = eltwise::BackwardArgs::in_place_of_data(&swish, &mut shared, &diff);
    swish.execute(&stream, args)?;
    setting.same(&shared, &separate)?;

    let mut shared = setting.tensor(1)?;
    let tanh = eltwise::Backward::new(engine, desc, Eltwise::Tanh).from_dst().build()?;
    tanh.execute(&stream, eltwise::BackwardArgs::new(&tanh, &data, &diff, &mut separate))?;
    let args = eltwise::BackwardArgs::in_place_of_data(&tanh, &mut shared, &diff);
    tanh.execute(&stream, args)?;
    setting.same(&shared, &separate)?;

    let mut shared = setting.tensor(1)?;
    let softmax = softmax::Backward::new(engine, desc, 1).build()?;
    softmax.execute(&stream, softmax::BackwardArgs::new(&data, &diff, &mut separate))?;
    softmax.execute(&stream, softmax::BackwardArgs::in_place_of_dst(&mut shared, &diff))?;
    setting.same(&shared, &separate)
}

#[test]
fn the_gradient_of_rope_over_its_normalized_input() -> Result<()> {
    let setting = Setting::new()?;
    let (engine, desc) = (&setting.engine, &setting.desc);
    let stream = Stream::new(engine)?;
    let (src, diff) = (setting.tensor(1)?, setting.tensor(2)?);
    let (mut shared, mut separate) = (setting.tensor(1)?, Memory::new(engine, desc)?);
    let at = MemoryDesc::dense(&[DIMS[0]], DataType::S32)?;
    let positions = Memory::from_slice(engine, &at, &[0i32, 5, 100])?;
    let (values, _) = rope::frequencies(rope::Scaling::None, DIMS[1], 10_000.0)?;
    let pairs = MemoryDesc::dense(&[values.len()], DataType::F64)?;
    let frequencies = Memory::from_slice(engine, &pairs, &values)?;
    let norm = rope::Norm { epsilon: 1e-5, scale: None, scale_plus_one: false, rounded: false };
    let backward = rope::Backward::new(engine, rope::Pairing::HalfSplit, desc, &at)
        .norm(norm, desc)
        .build()?;
    let args = rope::BackwardArgs::new(&diff, &mut separate, &positions).src(&src);
    backward.execute(&stream, args.frequencies(&frequencies))?;
    let args = rope::BackwardArgs::in_place_of_src(&mut shared, &diff, &positions);
    backward.execute(&stream, args.frequencies(&frequencies))?;
    setting.same(&shared, &separate)
}

#[test]
fn a_gated_activation_over_gate_or_up() -> Result<()> {
    let setting = Setting::new()?;
    let (engine, desc) = (&setting.engine, &setting.desc);
    let stream = Stream::new(engine)?;
    let swish = Activation::Swish(1.0);
    let (gate, up, diff) = (setting.tensor(1)?, setting.tensor(2)?, setting.tensor(3)?);
    let (mut of_gate, mut of_up) = (setting.tensor(1)?, setting.tensor(2)?);
    let mut dst = Memory::new(engine, desc)?;
    let forward = gated::Forward::separate(engine, swish, desc, desc, desc).build()?;
    forward.execute(&stream, gated::ForwardArgs::new(&gate, &mut dst).up(&up))?;
    forward.execute(&stream, gated::ForwardArgs::in_place(&mut of_gate).up(&up))?;
    setting.same(&of_gate, &dst)?;
    forward.execute(&stream, gated::ForwardArgs::in_place_of_up(&gate, &mut of_up))?;
    setting.same(&of_up, &dst)?;

    let backward = gated::Backward::separate(engine, swish, desc, desc, desc).build()?;
    let (mut diff_gate, mut diff_up) = (Memory::new(engine, desc)?, Memory::new(engine, desc)?);
    let args = gated::BackwardArgs::new(&gate, &diff, &mut diff_gate).up(&up);
    backward.execute(&stream, args.diff_up(&mut diff_up))?;
    let (mut of_gate, mut of_up) = (setting.tensor(1)?, setting.tensor(2)?);
    let args = gated::BackwardArgs::in_place(&mut of_gate, &diff).up_in_place(&mut of_up);
    backward.execute(&stream, args)?;
    setting.same(&of_gate, &diff_gate)?;
    setting.same(&of_up, &diff_up)?;
    let (mut of_diff, mut of_up) = (setting.tensor(3)?, setting.tensor(2)?);
    let args = gated::BackwardArgs::in_place_of_diff_dst(&gate, &mut of_diff);
    backward.execute(&stream, args.up_in_place(&mut of_up))?;
    setting.same(&of_diff, &diff_gate)?;
    setting.same(&of_up, &diff_up)
}

#[test]
fn a_packed_gradient_over_its_input() -> Result<()> {
    let setting = Setting::new()?;
    let (engine, desc) = (&setting.engine, &setting.desc);
    let stream = Stream::new(engine)?;
    let half = MemoryDesc::dense(&[DIMS[0], DIMS[1] / 2], DataType::F32)?;
    let (src, mut shared) = (setting.tensor(1)?, setting.tensor(1)?);
    let mut separate = Memory::new(engine, desc)?;
    let diff = Memory::from_slice(engine, &half, &[0.75f32; COUNT / 2])?;
    let (activation, packing) = (Activation::GeluErf, Packing::UpFirst);
    let backward = gated::Backward::packed(engine, activation, desc, packing, &half).build()?;
    backward.execute(&stream, gated::BackwardArgs::new(&src, &diff, &mut separate))?;
    backward.execute(&stream, gated::BackwardArgs::in_place(&mut shared, &diff))?;
    setting.same(&shared, &separate)
}

/// What another operation allows is refused.
#[test]
fn other_pairs_are_refused() -> Result<()> {
    let setting = Setting::new()?;
    let (engine, desc) = (&setting.engine, &setting.desc);
    let stream = Stream::new(engine)?;
    let (src, diff, mut shared) = (setting.tensor(1)?, setting.tensor(2)?, setting.tensor(3)?);
    let exp = eltwise::Forward::new(engine, desc, Eltwise::Exp).build()?;
    let args = Args::new().input(Arg::Src, &src).in_place(Arg::Src1, Arg::Dst, &mut shared);
    assert!(exp.primitive().execute(&stream, args).is_err());
    let softmax = softmax::Backward::new(engine, desc, 1).build()?;
    let args = Args::new().input(Arg::Dst, &diff).input(Arg::DiffDst, &src);
    let error = softmax.primitive().execute(&stream, args).unwrap_err();
    assert!(error.to_string().contains("diff_src"), "{error}");
    setting.same(&shared, &setting.tensor(3)?)
}

#[test]
fn gated_activations_write_dynamic_scales() -> Result<()> {
    let setting = Setting::new()?;
    let (engine, desc) = (&setting.engine, &setting.desc);
    let stream = Stream::new(engine)?;
    let (gate, up) = (setting.tensor(1)?, setting.tensor(2)?);
    let mut attr = Attr::new()?;
    attr.set_dynamic_scales(DynamicScale::Largest(DataType::F32), DIMS[1], 2)?;
    attr.set_dynamic_zero_points(DIMS[1], 2)?;
    let bytes = MemoryDesc::dense(&DIMS, DataType::U8)?;
    let bilinear = gated::Forward::separate(engine, Activation::Linear(1.0), desc, desc, &bytes);
    let bilinear = bilinear.attr(&attr).build()?;
    let primitive = bilinear.primitive();
    assert!(primitive.writes(Arg::DstScale) && primitive.writes(Arg::DstZeroPoint));
    let new = |arg| Memory::new(engine, &primitive.arg_desc(arg)?.expect("an output"));
    let (mut scales, mut points) = (new(Arg::DstScale)?, new(Arg::DstZeroPoint)?);
    let mut dst = Memory::new(engine, &bytes)?;
    let args = gated::ForwardArgs::new(&gate, &mut dst).up(&up);
    bilinear.execute(&stream, args.dst_scale_out(&mut scales).dst_zero_point_out(&mut points))?;
    let (scales, points) = (scales.as_slice::<f32>()?, points.as_slice::<i32>()?);
    let products = gate.as_slice::<f32>()?.iter().zip(up.as_slice::<f32>()?).map(|(g, u)| g * u);
    for (i, (product, code)) in products.zip(dst.as_slice::<u8>()?).enumerate() {
        let row = i / DIMS[1];
        let value = (i32::from(*code) - points[row]) as f32 * scales[row];
        assert!((value - product).abs() <= 0.51 * scales[row], "{i}: {value}, not {product}");
    }
    // As an input they are refused, with the method that passes them.
    let wrong = new(Arg::DstScale)?;
    let mut dst = Memory::new(engine, &bytes)?;
    let args = gated::ForwardArgs::new(&gate, &mut dst).up(&up).dst_scale(&wrong);
    let error = bilinear.execute(&stream, args).unwrap_err();
    assert!(error.to_string().contains("dst_scale_out()"), "{error}");
    Ok(())
}
