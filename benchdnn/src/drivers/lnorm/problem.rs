//! One layer normalization problem, and its line.

use super::request::Request;
use super::settings::OPTIONS;
use super::{data, tensors};
use crate::attributes::{AttributeTensor, Attributes, Context, PostOp};
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::driver::line;
use crate::fill::Fill;
use crate::fill::lnorm::LnormShape;
use crate::language::descriptor;
use crate::language::options::word;
use crate::library::{self, TensorRequest, Wanted, has_tag};
use crate::oracle::lnorm::Flags;
use crate::problem::{
    Data, Dependence, Expected, Gradient, Gradients, Key, Problem, Slices, Spec, Unit,
};
use crate::tensor::{Layout, Tag};
use norm_sys::{
    NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SCALE, NORM_ARG_DIFF_SHIFT, NORM_ARG_DIFF_SRC, NORM_ARG_DST,
    NORM_ARG_MEAN, NORM_ARG_SCALE, NORM_ARG_SHIFT, NORM_ARG_SRC, NORM_ARG_VARIANCE,
};
use std::ops::RangeInclusive;

/// The numbers of dimensions that the primitive supports.
pub(super) const DIMENSIONS: RangeInclusive<usize> = 2..=5;

/// One problem.
#[derive(Clone, Debug, PartialEq)]
pub struct LnormProblem {
    /// Dimensions; the last one is normalized.
    pub dims: Vec<usize>,
    /// Its name; often empty.
    pub name: String,
    /// What is computed.
    pub direction: Direction,
    /// Type of src and diff_src.
    pub src_dt: DataType,
    /// Type of dst and diff_dst.
    pub dst_dt: DataType,
    /// Layout of src and diff_src.
    pub src_tag: Tag,
    /// Layout of dst and diff_dst.
    pub dst_tag: Tag,
    /// Layout of mean and variance.
    pub stat_tag: Tag,
    /// Type of scale, shift and their gradients.
    pub ss_dt: DataType,
    /// The kind of normalization.
    pub flags: Flags,
    /// Added to the variance inside the root.
    pub epsilon: f32,
    /// Scales, post-ops and the like.
    pub attributes: Attributes,
    /// Threads for creating the primitive and for executing it.
    pub contexts: [Context; 2],
    /// Whether dst shares the buffer of src, or diff_src that of diff_dst.
    pub inplace: bool,
}

impl Default for LnormProblem {
    /// No dimensions, and the simplest of everything else.
    fn default() -> LnormProblem {
        LnormProblem {
            dims: Vec::new(),
            name: String::new(),
            direction: Direction::default(),
            src_dt: DataType::F32,
            dst_dt: DataType::F32,
            src_tag: Tag::Any,
            dst_tag: Tag::Any,
            stat_tag: Tag::Any,
            ss_dt: DataType::F32,
            flags: Flags::default(),
            epsilon: 0.0,
            attributes: Attributes::default(),
            contexts: [Context::default(); 2],
            inplace: false,
        }
    }
}

impl LnormProblem {
    /// Elements of a row.
    pub fn cols(&self) -> usize {
        self.dims[self.dims.len() - 1]
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.dims[..self.dims.len() - 1].iter().product()
    }

    /// What the data depends on.
    pub fn shape(&self) -> LnormShape {
        LnormShape {
            rows: self.rows(),
            cols: self.cols(),
            src_dt: self.src_dt,
            dst_dt: self.dst_dt,
            ss_dt: self.ss_dt,
            forward: self.direction.is_forward(),
            flags: self.flags,
            epsilon: self.epsilon,
            gain: self.gain(),
        }
    }

    /// The factor that scales apply to an integer result; 1 for other types.
    fn gain(&self) -> f32 {
        match self.direction.is_forward() && self.dst_dt.is_integer() {
            true => self.attributes.gain(),
            false => 1.0,
        }
    }

