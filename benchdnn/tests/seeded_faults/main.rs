//! Known mistakes, made by a library under test. The harness must detect each.
//!
//! The library here computes with plain loops in f64. Without a fault it passes; with one, every
//! problem that it affects must be FAILED, for any type and shape.

mod around;
mod fault;
mod sham;
mod steps;

use benchdnn::drivers::lnorm;
use benchdnn::harness::{self, Streams};
use benchdnn::oracle::post_ops::{BinaryAlgorithm, EltwiseAlgorithm};
use fault::Fault;
use sham::Faulty;
use std::io;
use std::rc::Rc;

/// Runs a command line with the fault, and returns the exit status.
fn run_into(out: &mut dyn io::Write, fault: Fault, command: &str) -> io::Result<u8> {
    let executor = Faulty { fault, threads: Rc::default(), portable: Rc::default() };
    let words = command.split_whitespace().chain(["--summary=no-failures"]);
    let mut arguments: Vec<String> = words.map(str::to_owned).collect();
    arguments.rotate_right(1);
    let mut err = Vec::new();
    let streams = Streams { out, err: &mut err, progress: None };
    let status = harness::run(&arguments, vec![lnorm::ROW.driver()], &executor, streams);
    assert_eq!(String::from_utf8_lossy(&err), "", "{command}");
    status
}

/// Runs a command line with the fault and returns the exit status and the result lines.
fn run(fault: Fault, command: &str) -> (u8, Vec<String>) {
    let mut out = Vec::new();
    let status = run_into(&mut out, fault, command).expect("a vector takes everything");
    let text = String::from_utf8(out).expect("UTF-8");
    let results: Vec<_> =
        text.lines().filter(|line| line.contains("__REPRO")).map(str::to_owned).collect();
    assert!(!results.is_empty(), "{command}");
    (status, results)
}

fn passes(command: &str) {
    let (status, results) = run(Fault::None, command);
    for line in &results {
        assert!(line.contains(":PASSED "), "{line}");
    }
    assert_eq!(status, harness::FINE);
}

fn passes_or_is_skipped(command: &str) {
    let (_, results) = run(Fault::None, command);
    let wrong: Vec<&String> = (results.iter())
        .filter(|line| !line.contains(":PASSED ") && !line.contains(":SKIPPED "))
        .collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), results.len());
}

/// Every problem of the command line fails with the fault, and passes without.
fn fails(fault: Fault, command: &str) -> Vec<String> {
    passes(command);
    let (status, results) = run(fault, command);
    for line in &results {
        assert!(line.contains(":FAILED "), "with {fault:?}: {line}");
    }
    assert_eq!(status, harness::FAILED);
    results
}

const TYPES: &str = "--dt=f32,bf16,f16,bf16:f32";
const SHAPES: &str = "15x3 4x16 30x301 2x3x129";

#[test]
fn without_a_fault_everything_passes() {
    let flags = "--flags=,G,C,H,M,CH,GCH,CM,GM,GCHM";
    passes(&format!("--dir=FWD_D,FWD_I,BWD_D,BWD_DW {TYPES} --tag=abx,axb {flags} {SHAPES}"));
    passes(&format!("--mode=B --dir=FWD_D,BWD_DW {TYPES} --flags=CH,CM 30x301"));
}

#[test]
fn the_mean_term_in_the_rms_gradient_fails() {
    let command = format!("--dir=BWD_D,BWD_DW {TYPES} --flags=M,CM {SHAPES}");
    fails(Fault::MeanTermInRmsGradient, &command);
}

#[test]
fn a_gradient_that_misses_the_root_fails() {
    let command = format!("--dir=BWD_D,BWD_DW {TYPES} --flags=,CH,M,CM {SHAPES}");
    fails(Fault::GradientWithoutRoot, &command);
}

#[test]
fn epsilon_outside_the_root_fails() {
    let command = format!("--dir=FWD_D,FWD_I,BWD_DW {TYPES} --flags=,GCH,CM {SHAPES}");
    fails(Fault::EpsilonOutsideTheRoot, &command);
}

#[test]
fn the_sample_variance_fails() {
    let command = format!("--dir=FWD_D,FWD_I {TYPES} --flags=,CH,M {SHAPES}");
    fails(Fault::SampleVariance, &command);
}

#[test]
fn a_lost_tail_lane_fails() {
    let command = format!("--dir=FWD_D,FWD_I,BWD_D {TYPES} --flags=,CH,M {SHAPES}");
    fails(Fault::TailLaneLostInSums, &command);
    let command = format!("--dir=FWD_D,BWD_D {TYPES} --flags=,CM {SHAPES}");
    for line in fails(Fault::TailLaneNotWritten, &command) {
        assert!(line.contains("was never written"), "{line}");
    }
    for line in fails(Fault::TailLaneTooMany, &command) {
        assert!(line.contains("was written 0 bytes after its end"), "{line}");
    }
}

