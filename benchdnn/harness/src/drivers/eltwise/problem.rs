//! One elementwise function of a tensor as the harness sees it: its line, its request, its tensors and its results.

use super::parameters::EltwiseProblem;
use super::request::Request;
use super::settings::OPTIONS;
use crate::attributes::{AttributeTensor, Attributes, Context};
use crate::check::Kind;
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::driver::line;
use crate::execution::Role;
use crate::fill::{Fill, elementwise};
use crate::language::descriptor;
use crate::language::options::word;
use crate::library::{self, TensorRequest, Wanted};
use crate::oracle::eltwise::{backward, forward, reads_dst, wide_backward, wide_forward};
use crate::oracle::post_ops::EltwiseAlgorithm;
use crate::post_op_chain::Chain;
use crate::problem::{
    Data, Dependence, Expected, Gradient, Gradients, Part, Problem, Slices, Spec, Unit,
};
use crate::tensor::{Layout, Tag};
use norm_sys::{NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC, NORM_ARG_DST, NORM_ARG_SRC};

impl EltwiseProblem {
    fn create_from(&self) -> Request {
        let ndims = self.dims.len();
        let any = |data_type| TensorRequest { data_type, wanted: Wanted::Any };
        Request {
            direction: self.direction,
            algorithm: self.algorithm,
            parameters: [self.alpha, self.beta],
            dims: self.dims.clone(),
            src: TensorRequest::tagged(&self.src_tag, ndims, self.src_dt),
            dst: TensorRequest::tagged(&self.dst_tag, ndims, self.dst_dt),
            diff_src: any(self.src_dt),
            diff_dst: any(self.dst_dt),
            attributes: self.attributes.clone(),
        }
    }

    fn descriptor(&self) -> String {
        descriptor::text(&self.dims, &self.name)
    }

    fn types(&self) -> String {
        match (self.src_dt.name(), self.dst_dt.name()) {
            (src, dst) if src == dst => src.to_owned(),
            (src, dst) => format!("{src}:{dst}"),
        }
    }

    fn tags(&self) -> String {
        match &self.dst_tag {
            Tag::Any => self.src_tag.to_string(),
            dst => format!("{}:{dst}", self.src_tag),
        }
    }

    /// Why the function does not support these parameters or this direction.
    fn invalid(&self) -> Option<&'static str> {
        use EltwiseAlgorithm::*;
        match self.algorithm {
            Clip | ClipV2 | ClipV2Dst if self.beta < self.alpha => {
                Some("a clip needs alpha at most beta")
            }
            EluDst | ReluDst if self.alpha < 0.0 => {
                Some("a gradient from dst needs alpha of 0 or more")
            }
            Round if !self.direction.is_forward() => Some("round has no gradient"),
            _ => None,
        }
    }
}

impl Problem for EltwiseProblem {
    fn name(&self) -> &str {
        &self.name
    }

    fn line(&self, canonical: bool) -> String {
        let said = |name, text: &str| word(OPTIONS, name, text, canonical);
        let own = [
            said("dir", self.direction.name()),
            said("dt", &self.types()),
            said("tag", &self.tags()),
            said("alg", self.algorithm.name()),
            said("alpha", &self.alpha.to_string()),
            said("beta", &self.beta.to_string()),
        ];
        let end = [said("inplace", &self.inplace.to_string()), Some(self.descriptor())];
        line(self, canonical, own, end)
    }

    fn entry(&self, name: &str) -> Option<String> {
        Some(match name {
            "desc" => self.descriptor(),
            "dir" => self.direction.name().to_owned(),
            "dt" => self.types(),
            "tag" => self.tags(),
            "alg" => self.algorithm.name().to_owned(),
            "attr" => self.attributes.words(false).join(" "),
            _ => return None,
        })
    }

    fn sizes(&self) -> Vec<Vec<usize>> {
        vec![self.dims.clone()]
    }

    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn without_attributes(&self) -> Box<dyn Problem> {
        Box::new(EltwiseProblem { attributes: Attributes::default(), ..self.clone() })
    }

