//! Memory descriptors from arbitrary blobs, strides and tags. An accepted descriptor must be consistent: its size fits
//! the address space and covers its elements, its blob restores it, and descriptors derived from it are inside it.

use crate::handles::done;
use crate::source::Source;
use norm_sys as sys;
use std::ffi::{CString, c_void};
use std::ptr::null_mut;

/// A descriptor that is destroyed with this value.
struct Desc(sys::norm_memory_desc_t);

impl Drop for Desc {
    fn drop(&mut self) {
        // SAFETY: a live handle that is not used again.
        unsafe { sys::norm_memory_desc_destroy(self.0) };
    }
}

/// Calls a constructor.
fn made(create: impl FnOnce(*mut sys::norm_memory_desc_t) -> sys::norm_status_t) -> Option<Desc> {
    crate::handles::made(create).map(Desc)
}

/// The result of a query, or the default if it is refused.
fn query<T: Default>(desc: &Desc, what: sys::norm_query_t) -> T {
    let mut answer = T::default();
    // SAFETY: callers ask for the type that the header specifies.
    unsafe { sys::norm_memory_desc_query(desc.0, what, (&raw mut answer).cast::<c_void>()) };
    answer
}

/// An array of numbers that belongs to a descriptor.
#[derive(Clone, Copy)]
struct Numbers(*const [i64; 12]);

impl Default for Numbers {
    fn default() -> Self {
        Self(&raw const NONE)
    }
}

static NONE: [i64; 12] = [0; 12];

/// What a descriptor says about itself.
struct Told {
    dims: Vec<i64>,
    padded: Vec<i64>,
    strides: Vec<i64>,
    blocks: Vec<(usize, i64)>,
    offset: i64,
    element: usize,
    is_strided: bool,
    size: usize,
}

impl Told {
    fn by(desc: &Desc) -> Self {
        let count = |what| query::<i32>(desc, what) as usize;
        let ndims = count(sys::norm_query_ndims_s32);
        assert!(ndims <= 12);
        let numbers = |what, count: usize| -> Vec<i64> {
            // SAFETY: lent by the live descriptor, or the static.
            unsafe {
                let all: &[i64; 12] = &*query::<Numbers>(desc, what).0;
                all[..count].to_vec()
            }
        };
        let nblks = count(sys::norm_query_inner_nblks_s32);
        let dims_of_blocks = numbers(sys::norm_query_inner_idxs, nblks);
        let sizes = numbers(sys::norm_query_inner_blks, nblks);
        // SAFETY: no pointers, and a live descriptor.
        let (element, size) = unsafe {
            (
                sys::norm_data_type_size(query(desc, sys::norm_query_data_type)),
                sys::norm_memory_desc_get_size(desc.0),
            )
        };
        Self {
            dims: numbers(sys::norm_query_dims, ndims),
            padded: numbers(sys::norm_query_padded_dims, ndims),
            strides: numbers(sys::norm_query_strides, ndims),
            blocks: dims_of_blocks.into_iter().map(|d| d as usize).zip(sizes).collect(),
            offset: query(desc, sys::norm_query_submemory_offset_s64),
            element,
            is_strided: query::<u32>(desc, sys::norm_query_format_kind) == sys::norm_blocked,
            size,
        }
    }

    fn volume(&self) -> i128 {
        self.dims.iter().fold(1i128, |n, d| n.saturating_mul(i128::from(*d)))
    }

    fn check(&self) {
        assert!(self.dims.iter().chain(&self.padded).all(|d| *d >= 0));
        assert!(self.dims.iter().zip(&self.padded).all(|(dim, padded)| dim <= padded));
        if !self.is_strided || self.volume() == 0 || self.dims.is_empty() {
            assert_eq!(self.size, 0);
            return;
        }
        assert!(self.offset >= 0 && self.strides.iter().all(|stride| *stride >= 0));
        let mut last = i128::from(self.offset);
        for (d, padded) in self.padded.iter().enumerate() {
            let block: i64 = self.blocks.iter().filter(|b| b.0 == d).map(|b| b.1).product();
            let steps = padded / block + i64::from(padded % block != 0) - 1;
            last += i128::from(steps) * i128::from(self.strides[d]);
        }
        let inner: i64 = self.blocks.iter().map(|b| b.1).product();
        let bytes = (last + i128::from(inner)) * self.element as i128;
        assert!(bytes <= i128::from(i64::MAX), "{bytes} bytes");
        assert_eq!(self.size as i128, bytes);
    }
}

fn blob(desc: &Desc) -> Vec<u8> {
    let mut size = 0;
    // SAFETY: the second call gets as many bytes as the first one reports.
    unsafe {
        assert_eq!(sys::norm_memory_desc_get_blob(null_mut(), &raw mut size, desc.0), 0);
        let mut bytes = vec![0; size];
        assert_eq!(sys::norm_memory_desc_get_blob(bytes.as_mut_ptr(), &raw mut size, desc.0), 0);
        bytes
    }
}

fn equal(a: &Desc, b: &Desc) -> bool {
    // SAFETY: live handles.
    unsafe { sys::norm_memory_desc_equal(a.0, b.0) == 1 }
}

const TYPES: [u32; 12] = [
    sys::norm_f16,
    sys::norm_bf16,
    sys::norm_f32,
    sys::norm_s32,
    sys::norm_s8,
    sys::norm_u8,
    sys::norm_f64,
    sys::norm_f8_e5m2,
    sys::norm_f8_e4m3,
    sys::norm_e8m0,
    sys::norm_s64,
    77,
];