    /// What the library creates the primitive descriptor from.
    pub fn create_from(&self) -> Request {
        let ndims = self.dims.len();
        Request {
            direction: self.direction,
            dims: self.dims.clone(),
            src: TensorRequest::tagged(&self.src_tag, ndims, self.src_dt),
            dst: TensorRequest::tagged(&self.dst_tag, ndims, self.dst_dt),
            stat: TensorRequest::tagged(&self.stat_tag, ndims - 1, DataType::F32),
            ss_dt: self.ss_dt,
            epsilon: self.epsilon,
            flags: self.flags,
            attributes: self.attributes.clone(),
        }
    }

    fn types_text(&self) -> String {
        both(self.src_dt.name().to_owned(), self.dst_dt.name(), self.src_dt.name())
    }

    fn tags_text(&self) -> String {
        both(self.src_tag.to_string(), &self.dst_tag.to_string(), &Tag::Any.to_string())
    }

    fn flags_text(&self) -> String {
        let Flags { global_stats, scale, shift, rms_norm } = self.flags;
        [(global_stats, 'G'), (scale, 'C'), (shift, 'H'), (rms_norm, 'M')]
            .into_iter()
            .filter_map(|(set, letter)| set.then_some(letter))
            .collect()
    }

    fn epsilon_text(&self) -> String {
        let epsilon = self.epsilon;
        if epsilon != 0.0 && !(1e-3..1e6).contains(&epsilon) {
            format!("{epsilon:e}")
        } else {
            epsilon.to_string()
        }
    }

    fn descriptor(&self) -> String {
        descriptor::text(&self.dims, &self.name)
    }
}

impl Problem for LnormProblem {
    fn name(&self) -> &str {
        &self.name
    }

    fn line(&self, canonical: bool) -> String {
        let said = |name, text: String| word(OPTIONS, name, &text, canonical);
        let own = [
            said("dir", self.direction.name().to_owned()),
            said("dt", self.types_text()),
            said("tag", self.tags_text()),
            said("stat_tag", self.stat_tag.to_string()),
            said("ss_dt", self.ss_dt.name().to_owned()),
            said("flags", self.flags_text()),
            said("eps", self.epsilon_text()),
        ];
        let end = [said("inplace", self.inplace.to_string()), Some(self.descriptor())];
        line(self, canonical, own, end)
    }

    fn entry(&self, name: &str) -> Option<String> {
        Some(match name {
            "desc" => self.descriptor(),
            "dir" => self.direction.name().to_owned(),
            "dt" => self.types_text(),
            "tag" => self.tags_text(),
            "stat_tag" => self.stat_tag.to_string(),
            "ss_dt" => self.ss_dt.name().to_owned(),
            "flags" => self.flags_text(),
            "attr" => self.attributes.words(false).join(" "),
            _ => return None,
        })
    }

    fn unlisted_tag(&self) -> Option<String> {
        let Request { dims, src, dst, stat, .. } = self.create_from();
        [(src, "tag"), (dst, "tag"), (stat, "stat_tag")].into_iter().find_map(|(tensor, option)| {
            match tensor.wanted {
                Wanted::Ordered(order) if !has_tag(&order) => {
                    let letters = Tag::letters(&order);
                    let count = dims.len();
                    Some(format!("no tag {letters}, for --{option} with {count} dimensions"))
                }
                _ => None,
            }
        })
    }

    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn without_attributes(&self) -> Box<dyn Problem> {
        Box::new(LnormProblem { attributes: Attributes::default(), ..self.clone() })
    }

    fn attribute_tensors(&self) -> Vec<AttributeTensor> {
        // The channels of a layer normalization are its columns.
        self.attributes.tensors(&self.dims, self.dims.len() - 1)
    }

    fn contexts(&self) -> [Context; 2] {
        self.contexts
    }

    fn own_tensors(&self) -> Vec<Spec> {
        tensors::own(self)
    }

    fn inplace_pair(&self) -> Option<(i32, i32)> {
        Some(match self.direction.is_forward() {
            true => (NORM_ARG_SRC, NORM_ARG_DST),
            false => (NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC),
        })
    }

    fn works_in_place(&self) -> bool {
        self.inplace
    }

    fn skip_reason(&self) -> Option<String> {
        (self.inplace && self.src_dt != self.dst_dt)
            .then(|| "in place needs src and dst of one type".to_owned())
    }