    fn attribute_tensors(&self) -> Vec<AttributeTensor> {
        self.attributes.tensors(&self.dims, 1)
    }

    fn contexts(&self) -> [Context; 2] {
        self.contexts
    }

    fn own_tensors(&self) -> Vec<Spec> {
        use Role::{Input, Output};
        let tensor = |id, name, role, data_type| Spec {
            part: Part::Main,
            sliced: self.dims.len() > 1,
            ..Spec::new(id, name, role, self.dims.clone(), data_type)
        };
        let (id, name, data_type) = self.read();
        match self.direction.is_forward() {
            true => vec![
                tensor(NORM_ARG_SRC, "src", Input, self.src_dt),
                tensor(NORM_ARG_DST, "dst", Output, self.dst_dt),
            ],
            false => vec![
                tensor(id, name, Input, data_type),
                tensor(NORM_ARG_DIFF_DST, "diff_dst", Input, self.dst_dt),
                tensor(NORM_ARG_DIFF_SRC, "diff_src", Output, self.src_dt),
            ],
        }
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
        let text = |text: &str| Some(text.to_owned());
        if self.inplace && self.src_dt != self.dst_dt {
            return text("in place needs src and dst of the same type");
        }
        let same_tags = [&Tag::Any, &self.src_tag].contains(&&self.dst_tag);
        if self.inplace && self.direction.is_forward() && !same_tags {
            return text("in place needs src and dst with the same layout");
        }
        self.invalid().map(str::to_owned)
    }

    /// oneDNN's batches also use types and post-ops of other machines and primitives.
    fn unimplemented_reason(&self) -> Option<String> {
        let wide = self.is_wide() && self.attributes.change_results();
        let other = self.attributes.foreign_post_op(false);
        let what = wide.then_some("attributes with f64").or(other)?;
        Some(format!("eltwise has no {what}"))
    }

    /// Whether the parameters make the function, or backward its derivative, 0 everywhere, or a number that integers
    /// round to 0 or to which post-operations may add its negative.
    fn is_trivial(&self) -> bool {
        use EltwiseAlgorithm::*;
        let (alpha, beta) = (self.alpha, self.beta);
        let constant = match self.algorithm {
            Pow => alpha == 0.0 || beta == 0.0,
            Linear => alpha == 0.0,
            Clip | ClipV2 | ClipV2Dst => alpha == beta,
            _ => false,
        };
        if !self.attributes.post_ops.value.is_empty() {
            return constant;
        }
        if constant && self.dst_dt.is_integer() {
            return true;
        }
        match (self.algorithm, self.direction.is_forward()) {
            (Pow, true) => alpha == 0.0,
            (Pow, false) => alpha == 0.0 || beta == 0.0,
            (Linear, true) => alpha == 0.0 && beta == 0.0,
            (Clip | ClipV2 | ClipV2Dst, true) => alpha == 0.0 && beta == 0.0,
            (Clip | ClipV2 | ClipV2Dst, false) => alpha == beta,
            (Hardsigmoid, true) | (Hardswish, _) => alpha == 0.0 && beta <= 0.0,
            (Linear | Hardsigmoid, false) => alpha == 0.0,
            _ => false,
        }
    }

    fn request(&self) -> Box<dyn library::Request> {
        Box::new(self.create_from())
    }

    fn request_with(&self, layouts: &[(i32, Layout)]) -> Option<Box<dyn library::Request>> {
        let mut request = self.create_from();
        for (id, layout) in layouts {
            let place = match *id {
                NORM_ARG_SRC => &mut request.src,
                NORM_ARG_DST => &mut request.dst,
                NORM_ARG_DIFF_SRC => &mut request.diff_src,
                NORM_ARG_DIFF_DST => &mut request.diff_dst,
                _ => return None,
            };
            place.wanted = Wanted::Strided(layout.clone());
        }
        Some(Box::new(request))
    }

