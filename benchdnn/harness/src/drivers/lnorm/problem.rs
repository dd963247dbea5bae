//! One layer normalization as the harness sees it: its line and its request.

use super::parameters::LnormProblem;
use super::request::Request;
use super::settings::OPTIONS;
use super::{data, gradients, tensors};
use crate::attributes::{AttributeTensor, Attributes, Context};
use crate::data_type::DataType;
use crate::driver::line;
use crate::fill::Fill;
use crate::fill::lnorm::LnormShape;
use crate::language::descriptor;
use crate::language::options::word;
use crate::library::{self, TensorRequest, Wanted, has_tag};
use crate::normalization::{self, flags_text, residual_tags_text, tags_text, types_text};
use crate::oracle::lnorm::Flags;
use crate::problem::{Data, Expected, Explained, Gradients, Key, Problem, Slices, Spec};
use crate::steps::{Partial, Residual, Steps, text};
use crate::tensor::{Layout, Tag};
use norm_sys::*;

impl LnormProblem {
    /// The request from which the library creates the primitive descriptor.
    pub fn create_from(&self) -> Request {
        let ndims = self.dims.len();
        Request {
            direction: self.direction,
            dims: self.dims.clone(),
            src: TensorRequest::tagged(&self.src_tag, ndims, self.shape().src_dt),
            diff_src: TensorRequest::tagged(&self.src_tag, ndims, self.src_dt),
            dst: TensorRequest::tagged(&self.dst_tag, ndims, self.dst_dt),
            stat: TensorRequest::tagged(&self.stat_tag, ndims - 1, DataType::F32),
            ss_dt: self.ss_dt,
            epsilon: self.epsilon,
            flags: self.flags,
            attributes: self.attributes.clone(),
            steps: {
                let (steps, tag) = (&self.steps, &self.src_tag);
                let shared = |data_type| self.shared_row(data_type);
                normalization::steps_request(
                    steps,
                    tag,
                    ndims,
                    steps.partial.elements(self.cols()),
                    shared,
                )
            },
        }
    }

    /// One row that all rows share.
    fn shared_row(&self, data_type: DataType) -> TensorRequest {
        let last = self.dims.len() - 1;
        let strides: Vec<usize> = (0..=last).map(|d| usize::from(d == last)).collect();
        let layout = Layout::strided(&self.dims, &strides, data_type);
        TensorRequest { data_type, wanted: Wanted::Strided(layout) }
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

    /// Why the options contradict each other.
    fn contradiction(&self) -> Option<String> {
        let Steps { partial, .. } = self.steps;
        if partial.elements(self.cols()) > self.cols() {
            return Some("--partial has more elements than a row".to_owned());
        }
        let forward = self.direction.is_forward();
        normalization::contradiction(&self.steps, self.flags, self.inplace, forward)
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
            said("dt", types_text(self.src_dt, self.dst_dt)),
            said("tag", tags_text(&self.src_tag, &self.dst_tag)),
            said("stat_tag", self.stat_tag.to_string()),
            said("ss_dt", self.ss_dt.name().to_owned()),
            said("flags", flags_text(self.flags)),
            said("eps", self.epsilon_text()),
            said("residual", text(self.steps.residual)),
            said("residual_tag", residual_tags_text(&self.steps)),
            said("gate", text(self.steps.gate)),
            said("gate_tag", self.steps.gate_tag.to_string()),
            said("partial", self.steps.partial.to_string()),
        ];
        let end = [said("inplace", self.inplace.name().to_owned()), Some(self.descriptor())];
        line(self, canonical, own, end)
    }

    fn entry(&self, name: &str) -> Option<String> {
        Some(match name {
            "desc" => self.descriptor(),
            "dir" => self.direction.name().to_owned(),
            "dt" => types_text(self.src_dt, self.dst_dt),
            "tag" => tags_text(&self.src_tag, &self.dst_tag),
            "stat_tag" => self.stat_tag.to_string(),
            "ss_dt" => self.ss_dt.name().to_owned(),
            "flags" => flags_text(self.flags),
            "residual" => text(self.steps.residual),
            "gate" => text(self.steps.gate),
            "partial" => self.steps.partial.to_string(),
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

    fn sizes(&self) -> Vec<Vec<usize>> {
        vec![self.dims.clone()]
    }

    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn without_attributes(&self) -> Box<dyn Problem> {
        Box::new(LnormProblem { attributes: Attributes::default(), ..self.clone() })
    }

    fn attribute_tensors(&self) -> Vec<AttributeTensor> {
        // The channels of a layer normalization are its columns.
        let tensors = self.attributes.tensors(&self.dims, self.dims.len() - 1);
        normalization::inputs(self.dynamic(), tensors)
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
        self.inplace.of_dst()
    }

    fn shared_buffers(&self) -> Vec<(i32, i32)> {
        self.inplace.pairs(self.inplace_pair().expect("a pair"))
    }

    fn skip_reason(&self) -> Option<String> {
        if self.works_in_place() && self.src_dt != self.dst_dt {
            return Some("in place needs src and dst of the same type".to_owned());
        }
        self.contradiction()
    }

    /// oneDNN's batches use post-ops of other primitives with all primitives.
    fn unimplemented_reason(&self) -> Option<String> {
        let post_op = self.attributes.foreign_post_op(false)?;
        Some(format!("layer normalization has no {post_op}"))
    }

    fn request(&self) -> Box<dyn library::Request> {
        Box::new(self.create_from())
    }

    fn request_with(&self, layouts: &[(i32, Layout)]) -> Option<Box<dyn library::Request>> {
        let mut request = self.create_from();
        for (id, layout) in layouts {
            let tensor = match *id {
                NORM_ARG_SRC => &mut request.src,
                NORM_ARG_DIFF_SRC => &mut request.diff_src,
                NORM_ARG_DST | NORM_ARG_DIFF_DST => &mut request.dst,
                id => normalization::step_tensor(&mut request.steps, id)?,
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
        let inplace = self.works_in_place() && attributes.reads_dst();
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

    fn explained(&self) -> Result<Explained, String> {
        let unknown = [
            (self.flags.gate(), "gates", "--gate and its flag"),
            (self.steps.partial != Partial::Whole, "partial norms", "--partial"),
            (self.flags.global_stats, "given statistics", "the flag G"),
        ];
        if let Some((_, what, option)) = unknown.into_iter().find(|(is_set, ..)| *is_set) {
            return Err(format!("--explain does not support {what}: remove {option}"));
        }
        // In backward, src is the stored sum.
        let residual = self.steps.residual.filter(|_| self.direction.is_forward());
        let normalized = |residual: Residual| match residual.exact {
            true => DataType::F32,
            false => residual.stored(),
        };
        let Flags { rms_norm, plus_one, scale, .. } = self.flags;
        Ok(Explained {
            src: NORM_ARG_SRC,
            added: residual.map(|residual| (NORM_ARG_RESIDUAL, normalized(residual))),
            scale: scale.then_some(NORM_ARG_SCALE),
            epsilon: self.epsilon,
            rms_norm,
            plus_one,
        })
    }

    fn gradients(&self) -> Result<Gradients, String> {
        gradients::of(self)
    }
}
