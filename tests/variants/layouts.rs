//! Layouts.

use crate::harness::*;
use norm_sys as sys;

/// Every permutation of `n` dimensions.
fn orders(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![vec![]];
    }
    let mut all = Vec::new();
    for order in orders(n - 1) {
        for at in 0..n {
            let mut longer = order.clone();
            longer.insert(at, n - 1);
            all.push(longer);
        }
    }
    all
}

fn with_layouts(problem: &Problem, orders: [&[usize]; 3], gap: i64) -> Problem {
    let mut problem = problem.clone();
    problem.src.strides = strides_of(&problem.dims, orders[0], gap);
    problem.dst.strides = strides_of(&problem.dims, orders[1], gap);
    problem.diff_src.strides = strides_of(&problem.dims, orders[2], gap);
    problem
}

/// The elements of a tensor in logical order.
fn gathered(problem: &Problem, tensor: &Tensor, bytes: &[u8]) -> Vec<u8> {
    let size = size_of_type(tensor.data_type);
    let mut offsets = vec![0];
    for (&dim, &stride) in problem.dims.iter().zip(&tensor.strides) {
        offsets = offsets.iter().flat_map(|o| (0..dim).map(move |i| o + i * stride)).collect();
    }
    offsets.iter().flat_map(|o| bytes[*o as usize * size..][..size].to_vec()).collect()
}

const TYPES: [[u32; 3]; 6] = [
    [sys::norm_f32; 3],
    [sys::norm_bf16; 3],
    [sys::norm_f16, sys::norm_f16, sys::norm_f32],
    [sys::norm_f64; 3],
    [sys::norm_s8, sys::norm_u8, sys::norm_f32],
    [sys::norm_f8_e4m3, sys::norm_s8, sys::norm_f32],
];

#[test]
fn every_order_of_the_dimensions() {
    let library = Library::new();
    let shapes: [&[i64]; 5] =
        [&[37, 50], &[3, 37, 50], &[37, 5, 33], &[2, 17, 3, 40], &[2, 3, 2, 5, 19]];
    for dims in shapes {
        let mut all = orders(dims.len());
        if all.len() > 24 {
            all = all.into_iter().step_by(11).collect();
        }
        for (i, order) in all.iter().enumerate() {
            let types = TYPES[i % TYPES.len()];
            let other = &all[(i * 7 + 1) % all.len()];
            let kind = sys::norm_forward_training;
            let problem = Problem::dense(kind, dims, types, CH);
            for (orders, gap) in [([&order[..]; 3], 0), ([&order[..], other, order], 3)] {
                let problem = with_layouts(&problem, orders, gap);
                assert_same(&problem, &run(&library, &problem));
            }
            let types = TYPES[i % 4];
            for (kind, flags) in [
                (sys::norm_backward, CH),
                (sys::norm_backward_data, 0),
                (sys::norm_backward, CH | sys::norm_rms_norm),
            ] {
                let problem = Problem::dense(kind, dims, types, flags);
                let problem = with_layouts(&problem, [order, other, order], 0);
                assert_same(&problem, &run(&library, &problem));
            }
        }
    }
}

/// Long rows that are interleaved, and more rows than a stage holds.
#[test]
fn interleaved_rows() {
    let library = Library::new();
    for (rows, cols) in [(100, 1), (1, 100), (200, 64), (33, 3000), (70, 257)] {
        for types in TYPES {
            let problem = Problem::dense(sys::norm_forward_inference, &[rows, cols], types, CH);
            let problem = with_layouts(&problem, [&[1, 0]; 3], 0);
            assert_same(&problem, &run(&library, &problem));
        }
        for types in &TYPES[..4] {
            let problem = Problem::dense(sys::norm_backward, &[rows, cols], *types, CH);
            let problem = with_layouts(&problem, [&[1, 0]; 3], 0);
            assert_same(&problem, &run(&library, &problem));
        }
    }
}

/// Strided elements; the gaps are not written.
#[test]
fn strides_without_a_tag() {
    let library = Library::new();
    for types in TYPES {
        let mut problem = Problem::dense(sys::norm_forward_training, &[5, 7, 40], types, CH);
        problem.src.strides = vec![7 * 40 * 3 + 5, 40 * 3, 3];
        problem.dst.strides = vec![2, 10, 77];
        assert_same(&problem, &run(&library, &problem));
    }
}

/// A row's bits are the same in every layout.
#[test]
fn bits_do_not_depend_on_the_layout() {
    let library = Library::new();
    let library = &library;
    for types in [TYPES[0], TYPES[1], TYPES[3]] {
        let problem = Problem::dense(sys::norm_forward_training, &[64, 64], types, CH);
        let turned = with_layouts(&problem, [&[0, 1], &[1, 0], &[0, 1]], 0);
        let [dense, turned] = [&problem, &turned].map(|problem| {
            let outputs = assert_same(problem, &run(library, problem));
            gathered(problem, &problem.dst, &outputs[0])
        });
        assert_eq!(dense, turned);
    }
}

/// Scratchpad size of a backward problem with interleaved rows.
fn scratchpad_of_interleaved(library: &Library, rows: i64, cols: i64) -> i64 {
    let problem = Problem::dense(sys::norm_backward, &[rows, cols], TYPES[0], CH);
    let problem = with_layouts(&problem, [&[1, 0]; 3], 0);
    let (status, desc) = try_create(library, &problem, std::ptr::null_mut());
    check(status);
    let mut bytes = -1i64;
    // SAFETY: a live descriptor, and room for the answer.
    unsafe {
        let query = sys::norm_query_memory_consumption_s64;
        check(sys::norm_primitive_desc_query(desc, query, 0, (&raw mut bytes).cast()));
        check(sys::norm_primitive_desc_destroy(desc));
    }
    bytes
}

/// The limit is 64 MiB or an eighth of the tensors, in addition to the column sums.
#[test]
fn staging_does_not_grow_with_the_row_blocks() {
    let library = Library::new();
    for (rows, cols) in
        [(4096, 4096), (128, 65_536), (512, 1 << 20), (4096, 1 << 18), (16, 1 << 22)]
    {
        // At most 32 blocks of whole pages: diff_scale and diff_shift in f64, their chains in f32, and a line for the
        // chains' rows. They may be shifted by up to a page, and have a header.
        const PAGE: i64 = 4096;
        let blocks = (rows / 16).min(32);
        let block = cols * 2 * (8 + 4) + 64;
        let sums = blocks * ((block + PAGE - 1) / PAGE * PAGE) + PAGE + 64;
        let tensors = 3 * rows * cols * 4;
        let one_stage = 3 * 16 * cols * 4;
        let most = sums + (64 << 20).max(tensors / 8).max(one_stage);
        let found = scratchpad_of_interleaved(&library, rows, cols);
        assert!(found <= most && found >= one_stage, "{rows}x{cols}: {found} of {most}");
    }
}

/// More row blocks than stages, and more threads than stages.
#[test]
fn blocks_share_stages() {
    let library = Library::new();
    // SAFETY: it may be called at any time.
    check(unsafe { sys::norm_set_num_threads(4) });
    let problem = Problem::dense(sys::norm_backward, &[96, 65_536], TYPES[3], CH);
    let problem = with_layouts(&problem, [&[1, 0]; 3], 0);
    assert_same(&problem, &run(&library, &problem));
}
