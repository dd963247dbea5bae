//! One gated activation as the harness sees it: its line and its request.

use super::parameters::{FUNCTIONS, GatedProblem, Packing};
use super::request::Request;
use super::settings::OPTIONS;
use crate::attributes::{AttributeTensor, Attributes, Context};
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::driver::line;
use crate::fill::Fill;
use crate::language::descriptor;
use crate::language::options::word;
use crate::library::{self, TensorRequest, Wanted, has_tag};
use crate::problem::{
    Data, Dependence, Expected, Gradient, Gradients, Key, Problem, Slices, Spec, Unit,
};
use crate::tensor::{Layout, Tag};
use norm_sys::{
    NORM_ARG_ATTR_SCALES, NORM_ARG_ATTR_ZERO_POINTS, NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC,
    NORM_ARG_DIFF_SRC_1, NORM_ARG_DST, NORM_ARG_SRC, NORM_ARG_SRC_1,
};

impl GatedProblem {
    fn create_from(&self) -> Request {
        let ndims = self.dims.len();
        let src = TensorRequest::tagged(&self.src_tag, ndims, self.src_dt);
        let any = |data_type| TensorRequest { data_type, wanted: Wanted::Any };
        Request {
            direction: self.direction,
            function: self.function,
            packing: self.packing,
            numbers: [self.alpha, self.limit, self.shift],
            dims: self.dims.clone(),
            src_dims: self.src_dims(),
            up: src.clone(),
            src,
            dst: TensorRequest::tagged(&self.dst_tag, ndims, self.dst_dt),
            rewrites: self.rewrites,
            diff_src: any(self.src_dt),
            diff_up: any(self.src_dt),
            diff_dst: any(self.dst_dt),
            attributes: self.attributes.clone(),
        }
    }

    fn descriptor(&self) -> String {
        descriptor::text(&self.dims, &self.name)
    }

    fn function_name(&self) -> &'static str {
        FUNCTIONS[self.function as usize].0
    }

    fn limit_text(&self) -> String {
        if self.limit.is_finite() { self.limit.to_string() } else { "none".to_owned() }
    }
}

impl Problem for GatedProblem {
    fn name(&self) -> &str {
        &self.name
    }

    fn line(&self, canonical: bool) -> String {
        let said = |name, text: &str| word(OPTIONS, name, text, canonical);
        let own = [
            said("dir", self.direction.name()),
            said("sdt", self.src_dt.name()),
            said("ddt", self.dst_dt.name()),
            said("stag", &self.src_tag.to_string()),
            said("dtag", &self.dst_tag.to_string()),
            said("alg", self.function_name()),
            said("packing", self.packing.name()),
            said("alpha", &self.alpha.to_string()),
            said("limit", &self.limit_text()),
            said("shift", &self.shift.to_string()),
            said("rewrite", &self.rewrites.to_string()),
        ];
        let end = [said("inplace", &self.inplace.to_string()), Some(self.descriptor())];
        line(self, canonical, own, end)
    }

    fn entry(&self, name: &str) -> Option<String> {
        Some(match name {
            "desc" => self.descriptor(),
            "dir" => self.direction.name().to_owned(),
            "sdt" => self.src_dt.name().to_owned(),
            "ddt" => self.dst_dt.name().to_owned(),
            "dt" => format!("{}:{}", self.src_dt.name(), self.dst_dt.name()),
            "stag" => self.src_tag.to_string(),
            "dtag" => self.dst_tag.to_string(),
            "tag" => format!("{}:{}", self.src_tag, self.dst_tag),
            "alg" => self.function_name().to_owned(),
            "attr" => self.attributes.words(false).join(" "),
            _ => return None,
        })
    }

    fn unlisted_tag(&self) -> Option<String> {
        let tags = [(&self.src_tag, "stag"), (&self.dst_tag, "dtag")];
        tags.into_iter().find_map(|(tag, option)| {
            let order = tag.order(self.dims.len()).expect("checked with the descriptor")?;
            let letters = Tag::letters(&order);
            (!has_tag(&order)).then(|| format!("no tag {letters}, for --{option}"))
        })
    }

    fn sizes(&self) -> Vec<Vec<usize>> {
        vec![self.dims.clone()]
    }

    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn without_attributes(&self) -> Box<dyn Problem> {
        Box::new(GatedProblem { attributes: Attributes::default(), ..self.clone() })
    }

    fn attribute_tensors(&self) -> Vec<AttributeTensor> {
        let mut tensors = self.attributes.tensors(&self.dims, 1);
        if self.group() > 0 {
            // Dynamic scales and zero points are outputs.
            let bases = [NORM_ARG_ATTR_SCALES, NORM_ARG_ATTR_ZERO_POINTS];
            tensors.retain(|tensor| bases.iter().all(|base| tensor.id != base | NORM_ARG_DST));
        }
        tensors
    }

