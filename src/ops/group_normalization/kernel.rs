//! What the kernels of both layouts share: their arguments, and the formulas for a vector.
//!
//! ```text
//! forward    xhat = (x - high)*r + low;  dst = xhat*scale + shift
//! backward   d = diff_dst*scale;  xhat = (x - mean)*r;  diff_src = d*r + shift - xhat*slope
//!   global   diff_src = d*r
//! ```

use crate::simd::{Simd, UpTo, Width};
use crate::tensor::DataType;

/// The layout of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    ChannelsFirst,
    ChannelsLast,
}

/// Channels of a sample of a tensor: the address of the first element, and the strides of channels and positions in
/// bytes.
#[derive(Clone, Copy)]
pub(super) struct Plane {
    pub(super) start: *mut u8,
    pub(super) data_type: DataType,
    pub(super) channel: usize,
    pub(super) position: usize,
}

impl Plane {
    /// The element at the first position of a channel.
    #[inline(always)]
    pub(super) fn at_channel(&self, channel: usize) -> *mut u8 {
        self.start.wrapping_add(channel * self.channel)
    }

    /// The element of the first channel at a position.
    #[inline(always)]
    pub(super) fn at_position(&self, position: usize) -> *mut u8 {
        self.start.wrapping_add(position * self.position)
    }
}

/// The arguments of a kernel for a run of a sample's channels. Per-channel pointers are those of the first channel.
pub(super) struct Job {
    pub(super) channels: usize,
    pub(super) positions: usize,
    pub(super) src: Plane,
    /// dst, or diff_dst.
    pub(super) dst: Plane,
    pub(super) diff_src: Plane,
    /// Forward: the number that is subtracted before squaring.
    pub(super) about: *const f32,
    pub(super) high: *const f32,
    pub(super) r: *const f32,
    pub(super) low: *const f32,
    pub(super) slope: *const f32,
    pub(super) scale: *const f32,
    pub(super) shift: *const f32,
    /// Outputs of sums.
    pub(super) first: *mut f64,
    pub(super) second: *mut f64,
    pub(super) probes: *mut f32,
    /// Whether the statistics are given and therefore constants in the gradient.
    pub(super) global: bool,
}

/// The scalars for a vector of elements.
#[derive(Clone, Copy)]
pub(super) struct Forward<S: Simd> {
    high: S::F32x16,
    r: S::F32x16,
    low: S::F32x16,
    scale: S::F32x16,
    shift: S::F32x16,
}

/// The scalar of a channel, in all lanes.
///
/// # Safety
/// It exists, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn number<S: Simd>(p: *const f32, channel: usize) -> S::F32x16 {
    // SAFETY: guaranteed by the caller.
    unsafe { S::splat(p.add(channel).read_unaligned()) }
}

/// The scalars of `n` channels, 16 for a full vector.
///
/// # Safety
/// They exist, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn numbers<S: Simd>(p: *const f32, n: usize) -> S::F32x16 {
    // SAFETY: guaranteed by the caller.
    unsafe { UpTo(n).load::<S>(p) }
}

// SAFETY of the blocks below: guaranteed by the callers: the channels exist, and the CPU supports the instruction set.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd> Forward<S> {
    /// # Safety
    /// The channel exists, and the CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn of_channel(job: &Job, channel: usize) -> Self {
        unsafe {
            Self {
                high: number::<S>(job.high, channel),
                r: number::<S>(job.r, channel),
                low: number::<S>(job.low, channel),
                scale: number::<S>(job.scale, channel),
                shift: number::<S>(job.shift, channel),
            }
        }
    }

    /// # Safety
    /// Channels `channel` to `channel + n - 1` exist, and the CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn of_channels(job: &Job, channel: usize, n: usize) -> Self {
        unsafe {
            Self {
                high: numbers::<S>(job.high.add(channel), n),
                r: numbers::<S>(job.r.add(channel), n),
                low: numbers::<S>(job.low.add(channel), n),
                scale: numbers::<S>(job.scale.add(channel), n),
                shift: numbers::<S>(job.shift.add(channel), n),
            }
        }
    }

    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn apply(&self, x: S::F32x16) -> S::F32x16 {
        unsafe {
            let xhat = S::fma(S::sub(x, self.high), self.r, self.low);
            S::fma(xhat, self.scale, self.shift)
        }
    }
}

/// The scalars for a vector of gradients.
#[derive(Clone, Copy)]
pub(super) struct Backward<S: Simd> {
    mean: S::F32x16,
    r: S::F32x16,
    scale: S::F32x16,
    shift: S::F32x16,
    slope: S::F32x16,
}

