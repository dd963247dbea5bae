//! The values of `tests/data/golden_rope.txt`: transformers' frequencies for a configuration of each scaling, equal to
//! 1 ulp of f32, and heads that transformers rotates in f64.

use norm as _;
use norm_sys::*;
use std::ptr::null_mut;

const FILE: &str = include_str!("../data/golden_rope.txt");

fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

/// The numbers of the line that begins with this word.
fn line(name: &str) -> Vec<f64> {
    let found = FILE.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    numbers(found.unwrap())
}

fn scaling(name: &str) -> norm_rope_scaling_t {
    match name {
        "none" => norm_rope_scaling_none,
        "linear" => norm_rope_scaling_linear,
        "ntk" => norm_rope_scaling_ntk,
        "dynamic_ntk" => norm_rope_scaling_dynamic_ntk,
        "yarn" => norm_rope_scaling_yarn,
        "llama3" => norm_rope_scaling_llama3,
        "longrope" => norm_rope_scaling_longrope,
        _ => panic!("{name}"),
    }
}

#[test]
fn frequencies_are_those_of_transformers() {
    let mut lines = FILE.lines();
    let (mut configurations, mut names) = (0, std::collections::HashSet::new());
    while let Some(line) = lines.next() {
        let Some(rest) = line.strip_prefix("frequencies ") else { continue };
        let (name, rest) = rest.split_once(' ').unwrap();
        let parameters = numbers(rest);
        let magnitude = numbers(lines.next().unwrap().strip_prefix("magnitude ").unwrap())[0];
        let want = numbers(lines.next().unwrap().strip_prefix("values ").unwrap());
        let (head, base, own) = (parameters[0] as i64, parameters[1], &parameters[2..]);
        let (mut got, mut found) = (vec![0.0; want.len()], 0.0);
        // SAFETY: there is room for a value per pair.
        let status = unsafe {
            norm_rope_frequencies(
                scaling(name),
                head,
                base,
                own.len() as i32,
                own.as_ptr(),
                got.as_mut_ptr(),
                &raw mut found,
            )
        };
        assert_eq!(status, norm_success, "{line}");
        let ulps = |got: f64, want: f64| {
            ((got as f32).to_bits() as i64 - (want as f32).to_bits() as i64).abs()
        };
        assert!(ulps(f64::from(found), magnitude) <= 1, "{line}: {found}, not {magnitude}");
        for (pair, (got, want)) in got.iter().zip(&want).enumerate() {
            assert!(ulps(*got, *want) <= 1, "{name}, pair {pair}: {got}, not {want}");
        }
        configurations += 1;
        names.insert(name);
    }
    assert_eq!((configurations, names.len()), (11, 7));
}

/// Rotates the heads of the file.
fn rotated(pairing: norm_rope_pairing_t, src: &[f32]) -> Vec<f32> {
    let (positions, frequencies) = (line("positions"), line("inverse"));
    let positions: Vec<i64> = positions.iter().map(|position| *position as i64).collect();
    let (tokens, head) = (positions.len(), 2 * frequencies.len());
    let heads = src.len() / tokens / head;
    let mut dst = vec![0.0f32; src.len()];
    // SAFETY: every handle is made before it is used and destroyed after; buffers are as large as their descriptors.
    unsafe {
        let (mut engine, mut stream) = (null_mut(), null_mut());
        assert_eq!(norm_engine_create(&raw mut engine, norm_cpu, 0), norm_success);
        assert_eq!(norm_stream_create(&raw mut stream, engine, 1), norm_success);
        let desc = |dims: &[i64], data_type| {
            let mut desc = null_mut();
            let (ndims, strides) = (dims.len() as i32, std::ptr::null());
            let status = norm_memory_desc_create_with_strides(
                &raw mut desc,
                ndims,
                dims.as_ptr(),
                data_type,
                strides,
            );
            assert_eq!(status, norm_success);
            desc
        };
        let rows = desc(&[tokens as i64, heads as i64, head as i64], norm_f32);
        let at = desc(&[tokens as i64, 1], norm_s64);
        let pairs = desc(&[head as i64 / 2], norm_f64);
        let (mut pd, mut primitive) = (null_mut(), null_mut());
        let status = norm_rope_forward_primitive_desc_create(
            &raw mut pd,
            engine,
            norm_forward_inference,
            pairing,
            norm_rope_from_frequencies,
            rows,
            rows,
            at,
            -1,
            std::ptr::null(),
            std::ptr::null(),
            head as i64,
            1.0,
            0,
            std::ptr::null(),
            0.0,
            0,
            std::ptr::null(),
        );
        assert_eq!(status, norm_success);
        assert_eq!(norm_primitive_create(&raw mut primitive, pd), norm_success);
        let memory = |arg, desc: norm_memory_desc_t, data: *const u8| {
            let mut memory = null_mut();
            let data = data.cast_mut().cast();
            assert_eq!(norm_memory_create(&raw mut memory, desc, engine, data), norm_success);
            norm_exec_arg_t { arg, memory }
        };
        let args = [
            memory(NORM_ARG_SRC, rows, src.as_ptr().cast()),
            memory(NORM_ARG_DST, rows, dst.as_mut_ptr().cast()),
            memory(NORM_ARG_POSITIONS, at, positions.as_ptr().cast()),
            memory(NORM_ARG_ROPE_FREQUENCIES, pairs, frequencies.as_ptr().cast()),
        ];
        assert_eq!(norm_primitive_execute(primitive, stream, 4, args.as_ptr()), norm_success);
        args.iter().for_each(|arg| assert_eq!(norm_memory_destroy(arg.memory), norm_success));
        for desc in [rows, at, pairs] {
            assert_eq!(norm_memory_desc_destroy(desc), norm_success);
        }
        assert_eq!(norm_primitive_destroy(primitive), norm_success);
        assert_eq!(norm_primitive_desc_destroy(pd), norm_success);
        assert_eq!(norm_stream_destroy(stream), norm_success);
        assert_eq!(norm_engine_destroy(engine), norm_success);
    }
    dst
}

#[test]
fn heads_are_rotated_as_by_transformers() {
    let src: Vec<f32> = line("src").iter().map(|x| *x as f32).collect();
    for (name, pairing) in
        [("half_split", norm_rope_half_split), ("interleaved", norm_rope_interleaved)]
    {
        let (got, want) = (rotated(pairing, &src), line(name));
        for (at, (got, want)) in got.iter().zip(&want).enumerate() {
            let error = (f64::from(*got) - want).abs();
            // 2 ulp of the length of the longest pair.
            assert!(error <= 2.0 * f64::from(f32::EPSILON) * 4.0, "{name} {at}: {got}, not {want}");
        }
    }
}
