//! The vectors of `tests/data/golden_around.txt`: the steps around a normalization by PyTorch's autograd in f64, the
//! bits of LlamaRMSNorm, and the bits of quantized blocks.

use crate::library::{
    Argument, Engine, Handle, MemoryDesc, PrimitiveDesc, check, decode, encode, execute,
    memory_desc,
};
use norm_sys::*;
use std::collections::HashMap;
use std::ptr;

type Tensors = HashMap<String, Vec<f64>>;

/// A section of the file: its first line, and the rest of each line by its first word.
struct Section {
    title: Vec<&'static str>,
    lines: HashMap<&'static str, &'static str>,
}

/// The shared inputs, and the sections.
fn read() -> (Section, Vec<Section>) {
    let mut sections = vec![Section { title: vec![], lines: HashMap::new() }];
    for line in include_str!("../data/golden_around.txt").lines() {
        let (name, rest) = line.split_once(' ').unwrap();
        match name {
            "case" | "llama" | "quantized" => {
                sections.push(Section { title: line.split(' ').collect(), lines: HashMap::new() });
            }
            "#" => {}
            _ => {
                sections.last_mut().unwrap().lines.insert(name, rest);
            }
        }
    }
    let shared = sections.remove(0);
    (shared, sections)
}

impl Section {
    fn values(&self, name: &str) -> Vec<f64> {
        self.lines[name].split(' ').map(|text| text.parse().unwrap()).collect()
    }

    /// The bytes of a line of bits.
    fn bytes(&self, name: &str, size: usize) -> Vec<u8> {
        let values = self.lines[name].split(' ').map(|text| u32::from_str_radix(text, 16).unwrap());
        values.flat_map(|value| value.to_le_bytes()[..size].to_vec()).collect()
    }
}

/// A case of the file, with the type of its tensors.
struct Case {
    rows: usize,
    cols: usize,
    epsilon: f32,
    alpha: f32,
    flags: norm_normalization_flags_t,
    words: Vec<&'static str>,
    data: norm_data_type_t,
}

fn flag_bits(letters: &str) -> norm_normalization_flags_t {
    let bit = |letter| match letter {
        'C' => norm_use_scale,
        'H' => norm_use_shift,
        'M' => norm_rms_norm,
        'P' => norm_scale_plus_one,
        'B' => norm_round_before_scale,
        'O' => norm_gate_output,
        'I' => norm_gate_input,
        other => panic!("the flag {other}"),
    };
    letters.chars().map(bit).sum()
}

impl Case {
    fn has(&self, flag: norm_normalization_flags_t) -> bool {
        self.flags & flag != 0
    }

