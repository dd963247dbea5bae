//! Memory over raw buffers, and buffers that are replaced.

use norm_rs::layer_normalization::{Flags, Forward, ForwardArgs};
use norm_rs::{DataType, Engine, ErrorKind, Memory, MemoryDesc, Stream};
use std::ptr;

#[test]
fn a_memory_is_bound_to_one_buffer_after_another() {
    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    let desc = MemoryDesc::dense(&[1, 2], DataType::F32).unwrap();
    let rms_norm =
        Forward::inference(&engine, &desc).flags(Flags::RMS_NORM).epsilon(0.0).build().unwrap();
    let (mut rows, mut result) = ([[1.0f32, 7.0], [-2.0, -14.0]], [0.0f32; 2]);

    // SAFETY: null is allowed, and below each buffer has two elements and is used here alone.
    let mut src = unsafe { Memory::from_raw(&engine, &desc, ptr::null_mut()) }.unwrap();
    // SAFETY: as above.
    let mut dst = unsafe { Memory::from_raw(&engine, &desc, result.as_mut_ptr().cast()) }.unwrap();
    assert!(src.as_slice::<f32>().unwrap().is_empty());
    let error = rms_norm.execute(&stream, ForwardArgs::new(&src, &mut dst)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{error}");
    assert_eq!(dst.as_slice::<f32>().unwrap(), [0.0, 0.0]);

    for (row, expected) in rows.iter_mut().zip([[0.2f32, 1.4], [-0.2, -1.4]]) {
        // SAFETY: as above.
        unsafe { src.set_raw(row.as_mut_ptr().cast()) }.unwrap();
        rms_norm.execute(&stream, ForwardArgs::new(&src, &mut dst)).unwrap();
        assert_eq!(src.as_slice::<f32>().unwrap(), row);
        assert_eq!(dst.as_slice::<f32>().unwrap(), expected);
    }
}

#[test]
fn the_mark_for_allocation_is_no_buffer() {
    let engine = Engine::cpu().unwrap();
    let desc = MemoryDesc::dense(&[2], DataType::F32).unwrap();
    let mark = ptr::without_provenance_mut::<u8>(usize::MAX);
    // SAFETY: the address is refused.
    let error = unsafe { Memory::from_raw(&engine, &desc, mark) }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{error}");

    // SAFETY: null is allowed, and the other address is refused.
    let mut memory = unsafe { Memory::from_raw(&engine, &desc, ptr::null_mut()) }.unwrap();
    // SAFETY: as above.
    let error = unsafe { memory.set_raw(mark) }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{error}");
    assert!(memory.as_slice::<f32>().unwrap().is_empty());
}
