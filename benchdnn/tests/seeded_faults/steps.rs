//! Faults of the steps around a normalization.

use crate::fault::Fault;
use crate::{fails, passes, passes_or_is_skipped};

const SHAPES: &str = "15x33 4x16 30x301 2x3x129";
const RESIDUALS: &str = "--residual=f32,bf16,f16:f32,bf16:none,f32:bf16:exact,f16:exact";
const SUMS: &str = "--residual=f32,bf16:f32,f32:bf16,f16";
const GATES: &str = "--gate=f32,bf16:swish:1.5,f16:logistic";

#[test]
fn steps_pass_without_a_fault() {
    passes(&format!("--dt=f32,bf16:f32,f16 --dir=FWD_D,FWD_I {RESIDUALS} --flags=,CH,M {SHAPES}"));
    passes(&format!("--dt=f32,bf16 --dir=BWD_D,BWD_DW {SUMS} --flags=CH,CM,G {SHAPES}"));
    passes(&format!(
        "--dt=f32,bf16 --dir=FWD_D,BWD_DW {GATES} --flags=O,I,CHO,CHI,CMO,CMI {SHAPES}"
    ));
    passes(&format!(
        "--dt=f32,bf16,f64 --ss_dt=f32,bf16 --dir=FWD_D,BWD_DW --flags=CP,CMHP {SHAPES}"
    ));
    passes(&format!("--dt=f32,bf16,f16 --dir=FWD_D,BWD_DW --flags=B,CHB,CMB {SHAPES}"));
    passes(&format!("--dt=f32,bf16 --dir=FWD_D,BWD_DW --partial=1,7,25% --flags=M,CM {SHAPES}"));
    let all = "--flags=CHBPO,CMPI,CHMBI,GCMO --residual=f32:bf16,bf16:f32 --gate=bf16";
    passes(&format!("--dt=f32,bf16 --dir=FWD_D,BWD_DW {all} {SHAPES}"));
    passes(&format!(
        "--dt=bf16 --dir=FWD_D,BWD_DW --partial=50% --flags=CMBO --gate=f32 --residual=f32 {SHAPES}"
    ));
}

#[test]
fn layouts_and_shared_buffers_pass_without_a_fault() {
    let steps = "--residual=f32 --residual_tag=any,abx:axb --gate=f32 --gate_tag=any,axb";
    passes(&format!("--tag=abx,axb --dir=FWD_D,BWD_DW {steps} --flags=CHO,MI 4x5x33"));
    passes("--residual=f32,bf16 --residual_tag=row,row:axb --flags=CH 4x5x33");
    passes(&format!("--inplace=false,true,residual,both,sum --residual=f32 --flags=CM {SHAPES}"));
    let random = "--mode=B --residual=f32:bf16 --gate=bf16";
    passes(&format!("{random} --dt=bf16 --dir=FWD_D,BWD_DW --flags=CHO,CMI 30x301"));
}

#[test]
fn dynamic_scales_pass_without_a_fault() {
    let scales =
        "--attr-scales=dst:dynamic_fp:f32:1x32,dst:dynamic_fp:f8_e4m3:1x32,dst:dynamic_fp:f32:1x64";
    let types = "--dt=f32:s8,bf16:f8_e4m3,f32:f8_e5m2,f32:u8 --dir=FWD_D --flags=,CH,CM";
    passes(&format!("{types} {scales} 16x128 3x5x64"));
    let mx = "--dt=f32:f8_e4m3,bf16:f8_e5m2 --flags=CH,CM --attr-scales=dst:mx:e8m0:1x32";
    passes(&format!("{mx} --mode=C --dir=FWD_I 16x128 3x5x64"));
    let points = "--attr-scales=dst:dynamic_fp:f32:1x64 --attr-zero-points=dst:per_tensor:s32:1x64";
    passes(&format!("--dt=f32:u8 --flags=CH,CM {points} --residual=,f32 16x128 3x5x64"));
}

