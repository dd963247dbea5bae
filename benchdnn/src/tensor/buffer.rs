//! A tensor's memory with guard zones around it.
//!
//! A library writes through the pointer that it is given, and nothing but the bytes themselves can
//! tell what it did. So the memory before, behind and between the elements holds a known pattern:
//! one that is NaN in every type where the library reads (what it reads by mistake spoils its
//! result), and another where it writes, so that an element never written is recognised.

use super::Layout;
use std::alloc::{self, Layout as Allocation};
use std::ptr::NonNull;

/// Bytes before and behind the elements. Longer than any vector that a kernel could slip by.
const GUARD: usize = 512;
/// Alignment of the allocation: a cache line, as callers who care would align.
const ALIGNMENT: usize = 64;
/// Around and between the elements of an input: NaN in f32, bf16 and f16.
const INPUT: u8 = 0xff;
/// Around, between and in the elements of an output: a huge negative f32 or bf16, a NaN in f16,
/// and nothing that a result is likely to be.
const OUTPUT: u8 = 0xfe;
/// Another such pattern, to tell an element that nobody wrote from one that was written with the
/// first pattern's very value.
const SECOND_OUTPUT: u8 = 0xfd;

/// What an execution did to a buffer that it must not do; a sentence's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage(pub String);

/// Memory for one tensor.
///
/// It is written by foreign code through [`Buffer::pointer`], so no reference to its bytes ever
/// leaves this module: contents are copied in and out.
#[derive(Debug)]
pub struct Buffer {
    allocation: NonNull<u8>,
    size: usize,
    /// Offset of the first element.
    start: usize,
    /// Bytes of the tensor.
    span: usize,
    /// The whole allocation as it was when the buffer was filled, of inputs alone.
    original: Option<Vec<u8>>,
}

impl Buffer {
    /// A buffer with these elements, given in row-major order, for an input of a library.
    /// `shift` moves the first element that many bytes off its 64-byte boundary.
    pub fn input(layout: &Layout, elements: &[u8], shift: usize) -> Buffer {
        let mut buffer = Buffer::filled(layout, shift, INPUT);
        buffer.put(layout, elements);
        buffer.original = Some(buffer.bytes().to_vec());
        buffer
    }

    /// A buffer for an output of a library.
    pub fn output(layout: &Layout, shift: usize) -> Buffer {
        Buffer::filled(layout, shift, OUTPUT)
    }

    /// A buffer for an output that takes the place of an input.
    pub fn in_place(layout: &Layout, elements: &[u8], shift: usize) -> Buffer {
        let buffer = Buffer::output(layout, shift);
        buffer.put(layout, elements);
        buffer
    }

    fn filled(layout: &Layout, shift: usize, pattern: u8) -> Buffer {
        let span = layout.span();
        let size = GUARD + shift + span + GUARD;
        let memory = Allocation::from_size_align(size, ALIGNMENT).expect("a size below isize::MAX");
        // SAFETY: the size is at least two guards, so not zero.
        let pointer = unsafe { alloc::alloc(memory) };
        let Some(allocation) = NonNull::new(pointer) else { alloc::handle_alloc_error(memory) };
        // SAFETY: the allocation has `size` bytes.
        unsafe { allocation.as_ptr().write_bytes(pattern, size) };
        Buffer { allocation, size, start: GUARD + shift, span, original: None }
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
        // SAFETY: start and span are within the allocation, and no library runs meanwhile: every
        // call of one has returned before its caller looks at the buffer.
        layout.gather(unsafe { std::slice::from_raw_parts(self.pointer(), self.span) })
    }

    /// Overwrites the elements, given in row-major order.
    pub fn put(&self, layout: &Layout, elements: &[u8]) {
        assert!(layout.span() <= self.span, "a layout of this buffer");
        // SAFETY: as in `elements`; the slice ends before anything else can see the bytes.
        let memory = unsafe { std::slice::from_raw_parts_mut(self.pointer(), self.span) };
        layout.scatter(elements, memory);
    }

    /// Overwrites what fills up blocks with zeros, as an output has it in the end.
    pub fn fill_up(&self, layout: &Layout) {
        assert!(layout.span() <= self.span, "a layout of this buffer");
        // SAFETY: as in `put`.
        let memory = unsafe { std::slice::from_raw_parts_mut(self.pointer(), self.span) };
        layout.for_each_filler(|offset| memory[offset..][..layout.data_type.size()].fill(0));
    }

    /// Sets all bytes of an output back to the pattern.
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

    /// All bytes, for as long as nothing else is done with the buffer.
    fn bytes(&self) -> &[u8] {
        // SAFETY: as in `elements`; the callers are below and hold the slice for one comparison.
        unsafe { std::slice::from_raw_parts(self.allocation.as_ptr(), self.size) }
    }

