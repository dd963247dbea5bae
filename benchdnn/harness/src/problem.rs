//! The interface of a problem: the traits and values that a driver implements.
//!
//! The modes only see a [`Problem`]. A driver must provide its problem's line, its tensors, the
//! request that creates it, its data and the expected results. Slices, gradients, a cache key and
//! in-place work are optional: without them, a mode omits what needs them.

use crate::attributes::{AttributeTensor, Attributes, Context};
use crate::check::Kind;
use crate::data_type::DataType;
use crate::execution::Role;
use crate::fill::Fill;
use crate::language::descriptor::{MOST_ELEMENTS, is_too_large};
use crate::library::Request;
use crate::tensor::Layout;
use std::fmt;
use std::rc::Rc;

/// One problem of a driver. Its debug text shows everything that its line reproduces.
pub trait Problem: fmt::Debug {
    /// The name that the descriptor gives the problem; often empty.
    fn name(&self) -> &str;

    /// The driver's options that are not at their defaults, or all if `canonical`, and the
    /// descriptor.
    fn line(&self, canonical: bool) -> String;

    /// A driver-specific entry of the performance template, such as `dt`; `None` if there is no such entry.
    fn entry(&self, name: &str) -> Option<String>;

    /// A layout of the problem that the C interface has no tag for, as part of a sentence.
    fn unlisted_tag(&self) -> Option<String> {
        None
    }

    /// The dimensions in the descriptor, and those of tensors with more elements. They may be
    /// too large to multiply.
    fn sizes(&self) -> Vec<Vec<usize>>;

    /// The problem's attributes.
    fn attributes(&self) -> &Attributes;

    /// The same problem without attributes.
    fn without_attributes(&self) -> Box<dyn Problem>;

    /// The tensors that come with the attributes.
    fn attribute_tensors(&self) -> Vec<AttributeTensor>;

    /// Threads for creating the primitive and for executing it.
    fn contexts(&self) -> [Context; 2] {
        [Context::default(); 2]
    }

    /// The operation's own tensors, including unused ones. The first one is the main input. In a pair that can share a
    /// buffer, the input comes before the output.
    fn own_tensors(&self) -> Vec<Spec>;

    /// The input and the output that can share a buffer.
    fn inplace_pair(&self) -> Option<(i32, i32)> {
        None
    }

    /// Whether they do share it.
    fn works_in_place(&self) -> bool {
        false
    }

    /// The pairs of inputs and outputs that do share a buffer.
    fn shared_buffers(&self) -> Vec<(i32, i32)> {
        self.inplace_pair().filter(|_| self.works_in_place()).into_iter().collect()
    }

    /// Why the problem is skipped, whatever the library supports.
    fn skip_reason(&self) -> Option<String> {
        None
    }

    /// Whether most results are 0 by definition, or the same for most data, so that they may not distinguish right from
    /// wrong.
    fn is_trivial(&self) -> bool {
        false
    }

    /// Why the problem is skipped instead of failed if the library does not implement it.
    fn unimplemented_reason(&self) -> Option<String> {
        None
    }

    /// The request from which the library creates the primitive descriptor.
    fn request(&self) -> Box<dyn Request>;

    /// The same with these layouts for the tensors with these ids; `None` if the problem's layouts cannot be chosen.
    fn request_with(&self, _layouts: &[(i32, Layout)]) -> Option<Box<dyn Request>> {
        None
    }

    /// Values of every input of [`own_tensors`](Problem::own_tensors), in row-major order.
    fn fill(&self, fill: Fill) -> Data;

    /// Makes data consistent after the inputs with these ids were read from files.
    fn adjust(&self, _data: &mut Data, _imported: &[i32]) {}

    /// The expected values of every output, without attributes.
    fn expected(&self, data: &Data) -> Vec<Expected>;

    /// Applies the attributes to `plain`, the result of [`expected`](Problem::expected). A driver whose oracle handles
    /// attributes itself omits this.
    fn with_attributes(&self, _data: &Data, plain: &[Expected]) -> Vec<Expected> {
        plain.to_vec()
    }

    /// The parameters of exact data and the oracle's results; `None` disables caching.
    fn key(&self) -> Option<Key> {
        None
    }

    /// The independent parts of the problem; `None` if there are none.
    fn slices(&self) -> Option<Slices> {
        None
    }

    /// Problems whose results are parts of this one's, bit for bit; `data` is this one's.
    fn excerpts(&self, _data: &Data) -> Vec<Excerpt> {
        Vec::new()
    }

