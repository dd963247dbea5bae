//! Steps that are computed in one pass have the bits of separate passes, and are one step.

use super::{
    Arguments, Attr, BinaryAlgorithm, EltwiseAlgorithm, PostOp, PostOpChain, PostOps, Rows,
    chain_entry,
};
use crate::simd::Level;
use crate::tensor::{DataType, MemoryDesc};
use norm_sys as sys;

const COLS: usize = 77;

fn eltwise(algorithm: EltwiseAlgorithm, alpha: f32, beta: f32) -> PostOp {
    PostOp::Eltwise { algorithm, code: sys::norm_eltwise_relu, alpha, beta }
}

fn binary(algorithm: BinaryAlgorithm, cols: usize) -> PostOp {
    let src1 = MemoryDesc::dense(&[1, cols as i64], DataType::F32).unwrap();
    PostOp::Binary { algorithm, src1, src2: None }
}

fn chain(post_ops: &[PostOp]) -> PostOpChain {
    let mut list = PostOps::default();
    for post_op in post_ops {
        list.append(post_op.clone()).unwrap();
    }
    let attr = Attr::default().with_post_ops(list);
    let dst = MemoryDesc::dense(&[1, COLS as i64], DataType::F32).unwrap();
    PostOpChain::new(&attr, &dst, Some(&[0])).unwrap().unwrap()
}

/// Applies a chain whose post-operation `at` reads `src1` to a row.
fn apply(post_ops: &[PostOp], at: usize, level: Level, row: &mut [f32], src1: &mut [f32]) {
    let mut arguments = Arguments::new();
    let id = sys::NORM_ARG_ATTR_MULTIPLE_POST_OP(at as i32) | sys::NORM_ARG_SRC_1;
    arguments.push(id, src1.as_mut_ptr().cast());
    let chain = chain(post_ops);
    let start = row.as_mut_ptr();
    let rows = Rows { start, step: 0, cols: COLS, first_col: 0, inputs: None };
    // SAFETY: the row and the operand have as many elements, and the machine has the level.
    unsafe { chain_entry(level)(&chain.bind(&arguments), &rows, 0, 1) };
}

fn numbers(seed: f32) -> Vec<f32> {
    let special = [0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-45, -1e-45, 3e38];
    let plain = (0..COLS).map(|i| ((i as f32 + seed) * 0.7).sin() * 3.0);
    plain
        .enumerate()
        .map(|(i, x)| *special.get(i / 3).filter(|_| i % 3 == 0).unwrap_or(&x))
        .collect()
}

#[test]
fn a_step_in_the_pass_of_the_next_has_the_same_bits() {
    use {BinaryAlgorithm as B, EltwiseAlgorithm as E};
    let firsts =
        [eltwise(E::Relu, 0.0, 0.0), eltwise(E::Linear, 0.3, -1.5), eltwise(E::Clip, -1.0, 0.5)];
    for (first, second) in firsts.iter().flat_map(|first| [B::Add, B::Mul].map(|b| (first, b))) {
        let second = binary(second, COLS);
        for &level in Level::available() {
            let (mut row, mut src1) = (numbers(0.0), numbers(0.4));
            let mut parts = row.clone();
            apply(&[first.clone(), second.clone()], 1, level, &mut row, &mut src1);
            apply(std::slice::from_ref(first), 0, level, &mut parts, &mut src1);
            apply(std::slice::from_ref(&second), 0, level, &mut parts, &mut src1);
            for (x, part) in row.iter().zip(&parts) {
                let same = x.to_bits() == part.to_bits() || x.is_nan() && part.is_nan();
                assert!(same, "{first:?}, {second:?}, {}: {x:e}, not {part:e}", level.name());
            }
        }
    }
}

#[test]
fn only_short_functions_before_sums_and_products_with_rows_join_them() {
    use {BinaryAlgorithm as B, EltwiseAlgorithm as E};
    let relu = || eltwise(E::Relu, 0.0, 0.0);
    let steps = |post_ops: &[PostOp]| chain(post_ops).len();
    assert_eq!(steps(&[relu(), binary(B::Add, COLS)]), 1);
    assert_eq!(steps(&[relu(), relu(), binary(B::Mul, COLS)]), 2);
    assert_eq!(steps(&[relu(), binary(B::Sub, COLS)]), 2);
    assert_eq!(steps(&[eltwise(E::Relu, 0.1, 0.0), binary(B::Add, COLS)]), 2);
    // A single element can be fused into the kernel.
    assert_eq!(steps(&[relu(), binary(B::Add, 1)]), 2);
    assert!(chain(&[relu(), binary(B::Add, 1)]).is_fusible());
}
