//! The masks of `tests/data/golden_dropout.txt`, made by oneDNN, from every implementation: eltwise in two layouts,
//! softmax along both dimensions, binary. Masks do not depend on the operation, its layout or its implementation.

use super::groups::check;
use norm as _;
use norm_sys::*;
use std::ptr::null_mut;

const ROWS: i64 = 3;
const COLS: i64 = 45;
const COUNT: usize = (ROWS * COLS) as usize;

struct Case {
    probability: f32,
    seed: (norm_data_type_t, i64),
    offset: Option<i64>,
    mask: Vec<u8>,
    /// The bits of the factor of kept elements.
    kept: Option<u32>,
}

fn cases() -> Vec<Case> {
    let text = include_str!("../data/golden_dropout.txt");
    let case = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let digits = words[4].chars().map(|digit| digit.to_digit(16).unwrap());
        let bits = digits.flat_map(|digit| (0..4).map(move |bit| (digit >> bit & 1) as u8));
        Case {
            probability: words[0].parse().unwrap(),
            seed: (if words[1] == "s32" { norm_s32 } else { norm_s64 }, words[2].parse().unwrap()),
            offset: words[3].parse().ok(),
            mask: bits.take(COUNT).collect(),
            kept: u32::from_str_radix(words[5], 16).ok(),
        }
    };
    text.lines().map(case).collect()
}

struct Run {
    engine: norm_engine_t,
    stream: norm_stream_t,
}

impl Run {
    fn desc(
        &self,
        dims: &[i64],
        data_type: norm_data_type_t,
        tag: norm_format_tag_t,
    ) -> norm_memory_desc_t {
        let (mut desc, ndims) = (null_mut(), dims.len() as i32);
        // SAFETY: the dimensions exist.
        check(unsafe {
            norm_memory_desc_create_with_tag(&raw mut desc, ndims, dims.as_ptr(), data_type, tag)
        });
        desc
    }

    /// The bytes of arguments after an execution, for each implementation.
    fn each(
        &self,
        pd: norm_primitive_desc_t,
        arguments: &[(i32, norm_memory_desc_t, Vec<u8>)],
        mut compare: impl FnMut(&[Vec<u8>]),
    ) {
        loop {
            let mut buffers: Vec<Vec<u8>> = arguments.iter().map(|a| a.2.clone()).collect();
            let mut primitive = null_mut();
            let mut given = Vec::new();
            // SAFETY: every buffer has the bytes of its descriptor.
            unsafe {
                check(norm_primitive_create(&raw mut primitive, pd));
                for ((arg, desc, _), buffer) in arguments.iter().zip(&mut buffers) {
                    let mut memory = null_mut();
                    let start = buffer.as_mut_ptr().cast();
                    check(norm_memory_create(&raw mut memory, *desc, self.engine, start));
                    given.push(norm_exec_arg_t { arg: *arg, memory });
                }
                let count = given.len() as i32;
                check(norm_primitive_execute(primitive, self.stream, count, given.as_ptr()));
                given.iter().for_each(|arg| check(norm_memory_destroy(arg.memory)));
                check(norm_primitive_destroy(primitive));
            }
            compare(&buffers);
            // SAFETY: the descriptor is alive.
            if unsafe { norm_primitive_desc_next_impl(pd) } != norm_success {
                break;
            }
        }
        // SAFETY: it is not used again.
        check(unsafe { norm_primitive_desc_destroy(pd) });
    }
}