    /// The data for `--explain`, or a sentence about why the library cannot explain the problem.
    fn explained(&self) -> Result<Explained, String> {
        Err("the operation does not normalize rows".to_owned())
    }

    /// The gradients that `--check=grad` checks, or a sentence about why there are none.
    fn gradients(&self) -> Result<Gradients, String> {
        Err("--check=grad: the operation has no gradients".to_owned())
    }
}

impl dyn Problem + '_ {
    /// Why the problem cannot exist on any machine. Nothing else is asked of such a problem than its line and
    /// attributes.
    pub fn too_large(&self) -> Option<String> {
        let too_large = self.sizes().iter().any(|dims| is_too_large(dims));
        too_large.then(|| {
            format!(
                "a tensor has more than {MOST_ELEMENTS} elements, the most that benchdnn accepts"
            )
        })
    }

    /// All tensors: the operation's own and those of the attributes.
    pub fn tensors(&self) -> Vec<Spec> {
        let mut all = self.own_tensors();
        let slices = self.slices();
        let ndims = all.first().map_or(0, |main| main.dims.len());
        all.extend(self.attribute_tensors().iter().map(|tensor| {
            let spec = Spec::new(
                tensor.id,
                tensor.name(),
                if tensor.is_output() { Role::Output } else { Role::Input },
                tensor.dims.clone(),
                tensor.data_type,
            );
            let sliced = tensor.dims.len() == ndims
                && slices.as_ref().is_some_and(|slices| tensor.dims.starts_with(&slices.dims));
            Spec { place: Place::Preferred(tensor.layout()), sliced, ..spec }
        }));
        all
    }
}

/// A tensor of a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The argument id.
    pub id: i32,
    /// The name in messages.
    pub name: &'static str,
    /// Its role in the primitive.
    pub role: Role,
    /// Its dimensions.
    pub dims: Vec<usize>,
    /// The type of its elements.
    pub data_type: DataType,
    /// What determines its layout.
    pub place: Place,
    /// Its role in measurements.
    pub part: Part,
    /// Whether its leading dimensions are those of [`Slices`].
    pub sliced: bool,
}

/// What determines a tensor's layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The library, which must have a descriptor of the tensor.
    Queried,
    /// The library, or this layout if it has no descriptor that fits.
    Preferred(Layout),
    /// The problem.
    Given(Layout),
}

/// A tensor's role in measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// `--roofline` copies it, and mode B lays it out in other ways.
    Main,
    /// `--cold-cache=wei` keeps it out of the cache.
    Weights,
    /// Neither.
    Side,
}

impl Spec {
    /// A tensor whose layout the library determines.
    pub fn new(
        id: i32,
        name: &'static str,
        role: Role,
        dims: Vec<usize>,
        data_type: DataType,
    ) -> Spec {
        let (place, part) = (Place::Queried, Part::Side);
        Spec { id, name, role, dims, data_type, place, part, sliced: false }
    }

    /// Number of elements.
    pub fn count(&self) -> usize {
        self.dims.iter().product()
    }
}

/// Values by argument id, all representable in the tensor's type.
#[derive(Clone, Debug, Default)]
pub struct Data(Vec<(i32, Rc<Vec<f64>>)>);

impl Data {
    /// Values of the tensor; empty if there are none.
    pub fn get(&self, id: i32) -> &[f64] {
        self.find(id).map_or(&[], |values| values)
    }

    /// Sets the values of a tensor.
    pub fn set(&mut self, id: i32, values: Vec<f64>) {
        let values = Rc::new(values);
        match self.0.iter_mut().find(|(known, _)| *known == id) {
            Some((_, place)) => *place = values,
            None => self.0.push((id, values)),
        }
    }

    /// Changes the values of a tensor.
    pub fn change(&mut self, id: i32, change: impl FnOnce(&mut Vec<f64>)) {
        let mut values = self.get(id).to_vec();
        change(&mut values);
        self.set(id, values);
    }

    /// Adds the values of tensors that have none here.
    pub fn complete(&mut self, other: &Data) {
        for (id, values) in &other.0 {
            if self.get(*id).is_empty() {
                self.0.retain(|(known, _)| known != id);
                self.0.push((*id, values.clone()));
            }
        }
    }