#[test]
fn writes_where_none_belong_fail() {
    for line in fails(Fault::InputWritten, &format!("--dir=FWD_D,BWD_DW {TYPES} {SHAPES}")) {
        assert!(line.contains("src is an input and was written"), "{line}");
    }
    let command = format!("--dir=FWD_D,BWD_DW {TYPES} --flags=M,GM {SHAPES}");
    for line in fails(Fault::MeanWritten, &command) {
        assert!(line.contains("mean is not used and was written"), "{line}");
    }
    let command = format!("--dir=BWD_D {TYPES} --flags=CH {SHAPES}");
    for line in fails(Fault::UnaskedGradient, &command) {
        assert!(line.contains("diff_scale is not used and was written"), "{line}");
    }
}

#[test]
fn bits_that_depend_on_the_surroundings_fail() {
    let faults = [
        Fault::ThreadsMatter,
        Fault::LevelMatters,
        Fault::AlignmentMatters,
        Fault::PositionMatters,
        Fault::FloatModeMatters,
        Fault::RepeatMatters,
    ];
    for fault in faults {
        fails(fault, &format!("--mode=B --dir=FWD_D,BWD_DW {TYPES} --flags=CH,M 30x301 2x4x16"));
    }
}

const WHOLE: &str = "--dt=f32:s8,s8:f32,u8:s8,s8:u8,bf16:s8,u8:bf16 --dir=FWD_I";

/// Every post-op, and every way of broadcasting an operand.
#[test]
fn attributes_pass_without_a_fault() {
    let scales = "--attr-scales=,src:common:64+dst:common:0.5,src:common:128,dst:common:0.125";
    passes(&format!("{WHOLE} {scales} --flags=,CH,G,M,GCHM {SHAPES}"));
    for algorithm in EltwiseAlgorithm::all() {
        let name = algorithm.name();
        // A logarithm or a root is defined for only half of the values.
        passes(&format!("--dt=f32,bf16,f16 --flags=C --attr-post-ops={name}:0.75:0.5 {SHAPES}"));
    }
    for algorithm in BinaryAlgorithm::all() {
        if algorithm == BinaryAlgorithm::Eq {
            continue; // Inexact values equal nothing: see the next test.
        }
        let (name, dot) = (algorithm.name(), if algorithm.is_ternary() { '.' } else { ':' });
        for mask in ["common", "per_oc", "per_tensor", "per_dim_0", "1"] {
            let chain = format!("--attr-post-ops={name}:f32{dot}{mask},{name}:s8{dot}{mask}");
            passes(&format!("--dt=f32,f16:f32 --flags=CH {chain} 15x7 2x3x129"));
        }
    }
    passes("--attr-post-ops=sum,sum:0.5:1,sum+add:f32:per_oc --inplace=false,true 15x7 2x3x129");
    passes("--attr-post-ops=sum:1:0:f16 --dt=bf16,f16 --inplace=false,true 15x7 2x3x129");
    let types = "--dt=f64,f32:f64,f64:f32,f8_e4m3:f32,f32:f8_e4m3,f32:f8_e5m2,f8_e5m2";
    passes(&format!("{types} --flags=,CH,M --dir=FWD_D {SHAPES}"));
    passes(&format!("--dt=f64 --flags=,CH,M --dir=BWD_DW {SHAPES}"));
}

#[test]
fn data_that_prove_nothing_are_mistrusted() {
    for command in [
        "--attr-post-ops=eq:f32:per_oc 15x7",
        "--attr-post-ops=clip:-3:-3+relu 15x7",
        "--dir=FWD_I --dt=f32:s8 --attr-scales=src:common:0.0001 15x7",
    ] {
        let (_, results) = run(Fault::None, command);
        assert!(results[0].contains(":MISTRUSTED "), "{command}: {}", results[0]);
    }
}

#[test]
fn faults_of_scales_fail() {
    let command = format!("{WHOLE} --attr-scales=src:common:4+dst:common:0.5 --flags=,CH {SHAPES}");
    fails(Fault::SrcScaleLost, &command);
    fails(Fault::DstScaleMultiplied, &command);
    let chain = "--attr-post-ops=linear:1:3,add:f32:per_oc,clip:-1:2";
    let scale = "--attr-scales=src:common:4 --flags=CH";
    fails(Fault::SrcScaleLast, &format!("{WHOLE} {scale} {chain} {SHAPES}"));
}