    fn contexts(&self) -> [Context; 2] {
        self.contexts
    }

    fn own_tensors(&self) -> Vec<Spec> {
        self.specs()
    }

    fn inplace_pair(&self) -> Option<(i32, i32)> {
        Some(match self.direction.is_forward() {
            true if self.packing != Packing::Separate => return None,
            true => (NORM_ARG_SRC, NORM_ARG_DST),
            false => (NORM_ARG_SRC, NORM_ARG_DIFF_SRC),
        })
    }

    fn works_in_place(&self) -> bool {
        self.inplace
    }

    fn skip_reason(&self) -> Option<String> {
        let forward = self.direction.is_forward();
        if self.rewrites && forward {
            return Some("forward writes dst anyway".to_owned());
        }
        if self.inplace && forward {
            if self.packing != Packing::Separate {
                return Some("dst is smaller than a src that has gate and up".to_owned());
            }
            let same_tags = [&Tag::Any, &self.src_tag].contains(&&self.dst_tag);
            if self.src_dt != self.dst_dt || !same_tags {
                return Some("in place needs src and dst of the same type and layout".to_owned());
            }
        }
        None
    }

    fn unimplemented_reason(&self) -> Option<String> {
        let double = [self.src_dt, self.dst_dt].contains(&DataType::F64);
        let other = self.attributes.foreign_post_op(false);
        let what = double.then_some("f64").or(other)?;
        Some(format!("gated activation has no {what}"))
    }

    fn request(&self) -> Box<dyn library::Request> {
        Box::new(self.create_from())
    }

    fn request_with(&self, layouts: &[(i32, Layout)]) -> Option<Box<dyn library::Request>> {
        let mut request = self.create_from();
        for (id, layout) in layouts {
            let place = match *id {
                NORM_ARG_SRC => &mut request.src,
                NORM_ARG_SRC_1 => &mut request.up,
                NORM_ARG_DST => &mut request.dst,
                NORM_ARG_DIFF_SRC => &mut request.diff_src,
                NORM_ARG_DIFF_SRC_1 => &mut request.diff_up,
                NORM_ARG_DIFF_DST => &mut request.diff_dst,
                _ => return None,
            };
            place.wanted = Wanted::Strided(layout.clone());
        }
        Some(Box::new(request))
    }

    fn fill(&self, fill: Fill) -> Data {
        self.data(fill)
    }

    fn expected(&self, data: &Data) -> Vec<Expected> {
        self.results(data)
    }

    fn with_attributes(&self, data: &Data, plain: &[Expected]) -> Vec<Expected> {
        self.attributed(data, plain)
    }

    fn key(&self) -> Option<Key> {
        let types = (self.src_dt, self.dst_dt);
        let numbers = [self.alpha, self.limit, self.shift];
        let what = (self.function, self.packing, self.direction.is_forward(), self.rewrites);
        let attributes = &self.attributes;
        Some(Key {
            family: format!("{types:?}"),
            plain: format!("{:?} {types:?} {what:?} {numbers:?}", self.dims),
            attributes: (!attributes.is_default()).then(|| format!("{attributes:?}")),
        })
    }

    fn slices(&self) -> Option<Slices> {
        let (last, outer) = self.dims.split_last()?;
        if outer.is_empty() {
            return None;
        }
        let mut dims = vec![1; outer.len()];
        dims.push(*last);
        Some(Slices {
            dims: outer.to_vec(),
            noun: "row",
            one: Box::new(GatedProblem { dims, ..self.clone() }),
        })
    }

    fn gradients(&self) -> Result<Gradients, String> {
        if self.direction.is_forward() {
            let message = "--check=grad is for --dir=BWD_D; forward has no gradients";
            return Err(message.to_owned());
        }
        let backward = GatedProblem { inplace: false, ..self.clone() };
        let forward = GatedProblem {
            direction: Direction::ForwardTraining,
            rewrites: false,
            src_dt: DataType::F32,
            dst_dt: DataType::F32,
            ..backward.clone()
        };
        let count = self.dims.iter().rev().skip(1).product();
        let dependence = Dependence::Parts { count, inner: 1, unit: Unit::One, noun: "row" };
        let gradient = |input, output| Gradient { input, output, dependence };
        let mut of = vec![gradient(NORM_ARG_SRC, NORM_ARG_DIFF_SRC)];
        if self.packing == Packing::Separate {
            of.push(gradient(NORM_ARG_SRC_1, NORM_ARG_DIFF_SRC_1));
        }
        Ok(Gradients {
            forward: Box::new(forward),
            backward: Box::new(backward),
            results: vec![(NORM_ARG_DST, NORM_ARG_DIFF_DST)],
            saved: Vec::new(),
            of,
        })
    }
}
