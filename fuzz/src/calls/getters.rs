//! What objects say about themselves. Getters of one thing agree, and a copy says what the original says.

use super::World;
use crate::fill::told;
use crate::handles::{done, got, made};
use crate::source::Source;
use norm_sys as sys;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};

/// The numbers and descriptors of an object; `None` for what does not apply to it.
#[derive(Default)]
struct Told {
    numbers: Vec<Option<u64>>,
    descs: Vec<Option<sys::const_norm_memory_desc_t>>,
}

impl Told {
    fn is_same(&self, other: &Self) -> bool {
        let equal = |pair: (&Option<_>, &Option<_>)| match pair {
            (Some(a), Some(b)) => unsafe { sys::norm_memory_desc_equal(*a, *b) == 1 },
            (a, b) => a == b,
        };
        self.numbers == other.numbers
            && self.descs.len() == other.descs.len()
            && self.descs.iter().zip(&other.descs).all(equal)
    }
}

// SAFETY of the blocks in this file: handles are live, NULL where the header allows it, and results have the types that
// the header specifies.
impl World {
    pub(super) fn ask(&mut self, source: &mut Source<'_>) {
        let is_null = source.one_in(12);
        match source.below(6) {
            0 | 1 => self.ask_desc(source),
            2 => {
                let list = self.attrs.iter().map(|attr| attr.0.cast_const());
                let list: Vec<_> = list.filter(|_| !is_null).collect();
                let attr = if list.is_empty() { null() } else { source.one_of(&list) };
                ask_attributes(attr);
            }
            3 | 4 => {
                if self.problems.is_empty() || is_null {
                    return self.ask_problem(null_mut(), source);
                }
                let (problem, dynamic) = source.one_of(&self.problems);
                self.ask_problem(problem, source);
                let copy = made(|out| unsafe { sys::norm_primitive_desc_clone(out, problem) });
                let copy = copy.expect("a copy");
                assert!(name(copy) == name(problem), "a copy has another implementation");
                self.problems.push((copy, dynamic));
            }
            _ => self.ask_others(is_null),
        }
    }

    fn ask_desc(&mut self, source: &mut Source<'_>) {
        let desc = self.desc(source);
        let (what, index) = (query(source), source.one_of(&[0, 0, 0, 1, -1]));
        let answer = got::<[u64; 2]>(|out| unsafe {
            sys::norm_memory_desc_query(desc, what, out.cast::<c_void>())
        });
        let with_index = got::<[u64; 2]>(|out| unsafe {
            sys::norm_memory_desc_query_v2(desc, what, index, out.cast::<c_void>())
        });
        assert_eq!(with_index, answer.filter(|_| index == 0), "query {what}");
        assert!(answer.is_none_or(|answer| answer[1] == 0x5a5a_5a5a_5a5a_5a5a), "query {what}");
        assert!(!done(unsafe { sys::norm_memory_desc_query(desc, what, null_mut()) }));
        unsafe {
            let size = sys::norm_memory_desc_get_size(desc);
            let expected = if index == 0 { size } else { 0 };
            assert_eq!(sys::norm_memory_desc_get_size_v2(desc, index), expected);
        }
        let copy = made(|out| unsafe { sys::norm_memory_desc_clone(out, desc) });
        assert_eq!(copy.is_some(), !desc.is_null());
        if let Some(copy) = copy {
            assert_eq!(unsafe { sys::norm_memory_desc_equal(copy, desc) }, 1);
            self.descs.push(copy);
        }
    }