// SAFETY of the blocks below: as above.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<S: Simd> Backward<S> {
    /// # Safety
    /// The channel exists, and the CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn of_channel(job: &Job, channel: usize) -> Self {
        unsafe {
            Self {
                mean: number::<S>(job.high, channel),
                r: number::<S>(job.r, channel),
                scale: number::<S>(job.scale, channel),
                shift: number::<S>(job.low, channel),
                slope: number::<S>(job.slope, channel),
            }
        }
    }

    /// # Safety
    /// Channels `channel` to `channel + n - 1` exist, and the CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn of_channels(job: &Job, channel: usize, n: usize) -> Self {
        unsafe {
            Self {
                mean: numbers::<S>(job.high.add(channel), n),
                r: numbers::<S>(job.r.add(channel), n),
                scale: numbers::<S>(job.scale.add(channel), n),
                shift: numbers::<S>(job.low.add(channel), n),
                slope: numbers::<S>(job.slope.add(channel), n),
            }
        }
    }

    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn xhat(&self, x: S::F32x16) -> S::F32x16 {
        unsafe { S::mul(S::sub(x, self.mean), self.r) }
    }

    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn apply(&self, x: S::F32x16, dd: S::F32x16) -> S::F32x16 {
        unsafe {
            let d = S::mul(dd, self.scale);
            S::fnma(self.xhat(x), self.slope, S::fma(d, self.r, self.shift))
        }
    }

    /// diff_src with given statistics.
    ///
    /// # Safety
    /// The CPU supports the instruction set of `S`.
    #[inline(always)]
    pub(super) unsafe fn apply_globally(&self, dd: S::F32x16) -> S::F32x16 {
        unsafe { S::mul(S::mul(dd, self.scale), self.r) }
    }
}

/// A kernel.
pub(super) type Entry = unsafe fn(&Job);

/// The kernels of a problem at a level.
pub(super) struct Kernels {
    pub(super) probe: Entry,
    pub(super) moments: Entry,
    pub(super) normalize: Entry,
    pub(super) products: Entry,
    pub(super) gradient: Entry,
}

/// Defines the entries of a layout's kernels, `probe`, `moments`, `normalize`, `products` and `gradient`, and the
/// function `kernels` that chooses among them. Common types have their own entries; the others, and the portable level,
/// look types up at run time.
macro_rules! kernels {
    () => {
        entry_points! {
            /// The probes, per level.
            mod probe_entries: probe<E: Element>(job: &Job) -> ();
        }
        entry_points! {
            /// The sums of values and squares, per level.
            mod moments_entries: moments<E: Element>(job: &Job) -> ();
        }
        entry_points! {
            /// Forward, per level.
            mod normalize_entries: normalize<Src: Element, Dst: Element>(job: &Job) -> ();
        }
        entry_points! {
            /// The sums of backward, per level.
            mod products_entries: products<Src: Element, Dd: Element>(job: &Job) -> ();
        }
        entry_points! {
            /// Backward, per level.
            mod gradient_entries: gradient<Src: Element, Dd: Element, Ds: Element>(job: &Job) -> ();
        }

        fn moments_entry(level: Level, src: DataType) -> Entry {
            let own: Option<Entry> = match src {
                DataType::F32 => moments_entries::at::<F32>(level),
                DataType::Bf16 => moments_entries::at::<Bf16>(level),
                _ => moments_entries::at::<Runtime>(level),
            };
            own.unwrap_or(moments_entries::portable::entry_portable::<Runtime>)
        }

        fn normalize_entry(level: Level, src: DataType, dst: DataType) -> Entry {
            use DataType::{Bf16 as B, F32 as F};
            let own: Option<Entry> = match (src, dst) {
                (F, F) => normalize_entries::at::<F32, F32>(level),
                (F, B) => normalize_entries::at::<F32, Bf16>(level),
                (B, B) => normalize_entries::at::<Bf16, Bf16>(level),
                (B, F) => normalize_entries::at::<Bf16, F32>(level),
                _ => normalize_entries::at::<Runtime, F32>(level),
            };
            own.unwrap_or(normalize_entries::portable::entry_portable::<Runtime, Runtime>)
        }

        fn products_entry(level: Level, types: [DataType; 2]) -> Entry {
            use DataType::{Bf16 as B, F32 as F};
            let own: Option<Entry> = match types {
                [F, F] => products_entries::at::<F32, F32>(level),
                [B, B] => products_entries::at::<Bf16, Bf16>(level),
                _ => products_entries::at::<Runtime, Runtime>(level),
            };
            own.unwrap_or(products_entries::portable::entry_portable::<Runtime, Runtime>)
        }

        fn gradient_entry(level: Level, types: [DataType; 3]) -> Entry {
            use DataType::{Bf16 as B, F32 as F};
            let own: Option<Entry> = match types {
                [F, F, F] => gradient_entries::at::<F32, F32, F32>(level),
                [B, B, B] => gradient_entries::at::<Bf16, Bf16, Bf16>(level),
                _ => gradient_entries::at::<Runtime, Runtime, Runtime>(level),
            };
            own.unwrap_or(gradient_entries::portable::entry_portable::<Runtime, Runtime, Runtime>)
        }

        /// The kernels for src, dst or diff_dst, and diff_src; `stored` is the type of dst, or `None` for a stage.
        pub(super) fn kernels(
            level: Level,
            types: [DataType; 3],
            stored: Option<DataType>,
        ) -> Kernels {
            Kernels {
                probe: probe_entries::at::<Runtime>(level)
                    .unwrap_or(probe_entries::portable::entry_portable::<Runtime>),
                moments: moments_entry(level, types[0]),
                normalize: normalize_entry(level, types[0], stored.unwrap_or(DataType::F32)),
                products: products_entry(level, [types[0], types[1]]),
                gradient: gradient_entry(level, types),
            }
        }
    };
}
pub(super) use kernels;
