//! A tensor's memory with guard zones around it.
//!
//! A library writes through a pointer, and only the bytes themselves show what it wrote. So the
//! memory before, after and between the elements has a known pattern. Around inputs it is NaN in
//! every floating-point type, so that reading it spoils the result. Outputs have another pattern, so
//! that elements that were never written are recognized.

use super::Layout;
use std::alloc::{self, Layout as Allocation, LayoutError};
use std::ptr::NonNull;

/// Bytes before and after the elements: more than any vector that a kernel could overrun by.
const GUARD: usize = 512;
/// Alignment of the allocation: a cache line, which careful callers choose.
const ALIGNMENT: usize = 64;
/// Alignment of large ones, so that all tensors begin at the same offset in a page, whatever was allocated before.
/// Times depend on the offsets of loads and stores in a page.
const PAGE: usize = 4096;
const LARGE: usize = 16 * PAGE;
/// Around and between the elements of an input: NaN in f32, bf16 and f16.
const INPUT: u8 = 0xff;
/// Around, between and in the elements of an output: a huge negative f32 or bf16, a NaN in f16, and in any case an
/// unlikely result.
const OUTPUT: u8 = 0xfe;
/// Another such pattern, to distinguish an unwritten element from one that was written with the
/// first pattern's value.
const SECOND_OUTPUT: u8 = 0xfd;

/// Elements that are searched together for unwritten ones.
const GROUP: usize = 256;

/// A forbidden change of a buffer; the end of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage(pub String);

/// Memory for one tensor.
///
/// Foreign code writes it through [`Buffer::pointer`], so no reference to its bytes leaves this
/// module: contents are copied in and out.
#[derive(Debug)]
pub struct Buffer {
    allocation: NonNull<u8>,
    size: usize,
    /// Offset of the first element.
    start: usize,
    /// Bytes of the tensor.
    span: usize,
}

fn allocation_of(size: usize) -> Result<Allocation, LayoutError> {
    Allocation::from_size_align(size, if size >= LARGE { PAGE } else { ALIGNMENT })
}

impl Buffer {
    /// A buffer with these elements, given in row-major order, for an input of a library.
    /// `shift` moves the first element that many bytes off its 64-byte boundary.
    pub fn input(layout: &Layout, elements: &[u8], shift: usize) -> Buffer {
        let buffer = Buffer::filled(layout, shift, INPUT);
        buffer.put(layout, elements);
        buffer
    }

    /// A buffer for an output of a library.
    pub fn output(layout: &Layout, shift: usize) -> Buffer {
        Buffer::filled(layout, shift, OUTPUT)
    }

    /// A buffer for an output that shares it with an input.
    pub fn in_place(layout: &Layout, elements: &[u8], shift: usize) -> Buffer {
        let buffer = Buffer::output(layout, shift);
        buffer.put(layout, elements);
        buffer
    }

    fn filled(layout: &Layout, shift: usize, pattern: u8) -> Buffer {
        let span = layout.span();
        let size = GUARD + shift + span + GUARD;
        let memory = allocation_of(size).expect("a size below isize::MAX");
        // SAFETY: the size is at least two guards, so not zero.
        let pointer = unsafe { alloc::alloc(memory) };
        // A panic fails the problem; the usual handler would abort the whole batch.
        let allocation = NonNull::new(pointer)
            .unwrap_or_else(|| panic!("no memory for a buffer of {size} bytes"));
        // SAFETY: the allocation has `size` bytes.
        unsafe { allocation.as_ptr().write_bytes(pattern, size) };
        Buffer { allocation, size, start: GUARD + shift, span }
    }

    /// The address of the first element, for a library to read and write the tensor's bytes.
    pub fn pointer(&self) -> *mut u8 {
        // SAFETY: start is within the allocation.
        unsafe { self.allocation.as_ptr().add(self.start) }
    }

    /// Bytes of the tensor.
    pub fn span(&self) -> usize {
        self.span
    }

    /// The elements in row-major order.
    pub fn elements(&self, layout: &Layout) -> Vec<u8> {
        assert!(layout.span() <= self.span, "a layout of this buffer");
        // SAFETY: start and span are within the allocation, and no library runs meanwhile: every call has returned
        // before its caller reads the buffer.
        layout.gather(unsafe { std::slice::from_raw_parts(self.pointer(), self.span) })
    }

    /// Overwrites the elements, given in row-major order.
    pub fn put(&self, layout: &Layout, elements: &[u8]) {
        assert!(layout.span() <= self.span, "a layout of this buffer");
        // SAFETY: as in `elements`; the slice ends before anything else can see the bytes.
        let memory = unsafe { std::slice::from_raw_parts_mut(self.pointer(), self.span) };
        layout.scatter(elements, memory);
    }

