//! The first lanes of each element type, beside memory that must not be touched.

use crate::simd::{
    Bf16, Byte, Element, F16, F32, First, LANES, Level, Simd, Width, entry_points, read_scalar,
};
use crate::tensor::DataType;

/// Bytes of the largest pages that processors have by default.
const PAGE: usize = 64 << 10;
const UNTOUCHED: u8 = 0xa5;

/// Readable bytes between two pages that are not.
struct Between(*mut u8);

impl Between {
    fn new() -> Self {
        let (flags, none) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_NONE);
        // SAFETY: a new mapping, of whose three parts the second becomes accessible.
        unsafe {
            let all = libc::mmap(std::ptr::null_mut(), 3 * PAGE, none, flags, -1, 0);
            assert_ne!(all, libc::MAP_FAILED);
            let page = all.cast::<u8>().add(PAGE);
            assert_eq!(libc::mprotect(page.cast(), PAGE, libc::PROT_READ | libc::PROT_WRITE), 0);
            Self(page)
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: accessible, and there is no other reference.
        unsafe { std::slice::from_raw_parts_mut(self.0, PAGE) }
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`.
        unsafe { libc::munmap(self.0.sub(PAGE).cast(), 3 * PAGE) };
    }
}

/// Loads the first `n` elements and stores them elsewhere.
///
/// # Safety
/// They exist, there is room for them and for 16 f32, and the CPU supports the instruction set of `S`.
#[inline(always)]
unsafe fn copy<S: Simd, E: Element>(
    data_type: DataType,
    from: *const u8,
    to: *mut u8,
    loaded: *mut f32,
    n: usize,
) {
    let element = E::of(data_type);
    // SAFETY: guaranteed by the caller.
    unsafe {
        let v = First(n).load_as::<S, E>(element, from, 0);
        S::store(loaded, v);
        First(n).store_as::<S, E>(element, to, 0, v);
    }
}

entry_points! {
    /// [`copy`], per level.
    mod entries: copy<E: Element>(
        data_type: DataType, from: *const u8, to: *mut u8, loaded: *mut f32, n: usize
    ) -> ();
}

fn copies_the_first<E: Element>(data_type: DataType) {
    let (mut source, mut target) = (Between::new(), Between::new());
    let size = data_type.size();
    for level in Level::available() {
        let entry =
            entries::at::<E>(level.of_vectors()).unwrap_or(entries::portable::entry_portable::<E>);
        // Both ends of the page, so that either neighbour would be touched, and odd addresses within.
        for (n, at) in (1..LANES).flat_map(|n| [0, 1, 33, PAGE - n * size].map(|at| (n, at))) {
            source.bytes().fill(UNTOUCHED);
            target.bytes().fill(UNTOUCHED);
            let copied = at..at + n * size;
            for (i, byte) in source.bytes()[copied.clone()].iter_mut().enumerate() {
                // As f32, bf16 or f16, these are finite numbers.
                *byte = if size > 1 && i % size == size - 1 { 0x3c } else { (7 * i + 1) as u8 };
            }
            let mut loaded = [f32::NAN; LANES];
            // SAFETY: the machine has the level, and `n` elements are in the page.
            unsafe {
                let (from, to) = (source.0.add(at), target.0.add(at));
                entry(data_type, from, to, loaded.as_mut_ptr(), n);
            }
            let name = format!("{n} of {data_type:?} at {at}, {}", level.name());
            assert!(loaded[n..].iter().all(|x| x.to_bits() == 0), "{name}");
            for (i, x) in loaded[..n].iter().enumerate() {
                // SAFETY: the element exists.
                let expected = unsafe { read_scalar(data_type, source.0.add(at), i) };
                assert_eq!(*x, expected, "{name}");
            }
            let target = target.bytes();
            assert_eq!(source.bytes()[copied.clone()], target[copied.clone()], "{name}");
            target[copied].fill(UNTOUCHED);
            assert!(target.iter().all(|byte| *byte == UNTOUCHED), "{name}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "protects pages")]
fn the_first_lanes_are_loaded_and_stored_and_no_others() {
    copies_the_first::<F32>(DataType::F32);
    copies_the_first::<Bf16>(DataType::Bf16);
    copies_the_first::<F16>(DataType::F16);
    copies_the_first::<Byte>(DataType::S8);
    copies_the_first::<Byte>(DataType::U8);
}
