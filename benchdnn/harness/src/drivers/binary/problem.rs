//! One function of two tensors as the harness sees it: its line, its request, its tensors and its results.

use super::parameters::BinaryProblem;
use super::request::Request;
use super::settings::OPTIONS;
use crate::attributes::{AttributeTensor, Attributes, Context, PostOp};
use crate::check::Kind;
use crate::data_type::DataType;
use crate::driver::line;
use crate::execution::Role;
use crate::fill::{Fill, elementwise};
use crate::language::descriptor::named;
use crate::language::options::word;
use crate::library::{self, TensorRequest, Wanted};
use crate::oracle::binary::{Source, binary};
use crate::oracle::post_ops::BinaryAlgorithm;
use crate::post_op_chain::Chain;
use crate::problem::{Data, Expected, Gradients, Part, Problem, Slices, Spec};
use crate::tensor::{Layout, Tag};
use norm_sys::{
    NORM_ARG_ATTR_SCALES, NORM_ARG_DST, NORM_ARG_SRC_0, NORM_ARG_SRC_1, NORM_ARG_SRC_2,
};

/// The arguments of the sources and their names.
const SOURCES: [(i32, &str); 3] =
    [(NORM_ARG_SRC_0, "src0"), (NORM_ARG_SRC_1, "src1"), (NORM_ARG_SRC_2, "src2")];

impl BinaryProblem {
    fn create_from(&self) -> Request {
        let (ndims, count) = (self.dims[0].len(), self.sources());
        let tag = |source: usize| match (source, self.src_tags.get(source)) {
            (_, Some(tag)) => tag,
            (2, None) => &self.src_tags[0],
            (_, None) => &Tag::Any,
        };
        let request =
            |source: usize| TensorRequest::tagged(tag(source), ndims, self.source_type(source));
        Request {
            algorithm: self.algorithm,
            source_dims: (0..count).map(|source| self.source_dims(source).to_vec()).collect(),
            dims: self.dst_dims(),
            sources: (0..count).map(request).collect(),
            dst: TensorRequest::tagged(&self.dst_tag, ndims, self.dst_dt),
            attributes: self.attributes.clone(),
        }
    }

    fn descriptor(&self) -> String {
        let text =
            |dims: &Vec<usize>| dims.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        let sizes: Vec<String> = self.dims.iter().map(text).collect();
        named(&sizes.join(":"), &self.name)
    }

    fn types(&self) -> String {
        self.src_dts.map(DataType::name).join(":")
    }

    fn tags(&self) -> String {
        self.src_tags.iter().map(Tag::to_string).collect::<Vec<_>>().join(":")
    }

    /// The expected dst, with these attributes' scales.
    fn result(&self, data: &Data, attributes: &Attributes) -> Expected {
        let dims = self.dst_dims();
        let source = |source: usize| {
            let id = SOURCES[source].0;
            let scale =
                attributes.scale(id).map_or(1.0, |_| data.get(NORM_ARG_ATTR_SCALES | id)[0]);
            Source { values: data.get(id), dims: self.source_dims(source), scale }
        };
        let condition = self.algorithm.is_ternary().then(|| source(2));
        let output = binary(self.algorithm, &dims, [source(0), source(1)], condition);
        Expected::new(NORM_ARG_DST, Kind::Chain, output.values, output.bounds)
    }
}

impl Problem for BinaryProblem {
    fn name(&self) -> &str {
        &self.name
    }

    fn line(&self, canonical: bool) -> String {
        let said = |name, text: &str| word(OPTIONS, name, text, canonical);
        let own = [
            said("sdt", &self.types()),
            said("ddt", self.dst_dt.name()),
            said("stag", &self.tags()),
            said("dtag", &self.dst_tag.to_string()),
            said("alg", self.algorithm.name()),
        ];
        let end = [said("inplace", &self.inplace.to_string()), Some(self.descriptor())];
        line(self, canonical, own, end)
    }

    fn entry(&self, name: &str) -> Option<String> {
        Some(match name {
            "desc" => self.descriptor(),
            "sdt" => self.types(),
            "ddt" => self.dst_dt.name().to_owned(),
            "dt" => format!("{}:{}", self.types(), self.dst_dt.name()),
            "stag" => self.tags(),
            "dtag" => self.dst_tag.to_string(),
            "tag" => format!("{}:{}", self.tags(), self.dst_tag),
            "alg" => self.algorithm.name().to_owned(),
            "attr" => self.attributes.words(false).join(" "),
            _ => return None,
        })
    }

    fn sizes(&self) -> Vec<Vec<usize>> {
        let mut sizes = self.dims.clone();
        sizes.push(self.dst_dims());
        sizes
    }

    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn without_attributes(&self) -> Box<dyn Problem> {
        Box::new(BinaryProblem { attributes: Attributes::default(), ..self.clone() })
    }

    fn attribute_tensors(&self) -> Vec<AttributeTensor> {
        self.attributes.tensors(&self.dst_dims(), 1)
    }

    fn contexts(&self) -> [Context; 2] {
        self.contexts
    }

