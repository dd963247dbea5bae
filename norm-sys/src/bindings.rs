// Made by bindgen from include/norm.h: `NORM_BLESS=1 cargo test -p norm-sys`.

pub const NORM_VERSION_MAJOR: i32 = 0;
pub const NORM_VERSION_MINOR: i32 = 1;
pub const NORM_VERSION_PATCH: i32 = 0;
pub const NORM_MAX_NDIMS: i32 = 12;
pub const NORM_ARG_SRC: i32 = 1;
pub const NORM_ARG_DST: i32 = 17;
pub const NORM_ARG_MEAN: i32 = 49;
pub const NORM_ARG_VARIANCE: i32 = 50;
pub const NORM_ARG_SCALE: i32 = 51;
pub const NORM_ARG_SHIFT: i32 = 52;
pub const NORM_ARG_WORKSPACE: i32 = 64;
pub const NORM_ARG_SCRATCHPAD: i32 = 80;
pub const NORM_ARG_DIFF_SRC: i32 = 129;
pub const NORM_ARG_DIFF_DST: i32 = 145;
pub const NORM_ARG_DIFF_SCALE: i32 = 255;
pub const NORM_ARG_DIFF_SHIFT: i32 = 256;
pub const norm_success: norm_status_t = 0;
pub const norm_out_of_memory: norm_status_t = 1;
pub const norm_invalid_arguments: norm_status_t = 2;
pub const norm_unimplemented: norm_status_t = 3;
pub const norm_last_impl_reached: norm_status_t = 4;
pub const norm_runtime_error: norm_status_t = 5;
pub const norm_not_required: norm_status_t = 6;
pub type norm_status_t = ::core::ffi::c_uint;
unsafe extern "C" {
    pub fn norm_status2str(status: norm_status_t) -> *const ::core::ffi::c_char;
}
unsafe extern "C" {
    pub fn norm_get_last_error() -> *const ::core::ffi::c_char;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct norm_version_t {
    pub major: ::core::ffi::c_int,
    pub minor: ::core::ffi::c_int,
    pub patch: ::core::ffi::c_int,
    pub hash: *const ::core::ffi::c_char,
    pub cpu_runtime: ::core::ffi::c_uint,
    pub gpu_runtime: ::core::ffi::c_uint,
}
unsafe extern "C" {
    pub fn norm_version() -> *const norm_version_t;
}
pub const norm_data_type_undef: norm_data_type_t = 0;
pub const norm_f16: norm_data_type_t = 1;
pub const norm_bf16: norm_data_type_t = 2;
pub const norm_f32: norm_data_type_t = 3;
pub const norm_s32: norm_data_type_t = 4;
pub const norm_s8: norm_data_type_t = 5;
pub const norm_u8: norm_data_type_t = 6;
pub const norm_f64: norm_data_type_t = 7;
pub type norm_data_type_t = ::core::ffi::c_uint;
unsafe extern "C" {
    pub fn norm_data_type_size(data_type: norm_data_type_t) -> usize;
}
unsafe extern "C" {
    pub fn norm_dt2str(data_type: norm_data_type_t) -> *const ::core::ffi::c_char;
}
pub type norm_dim_t = i64;
pub type norm_dims_t = [norm_dim_t; 12usize];
pub const norm_format_tag_undef: norm_format_tag_t = 0;
pub const norm_format_tag_any: norm_format_tag_t = 1;
pub const norm_a: norm_format_tag_t = 2;
pub const norm_ab: norm_format_tag_t = 3;
pub const norm_abc: norm_format_tag_t = 4;
pub const norm_abcd: norm_format_tag_t = 5;
pub const norm_abcde: norm_format_tag_t = 6;
pub const norm_abcdef: norm_format_tag_t = 7;
pub const norm_ba: norm_format_tag_t = 14;
pub const norm_acb: norm_format_tag_t = 15;
pub const norm_bac: norm_format_tag_t = 16;
pub const norm_bca: norm_format_tag_t = 17;
pub const norm_cab: norm_format_tag_t = 18;
pub const norm_cba: norm_format_tag_t = 19;
pub const norm_abdc: norm_format_tag_t = 20;
pub const norm_acbd: norm_format_tag_t = 21;
pub const norm_acdb: norm_format_tag_t = 22;
pub const norm_adbc: norm_format_tag_t = 23;
pub const norm_adcb: norm_format_tag_t = 24;
pub const norm_bacd: norm_format_tag_t = 25;
pub const norm_bcda: norm_format_tag_t = 26;
pub const norm_cdab: norm_format_tag_t = 27;
pub const norm_cdba: norm_format_tag_t = 28;
pub const norm_dcab: norm_format_tag_t = 29;
pub const norm_abced: norm_format_tag_t = 30;
pub const norm_abdec: norm_format_tag_t = 31;
pub const norm_acbde: norm_format_tag_t = 32;
pub const norm_acdeb: norm_format_tag_t = 33;
pub const norm_adecb: norm_format_tag_t = 34;
pub const norm_bacde: norm_format_tag_t = 35;
pub const norm_bcdea: norm_format_tag_t = 36;
pub const norm_cdeab: norm_format_tag_t = 37;
pub const norm_cdeba: norm_format_tag_t = 38;
pub const norm_decab: norm_format_tag_t = 39;
pub const norm_abcdfe: norm_format_tag_t = 40;
pub const norm_abdefc: norm_format_tag_t = 41;
pub const norm_abdfce: norm_format_tag_t = 42;
pub const norm_acbdef: norm_format_tag_t = 43;
pub const norm_adefcb: norm_format_tag_t = 44;
pub const norm_defcab: norm_format_tag_t = 45;
pub const norm_bcad: norm_format_tag_t = 835;
pub const norm_cabd: norm_format_tag_t = 836;
pub const norm_dabc: norm_format_tag_t = 837;
pub const norm_x: norm_format_tag_t = 2;
pub const norm_nc: norm_format_tag_t = 3;
pub const norm_cn: norm_format_tag_t = 14;
pub const norm_tn: norm_format_tag_t = 3;
pub const norm_nt: norm_format_tag_t = 14;
pub const norm_tnc: norm_format_tag_t = 4;
pub const norm_ntc: norm_format_tag_t = 16;
pub const norm_ncw: norm_format_tag_t = 4;
pub const norm_nwc: norm_format_tag_t = 15;
pub const norm_nchw: norm_format_tag_t = 5;
pub const norm_nhwc: norm_format_tag_t = 22;
pub const norm_chwn: norm_format_tag_t = 26;
pub const norm_ncdhw: norm_format_tag_t = 6;
pub const norm_ndhwc: norm_format_tag_t = 33;
pub const norm_ldnc: norm_format_tag_t = 5;
pub type norm_format_tag_t = ::core::ffi::c_uint;
unsafe extern "C" {
    pub fn norm_fmt_tag2str(tag: norm_format_tag_t) -> *const ::core::ffi::c_char;
}
pub const norm_format_kind_undef: norm_format_kind_t = 0;
pub const norm_format_kind_any: norm_format_kind_t = 1;
pub const norm_blocked: norm_format_kind_t = 2;
pub type norm_format_kind_t = ::core::ffi::c_uint;
pub const norm_any_engine: norm_engine_kind_t = 0;
pub const norm_cpu: norm_engine_kind_t = 1;
pub const norm_gpu: norm_engine_kind_t = 2;
pub type norm_engine_kind_t = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug)]
pub struct norm_engine {
    _unused: [u8; 0],
}
pub type norm_engine_t = *mut norm_engine;
unsafe extern "C" {
    pub fn norm_engine_get_count(kind: norm_engine_kind_t) -> usize;
}
unsafe extern "C" {
    pub fn norm_engine_create(
        engine: *mut norm_engine_t,
        kind: norm_engine_kind_t,
        index: usize,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_engine_get_kind(
        engine: norm_engine_t,
        kind: *mut norm_engine_kind_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_engine_destroy(engine: norm_engine_t) -> norm_status_t;
}
pub const norm_stream_in_order: norm_stream_flags_t = 1;
pub const norm_stream_out_of_order: norm_stream_flags_t = 2;
pub const norm_stream_default_flags: norm_stream_flags_t = 1;
pub type norm_stream_flags_t = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug)]
pub struct norm_stream {
    _unused: [u8; 0],
}
pub type norm_stream_t = *mut norm_stream;
pub type const_norm_stream_t = *const norm_stream;
unsafe extern "C" {
    pub fn norm_stream_create(
        stream: *mut norm_stream_t,
        engine: norm_engine_t,
        flags: ::core::ffi::c_uint,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_stream_get_engine(
        stream: const_norm_stream_t,
        engine: *mut norm_engine_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_stream_wait(stream: norm_stream_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_stream_destroy(stream: norm_stream_t) -> norm_status_t;
}
pub type norm_parallel_body_t = ::core::option::Option<
    unsafe extern "C" fn(index: ::core::ffi::c_int, body_context: *mut ::core::ffi::c_void),
>;
pub type norm_parallel_for_t = ::core::option::Option<
    unsafe extern "C" fn(
        pool: *mut ::core::ffi::c_void,
        count: ::core::ffi::c_int,
        body: norm_parallel_body_t,
        body_context: *mut ::core::ffi::c_void,
    ),
>;
unsafe extern "C" {
    pub fn norm_stream_set_parallel_for(
        stream: norm_stream_t,
        parallel_for: norm_parallel_for_t,
        pool: *mut ::core::ffi::c_void,
        num_threads: ::core::ffi::c_int,
    ) -> norm_status_t;
}
#[repr(C)]
#[derive(Debug)]
pub struct norm_memory_desc {
    _unused: [u8; 0],
}
pub type norm_memory_desc_t = *mut norm_memory_desc;
pub type const_norm_memory_desc_t = *const norm_memory_desc;
pub const norm_query_undef: norm_query_t = 0;
pub const norm_query_engine: norm_query_t = 1;
pub const norm_query_primitive_kind: norm_query_t = 2;
pub const norm_query_num_of_inputs_s32: norm_query_t = 3;
pub const norm_query_num_of_outputs_s32: norm_query_t = 4;
pub const norm_query_time_estimate_f64: norm_query_t = 5;
pub const norm_query_memory_consumption_s64: norm_query_t = 6;
pub const norm_query_scratchpad_engine: norm_query_t = 7;
pub const norm_query_impl_info_str: norm_query_t = 8;
pub const norm_query_prop_kind: norm_query_t = 11;
pub const norm_query_epsilon_f32: norm_query_t = 18;
pub const norm_query_flags: norm_query_t = 19;
pub const norm_query_some_md: norm_query_t = 128;
pub const norm_query_src_md: norm_query_t = 129;
pub const norm_query_diff_src_md: norm_query_t = 130;
pub const norm_query_weights_md: norm_query_t = 131;
pub const norm_query_diff_weights_md: norm_query_t = 132;
pub const norm_query_dst_md: norm_query_t = 133;
pub const norm_query_diff_dst_md: norm_query_t = 134;
pub const norm_query_workspace_md: norm_query_t = 135;
pub const norm_query_scratchpad_md: norm_query_t = 136;
pub const norm_query_exec_arg_md: norm_query_t = 255;
pub const norm_query_ndims_s32: norm_query_t = 256;
pub const norm_query_dims: norm_query_t = 257;
pub const norm_query_data_type: norm_query_t = 258;
pub const norm_query_submemory_offset_s64: norm_query_t = 259;
pub const norm_query_padded_dims: norm_query_t = 260;
pub const norm_query_padded_offsets: norm_query_t = 261;
pub const norm_query_format_kind: norm_query_t = 262;
pub const norm_query_inner_nblks_s32: norm_query_t = 263;
pub const norm_query_inner_blks: norm_query_t = 264;
pub const norm_query_inner_idxs: norm_query_t = 265;
pub const norm_query_strides: norm_query_t = 14;
pub type norm_query_t = ::core::ffi::c_uint;
unsafe extern "C" {
    pub fn norm_memory_desc_create_with_tag(
        memory_desc: *mut norm_memory_desc_t,
        ndims: ::core::ffi::c_int,
        dims: *const norm_dim_t,
        data_type: norm_data_type_t,
        tag: norm_format_tag_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_desc_create_with_strides(
        memory_desc: *mut norm_memory_desc_t,
        ndims: ::core::ffi::c_int,
        dims: *const norm_dim_t,
        data_type: norm_data_type_t,
        strides: *const norm_dim_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_desc_clone(
        memory_desc: *mut norm_memory_desc_t,
        existing_memory_desc: const_norm_memory_desc_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_desc_destroy(memory_desc: norm_memory_desc_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_desc_equal(
        lhs: const_norm_memory_desc_t,
        rhs: const_norm_memory_desc_t,
    ) -> ::core::ffi::c_int;
}
unsafe extern "C" {
    pub fn norm_memory_desc_get_size(memory_desc: const_norm_memory_desc_t) -> usize;
}
unsafe extern "C" {
    pub fn norm_memory_desc_query(
        memory_desc: const_norm_memory_desc_t,
        what: norm_query_t,
        result: *mut ::core::ffi::c_void,
    ) -> norm_status_t;
}
#[repr(C)]
#[derive(Debug)]
pub struct norm_memory {
    _unused: [u8; 0],
}
pub type norm_memory_t = *mut norm_memory;
pub type const_norm_memory_t = *const norm_memory;
unsafe extern "C" {
    pub fn norm_memory_create(
        memory: *mut norm_memory_t,
        memory_desc: const_norm_memory_desc_t,
        engine: norm_engine_t,
        handle: *mut ::core::ffi::c_void,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_destroy(memory: norm_memory_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_get_memory_desc(
        memory: const_norm_memory_t,
        memory_desc: *mut const_norm_memory_desc_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_get_engine(
        memory: const_norm_memory_t,
        engine: *mut norm_engine_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_get_data_handle(
        memory: const_norm_memory_t,
        handle: *mut *mut ::core::ffi::c_void,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_set_data_handle(
        memory: norm_memory_t,
        handle: *mut ::core::ffi::c_void,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_map_data(
        memory: const_norm_memory_t,
        mapped_ptr: *mut *mut ::core::ffi::c_void,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_unmap_data(
        memory: const_norm_memory_t,
        mapped_ptr: *mut ::core::ffi::c_void,
    ) -> norm_status_t;
}
pub const norm_scratchpad_mode_library: norm_scratchpad_mode_t = 0;
pub const norm_scratchpad_mode_user: norm_scratchpad_mode_t = 1;
pub type norm_scratchpad_mode_t = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug)]
pub struct norm_primitive_attr {
    _unused: [u8; 0],
}
pub type norm_primitive_attr_t = *mut norm_primitive_attr;
pub type const_norm_primitive_attr_t = *const norm_primitive_attr;
unsafe extern "C" {
    pub fn norm_primitive_attr_create(attr: *mut norm_primitive_attr_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_clone(
        attr: *mut norm_primitive_attr_t,
        existing_attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_destroy(attr: norm_primitive_attr_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_get_scratchpad_mode(
        attr: const_norm_primitive_attr_t,
        mode: *mut norm_scratchpad_mode_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_set_scratchpad_mode(
        attr: norm_primitive_attr_t,
        mode: norm_scratchpad_mode_t,
    ) -> norm_status_t;
}
pub const norm_undefined_primitive: norm_primitive_kind_t = 0;
pub const norm_layer_normalization: norm_primitive_kind_t = 20;
pub type norm_primitive_kind_t = ::core::ffi::c_uint;
pub const norm_prop_kind_undef: norm_prop_kind_t = 0;
pub const norm_forward_training: norm_prop_kind_t = 64;
pub const norm_forward_inference: norm_prop_kind_t = 96;
pub const norm_forward: norm_prop_kind_t = 64;
pub const norm_backward: norm_prop_kind_t = 128;
pub const norm_backward_data: norm_prop_kind_t = 160;
pub type norm_prop_kind_t = ::core::ffi::c_uint;
unsafe extern "C" {
    pub fn norm_prop_kind2str(prop_kind: norm_prop_kind_t) -> *const ::core::ffi::c_char;
}
#[repr(C)]
#[derive(Debug)]
pub struct norm_primitive_desc {
    _unused: [u8; 0],
}
pub type norm_primitive_desc_t = *mut norm_primitive_desc;
pub type const_norm_primitive_desc_t = *const norm_primitive_desc;
unsafe extern "C" {
    pub fn norm_primitive_desc_next_impl(primitive_desc: norm_primitive_desc_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_desc_clone(
        primitive_desc: *mut norm_primitive_desc_t,
        existing_primitive_desc: const_norm_primitive_desc_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_desc_destroy(primitive_desc: norm_primitive_desc_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_desc_get_attr(
        primitive_desc: const_norm_primitive_desc_t,
        attr: *mut const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_desc_query(
        primitive_desc: const_norm_primitive_desc_t,
        what: norm_query_t,
        index: ::core::ffi::c_int,
        result: *mut ::core::ffi::c_void,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_desc_query_md(
        primitive_desc: const_norm_primitive_desc_t,
        what: norm_query_t,
        index: ::core::ffi::c_int,
    ) -> const_norm_memory_desc_t;
}
unsafe extern "C" {
    pub fn norm_primitive_desc_query_s32(
        primitive_desc: const_norm_primitive_desc_t,
        what: norm_query_t,
        index: ::core::ffi::c_int,
    ) -> ::core::ffi::c_int;
}
#[repr(C)]
#[derive(Debug)]
pub struct norm_primitive {
    _unused: [u8; 0],
}
pub type norm_primitive_t = *mut norm_primitive;
pub type const_norm_primitive_t = *const norm_primitive;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct norm_exec_arg_t {
    pub arg: ::core::ffi::c_int,
    pub memory: norm_memory_t,
}
unsafe extern "C" {
    pub fn norm_primitive_create(
        primitive: *mut norm_primitive_t,
        primitive_desc: const_norm_primitive_desc_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_execute(
        primitive: const_norm_primitive_t,
        stream: norm_stream_t,
        nargs: ::core::ffi::c_int,
        args: *const norm_exec_arg_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_get_primitive_desc(
        primitive: const_norm_primitive_t,
        primitive_desc: *mut const_norm_primitive_desc_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_destroy(primitive: norm_primitive_t) -> norm_status_t;
}
pub const norm_normalization_flags_none: norm_normalization_flags_t = 0;
pub const norm_use_global_stats: norm_normalization_flags_t = 1;
pub const norm_use_scale: norm_normalization_flags_t = 2;
pub const norm_use_shift: norm_normalization_flags_t = 4;
pub const norm_fuse_norm_relu: norm_normalization_flags_t = 8;
pub const norm_fuse_norm_add_relu: norm_normalization_flags_t = 16;
pub const norm_rms_norm: norm_normalization_flags_t = 32;
pub type norm_normalization_flags_t = ::core::ffi::c_uint;
unsafe extern "C" {
    pub fn norm_layer_normalization_forward_primitive_desc_create(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        prop_kind: norm_prop_kind_t,
        src_desc: const_norm_memory_desc_t,
        dst_desc: const_norm_memory_desc_t,
        stat_desc: const_norm_memory_desc_t,
        epsilon: f32,
        flags: ::core::ffi::c_uint,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_layer_normalization_forward_primitive_desc_create_v2(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        prop_kind: norm_prop_kind_t,
        src_desc: const_norm_memory_desc_t,
        dst_desc: const_norm_memory_desc_t,
        stat_desc: const_norm_memory_desc_t,
        scale_shift_data_type: norm_data_type_t,
        epsilon: f32,
        flags: ::core::ffi::c_uint,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_layer_normalization_backward_primitive_desc_create(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        prop_kind: norm_prop_kind_t,
        diff_src_desc: const_norm_memory_desc_t,
        diff_dst_desc: const_norm_memory_desc_t,
        src_desc: const_norm_memory_desc_t,
        stat_desc: const_norm_memory_desc_t,
        epsilon: f32,
        flags: ::core::ffi::c_uint,
        hint_fwd_pd: const_norm_primitive_desc_t,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_layer_normalization_backward_primitive_desc_create_v2(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        prop_kind: norm_prop_kind_t,
        diff_src_desc: const_norm_memory_desc_t,
        diff_dst_desc: const_norm_memory_desc_t,
        src_desc: const_norm_memory_desc_t,
        stat_desc: const_norm_memory_desc_t,
        diff_scale_shift_data_type: norm_data_type_t,
        scale_shift_data_type: norm_data_type_t,
        epsilon: f32,
        flags: ::core::ffi::c_uint,
        hint_fwd_pd: const_norm_primitive_desc_t,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
pub const norm_cpu_isa_default: norm_cpu_isa_t = 0;
pub const norm_cpu_isa_sse41: norm_cpu_isa_t = 1;
pub const norm_cpu_isa_avx: norm_cpu_isa_t = 3;
pub const norm_cpu_isa_avx2: norm_cpu_isa_t = 7;
pub const norm_cpu_isa_avx2_vnni: norm_cpu_isa_t = 15;
pub const norm_cpu_isa_avx2_vnni_2: norm_cpu_isa_t = 31;
pub const norm_cpu_isa_avx512_core: norm_cpu_isa_t = 39;
pub const norm_cpu_isa_avx512_core_vnni: norm_cpu_isa_t = 103;
pub const norm_cpu_isa_avx512_core_bf16: norm_cpu_isa_t = 231;
pub const norm_cpu_isa_avx10_1_512: norm_cpu_isa_t = 495;
pub const norm_cpu_isa_avx512_core_fp16: norm_cpu_isa_t = 495;
pub const norm_cpu_isa_avx10_1_512_amx: norm_cpu_isa_t = 4079;
pub const norm_cpu_isa_avx512_core_amx: norm_cpu_isa_t = 4079;
pub const norm_cpu_isa_avx10_1_512_amx_fp16: norm_cpu_isa_t = 8175;
pub const norm_cpu_isa_avx512_core_amx_fp16: norm_cpu_isa_t = 8175;
pub const norm_cpu_isa_portable: norm_cpu_isa_t = 16777216;
pub const norm_cpu_isa_neon: norm_cpu_isa_t = 16777217;
pub type norm_cpu_isa_t = ::core::ffi::c_uint;
unsafe extern "C" {
    pub fn norm_set_max_cpu_isa(isa: norm_cpu_isa_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_get_effective_cpu_isa() -> norm_cpu_isa_t;
}
unsafe extern "C" {
    pub fn norm_cpu_isa2str(isa: norm_cpu_isa_t) -> *const ::core::ffi::c_char;
}
unsafe extern "C" {
    pub fn norm_set_num_threads(num_threads: ::core::ffi::c_int) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_get_num_threads() -> ::core::ffi::c_int;
}
unsafe extern "C" {
    pub fn norm_get_last_num_threads() -> ::core::ffi::c_int;
}
unsafe extern "C" {
    pub fn norm_set_verbose(level: ::core::ffi::c_int) -> norm_status_t;
}