    /// oneDNN's batches use post-ops of other primitives with all of them.
    fn unimplemented_reason(&self) -> Option<String> {
        let post_op = self.attributes.post_ops.value.iter().find_map(|post_op| match post_op {
            PostOp::Sum { .. } => Some("sum"),
            PostOp::Depthwise { .. } => Some("dw"),
            PostOp::Prelu(_) => Some("prelu"),
            PostOp::Eltwise { .. } | PostOp::Binary(_) => None,
        })?;
        Some(format!("layer normalization has no post-op {post_op}"))
    }

    fn request(&self) -> Box<dyn library::Request> {
        Box::new(self.create_from())
    }

    fn request_with(&self, layouts: &[(i32, Layout)]) -> Option<Box<dyn library::Request>> {
        let mut request = self.create_from();
        for (id, layout) in layouts {
            let tensor = match *id {
                NORM_ARG_SRC | NORM_ARG_DIFF_SRC => &mut request.src,
                NORM_ARG_DST | NORM_ARG_DIFF_DST => &mut request.dst,
                _ => return None,
            };
            tensor.wanted = Wanted::Strided(layout.clone());
        }
        Some(Box::new(request))
    }

    fn fill(&self, fill: Fill) -> Data {
        data::make(&self.shape(), fill)
    }

    fn adjust(&self, data: &mut Data, imported: &[i32]) {
        data::adjust(&self.shape(), data, imported);
    }

    fn expected(&self, data: &Data) -> Vec<Expected> {
        data::expected(&self.shape(), data)
    }

    fn with_attributes(&self, data: &Data, plain: &[Expected]) -> Vec<Expected> {
        data::with_attributes(self, data, plain)
    }

    fn key(&self) -> Option<Key> {
        let shape = self.shape();
        let bare = LnormShape { flags: Flags::default(), gain: 1.0, ..shape };
        let attributes = &self.attributes;
        let inplace = self.inplace && attributes.reads_dst();
        Some(Key {
            family: format!("{bare:?}"),
            plain: format!("{shape:?}"),
            attributes: (!attributes.is_default())
                .then(|| format!("{:?} {attributes:?} {inplace}", self.dims)),
        })
    }

    fn slices(&self) -> Option<Slices> {
        let last = self.dims.len() - 1;
        let mut dims = vec![1; last];
        dims.push(self.cols());
        Some(Slices {
            dims: self.dims[..last].to_vec(),
            noun: "row",
            one: Box::new(LnormProblem { dims, ..self.clone() }),
        })
    }

    fn gradients(&self) -> Result<Gradients, String> {
        if self.direction.is_forward() {
            let message = "--check=grad is for --dir=BWD_D and BWD_DW; forward has no gradients";
            return Err(message.to_owned());
        }
        let dst_dt = if self.src_dt == DataType::F64 { DataType::F64 } else { DataType::F32 };
        let backward = LnormProblem { inplace: false, ..self.clone() };
        let direction = Direction::ForwardTraining;
        let forward = LnormProblem { direction, dst_dt, ..backward.clone() };
        let unit = if self.flags.rms_norm { Unit::Rms } else { Unit::Deviation };
        let rows = Dependence::Parts { count: self.rows(), inner: 1, unit, noun: "row" };
        let columns = Dependence::Linear { inner: 1, count: self.cols(), noun: "column" };
        let of = [
            (NORM_ARG_SRC, NORM_ARG_DIFF_SRC, rows),
            (NORM_ARG_SCALE, NORM_ARG_DIFF_SCALE, columns),
            (NORM_ARG_SHIFT, NORM_ARG_DIFF_SHIFT, columns),
        ];
        Ok(Gradients {
            forward: Box::new(forward),
            backward: Box::new(backward),
            result: NORM_ARG_DST,
            weights: NORM_ARG_DIFF_DST,
            saved: vec![NORM_ARG_MEAN, NORM_ARG_VARIANCE],
            of: of
                .map(|(input, output, dependence)| Gradient { input, output, dependence })
                .to_vec(),
        })
    }
}

/// One value, or two if the second is not implied.
fn both(first: String, second: &str, implied: &str) -> String {
    if second == implied { first } else { format!("{first}:{second}") }
}