    fn is(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    fn gate(&self) -> bool {
        self.has(norm_gate_output | norm_gate_input)
    }

    fn attr(&self, data: &MemoryDesc) -> Handle<norm_primitive_attr> {
        let attr = attributes();
        let partial = self.words.iter().find_map(|word| word.strip_prefix("partial="));
        // SAFETY: all handles are alive.
        unsafe {
            if self.is("residual") {
                check(norm_primitive_attr_set_residual(
                    attr.pointer,
                    data.pointer,
                    data.pointer,
                    norm_residual_rounded,
                ));
            }
            if self.gate() {
                let (kind, alpha) = match self.is("logistic") {
                    true => (norm_eltwise_logistic, 0.0),
                    false => (norm_eltwise_swish, self.alpha),
                };
                check(norm_primitive_attr_set_gate(attr.pointer, data.pointer, kind, alpha));
            }
            if let Some(count) = partial {
                let count = count.parse().unwrap();
                check(norm_primitive_attr_set_partial_norm(attr.pointer, count));
            }
        }
        attr
    }

    /// An argument with its values, or an output.
    fn argument(&self, id: i32, values: Option<&[f64]>) -> Argument {
        let (dims, data_type) = match id {
            NORM_ARG_MEAN | NORM_ARG_VARIANCE => (vec![self.rows], norm_f32),
            NORM_ARG_SCALE | NORM_ARG_SHIFT | NORM_ARG_DIFF_SCALE | NORM_ARG_DIFF_SHIFT => {
                (vec![self.cols], norm_f32)
            }
            _ => (vec![self.rows, self.cols], self.data),
        };
        Argument { id, dims, data_type, input: values.map(|values| encode(data_type, values)) }
    }

    /// Executes and returns the outputs by name.
    fn outputs(
        &self,
        desc: &PrimitiveDesc,
        engine: &Engine,
        inputs: &[(i32, &[f64])],
        outputs: &[(i32, &'static str, bool)],
    ) -> Tensors {
        let mut arguments: Vec<Argument> =
            inputs.iter().map(|(id, values)| self.argument(*id, Some(values))).collect();
        let used: Vec<_> = outputs.iter().filter(|output| output.2).collect();
        arguments.extend(used.iter().map(|output| self.argument(output.0, None)));
        let types: Vec<_> =
            used.iter().map(|output| self.argument(output.0, None).data_type).collect();
        let bytes = execute(engine, desc, &arguments);
        let named = used.iter().zip(types).zip(bytes);
        named.map(|((output, dt), bytes)| (output.1.to_owned(), decode(dt, &bytes))).collect()
    }

    fn forward(&self, shared: &Section) -> Tensors {
        let (engine, data, stat) = self.descs();
        let attr = self.attr(&data);
        let desc = Handle::new(norm_primitive_desc_destroy, |out| {
            // SAFETY: all handles are alive.
            unsafe {
                norm_layer_normalization_forward_primitive_desc_create(
                    out,
                    engine.pointer,
                    norm_forward_training,
                    data.pointer,
                    data.pointer,
                    stat.pointer,
                    self.epsilon,
                    self.flags,
                    attr.pointer,
                )
            }
        });
        let inputs = self.inputs(shared, &[(NORM_ARG_SRC, "src"), (NORM_ARG_RESIDUAL, "residual")]);
        let inputs: Vec<(i32, &[f64])> = inputs.iter().map(|(id, v)| (*id, &**v)).collect();
        let outputs = [
            (NORM_ARG_DST, "dst", true),
            (NORM_ARG_RESIDUAL_DST, "sum", self.is("residual")),
            (NORM_ARG_MEAN, "mean", !self.has(norm_rms_norm)),
            (NORM_ARG_VARIANCE, "variance", true),
        ];
        self.outputs(&desc, &engine, &inputs, &outputs)
    }

    fn backward(&self, shared: &Section, forward: &Tensors) -> Tensors {
        let (engine, data, stat) = self.descs();
        let attr = self.attr(&data);
        let desc = Handle::new(norm_primitive_desc_destroy, |out| {
            // SAFETY: all handles are alive; the hint may be NULL.
            unsafe {
                norm_layer_normalization_backward_primitive_desc_create(
                    out,
                    engine.pointer,
                    norm_backward,
                    data.pointer,
                    data.pointer,
                    data.pointer,
                    stat.pointer,
                    self.epsilon,
                    self.flags,
                    ptr::null(),
                    attr.pointer,
                )
            }
        });
        let own = [(NORM_ARG_DIFF_DST, "diff_dst"), (NORM_ARG_DIFF_RESIDUAL_DST, "diff_sum")];
        let mut inputs = self.inputs(shared, &own);
        let src = forward.get("sum").cloned().unwrap_or_else(|| shared.values("src"));
        inputs.push((NORM_ARG_SRC, src));
        for (id, name) in [(NORM_ARG_MEAN, "mean"), (NORM_ARG_VARIANCE, "variance")] {
            inputs.extend(forward.get(name).map(|values| (id, values.clone())));
        }
        let inputs: Vec<(i32, &[f64])> = inputs.iter().map(|(id, v)| (*id, &**v)).collect();
        let outputs = [
            (NORM_ARG_DIFF_SRC, "diff_src", true),
            (NORM_ARG_DIFF_SCALE, "diff_scale", self.has(norm_use_scale)),
            (NORM_ARG_DIFF_SHIFT, "diff_shift", self.has(norm_use_shift)),
            (NORM_ARG_DIFF_GATE, "diff_gate", self.gate()),
        ];
        self.outputs(&desc, &engine, &inputs, &outputs)
    }

    /// The inputs of the case: the given ones, the gate, scale and shift.
    fn inputs(&self, shared: &Section, own: &[(i32, &str)]) -> Vec<(i32, Vec<f64>)> {
        let all = [
            (NORM_ARG_GATE, "gate", self.gate()),
            (NORM_ARG_SCALE, "scale", self.has(norm_use_scale)),
            (NORM_ARG_SHIFT, "shift", self.has(norm_use_shift)),
        ];
        let own = own.iter().map(|&(id, name)| {
            let of_sum = [NORM_ARG_RESIDUAL, NORM_ARG_DIFF_RESIDUAL_DST].contains(&id);
            (id, name, !of_sum || self.is("residual"))
        });
        let used = own.chain(all).filter(|(.., used)| *used);
        used.map(|(id, name, _)| (id, shared.values(name))).collect()
    }

    fn descs(&self) -> (Engine, MemoryDesc, MemoryDesc) {
        (
            engine(),
            memory_desc(&[self.rows, self.cols], self.data),
            memory_desc(&[self.rows], norm_f32),
        )
    }
}

fn engine() -> Engine {
    // SAFETY: `out` is writable.
    Handle::new(norm_engine_destroy, |out| unsafe { norm_engine_create(out, norm_cpu, 0) })
}

fn attributes() -> Handle<norm_primitive_attr> {
    // SAFETY: `out` is writable.
    Handle::new(norm_primitive_attr_destroy, |out| unsafe { norm_primitive_attr_create(out) })
}

/// Half an ulp of the type, relative to a value.
fn rounding(data: norm_data_type_t) -> f64 {
    match data {
        norm_bf16 => 1.0 / 256.0,
        norm_f16 => 1.0 / 2048.0,
        _ => 0.0,
    }
}

/// f32 arithmetic over a row of this length loses about 4 bits, and then the result is rounded. A wrong formula is off
/// by more than a hundredth.
#[track_caller]
fn close(name: &str, context: &str, got: &[f64], want: &[f64], rounding: f64) {
    assert_eq!(got.len(), want.len(), "{name}: {context}");
    let size = want.iter().fold(0.0_f64, |size, x| size.max(x.abs()));
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let allowed = size * 1e-6 + want.abs() * rounding * 1.001;
        assert!((got - want).abs() <= allowed, "{name}[{i}]: {got}, not {want}: {context}");
    }
}

#[test]
fn autograd_of_every_step() {
    let (shared, sections) = read();
    let number = |name: &str| shared.values(name)[0];
    let mut cases = 0;
    for section in sections.iter().filter(|section| section.title[0] == "case") {
        // Autograd does not round before the scale.
        let rounds = flag_bits(section.title[1]) & norm_round_before_scale != 0;
        let types: &[_] = if rounds { &[norm_f32] } else { &[norm_f32, norm_bf16, norm_f16] };
        for &data in types {
            let case = Case {
                rows: number("rows") as usize,
                cols: number("cols") as usize,
                epsilon: number("epsilon") as f32,
                alpha: number("alpha") as f32,
                flags: flag_bits(section.title[1]),
                words: section.title[2..].to_vec(),
                data,
            };
            let context = format!("{:?} of type {data}", section.title);
            let forward = case.forward(&shared);
            let backward = case.backward(&shared, &forward);
            for (results, of_rows) in [(&forward, true), (&backward, false)] {
                for (name, got) in results.iter().filter(|(name, _)| *name != "sum") {
                    let is_f32 = !of_rows && ["diff_scale", "diff_shift"].contains(&&**name)
                        || ["mean", "variance"].contains(&&**name);
                    let rounding = if is_f32 { 0.0 } else { rounding(data) };
                    close(name, &context, got, &section.values(name), rounding);
                }
            }
            cases += 1;
        }
    }
    assert_eq!(cases, 26 * 3 + 7);
}

/// Runs forward on raw bytes. Returns the bytes of the outputs.
fn run(
    (rows, cols): (usize, usize),
    types: [norm_data_type_t; 3],
    (epsilon, flags): (f32, norm_normalization_flags_t),
    attr: &Handle<norm_primitive_attr>,
    arguments: &[Argument],
) -> Vec<Vec<u8>> {
    let [src, dst, parameters] = types;
    let (engine, stat) = (engine(), memory_desc(&[rows], norm_f32));
    let (src, dst) = (memory_desc(&[rows, cols], src), memory_desc(&[rows, cols], dst));
    let desc = Handle::new(norm_primitive_desc_destroy, |out| {
        // SAFETY: all handles are alive.
        unsafe {
            norm_layer_normalization_forward_primitive_desc_create_v2(
                out,
                engine.pointer,
                norm_forward_inference,
                src.pointer,
                dst.pointer,
                stat.pointer,
                parameters,
                epsilon,
                flags,
                attr.pointer,
            )
        }
    });
    execute(&engine, &desc, arguments)
}

#[test]
fn llama_rounds_before_the_scale() {
    let (_, sections) = read();
    let mut types = 0;
    for section in sections.iter().filter(|section| section.title[0] == "llama") {
        let data = if section.title[1] == "bf16" { norm_bf16 } else { norm_f16 };
        let (src, scale, dst) =
            (section.bytes("src", 2), section.bytes("scale", 2), section.bytes("dst", 2));
        let cols = scale.len() / 2;
        let rows = src.len() / 2 / cols;
        let elements = |id, input| Argument { id, dims: vec![rows, cols], data_type: data, input };
        let scale = Argument { dims: vec![cols], ..elements(NORM_ARG_SCALE, Some(scale)) };
        let flags = norm_use_scale | norm_rms_norm;
        let arguments = [elements(NORM_ARG_SRC, Some(src)), scale, elements(NORM_ARG_DST, None)];
        let types_of = [data; 3];
        let (shape, none) = ((rows, cols), attributes());
        let own = |flags| run(shape, types_of, (1e-6, flags), &none, &arguments).remove(0);
        assert_eq!(own(flags | norm_round_before_scale), dst, "{:?}", section.title);
        assert_ne!(own(flags), dst, "the rounding shows in {:?}", section.title);
        types += 1;
    }
    assert_eq!(types, 2);
}

/// With a variance of 1 and no epsilon, the elements are quantized unchanged.
#[test]
fn quantized_blocks_have_the_bits_of_pytorch() {
    let (_, sections) = read();
    let mut types = 0;
    for section in sections.iter().filter(|section| section.title[0] == "quantized") {
        let dst = match section.title[1] {
            "f8_e4m3" => norm_f8_e4m3,
            "f8_e5m2" => norm_f8_e5m2,
            _ => norm_s8,
        };
        let (src, scale) = (section.bytes("src", 2), section.bytes("scale", 4));
        let rows = scale.len() / 4;
        let cols = src.len() / 2 / rows;
        let argument =
            |id, cols, data_type, input| Argument { id, dims: vec![rows, cols], data_type, input };
        let ones: Vec<u8> = (0..rows).flat_map(|_| 1.0_f32.to_le_bytes()).collect();
        let variance =
            Argument { dims: vec![rows], ..argument(NORM_ARG_VARIANCE, 1, norm_f32, Some(ones)) };
        let scales = NORM_ARG_ATTR_SCALES | NORM_ARG_DST;
        let arguments = [
            argument(NORM_ARG_SRC, cols, norm_bf16, Some(src)),
            variance,
            argument(NORM_ARG_DST, cols, dst, None),
            argument(scales, 1, norm_f32, None),
        ];
        let attr = attributes();
        let groups = [1, cols as norm_dim_t];
        // SAFETY: the attributes are alive, and `groups` has two entries.
        check(unsafe {
            norm_primitive_attr_set_scales_v3(
                attr.pointer,
                NORM_ARG_DST,
                3,
                2,
                groups.as_ptr(),
                norm_f32,
                0,
                norm_quantization_mode_dynamic_fp,
            )
        });
        let flags = norm_use_global_stats | norm_rms_norm;
        let types_of = [norm_bf16, dst, norm_f32];
        let outputs = run((rows, cols), types_of, (0.0, flags), &attr, &arguments);
        assert_eq!(outputs[0], section.bytes("dst", 1), "elements of {}", section.title[1]);
        assert_eq!(outputs[1], scale, "scales of {}", section.title[1]);
        types += 1;
    }
    assert_eq!(types, 3);
}
