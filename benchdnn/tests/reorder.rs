//! The reorder driver passes a correct library and detects a faulty one.

use benchdnn::attributes::PostOp;
use benchdnn::data_type::DataType;
use benchdnn::drivers::reorder::{self, ReorderProblem, Request};
use benchdnn::execution::Role;
use benchdnn::executor::{Argument, Bound, Control, CpuIsa, Prepared, Refusal, RefusalKind};
use benchdnn::float_mode::{self, FloatMode};
use benchdnn::harness::{self, Streams};
use benchdnn::library::{self, Executor};
use benchdnn::problem::Problem;
use benchdnn::tensor::Layout;
use norm_sys::*;
use std::any::Any;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The elements are copied in memory order.
    OrderIgnored,
    /// Values are rounded towards zero.
    Truncates,
    /// Integers wrap.
    Wraps,
    /// The scale of dst multiplies instead of dividing.
    DstScaleMultiplied,
    /// The scales of dimension 1 are used for the last one.
    ScalesAlongTheLast,
    /// The zero point of src is subtracted after scaling.
    ZeroPointLate,
    /// The previous contents of dst are not added.
    SumLost,
    /// s32 is converted via f32.
    BySingle,
    /// The last element is not written.
    LastMissing,
    /// The elements of a block are in the order of the blocks.
    BlocksTurned,
    /// The padding of blocks is not written.
    FillerLeft,
    /// The caller's floating-point mode decides how results are rounded.
    FloatModeMatters,
}

struct Faulty(Fault);

impl Control for Faulty {
    fn set_cpu_isa(&self, isa: CpuIsa) -> Result<bool, Refusal> {
        Ok(matches!(isa, CpuIsa::Default | CpuIsa::Portable))
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

impl Executor for Faulty {
    fn prepare(&self, request: &dyn library::Request) -> Result<Box<dyn Prepared>, Refusal> {
        let request: &dyn Any = request;
        let request: &Request = request.downcast_ref().expect("a request of the driver");
        if request.attributes.scales.value.iter().any(|scale| !scale.groups.is_empty()) {
            let message = "a scale per group".to_owned();
            return Err(Refusal { kind: RefusalKind::Unimplemented, message });
        }
        Ok(Box::new(Sham { fault: self.0, request: request.clone() }))
    }
}

struct Sham {
    fault: Fault,
    request: Request,
}

impl Prepared for Sham {
    fn implementation(&self) -> String {
        "sham".to_owned()
    }

    fn next_implementation(&mut self) -> Result<bool, Refusal> {
        Ok(false)
    }

    fn layout(&self, _: i32) -> Option<Layout> {
        None
    }

    fn bind<'a>(&self, arguments: &[Argument<'a>]) -> Result<Box<dyn Bound + 'a>, Refusal> {
        let (fault, request) = (self.fault, self.request.clone());
        Ok(Box::new(Calculation { fault, request, arguments: arguments.to_vec() }))
    }
}

struct Calculation<'a> {
    fault: Fault,
    request: Request,
    arguments: Vec<Argument<'a>>,
}

impl Calculation<'_> {
    fn read(&self, id: i32) -> Vec<f64> {
        let argument = self.arguments.iter().find(|argument| argument.id == id);
        argument.map_or_else(Vec::new, |argument| {
            argument.layout.data_type.decode(&argument.buffer.elements(argument.layout))
        })
    }

    /// The scale or zero point for the element at `position`.
    fn quantity(&self, base: i32, argument: i32, neutral: f64, position: usize) -> f64 {
        let attributes = &self.request.attributes;
        let found = match base {
            NORM_ARG_ATTR_SCALES => attributes.scale(argument),
            _ => attributes.zero_point(argument),
        };
        let Some(quantization) = found else { return neutral };
        let dims = &self.request.src.dims;
        let mut mask = quantization.policy.mask(dims.len(), 1);
        if self.fault == Fault::ScalesAlongTheLast && mask == 2 {
            mask = 1 << (dims.len() - 1);
        }
        let mut at = 0;
        for (d, dim) in dims.iter().enumerate() {
            let index = position / dims[d + 1..].iter().product::<usize>() % dim;
            at = if mask >> d & 1 == 1 { at * dim + index } else { at };
        }
        let values = self.read(base | argument);
        values[at % values.len()]
    }
}