    /// Zeros the padding of blocks, as in a valid output.
    pub fn fill_up(&self, layout: &Layout) {
        assert!(layout.span() <= self.span, "a layout of this buffer");
        // SAFETY: as in `put`.
        let memory = unsafe { std::slice::from_raw_parts_mut(self.pointer(), self.span) };
        layout.for_each_filler(|offset| memory[offset..][..layout.data_type.size()].fill(0));
    }

    /// Resets all bytes of an output to the pattern.
    pub fn clear(&self) {
        self.overwrite(OUTPUT);
    }

    /// Sets all bytes of an output to another pattern, for [`Buffer::is_still_unwritten`].
    pub fn clear_differently(&self) {
        self.overwrite(SECOND_OUTPUT);
    }

    fn overwrite(&self, pattern: u8) {
        // SAFETY: the allocation has `size` bytes, and nobody holds a reference to them.
        unsafe { self.allocation.as_ptr().write_bytes(pattern, self.size) };
    }

    /// All bytes, while nothing else uses the buffer.
    fn bytes(&self) -> &[u8] {
        // SAFETY: as in `elements`; the callers below hold the slice for one comparison.
        unsafe { std::slice::from_raw_parts(self.allocation.as_ptr(), self.size) }
    }

    /// Checks an input with these elements: no byte may have changed, guards included.
    pub fn unchanged(&self, layout: &Layout, elements: &[u8]) -> Result<(), Damage> {
        let bytes = self.bytes();
        let tensor = self.start..self.start + self.span;
        let differs = |&at: &usize| bytes[at] != INPUT;
        let around = (0..tensor.start).chain(tensor.end..self.size).find(differs);
        let within = |expected: &[u8]| {
            let now = &bytes[tensor.clone()];
            let position = || now.iter().zip(expected).position(|(now, then)| now != then);
            if now == expected { None } else { position().map(|at| self.start + at) }
        };
        let changed = around.or_else(|| match layout.is_dense() {
            true => within(elements),
            false => {
                let mut expected = vec![INPUT; self.span];
                layout.scatter(elements, &mut expected);
                within(&expected)
            }
        });
        match changed {
            None => Ok(()),
            Some(at) => {
                Err(Damage(format!("is an input and was written {}", self.whereabouts(at))))
            }
        }
    }

    /// Checks an unused buffer: nothing may have been written.
    pub fn untouched(&self) -> Result<(), Damage> {
        match self.bytes().iter().position(|&byte| byte != OUTPUT) {
            None => Ok(()),
            Some(at) => {
                Err(Damage(format!("is not used and was written {}", self.whereabouts(at))))
            }
        }
    }

    /// Checks an output: nothing outside its elements may have been written, except that the padding of blocks must be
    /// zero.
    pub fn contained(&self, layout: &Layout) -> Result<(), Damage> {
        let bytes = self.bytes();
        let tensor = self.start..self.start + self.span;
        let written = |at: &usize| bytes[*at] != OUTPUT;
        let mut stray = (0..tensor.start).chain(tensor.end..self.size).find(written);
        if stray.is_none() && !layout.is_dense() {
            let mut rest = bytes[tensor].to_vec();
            let size = layout.data_type.size();
            layout.for_each_run(|run| rest[run].fill(OUTPUT));
            let mut missing = None;
            layout.for_each_filler(|offset| {
                let filler = &mut rest[offset..][..size];
                if filler.iter().any(|&byte| byte != 0) {
                    missing.get_or_insert(self.start + offset);
                }
                filler.fill(OUTPUT);
            });
            if let Some(at) = missing {
                let whereabouts = self.whereabouts(at);
                return Err(Damage(format!("has block padding that is not zero {whereabouts}")));
            }
            stray = rest.iter().position(|&byte| byte != OUTPUT).map(|at| self.start + at);
        }
        match stray {
            None => Ok(()),
            Some(at) => Err(Damage(format!("was written {}", self.whereabouts(at)))),
        }
    }

    /// The indices of the elements, taken from an output, that look unwritten.
    pub fn unwritten(layout: &Layout, elements: &[u8]) -> Vec<usize> {
        match layout.data_type.size() {
            1 => unwritten::<1>(elements),
            2 => unwritten::<2>(elements),
            4 => unwritten::<4>(elements),
            8 => unwritten::<8>(elements),
            size => unreachable!("no type has {size} bytes"),
        }
    }

    /// Whether the element, taken from an output cleared with the second pattern, was not written.
    pub fn is_still_unwritten(layout: &Layout, elements: &[u8], index: usize) -> bool {
        let size = layout.data_type.size();
        elements[index * size..][..size].iter().all(|&byte| byte == SECOND_OUTPUT)
    }

    fn whereabouts(&self, at: usize) -> String {
        if at < self.start {
            format!("{} bytes before its start", self.start - at)
        } else if at < self.start + self.span {
            format!("at byte {} of {}", at - self.start, self.span)
        } else {
            format!("{} bytes after its end", at - self.start - self.span)
        }
    }
}

