//! Errors of executions and builders; a failed call writes nothing.

use norm_rs::layer_normalization::{Backward, BackwardArgs, Flags, Forward, ForwardArgs};
use norm_rs::primitive::{Arg, Args};
use norm_rs::{DataType, Engine, ErrorKind, Memory, MemoryDesc, Result, Stream, Tag};

use crate::data::*;

/// Asserts the kind and the argument of an error, and that its message names the argument.
#[track_caller]
fn refused<T>(result: Result<T>, argument: &str) {
    let Err(error) = result else { panic!("{argument} was accepted") };
    assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{error}");
    assert_eq!(error.argument(), Some(argument), "{error}");
    assert!(error.to_string().contains(argument), "{error}");
}

struct Objects {
    engine: Engine,
    stream: Stream<'static>,
    desc: MemoryDesc,
    rows: Memory<'static>,
    cols: Memory<'static>,
    stats: Memory<'static>,
}

fn objects() -> Objects {
    let engine = Engine::cpu().unwrap();
    let stream = Stream::new(&engine).unwrap();
    let rows = memory(&engine, &[2, 3], &[1f32, 2.0, 4.0, 8.0, 5.0, 7.0]);
    let cols = memory(&engine, &[3], &[1f32, 2.0, 3.0]);
    let stats = memory(&engine, &[2], &[1f32, 2.0]);
    Objects { desc: dense::<f32>(&[2, 3]), engine, stream, rows, cols, stats }
}

#[test]
fn each_missing_forward_argument_is_named() {
    let Objects { engine, stream, desc, rows, cols, .. } = objects();
    let forward =
        Forward::training(&engine, &desc).flags(Flags::SCALE | Flags::SHIFT).build().unwrap();
    let mut dst = memory(&engine, &[2, 3], &[9f32; 6]);
    let mut mean = memory(&engine, &[2], &[9f32; 2]);
    let mut variance = memory(&engine, &[2], &[9f32; 2]);
    for missing in [Arg::Src, Arg::Dst, Arg::Mean, Arg::Variance, Arg::Scale, Arg::Shift] {
        let mut args = Args::new();
        for arg in [Arg::Src, Arg::Scale, Arg::Shift] {
            if arg != missing {
                args = args.input(arg, if arg == Arg::Src { &rows } else { &cols });
            }
        }
        for (arg, memory) in
            [(Arg::Dst, &mut dst), (Arg::Mean, &mut mean), (Arg::Variance, &mut variance)]
        {
            if arg != missing {
                args = args.output(arg, memory);
            }
        }
        refused(forward.primitive().execute(&stream, args), missing.name());
    }
    assert_eq!(elements::<f32>(&dst), [9.0; 6]);
    assert_eq!(elements::<f32>(&mean), [9.0; 2]);
    assert_eq!(elements::<f32>(&variance), [9.0; 2]);
}

#[test]
fn each_missing_backward_argument_is_named() {
    let Objects { engine, stream, desc, rows, cols, stats } = objects();
    let flags = Flags::SCALE | Flags::SHIFT;
    let backward = Backward::new(&engine, &desc).flags(flags).build().unwrap();
    let mut diff_src = memory(&engine, &[2, 3], &[9f32; 6]);
    let mut diff_scale = memory(&engine, &[3], &[9f32; 3]);
    let mut diff_shift = memory(&engine, &[3], &[9f32; 3]);
    for missing in [
        Arg::Src,
        Arg::DiffDst,
        Arg::Mean,
        Arg::Variance,
        Arg::Scale,
        Arg::DiffSrc,
        Arg::DiffScale,
        Arg::DiffShift,
    ] {
        let mut args = Args::new();
        for (arg, memory) in [
            (Arg::Src, &rows),
            (Arg::DiffDst, &rows),
            (Arg::Mean, &stats),
            (Arg::Variance, &stats),
            (Arg::Scale, &cols),
        ] {
            if arg != missing {
                args = args.input(arg, memory);
            }
        }
        for (arg, memory) in [
            (Arg::DiffSrc, &mut diff_src),
            (Arg::DiffScale, &mut diff_scale),
            (Arg::DiffShift, &mut diff_shift),
        ] {
            if arg != missing {
                args = args.output(arg, memory);
            }
        }
        refused(backward.primitive().execute(&stream, args), missing.name());
    }
    assert_eq!(elements::<f32>(&diff_src), [9.0; 6]);
    assert_eq!(elements::<f32>(&diff_scale), [9.0; 3]);
    assert_eq!(elements::<f32>(&diff_shift), [9.0; 3]);
}

