//! Several implementations of one problem, and caller-provided scratchpads.

use norm_rs::layer_normalization::{Backward, Flags, Forward};
use norm_rs::primitive::{Arg, Args, Primitive};
use norm_rs::{Attr, DataType, Engine, Memory, MemoryDesc, Result, ScratchpadMode, Stream};

use crate::data::*;

const ROWS: usize = 9;
const COLS: usize = 77;

struct Inputs {
    engine: Engine,
    stream: Stream<'static>,
    desc: MemoryDesc,
    src: Memory<'static>,
    diff_dst: Memory<'static>,
    scale: Memory<'static>,
    mean: Memory<'static>,
    variance: Memory<'static>,
}

fn inputs() -> Inputs {
    let engine = Engine::cpu().unwrap();
    let dims = [ROWS, COLS];
    Inputs {
        stream: Stream::new(&engine).unwrap(),
        desc: dense::<f32>(&dims),
        src: memory(&engine, &dims, &numbers::<f32>(1, ROWS * COLS, -1.0, 4.0)),
        diff_dst: memory(&engine, &dims, &numbers::<f32>(2, ROWS * COLS, -1.0, 2.0)),
        scale: memory(&engine, &[COLS], &numbers::<f32>(3, COLS, 0.5, 2.5)),
        mean: memory(&engine, &[ROWS], &numbers::<f32>(4, ROWS, 0.5, 2.0)),
        variance: memory(&engine, &[ROWS], &numbers::<f32>(5, ROWS, 0.5, 3.0)),
        engine,
    }
}

impl Inputs {
    fn backward(&self, backward: &Primitive, scratchpad: Option<&mut Memory<'_>>) -> Vec<u32> {
        self.try_backward(backward, scratchpad).unwrap()
    }

    /// The bits of diff_src, diff_scale and diff_shift.
    fn try_backward(
        &self,
        backward: &Primitive,
        scratchpad: Option<&mut Memory<'_>>,
    ) -> Result<Vec<u32>> {
        let mut outputs = [&[ROWS, COLS][..], &[COLS], &[COLS]]
            .map(|dims| Memory::new(&self.engine, &dense::<f32>(dims)).unwrap());
        let [diff_src, diff_scale, diff_shift] = &mut outputs;
        let mut args = Args::new()
            .input(Arg::Src, &self.src)
            .input(Arg::DiffDst, &self.diff_dst)
            .input(Arg::Scale, &self.scale)
            .input(Arg::Mean, &self.mean)
            .input(Arg::Variance, &self.variance)
            .output(Arg::DiffSrc, diff_src)
            .output(Arg::DiffScale, diff_scale)
            .output(Arg::DiffShift, diff_shift);
        if let Some(scratchpad) = scratchpad {
            args = args.output(Arg::Scratchpad, scratchpad);
        }
        backward.execute(&self.stream, args)?;
        Ok(outputs.iter().flat_map(|memory| bits(&elements::<f32>(memory))).collect())
    }

    fn forward(&self, forward: &Primitive) -> Vec<u32> {
        let mut dst = Memory::new(&self.engine, &self.desc).unwrap();
        let args = Args::new().input(Arg::Src, &self.src).output(Arg::Dst, &mut dst);
        forward.execute(&self.stream, args).unwrap();
        bits(&elements::<f32>(&dst))
    }
}

#[test]
fn every_implementation_gives_the_same_bits() {
    let inputs = inputs();
    let flags = Flags::SCALE | Flags::SHIFT;
    let forward = Forward::inference(&inputs.engine, &inputs.desc).build().unwrap();
    let backward = Backward::new(&inputs.engine, &inputs.desc).flags(flags).build().unwrap();
    let forward_bits = inputs.forward(forward.primitive());
    let backward_bits = inputs.backward(backward.primitive(), None);

    let mut names = vec![forward.primitive().implementation().to_string()];
    let mut next = forward.primitive().next_implementation().unwrap();
    while let Some(primitive) = next {
        assert_eq!(inputs.forward(&primitive), forward_bits, "{}", primitive.implementation());
        names.push(primitive.implementation().to_string());
        next = primitive.next_implementation().unwrap();
    }
    // The reference implementation is always last, and never the only one.
    assert_eq!(names.last().map(String::as_str), Some("ref:any"));
    assert!(names.len() > 1, "{names:?}");
    let distinct: std::collections::HashSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), names.len(), "{names:?}");

    let mut count = 1;
    let mut next = backward.primitive().next_implementation().unwrap();
    while let Some(primitive) = next {
        let name = primitive.implementation().to_string();
        assert_eq!(inputs.backward(&primitive, None), backward_bits, "{name}");
        count += 1;
        next = primitive.next_implementation().unwrap();
    }
    assert!(count > 1);
}

