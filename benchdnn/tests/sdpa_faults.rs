//! Known mistakes of an attention, made by a library under test. The harness must detect each.

use benchdnn::drivers::sdpa::{self, MaskKind, Request, SdpaProblem, Window};
use benchdnn::executor::{Argument, Bound, Control, CpuIsa, Prepared, Refusal};
use benchdnn::harness::{self, Streams};
use benchdnn::library::{self, Executor};
use benchdnn::problem::{Data, Problem};
use benchdnn::tensor::Layout;
use norm_sys::{
    NORM_ARG_ATTN_MASK, NORM_ARG_DIFF_ATTN_MASK, NORM_ARG_DIFF_DST, NORM_ARG_DIFF_KEYS,
    NORM_ARG_DIFF_SINKS, NORM_ARG_DST, NORM_ARG_ENTROPY, NORM_ARG_KEYS, NORM_ARG_PAGE_TABLE,
    NORM_ARG_QUERIES, NORM_ARG_VALUES, norm_sdpa_key_lengths, norm_sdpa_sinks,
};
use std::any::Any;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Windows have one key too many.
    WideWindow,
    /// Scores are limited after the mask is added.
    CapAfterMask,
    /// The first query is at the first key instead of the last at the last.
    TopLeft,
    /// The gradient of keys is that of the first head of a group.
    FirstHead,
    /// The gradients of sinks and of the mask are those of the first sequence.
    FirstSequence,
    /// The sink is missing from the sum.
    NoSink,
    /// The entropy lacks its minus sign.
    PositiveEntropy,
    /// Keys beyond the lengths are seen.
    AllKeys,
    /// Pages are in order.
    PagesInOrder,
    /// A page that the table names again is replaced by the first of the table.
    SharedPages,
    /// Heads of queries use the heads of keys in turn.
    HeadsInTurn,
    /// The last bits of results depend on the number of queries.
    QueriesTogether,
    /// Results depend on the number of keys that there is room for.
    RoomForKeys,
    /// Packed values begin a row late.
    LateOffsets,
}

struct Sham(Fault);

impl Control for Sham {
    fn set_cpu_isa(&self, isa: CpuIsa) -> Result<bool, Refusal> {
        Ok(isa == CpuIsa::Default)
    }

    fn set_threads(&self, _: u64) -> Result<(), Refusal> {
        Ok(())
    }

    fn threads(&self) -> u64 {
        1
    }

    fn last_threads(&self) -> u64 {
        1
    }
}

impl Executor for Sham {
    fn prepare(&self, request: &dyn library::Request) -> Result<Box<dyn Prepared>, Refusal> {
        let request: &dyn Any = request;
        let request: &Request = request.downcast_ref().expect("a request of the driver");
        Ok(Box::new(Created { fault: self.0, problem: request.problem.clone() }))
    }
}

#[derive(Clone)]
struct Created {
    fault: Fault,
    problem: SdpaProblem,
}

impl Prepared for Created {
    fn implementation(&self) -> String {
        "sham".to_owned()
    }

    fn next_implementation(&mut self) -> Result<bool, Refusal> {
        Ok(false)
    }

    fn layout(&self, argument: i32) -> Option<Layout> {
        let spec = self.problem.own_tensors().into_iter().find(|spec| spec.id == argument)?;
        Some(Layout::dense(&spec.dims, spec.data_type))
    }

    fn bind<'a>(&self, arguments: &[Argument<'a>]) -> Result<Box<dyn Bound + 'a>, Refusal> {
        Ok(Box::new(Execution { created: self.clone(), arguments: arguments.to_vec() }))
    }
}

struct Execution<'a> {
    created: Created,
    arguments: Vec<Argument<'a>>,
}

/// The index of the element with these indices.
fn place(dims: &[usize], index: [usize; 4]) -> usize {
    dims.iter().zip(index).fold(0, |place, (dim, i)| place * dim + i)
}

