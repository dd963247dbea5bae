//! The data of a problem: made, taken from files, turned into tensors, and what the oracle expects.

use super::arguments::{Extent, Spec, arguments};
use super::chain;
use super::problem::Problem;
use crate::attributes::{AttributeTensor, Attributes};
use crate::check::Kind;
use crate::execution::{Fault, Role, Tensor};
use crate::executor::Prepared;
use crate::fill::{self, DataType, Fill, LnormData, LnormShape};
use crate::oracle::lnorm::{BackwardInput, ForwardInput, backward, forward};
use crate::outcome::Halt;
use crate::report::Reporter;
use crate::tensor::Layout;
use crate::verdict::Expected;
use norm_sys::{
    NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SCALE, NORM_ARG_DIFF_SHIFT, NORM_ARG_DIFF_SRC, NORM_ARG_DST,
    NORM_ARG_MEAN, NORM_ARG_SCALE, NORM_ARG_SHIFT, NORM_ARG_SRC, NORM_ARG_VARIANCE,
};
use std::path::PathBuf;
use std::rc::Rc;

/// The seed of all data: a line that reproduces a case makes the same data again.
const SEED: u64 = 1;

/// The inputs of a problem, those that come with its attributes among them.
#[derive(Clone, Debug)]
pub(super) struct Inputs {
    /// Those of the normalization.
    pub(super) own: Rc<LnormData>,
    /// One for each tensor of the attributes.
    pub(super) operands: Vec<Vec<f64>>,
    /// What dst holds, where it is added to.
    pub(super) before: Vec<f64>,
}

/// The data of a problem and what comes of it.
#[derive(Debug)]
pub(super) struct Prediction {
    pub(super) data: Inputs,
    pub(super) expected: Vec<Expected>,
}

/// The predictions of late. A batch runs the same shape in many layouts, and the oracle would
/// otherwise take most of its time.
#[derive(Debug)]
pub(super) struct Cache {
    entries: Vec<(Key, Rc<Prediction>)>,
    bytes: usize,
    /// Bytes that it holds at most.
    limit: usize,
}

impl Default for Cache {
    /// Empty.
    fn default() -> Cache {
        Cache { entries: Vec::new(), bytes: 0, limit: CACHED_BYTES }
    }
}

/// What a prediction depends on.
#[derive(Clone, Debug, PartialEq)]
struct Key {
    shape: LnormShape,
    /// Dimensions, attributes and work in place, where there are attributes.
    attributes: Option<(Vec<usize>, Attributes, bool)>,
}

impl Key {
    fn new(problem: &Problem) -> Key {
        let attributes = &problem.attributes;
        let with = || {
            let inplace = problem.inplace && attributes.reads_dst();
            (problem.dims.clone(), attributes.clone(), inplace)
        };
        let shape = problem.shape();
        Key { shape, attributes: (!attributes.is_default()).then(with) }
    }

    /// Whether the two may take turns: they differ in flags and attributes alone.
    fn is_akin(&self, other: &Key) -> bool {
        let bare = |shape: LnormShape| LnormShape { flags: Default::default(), gain: 1.0, ..shape };
        bare(self.shape) == bare(other.shape)
    }
}

/// Bytes that the cache holds at most. The batches vary flags and attributes innermost and layouts
/// outermost, so a layout finds the predictions of the one before only if all of them are kept.
const CACHED_BYTES: usize = 1 << 30;

/// The memory that an entry takes besides what it shares with that without attributes.
fn bytes(key: &Key, prediction: &Prediction) -> usize {
    let LnormData { src, scale, shift, mean, variance, diff_dst } = &*prediction.data.own;
    let own = [src, scale, shift, mean, variance, diff_dst].map(Vec::len).into_iter().sum();
    let shares = key.attributes.is_some();
    let expected =
        prediction.expected.iter().filter(|expected| !shares || expected.id == NORM_ARG_DST);
    let expected: usize =
        expected.map(|expected| expected.values.len() + expected.terms.len()).sum();
    let operands: usize = prediction.data.operands.iter().map(Vec::len).sum();
    let before = prediction.data.before.len();
    (if shares { 0 } else { own } + expected + operands + before) * size_of::<f64>()
}

impl Cache {
    /// The prediction for the problem with exact data.
    pub(super) fn prediction(&mut self, problem: &Problem) -> Rc<Prediction> {
        let key = Key::new(problem);
        if let Some(prediction) = self.find(&key) {
            return prediction;
        }
        let plain_key = Key { shape: key.shape, attributes: None };
        let plain = self.find(&plain_key).unwrap_or_else(|| {
            let data = make(&key.shape, Fill::Exact);
            self.keep(plain_key, predict_plainly(&key.shape, data.into()))
        });
        if key.attributes.is_none() {
            return plain;
        }
        // The attributes come behind what the normalization gives.
        let inputs = Inputs::new(problem, plain.data.own.clone());
        let expected = with_attributes(problem, &inputs, &plain.expected);
        self.keep(key, Prediction { data: inputs, expected })
    }