#[test]
fn arguments_excluded_by_the_flags_are_rejected() {
    let Objects { engine, stream, desc, rows, cols, stats } = objects();
    let mut dst = memory(&engine, &[2, 3], &[9f32; 6]);
    let mut out = memory(&engine, &[2], &[9f32; 2]);
    let plain = Forward::inference(&engine, &desc).build().unwrap();
    refused(plain.execute(&stream, ForwardArgs::new(&rows, &mut dst).scale(&cols)), "scale");
    refused(plain.execute(&stream, ForwardArgs::new(&rows, &mut dst).shift(&cols)), "shift");
    refused(plain.execute(&stream, ForwardArgs::new(&rows, &mut dst).mean(&stats)), "mean");
    let args = ForwardArgs::new(&rows, &mut dst).variance_out(&mut out);
    refused(plain.execute(&stream, args), "variance");

    // RMS normalization has no mean.
    let rms = Forward::training(&engine, &desc).flags(Flags::RMS_NORM).build().unwrap();
    let mut variance = memory(&engine, &[2], &[9f32; 2]);
    let args = ForwardArgs::new(&rows, &mut dst).variance_out(&mut variance).mean_out(&mut out);
    refused(rms.execute(&stream, args), "mean");

    // The gradient of the source alone has no parameter gradients.
    let data = Backward::data(&engine, &desc).flags(Flags::SCALE).build().unwrap();
    let mut diff_scale = memory(&engine, &[3], &[9f32; 3]);
    let args = BackwardArgs::new(&rows, &rows, &mut dst).mean(&stats).variance(&stats);
    let args = args.scale(&cols).diff_scale(&mut diff_scale);
    refused(data.execute(&stream, args), "diff_scale");

    for memory in [&dst, &out, &variance, &diff_scale] {
        assert!(elements::<f32>(memory).iter().all(|&x| x == 9.0), "{memory:?} was written");
    }
}

#[test]
fn statistics_in_the_wrong_direction_are_rejected() {
    let Objects { engine, stream, desc, rows, stats, .. } = objects();
    let mut dst = memory(&engine, &[2, 3], &[9f32; 6]);
    let mut out = memory(&engine, &[2], &[9f32; 2]);
    // Training writes the statistics; a memory lent for reading must not be accepted.
    let training = Forward::training(&engine, &desc).flags(Flags::RMS_NORM).build().unwrap();
    let args = ForwardArgs::new(&rows, &mut dst).variance(&stats);
    refused(training.execute(&stream, args), "variance");
    assert_eq!(elements::<f32>(&stats), [1.0, 2.0]);
    // Global statistics are read; an output would never be written.
    let flags = Flags::RMS_NORM | Flags::GLOBAL_STATS;
    let global = Forward::training(&engine, &desc).flags(flags).build().unwrap();
    let args = ForwardArgs::new(&rows, &mut dst).variance_out(&mut out);
    refused(global.execute(&stream, args), "variance");
    assert_eq!(elements::<f32>(&dst), [9.0; 6]);
    assert!(
        training.primitive().writes(Arg::Variance) && !global.primitive().writes(Arg::Variance)
    );
}

#[test]
fn memory_with_another_descriptor_is_rejected() {
    let Objects { engine, stream, desc, rows, cols, .. } = objects();
    let forward = Forward::inference(&engine, &desc).flags(Flags::SCALE).build().unwrap();
    let mut dst = memory(&engine, &[2, 3], &[9f32; 6]);

    let fewer = memory(&engine, &[1, 3], &[1f32; 3]);
    refused(forward.execute(&stream, ForwardArgs::new(&fewer, &mut dst).scale(&cols)), "src");
    // The same bytes in another shape are another tensor.
    let turned = memory(&engine, &[3, 2], &[1f32; 6]);
    refused(forward.execute(&stream, ForwardArgs::new(&turned, &mut dst).scale(&cols)), "src");
    let wider = memory(&engine, &[2, 3], &[1f64; 6]);
    refused(forward.execute(&stream, ForwardArgs::new(&wider, &mut dst).scale(&cols)), "src");
    let transposed = MemoryDesc::with_tag(&[2, 3], DataType::F32, Tag::Ba).unwrap();
    let transposed = Memory::new(&engine, &transposed).unwrap();
    refused(forward.execute(&stream, ForwardArgs::new(&transposed, &mut dst).scale(&cols)), "src");
    let short = memory(&engine, &[2], &[1f32; 2]);
    refused(forward.execute(&stream, ForwardArgs::new(&rows, &mut dst).scale(&short)), "scale");
    assert_eq!(elements::<f32>(&dst), [9.0; 6]);

    let mut half = memory(&engine, &[2, 3], &[norm_rs::bf16::ZERO; 6]);
    refused(forward.execute(&stream, ForwardArgs::new(&rows, &mut half).scale(&cols)), "dst");
}

