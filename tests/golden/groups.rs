//! The vectors of `tests/data/golden_groups.txt`: PyTorch's autograd in f64 of group normalization and of grouped RMS
//! normalization, for every combination of flags, on every implementation, with channels first and last. Inputs and
//! statistics are exact in f32, so the bounds only cover the library's own rounding. In the cases that follow, with the
//! steps around a normalization alone and in pairs, statistics are rounded.

use norm as _;
use norm_sys::*;
use std::collections::HashMap;
use std::ffi::CStr;
use std::ptr::{null, null_mut};

type Tensors = HashMap<String, Vec<f64>>;

/// A set of flags, the words for the steps around the normalization, and the results.
struct Set {
    flags: u32,
    words: Vec<&'static str>,
    results: Tensors,
}

impl Set {
    fn new(line: &'static str) -> Self {
        let bit = |letter| match letter {
            'G' => norm_use_global_stats,
            'C' => norm_use_scale,
            'H' => norm_use_shift,
            'M' => norm_rms_norm,
            'P' => norm_scale_plus_one,
            'B' => norm_round_before_scale,
            'O' => norm_gate_output,
            'I' => norm_gate_input,
            _ => 0,
        };
        let mut words = line.split(' ');
        let flags = words.next().unwrap().chars().map(bit).sum();
        Self { flags, words: words.collect(), results: Tensors::new() }
    }

    fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    fn residual(&self) -> bool {
        self.words.contains(&"residual")
    }

    fn gate(&self) -> bool {
        self.has(norm_gate_output | norm_gate_input)
    }

    /// The attributes for tensors of a descriptor.
    fn attr(&self, desc: norm_memory_desc_t, alpha: f32) -> norm_primitive_attr_t {
        let mut attr = null_mut();
        // SAFETY: the descriptor is live.
        unsafe {
            check(norm_primitive_attr_create(&raw mut attr));
            if self.residual() {
                check(norm_primitive_attr_set_residual(attr, desc, desc, norm_residual_rounded));
            }
            if self.gate() {
                let (kind, alpha) = match self.words.contains(&"logistic") {
                    true => (norm_eltwise_logistic, 0.0),
                    false => (norm_eltwise_swish, alpha),
                };
                check(norm_primitive_attr_set_gate(attr, desc, kind, alpha));
            }
            if let Some(count) = self.words.iter().find_map(|word| word.strip_prefix("partial=")) {
                let count = count.parse().unwrap();
                check(norm_primitive_attr_set_partial_norm(attr, count));
            }
        }
        attr
    }
}

