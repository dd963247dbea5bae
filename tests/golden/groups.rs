//! The vectors of `tests/data/golden_groups.txt`: PyTorch's autograd in f64 of group normalization and of grouped RMS
//! normalization, for every combination of flags, on every implementation, with channels first and last. Inputs and
//! statistics are exact in f32, so the bounds only cover the library's own rounding.

use norm as _;
use norm_sys::*;
use std::collections::HashMap;
use std::ffi::CStr;
use std::ptr::{null, null_mut};

type Tensors = HashMap<String, Vec<f64>>;

/// The shared inputs, and the results for each combination of flags.
fn read() -> (Tensors, Vec<(u32, Tensors)>) {
    let mut shared = Tensors::new();
    let mut sets = Vec::new();
    for line in include_str!("../data/golden_groups.txt").lines() {
        let (name, rest) = line.split_once(' ').unwrap();
        if name == "flags" {
            let bit = |letter| match letter {
                'G' => norm_use_global_stats,
                'C' => norm_use_scale,
                'H' => norm_use_shift,
                'M' => norm_rms_norm,
                _ => 0,
            };
            sets.push((rest.chars().map(bit).sum(), Tensors::new()));
        } else if name != "#" {
            let values = rest.split(' ').map(|text| text.parse().unwrap()).collect();
            let tensors = sets.last_mut().map_or(&mut shared, |(_, tensors)| tensors);
            tensors.insert(name.to_owned(), values);
        }
    }
    (shared, sets)
}

#[track_caller]
pub(crate) fn check(status: norm_status_t) {
    // SAFETY: the message belongs to this thread and is valid until its next failure.
    let text = || unsafe { CStr::from_ptr(norm_get_last_error()) }.to_string_lossy();
    assert_eq!(status, norm_success, "{}", text());
}

/// The elements in the order of memory: channels first is the order of the file.
fn ordered(values: &[f64], dims: &[i64], last: bool) -> Vec<f32> {
    let (channels, positions) = (dims[1] as usize, dims[2] as usize);
    let mut memory = vec![0.0; values.len()];
    for (i, value) in values.iter().enumerate() {
        let (n, c, p) = (i / positions / channels, i / positions % channels, i % positions);
        let at = if last { (n * positions + p) * channels + c } else { i };
        memory[at] = *value as f32;
    }
    memory
}

/// A problem's engine, stream and descriptor.
pub(crate) struct Setting {
    pub(crate) engine: norm_engine_t,
    pub(crate) stream: norm_stream_t,
    pub(crate) desc: norm_memory_desc_t,
}

impl Setting {
    /// Executes every implementation, each on its own copy of the buffers, and calls `then` with the results.
    pub(crate) fn each(
        &self,
        pd: norm_primitive_desc_t,
        arguments: &[(i32, Vec<f32>)],
        then: impl Fn(&str, &[(i32, Vec<f32>)]),
    ) {
        loop {
            let mut buffers = arguments.to_vec();
            let mut name: *const std::ffi::c_char = null();
            let mut primitive = null_mut();
            // SAFETY: all handles are live, and buffers have the sizes of their descriptors.
            unsafe {
                let result = (&raw mut name).cast();
                check(norm_primitive_desc_query(pd, norm_query_impl_info_str, 0, result));
                check(norm_primitive_create(&raw mut primitive, pd));
                let args: Vec<norm_exec_arg_t> = buffers
                    .iter_mut()
                    .map(|(id, buffer)| {
                        let mut memory = null_mut();
                        let desc = norm_primitive_desc_query_md(pd, norm_query_exec_arg_md, *id);
                        assert_eq!(norm_memory_desc_get_size(desc), 4 * buffer.len(), "{id}");
                        let data = buffer.as_mut_ptr().cast();
                        check(norm_memory_create(&raw mut memory, desc, self.engine, data));
                        norm_exec_arg_t { arg: *id, memory }
                    })
                    .collect();
                let count = args.len() as i32;
                check(norm_primitive_execute(primitive, self.stream, count, args.as_ptr()));
                args.iter().for_each(|arg| check(norm_memory_destroy(arg.memory)));
                check(norm_primitive_destroy(primitive));
                then(&CStr::from_ptr(name).to_string_lossy(), &buffers);
                if norm_primitive_desc_next_impl(pd) != norm_success {
                    check(norm_primitive_desc_destroy(pd));
                    return;
                }
            }
        }
    }
}

/// Compares a result with the file; sums and gradients have a few roundings of terms that are at most 4.
#[track_caller]
fn close(context: &str, actual: &[f32], expected: &[f32]) {
    assert_eq!(actual.len(), expected.len(), "{context}");
    for (i, (a, e)) in actual.iter().zip(expected).enumerate() {
        let error = (f64::from(*a) - f64::from(*e)).abs();
        assert!(error <= 4e-6, "{context}: element {i} is {a:e} instead of {e:e}");
    }
}

