//! Softmax, functions of elements, gated activations and rotations, with their gradients.

use crate::run::{self, Ids};
use crate::{Library, Numbers, check};
use norm_sys as sys;
use std::ptr::{null, null_mut};

const ROWS: i64 = 13;
const HEADS: i64 = 3;

const IDS: Ids<'_> = Ids {
    inputs: &[
        sys::NORM_ARG_SRC,
        sys::NORM_ARG_SRC_1,
        sys::NORM_ARG_POSITIONS,
        sys::NORM_ARG_ROPE_FREQUENCIES,
        sys::NORM_ARG_SCALE,
        sys::NORM_ARG_DIFF_DST,
    ],
    outputs: &[
        sys::NORM_ARG_DST,
        sys::NORM_ARG_DIFF_SRC,
        sys::NORM_ARG_DIFF_SRC_1,
        sys::NORM_ARG_DIFF_SCALE,
    ],
};

/// The functions whose results are finite for the data.
const ELTWISE: [u32; 17] = [
    sys::norm_eltwise_relu,
    sys::norm_eltwise_tanh,
    sys::norm_eltwise_elu,
    sys::norm_eltwise_square,
    sys::norm_eltwise_abs,
    sys::norm_eltwise_linear,
    sys::norm_eltwise_soft_relu,
    sys::norm_eltwise_hardsigmoid,
    sys::norm_eltwise_logistic,
    sys::norm_eltwise_exp,
    sys::norm_eltwise_gelu_tanh,
    sys::norm_eltwise_swish,
    sys::norm_eltwise_clip,
    sys::norm_eltwise_gelu_erf,
    sys::norm_eltwise_round,
    sys::norm_eltwise_mish,
    sys::norm_eltwise_hardswish,
];
const BINARY: [u32; 7] = [
    sys::norm_binary_add,
    sys::norm_binary_mul,
    sys::norm_binary_max,
    sys::norm_binary_min,
    sys::norm_binary_div,
    sys::norm_binary_sub,
    sys::norm_binary_ge,
];
const GATES: [u32; 6] = [
    sys::norm_eltwise_swish,
    sys::norm_eltwise_gelu_erf,
    sys::norm_eltwise_gelu_tanh,
    sys::norm_eltwise_relu,
    sys::norm_eltwise_logistic,
    sys::norm_eltwise_linear,
];

/// Primitive descriptors that are executed one after another.
type Descs = Vec<sys::norm_primitive_desc_t>;

const TRAINING: u32 = sys::norm_forward_training;

fn softmax(library: &Library, data_type: u32, cols: i64, function: u32, axis: i32) -> Descs {
    let (x, engine) = (Library::desc(&[ROWS, cols], data_type), library.engine);
    let mut descs = vec![null_mut(); 2];
    let [to, back] = [0, 1].map(|at| &raw mut descs[at]);
    // SAFETY: the descriptors are alive; so in the functions below.
    unsafe {
        check(sys::norm_softmax_forward_primitive_desc_create(
            to,
            engine,
            TRAINING,
            function,
            x,
            x,
            axis,
            null(),
        ));
        check(sys::norm_softmax_backward_primitive_desc_create(
            back,
            engine,
            function,
            x,
            x,
            x,
            axis,
            null(),
            null(),
        ));
    }
    descs
}

fn eltwise(library: &Library, data_type: u32, cols: i64, function: u32) -> Descs {
    let (x, engine) = (Library::desc(&[ROWS, cols], data_type), library.engine);
    let mut descs = vec![null_mut(); 2];
    let [to, back] = [0, 1].map(|at| &raw mut descs[at]);
    let (alpha, beta) = (0.5, 0.75);
    // SAFETY: as above.
    unsafe {
        check(sys::norm_eltwise_forward_primitive_desc_create(
            to,
            engine,
            TRAINING,
            function,
            x,
            x,
            alpha,
            beta,
            null(),
        ));
        if function == sys::norm_eltwise_round {
            descs.truncate(1);
            return descs;
        }
        check(sys::norm_eltwise_backward_primitive_desc_create(
            back,
            engine,
            function,
            x,
            x,
            x,
            alpha,
            beta,
            null(),
            null(),
        ));
    }
    descs
}

/// With one row as the second source.
fn binary(library: &Library, data_type: u32, cols: i64, function: u32) -> Descs {
    let (x, row) = (Library::desc(&[ROWS, cols], data_type), Library::desc(&[1, cols], data_type));
    let mut desc = null_mut();
    // SAFETY: as above.
    check(unsafe {
        sys::norm_binary_primitive_desc_create(
            &raw mut desc,
            library.engine,
            function,
            x,
            row,
            x,
            null(),
        )
    });
    vec![desc]
}

