//! The values of `tests/data/golden_rope.txt`: transformers' frequencies for a configuration of each scaling, equal to
//! 1 ulp of f32, and heads that transformers rotates in f64 in every way that rope supports.

use norm as _;
use norm_sys::*;
use std::ptr::{null, null_mut};

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

/// A way of rotating the heads of the file. The names are those of its lines.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    pairing: norm_rope_pairing_t,
    positions: &'static str,
    /// Frequencies, as many as pairs; `None` for the tables.
    frequencies: Option<&'static str>,
    magnitude: Option<&'static str>,
    sections: &'static [i64],
    flags: u32,
}

const HALF_SPLIT: Case = Case {
    name: "half_split",
    pairing: norm_rope_half_split,
    positions: "positions",
    frequencies: Some("inverse"),
    magnitude: None,
    sections: &[],
    flags: 0,
};

const CASES: [Case; 8] = [
    HALF_SPLIT,
    Case { name: "interleaved", pairing: norm_rope_interleaved, ..HALF_SPLIT },
    Case {
        name: "half_split_of_head",
        pairing: norm_rope_half_split_of_head,
        frequencies: Some("proportional"),
        ..HALF_SPLIT
    },
    Case {
        name: "with_magnitude",
        frequencies: Some("yarn"),
        magnitude: Some("yarn_magnitude"),
        ..HALF_SPLIT
    },
    Case { name: "from_tables", positions: "near_positions", frequencies: None, ..HALF_SPLIT },
    Case { name: "sections", positions: "parts", sections: &[2, 3, 3], ..HALF_SPLIT },
    Case {
        name: "interleaved_sections",
        positions: "parts",
        sections: &[4, 2, 2],
        flags: norm_rope_interleaved_sections,
        ..HALF_SPLIT
    },
    Case { name: "normalized", flags: norm_rms_norm | norm_use_scale, ..HALF_SPLIT },
];

fn desc(dims: &[usize], data_type: norm_data_type_t) -> norm_memory_desc_t {
    let mut desc = null_mut();
    let dims: Vec<i64> = dims.iter().map(|dim| *dim as i64).collect();
    // SAFETY: there are as many dimensions as `dims` has.
    let status = unsafe {
        let (ndims, strides) = (dims.len() as i32, null());
        norm_memory_desc_create_with_strides(
            &raw mut desc,
            ndims,
            dims.as_ptr(),
            data_type,
            strides,
        )
    };
    assert_eq!(status, norm_success);
    desc
}

/// The arguments of a case, which own their data.
enum Values {
    Single(Vec<f32>),
    Double(Vec<f64>),
    Whole(Vec<i64>),
}

impl Values {
    fn single(name: &str) -> Self {
        Self::Single(line(name).iter().map(|x| *x as f32).collect())
    }

    fn address(&mut self) -> *mut std::ffi::c_void {
        match self {
            Self::Single(values) => values.as_mut_ptr().cast(),
            Self::Double(values) => values.as_mut_ptr().cast(),
            Self::Whole(values) => values.as_mut_ptr().cast(),
        }
    }
}

const TOKENS: usize = 6;
const HEADS: usize = 2;
const HEAD: usize = 16;
const TABLE_ROWS: usize = 8;