/// A mask with which `cap(s) + mask` differs from `cap(s + mask)`.
fn limited_mask(problem: &mut SdpaProblem, data: &mut Data) {
    let [q_dims, k_dims, _] = &problem.dims;
    let dims = [q_dims[0], q_dims[1], q_dims[2], k_dims[3]];
    let (queries, keys) = (data.get(NORM_ARG_QUERIES), data.get(NORM_ARG_KEYS));
    let (scale, cap) = (problem.scale.value(q_dims[3]), f64::from(problem.soft_cap));
    let limited = |score: f64| cap * (score / cap).tanh();
    let (mask, sharing) = (data.get(NORM_ARG_ATTN_MASK), q_dims[1] / k_dims[1]);
    let mut all = Vec::new();
    for at in 0..dims.iter().product() {
        let (j, rest) = (at % dims[3], at / dims[3]);
        let (i, h, b) = (rest % dims[2], rest / dims[2] % dims[1], rest / dims[2] / dims[1]);
        let product = |d: usize| {
            queries[place(q_dims, [b, h, i, d])] * keys[place(k_dims, [b, h / sharing, d, j])]
        };
        let score = f64::from(scale) * (0..q_dims[3]).map(product).sum::<f64>();
        all.push(limited(score + mask[at]) - limited(score));
    }
    data.set(NORM_ARG_ATTN_MASK, all);
}

/// Another order of the heads of queries.
fn in_turn(problem: &SdpaProblem, data: &mut Data) {
    let [dims, k_dims, _] = &problem.dims;
    let (heads, groups, size) = (dims[1], k_dims[1], dims[2] * dims[3]);
    data.change(NORM_ARG_QUERIES, |all| {
        let heads_of = |b: usize| {
            (0..heads).map(move |h| b * heads + h % (heads / groups) * groups + h * groups / heads)
        };
        let order = (0..dims[0]).flat_map(heads_of);
        let moved = order.flat_map(|head| all[head * size..(head + 1) * size].to_vec());
        *all = moved.collect();
    });
}

/// Changes the last bits.
fn nudge(values: &mut [f64]) {
    values.iter_mut().for_each(|value| *value *= 1.0 + 1.0 / 4_194_304.0);
}

impl Execution<'_> {
    /// The problem and the data that the faulty library works on.
    fn mistaken(&self, mut data: Data) -> (SdpaProblem, Data) {
        let mut problem = self.created.problem.clone();
        match self.created.fault {
            Fault::WideWindow => {
                problem.window = match problem.window {
                    Window::None => Window::None,
                    Window::WithSelf(keys) => Window::WithSelf(keys + 1),
                    Window::BeforeSelf(keys) => Window::BeforeSelf(keys + 1),
                }
            }
            Fault::CapAfterMask => limited_mask(&mut problem, &mut data),
            Fault::TopLeft if problem.mask == MaskKind::BottomRight => {
                problem.mask = MaskKind::TopLeft;
            }
            Fault::NoSink => problem.flags = problem.flags.with(norm_sdpa_sinks, false),
            Fault::AllKeys => problem.flags = problem.flags.with(norm_sdpa_key_lengths, false),
            Fault::PagesInOrder => {
                let [_, groups, head, _] = problem.dims[1][..] else { panic!("four dimensions") };
                let page = groups * head * problem.page_size;
                let pool = data.get(NORM_ARG_KEYS).len().checked_div(page).unwrap_or(1);
                data.change(NORM_ARG_PAGE_TABLE, |table| {
                    table.iter_mut().enumerate().for_each(|(at, page)| *page = (at % pool) as f64);
                });
            }
            Fault::SharedPages => {
                data.change(NORM_ARG_PAGE_TABLE, |table| {
                    let given = table.clone();
                    for (at, page) in table.iter_mut().enumerate() {
                        if given[..at].contains(page) {
                            *page = given[0];
                        }
                    }
                });
            }
            Fault::LateOffsets => {
                let row = problem.dims[2][3];
                data.change(NORM_ARG_VALUES, |all| all.rotate_left(row));
            }
            Fault::HeadsInTurn => in_turn(&problem, &mut data),
            _ => {}
        }
        (problem, data)
    }

    /// A gradient to which only some heads contribute, given their indices among all.
    fn of_heads(
        problem: &SdpaProblem,
        mut data: Data,
        id: i32,
        contributes: impl Fn(usize) -> bool,
    ) -> Vec<f64> {
        let size = problem.dims[0][2] * problem.dims[2][3];
        data.change(NORM_ARG_DIFF_DST, |all| {
            let heads = all.chunks_mut(size).enumerate();
            heads.filter(|(head, _)| !contributes(*head)).for_each(|(_, values)| values.fill(0.0));
        });
        let expected = problem.expected(&data);
        let gradient = expected.into_iter().find(|expected| expected.id == id);
        gradient.expect("a gradient").values.to_vec()
    }
}

