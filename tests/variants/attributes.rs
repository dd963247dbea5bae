//! Scales and post-operations.

use crate::harness::*;
use norm_sys as sys;
use std::ptr::null_mut;

const ELTWISE: [(u32, f32, f32); 27] = [
    (sys::norm_eltwise_relu, 0.0, 0.0),
    (sys::norm_eltwise_relu, 0.25, 0.0),
    (sys::norm_eltwise_tanh, 0.0, 0.0),
    (sys::norm_eltwise_elu, 0.7, 0.0),
    (sys::norm_eltwise_square, 0.0, 0.0),
    (sys::norm_eltwise_abs, 0.0, 0.0),
    (sys::norm_eltwise_sqrt, 0.0, 0.0),
    (sys::norm_eltwise_linear, 0.5, -1.0),
    (sys::norm_eltwise_soft_relu, 2.0, 0.0),
    (sys::norm_eltwise_soft_relu, -1.0, 0.0),
    (sys::norm_eltwise_hardsigmoid, 0.3, 0.4),
    (sys::norm_eltwise_logistic, 0.0, 0.0),
    (sys::norm_eltwise_exp, 0.0, 0.0),
    (sys::norm_eltwise_gelu_tanh, 0.0, 0.0),
    (sys::norm_eltwise_swish, 1.5, 0.0),
    (sys::norm_eltwise_log, 0.0, 0.0),
    (sys::norm_eltwise_clip, -0.5, 0.75),
    (sys::norm_eltwise_clip_v2, -0.5, 0.75),
    (sys::norm_eltwise_pow, 2.0, 3.0),
    (sys::norm_eltwise_pow, 0.5, 0.5),
    (sys::norm_eltwise_pow, 1.0, -1.0),
    (sys::norm_eltwise_pow, 1.0, 0.3),
    (sys::norm_eltwise_gelu_erf, 0.0, 0.0),
    (sys::norm_eltwise_round, 0.0, 0.0),
    (sys::norm_eltwise_mish, 0.0, 0.0),
    (sys::norm_eltwise_hardswish, 0.3, 0.4),
    (sys::norm_eltwise_linear, 3.0, 2.0),
];
const BINARY: [u32; 12] = [
    sys::norm_binary_add,
    sys::norm_binary_mul,
    sys::norm_binary_max,
    sys::norm_binary_min,
    sys::norm_binary_div,
    sys::norm_binary_sub,
    sys::norm_binary_ge,
    sys::norm_binary_gt,
    sys::norm_binary_le,
    sys::norm_binary_lt,
    sys::norm_binary_eq,
    sys::norm_binary_ne,
];
const OPERANDS: [u32; 6] =
    [sys::norm_f32, sys::norm_bf16, sys::norm_f16, sys::norm_s8, sys::norm_u8, sys::norm_s32];

/// Attributes under construction, and the memories that they read.
struct Attributes<'a> {
    library: &'a Library,
    post_ops: sys::norm_post_ops_t,
    attr: sys::norm_primitive_attr_t,
    count: i32,
    args: Vec<sys::norm_exec_arg_t>,
    buffers: Vec<Buffer>,
}