fn run(setting: &Setting, shared: &Tensors, (flags, results): &(u32, Tensors), last: bool) {
    let sizes: Vec<i64> = shared["sizes"].iter().map(|size| *size as i64).collect();
    let dims = [sizes[0], sizes[1], sizes[3]];
    let (groups, epsilon) = (sizes[2], shared["epsilon"][0] as f32);
    let has = |flag| flags & flag != 0;
    let plain = |values: &[f64]| values.iter().map(|value| *value as f32).collect::<Vec<f32>>();
    let tensor = |name: &str| ordered(&shared[name], &dims, last);
    let elements = shared["src"].len();
    let statistic = |name: &str| {
        let given = has(norm_use_global_stats);
        let own = if given { &shared[&format!("global_{name}")] } else { &results[name] };
        plain(own)
    };
    let mut arguments = vec![(NORM_ARG_SRC, tensor("src"))];
    if has(norm_use_scale) {
        arguments.push((NORM_ARG_SCALE, plain(&shared["scale"])));
    }
    let mut backward = arguments.clone();
    if has(norm_use_shift) {
        arguments.push((NORM_ARG_SHIFT, plain(&shared["shift"])));
        backward.push((NORM_ARG_DIFF_SHIFT, vec![f32::NAN; sizes[1] as usize]));
    }
    if has(norm_use_scale) {
        backward.push((NORM_ARG_DIFF_SCALE, vec![f32::NAN; sizes[1] as usize]));
    }
    backward.push((NORM_ARG_DIFF_DST, tensor("diff_dst")));
    backward.push((NORM_ARG_DIFF_SRC, vec![f32::NAN; elements]));
    arguments.push((NORM_ARG_DST, vec![f32::NAN; elements]));
    for (id, name) in [(NORM_ARG_MEAN, "mean"), (NORM_ARG_VARIANCE, "variance")] {
        if name == "variance" || !has(norm_rms_norm) {
            let values = statistic(name);
            backward.push((id, values.clone()));
            let given = has(norm_use_global_stats);
            arguments.push((id, if given { values } else { vec![f32::NAN; values.len()] }));
        }
    }
    let compare = |name: &str, buffers: &[(i32, Vec<f32>)]| {
        for (id, what) in [
            (NORM_ARG_DST, "dst"),
            (NORM_ARG_DIFF_SRC, "diff_src"),
            (NORM_ARG_MEAN, "mean"),
            (NORM_ARG_VARIANCE, "variance"),
            (NORM_ARG_DIFF_SCALE, "diff_scale"),
            (NORM_ARG_DIFF_SHIFT, "diff_shift"),
        ] {
            let found = buffers.iter().find(|(other, _)| *other == id);
            let (Some((_, values)), Some(expected)) = (found, results.get(what)) else { continue };
            let whole = expected.len() == elements;
            let expected = if whole { ordered(expected, &dims, last) } else { plain(expected) };
            close(&format!("{what}, {name}, flags {flags:#x}, last {last}"), values, &expected);
        }
    };
    let (mut pd, desc, engine) = (null_mut(), setting.desc, setting.engine);
    // SAFETY: all handles are live.
    unsafe {
        check(norm_group_normalization_forward_primitive_desc_create(
            &raw mut pd,
            engine,
            norm_forward_training,
            desc,
            desc,
            groups,
            epsilon,
            *flags,
            null(),
        ));
    }
    setting.each(pd, &arguments, compare);
    // SAFETY: all handles are live.
    unsafe {
        check(norm_group_normalization_backward_primitive_desc_create(
            &raw mut pd,
            engine,
            norm_backward,
            desc,
            desc,
            desc,
            groups,
            epsilon,
            *flags,
            null(),
            null(),
        ));
    }
    setting.each(pd, &backward, compare);
}

#[test]
fn groups_match_pytorch() {
    let (shared, sets) = read();
    assert_eq!(sets.len(), 16);
    let dims = [shared["sizes"][0], shared["sizes"][1], shared["sizes"][3]].map(|size| size as i64);
    for (last, tag) in [(false, norm_abc), (true, norm_acb)] {
        let mut setting = Setting { engine: null_mut(), stream: null_mut(), desc: null_mut() };
        // SAFETY: the handles are destroyed below.
        unsafe {
            let Setting { engine, stream, desc } = &mut setting;
            check(norm_engine_create(engine, norm_cpu, 0));
            check(norm_stream_create(stream, *engine, norm_stream_default_flags));
            check(norm_memory_desc_create_with_tag(desc, 3, dims.as_ptr(), norm_f32, tag));
        }
        for set in &sets {
            run(&setting, &shared, set, last);
        }
        // SAFETY: nothing uses them any more.
        unsafe {
            check(norm_memory_desc_destroy(setting.desc));
            check(norm_stream_destroy(setting.stream));
            check(norm_engine_destroy(setting.engine));
        }
    }
}
