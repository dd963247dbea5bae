//! Verbose lines: one for each problem that is created, with everything that defines it.

use crate::programs::VERBOSE;
use crate::toolchain::{Language, build, command, text};

/// The parts of a line up to the time, which differs from run to run.
const WANTED: &[&str] = &[
    "cpu,layer_normalization,simd:portable,forward_training,src:f32::blocked:ab dst:s8::blocked:ab variance:f32::blocked:a scale:f32::blocked:a residual:f32::blocked:ab residual_dst:f32::blocked:ab,attr-residual:f32:f32:exact,flags:CM eps:0.5,4x8",
    "cpu,group_normalization,simd:portable:channels_last,forward_inference,src:f32::blocked:ab dst:f32::blocked:ab shift:f32::blocked:a,,flags:H eps:0.25,g2mb4ic8",
    "cpu,softmax,simd:portable,forward_inference,src:f32::blocked:ab dst:f32::blocked:ab,,alg:softmax_log axis:1,4x8",
    "cpu,eltwise,simd:portable,backward_data,dst:f32::blocked:ab diff_dst:f32::blocked:ab diff_src:f32::blocked:ab,,alg:eltwise_elu_use_dst_for_bwd alpha:2 beta:0,4x8",
    "cpu,binary,simd:portable,undef,src_0:f32::blocked:ab src_1:f32::blocked:ab dst:f32::blocked:ab,,alg:binary_mul,4x8:4x8",
    "cpu,gated,simd:portable,forward_inference,src:f32::blocked:ab dst:f32::blocked:ab,,alg:eltwise_swish packing:up_first alpha:1.5 limit:7 shift:1,4x8",
    "cpu,rope,simd:portable,forward_inference,src:bf16::blocked:abc dst:bf16::blocked:abc positions:s32::blocked:ab rope_frequencies:f64::blocked:a,,pairing:half_split angles:frequencies rotary_dims:4 flags:0x20,4x1x8",
    "cpu,sdpa,simd:portable,forward_inference,queries:f32::blocked:abcd keys:f32::blocked:abcd values:f32::blocked:abcd dst:f32::blocked:abcd sinks:f32::blocked:a,,mask:top_left scale:0.5 flags:0x1000000 window:with_self:2,2x1x4x8:2x1x8x4:2x1x4x8",
    "cpu,reorder,simd:portable,undef,src:f32::blocked:ab dst:s8::blocked:ab,,,4x8",
];

#[test]
fn lines_tell_what_defines_a_problem() {
    let mut program = command(build(VERBOSE, Language::C99));
    let output = program.env("NORM_VERBOSE", "2").output().expect("the program runs");
    assert!(output.status.success(), "{}", text(&output));
    let printed = String::from_utf8(output.stdout).expect("lines are text");
    let prefix = "norm_verbose,v1,primitive,create,";
    let created = printed.lines().filter_map(|line| line.strip_prefix(prefix));
    let found: Vec<&str> =
        created.map(|line| line.rsplit_once(',').expect("a time comes last").0).collect();
    assert_eq!(found, WANTED);
}