    /// Number of values, of all tensors.
    pub fn len(&self) -> usize {
        self.0.iter().map(|(_, values)| values.len()).sum()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn find(&self, id: i32) -> Option<&Rc<Vec<f64>>> {
        self.0.iter().find(|(known, _)| *known == id).map(|(_, values)| values)
    }
}

impl<const N: usize> From<[(i32, Vec<f64>); N]> for Data {
    fn from(values: [(i32, Vec<f64>); N]) -> Data {
        Data(values.into_iter().map(|(id, values)| (id, Rc::new(values))).collect())
    }
}

/// The expected values of an output.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The argument id.
    pub id: i32,
    /// What the values are, which decides the tolerance.
    pub kind: Kind,
    /// The values, in row-major order.
    pub values: Rc<Vec<f64>>,
    /// The terms that errors are relative to; see [`check::check`](crate::check::check).
    pub terms: Rc<Vec<f64>>,
}

impl Expected {
    /// From values and terms.
    pub fn new(id: i32, kind: Kind, values: Vec<f64>, terms: Vec<f64>) -> Expected {
        Expected { id, kind, values: Rc::new(values), terms: Rc::new(terms) }
    }
}

/// The parameters of exact data and the oracle's results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Problems that alternate in a batch have the same family, so that their results are kept together.
    pub family: String,
    /// The problem without attributes.
    pub plain: String,
    /// The attributes, and what their results depend on; `None` without attributes.
    pub attributes: Option<String>,
}

/// A problem's independent parts. The results of each depend only on its own inputs.
#[derive(Debug)]
pub struct Slices {
    /// The leading dimensions of all [`sliced`](Spec::sliced) tensors: one slice for each index.
    pub dims: Vec<usize>,
    /// The word for a slice in messages.
    pub noun: &'static str,
    /// The problem of a single slice.
    pub one: Box<dyn Problem>,
}

impl Slices {
    /// How many slices there are.
    pub fn count(&self) -> usize {
        self.dims.iter().product()
    }
}

/// A problem whose results are parts of another's.
#[derive(Debug)]
pub struct Excerpt {
    /// The description in messages.
    pub what: String,
    /// The problem.
    pub problem: Box<dyn Problem>,
    /// Its data.
    pub data: Data,
    /// The compared results, each with the indices of its elements in the other problem's.
    pub places: Vec<(i32, Vec<usize>)>,
}

/// A normalization of rows of src.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Explained {
    /// The argument with the rows.
    pub src: i32,
    /// What is added to them, and the type that the sum is rounded to.
    pub added: Option<(i32, DataType)>,
    /// The factor per column, if there is one.
    pub scale: Option<i32>,
    /// Added under the root.
    pub epsilon: f32,
    /// Whether there is no mean.
    pub rms_norm: bool,
    /// Whether 1 is added to the factors.
    pub plus_one: bool,
}

/// A backward problem and the forward one whose gradients it computes.
#[derive(Debug)]
pub struct Gradients {
    /// The forward problem, with results in f32 or f64.
    pub forward: Box<dyn Problem>,
    /// The backward problem.
    pub backward: Box<dyn Problem>,
    /// Results of forward, each with the input of backward that weights it: its gradient.
    pub results: Vec<(i32, i32)>,
    /// Outputs of forward, and the inputs of backward that they become.
    pub saved: Vec<(i32, i32)>,
    /// The inputs of forward that have gradients.
    pub of: Vec<Gradient>,
}

/// An input and its gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gradient {
    /// The input of forward.
    pub input: i32,
    /// The output of backward.
    pub output: i32,
    /// How the result depends on the input.
    pub dependence: Dependence,
}

/// The scale on which a result changes with its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The deviation of a part from its mean.
    Deviation,
    /// The root mean square of a part.
    Rms,
    /// The same for all parts: 1.
    One,
}

/// How a result depends on an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependence {
    /// Each of `count` equal parts of the result depends on the same part of the input.
    Parts {
        /// How many parts.
        count: usize,
        /// The distance between elements of a part.
        inner: usize,
        /// The unit of the step.
        unit: Unit,
        /// The word for a part in messages.
        noun: &'static str,
    },
    /// Each row of the input is a part. The rows of the result that it is broadcast to depend on it. The unit is 1.
    Broadcast {
        /// The input's dimensions but the last, each that of the result or 1.
        dims: [usize; 3],
        /// The result's dimensions.
        result: [usize; 4],
        /// The word for a row of the input in messages.
        noun: &'static str,
    },
    /// The result is linear in the input. Element `i` of the result only depends on element `i / inner % count`.
    Linear {
        /// Neighbouring elements of the result that share an element of the input.
        inner: usize,
        /// Elements of the input.
        count: usize,
        /// The word for an element of the input in messages.
        noun: &'static str,
    },
}