impl Bound for Calculation<'_> {
    fn execute(&self) -> Result<(), Refusal> {
        // Like a correct library, the computation ignores the caller's mode.
        let mode = match self.fault {
            Fault::FloatModeMatters => return self.calculate(),
            _ => FloatMode::Default,
        };
        float_mode::under(mode, || self.calculate()).0
    }
}

impl Calculation<'_> {
    fn calculate(&self) -> Result<(), Refusal> {
        let dst = self.arguments.iter().find(|argument| argument.id == NORM_ARG_DST);
        let dst = dst.expect("dst is always there");
        let (src, before) = (self.read(NORM_ARG_SRC), self.read(NORM_ARG_DST));
        let dt = dst.layout.data_type;
        let sum = self.request.attributes.post_ops.value.first().map(|post_op| match post_op {
            PostOp::Sum { scale, .. } => f64::from(*scale),
            _ => panic!("no other is passed"),
        });
        let value = |(position, &x): (usize, &f64)| {
            let of = |base, argument, neutral| self.quantity(base, argument, neutral, position);
            let src_scale = of(NORM_ARG_ATTR_SCALES, NORM_ARG_SRC, 1.0);
            let src_zero = of(NORM_ARG_ATTR_ZERO_POINTS, NORM_ARG_SRC, 0.0);
            let dst_scale = of(NORM_ARG_ATTR_SCALES, NORM_ARG_DST, 1.0);
            let dst_zero = of(NORM_ARG_ATTR_ZERO_POINTS, NORM_ARG_DST, 0.0);
            let late = self.fault == Fault::ZeroPointLate;
            let x = if late { x * src_scale - src_zero } else { (x - src_zero) * src_scale };
            let x = match sum {
                Some(scale) if self.fault != Fault::SumLost => x + scale * before[position],
                _ => x,
            };
            let multiplied = self.fault == Fault::DstScaleMultiplied;
            let x = if multiplied { x * dst_scale } else { x / dst_scale } + dst_zero;
            match self.fault {
                Fault::Truncates if dt.is_integer() => x.trunc(),
                Fault::Wraps if dt == DataType::S8 => f64::from(x.round_ties_even() as i64 as i8),
                Fault::BySingle => f64::from(x as f32),
                _ => x,
            }
        };
        let values: Vec<f64> = src.iter().enumerate().map(value).collect();
        let mut elements = dt.encode(&values);
        if self.fault == Fault::LastMissing {
            let size = dt.size();
            let last = elements.len() - size;
            elements[last..].copy_from_slice(&dst.buffer.elements(dst.layout)[last..]);
        }
        let mut turned = dst.layout.clone();
        turned.blocks.reverse();
        let layout = match self.fault {
            Fault::OrderIgnored => &Layout::dense(&dst.layout.dims, dt),
            Fault::BlocksTurned => &turned,
            _ => dst.layout,
        };
        dst.buffer.put(layout, &elements);
        if self.fault != Fault::FillerLeft {
            dst.buffer.fill_up(layout);
        }
        Ok(())
    }
}

fn run(fault: Fault, command: &str) -> (u8, Vec<String>) {
    let words = ["--summary=no-failures", "--reorder"].into_iter();
    let arguments: Vec<String> =
        words.chain(command.split_whitespace()).map(str::to_owned).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let streams = Streams { out: &mut out, err: &mut err, progress: None };
    let status = harness::run(&arguments, vec![reorder::ROW.driver()], &Faulty(fault), streams)
        .expect("a vector takes everything");
    let err = String::from_utf8_lossy(&err);
    assert!(err.is_empty() || err.ends_with(": no problem was run: 1 of 1 skipped\n"), "{err}");
    let text = String::from_utf8(out).expect("UTF-8");
    let results: Vec<_> =
        text.lines().filter(|line| line.contains("__REPRO")).map(str::to_owned).collect();
    assert!(!results.is_empty(), "{command}");
    (status, results)
}