#[test]
fn one_memory_for_unrelated_arguments_is_rejected() {
    let Objects { engine, stream, desc, rows, .. } = objects();
    let forward = Forward::inference(&engine, &desc).flags(Flags::SCALE).build().unwrap();
    let wide = MemoryDesc::dense(&[3], DataType::F32).unwrap();
    let mut both = Memory::new(&engine, &wide).unwrap();
    let args = Args::new().input(Arg::Src, &rows).in_place(Arg::Scale, Arg::Dst, &mut both);
    refused(forward.primitive().execute(&stream, args), "dst");

    // Also if the descriptors agree: src and diff_src.
    let column = dense::<f32>(&[4, 1]);
    let backward = Backward::data(&engine, &column).flags(Flags::RMS_NORM).build().unwrap();
    let src = memory(&engine, &[4, 1], &[1f32; 4]);
    let variance = memory(&engine, &[4], &[1f32; 4]);
    let mut shared = memory(&engine, &[4, 1], &[9f32; 4]);
    let args = Args::new().input(Arg::DiffDst, &src).input(Arg::Variance, &variance);
    let args = args.in_place(Arg::Src, Arg::DiffSrc, &mut shared);
    refused(backward.primitive().execute(&stream, args), "diff_src");
    assert_eq!(elements::<f32>(&shared), [9.0; 4]);
}

#[test]
fn in_place_with_different_types_is_rejected() {
    let Objects { engine, stream, desc, .. } = objects();
    let half = dense::<norm_rs::bf16>(&[2, 3]);
    let forward = Forward::inference(&engine, &desc).dst(&half).build().unwrap();
    let mut memory = memory(&engine, &[2, 3], &[9f32; 6]);
    refused(forward.execute(&stream, ForwardArgs::in_place(&mut memory)), "dst");
    assert_eq!(elements::<f32>(&memory), [9.0; 6]);
}

#[test]
fn a_later_binding_replaces_an_earlier_one() {
    let Objects { engine, stream, desc, rows, .. } = objects();
    let forward = Forward::inference(&engine, &desc).flags(Flags::RMS_NORM).epsilon(0.0);
    let forward = forward.build().unwrap();
    let other = memory(&engine, &[2, 3], &[2f32; 6]);
    let mut dst = Memory::new(&engine, &desc).unwrap();
    let args = Args::new().input(Arg::Src, &rows).output(Arg::Dst, &mut dst);
    forward.primitive().execute(&stream, args.input(Arg::Src, &other)).unwrap();
    assert_eq!(elements::<f32>(&dst), [1.0; 6]);
}

#[test]
fn builders_reject_inconsistent_problems() {
    let Objects { engine, desc, .. } = objects();
    let forward = || Forward::training(&engine, &desc);
    for epsilon in [-1e-5, f32::NAN, f32::INFINITY] {
        refused(forward().epsilon(epsilon).build(), "epsilon");
        refused(Backward::new(&engine, &desc).epsilon(epsilon).build(), "epsilon");
    }
    refused(forward().dst(&dense::<f32>(&[2, 4])).build(), "dst");
    refused(forward().stats(&dense::<f32>(&[3])).build(), "stats");
    let backward = || Backward::new(&engine, &desc);
    refused(backward().diff_dst(&dense::<f32>(&[2, 4])).build(), "diff_dst");
    refused(backward().diff_src(&dense::<f32>(&[3, 3])).build(), "diff_src");
    for dims in [&[6][..], &[1; 6]] {
        refused(Forward::inference(&engine, &dense::<f32>(dims)).build(), "src");
    }
    let open = MemoryDesc::with_tag(&[2, 3], DataType::F32, Tag::Any).unwrap();
    refused(Forward::inference(&engine, &open).build(), "src");
}

#[test]
fn unimplemented_types_are_rejected() {
    let Objects { engine, desc, .. } = objects();
    for result in [
        Forward::inference(&engine, &dense::<i32>(&[2, 3])).build(),
        Forward::inference(&engine, &desc).dst(&dense::<i32>(&[2, 3])).build(),
        Forward::training(&engine, &desc).stats(&dense::<norm_rs::bf16>(&[2])).build(),
        Forward::inference(&engine, &desc)
            .flags(Flags::SCALE)
            .scale_shift_type(DataType::S32)
            .build(),
    ] {
        let error = result.unwrap_err();
        let kinds = [ErrorKind::Unimplemented, ErrorKind::InvalidArguments];
        assert!(kinds.contains(&error.kind()), "{:?}: {error}", error.kind());
    }
}

