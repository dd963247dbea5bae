//! Prints a digest of the output bits for tables of problems (types, shapes, flags, layouts, attributes) at every level
//! that the machine has: one line per problem and level. `digest LEVEL` prints only one level.
//!
//! Two machines, levels or versions agree if their digests are equal. `scripts/neon.sh` compares aarch64 under an
//! emulator with this machine.

mod attention;
mod family;
mod functions;
mod run;

use norm as _;
use norm_sys as sys;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

/// FNV-1a over bytes.
fn fnv(digest: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(digest, |d, b| (d ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

/// A linear congruential generator: the same numbers on every machine.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// `count` numbers between about -4 and 4, with stretches of huge ones.
    fn bytes(&mut self, data_type: u32, count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for i in 0..count {
            let small = (self.next() as i64 - (1 << 30)) as f32 / (1u32 << 28) as f32;
            let x = small * if i / 97 % 11 == 7 { 1e24 } else { 1.0 };
            match data_type {
                sys::norm_bf16 => bytes.extend(half::bf16::from_f32(x).to_le_bytes()),
                sys::norm_f16 => bytes.extend(half::f16::from_f32(small).to_le_bytes()),
                sys::norm_f64 => bytes.extend((f64::from(x) * 1.000_000_001).to_le_bytes()),
                sys::norm_s8 | sys::norm_u8 => bytes.push(self.next() as u8),
                // The mask excludes NaN and infinities.
                sys::norm_f8_e4m3 | sys::norm_f8_e5m2 => bytes.push(self.next() as u8 & 0xb7),
                _ => bytes.extend(x.to_le_bytes()),
            }
        }
        bytes
    }

    /// Numbers between about -4 and 4, whose products are finite.
    fn calm_bytes(&mut self, data_type: u32, count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..count {
            let x = (self.next() as i64 - (1 << 30)) as f32 / (1u32 << 28) as f32;
            match data_type {
                sys::norm_bf16 => bytes.extend(half::bf16::from_f32(x).to_le_bytes()),
                sys::norm_f16 => bytes.extend(half::f16::from_f32(x).to_le_bytes()),
                _ => bytes.extend(x.to_le_bytes()),
            }
        }
        bytes
    }
}

fn check(status: sys::norm_status_t) {
    assert_eq!(status, sys::norm_success);
}

/// The engine and the stream. Objects are never destroyed: the process is short.
struct Library {
    engine: sys::norm_engine_t,
    stream: sys::norm_stream_t,
}

impl Library {
    fn new() -> Self {
        let (mut engine, mut stream) = (null_mut(), null_mut());
        // SAFETY: both are written before they are read.
        unsafe {
            check(sys::norm_engine_create(&raw mut engine, sys::norm_cpu, 0));
            check(sys::norm_stream_create(&raw mut stream, engine, sys::norm_stream_in_order));
        }
        Self { engine, stream }
    }

    fn desc(dims: &[i64], data_type: u32) -> sys::norm_memory_desc_t {
        let mut desc = null_mut();
        // SAFETY: the number of dimensions is correct.
        unsafe {
            check(sys::norm_memory_desc_create_with_strides(
                &raw mut desc,
                dims.len() as i32,
                dims.as_ptr(),
                data_type,
                null(),
            ));
        }
        desc
    }

    fn memory(&self, desc: sys::norm_memory_desc_t, bytes: &mut [u8]) -> sys::norm_memory_t {
        let mut memory = null_mut();
        let handle: *mut c_void = bytes.as_mut_ptr().cast();
        // SAFETY: the buffer has the descriptor's size and outlives the execution.
        unsafe { check(sys::norm_memory_create(&raw mut memory, desc, self.engine, handle)) };
        memory
    }
}

/// A problem of the table.
#[derive(Clone, Copy)]
struct Problem {
    rows: i64,
    cols: i64,
    data_type: u32,
    flags: u32,
}

/// The digest of all outputs of forward training and backward.
fn digest(library: &Library, problem: &Problem) -> u64 {
    let Problem { rows, cols, data_type, flags } = *problem;
    let (n, c) = (rows as usize, cols as usize);
    let mut numbers = Numbers(rows as u64 * 1000 + cols as u64);
    // SAFETY: no pointers.
    let size = unsafe { sys::norm_data_type_size(data_type) };
    let mut src = numbers.bytes(data_type, n * c);
    let mut diff_dst = numbers.bytes(data_type, n * c);
    let mut scale = numbers.bytes(sys::norm_f32, c);
    let mut shift = numbers.bytes(sys::norm_f32, c);
    let (mut dst, mut diff_src) = (vec![0u8; n * c * size], vec![0u8; n * c * size]);
    let (mut mean, mut variance) = (vec![0u8; n * 4], vec![0u8; n * 4]);
    let (mut diff_scale, mut diff_shift) = (vec![0u8; c * 4], vec![0u8; c * 4]);

    let data = Library::desc(&[rows, cols], data_type);
    let stat = Library::desc(&[rows], sys::norm_f32);
    let parameter = Library::desc(&[cols], sys::norm_f32);
    let arg = |arg, desc, bytes: &mut [u8]| sys::norm_exec_arg_t {
        arg,
        memory: library.memory(desc, bytes),
    };
    let args = [
        arg(sys::NORM_ARG_SRC, data, &mut src),
        arg(sys::NORM_ARG_DST, data, &mut dst),
        arg(sys::NORM_ARG_MEAN, stat, &mut mean),
        arg(sys::NORM_ARG_VARIANCE, stat, &mut variance),
        arg(sys::NORM_ARG_SCALE, parameter, &mut scale),
        arg(sys::NORM_ARG_SHIFT, parameter, &mut shift),
        arg(sys::NORM_ARG_DIFF_DST, data, &mut diff_dst),
        arg(sys::NORM_ARG_DIFF_SRC, data, &mut diff_src),
        arg(sys::NORM_ARG_DIFF_SCALE, parameter, &mut diff_scale),
        arg(sys::NORM_ARG_DIFF_SHIFT, parameter, &mut diff_shift),
    ];
    let (mut forward, mut backward) = (null_mut(), null_mut());
    // SAFETY: descriptors and arguments are alive, and buffers as large as they say.
    unsafe {
        check(sys::norm_layer_normalization_forward_primitive_desc_create(
            &raw mut forward,
            library.engine,
            sys::norm_forward_training,
            data,
            data,
            stat,
            1e-5,
            flags,
            null(),
        ));
        check(sys::norm_layer_normalization_backward_primitive_desc_create(
            &raw mut backward,
            library.engine,
            sys::norm_backward,
            data,
            data,
            data,
            stat,
            1e-5,
            flags,
            null(),
            null(),
        ));
        for desc in [forward, backward] {
            let mut primitive = null_mut();
            check(sys::norm_primitive_create(&raw mut primitive, desc));
            let nargs = args.len() as i32;
            check(sys::norm_primitive_execute(primitive, library.stream, nargs, args.as_ptr()));
        }
    }
    let mut outputs = vec![dst, variance, diff_src];
    if flags & sys::norm_rms_norm == 0 {
        outputs.push(mean);
    }
    outputs.extend([diff_scale, diff_shift]);
    outputs.iter().fold(0xcbf2_9ce4_8422_2325, |d, bytes| fnv(d, bytes))
}

/// The digest of dst of forward inference with a scale and a chain of post-operations; `turned` swaps the order of the
/// dimensions in memory.
fn digest_of_chain(
    library: &Library,
    cols: i64,
    types: [u32; 2],
    turned: bool,
    ops: &[u32],
) -> u64 {
    let (rows, c) = (37i64, cols as usize);
    let mut numbers = Numbers(cols as u64 * 77 + types[0] as u64);
    let desc = |data_type| {
        let (mut desc, strides) = (null_mut(), if turned { [1, rows] } else { [cols, 1] });
        // SAFETY: two dimensions.
        unsafe {
            check(sys::norm_memory_desc_create_with_strides(
                &raw mut desc,
                2,
                [rows, cols].as_ptr(),
                data_type,
                strides.as_ptr(),
            ));
        }
        desc
    };
    // SAFETY: no pointers.
    let size = |data_type| unsafe { sys::norm_data_type_size(data_type) };
    let count = rows as usize * c;
    let [src_desc, dst_desc] = types.map(desc);
    let mut src = numbers.bytes(types[0], count);
    let mut dst = vec![1u8; count * size(types[1])];
    let mut operand = numbers.bytes(sys::norm_f32, c);
    let operand_desc = Library::desc(&[1, cols], sys::norm_f32);
    let (mut scale, mut factor) = (numbers.bytes(sys::norm_f32, c), 0.3f32.to_le_bytes().to_vec());
    let (parameter, one) =
        (Library::desc(&[cols], sys::norm_f32), Library::desc(&[1], sys::norm_f32));
    let (mut attr, mut post_ops, mut forward) = (null_mut(), null_mut(), null_mut());
    let arg = |arg, desc, bytes: &mut [u8]| sys::norm_exec_arg_t {
        arg,
        memory: library.memory(desc, bytes),
    };
    let mut args = vec![
        arg(sys::NORM_ARG_SRC, src_desc, &mut src),
        arg(sys::NORM_ARG_DST, dst_desc, &mut dst),
        arg(sys::NORM_ARG_SCALE, parameter, &mut scale),
        arg(sys::NORM_ARG_ATTR_SCALES | sys::NORM_ARG_DST, one, &mut factor),
    ];
    // SAFETY: descriptors and arguments are alive, and buffers as large as they say.
    unsafe {
        check(sys::norm_primitive_attr_create(&raw mut attr));
        check(sys::norm_primitive_attr_set_scales_mask(attr, sys::NORM_ARG_DST, 0));
        check(sys::norm_post_ops_create(&raw mut post_ops));
        for (at, op) in ops.iter().enumerate() {
            if *op >= sys::norm_binary_add {
                check(sys::norm_post_ops_append_binary(post_ops, *op, operand_desc));
                let id = sys::NORM_ARG_ATTR_MULTIPLE_POST_OP(at as i32) | sys::NORM_ARG_SRC_1;
                args.push(arg(id, operand_desc, &mut operand));
            } else {
                check(sys::norm_post_ops_append_eltwise(post_ops, *op, 0.5, 0.75));
            }
        }
        check(sys::norm_primitive_attr_set_post_ops(attr, post_ops));
        check(sys::norm_layer_normalization_forward_primitive_desc_create(
            &raw mut forward,
            library.engine,
            sys::norm_forward_inference,
            src_desc,
            dst_desc,
            null(),
            1e-5,
            sys::norm_use_scale,
            attr,
        ));
        let mut primitive = null_mut();
        check(sys::norm_primitive_create(&raw mut primitive, forward));
        let nargs = args.len() as i32;
        check(sys::norm_primitive_execute(primitive, library.stream, nargs, args.as_ptr()));
    }
    fnv(0xcbf2_9ce4_8422_2325, &dst)
}

/// Prints the lines of a level for 8-bit types and post-operations, which only forward supports.
fn print_chains(library: &Library, level: &str) {
    let types = [
        ("f32", sys::norm_f32),
        ("bf16", sys::norm_bf16),
        ("f16", sys::norm_f16),
        ("s8", sys::norm_s8),
        ("u8", sys::norm_u8),
        ("f8_e4m3", sys::norm_f8_e4m3),
        ("f8_e5m2", sys::norm_f8_e5m2),
    ];
    // Functions that never give NaN: its bits are not part of the contract.
    let eltwise = [
        sys::norm_eltwise_relu,
        sys::norm_eltwise_tanh,
        sys::norm_eltwise_elu,
        sys::norm_eltwise_square,
        sys::norm_eltwise_abs,
        sys::norm_eltwise_linear,
        sys::norm_eltwise_soft_relu,
        sys::norm_eltwise_hardsigmoid,
        sys::norm_eltwise_logistic,
        sys::norm_eltwise_gelu_tanh,
        sys::norm_eltwise_swish,
        sys::norm_eltwise_clip,
        sys::norm_eltwise_gelu_erf,
        sys::norm_eltwise_round,
        sys::norm_eltwise_mish,
        sys::norm_eltwise_hardswish,
    ];
    let chains = eltwise.map(|op| vec![op]).into_iter().chain([
        vec![],
        vec![sys::norm_binary_add, sys::norm_eltwise_gelu_erf, sys::norm_binary_mul],
        vec![sys::norm_eltwise_abs, sys::norm_eltwise_pow, sys::norm_binary_max],
        vec![sys::norm_eltwise_logistic, sys::norm_eltwise_log, sys::norm_eltwise_exp],
    ]);
    for (i, chain) in chains.enumerate() {
        for (j, (src_name, src)) in types.into_iter().enumerate() {
            for turned in [false, true] {
                let cols = [7, 64, 100, 300][(i + j) % 4];
                let (dst_name, dst) = types[(i * 3 + j) % types.len()];
                let digest = digest_of_chain(library, cols, [src, dst], turned, &chain);
                let layout = if turned { "ba" } else { "ab" };
                println!("{level} {src_name}:{dst_name} {layout} {cols} chain {i} {digest:016x}");
            }
        }
    }
}

fn main() {
    let only = std::env::args().nth(1);
    let levels = [
        ("portable", sys::norm_cpu_isa_portable),
        ("neon", sys::norm_cpu_isa_neon),
        ("avx2", sys::norm_cpu_isa_avx2),
        ("avx512", sys::norm_cpu_isa_avx512_core),
    ];
    let library = Library::new();
    let all = sys::norm_use_scale | sys::norm_use_shift;
    for (name, isa) in levels {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        // SAFETY: no pointers.
        let there = unsafe {
            sys::norm_set_max_cpu_isa(isa) == sys::norm_success
                && sys::norm_get_effective_cpu_isa() == isa
        };
        if !there {
            continue;
        }
        print_chains(&library, name);
        family::print(&library, name);
        functions::print(&library, name);
        attention::print(&library, name);
        for cols in (1..=130).chain([257, 301, 768, 1024, 4096, 33000]) {
            for (type_name, data_type) in [
                ("f32", sys::norm_f32),
                ("bf16", sys::norm_bf16),
                ("f16", sys::norm_f16),
                ("f64", sys::norm_f64),
            ] {
                let rms = sys::norm_rms_norm;
                for (flag_name, flags) in
                    [("CH", all), ("CHM", all | rms), ("CM", sys::norm_use_scale | rms), ("", 0)]
                {
                    // Enough short rows for every kernel that processes several at once, with a remainder.
                    let rows = match cols {
                        16 | 32 | 64 | 96 | 128 => 47,
                        ..=1024 => 13,
                        _ => 3,
                    };
                    let problem = Problem { rows, cols, data_type, flags };
                    let digest = digest(&library, &problem);
                    println!("{name} {type_name} {rows}x{cols} {flag_name} {digest:016x}");
                }
            }
        }
    }
}