    fn ask_problem(&self, problem: sys::norm_primitive_desc_t, source: &mut Source<'_>) {
        let what = query(source);
        let index = source.one_of(&[0, 0, 1, 2, 3, 4, -1, sys::NORM_ARG_DST, sys::NORM_ARG_MEAN]);
        if what >= sys::norm_query_some_md {
            let desc = got::<sys::const_norm_memory_desc_t>(|out| unsafe {
                sys::norm_primitive_desc_query(problem, what, index, out.cast::<c_void>())
            });
            let lent = unsafe { sys::norm_primitive_desc_query_md(problem, what, index) };
            match desc {
                Some(desc) => assert!(desc == lent, "query {what} of {index}"),
                None => assert_eq!(told::<i32>(lent, sys::norm_query_ndims_s32), 0),
            }
        } else {
            let answer = got::<[u64; 2]>(|out| unsafe {
                sys::norm_primitive_desc_query(problem, what, index, out.cast::<c_void>())
            });
            let tail = answer.map(|answer| answer[1]);
            assert!(tail.is_none_or(|tail| tail == 0x5a5a_5a5a_5a5a_5a5a), "query {what}");
        }
        for what in [
            sys::norm_query_num_of_inputs_s32,
            sys::norm_query_num_of_outputs_s32,
            sys::norm_query_axis_s32,
        ] {
            let number = got::<i32>(|out| unsafe {
                sys::norm_primitive_desc_query(problem, what, 0, out.cast::<c_void>())
            });
            let same = unsafe { sys::norm_primitive_desc_query_s32(problem, what, 0) };
            assert_eq!(number.unwrap_or(0), same, "query {what}");
        }
        let engine = got::<sys::norm_engine_t>(|out| unsafe {
            let what = sys::norm_query_engine;
            sys::norm_primitive_desc_query(problem, what, 0, out.cast::<c_void>())
        });
        assert!(engine == (!problem.is_null()).then_some(self.engine), "another engine");
        let attr = got(|out| unsafe { sys::norm_primitive_desc_get_attr(problem, out) });
        assert_eq!(attr.is_some(), !problem.is_null());
        ask_attributes(attr.unwrap_or(null()));
    }

    /// Asks the engine and the stream.
    fn ask_others(&self, is_null: bool) {
        let engine = if is_null { null_mut() } else { self.engine };
        let stream = if is_null { null_mut() } else { self.stream };
        let kind = got::<u32>(|out| unsafe { sys::norm_engine_get_kind(engine, out) });
        assert_eq!(kind, (!is_null).then_some(sys::norm_cpu));
        let of_stream = got(|out| unsafe { sys::norm_stream_get_engine(stream, out) });
        assert!(of_stream == (!is_null).then_some(self.engine), "another engine");
        assert_eq!(done(unsafe { sys::norm_stream_wait(stream) }), !is_null);
    }

    /// Asks a primitive for the problem that it was created from.
    pub(super) fn ask_primitive(
        &self,
        primitive: sys::norm_primitive_t,
        problem: sys::norm_primitive_desc_t,
        source: &mut Source<'_>,
    ) {
        let lent = got(|out| unsafe { sys::norm_primitive_get_primitive_desc(primitive, out) });
        let lent = lent.expect("a descriptor");
        assert!(name(lent) == name(problem), "a primitive has another implementation");
        self.ask_problem(lent.cast_mut(), source);
        let none = got(|out| unsafe { sys::norm_primitive_get_primitive_desc(null(), out) });
        assert!(none.is_none());
    }
}

/// A query of a descriptor or of a problem.
fn query(source: &mut Source<'_>) -> u32 {
    match source.below(8) {
        0..=2 => source.below(34) as u32,
        3 => 128 + source.below(9) as u32,
        4 => sys::norm_query_exec_arg_md,
        _ => 256 + source.below(14) as u32,
    }
}

/// The name of a problem's implementation.
fn name(problem: sys::const_norm_primitive_desc_t) -> &'static CStr {
    let name = got::<*const c_char>(|out| unsafe {
        let what = sys::norm_query_impl_info_str;
        sys::norm_primitive_desc_query(problem, what, 0, out.cast::<c_void>())
    });
    unsafe { CStr::from_ptr(name.expect("a name")) }
}

/// Asks attributes, and a copy of them.
fn ask_attributes(attr: sys::const_norm_primitive_attr_t) {
    let known = of_attributes(attr);
    let exist = !attr.is_null();
    assert!(known.numbers.iter().all(|number| number.is_some() == exist));
    assert!(known.descs.iter().all(|desc| desc.is_some() == exist));
    let list = got(|out| unsafe { sys::norm_primitive_attr_get_post_ops(attr, out) });
    assert_eq!(list.is_some(), exist);
    let copy = made(|out| unsafe { sys::norm_primitive_attr_clone(out, attr) });
    assert_eq!(copy.is_some(), exist);
    let Some(copy) = copy else { return ask_list(null()) };
    assert!(known.is_same(&of_attributes(copy)), "a copy has other attributes");
    unsafe { sys::norm_primitive_attr_destroy(copy) };
    ask_list(list.expect("a list"));
}