// SAFETY of the blocks below: live handles of this test, destroyed with the process.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<'a> Attributes<'a> {
    fn new(library: &'a Library) -> Self {
        let (mut post_ops, mut attr) = (null_mut(), null_mut());
        unsafe {
            check(sys::norm_post_ops_create(&raw mut post_ops));
            check(sys::norm_primitive_attr_create(&raw mut attr));
        }
        Self { library, post_ops, attr, count: 0, args: Vec::new(), buffers: Vec::new() }
    }

    fn eltwise(mut self, algorithm: u32, alpha: f32, beta: f32) -> Self {
        unsafe {
            check(sys::norm_post_ops_append_eltwise(self.post_ops, algorithm, alpha, beta));
        }
        self.count += 1;
        self
    }

    fn sum(mut self, scale: f32, zero_point: i32, data_type: u32) -> Self {
        unsafe {
            check(sys::norm_post_ops_append_sum(self.post_ops, scale, zero_point, data_type));
        }
        self.count += 1;
        self
    }

    fn operand(&mut self, dims: &[i64], strides: &[i64], data_type: u32, arg: i32) {
        let desc = Library::desc(dims, data_type, strides);
        let buffer = self.library.random(desc, data_type, 77 + self.count as u64);
        let arg = sys::NORM_ARG_ATTR_MULTIPLE_POST_OP(self.count) | arg;
        self.args.push(sys::norm_exec_arg_t { arg, memory: buffer.memory });
        self.buffers.push(buffer);
    }

    fn binary(mut self, algorithm: u32, dims: &[i64], strides: &[i64], data_type: u32) -> Self {
        let desc = Library::desc(dims, data_type, strides);
        unsafe { check(sys::norm_post_ops_append_binary(self.post_ops, algorithm, desc)) };
        self.operand(dims, strides, data_type, sys::NORM_ARG_SRC_1);
        self.count += 1;
        self
    }

    fn select(mut self, other: &[i64], condition: &[i64]) -> Self {
        let src1 = Library::desc(other, sys::norm_f32, &[]);
        let src2 = Library::desc(condition, sys::norm_s8, &[]);
        let kind = sys::norm_binary_select;
        unsafe { check(sys::norm_post_ops_append_binary_v2(self.post_ops, kind, src1, src2)) };
        self.operand(other, &[], sys::norm_f32, sys::NORM_ARG_SRC_1);
        self.operand(condition, &[], sys::norm_s8, sys::NORM_ARG_SRC_2);
        // Some elements are 0.
        let buffer = self.buffers.last_mut().expect("a condition");
        buffer.bytes.iter_mut().step_by(3).for_each(|byte| *byte = 0);
        self.count += 1;
        self
    }

    fn scale(mut self, arg: i32, value: f32) -> Self {
        unsafe { check(sys::norm_primitive_attr_set_scales_mask(self.attr, arg, 0)) };
        let desc = Library::desc(&[1], sys::norm_f32, &[]);
        let buffer = self.library.buffer(desc, value.to_le_bytes().to_vec());
        let arg = sys::NORM_ARG_ATTR_SCALES | arg;
        self.args.push(sys::norm_exec_arg_t { arg, memory: buffer.memory });
        self.buffers.push(buffer);
        self
    }

    fn outputs(self, problem: &Problem) -> Vec<Vec<u8>> {
        unsafe { check(sys::norm_primitive_attr_set_post_ops(self.attr, self.post_ops)) };
        assert_same(problem, &run_with(self.library, problem, self.attr, &self.args))
    }
}