/// The indices of the elements of `SIZE` bytes that look unwritten.
fn unwritten<const SIZE: usize>(elements: &[u8]) -> Vec<usize> {
    let looks = |element: &[u8; SIZE]| *element == [OUTPUT; SIZE];
    let mut indices = Vec::new();
    for (group, elements) in elements.as_chunks::<SIZE>().0.chunks(GROUP).enumerate() {
        // Nearly always none. Without an early exit, the compiler vectorizes this.
        if elements.iter().fold(false, |any, element| any | looks(element)) {
            let found = elements.iter().enumerate().filter(|(_, element)| looks(element));
            indices.extend(found.map(|(at, _)| group * GROUP + at));
        }
    }
    indices
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let memory = allocation_of(self.size).expect("it was valid when made");
        // SAFETY: the allocation was made with this layout.
        unsafe { alloc::dealloc(self.allocation.as_ptr(), memory) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_type::DataType;

    fn poke(buffer: &Buffer, at: isize) {
        // SAFETY: the tests write less than a guard beyond the tensor.
        unsafe { *buffer.pointer().offset(at) ^= 0x10 };
    }

    #[test]
    fn stray_writes_are_seen() {
        let layout = Layout::ordered(&[2, 3], &[0, 1], 1, DataType::F32);
        let span = layout.span() as isize;
        // Before, after, and in the gap after the first row.
        for at in [-1, -400, span, span + 400, 12] {
            let output = Buffer::output(&layout, 4);
            assert_eq!(output.contained(&layout), Ok(()));
            poke(&output, at);
            assert!(output.contained(&layout).is_err(), "output at {at}");
            let input = Buffer::input(&layout, &[7; 24], 4);
            assert_eq!(input.unchanged(&layout, &[7; 24]), Ok(()));
            poke(&input, at);
            assert!(input.unchanged(&layout, &[7; 24]).is_err(), "input at {at}");
        }
        let output = Buffer::output(&layout, 0);
        poke(&output, 4);
        assert_eq!(output.contained(&layout), Ok(()), "an element may be written");
        let error = output.untouched().expect_err("an element was written");
        assert_eq!(error.0, "is not used and was written at byte 4 of 28");
        for layout in [layout, Layout::dense(&[2, 3], DataType::F32)] {
            let input = Buffer::input(&layout, &[7; 24], 0);
            assert_eq!(input.unchanged(&layout, &[7; 24]), Ok(()));
            poke(&input, 4);
            let error = input.unchanged(&layout, &[7; 24]).expect_err("an element was written");
            assert_eq!(
                error.0,
                format!("is an input and was written at byte 4 of {}", layout.span())
            );
        }
    }

    #[test]
    fn blocks_are_filled_up_with_zeros() {
        let layout = Layout::blocked(&[3, 2], &[0, 1], &[(0, 4)], DataType::S8);
        let output = Buffer::in_place(&layout, &[1; 6], 0);
        assert!(output.contained(&layout).is_err());
        output.fill_up(&layout);
        assert_eq!(output.contained(&layout), Ok(()));
        poke(&output, 3);
        let error = output.contained(&layout).expect_err("another filler");
        assert_eq!(error.0, "has block padding that is not zero at byte 3 of 8");
    }

    #[test]
    fn elements_come_back_and_missing_ones_are_found() {
        let layout = Layout::ordered(&[2, 3], &[1, 0], 0, DataType::Bf16);
        let elements: Vec<u8> = (0..12).collect();
        let buffer = Buffer::output(&layout, 2);
        assert_eq!(buffer.pointer() as usize % 64, 2);
        assert_eq!(Buffer::unwritten(&layout, &buffer.elements(&layout)), [0, 1, 2, 3, 4, 5]);
        buffer.put(&layout, &elements);
        assert_eq!(buffer.elements(&layout), elements);
        assert!(Buffer::unwritten(&layout, &elements).is_empty());
        buffer.clear();
        assert_eq!(buffer.untouched(), Ok(()));
    }

    #[test]
    fn missing_elements_are_found_in_every_group() {
        for data_type in [DataType::S8, DataType::F16, DataType::F32, DataType::F64] {
            let size = data_type.size();
            let mut elements = vec![7; (2 * GROUP + 5) * size];
            // The byte of the pattern alone does not count.
            elements[3 * size] = if size > 1 { OUTPUT } else { 7 };
            let missing = [0, GROUP - 1, GROUP, 2 * GROUP + 4];
            for at in missing {
                elements[at * size..][..size].fill(OUTPUT);
            }
            let layout = Layout::dense(&[2 * GROUP + 5], data_type);
            assert_eq!(Buffer::unwritten(&layout, &elements), missing);
        }
    }
}