impl Bound for Execution<'_> {
    fn execute(&self) -> Result<(), Refusal> {
        let mut data = Data::default();
        for Argument { id, layout, buffer } in &self.arguments {
            data.set(*id, layout.data_type.decode(&buffer.elements(layout)));
        }
        let (problem, data) = self.mistaken(data);
        let heads = problem.dims[0][1];
        for expected in problem.expected(&data) {
            let argument = self.arguments.iter().find(|argument| argument.id == expected.id);
            let Some(Argument { layout, buffer, .. }) = argument else { continue };
            let mut values = expected.values.to_vec();
            match (self.created.fault, expected.id) {
                (Fault::FirstHead, id @ NORM_ARG_DIFF_KEYS) => {
                    let sharing = heads / problem.dims[1][1];
                    let is_first = |head| head % sharing == 0;
                    values = Execution::of_heads(&problem, data.clone(), id, is_first);
                }
                (Fault::FirstSequence, id @ (NORM_ARG_DIFF_SINKS | NORM_ARG_DIFF_ATTN_MASK)) => {
                    values = Execution::of_heads(&problem, data.clone(), id, |head| head < heads);
                }
                (Fault::PositiveEntropy, NORM_ARG_ENTROPY) => {
                    values.iter_mut().for_each(|value| *value = -*value);
                }
                (Fault::QueriesTogether, NORM_ARG_DST) if problem.dims[0][2] % 2 == 0 => {
                    nudge(&mut values)
                }
                (Fault::RoomForKeys, NORM_ARG_DST) if problem.dims[1][3] > 30 => nudge(&mut values),
                _ => {}
            }
            buffer.put(layout, &layout.data_type.encode(&values));
        }
        Ok(())
    }
}

/// Runs the problems with the fault. Returns the exit status and the output.
fn output(fault: Fault, command: &str) -> (u8, String) {
    let words = "--summary=no-failures".split_whitespace();
    let arguments: Vec<String> =
        words.chain(command.split_whitespace()).map(str::to_owned).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let streams = Streams { out: &mut out, err: &mut err, progress: None };
    let status = harness::run(&arguments, vec![sdpa::ROW.driver()], &Sham(fault), streams)
        .expect("a vector takes everything");
    assert_eq!(String::from_utf8_lossy(&err), "", "{command}");
    (status, String::from_utf8(out).expect("UTF-8"))
}

/// The exit status and the result lines.
fn run(fault: Fault, command: &str) -> (u8, Vec<String>) {
    let (status, text) = output(fault, command);
    let results: Vec<_> =
        text.lines().filter(|line| line.contains("__REPRO")).map(str::to_owned).collect();
    assert!(!results.is_empty(), "{command}");
    (status, results)
}

const SMALL: &str = "3x4x5x8:3x2x8x9:3x2x9x6";
const TYPES: &str = "--dt=f32,bf16,f16";

#[test]
fn without_a_fault_everything_passes() {
    let both = format!("{TYPES} --dir=FWD_D,BWD_D");
    let dims = "--mask-dims=abcd,cd,bd,c,d,ab,acd";
    let options = "--window=none,with_self:3,before_self:3 --soft-cap=0,2 --flags=,S,A,K,Q,SAKQ";
    for command in [
        format!("{TYPES} --dir=FWD_D,BWD_D --mask=none,causal_bottom_right {options} {SMALL}"),
        format!("{TYPES} --dir=FWD_D,BWD_D --mask=buffer --mdt=f32,u8 {options} {SMALL}"),
        format!("{TYPES} --flags=E,SKE --page-size=3 {SMALL}"),
        format!("{both} --mask=none,causal_bottom_right --flags=OT,O,T,OK,TQ,SAOT {SMALL}"),
        format!("{TYPES} --flags=EOT,SKEO {SMALL}"),
        "--check=grad --dir=BWD_D --mask=none,causal_bottom_right --soft-cap=0,2 \
             --flags=,S,A,K,Q 1x2x4x8:1x1x8x6:1x1x6x4"
            .to_owned(),
        format!("--check=grad --dir=BWD_D --flags=S,SKQ {SMALL}"),
        format!("--check=grad --dir=BWD_D --diff-mask=true --mask=buffer {dims} {SMALL}"),
    ] {
        let (status, results) = run(Fault::None, &command);
        for line in &results {
            assert!(line.contains(":PASSED "), "{line}");
        }
        assert_eq!(status, harness::FINE);
    }
}