#[test]
fn user_scratchpad() {
    let inputs = inputs();
    let Inputs { engine, desc, .. } = &inputs;
    let flags = Flags::SCALE | Flags::SHIFT;
    let library = Backward::new(engine, desc).flags(flags).build().unwrap();
    assert_eq!(library.primitive().scratchpad_desc().unwrap(), None);
    let expected = inputs.backward(library.primitive(), None);

    let mut attr = Attr::new().unwrap();
    attr.set_scratchpad_mode(ScratchpadMode::User).unwrap();
    let user = Backward::new(engine, desc).flags(flags).attr(&attr).build().unwrap();
    drop(attr);
    let mut needed = 0;
    let mut primitive = user.primitive();
    let mut later;
    loop {
        match primitive.scratchpad_desc().unwrap() {
            Some(scratchpad_desc) => {
                needed += 1;
                let mut scratchpad = Memory::new(engine, &scratchpad_desc).unwrap();
                assert_eq!(inputs.backward(primitive, Some(&mut scratchpad)), expected);
                if scratchpad_desc.data_type() == Some(DataType::U8) {
                    // Neither the content nor the alignment of the scratchpad matters.
                    let mut bytes = vec![0xff_u8; scratchpad_desc.size() + 1];
                    let odd = usize::from(bytes.as_ptr().addr().is_multiple_of(2));
                    let mut scratchpad =
                        Memory::from_mut_slice(engine, &scratchpad_desc, &mut bytes[odd..])
                            .unwrap();
                    assert_eq!(inputs.backward(primitive, Some(&mut scratchpad)), expected);
                }
                let error = inputs.try_backward(primitive, None).unwrap_err();
                assert_eq!(error.argument(), Some("scratchpad"), "{error}");
            }
            None => assert_eq!(inputs.backward(primitive, None), expected),
        }
        match primitive.next_implementation().unwrap() {
            Some(next) => later = next,
            None => break,
        }
        primitive = &later;
    }
    assert!(needed > 0, "no implementation needed a scratchpad: nothing was tested");
}

#[test]
fn an_unneeded_scratchpad_is_ignored() {
    let inputs = inputs();
    let flags = Flags::SCALE | Flags::SHIFT;
    let backward = Backward::new(&inputs.engine, &inputs.desc).flags(flags).build().unwrap();
    let expected = inputs.backward(backward.primitive(), None);
    let mut scratchpad = memory(&inputs.engine, &[16], &[5u8; 16]);
    assert_eq!(inputs.backward(backward.primitive(), Some(&mut scratchpad)), expected);
    assert_eq!(elements::<u8>(&scratchpad), [5; 16]);
}

/// The best implementation for rows of a number of columns.
fn best(cols: usize, flags: Flags) -> String {
    let engine = Engine::cpu().unwrap();
    let desc = dense::<f32>(&[100, cols]);
    let forward = Forward::inference(&engine, &desc).flags(flags).build().unwrap();
    forward.primitive().implementation().to_string()
}

#[test]
fn short_rows_have_implementations_of_their_own() {
    if best(4096, Flags::NONE) == "simd:portable" {
        return;
    }
    for (cols, name) in [(64, ":dense"), (48, ":short"), (300, "")] {
        let best = best(cols, Flags::NONE);
        let special =
            best.strip_prefix("simd:").and_then(|rest| rest.find(':').map(|at| &rest[at..]));
        assert_eq!(special.unwrap_or(""), name, "{cols} columns: {best}");
    }
    assert!(!best(64, Flags::GLOBAL_STATS).ends_with(":dense"));
}
