//! The harness's view of a library: its settings, and prepared primitives.
//!
//! The real library is [`crate::library`], whose `Executor` adds the creation of primitive descriptors. Tests replace
//! it by a faulty one; a second library is another instance.

use crate::data_type::DataType;
use crate::tensor::{Buffer, Layout};
use std::time::Duration;

/// An instruction-set level of the library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuIsa {
    /// No cap.
    #[default]
    Default,
    /// Portable code.
    Portable,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
    /// As above, and AVX512-BF16.
    Avx512Bf16,
    /// As above, and AMX with bf16.
    Avx512Amx,
    /// Advanced SIMD of aarch64.
    Neon,
}

impl CpuIsa {
    /// Names and levels for `--cpu-isa`.
    pub const NAMES: [(&'static str, CpuIsa); 7] = [
        ("portable", CpuIsa::Portable),
        ("avx2", CpuIsa::Avx2),
        ("avx512", CpuIsa::Avx512),
        ("avx512_bf16", CpuIsa::Avx512Bf16),
        ("avx512_amx", CpuIsa::Avx512Amx),
        ("neon", CpuIsa::Neon),
        ("default", CpuIsa::Default),
    ];

    /// The levels, best first.
    pub const LEVELS: [CpuIsa; 6] = [
        CpuIsa::Avx512Amx,
        CpuIsa::Avx512Bf16,
        CpuIsa::Avx512,
        CpuIsa::Avx2,
        CpuIsa::Neon,
        CpuIsa::Portable,
    ];

    /// The name for `--cpu-isa`.
    pub fn name(self) -> &'static str {
        match self {
            CpuIsa::Default => "default",
            CpuIsa::Portable => "portable",
            CpuIsa::Avx2 => "avx2",
            CpuIsa::Avx512 => "avx512",
            CpuIsa::Avx512Bf16 => "avx512_bf16",
            CpuIsa::Avx512Amx => "avx512_amx",
            CpuIsa::Neon => "neon",
        }
    }
}

/// What a library's refusal means for the problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The problem is valid but not implemented.
    Unimplemented,
    /// The library considers the problem invalid.
    InvalidArguments,
    /// Anything else: out of memory, a defect.
    Failure,
}

/// A call that the library refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What kind of refusal.
    pub kind: RefusalKind,
    /// The call, the status and the library's own reason.
    pub message: String,
}

/// The process-wide settings of a library.
pub trait Control {
    /// Caps the instruction set of primitives prepared from now on. False if the machine lacks that level, so that a
    /// lower one would run.
    fn set_cpu_isa(&self, isa: CpuIsa) -> Result<bool, Refusal>;

    /// Sets the number of threads; 0 is the library's default.
    fn set_threads(&self, threads: u64) -> Result<(), Refusal>;

    /// How many threads an execution may use; 0 if unknown.
    fn threads(&self) -> u64;

    /// How many threads took part in the calling thread's last execution.
    fn last_threads(&self) -> u64;
}

/// A tensor of an execution: argument id and buffer.
///
/// Two arguments may share a buffer; the execution is then in place.
#[derive(Clone, Copy, Debug)]
pub struct Argument<'a> {
    /// The argument id, `NORM_ARG_*`.
    pub id: i32,
    /// The layout of the elements in the buffer.
    pub layout: &'a Layout,
    /// The buffer, large enough for the layout.
    pub buffer: &'a Buffer,
}

/// The data for `--explain`: the elements of src and of scale, row-major, with their types.
#[derive(Clone, Copy, Debug)]
pub struct Explainable<'a> {
    /// Dimensions of src; the last one is normalized.
    pub dims: &'a [usize],
    /// The type of src.
    pub data_type: DataType,
    /// src.
    pub elements: &'a [u8],
    /// scale, if there is one.
    pub scale: Option<(DataType, &'a [u8])>,
    /// Added under the root.
    pub epsilon: f32,
    /// Whether there is no mean.
    pub rms_norm: bool,
    /// Whether 1 is added to scale.
    pub plus_one: bool,
}

/// A problem with a chosen implementation.
pub trait Prepared {
    /// The implementation's name.
    fn implementation(&self) -> String;

    /// How long the library took to create the primitive descriptor; 0 if it was not measured.
    fn creation(&self) -> Duration {
        Duration::ZERO
    }

    /// Advances to the library's next implementation of the problem; false if there is none.
    fn next_implementation(&mut self) -> Result<bool, Refusal>;

    /// The layout of the argument; `None` if the problem does not use it.
    fn layout(&self, argument: i32) -> Option<Layout>;

    /// Prepares execution with these arguments, which may include unused ones.
    fn bind<'a>(&self, arguments: &[Argument<'a>]) -> Result<Box<dyn Bound + 'a>, Refusal>;
}

/// A problem ready to execute, which is timed.
pub trait Bound {
    /// Executes once.
    fn execute(&self) -> Result<(), Refusal>;

    /// How long the library took to create the primitive; 0 if it was not measured.
    fn creation(&self) -> Duration {
        Duration::ZERO
    }
}