    fn find(&self, key: &Key) -> Option<Rc<Prediction>> {
        let mut entries = self.entries.iter();
        entries.find(|(known, _)| known == key).map(|(_, prediction)| prediction.clone())
    }

    /// Keeps a prediction, if there is room when those that are not akin to it are gone. What takes turns with
    /// others that do not all fit would find nothing if the oldest made room for it.
    fn keep(&mut self, key: Key, prediction: Prediction) -> Rc<Prediction> {
        let prediction = Rc::new(prediction);
        let needed = bytes(&key, &prediction);
        while self.bytes + needed > self.limit
            && let Some(place) = self.entries.iter().position(|(known, _)| !known.is_akin(&key))
        {
            let (gone, of_it) = self.entries.remove(place);
            self.bytes -= bytes(&gone, &of_it);
        }
        if self.bytes + needed <= self.limit {
            self.bytes += needed;
            self.entries.push((key, prediction.clone()));
        }
        prediction
    }
}

impl Inputs {
    /// The data of the normalization with what the problem's attributes bring.
    pub(super) fn new(problem: &Problem, own: Rc<LnormData>) -> Inputs {
        Inputs { own, operands: chain::operands(problem), before: chain::before(problem) }
    }
}

impl From<LnormData> for Inputs {
    /// Without attributes.
    fn from(own: LnormData) -> Inputs {
        Inputs { own: Rc::new(own), operands: Vec::new(), before: Vec::new() }
    }
}

/// Replaces what dst should be by what comes of it behind the attributes.
fn with_attributes(problem: &Problem, inputs: &Inputs, plain: &[Expected]) -> Vec<Expected> {
    // In place dst holds src.
    let before = match problem.inplace {
        true => &inputs.own.src,
        false => &inputs.before,
    };
    let through = |expected: &Expected| {
        if expected.id != NORM_ARG_DST {
            return expected.clone();
        }
        let Expected { values, terms, kind, .. } = expected;
        // Behind the normalization the arithmetic is f32's whatever the types are.
        let kind = if *kind == Kind::Double { Kind::Result } else { *kind };
        let (values, bounds) =
            chain::apply(problem, (values, terms, kind), &inputs.operands, before);
        Expected {
            id: expected.id,
            kind: Kind::Chain,
            values: Rc::new(values),
            terms: Rc::new(bounds),
        }
    };
    plain.iter().map(through).collect()
}

/// Makes the data of a shape.
pub(super) fn make(shape: &LnormShape, fill: Fill) -> LnormData {
    fill::lnorm(shape, fill, SEED)
}

/// Asks the oracle.
pub(super) fn predict(problem: &Problem, inputs: Inputs) -> Prediction {
    let plain = predict_plainly(&problem.shape(), inputs);
    if problem.attributes.is_default() {
        return plain;
    }
    let expected = with_attributes(problem, &plain.data, &plain.expected);
    Prediction { expected, ..plain }
}

/// Asks the oracle, without attributes.
fn predict_plainly(shape: &LnormShape, inputs: Inputs) -> Prediction {
    let &LnormShape { rows, cols, epsilon, flags, .. } = shape;
    let data = &inputs.own;
    let double = [shape.src_dt, shape.dst_dt].iter().all(|&dt| dt == DataType::F64);
    let result = if double { Kind::Double } else { Kind::Result };
    let epsilon = f64::from(epsilon);
    let given = |values| Some(values).filter(|values: &&[f64]| !values.is_empty());
    let expected = |id, kind, values, terms| Expected {
        id,
        kind,
        values: Rc::new(values),
        terms: Rc::new(terms),
    };
    let expected = if shape.forward {
        let output = forward(&ForwardInput {
            rows,
            cols,
            src: &data.src,
            scale: flags.scale.then_some(data.scale.as_slice()),
            shift: flags.shift.then_some(data.shift.as_slice()),
            mean: given(&data.mean),
            variance: given(&data.variance),
            epsilon,
            flags,
        });
        vec![
            expected(NORM_ARG_DST, result, output.dst, output.dst_terms),
            expected(NORM_ARG_MEAN, Kind::Mean, output.mean, output.mean_terms),
            expected(NORM_ARG_VARIANCE, Kind::Variance, output.variance, Vec::new()),
        ]
    } else {
        // The library takes the statistics of f64 from src: those that it is given are f32.
        let double = [shape.src_dt, shape.dst_dt].contains(&DataType::F64);
        let none = vec![0.0; if double && !flags.global_stats { rows } else { 0 }];
        let variance = if none.is_empty() { &data.variance } else { &none };
        let output = backward(&BackwardInput {
            rows,
            cols,
            src: &data.src,
            diff_dst: &data.diff_dst,
            scale: flags.scale.then_some(data.scale.as_slice()),
            mean: (!flags.rms_norm).then_some(data.mean.as_slice()),
            variance,
            epsilon,
            flags,
        });
        let sum = |id, values, terms| expected(id, Kind::ColumnSum, values, terms);
        vec![
            expected(NORM_ARG_DIFF_SRC, result, output.diff_src, output.diff_src_terms),
            sum(NORM_ARG_DIFF_SCALE, output.diff_scale, output.diff_scale_terms),
            sum(NORM_ARG_DIFF_SHIFT, output.diff_shift, output.diff_shift_terms),
        ]
    };
    Prediction { data: inputs, expected }
}