    fn own_tensors(&self) -> Vec<Spec> {
        let dims = self.dst_dims();
        let leading = |own: &[usize]| dims.len() > 1 && own[0] == dims[0];
        let mut specs: Vec<Spec> = (0..self.sources())
            .map(|source| {
                let ((id, name), own) = (SOURCES[source], self.source_dims(source));
                let data_type = self.source_type(source);
                let spec = Spec::new(id, name, Role::Input, own.to_vec(), data_type);
                let part = if own == dims { Part::Main } else { Part::Side };
                Spec { part, sliced: leading(own), ..spec }
            })
            .collect();
        let role = if self.attributes.reads_dst() { Role::Updated } else { Role::Output };
        let (part, sliced) = (Part::Main, leading(&dims));
        let dst = Spec::new(NORM_ARG_DST, "dst", role, dims.clone(), self.dst_dt);
        specs.push(Spec { part, sliced, ..dst });
        specs
    }

    fn inplace_pair(&self) -> Option<(i32, i32)> {
        let same = self.dims[0] == self.dst_dims();
        same.then_some((NORM_ARG_SRC_0, NORM_ARG_DST))
    }

    fn works_in_place(&self) -> bool {
        self.inplace
    }

    fn skip_reason(&self) -> Option<String> {
        if !self.inplace {
            return None;
        }
        let text = |text: &str| Some(text.to_owned());
        let same_tags = [&Tag::Any, &self.src_tags[0]].contains(&&self.dst_tag);
        match () {
            () if self.src_dts[0] != self.dst_dt => {
                text("in place needs src0 and dst of the same type")
            }
            () if self.dims[0] != self.dst_dims() => {
                text("in place needs src0 with dst's dimensions")
            }
            () if !same_tags => text("in place needs src0 and dst with the same layout"),
            () => None,
        }
    }

    /// In a small problem every comparison may be false, two random numbers are rarely equal, and large scales saturate
    /// integers.
    fn is_trivial(&self) -> bool {
        let few = self.dst_dims().iter().product::<usize>() < 10;
        let last = self.attributes.post_ops.value.last();
        let equal = |post_op: &PostOp| matches!(post_op, PostOp::Binary(it) if it.algorithm == BinaryAlgorithm::Eq);
        let saturates = self.dst_dt.is_integer() && self.attributes.gain() > 1e6;
        self.algorithm.is_comparison() && few || last.is_some_and(equal) || saturates
    }

    /// oneDNN's batches also use types and post-ops of other machines and primitives.
    fn unimplemented_reason(&self) -> Option<String> {
        let double = self.src_dts.contains(&DataType::F64) || self.dst_dt == DataType::F64;
        let other = self.attributes.foreign_post_op(true);
        let what = double.then_some("f64").or(other)?;
        Some(format!("binary has no {what}"))
    }

    fn request(&self) -> Box<dyn library::Request> {
        Box::new(self.create_from())
    }

    fn request_with(&self, layouts: &[(i32, Layout)]) -> Option<Box<dyn library::Request>> {
        let mut request = self.create_from();
        for (id, layout) in layouts {
            let source = SOURCES.iter().position(|(source, _)| source == id);
            let place = match source {
                Some(source) => request.sources.get_mut(source)?,
                None if *id == NORM_ARG_DST => &mut request.dst,
                None => return None,
            };
            place.wanted = Wanted::Strided(layout.clone());
        }
        Some(Box::new(request))
    }

    fn fill(&self, fill: Fill) -> Data {
        let mut data = Data::default();
        for source in 0..self.sources() {
            let count = self.source_dims(source).iter().product();
            let (dt, algorithm) = (self.source_type(source), self.algorithm);
            let values = elementwise::operand(count, dt, algorithm, source as u64, fill);
            data.set(SOURCES[source].0, values);
        }
        data
    }

    fn expected(&self, data: &Data) -> Vec<Expected> {
        vec![self.result(data, &Attributes::default())]
    }

    fn with_attributes(&self, data: &Data, _: &[Expected]) -> Vec<Expected> {
        // Scales come before the function, but the chain only handles those of results.
        let scaled = self.result(data, &self.attributes);
        let mut attributes = self.attributes.clone();
        attributes.scales.value.clear();
        let (dims, tensors) = (self.dst_dims(), self.attribute_tensors());
        // In place dst holds src0, which has its type.
        let before = if self.inplace { NORM_ARG_SRC_0 } else { NORM_ARG_DST };
        let chain = Chain {
            attributes: &attributes,
            dims: &dims,
            tensors: &tensors,
            data,
            before: data.get(before),
            held: self.dst_dt,
        };
        [chain.applied_to(&scaled)].into_iter().chain(chain.mask()).collect()
    }

    fn slices(&self) -> Option<Slices> {
        let dims = self.dst_dims();
        // Dropout depends on the index of each element.
        if dims.len() < 2 || self.attributes.dropout.value.is_some() {
            return None;
        }
        let mut one = self.clone();
        one.dims.iter_mut().for_each(|dims| dims[0] = 1);
        Some(Slices { dims: dims[..1].to_vec(), noun: "slice", one: Box::new(one) })
    }

    fn gradients(&self) -> Result<Gradients, String> {
        Err("--check=grad: binary has no gradients".to_owned())
    }
}
