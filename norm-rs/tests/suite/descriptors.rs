//! Engines, descriptors and memory.

use norm_rs::{
    Attr, DataType, Dims, Engine, EngineKind, ErrorKind, Memory, MemoryDesc, ScratchpadMode, Tag,
};

use crate::data::*;

#[test]
fn engines() {
    assert_eq!(EngineKind::Cpu.count(), 1);
    assert_eq!(EngineKind::Gpu.count(), 0);
    assert_eq!(Engine::cpu().unwrap().kind().unwrap(), EngineKind::Cpu);
    for (kind, index) in [(EngineKind::Cpu, 1), (EngineKind::Gpu, 0)] {
        let error = Engine::new(kind, index).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{error}");
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn descriptors_report_their_parameters() {
    let desc = MemoryDesc::with_strides(&[2, 3, 4], DataType::Bf16, &[50, 4, 1]).unwrap();
    assert_eq!(desc.dims()[..], [2, 3, 4]);
    assert_eq!(desc.strides().unwrap()[..], [50, 4, 1]);
    assert_eq!(desc.data_type(), Some(DataType::Bf16));
    assert_eq!(desc.size(), 2 * (50 + 2 * 4 + 3 + 1));
    assert_eq!(desc.to_string(), "bf16 [2, 3, 4] strides [50, 4, 1]");
    assert_eq!(desc.clone(), desc);

    let dense = MemoryDesc::dense(&[2, 3, 4], DataType::Bf16).unwrap();
    assert_ne!(dense, desc);
    assert_eq!(dense, MemoryDesc::with_tag(&[2, 3, 4], DataType::Bf16, Tag::TNC).unwrap());
    assert_ne!(dense, MemoryDesc::dense(&[2, 3, 4], DataType::F16).unwrap());
    let turned = MemoryDesc::with_tag(&[2, 3, 4], DataType::F32, Tag::Cab).unwrap();
    assert_eq!(turned.strides().unwrap()[..], [3, 1, 6]);

    let open = MemoryDesc::with_tag(&[2, 3], DataType::F32, Tag::Any).unwrap();
    assert_eq!((open.strides(), open.size()), (None, 0));
    assert_eq!(open.to_string(), "f32 [2, 3] any layout");
    assert_eq!(MemoryDesc::dense(&[5, 0], DataType::F32).unwrap().size(), 0);
}

#[test]
fn descriptors_reject_invalid_parameters() {
    let too_many = [1; 13];
    let f32 = DataType::F32;
    let kind = |result: norm_rs::Result<MemoryDesc>| result.unwrap_err().kind();
    assert_eq!(kind(MemoryDesc::dense(&too_many, f32)), ErrorKind::InvalidArguments);
    assert_eq!(kind(MemoryDesc::with_tag(&[2, 3], f32, Tag::Abc)), ErrorKind::InvalidArguments);
    let error = MemoryDesc::with_strides(&[2, 3], f32, &[3]).unwrap_err();
    assert_eq!(error.argument(), Some("strides"));
    let error = MemoryDesc::dense(&[usize::MAX], f32).unwrap_err();
    assert_eq!(error.argument(), Some("dims"));
    // Each dimension is valid, but their product is too large.
    let huge = 1usize << 40;
    for result in [
        MemoryDesc::dense(&[huge, huge], f32),
        MemoryDesc::with_strides(&[huge, 2], f32, &[huge, 1]),
        MemoryDesc::with_strides(&[2, 2], f32, &[i64::MAX as usize, i64::MAX as usize]),
    ] {
        assert_eq!(kind(result), ErrorKind::InvalidArguments);
    }
    assert_eq!(Dims::new(&[1; 12]).unwrap()[..], [1; 12]);
    assert_eq!(Dims::new(&too_many).unwrap_err().argument(), Some("dims"));
}

#[test]
fn allocated_memory_is_zeroed_and_writable() {
    let engine = Engine::cpu().unwrap();
    let desc = MemoryDesc::with_strides(&[2, 3], DataType::F32, &[5, 1]).unwrap();
    let mut memory = Memory::new(&engine, &desc).unwrap();
    assert_eq!(memory.as_slice::<f32>().unwrap(), [0.0; 8], "the gap between the rows is there");
    assert_eq!(memory.as_slice::<f32>().unwrap().as_ptr().addr() % 64, 0);
    let x = [1f32, 2.0, 3.0, 0.0, 0.0, 4.0, 5.0, 6.0];
    memory.copy_from_slice(&x).unwrap();
    assert_eq!(elements::<f32>(&memory), x);
    memory.as_mut_slice::<f32>().unwrap()[7] = 9.0;
    assert_eq!(memory.as_slice::<f32>().unwrap()[7], 9.0);
    assert_eq!(memory.desc().unwrap(), desc);

    assert_eq!(memory.copy_from_slice(&x[..7]).unwrap_err().argument(), Some("elements"));
    assert!(memory.as_slice::<i32>().is_err() && memory.as_mut_slice::<norm_rs::f16>().is_err());
    assert_eq!(elements::<f32>(&memory)[..7], x[..7]);
}

#[test]
fn memory_without_elements() {
    let engine = Engine::cpu().unwrap();
    let desc = dense::<f32>(&[3, 0]);
    let mut nothing: [f32; 0] = [];
    assert_eq!(Memory::new(&engine, &desc).unwrap().as_slice::<f32>().unwrap(), [0f32; 0]);
    assert_eq!(
        Memory::from_slice(&engine, &desc, &nothing).unwrap().as_slice::<f32>().unwrap(),
        [0f32; 0]
    );
    let mut memory = Memory::from_mut_slice(&engine, &desc, &mut nothing).unwrap();
    assert_eq!(memory.as_mut_slice::<f32>().unwrap(), [0f32; 0]);
}

#[test]
fn memory_over_slices() {
    let engine = Engine::cpu().unwrap();
    let desc = dense::<f32>(&[2, 2]);
    let mut x = [1f32, 2.0, 3.0, 4.0, 5.0];
    let memory = Memory::from_slice(&engine, &desc, &x).unwrap();
    assert_eq!(memory.as_slice::<f32>().unwrap(), &x[..4], "the tensor, not the rest of the slice");
    let mut memory = Memory::from_mut_slice(&engine, &desc, &mut x).unwrap();
    memory.as_mut_slice::<f32>().unwrap()[3] = 8.0;
    assert_eq!(x, [1.0, 2.0, 3.0, 8.0, 5.0]);
}

#[test]
fn memory_rejects_unsuitable_slices() {
    let engine = Engine::cpu().unwrap();
    let desc = MemoryDesc::with_strides(&[2, 3], DataType::F32, &[5, 1]).unwrap();
    let mut short = [0f32; 7];
    let error = Memory::from_slice(&engine, &desc, &short).unwrap_err();
    assert_eq!(
        error.to_string(),
        "slice has 7 elements; pass 8 or more, for f32 [2, 3] strides [5, 1]"
    );
    assert!(Memory::from_mut_slice(&engine, &desc, &mut short).is_err());
    for result in [
        Memory::from_slice(&engine, &desc, &[0i32; 8]).map(drop),
        Memory::from_slice(&engine, &desc, &[0f64; 8]).map(drop),
        Memory::from_slice(&engine, &desc, &[0u8; 32]).map(drop),
        Memory::from_mut_slice(&engine, &desc, &mut [norm_rs::bf16::ZERO; 16]).map(drop),
    ] {
        assert_eq!(result.unwrap_err().argument(), Some("slice"));
    }
    let open = MemoryDesc::with_tag(&[2, 3], DataType::F32, Tag::Any).unwrap();
    let kind = Memory::new(&engine, &open).map(drop).unwrap_err().kind();
    assert_eq!(kind, ErrorKind::InvalidArguments);
    assert!(Memory::from_slice(&engine, &open, &[0f32; 6]).is_err());
}

#[test]
fn a_failed_allocation_is_an_error() {
    let engine = Engine::cpu().unwrap();
    let desc = MemoryDesc::dense(&[1 << 58], DataType::U8).unwrap();
    let error = Memory::new(&engine, &desc).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
}

#[test]
fn attributes() {
    let mut attr = Attr::new().unwrap();
    assert_eq!(attr.scratchpad_mode().unwrap(), ScratchpadMode::Library);
    for mode in [ScratchpadMode::User, ScratchpadMode::Library] {
        attr.set_scratchpad_mode(mode).unwrap();
        assert_eq!(attr.scratchpad_mode().unwrap(), mode);
    }
}