    /// Checks an input: not one byte may have changed, in the guards neither.
    pub fn unchanged(&self) -> Result<(), Damage> {
        let original = self.original.as_ref().expect("an input keeps its original");
        let bytes = self.bytes();
        if bytes == original {
            return Ok(());
        }
        match bytes.iter().zip(original).position(|(now, then)| now != then) {
            None => Ok(()),
            Some(at) => {
                Err(Damage(format!("is an input and was written {}", self.whereabouts(at))))
            }
        }
    }

    /// Checks a buffer that no part of the problem uses: nothing may have been written.
    pub fn untouched(&self) -> Result<(), Damage> {
        match self.bytes().iter().position(|&byte| byte != OUTPUT) {
            None => Ok(()),
            Some(at) => {
                Err(Damage(format!("is not used and was written {}", self.whereabouts(at))))
            }
        }
    }

    /// Checks an output: nothing outside its elements may have been written, but zeros where blocks are filled
    /// up, and these must be there.
    pub fn contained(&self, layout: &Layout) -> Result<(), Damage> {
        let bytes = self.bytes();
        let tensor = self.start..self.start + self.span;
        let written = |at: &usize| bytes[*at] != OUTPUT;
        let mut stray = (0..tensor.start).chain(tensor.end..self.size).find(written);
        if stray.is_none() && !layout.is_dense() {
            let mut rest = bytes[tensor].to_vec();
            let size = layout.data_type.size();
            layout.for_each_offset(|offset| rest[offset..][..size].fill(OUTPUT));
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
                return Err(Damage(format!(
                    "has blocks that are not filled up with zeros {whereabouts}"
                )));
            }
            stray = rest.iter().position(|&byte| byte != OUTPUT).map(|at| self.start + at);
        }
        match stray {
            None => Ok(()),
            Some(at) => Err(Damage(format!("was written {}", self.whereabouts(at)))),
        }
    }

    /// Those of the elements, taken from an output, that nobody seems to have written.
    pub fn unwritten(layout: &Layout, elements: &[u8]) -> impl Iterator<Item = usize> {
        let elements = elements.chunks_exact(layout.data_type.size()).enumerate();
        elements
            .filter(|(_, element)| element.iter().all(|&byte| byte == OUTPUT))
            .map(|(index, _)| index)
    }

    /// Whether the element, taken from an output that was cleared differently, was not written.
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
            format!("{} bytes behind its end", at - self.start - self.span)
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let memory =
            Allocation::from_size_align(self.size, ALIGNMENT).expect("it was valid when made");
        // SAFETY: the allocation was made with this very layout.
        unsafe { alloc::dealloc(self.allocation.as_ptr(), memory) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_type::DataType;

    fn poke(buffer: &Buffer, at: isize) {
        // SAFETY: the tests poke less than a guard beyond the tensor.
        unsafe { *buffer.pointer().offset(at) ^= 0x10 };
    }

    #[test]
    fn stray_writes_are_seen() {
        let layout = Layout::ordered(&[2, 3], &[0, 1], 1, DataType::F32);
        let span = layout.span() as isize;
        // In front, behind, and in the gap after the first row.
        for at in [-1, -400, span, span + 400, 12] {
            let output = Buffer::output(&layout, 4);
            assert_eq!(output.contained(&layout), Ok(()));
            poke(&output, at);
            assert!(output.contained(&layout).is_err(), "output at {at}");
            let input = Buffer::input(&layout, &[7; 24], 4);
            assert_eq!(input.unchanged(), Ok(()));
            poke(&input, at);
            assert!(input.unchanged().is_err(), "input at {at}");
        }
        let output = Buffer::output(&layout, 0);
        poke(&output, 4);
        assert_eq!(output.contained(&layout), Ok(()), "an element may be written");
        let error = output.untouched().expect_err("an element was written");
        assert_eq!(error.0, "is not used and was written at byte 4 of 28");
        let input = Buffer::input(&layout, &[7; 24], 0);
        poke(&input, 4);
        assert!(input.unchanged().is_err(), "an input's element may not");
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
        assert_eq!(error.0, "has blocks that are not filled up with zeros at byte 3 of 8");
    }

    #[test]
    fn elements_come_back_and_missing_ones_are_found() {
        let layout = Layout::ordered(&[2, 3], &[1, 0], 0, DataType::Bf16);
        let elements: Vec<u8> = (0..12).collect();
        let buffer = Buffer::output(&layout, 2);
        assert_eq!(buffer.pointer() as usize % 64, 2);
        assert_eq!(Buffer::unwritten(&layout, &buffer.elements(&layout)).next(), Some(0));
        buffer.put(&layout, &elements);
        assert_eq!(buffer.elements(&layout), elements);
        assert_eq!(Buffer::unwritten(&layout, &elements).next(), None);
        buffer.clear();
        assert_eq!(buffer.untouched(), Ok(()));
    }
}