#[test]
fn faults_of_residuals_fail() {
    let types = "--dt=f32,f16:f32,bf16:f32 --dir=FWD_D --flags=,CH,M";
    let narrow = "--residual=f32:bf16,bf16,f32:f16:exact,f32:bf16:exact";
    fails(Fault::StatisticsOfTheOtherSum, &format!("{types} {narrow} 15x33 30x301 2x3x129"));
    let command = format!("--dt=f32,bf16 --dir=BWD_D,BWD_DW {SUMS} --flags=,CH,M {SHAPES}");
    fails(Fault::SumGradientDropped, &command);
}

#[test]
fn faults_of_flags_fail() {
    let command = "--dt=f32,bf16,f16 --ss_dt=f32,bf16,f16 --dir=FWD_D,BWD_D --flags=CP,CMP";
    fails(Fault::PlusOneInBf16, &format!("{command} 15x33 30x301"));
    let command = "--dt=bf16,f16,bf16:f32 --dir=FWD_D,FWD_I --flags=CB,CMB,CHB";
    fails(Fault::RoundFirstIgnored, &format!("{command} 15x33 30x301"));
    let command = "--dt=f32,bf16 --dir=FWD_D,BWD_DW --partial=3,25% --flags=M,CM";
    fails(Fault::PartialOverAll, &format!("{command} 15x33 30x301"));
    let command = "--dt=f32,bf16 --dir=BWD_D,BWD_DW --gate=f32,bf16:swish:1.5 --flags=O,CI,CMO";
    fails(Fault::SigmoidForSilu, &format!("{command} {SHAPES}"));
}

#[test]
fn faults_of_dynamic_scales_fail() {
    let scales = "--attr-scales=dst:dynamic_fp:f32:1x64";
    let command = format!("--dt=f32:s8,bf16:f8_e4m3 --flags=CH,CM {scales} 16x128");
    fails(Fault::ScaleOfTheWrongEnd, &command);
    // Smaller than the numbers of the type.
    let limited = "--attr-scales=dst:dynamic_fp:f8_e4m3:1x64+src:common:0.0009765625";
    let command = format!("--dir=FWD_I --dt=f32:s8,f32:f8_e4m3 --flags=,CM {limited} 16x128");
    fails(Fault::ScaleVanishes, &command);
    let points = "--attr-zero-points=dst:per_tensor:s32:1x64";
    fails(Fault::ZeroPointLost, &format!("--dt=f32:u8 --flags=CH,CM {scales} {points} 16x128"));
}

#[test]
fn differences_show_wrong_gradients_of_steps() {
    let check = "--check=grad --dir=BWD_D,BWD_DW";
    passes(&format!("{check} --dt=f32,bf16 {SUMS} --flags=CH,M 15x33"));
    passes(&format!("{check} --dt=f32,bf16 {GATES} --flags=CHO,CHI,MO,MI 15x33"));
    passes(&format!("{check} --dt=f32,bf16,f16 --flags=CP,CB,CMPB --ss_dt=f32,bf16 15x33"));
    passes(&format!("{check} --dt=f32,bf16 --partial=5,25% --flags=M,CM 15x33"));
    passes(&format!("{check} --residual=f32,bf16:f32 --gate=f32 --flags=CHPBO,CHMPI 15x33"));
    fails(Fault::SumGradientDropped, &format!("{check} {SUMS} --flags=CH,M 15x33"));
    fails(Fault::SigmoidForSilu, &format!("{check} --gate=f32 --flags=O,CI,CMO 15x33"));
}

// The batches have no problem for which exact data cannot judge.

#[test]
fn the_batch_of_steps_passes_without_a_fault() {
    passes_or_is_skipped("--batch=test_lnorm_family");
}

#[test]
fn the_batch_of_dynamic_scales_passes_without_a_fault() {
    passes_or_is_skipped("--batch=test_lnorm_dynamic");
}
