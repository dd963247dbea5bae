//! The entry functions of a kernel, one per instruction-set level.

/// Defines an entry function per level for a kernel that is generic over [`Simd`](super::Simd), and a function that
/// returns the entry of a level:
///
/// ```ignore
/// entry_points! {
///     /// Forward.
///     mod entries: forward_rows<Src: Element, Dst: Element; const RMS: bool>(
///         job: &Forward, first: usize, last: usize
///     ) -> usize;
/// }
/// let run = entries::at::<F32, F32, true>(level).unwrap_or(entries::portable::entry_portable::<F32, F32, true>);
/// ```
///
/// The kernel and everything that it calls are `#[inline(always)]`, or operations of [`Simd`](super::Simd). A kernel
/// may call entries of its own level, `entries::at(S::LEVEL)`, for parts that are compiled separately.
macro_rules! entry_points {
    ($(#[$doc:meta])* mod $name:ident: $kernel:ident<
        $($ty:ident: $bound:path),* $(; $(const $cn:ident: $ct:ty),*)?
    >($($arg:ident: $argty:ty),* $(,)?) -> $ret:ty;) => {
        $(#[$doc])*
        mod $name {
            use super::*;
            use $crate::simd::Level;

            // A module per level, because the compiler splits code by module into codegen units.
            #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
            pub(super) mod avx512 {
                use super::*;
                /// # Safety
                /// As for the kernel, and the CPU supports AVX-512 F, BW, DQ and VL.
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
                #[inline(never)]
                pub(super) unsafe fn entry_avx512<$($ty: $bound,)* $($(const $cn: $ct),*)?>($($arg: $argty),*) -> $ret {
                    $crate::simd::hints::begins_at_line();
                    // SAFETY: guaranteed by the caller.
                    unsafe { $kernel::<$crate::simd::avx512::Avx512, $($ty,)* $($($cn),*)?>($($arg),*) }
                }
            }
            #[cfg(all(target_arch = "x86_64", feature = "avx2"))]
            pub(super) mod avx2 {
                use super::*;
                /// # Safety
                /// As for the kernel, and the CPU supports AVX2, FMA and F16C.
                #[target_feature(enable = "avx2,fma,f16c")]
                #[inline(never)]
                pub(super) unsafe fn entry_avx2<$($ty: $bound,)* $($(const $cn: $ct),*)?>($($arg: $argty),*) -> $ret {
                    // SAFETY: guaranteed by the caller.
                    unsafe { $kernel::<$crate::simd::avx2::Avx2, $($ty,)* $($($cn),*)?>($($arg),*) }
                }
            }
            #[cfg(target_arch = "aarch64")]
            pub(super) mod neon {
                use super::*;
                /// # Safety
                /// As for the kernel, and the CPU supports NEON.
                #[target_feature(enable = "neon")]
                #[inline(never)]
                pub(super) unsafe fn entry_neon<$($ty: $bound,)* $($(const $cn: $ct),*)?>($($arg: $argty),*) -> $ret {
                    // SAFETY: guaranteed by the caller.
                    unsafe { $kernel::<$crate::simd::neon::Neon, $($ty,)* $($($cn),*)?>($($arg),*) }
                }
            }
            pub(super) mod portable {
                use super::*;
                /// # Safety
                /// As for the kernel.
                #[allow(dead_code, reason = "some kernels have no portable entry")]
                #[inline(never)]
                pub(in super::super) unsafe fn entry_portable<$($ty: $bound,)* $($(const $cn: $ct),*)?>($($arg: $argty),*) -> $ret {
                    // SAFETY: guaranteed by the caller.
                    unsafe { $kernel::<$crate::simd::portable::Portable, $($ty,)* $($($cn),*)?>($($arg),*) }
                }
            }

            /// The entry of a vector level; the machine must support it when the entry is called. `None` for the
            /// portable level, which is compiled for fewer types.
            #[inline(always)]
            pub(super) fn at<$($ty: $bound,)* $($(const $cn: $ct),*)?>(
                level: Level,
            ) -> Option<unsafe fn($($argty),*) -> $ret> {
                match level {
                    #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
                    Level::Avx512 => Some(avx512::entry_avx512::<$($ty,)* $($($cn),*)?>),
                    #[cfg(all(target_arch = "x86_64", feature = "avx2"))]
                    Level::Avx2 => Some(avx2::entry_avx2::<$($ty,)* $($($cn),*)?>),
                    #[cfg(target_arch = "aarch64")]
                    Level::Neon => Some(neon::entry_neon::<$($ty,)* $($($cn),*)?>),
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use entry_points;