/// Each message says what is wrong and what to pass instead.
#[test]
fn messages_say_what_to_change() {
    let Objects { engine, stream, desc, rows, cols, stats } = objects();
    #[track_caller]
    fn said<T>(result: Result<T>, expected: &str) {
        let error = result.err().expect("a mistake");
        assert_eq!(error.to_string(), expected);
        let boxed: Box<dyn std::error::Error + Send + Sync> = error.into();
        assert!(!boxed.to_string().contains('\n'));
    }
    let mut dst = memory(&engine, &[2, 3], &[9f32; 6]);
    let plain = Forward::inference(&engine, &desc).build().unwrap();
    let mut short = memory(&engine, &[1, 3], &[1f32; 3]);
    said(
        plain.execute(&stream, ForwardArgs::new(&rows, &mut short)),
        "dst is f32 [1, 3] strides [3, 1], not f32 [2, 3] strides [3, 1]; pass memory of that descriptor, which \
         arg_desc(Arg::Dst) returns",
    );
    let scaled = Forward::inference(&engine, &desc).flags(Flags::SCALE).build().unwrap();
    let halves = memory(&engine, &[3], &[norm_rs::bf16::ZERO; 3]);
    said(
        scaled.execute(&stream, ForwardArgs::new(&rows, &mut dst).scale(&halves)),
        "scale is bf16 [3] strides [1], not f32 [3] strides [1]; pass memory of that descriptor, which \
         arg_desc(Arg::Scale) returns, or build a layer normalization with scale_shift_type of the memory's",
    );
    said(
        plain.primitive().execute(&stream, Args::new()),
        "src is missing; it is an input: pass it to new() or in_place() of the arguments",
    );
    said(
        plain.execute(&stream, ForwardArgs::new(&rows, &mut dst).scale(&cols)),
        "scale is not used by this primitive; leave it out, or build the primitive with Flags::SCALE",
    );
    said(
        plain.execute(&stream, ForwardArgs::new(&rows, &mut dst).mean(&stats)),
        "mean is not used by this primitive; leave it out, or build the primitive for training or \
         with Flags::GLOBAL_STATS",
    );
    let training = Forward::training(&engine, &desc).flags(Flags::RMS_NORM).build().unwrap();
    said(
        training.execute(&stream, ForwardArgs::new(&rows, &mut dst)),
        "variance is missing; it is an output: pass it with variance_out()",
    );
    said(
        training.execute(&stream, ForwardArgs::new(&rows, &mut dst).variance(&stats)),
        "variance was given as an input, but is an output: pass it with variance_out()",
    );
    let column = dense::<f32>(&[4, 1]);
    let backward = Backward::data(&engine, &column).flags(Flags::RMS_NORM).build().unwrap();
    let (diff_dst, variance) =
        (memory(&engine, &[4, 1], &[1f32; 4]), memory(&engine, &[4], &[1f32; 4]));
    let mut shared = memory(&engine, &[4, 1], &[9f32; 4]);
    let args = Args::new().input(Arg::DiffDst, &diff_dst).input(Arg::Variance, &variance);
    said(
        backward.primitive().execute(&stream, args.in_place(Arg::Src, Arg::DiffSrc, &mut shared)),
        "diff_src cannot share the memory of src; give it its own",
    );
    said(
        Memory::from_slice(&engine, &desc, &[1f64; 6]),
        "slice has elements of f64, but the tensor's are f32; pass a slice of f32 or a descriptor of \
         f64",
    );
    said(
        Memory::from_slice(&engine, &desc, &[1f32; 5]),
        "slice has 5 elements; pass 2 x 3 = 6 or more",
    );
    said(
        Memory::from_slice(&engine, &dense::<f32>(&[3]), &[1f32; 2]),
        "slice has 2 elements; pass 3 or more",
    );
    said(dst.copy_from_slice(&[1f32; 7]), "elements has 7 elements; pass 6, as the memory has");
    said(
        dst.as_slice::<norm_rs::bf16>(),
        "T is bf16, but the tensor's elements are f32; call as_slice::<f32>",
    );
    said(
        dst.as_mut_slice::<i8>().map(|_| ()),
        "T is s8, but the tensor's elements are f32; call as_mut_slice::<f32>",
    );
    let whole = MemoryDesc::dense(&[2], DataType::S8).unwrap();
    said(
        Memory::new(&engine, &whole).unwrap().as_slice::<u8>(),
        "T is u8, but the tensor's elements are s8; call as_slice::<i8>",
    );
    let narrow = MemoryDesc::dense(&[2], DataType::F8E4m3).unwrap();
    said(
        Memory::new(&engine, &narrow).unwrap().as_slice::<u8>(),
        "T is u8, but the tensor's elements are f8_e4m3, which no type in Rust stands for; create the memory over bytes of \
         your own with from_raw",
    );
    said(
        MemoryDesc::with_strides(&[2, 3], DataType::F32, &[1]),
        "strides has 1 entries, but dims has 2; pass one stride for each dimension",
    );
    let too_many = usize::MAX;
    said(
        norm_rs::info::set_num_threads(too_many),
        &format!("num_threads is {too_many}; the most is 255"),
    );
    assert_eq!(elements::<f32>(&dst), [9.0; 6]);
}