fn gated(library: &Library, data_type: u32, cols: i64, function: u32, packing: u32) -> Descs {
    let (is_packed, engine) = (packing != sys::norm_gate_separate, library.engine);
    let half = Library::desc(&[ROWS, cols], data_type);
    let (src, up) = match is_packed {
        true => (Library::desc(&[ROWS, 2 * cols], data_type), null_mut()),
        false => (half, half),
    };
    let mut descs = vec![null_mut(); 2];
    let [to, back] = [0, 1].map(|at| &raw mut descs[at]);
    let (alpha, limit, shift) = (1.25, 3.0, 1.0);
    // SAFETY: as above.
    unsafe {
        check(sys::norm_gated_forward_primitive_desc_create(
            to,
            engine,
            TRAINING,
            function,
            packing,
            src,
            up,
            half,
            alpha,
            limit,
            shift,
            null(),
        ));
        check(sys::norm_gated_backward_primitive_desc_create(
            back,
            engine,
            function,
            packing,
            src,
            up,
            half,
            src,
            up,
            null(),
            alpha,
            limit,
            shift,
            null(),
            null(),
        ));
    }
    descs
}

/// Heads of `size` elements; the first three quarters of each are rotated.
fn rope(library: &Library, data_type: u32, size: i64, pairing: u32, flags: u32) -> Descs {
    let x = Library::desc(&[ROWS, HEADS, size], data_type);
    let positions = Library::desc(&[ROWS, 1], sys::norm_s32);
    // Backward reads src only to normalize heads.
    let (src, scale) = match flags {
        0 => (null_mut(), null_mut()),
        _ => (x, Library::desc(&[size], sys::norm_f32)),
    };
    let (engine, angles) = (library.engine, sys::norm_rope_from_frequencies);
    let (rotary, magnitude, epsilon) = (size / 4 * 3, 1.0, 1e-5);
    let mut descs = vec![null_mut(); 2];
    let [to, back] = [0, 1].map(|at| &raw mut descs[at]);
    // SAFETY: as above.
    unsafe {
        check(sys::norm_rope_forward_primitive_desc_create(
            to,
            engine,
            TRAINING,
            pairing,
            angles,
            x,
            x,
            positions,
            -1,
            null(),
            scale,
            rotary,
            magnitude,
            0,
            null(),
            epsilon,
            flags,
            null(),
        ));
        check(sys::norm_rope_backward_primitive_desc_create(
            back,
            engine,
            pairing,
            angles,
            x,
            x,
            src,
            positions,
            -1,
            null(),
            scale,
            scale,
            rotary,
            magnitude,
            0,
            null(),
            epsilon,
            flags,
            null(),
            null(),
        ));
    }
    descs
}

/// The digest of all outputs.
fn digest(library: &Library, descs: &[sys::norm_primitive_desc_t], data_type: u32) -> u64 {
    let mut numbers = Numbers(u64::from(data_type) * 31 + 5);
    let mut fill = |id, data_type, count: usize| match id {
        sys::NORM_ARG_POSITIONS => (0..count as i32).flat_map(|i| (i * 37).to_le_bytes()).collect(),
        // Powers of two are exact.
        sys::NORM_ARG_ROPE_FREQUENCIES => {
            (0..count as i32).flat_map(|i| 0.5f64.powi(i).to_le_bytes()).collect()
        }
        _ => numbers.calm_bytes(data_type, count),
    };
    run::digest(library, descs, IDS, &mut fill, &|_, id| id)
}

/// Prints the lines of a level.
pub(crate) fn print(library: &Library, level: &str) {
    let packings = [sys::norm_gate_first, sys::norm_gate_interleaved, sys::norm_gate_separate];
    let normalized = sys::norm_rms_norm | sys::norm_use_scale;
    for (name, data_type) in
        [("f32", sys::norm_f32), ("bf16", sys::norm_bf16), ("f16", sys::norm_f16)]
    {
        for cols in [7, 64, 300] {
            let line = |problem: std::fmt::Arguments<'_>, descs: Descs| {
                let digest = digest(library, &descs, data_type);
                println!("{level} {name} {cols} {problem} {digest:016x}");
            };
            for function in [sys::norm_softmax_accurate, sys::norm_softmax_log] {
                for axis in [0, 1] {
                    let descs = softmax(library, data_type, cols, function, axis);
                    line(format_args!("softmax {function:x} axis {axis}"), descs);
                }
            }
            for function in ELTWISE {
                let descs = eltwise(library, data_type, cols, function);
                line(format_args!("eltwise {function:x}"), descs);
            }
            for function in BINARY {
                let descs = binary(library, data_type, cols, function);
                line(format_args!("binary {function:x}"), descs);
            }
            for (at, function) in GATES.into_iter().enumerate() {
                let packing = packings[at % packings.len()];
                let descs = gated(library, data_type, cols, function, packing);
                line(format_args!("gated {function:x} {packing:x}"), descs);
            }
        }
        for size in [16, 40, 128] {
            for pairing in [sys::norm_rope_interleaved, sys::norm_rope_half_split] {
                for flags in [0, normalized] {
                    let descs = rope(library, data_type, size, pairing, flags);
                    let digest = digest(library, &descs, data_type);
                    println!("{level} {name} {size} rope {pairing:x} {flags:x} {digest:016x}");
                }
            }
        }
    }
}