fn of_attributes(attr: sys::const_norm_primitive_attr_t) -> Told {
    let number = |getter: unsafe extern "C" fn(_, *mut u32) -> u32| {
        got::<u32>(|out| unsafe { getter(attr, out) }).map(u64::from)
    };
    let rounding = |arg| {
        got::<u32>(|out| unsafe {
            sys::norm_primitive_attr_get_rounding(attr.cast_mut(), arg, out)
        })
    };
    let deterministic =
        got::<i32>(|out| unsafe { sys::norm_primitive_attr_get_deterministic(attr, out) });
    let math = got::<(u32, i32)>(|out| unsafe {
        let (mode, integers) = (&raw mut (*out).0, &raw mut (*out).1);
        sys::norm_primitive_attr_get_fpmath_mode_v2(attr, mode, integers)
    });
    let partial = got::<i64>(|out| unsafe { sys::norm_primitive_attr_get_partial_norm(attr, out) });
    let residual = got::<([sys::const_norm_memory_desc_t; 2], u32)>(|out| unsafe {
        let (first, sum) = (&raw mut (*out).0[0], &raw mut (*out).0[1]);
        sys::norm_primitive_attr_get_residual(attr, first, sum, &raw mut (*out).1)
    });
    let gate = got::<(sys::const_norm_memory_desc_t, u32, f32)>(|out| unsafe {
        let (desc, algorithm) = (&raw mut (*out).0, &raw mut (*out).1);
        sys::norm_primitive_attr_get_gate(attr, desc, algorithm, &raw mut (*out).2)
    });
    let stats = got(|out| unsafe { sys::norm_primitive_attr_get_softmax_stats(attr, out) });
    let mask = got(|out| unsafe { sys::norm_primitive_attr_get_dropout(attr, out) });
    let dropout = got::<(sys::const_norm_memory_desc_t, u32, [i32; 2])>(|out| unsafe {
        let (desc, seed) = (&raw mut (*out).0, &raw mut (*out).1);
        let (offset, host) = (&raw mut (*out).2[0], &raw mut (*out).2[1]);
        sys::norm_primitive_attr_get_dropout_v2(attr, desc, seed, offset, host)
    });
    assert!(mask == dropout.map(|dropout| dropout.0), "two masks");
    let mode = number(sys::norm_primitive_attr_get_fpmath_mode);
    assert_eq!(mode, math.map(|math| u64::from(math.0)));
    Told {
        numbers: vec![
            mode,
            math.map(|math| math.1 as u64),
            number(sys::norm_primitive_attr_get_scratchpad_mode),
            number(sys::norm_primitive_attr_get_accumulation_mode),
            deterministic.map(|value| value as u64),
            rounding(sys::NORM_ARG_DST).map(u64::from),
            rounding(sys::NORM_ARG_DIFF_SRC).map(u64::from),
            partial.map(|elements| elements as u64),
            residual.map(|residual| u64::from(residual.1)),
            gate.map(|gate| u64::from(gate.1)),
            gate.map(|gate| u64::from(gate.2.to_bits())),
            dropout.map(|dropout| u64::from(dropout.1)),
            dropout.map(|dropout| dropout.2[0] as u64),
            dropout.map(|dropout| dropout.2[1] as u64),
        ],
        descs: vec![
            residual.map(|residual| residual.0[0]),
            residual.map(|residual| residual.0[1]),
            gate.map(|gate| gate.0),
            stats,
            mask,
        ],
    }
}

/// Asks for each post-operation of a list and of a copy, and for two that are not there.
fn ask_list(list: sys::const_norm_post_ops_t) {
    let count = unsafe { sys::norm_post_ops_len(list) };
    let copy = made(|out| unsafe { sys::norm_post_ops_clone(out, list) });
    assert_eq!(copy.is_some(), !list.is_null());
    for index in -1..=count {
        let known = of_post_operation(list, index);
        let exists = (0..count).contains(&index);
        assert_eq!(known.numbers.iter().any(Option::is_some), exists, "number {index} of {count}");
        if let Some(copy) = copy {
            let copied = of_post_operation(copy, index);
            assert!(known.is_same(&copied), "a copy has another post-operation {index}");
        }
    }
    if let Some(copy) = copy {
        unsafe { sys::norm_post_ops_destroy(copy) };
    }
}