#[test]
fn every_fault_fails() {
    let both = format!("{TYPES} --dir=FWD_D,BWD_D");
    let masks = "--mask=buffer,causal_bottom_right --mask-dims=cd,bd,d,bcd";
    for (fault, command) in [
        (
            Fault::WideWindow,
            format!("{both} --mask=none,causal_bottom_right --window=with_self:3,before_self:3"),
        ),
        (Fault::CapAfterMask, format!("{both} --mask=buffer --soft-cap=2,10")),
        (Fault::TopLeft, format!("{both} --mask=causal_bottom_right --window=none,with_self:4")),
        (Fault::FirstHead, format!("{TYPES} --dir=BWD_D --mask=none,causal_bottom_right")),
        (Fault::FirstHead, "--check=grad --dir=BWD_D".to_owned()),
        (Fault::FirstSequence, format!("{TYPES} --dir=BWD_D --flags=S,SKQ")),
        (Fault::FirstSequence, "--check=grad --dir=BWD_D --flags=S,SKQ".to_owned()),
        (Fault::FirstSequence, format!("--check=grad --dir=BWD_D --diff-mask=true {masks}")),
        (Fault::NoSink, format!("{both} --flags=S,SAKQ")),
        (Fault::PositiveEntropy, format!("{TYPES} --flags=E,SKE")),
        (Fault::AllKeys, format!("{both} --flags=K")),
        (Fault::PagesInOrder, format!("{TYPES} --page-size=3 --flags=,K")),
        (Fault::HeadsInTurn, both.clone()),
        (Fault::LateOffsets, format!("{both} --mask=none,causal_bottom_right --flags=OT,T")),
        (Fault::FirstHead, format!("{TYPES} --dir=BWD_D --flags=OT,O,T")),
    ] {
        let (status, results) = run(fault, &format!("{command} {SMALL}"));
        for line in &results {
            assert!(line.contains(":FAILED "), "{fault:?}: {line}");
        }
        assert_eq!(status, harness::FAILED, "{fault:?}");
    }
}

#[test]
fn excerpts_have_the_bits_of_the_whole() {
    // 3 problems, twice.
    let command = "--mode=B --mask=none,causal_top_left,causal_bottom_right --flags=,SAKQ \
                   3x4x9x8:3x2x8x9:3x2x9x6";
    // The sham does not protect itself from the caller's floating-point mode, so only other lines count.
    let differences = |fault, command: &str, start| {
        let (_, text) = output(fault, command);
        text.lines().filter(|line| line.starts_with(start)).count()
    };
    for start in ["  queries", "  more keys", "  separate keys"] {
        assert_eq!(differences(Fault::None, command, start), 0);
    }
    // 1 or 7 of 10 queries, each three times. A chunk of causal_top_left needs as many keys.
    let even = command.replace("x9x8:", "x10x8:");
    assert!(differences(Fault::QueriesTogether, &even, "  queries") >= 16);
    assert_eq!(differences(Fault::QueriesTogether, &even, "  more keys"), 0);
    assert_eq!(differences(Fault::RoomForKeys, command, "  more keys"), 6);
    assert_eq!(differences(Fault::RoomForKeys, command, "  queries"), 0);
    let paged = command.replace(" 3x4", " --page-size=3 3x4");
    assert_eq!(differences(Fault::None, &paged, "  without pages"), 0);
    assert!(differences(Fault::PagesInOrder, &paged, "  without pages") >= 3);
    // A window on the last 3 of 9 keys.
    let window = "--mode=B --mask=causal_bottom_right --window=with_self:2 --page-size=3 \
                  3x4x2x8:3x2x8x9:3x2x9x6";
    for (command, start) in [(&paged[..], "  forked"), (window, "  in a ring")] {
        assert_eq!(differences(Fault::None, command, start), 0);
        assert!(differences(Fault::SharedPages, command, start) >= 1);
    }
    let packed = command.replace("SAKQ", "OT").replace("--flags=,", "--dir=FWD_D,BWD_D --flags=");
    assert_eq!(differences(Fault::None, &packed, "  sequence"), 0);
    let even = packed.replace("x9x8:", "x10x8:");
    assert!(differences(Fault::QueriesTogether, &even, "  sequence") >= 3);
}