    fn fill(&self, fill: Fill) -> Data {
        let (count, function) = (self.count(), self.function());
        let src = elementwise::eltwise(count, self.src_dt, function, self.smooth, fill);
        let mut data = Data::default();
        if !self.direction.is_forward() {
            // Differences are exact with weights of few bits.
            let fine = self.dst_dt == DataType::F64 && self.smooth;
            let dt = if fine { DataType::F32 } else { self.dst_dt };
            data.set(NORM_ARG_DIFF_DST, elementwise::gradient(count, dt));
        }
        if !self.direction.is_forward() && reads_dst(self.algorithm) {
            let dst = match self.is_wide() {
                true => wide_forward(function, &src).values,
                false => forward(function, &src).values,
            };
            data.set(NORM_ARG_DST, dst.into_iter().map(|value| self.dst_dt.round(value)).collect());
        } else {
            data.set(NORM_ARG_SRC, src);
        }
        data
    }

    fn expected(&self, data: &Data) -> Vec<Expected> {
        let function = self.function();
        let (forward, backward): (fn(_, _) -> _, fn(_, _, _) -> _) = match self.is_wide() {
            true => (wide_forward, wide_backward),
            false => (forward, backward),
        };
        let (id, output) = if self.direction.is_forward() {
            (NORM_ARG_DST, forward(function, data.get(NORM_ARG_SRC)))
        } else {
            let (read, diff_dst) = (data.get(self.read().0), data.get(NORM_ARG_DIFF_DST));
            (NORM_ARG_DIFF_SRC, backward(function, read, diff_dst))
        };
        // An f64 result is rounded once to any type.
        let kind = if self.is_wide() { Kind::Rounded } else { Kind::Chain };
        vec![Expected::new(id, kind, output.values, output.bounds)]
    }

    fn with_attributes(&self, data: &Data, plain: &[Expected]) -> Vec<Expected> {
        // No attribute changes a result in f64.
        if self.is_wide() {
            return plain.to_vec();
        }
        let tensors = self.attribute_tensors();
        let chain = Chain {
            attributes: &self.attributes,
            dims: &self.dims,
            tensors: &tensors,
            data,
            before: &[],
            held: self.dst_dt,
        };
        plain.iter().map(|expected| chain.applied_to(expected)).chain(chain.mask()).collect()
    }

    fn slices(&self) -> Option<Slices> {
        // Dropout depends on the index of each element.
        if self.dims.len() < 2 || self.attributes.dropout.value.is_some() {
            return None;
        }
        let mut dims = self.dims.clone();
        dims[0] = 1;
        Some(Slices {
            dims: self.dims[..1].to_vec(),
            noun: "slice",
            one: Box::new(EltwiseProblem { dims, ..self.clone() }),
        })
    }

    fn gradients(&self) -> Result<Gradients, String> {
        if self.direction.is_forward() {
            let message = "--check=grad is for --dir=BWD_D; forward has no gradients";
            return Err(message.to_owned());
        }
        let backward = EltwiseProblem { inplace: false, smooth: true, ..self.clone() };
        let (direction, src_dt, dst_dt) =
            (Direction::ForwardTraining, DataType::F32, DataType::F32);
        let forward = EltwiseProblem { direction, src_dt, dst_dt, ..backward.clone() };
        let dependence =
            Dependence::Parts { count: self.count(), inner: 1, unit: Unit::One, noun: "element" };
        let saved = match reads_dst(self.algorithm) {
            true => vec![(NORM_ARG_DST, NORM_ARG_DST)],
            false => Vec::new(),
        };
        Ok(Gradients {
            forward: Box::new(forward),
            backward: Box::new(backward),
            results: vec![(NORM_ARG_DST, NORM_ARG_DIFF_DST)],
            saved,
            of: vec![Gradient { input: NORM_ARG_SRC, output: NORM_ARG_DIFF_SRC, dependence }],
        })
    }
}