/// The parameters of a post-operation. Only the getter of its kind gives any.
fn of_post_operation(list: sys::const_norm_post_ops_t, index: i32) -> Told {
    let kind = unsafe { sys::norm_post_ops_get_kind(list, index) };
    let sum = got::<(f32, i32, u32)>(|out| unsafe {
        let (scale, point) = (&raw mut (*out).0, &raw mut (*out).1);
        sys::norm_post_ops_get_params_sum(list, index, scale, point, &raw mut (*out).2)
    });
    let eltwise = got::<(u32, [f32; 2])>(|out| unsafe {
        let (alpha, beta) = (&raw mut (*out).1[0], &raw mut (*out).1[1]);
        sys::norm_post_ops_get_params_eltwise(list, index, &raw mut (*out).0, alpha, beta)
    });
    let binary = got::<(u32, sys::const_norm_memory_desc_t)>(|out| unsafe {
        let (algorithm, src1) = (&raw mut (*out).0, &raw mut (*out).1);
        sys::norm_post_ops_get_params_binary(list, index, algorithm, src1)
    });
    let select = got::<(u32, [sys::const_norm_memory_desc_t; 2])>(|out| unsafe {
        let (src1, src2) = (&raw mut (*out).1[0], &raw mut (*out).1[1]);
        sys::norm_post_ops_get_params_binary_v2(list, index, &raw mut (*out).0, src1, src2)
    });
    let mask = got::<i32>(|out| unsafe { sys::norm_post_ops_get_params_prelu(list, index, out) });
    let depthwise = got::<([u32; 3], [i64; 3])>(|out| unsafe {
        let types: [_; 3] = std::array::from_fn(|at| &raw mut (*out).0[at]);
        let sizes: [_; 3] = std::array::from_fn(|at| &raw mut (*out).1[at]);
        sys::norm_post_ops_get_params_dw(
            list, index, types[0], types[1], types[2], sizes[0], sizes[1], sizes[2],
        )
    });
    // Results may be NULL.
    let none = done(unsafe {
        let (scale, point, data_type) = (null_mut(), null_mut(), null_mut());
        sys::norm_post_ops_get_params_sum(list, index, scale, point, data_type)
    });
    assert_eq!(none, sum.is_some());
    let kinds = [
        (sys::norm_sum, sum.is_some()),
        (sys::norm_eltwise, eltwise.is_some()),
        (sys::norm_binary, binary.is_some()),
        (sys::norm_binary, select.is_some()),
        (sys::norm_prelu, mask.is_some()),
        (sys::norm_convolution, depthwise.is_some()),
    ];
    assert!(kinds.iter().all(|(its, given)| *given == (*its == kind)), "{kind}: {kinds:?}");
    assert!(binary.map(|b| (b.0, b.1)) == select.map(|s| (s.0, s.1[0])), "two operands");
    let bits = |number: f32| u64::from(number.to_bits());
    let mut told = Told::default();
    told.numbers.extend([
        sum.map(|sum| bits(sum.0)),
        sum.map(|sum| sum.1 as u64),
        sum.map(|sum| u64::from(sum.2)),
        eltwise.map(|eltwise| u64::from(eltwise.0)),
        eltwise.map(|eltwise| bits(eltwise.1[0])),
        eltwise.map(|eltwise| bits(eltwise.1[1])),
        select.map(|select| u64::from(select.0)),
        mask.map(|mask| mask as u64),
    ]);
    told.descs.extend([select.map(|select| select.1[0]), select.map(|select| select.1[1])]);
    for at in 0..3 {
        told.numbers.push(depthwise.map(|depthwise| u64::from(depthwise.0[at])));
        told.numbers.push(depthwise.map(|depthwise| depthwise.1[at] as u64));
    }
    told
}