/// The values of an input.
fn values(data: &LnormData, id: i32) -> &Vec<f64> {
    match id {
        NORM_ARG_SRC => &data.src,
        NORM_ARG_SCALE => &data.scale,
        NORM_ARG_SHIFT => &data.shift,
        NORM_ARG_MEAN => &data.mean,
        NORM_ARG_VARIANCE => &data.variance,
        NORM_ARG_DIFF_DST => &data.diff_dst,
        _ => unreachable!("argument {id} is no input"),
    }
}

fn values_mut(data: &mut LnormData, id: i32) -> &mut Vec<f64> {
    match id {
        NORM_ARG_SRC => &mut data.src,
        NORM_ARG_SCALE => &mut data.scale,
        NORM_ARG_SHIFT => &mut data.shift,
        NORM_ARG_MEAN => &mut data.mean,
        NORM_ARG_VARIANCE => &mut data.variance,
        NORM_ARG_DIFF_DST => &mut data.diff_dst,
        _ => unreachable!("argument {id} is no input"),
    }
}

/// The layouts of all tensors, as the library wants them; those that the problem does not use are
/// dense. What the library says of an argument must fit the problem.
pub(super) fn layouts(
    problem: &Problem,
    prepared: &dyn Prepared,
) -> Result<Vec<(Spec, Layout)>, Fault> {
    let unused = arguments(problem).into_iter().filter(|spec| spec.role == Role::Unused);
    match unused.into_iter().find(|spec| prepared.layout(spec.id).is_some()) {
        Some(Spec { name, .. }) => Err(Fault::Damaged(format!(
            "the library has a descriptor of {name}, which is not used"
        ))),
        None => layouts_of_used(problem, prepared),
    }
}

/// The same without a look at what the library says of arguments that are not used.
pub(super) fn layouts_of_used(
    problem: &Problem,
    prepared: &dyn Prepared,
) -> Result<Vec<(Spec, Layout)>, Fault> {
    arguments(problem)
        .into_iter()
        .map(|spec| Ok((spec, layout(problem, prepared, &spec)?)))
        .collect()
}

fn layout(problem: &Problem, prepared: &dyn Prepared, spec: &Spec) -> Result<Layout, Fault> {
    let dims = match spec.extent {
        Extent::Elements => problem.dims.as_slice(),
        Extent::Rows => &problem.dims[..problem.dims.len() - 1],
        Extent::Columns => &problem.dims[problem.dims.len() - 1..],
        Extent::Attribute(index) => {
            let tensor = problem.attribute_tensors().swap_remove(index);
            return Ok(attribute_layout(&tensor, prepared));
        }
    };
    if spec.role == Role::Unused {
        return Ok(Layout::dense(dims, spec.data_type));
    }
    let name = spec.name;
    match prepared.layout(spec.id) {
        None => Err(Fault::Damaged(format!("the library has no descriptor of {name}"))),
        Some(layout) if layout.dims == dims && layout.data_type == spec.data_type => Ok(layout),
        Some(layout) => {
            Err(Fault::Damaged(format!("the library's descriptor of {name} is of {layout}")))
        }
    }
}

/// The layout of a tensor that comes with an attribute: the library's say, if it has one.
fn attribute_layout(tensor: &AttributeTensor, prepared: &dyn Prepared) -> Layout {
    let fits = |layout: &Layout| layout.dims == tensor.dims && layout.data_type == tensor.data_type;
    prepared.layout(tensor.id).filter(fits).unwrap_or_else(|| tensor.layout())
}

