//! What guides to RMS normalization in transformers ask for or warn of.

use norm_rs::attr::ResidualRounding;
use norm_rs::group_normalization;
use norm_rs::layer_normalization::{Flags, Forward, ForwardArgs};
use norm_rs::{Attr, DataType, Engine, Memory, MemoryDesc, Parameter, Stream, bf16, f16, rms_norm};

use crate::data::Number;

const NONE: Option<&[f32]> = None;

fn rms(values: &[f32]) -> f64 {
    let squares: f64 = values.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    (squares / values.len() as f64).sqrt()
}

/// Rows whose squares and whose epsilon, 1e-8, are 0 in f16.
fn small_rows<T: Number + Parameter>(ulp: f64) {
    let src = [T::of(1e-4); 64];
    let mut dst = [T::of(0.0); 64];
    rms_norm(&src, 64, NONE, NONE, 1e-8, &mut dst).unwrap();
    let x = src[0].to();
    let want = x / (x * x + 1e-8).sqrt();
    for got in dst {
        assert!((got.to() - want).abs() <= ulp, "{} is not {want}", got.to());
    }
}

#[test]
fn a_small_epsilon_counts_in_every_type() {
    small_rows::<f32>(1e-6);
    small_rows::<bf16>(1.0 / 256.0);
    small_rows::<f16>(1.0 / 2048.0);
}

/// Grouped RMS normalization of bf16: the squares of a group are summed in f32, and the scale is that of the column
/// in the whole row.
#[test]
fn eight_groups_of_a_wide_layer() {
    const COLS: usize = 24_576;
    const GROUPS: usize = 8;
    let engine = Engine::cpu().unwrap();
    let rows = MemoryDesc::dense(&[1, COLS], DataType::Bf16).unwrap();
    let columns = MemoryDesc::dense(&[COLS], DataType::F32).unwrap();
    let value = |i: usize| ((i * 37 % 101) as f32 / 50.0 - 0.9) * (1 + i * GROUPS / COLS) as f32;
    let src: Vec<bf16> = (0..COLS).map(|i| bf16::from_f32(value(i))).collect();
    let scale: Vec<f32> = (0..COLS).map(|i| 1.0 + (i % 29) as f32 / 8.0).collect();
    let flags = Flags::RMS_NORM | Flags::SCALE;
    let norm = group_normalization::Forward::inference(&engine, &rows, GROUPS as i64);
    let norm = norm.flags(flags).epsilon(1e-6).build().unwrap();
    let x = Memory::from_slice(&engine, &rows, &src).unwrap();
    let s = Memory::from_slice(&engine, &columns, &scale).unwrap();
    let mut dst = Memory::new(&engine, &rows).unwrap();
    let stream = Stream::new(&engine).unwrap();
    norm.execute(&stream, ForwardArgs::new(&x, &mut dst).scale(&s)).unwrap();
    let dst = dst.as_slice::<bf16>().unwrap();
    for (group, values) in src.chunks(COLS / GROUPS).enumerate() {
        let wide: Vec<f32> = values.iter().map(|x| x.to_f32()).collect();
        let root = (rms(&wide).powi(2) + 1e-6).sqrt();
        for (i, x) in wide.iter().enumerate() {
            let at = group * values.len() + i;
            let want = f64::from(*x) / root * f64::from(scale[at]);
            let error = (f64::from(dst[at].to_f32()) - want).abs();
            assert!(error <= want.abs() / 255.0, "column {at}: {} is not {want}", dst[at]);
        }
    }
}

/// Three blocks `x + f(norm(x))` and the norm before the last projection. Fused, each block's addition is part of the
/// norm after it, and the last one of the final norm. Without that norm, the results have the size of the stream.
#[test]
fn a_pre_norm_model_ends_with_a_norm() {
    const COLS: usize = 32;
    let block = |normalized: &[f32]| -> Vec<f32> {
        normalized.iter().enumerate().map(|(i, y)| 3.0 * y + (i % 5) as f32).collect()
    };
    let input: Vec<f32> = (0..COLS).map(|i| (i % 7) as f32 - 2.5).collect();
    let normalized = |x: &[f32]| {
        let mut dst = vec![0f32; COLS];
        rms_norm(x, COLS, NONE, NONE, 1e-6, &mut dst).unwrap();
        dst
    };
    let mut stream = input.clone();
    for _ in 0..3 {
        let added = block(&normalized(&stream));
        stream.iter_mut().zip(added).for_each(|(x, added)| *x += added);
    }
    let last = normalized(&stream);
    assert!((rms(&last) - 1.0).abs() < 1e-6 && rms(&stream) > 5.0);

    let engine = Engine::cpu().unwrap();
    let on = Stream::new(&engine).unwrap();
    let row = MemoryDesc::dense(&[1, COLS], DataType::F32).unwrap();
    let mut attr = Attr::new().unwrap();
    attr.set_residual(&row, Some(&row), ResidualRounding::Rounded).unwrap();
    let norm = Forward::inference(&engine, &row).flags(Flags::RMS_NORM).epsilon(1e-6);
    let norm = norm.attr(&attr).build().unwrap();
    let (mut sum, mut dst) = (input.clone(), normalized(&input));
    for _ in 0..3 {
        let added = block(&dst);
        let src = Memory::from_slice(&engine, &row, &added).unwrap();
        let residual = Memory::from_slice(&engine, &row, &sum).unwrap();
        let mut results =
            [Memory::new(&engine, &row).unwrap(), Memory::new(&engine, &row).unwrap()];
        let [of_norm, of_sum] = &mut results;
        let args = ForwardArgs::new(&src, of_norm).residual(&residual).residual_dst(of_sum);
        norm.execute(&on, args).unwrap();
        let read = results.each_ref().map(|memory| memory.as_slice::<f32>().unwrap().to_vec());
        [dst, sum] = read;
    }
    assert_eq!((dst, sum), (last, stream));
}