/// A dimension, stride or offset: mostly small, sometimes at the edges of 64 bits.
fn extent(source: &mut Source<'_>) -> i64 {
    match source.below(8) {
        0..=4 => source.below(20) as i64,
        5 => 1 << source.below(63),
        6 => source.one_of(&[-1, i64::MAX, i64::MIN, i64::MAX / 2, i64::MAX / 12, 1 << 32]),
        _ => source.number(),
    }
}

fn extents(source: &mut Source<'_>) -> [i64; 12] {
    std::array::from_fn(|_| extent(source))
}

fn create(source: &mut Source<'_>) -> Option<Desc> {
    let ndims = source.below(14) as i32;
    let data_type = source.one_of(&TYPES);
    // The requested number of dimensions may be one more than the library accepts; the extra one must not be read.
    let dims = extents(source);
    match source.below(4) {
        0 => {
            let mut size = 0;
            // SAFETY: only the size is written.
            unsafe {
                let scalar = made(|out| {
                    sys::norm_memory_desc_create_with_tag(out, 1, [1].as_ptr(), sys::norm_f32, 2)
                })?;
                sys::norm_memory_desc_get_blob(null_mut(), &raw mut size, scalar.0);
                let mut bytes = blob(&scalar);
                // A few numbers of a valid blob are replaced.
                for _ in 0..source.below(6) {
                    let at = source.below(size / 8) * 8;
                    bytes[at..at + 8].copy_from_slice(&extent(source).to_le_bytes());
                }
                if source.one_in(4) {
                    for (byte, random) in bytes.iter_mut().zip(source.bytes(size)) {
                        *byte = *random;
                    }
                }
                made(|out| sys::norm_memory_desc_create_with_blob(out, bytes.as_ptr()))
            }
        }
        1 => {
            let strides = extents(source);
            // SAFETY: there are as many dimensions and strides as the library accepts at most.
            made(|out| unsafe {
                let (dims, strides) = (dims.as_ptr(), strides.as_ptr());
                sys::norm_memory_desc_create_with_strides(out, ndims, dims, data_type, strides)
            })
        }
        2 => {
            let tag = source.byte() as u32 | (source.byte() as u32) << 8;
            // SAFETY: as above.
            made(|out| unsafe {
                sys::norm_memory_desc_create_with_tag(out, ndims, dims.as_ptr(), data_type, tag)
            })
        }
        _ => {
            let letters: Vec<u8> =
                (0..source.below(20)).map(|_| source.one_of(b"abcdefABCDEFx0123456789")).collect();
            let text = CString::new(letters).expect("no NUL");
            // SAFETY: as above.
            made(|out| unsafe {
                let (dims, text) = (dims.as_ptr(), text.as_ptr());
                sys::norm_memory_desc_create_with_string_tag(out, ndims, dims, data_type, text)
            })
        }
    }
}

fn derive(source: &mut Source<'_>, desc: &Desc, told: &Told) -> Option<Desc> {
    let numbers = extents(source);
    match source.below(4) {
        0 => {
            let offsets = extents(source);
            // SAFETY: arrays of 12 numbers and a live descriptor, here and below.
            let part = made(|out| unsafe {
                let (dims, offsets) = (numbers.as_ptr(), offsets.as_ptr());
                sys::norm_memory_desc_create_submemory(out, desc.0, dims, offsets)
            })?;
            let inside = Told::by(&part);
            assert!(inside.size <= told.size, "{} bytes of {}", inside.size, told.size);
            assert!(inside.offset >= told.offset);
            Some(part)
        }
        1 => {
            // Often the same dimensions, with some merged or split.
            let mut dims: Vec<i64> = told.dims.clone();
            if source.one_in(2) && dims.len() > 1 {
                let last = dims.pop().unwrap_or(1);
                let at = dims.len() - 1;
                dims[at] = dims[at].wrapping_mul(last);
            }
            dims.insert(source.below(dims.len() + 1), 1);
            let ndims = dims.len() as i32;
            dims.extend(numbers);
            let reshaped = made(|out| unsafe {
                sys::norm_memory_desc_reshape(out, desc.0, ndims, dims.as_ptr())
            })?;
            assert_eq!(Told::by(&reshaped).volume(), told.volume());
            Some(reshaped)
        }
        2 => {
            let axes: [i32; 12] = std::array::from_fn(|_| source.below(13) as i32);
            let permuted = made(|out| unsafe {
                sys::norm_memory_desc_permute_axes(out, desc.0, axes.as_ptr())
            })?;
            assert_eq!(Told::by(&permuted).size, told.size);
            Some(permuted)
        }
        _ => {
            let copy =
                made(|out| unsafe { sys::norm_memory_desc_clone(out, desc.0) }).expect("a copy");
            assert!(equal(&copy, desc));
            let data_type = source.one_of(&TYPES);
            done(unsafe { sys::norm_memory_desc_set_data_type(copy.0, data_type) }).then_some(copy)
        }
    }
}

/// Returns the number of descriptors that were made.
pub fn run(data: &[u8]) -> u64 {
    let mut source = Source::new(data);
    let mut count = 0;
    while !source.is_empty() && count < 100 {
        let mut next = create(&mut source);
        while let Some(desc) = next.take() {
            count += 1;
            let told = Told::by(&desc);
            told.check();
            let bytes = blob(&desc);
            // SAFETY: a whole blob.
            let again =
                made(|out| unsafe { sys::norm_memory_desc_create_with_blob(out, bytes.as_ptr()) });
            assert!(again.is_some_and(|again| equal(&again, &desc)), "a blob restores nothing");
            if source.one_in(2) {
                next = derive(&mut source, &desc, &told);
            }
        }
    }
    count
}