/// The tensors of a problem with this data.
pub(super) fn tensors(layouts: &[(Spec, Layout)], data: &Inputs) -> Vec<Tensor> {
    let tensor = |(spec, layout): &(Spec, Layout)| {
        let elements = match (spec.role, spec.extent) {
            (_, Extent::Attribute(index)) => spec.data_type.encode(&data.operands[index]),
            (Role::Input, _) => spec.data_type.encode(values(&data.own, spec.id)),
            (Role::Updated, _) => spec.data_type.encode(&data.before),
            (Role::Output | Role::Unused, _) => Vec::new(),
        };
        Tensor {
            id: spec.id,
            name: spec.name,
            role: spec.role,
            layout: layout.clone(),
            elements: Rc::new(elements),
        }
    };
    layouts.iter().map(tensor).collect()
}

/// Replaces data by what the files `PREFIX.<argument id>.bin` hold, in the very layout of the
/// library's buffers. Statistics that no file gives are taken from src.
pub(super) fn import(
    prefix: &str,
    problem: &Problem,
    layouts: &[(Spec, Layout)],
    inputs: &mut Inputs,
    reporter: &mut Reporter<'_>,
) -> Result<(), Halt> {
    let mut imported = Vec::new();
    let data = Rc::make_mut(&mut inputs.own);
    for (spec, layout) in layouts.iter().filter(|(spec, _)| spec.role == Role::Input) {
        let &Spec { id, name, data_type, .. } = spec;
        let path = PathBuf::from(format!("{prefix}.{id}.bin"));
        let shown = path.display();
        if !path.exists() {
            reporter.detail(2, &format!("{name}: no file {shown}, so the data is made"));
            continue;
        }
        let bytes =
            std::fs::read(&path).map_err(|error| Halt(format!("cannot read {shown}: {error}")))?;
        if bytes.len() != layout.span() {
            let (has, needs) = (bytes.len(), layout.span());
            return Err(Halt(format!("{shown} has {has} bytes, {name} needs {needs}")));
        }
        let values = data_type.decode(&layout.gather(&bytes));
        match spec.extent {
            Extent::Attribute(index) => inputs.operands[index] = values,
            _ => *values_mut(data, id) = values,
        }
        reporter.detail(2, &format!("{name}: read from {shown}"));
        imported.push(id);
    }
    if imported.is_empty() {
        return Err(Halt(format!(
            "no input of {} is in a file {prefix}.<id>.bin",
            problem.line(false)
        )));
    }
    if imported.contains(&NORM_ARG_SRC) {
        let shape = problem.shape();
        let output = forward(&ForwardInput {
            rows: shape.rows,
            cols: shape.cols,
            src: &data.src,
            scale: None,
            shift: None,
            mean: None,
            variance: None,
            epsilon: f64::from(shape.epsilon),
            flags: crate::oracle::lnorm::Flags {
                rms_norm: shape.flags.rms_norm,
                ..Default::default()
            },
        });
        for (id, computed) in [(NORM_ARG_MEAN, output.mean), (NORM_ARG_VARIANCE, output.variance)] {
            let place = values_mut(data, id);
            if !imported.contains(&id) && !place.is_empty() {
                *place = computed.iter().map(|&value| DataType::F32.round(value)).collect();
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::lnorm::Flags;

    fn problem(cols: usize, scale: bool) -> Problem {
        let flags = Flags { scale, ..Flags::default() };
        Problem { dims: vec![4, cols], flags, ..Problem::default() }
    }

    #[test]
    fn predictions_are_found_again_as_far_as_there_is_room() {
        let mut cache = Cache::default();
        let (plain, scaled) = (problem(8, false), problem(8, true));
        let first = cache.prediction(&plain);
        let room_for_one = cache.bytes;
        assert!(room_for_one > 4 * 8 * 8);
        cache.prediction(&scaled);
        assert!(Rc::ptr_eq(&first, &cache.prediction(&plain)));

        // Of two that take turns one is found, not none.
        let mut cache = Cache { limit: room_for_one, ..Cache::default() };
        let first = cache.prediction(&plain);
        for _ in 0..3 {
            let other = cache.prediction(&scaled);
            assert!(!Rc::ptr_eq(&other, &cache.prediction(&scaled)));
            assert!(Rc::ptr_eq(&first, &cache.prediction(&plain)));
        }
        // Another shape makes room for itself.
        let other = cache.prediction(&problem(7, false));
        assert!(Rc::ptr_eq(&other, &cache.prediction(&problem(7, false))));
        assert!(!Rc::ptr_eq(&first, &cache.prediction(&plain)));
        assert!(cache.bytes <= cache.limit && cache.entries.len() == 1);
    }
}