#[test]
fn faults_of_post_ops_fail() {
    let types = "--dt=f32,bf16,f32:s8,s8:f32 --flags=CH";
    let with = |chain: &str| format!("{types} --attr-post-ops={chain} 15x15 4x30 2x3x129");
    fails(Fault::PostOpsReversed, &with("linear:2:3+relu,add:f32:per_oc+mul:f32:per_tensor"));
    fails(Fault::OperandAlongRows, &with("add:f32:per_oc,mul:s8:per_oc,max:bf16:per_oc"));
    fails(Fault::ConditionTurned, &with("select:f32,select:f32.per_tensor"));
    fails(Fault::BetaLost, &with("linear:2:0.75,clip:-2:2,hardswish:0.5:0.5,pow:2:2"));
    fails(Fault::SumLost, &with("sum,sum:2,mul:f32:per_oc+sum"));
    let sums = "--dir=FWD_I --attr-post-ops=sum:0.5:1:u8,sum:2:0:u8+sum";
    fails(Fault::SumTypeIgnored, &format!("{sums} --dt=f32:s8,s8 --flags=CH 15x15 2x3x129"));
    fails(Fault::SumTypeIgnored, &format!("{sums} --dt=s8 --inplace=true 15x15 2x3x129"));
    let command = "--dt=f32,f16 --flags=CH --attr-post-ops=gelu_erf 15x15 4x30 2x3x129";
    fails(Fault::TanhForErf, command);
}

#[test]
fn faults_of_stored_types_fail() {
    // The data leaves room for a scale, but not for a post-op.
    let scaled = "--dir=FWD_I --dt=f32:s8,u8:s8 --attr-post-ops=linear:100:0 --flags=CH";
    fails(Fault::Wraps, &format!("{scaled} {SHAPES}"));
    let command = format!("--dir=FWD_I --dt=f32:s8,s8:u8 --attr-scales=src:common:8 {SHAPES}");
    fails(Fault::Truncates, &command);
    // Exact halves: an integer plus a half is one, if the value is rounded first.
    let halves = "--dir=FWD_I --dt=f32:s8 --flags=CH \
                  --attr-post-ops=round+linear:1:0.5,round+linear:0.5:0 30x301 2x3x129";
    fails(Fault::HalvesGoUp, halves);
    fails(Fault::DoubleInSingle, "--dt=f64 --dir=FWD_D,BWD_DW --flags=,CH 15x7 30x301");
}

#[test]
fn differences_show_a_wrong_gradient() {
    let command = format!("--check=grad --dir=BWD_D,BWD_DW {TYPES} --flags=M,CM {SHAPES}");
    for line in fails(Fault::MeanTermInRmsGradient, &command) {
        assert!(line.contains("gradient has ") && line.contains("--check=grad"), "{line}");
    }
    let command = format!("--check=grad --dir=BWD_D,BWD_DW {TYPES} --flags=,CH,M,CM {SHAPES}");
    fails(Fault::GradientWithoutRoot, &command);
    passes(&format!("--check=grad --dir=BWD_D,BWD_DW {TYPES} --flags=,G,CH,CM,GCHM {SHAPES}"));
    passes("--check=grad --dir=BWD_DW --dt=f64 --flags=CH,CM 15x7 30x301");
}

#[test]
fn the_faults_are_in_the_directions_they_claim() {
    // Forward problems must not detect a fault of the gradient; they would have found another fault.
    for fault in [Fault::MeanTermInRmsGradient, Fault::GradientWithoutRoot] {
        let (status, _) = run(fault, "--dir=FWD_D,FWD_I --flags=,CM 30x301");
        assert_eq!(status, harness::FINE, "{fault:?}");
    }
}

/// Counts failures, and refuses more output when there are enough of them.
#[derive(Default)]
struct Failures(usize);

impl Failures {
    const ENOUGH: usize = 100;
}

impl io::Write for Failures {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        if self.0 >= Self::ENOUGH {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0 += String::from_utf8_lossy(text).matches(":FAILED ").count();
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The continuous-integration batch must detect the fault in many of its problems; the rest is not run.
fn fails_the_batch(fault: Fault) {
    let mut failures = Failures::default();
    let result = run_into(&mut failures, fault, "--batch=test_lnorm_ci");
    let kind = result.map_err(|error| error.kind());
    assert_eq!(kind, Err(io::ErrorKind::StorageFull), "{fault:?}: {} failed", failures.0);
}

#[test]
fn the_batch_sees_the_mean_term() {
    fails_the_batch(Fault::MeanTermInRmsGradient);
}

#[test]
fn the_batch_sees_the_missing_root() {
    fails_the_batch(Fault::GradientWithoutRoot);
}

#[test]
fn the_batch_sees_epsilon_outside_the_root() {
    fails_the_batch(Fault::EpsilonOutsideTheRoot);
}

#[test]
fn the_batch_sees_the_sample_variance() {
    fails_the_batch(Fault::SampleVariance);
}

#[test]
fn the_batch_sees_a_lost_lane() {
    fails_the_batch(Fault::TailLaneLostInSums);
}