/// The shared inputs, the sets of flags, and the cases with steps around the normalization.
fn read() -> (Tensors, [Vec<Set>; 2]) {
    let mut shared = Tensors::new();
    let mut sets: [Vec<Set>; 2] = [vec![], vec![]];
    let mut current = None;
    for line in include_str!("../data/golden_groups.txt").lines() {
        let (name, rest) = line.split_once(' ').unwrap();
        let kind = ["flags", "case"].iter().position(|kind| *kind == name);
        if let Some(kind) = kind {
            sets[kind].push(Set::new(rest));
            current = Some(kind);
        } else if name != "#" {
            let values = rest.split(' ').map(|text| text.parse().unwrap()).collect();
            let own = current.and_then(|kind: usize| sets[kind].last_mut());
            own.map_or(&mut shared, |set| &mut set.results).insert(name.to_owned(), values);
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

/// The elements in memory order. The order of the file is channels first.
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

/// Compares a result with the file. Sums and gradients have a few roundings of terms that are at most 4. If statistics
/// are rounded, results are off in proportion.
#[track_caller]
fn close(context: &str, actual: &[f32], expected: &[f32], exact: bool) {
    assert_eq!(actual.len(), expected.len(), "{context}");
    for (i, (a, e)) in actual.iter().zip(expected).enumerate() {
        let error = (f64::from(*a) - f64::from(*e)).abs();
        let most = if exact { 4e-6 } else { 4e-6 * (1.0 + f64::from(e.abs())) };
        assert!(error <= most, "{context}: element {i} is {a:e} instead of {e:e}");
    }
}

type Arguments = Vec<(i32, Vec<f32>)>;

/// The arguments of forward and of backward; outputs are NaN.
fn arguments(shared: &Tensors, set: &Set, dims: &[i64], last: bool) -> [Arguments; 2] {
    let plain = |values: &[f64]| values.iter().map(|value| *value as f32).collect::<Vec<f32>>();
    let tensor = |name: &str| ordered(&shared[name], dims, last);
    let (elements, channels) = (shared["src"].len(), dims[1] as usize);
    let nothing = |count: usize| vec![f32::NAN; count];
    let mut forward = vec![(NORM_ARG_SRC, tensor("src")), (NORM_ARG_DST, nothing(elements))];
    let mut src = shared["src"].clone();
    if set.residual() {
        src.iter_mut().zip(&shared["residual"]).for_each(|(src, residual)| *src += residual);
        forward.push((NORM_ARG_RESIDUAL, tensor("residual")));
        forward.push((NORM_ARG_RESIDUAL_DST, nothing(elements)));
    }
    let mut backward = vec![
        (NORM_ARG_SRC, ordered(&src, dims, last)),
        (NORM_ARG_DIFF_DST, tensor("diff_dst")),
        (NORM_ARG_DIFF_SRC, nothing(elements)),
    ];
    if set.residual() {
        backward.push((NORM_ARG_DIFF_RESIDUAL_DST, tensor("diff_sum")));
    }
    if set.gate() {
        forward.push((NORM_ARG_GATE, tensor("gate")));
        backward.push((NORM_ARG_GATE, tensor("gate")));
        backward.push((NORM_ARG_DIFF_GATE, nothing(elements)));
    }
    if set.has(norm_use_scale) {
        forward.push((NORM_ARG_SCALE, plain(&shared["scale"])));
        backward.push((NORM_ARG_SCALE, plain(&shared["scale"])));
        backward.push((NORM_ARG_DIFF_SCALE, nothing(channels)));
    }
    if set.has(norm_use_shift) {
        forward.push((NORM_ARG_SHIFT, plain(&shared["shift"])));
        backward.push((NORM_ARG_DIFF_SHIFT, nothing(channels)));
        if set.has(norm_gate_output) {
            backward.push((NORM_ARG_SHIFT, plain(&shared["shift"])));
        }
    }
    for (id, name) in [(NORM_ARG_MEAN, "mean"), (NORM_ARG_VARIANCE, "variance")] {
        if name == "variance" || !set.has(norm_rms_norm) {
            let given = set.has(norm_use_global_stats);
            let own = if given { &shared[&format!("global_{name}")] } else { &set.results[name] };
            backward.push((id, plain(own)));
            forward.push((id, if given { plain(own) } else { nothing(own.len()) }));
        }
    }
    [forward, backward]
}

fn run(setting: &Setting, shared: &Tensors, set: &Set, last: bool) {
    let sizes: Vec<i64> = shared["sizes"].iter().map(|size| *size as i64).collect();
    let dims = [sizes[0], sizes[1], sizes[3]];
    let (groups, epsilon) = (sizes[2], shared["epsilon"][0] as f32);
    let elements = shared["src"].len();
    let plain = |values: &[f64]| values.iter().map(|value| *value as f32).collect::<Vec<f32>>();
    let steps = norm_scale_plus_one | norm_round_before_scale;
    let exact = set.words.is_empty() && !set.has(steps);
    let compare = |name: &str, buffers: &[(i32, Vec<f32>)]| {
        for (id, what) in [
            (NORM_ARG_DST, "dst"),
            (NORM_ARG_DIFF_SRC, "diff_src"),
            (NORM_ARG_MEAN, "mean"),
            (NORM_ARG_VARIANCE, "variance"),
            (NORM_ARG_DIFF_SCALE, "diff_scale"),
            (NORM_ARG_DIFF_SHIFT, "diff_shift"),
            (NORM_ARG_DIFF_GATE, "diff_gate"),
        ] {
            let found = buffers.iter().find(|(other, _)| *other == id);
            let (Some((_, values)), Some(expected)) = (found, set.results.get(what)) else {
                continue;
            };
            let whole = expected.len() == elements;
            let expected = if whole { ordered(expected, &dims, last) } else { plain(expected) };
            let (flags, words) = (set.flags, &set.words);
            let context = format!("{what}, {name}, flags {flags:#x} {words:?}, last {last}");
            close(&context, values, &expected, exact);
        }
    };
    let [forward, backward] = arguments(shared, set, &dims, last);
    let (mut pd, desc, engine) = (null_mut(), setting.desc, setting.engine);
    let attr = set.attr(desc, shared["alpha"][0] as f32);
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
            set.flags,
            attr,
        ));
    }
    setting.each(pd, &forward, compare);
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
            set.flags,
            null(),
            attr,
        ));
    }
    setting.each(pd, &backward, compare);
    // SAFETY: nothing uses it again.
    unsafe { check(norm_primitive_attr_destroy(attr)) };
}

/// Runs sets with channels first and last.
fn run_all(shared: &Tensors, sets: &[Set]) {
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
        for set in sets {
            run(&setting, shared, set, last);
        }
        // SAFETY: nothing uses them again.
        unsafe {
            check(norm_memory_desc_destroy(setting.desc));
            check(norm_stream_destroy(setting.stream));
            check(norm_engine_destroy(setting.engine));
        }
    }
}

#[test]
fn groups_match_pytorch() {
    let (shared, [sets, _]) = read();
    assert_eq!(sets.len(), 16);
    run_all(&shared, &sets);
}

#[test]
fn steps_match_pytorch() {
    let (shared, [_, cases]) = read();
    assert_eq!(cases.len(), 29);
    run_all(&shared, &cases);
}