/// Rotates the heads of the file.
fn rotated(case: &Case) -> Vec<f32> {
    let scaled = case.flags & norm_use_scale != 0;
    let pairs = case.frequencies.map_or(HEAD / 2, |name| line(name).len());
    let position_dims = [TOKENS, 1, case.sections.len()];
    let position_dims = &position_dims[..if case.sections.is_empty() { 2 } else { 3 }];
    let rows = desc(&[TOKENS, HEADS, HEAD], norm_f32);
    let (at, scale) = (desc(position_dims, norm_s64), desc(&[HEAD], norm_f32));
    let (angles, table) = (desc(&[pairs], norm_f64), desc(&[TABLE_ROWS, HEAD / 2], norm_f32));
    let positions = line(case.positions).iter().map(|position| *position as i64).collect();
    let mut values = vec![
        (NORM_ARG_DST, rows, Values::Single(vec![0.0; TOKENS * HEADS * HEAD])),
        (NORM_ARG_SRC, rows, Values::single("src")),
        (NORM_ARG_POSITIONS, at, Values::Whole(positions)),
    ];
    match case.frequencies {
        Some(name) => values.push((NORM_ARG_ROPE_FREQUENCIES, angles, Values::Double(line(name)))),
        None => {
            values.push((NORM_ARG_ROPE_COS, table, Values::single("cosines")));
            values.push((NORM_ARG_ROPE_SIN, table, Values::single("sines")));
        }
    }
    if scaled {
        values.push((NORM_ARG_SCALE, scale, Values::single("scale")));
    }
    // SAFETY: every handle is made before it is used and destroyed after; buffers are as large as their descriptors.
    unsafe {
        let (mut engine, mut stream) = (null_mut(), null_mut());
        assert_eq!(norm_engine_create(&raw mut engine, norm_cpu, 0), norm_success);
        assert_eq!(norm_stream_create(&raw mut stream, engine, 1), norm_success);
        let (mut pd, mut primitive) = (null_mut(), null_mut());
        let tables = case.frequencies.is_none();
        let status = norm_rope_forward_primitive_desc_create(
            &raw mut pd,
            engine,
            norm_forward_inference,
            case.pairing,
            if tables { norm_rope_from_tables } else { norm_rope_from_frequencies },
            rows,
            rows,
            at,
            -1,
            if tables { table } else { null_mut() },
            if scaled { scale } else { null_mut() },
            2 * pairs as i64,
            case.magnitude.map_or(1.0, |name| line(name)[0] as f32),
            case.sections.len() as i32,
            case.sections.as_ptr(),
            1e-6,
            case.flags,
            null(),
        );
        assert_eq!(status, norm_success, "{}", case.name);
        assert_eq!(norm_primitive_create(&raw mut primitive, pd), norm_success);
        let mut args = Vec::new();
        for (arg, desc, values) in &mut values {
            let mut memory = null_mut();
            let status = norm_memory_create(&raw mut memory, *desc, engine, values.address());
            assert_eq!(status, norm_success);
            args.push(norm_exec_arg_t { arg: *arg, memory });
        }
        let count = args.len() as i32;
        assert_eq!(norm_primitive_execute(primitive, stream, count, args.as_ptr()), norm_success);
        args.iter().for_each(|arg| assert_eq!(norm_memory_destroy(arg.memory), norm_success));
        for desc in [rows, at, scale, angles, table] {
            assert_eq!(norm_memory_desc_destroy(desc), norm_success);
        }
        assert_eq!(norm_primitive_destroy(primitive), norm_success);
        assert_eq!(norm_primitive_desc_destroy(pd), norm_success);
        assert_eq!(norm_stream_destroy(stream), norm_success);
        assert_eq!(norm_engine_destroy(engine), norm_success);
    }
    match values.swap_remove(0).2 {
        Values::Single(dst) => dst,
        _ => unreachable!("dst is f32"),
    }
}

#[test]
fn heads_are_rotated_as_by_transformers() {
    for case in &CASES {
        let (got, want) = (rotated(case), line(case.name));
        assert_eq!(got.len(), want.len(), "{}", case.name);
        // 2 ulp of the length of the longest pair, and the roundings of a normalization.
        let longest = if case.flags & norm_rms_norm == 0 { 4.0 } else { 8.0 };
        for (at, (got, want)) in got.iter().zip(&want).enumerate() {
            let error = (f64::from(*got) - want).abs();
            let most = 2.0 * f64::from(f32::EPSILON) * longest;
            assert!(error <= most, "{} {at}: {got}, not {want}", case.name);
        }
    }
}