/// Which operation runs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Operation {
    Eltwise,
    Softmax(i32),
    Binary,
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn run(run: &Run, case: &Case, operation: Operation, dst_tag: norm_format_tag_t) {
    let (dims, single) = ([ROWS, COLS], [1]);
    let src = run.desc(&dims, norm_f32, norm_ab);
    let dst = run.desc(&dims, norm_f32, dst_tag);
    let mask = run.desc(&dims, norm_u8, norm_ab);
    let of_probability = run.desc(&single, norm_f32, norm_a);
    let of_seed = run.desc(&single, case.seed.0, norm_a);
    let of_offset = run.desc(&single, norm_s64, norm_a);
    let (mut attr, mut pd) = (null_mut(), null_mut());
    // SAFETY: the descriptors are alive.
    unsafe {
        check(norm_primitive_attr_create(&raw mut attr));
        let has_offset = i32::from(case.offset.is_some());
        check(norm_primitive_attr_set_dropout_v2(attr, mask, case.seed.0, has_offset, 0));
        let (engine, kind, out) = (run.engine, norm_forward_training, &raw mut pd);
        check(match operation {
            Operation::Eltwise => norm_eltwise_forward_primitive_desc_create(
                out,
                engine,
                kind,
                norm_eltwise_linear,
                src,
                dst,
                1.0,
                0.0,
                attr,
            ),
            Operation::Softmax(axis) => norm_softmax_forward_primitive_desc_create(
                out,
                engine,
                kind,
                norm_softmax_accurate,
                src,
                dst,
                axis,
                attr,
            ),
            Operation::Binary => {
                norm_binary_primitive_desc_create(out, engine, norm_binary_mul, src, src, dst, attr)
            }
        });
        check(norm_primitive_attr_destroy(attr));
    }
    let seed = match case.seed {
        (norm_s32, seed) => (seed as i32).to_ne_bytes().to_vec(),
        (_, seed) => seed.to_ne_bytes().to_vec(),
    };
    let ones = bytes(&[1.0; COUNT]);
    let mut arguments = vec![
        (NORM_ARG_SRC, src, ones.clone()),
        (NORM_ARG_SRC_1, src, ones),
        (NORM_ARG_DST, dst, bytes(&[f32::NAN; COUNT])),
        (NORM_ARG_ATTR_DROPOUT_MASK, mask, vec![7; COUNT]),
        (NORM_ARG_ATTR_DROPOUT_PROBABILITY, of_probability, bytes(&[case.probability])),
        (NORM_ARG_ATTR_DROPOUT_SEED, of_seed, seed),
    ];
    if let Some(offset) = case.offset {
        arguments.push((NORM_ARG_ATTR_DROPOUT_OFFSET, of_offset, offset.to_ne_bytes().to_vec()));
    }
    run.each(pd, &arguments, |buffers| {
        assert_eq!(buffers[3], case.mask, "{operation:?} {dst_tag} {}", case.probability);
        for (i, stays) in case.mask.iter().enumerate() {
            let (row, col) = (i / COLS as usize, i % COLS as usize);
            let at = if dst_tag == norm_ab { i } else { col * ROWS as usize + row };
            let value = f32::from_ne_bytes(buffers[2][4 * at..4 * at + 4].try_into().unwrap());
            let plain = match operation {
                Operation::Softmax(0) => 1.0 / ROWS as f32,
                Operation::Softmax(_) => 1.0 / COLS as f32,
                _ => 1.0,
            };
            let want = case.kept.filter(|_| *stays == 1).map_or(0.0, f32::from_bits) * plain;
            assert_eq!(value.to_bits(), want.to_bits(), "{operation:?} {value} {want}");
        }
    });
    for desc in [src, dst, mask, of_probability, of_seed, of_offset] {
        // SAFETY: nothing uses it again.
        check(unsafe { norm_memory_desc_destroy(desc) });
    }
}

#[test]
fn masks_are_those_of_onednn() {
    let cases = cases();
    assert_eq!(cases.len(), 85);
    let (mut engine, mut stream) = (null_mut(), null_mut());
    // SAFETY: the handles are destroyed below.
    unsafe {
        check(norm_engine_create(&raw mut engine, norm_cpu, 0));
        check(norm_stream_create(&raw mut stream, engine, norm_stream_default_flags));
    }
    let setting = Run { engine, stream };
    for case in &cases {
        for tag in [norm_ab, norm_ba] {
            run(&setting, case, Operation::Eltwise, tag);
            run(&setting, case, Operation::Softmax(0), tag);
            run(&setting, case, Operation::Softmax(1), tag);
            run(&setting, case, Operation::Binary, tag);
        }
    }
    // SAFETY: nothing uses them again.
    unsafe {
        check(norm_stream_destroy(stream));
        check(norm_engine_destroy(engine));
    }
}