fn f32s(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

const F32: [u32; 3] = [sys::norm_f32; 3];

fn inference(dims: &[i64], types: [u32; 3], flags: u32) -> Problem {
    Problem::dense(sys::norm_forward_inference, dims, types, flags)
}

/// Independent formulas of the algorithms.
fn formula(algorithm: u32, a: f64, b: f64, x: f64) -> f64 {
    let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
    let hard = |x: f64| (a * x + b).clamp(0.0, 1.0);
    match algorithm {
        sys::norm_eltwise_relu => {
            if x > 0.0 {
                x
            } else {
                a * x
            }
        }
        sys::norm_eltwise_tanh => x.tanh(),
        sys::norm_eltwise_elu => {
            if x > 0.0 {
                x
            } else {
                a * x.exp_m1()
            }
        }
        sys::norm_eltwise_square => x * x,
        sys::norm_eltwise_abs => x.abs(),
        sys::norm_eltwise_sqrt => x.sqrt(),
        sys::norm_eltwise_linear => a * x + b,
        sys::norm_eltwise_soft_relu => (a * x).exp().ln_1p() / a,
        sys::norm_eltwise_hardsigmoid => hard(x),
        sys::norm_eltwise_logistic => logistic(x),
        sys::norm_eltwise_exp => x.exp(),
        sys::norm_eltwise_gelu_tanh => {
            x / 2.0
                * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
        }
        sys::norm_eltwise_swish => x * logistic(a * x),
        sys::norm_eltwise_log => x.ln(),
        sys::norm_eltwise_clip | sys::norm_eltwise_clip_v2 => x.clamp(a, b),
        sys::norm_eltwise_pow => a * x.powf(b),
        sys::norm_eltwise_gelu_erf => {
            // The distribution below x, by Simpson's rule.
            let n = 2000;
            let h = x / f64::from(n);
            let density = |t: f64| (-t * t / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
            let inner: f64 = (1..n)
                .map(|i| density(f64::from(i) * h) * if i % 2 == 1 { 4.0 } else { 2.0 })
                .sum();
            x * (0.5 + h / 3.0 * (density(0.0) + inner + density(x)))
        }
        sys::norm_eltwise_round => x.round_ties_even(),
        sys::norm_eltwise_mish => x * x.exp().ln_1p().tanh(),
        sys::norm_eltwise_hardswish => x * hard(x),
        other => panic!("{other:#x}"),
    }
}

#[test]
fn every_eltwise_algorithm() {
    let library = Library::new();
    let problem = inference(&[5, 70], F32, CH);
    let before = f32s(&Attributes::new(&library).outputs(&problem)[0]);
    for (algorithm, a, b) in ELTWISE {
        let attributes = Attributes::new(&library).eltwise(algorithm, a, b);
        let after = f32s(&attributes.outputs(&problem)[0]);
        for (x, got) in before.iter().zip(after) {
            let right = formula(algorithm, a.into(), b.into(), f64::from(*x));
            let near = (f64::from(got) - right).abs() <= 1e-6 * (right.abs() + f64::from(x.abs()));
            assert!(
                near || got.is_nan() && right.is_nan(),
                "{algorithm:#x} of {x}: {got}, not {right}"
            );
        }
    }
}

/// The algorithms whose gradient uses dst are the same as the others in forward.
#[test]
fn algorithms_for_the_gradient_by_dst() {
    let library = Library::new();
    let problem = inference(&[5, 70], F32, CH);
    let pairs = [
        (sys::norm_eltwise_relu_use_dst_for_bwd, sys::norm_eltwise_relu),
        (sys::norm_eltwise_tanh_use_dst_for_bwd, sys::norm_eltwise_tanh),
        (sys::norm_eltwise_elu_use_dst_for_bwd, sys::norm_eltwise_elu),
        (sys::norm_eltwise_sqrt_use_dst_for_bwd, sys::norm_eltwise_sqrt),
        (sys::norm_eltwise_logistic_use_dst_for_bwd, sys::norm_eltwise_logistic),
        (sys::norm_eltwise_exp_use_dst_for_bwd, sys::norm_eltwise_exp),
        (sys::norm_eltwise_clip_v2_use_dst_for_bwd, sys::norm_eltwise_clip_v2),
    ];
    for (by_dst, by_src) in pairs {
        let run =
            |algorithm| Attributes::new(&library).eltwise(algorithm, 0.25, 0.75).outputs(&problem);
        assert!(run(by_dst) == run(by_src), "{by_dst:#x}");
    }
}

#[test]
fn every_eltwise_algorithm_after_every_type() {
    let library = Library::new();
    let types = [
        [sys::norm_bf16, sys::norm_bf16, sys::norm_f32],
        [sys::norm_f32, sys::norm_s8, sys::norm_f32],
        [sys::norm_u8, sys::norm_f16, sys::norm_f32],
        [sys::norm_f64, sys::norm_f32, sys::norm_f32],
        [sys::norm_f16, sys::norm_f8_e5m2, sys::norm_f32],
    ];
    for (i, (algorithm, a, b)) in ELTWISE.into_iter().enumerate() {
        // These return NaN, and any NaN equals any other.
        let partial = [sys::norm_eltwise_sqrt, sys::norm_eltwise_log, sys::norm_eltwise_pow];
        let types = if partial.contains(&algorithm) { types[1] } else { types[i % types.len()] };
        let problem = inference(&[17, 300], types, CH);
        Attributes::new(&library).eltwise(algorithm, a, b).outputs(&problem);
    }
}

#[test]
fn every_binary_algorithm_type_and_broadcast() {
    let library = Library::new();
    let dims = [3i64, 7, 90];
    let broadcasts: [&[i64]; 8] = [
        &[1, 1, 1],
        &[1, 1, 90],
        &[3, 7, 90],
        &[3, 1, 1],
        &[1, 7, 1],
        &[3, 7, 1],
        &[1, 7, 90],
        &[3, 1, 90],
    ];
    let problem = inference(&dims, F32, CH);
    for (i, algorithm) in BINARY.into_iter().enumerate() {
        for (j, operand) in broadcasts.into_iter().enumerate() {
            let data_type = OPERANDS[(i + j) % OPERANDS.len()];
            Attributes::new(&library)
                .binary(algorithm, operand, &[], data_type)
                .eltwise(sys::norm_eltwise_clip, -9.0, 9.0)
                .outputs(&problem);
        }
    }
    // Operands with various layouts.
    for strides in [[1i64, 3, 21], [7 * 90 * 2, 90 * 2, 2], [90, 270, 1]] {
        Attributes::new(&library)
            .binary(sys::norm_binary_add, &dims, &strides, sys::norm_f32)
            .outputs(&problem);
    }
}

#[test]
fn binary_algorithms_match_their_formulas() {
    let library = Library::new();
    let problem = inference(&[4, 50], F32, CH);
    let before = f32s(&Attributes::new(&library).outputs(&problem)[0]);
    for algorithm in BINARY {
        let attributes = Attributes::new(&library).binary(algorithm, &[1, 50], &[], sys::norm_f32);
        let operand = f32s(&attributes.buffers[0].bytes);
        let after = f32s(&attributes.outputs(&problem)[0]);
        for (i, (x, got)) in before.iter().zip(after).enumerate() {
            let (x, y) = (*x, operand[i % 50]);
            let right = match algorithm {
                sys::norm_binary_add => x + y,
                sys::norm_binary_mul => x * y,
                sys::norm_binary_max => x.max(y),
                sys::norm_binary_min => x.min(y),
                sys::norm_binary_div => x / y,
                sys::norm_binary_sub => x - y,
                sys::norm_binary_ge => f32::from(u8::from(x >= y)),
                sys::norm_binary_gt => f32::from(u8::from(x > y)),
                sys::norm_binary_le => f32::from(u8::from(x <= y)),
                sys::norm_binary_lt => f32::from(u8::from(x < y)),
                sys::norm_binary_eq => f32::from(u8::from(x == y)),
                _ => f32::from(u8::from(x != y)),
            };
            assert_eq!(got, right, "{algorithm:#x} of {x} and {y}");
        }
    }
    let attributes = Attributes::new(&library).select(&[1, 50], &[4, 1]);
    let other = f32s(&attributes.buffers[0].bytes);
    let condition = attributes.buffers[1].bytes.clone();
    assert!(condition.contains(&0) && condition.iter().any(|c| *c != 0));
    for (i, got) in f32s(&attributes.outputs(&problem)[0]).into_iter().enumerate() {
        let right = if condition[i / 50] != 0 { before[i] } else { other[i % 50] };
        assert_eq!(got, right, "element {i}");
    }
}

#[test]
fn sums_read_the_previous_dst() {
    let library = Library::new();
    for dst in [sys::norm_f32, sys::norm_s8, sys::norm_bf16] {
        let types = [sys::norm_s8, dst, sys::norm_f32];
        let read_as = if dst == sys::norm_s8 { sys::norm_u8 } else { sys::norm_data_type_undef };
        let mut problem = inference(&[40, 33], types, CH);
        Attributes::new(&library).sum(0.25, 3, read_as).outputs(&problem);
        problem.dst.strides = vec![1, 40];
        let attributes = Attributes::new(&library).sum(1.0, 0, read_as);
        attributes.binary(sys::norm_binary_add, &[1, 33], &[], sys::norm_f32).outputs(&problem);
    }
    // The initial pattern of outputs.
    let problem = inference(&[4, 50], F32, CH);
    let before = f32s(&Attributes::new(&library).outputs(&problem)[0]);
    let was = f32::from_le_bytes([0x5a; 4]);
    let after =
        Attributes::new(&library).sum(1e-16, 0, sys::norm_data_type_undef).outputs(&problem);
    for (x, got) in before.iter().zip(f32s(&after[0])) {
        assert_eq!(got, was.mul_add(1e-16, *x));
    }
}

#[test]
fn scales_apply_before_and_after_post_operations() {
    let library = Library::new();
    let problem = inference(&[4, 50], F32, CH);
    let before = f32s(&Attributes::new(&library).outputs(&problem)[0]);
    for (src, dst) in [(3.0, 0.3), (0.125, 4.0)] {
        let attributes = Attributes::new(&library)
            .scale(sys::NORM_ARG_SRC, src)
            .scale(sys::NORM_ARG_DST, dst)
            .eltwise(sys::norm_eltwise_linear, 1.0, 1.0);
        let after = f32s(&attributes.outputs(&problem)[0]);
        for (x, got) in before.iter().zip(after) {
            assert_eq!(got, (x * src + 1.0) * (1.0 / dst));
        }
    }
    for types in [
        [sys::norm_f32, sys::norm_s8],
        [sys::norm_s8, sys::norm_u8],
        [sys::norm_bf16, sys::norm_s8],
        [sys::norm_f16, sys::norm_u8],
        [sys::norm_f64, sys::norm_s8],
        [sys::norm_u8, sys::norm_bf16],
    ] {
        for dims in [&[20i64, 7][..], &[3, 5, 800]] {
            let problem = inference(dims, [types[0], types[1], sys::norm_f32], CH);
            let scaled = Attributes::new(&library).scale(sys::NORM_ARG_SRC, 30.0);
            scaled.scale(sys::NORM_ARG_DST, 0.7).outputs(&problem);
        }
    }
}

/// Kernels fuse products, sums and clips for the types and flags that have such a kernel; otherwise they run on a
/// staged row.
#[test]
fn linear_and_clip_in_every_type_and_layout() {
    const RMS: u32 = sys::norm_rms_norm;
    let library = Library::new();
    let types = [
        (sys::norm_f32, sys::norm_f32),
        (sys::norm_f32, sys::norm_bf16),
        (sys::norm_bf16, sys::norm_bf16),
        (sys::norm_bf16, sys::norm_f32),
        (sys::norm_s8, sys::norm_f32),
        (sys::norm_f16, sys::norm_bf16),
    ];
    for flags in [0, CH, RMS, RMS | sys::norm_use_scale, sys::norm_use_shift] {
        for (src, dst) in types {
            let mut problem = inference(&[50, 90], [src, dst, sys::norm_f32], flags);
            for transposed in [false, true] {
                if transposed {
                    problem.dst.strides = vec![1, 50];
                }
                let relu = Attributes::new(&library).eltwise(sys::norm_eltwise_relu, 0.0, 0.0);
                relu.outputs(&problem);
                Attributes::new(&library)
                    .scale(sys::NORM_ARG_SRC, 3.0)
                    .binary(sys::norm_binary_sub, &[1, 1], &[], sys::norm_s8)
                    .eltwise(sys::norm_eltwise_clip, -60.0, 70.5)
                    .binary(sys::norm_binary_mul, &[1, 1], &[], sys::norm_bf16)
                    .eltwise(sys::norm_eltwise_linear, 0.5, -1.25)
                    .scale(sys::NORM_ARG_DST, 0.7)
                    .outputs(&problem);
            }
        }
    }
    let problem = inference(&[2, 64], F32, RMS);
    let before = f32s(&Attributes::new(&library).outputs(&problem)[0]);
    let cut = Attributes::new(&library).eltwise(sys::norm_eltwise_clip, 0.0, 0.5);
    for (x, got) in before.iter().zip(f32s(&cut.outputs(&problem)[0])) {
        assert_eq!(got, x.clamp(0.0, 0.5), "{x}");
    }
}

/// Chains on every kind of layout, with statistics as outputs.
#[test]
fn chains_in_other_layouts() {
    let library = Library::new();
    let dims = [6i64, 20, 40];
    for kind in [sys::norm_forward_training, sys::norm_forward_inference] {
        for (src, dst) in [([1, 6, 120], [800, 1, 20]), ([800, 40, 1], [1, 240, 6])] {
            let types = [sys::norm_f32, sys::norm_s8, sys::norm_f32];
            let mut problem = Problem::dense(kind, &dims, types, CH);
            problem.src.strides = src.to_vec();
            problem.dst.strides = dst.to_vec();
            Attributes::new(&library)
                .scale(sys::NORM_ARG_DST, 0.02)
                .binary(sys::norm_binary_mul, &[6, 1, 40], &[], sys::norm_f16)
                .eltwise(sys::norm_eltwise_gelu_erf, 0.0, 0.0)
                .select(&[1, 20, 1], &[1, 1, 40])
                .sum(2.0, 0, sys::norm_data_type_undef)
                .outputs(&problem);
        }
    }
}

#[test]
fn refusals_name_the_reason() {
    let library = Library::new();
    let attributes = Attributes::new(&library).eltwise(sys::norm_eltwise_relu, 0.0, 0.0);
    // SAFETY: live handles.
    unsafe {
        check(sys::norm_primitive_attr_set_post_ops(attributes.attr, attributes.post_ops));
    }
    let backward = Problem::dense(sys::norm_backward, &[4, 5], F32, CH);
    let double = inference(&[4, 5], [sys::norm_f64, sys::norm_f64, sys::norm_f32], CH);
    for problem in [backward, double] {
        let (status, _) = try_create(&library, &problem, attributes.attr);
        assert_eq!(status, sys::norm_unimplemented, "{problem:?}");
    }
    let integers = [sys::norm_s8, sys::norm_f32, sys::norm_f32];
    let backward = Problem::dense(sys::norm_backward, &[4, 5], integers, CH);
    assert_eq!(try_create(&library, &backward, null_mut()).0, sys::norm_unimplemented);
    let s32 = inference(&[4, 5], [sys::norm_s32, sys::norm_f32, sys::norm_f32], CH);
    assert_eq!(try_create(&library, &s32, null_mut()).0, sys::norm_unimplemented);
}