fn passes(command: &str) {
    for line in run(Fault::None, command).1 {
        assert!(line.contains(":PASSED "), "{line}");
    }
}

fn fails(fault: Fault, command: &str) {
    passes(command);
    for line in run(fault, command).1 {
        assert!(line.contains(":FAILED "), "with {fault:?}: {line}");
    }
}

#[test]
fn without_a_fault_everything_passes() {
    for batch in ["test_reorder_smoke", "test_reorder_ci"] {
        passes(&format!("--batch={batch}"));
    }
    passes("--mode=B --sdt=f32,s8 --ddt=bf16,u8 --dtag=axb 2x16x3x4");
}

#[test]
fn faults_fail() {
    let whole = "--sdt=f32,bf16,f64 --ddt=s8,u8,s32";
    fails(
        Fault::OrderIgnored,
        "--sdt=f32,s8 --ddt=f32,bf16 --stag=abx --dtag=axb,xba 2x16x3x4 4x5x6",
    );
    fails(Fault::Truncates, &format!("{whole} 30x17 2x16x3x4"));
    fails(Fault::Wraps, "--sdt=f32,s32,u8 --ddt=s8 30x17 2x16x3x4");
    let scales = "--attr-scales=dst:common:2,src:common:2+dst:common:0.5";
    fails(Fault::DstScaleMultiplied, &format!("--sdt=f32,s8 --ddt=f32,bf16 {scales} 30x17"));
    let scales = "--attr-scales=src:per_dim_1,dst:per_dim_1";
    fails(Fault::ScalesAlongTheLast, &format!("--sdt=f32,s8 {scales} 2x16x3x4"));
    let zero = "--attr-scales=src:common:4 --attr-zero-points=src:common:3";
    fails(Fault::ZeroPointLate, &format!("--sdt=s8,u8,s32 --ddt=f32,s32 {zero} 30x17"));
    fails(Fault::SumLost, "--sdt=f32,s8 --ddt=f32,s8 --attr-post-ops=sum,sum:0.5 30x17");
    fails(Fault::BySingle, "--sdt=s32,f64 --ddt=s32,f64 30x17");
    let blocked = "--sdt=f32,s8 --ddt=f32,bf16 --dtag=ABx16b16a,ABx4b8a2b";
    fails(Fault::BlocksTurned, &format!("{blocked} 33x65"));
    fails(Fault::FillerLeft, &format!("{blocked},aBx8b 33x65 3x5x2"));
    fails(Fault::OrderIgnored, &format!("{blocked} 33x65"));
    fails(Fault::FloatModeMatters, "--mode=B --ddt=bf16 --attr-scales=dst:common:3 30x17");
    fails(Fault::LastMissing, "--sdt=f32,s8 --ddt=f32,u8 30x17");
}

/// Unsupported problems are skipped with a reason, not passed.
#[test]
fn what_is_not_built_is_skipped() {
    for option in [
        "--attr-scales=src:per_tensor:f32:2x1",
        "--oflag=s8s8_comp:1",
        "--runtime-dim-mask=3",
        "--attr-zero-points=src:common:1",
        "--ddt=u4",
        "--sdt=s8 --attr-zero-points=src:per_tensor:s4:1x16",
        "--sdt=f4_e2m1",
    ] {
        let (_, lines) = run(Fault::None, &format!("{option} 4x5"));
        assert!(lines[0].contains(":SKIPPED "), "{}", lines[0]);
        assert!(lines[0].contains(option), "{}", lines[0]);
    }
}

#[test]
fn the_tensors_of_a_problem_are_listed() {
    let problem = ReorderProblem { dims: vec![2, 3], ..ReorderProblem::default() };
    let specs = (&problem as &dyn Problem).tensors();
    let roles: Vec<_> = specs.iter().map(|spec| (spec.name, spec.role)).collect();
    assert_eq!(roles, [("src", Role::Input), ("dst", Role::Output)]);
}
