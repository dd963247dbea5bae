//! One softmax as the harness sees it: its line, its request, its tensors and its results.

use super::parameters::{Algorithm, SoftmaxProblem};
use super::request::Request;
use super::settings::OPTIONS;
use crate::attributes::{AttributeTensor, Attributes, Context, PostOp};
use crate::check::Kind;
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::driver::line;
use crate::execution::Role;
use crate::fill::{self, Fill, SoftmaxData};
use crate::language::descriptor;
use crate::language::options::word;
use crate::library::{self, TensorRequest, Wanted, has_tag};
use crate::oracle::post_ops::BinaryAlgorithm;
use crate::oracle::softmax::{Arithmetic, Rows, backward, forward_or, logarithms};
use crate::post_op_chain::Chain;
use crate::problem::{
    Data, Dependence, Expected, Gradient, Gradients, Key, Part, Problem, Slices, Spec, Unit,
};
use crate::tensor::{Layout, Tag};
use norm_sys::{
    NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC, NORM_ARG_DST, NORM_ARG_SOFTMAX_STATS, NORM_ARG_SRC,
};

impl SoftmaxProblem {
    fn create_from(&self) -> Request {
        let ndims = self.dims.len();
        let any = |data_type| TensorRequest { data_type, wanted: Wanted::Any };
        Request {
            direction: self.direction,
            algorithm: self.algorithm,
            dims: self.dims.clone(),
            axis: self.axis,
            src: TensorRequest::tagged(&self.src_tag, ndims, self.src_dt),
            dst: TensorRequest::tagged(&self.dst_tag, ndims, self.dst_dt),
            diff_src: any(self.src_dt),
            diff_dst: any(self.dst_dt),
            stats: TensorRequest::tagged(&self.stats_tag, ndims, DataType::F32),
            attributes: self.attributes.clone(),
        }
    }

    fn descriptor(&self) -> String {
        descriptor::text(&self.dims, &self.name)
    }
}

impl Problem for SoftmaxProblem {
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
            said("alg", self.algorithm.name()),
            said("axis", &self.axis.to_string()),
            said("stats", &self.stats_tag.to_string()),
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
            "alg" => self.algorithm.name().to_owned(),
            "axis" => self.axis.to_string(),
            "attr" => self.attributes.words(false).join(" "),
            _ => return None,
        })
    }

    fn unlisted_tag(&self) -> Option<String> {
        let tags = [(&self.src_tag, "stag"), (&self.dst_tag, "dtag")];
        tags.into_iter().find_map(|(tag, option)| {
            let order = tag.order(self.dims.len()).expect("checked with the descriptor")?;
            let letters = Tag::letters(&order);
            let listed = !tag.blocks().is_empty() || has_tag(&order);
            (!listed).then(|| format!("no tag {letters}, for --{option}"))
        })
    }

    fn sizes(&self) -> Vec<Vec<usize>> {
        vec![self.dims.clone()]
    }

    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn without_attributes(&self) -> Box<dyn Problem> {
        Box::new(SoftmaxProblem { attributes: Attributes::default(), ..self.clone() })
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
            sliced: self.axis > 0,
            ..Spec::new(id, name, role, self.dims.clone(), data_type)
        };
        match self.direction.is_forward() {
            true => vec![
                tensor(NORM_ARG_SRC, "src", Input, self.src_dt),
                tensor(NORM_ARG_DST, "dst", Output, self.dst_dt),
            ]
            .into_iter()
            .chain(self.has_stats().then(|| Spec {
                sliced: self.axis > 0,
                ..Spec::new(
                    NORM_ARG_SOFTMAX_STATS,
                    "softmax_stats",
                    Output,
                    self.stats_dims(),
                    DataType::F32,
                )
            }))
            .collect(),
            false => vec![
                tensor(NORM_ARG_DST, "dst", Input, self.dst_dt),
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
        if self.inplace && self.src_dt != self.dst_dt {
            return Some("in place needs src and dst of the same type".to_owned());
        }
        let same_tags = [&Tag::Any, &self.src_tag].contains(&&self.dst_tag);
        if self.inplace && self.direction.is_forward() && !same_tags {
            return Some("in place needs src and dst with the same layout".to_owned());
        }
        None
    }

    /// A single element has share 1 and logarithm 0. Integers are 0 or saturate if shares are too small or too large.
    fn is_trivial(&self) -> bool {
        let dropout = self.attributes.dropout.value.is_some();
        let post_ops = &self.attributes.post_ops.value;
        let (gain, cols) = (self.attributes.gain(), self.rows().cols);
        let keeps_zero = |post_op: &PostOp| matches!(post_op, PostOp::Binary(it) if it.algorithm == BinaryAlgorithm::Mul);
        let log = self.algorithm == Algorithm::Logsoftmax;
        self.direction.is_forward()
            && match self.dst_dt {
                // Dropped shares add to those that are rounded to 0.
                dt if dropout && dt.is_integer() => true,
                _ if log && cols == 1 && post_ops.iter().all(keeps_zero) => true,
                // Logarithms of shares are negative, and most are below -2.
                DataType::U8 if log => true,
                DataType::S8 if log => gain > 64.0,
                // A post-operation may make most results negative.
                DataType::U8 if !post_ops.is_empty() => true,
                DataType::S8 if cols == 1 => gain > 127.0,
                // A sixth of the elements share most of the sum, unevenly. Half of them may be below 1/2, which rounds
                // to 0.
                dt if dt.is_integer() => gain * 6.0 / (cols.max(6) as f32) < 1.0,
                _ => false,
            }
    }

    /// oneDNN's batches also use types and post-ops of other machines and primitives.
    fn unimplemented_reason(&self) -> Option<String> {
        let wide = self.arithmetic() == Arithmetic::F64 && self.attributes.change_results();
        let other = self.attributes.foreign_post_op(false);
        let what = wide.then_some("attributes with f64").or(other)?;
        Some(format!("softmax has no {what}"))
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
        let types = (self.src_dt, self.dst_dt);
        let mut filled = fill::softmax(self.rows(), types, self.log(), fill);
        if self.algorithm == Algorithm::InfAsZero && !self.src_dt.is_integer() {
            filled.empty_rows(self.rows());
        }
        let SoftmaxData { src, dst, diff_dst } = filled;
        Data::from([(NORM_ARG_SRC, src), (NORM_ARG_DST, dst), (NORM_ARG_DIFF_DST, diff_dst)])
    }

    fn expected(&self, data: &Data) -> Vec<Expected> {
        let (rows, log, arithmetic) = (self.rows(), self.log(), self.arithmetic());
        // An f64 result is rounded once to any type.
        let kind = match arithmetic {
            Arithmetic::F32 => Kind::Chain,
            Arithmetic::F64 => Kind::Rounded,
        };
        let stats = self.has_stats().then(|| {
            let output = logarithms(rows, data.get(NORM_ARG_SRC), arithmetic);
            Expected::new(NORM_ARG_SOFTMAX_STATS, kind, output.values, output.terms)
        });
        let main = if self.direction.is_forward() {
            let empty = (self.algorithm == Algorithm::InfAsZero).then_some(0.0);
            let output = forward_or(rows, data.get(NORM_ARG_SRC), log, empty, arithmetic);
            Expected::new(NORM_ARG_DST, kind, output.values, output.terms)
        } else {
            let (dst, diff_dst) = (data.get(NORM_ARG_DST), data.get(NORM_ARG_DIFF_DST));
            let mut output = backward(rows, dst, diff_dst, log);
            if arithmetic == Arithmetic::F64 {
                for (terms, value) in output.terms.iter_mut().zip(&output.values) {
                    *terms = Kind::Double.bound(*value, *terms);
                }
            }
            let kind = if kind == Kind::Chain { Kind::Result } else { kind };
            Expected::new(NORM_ARG_DIFF_SRC, kind, output.values, output.terms)
        };
        [main].into_iter().chain(stats).collect()
    }

    fn with_attributes(&self, data: &Data, plain: &[Expected]) -> Vec<Expected> {
        // No attribute changes a result in f64.
        if self.arithmetic() == Arithmetic::F64 {
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
        let applied = |expected: &Expected| match expected.id {
            NORM_ARG_SOFTMAX_STATS => expected.clone(),
            _ => chain.applied_to(expected),
        };
        plain.iter().map(applied).chain(chain.mask()).collect()
    }

    fn key(&self) -> Option<Key> {
        let types = (self.src_dt, self.dst_dt);
        let plain = format!(
            "{:?} {} {types:?} {:?} {} {}",
            self.dims,
            self.axis,
            self.algorithm,
            self.direction.is_forward(),
            self.has_stats()
        );
        let attributes = &self.attributes;
        Some(Key {
            family: format!("{types:?}"),
            plain,
            attributes: (!attributes.is_default()).then(|| format!("{attributes:?}")),
        })
    }

    fn slices(&self) -> Option<Slices> {
        // Dropout depends on the index of each element.
        if self.axis == 0 || self.attributes.dropout.value.is_some() {
            return None;
        }
        let mut dims = vec![1; self.axis];
        dims.extend(&self.dims[self.axis..]);
        Some(Slices {
            dims: self.dims[..self.axis].to_vec(),
            noun: "slice",
            one: Box::new(SoftmaxProblem { dims, ..self.clone() }),
        })
    }

    fn gradients(&self) -> Result<Gradients, String> {
        if self.direction.is_forward() {
            let message = "--check=grad is for --dir=BWD_D; forward has no gradients";
            return Err(message.to_owned());
        }
        let stats_tag = Tag::Undef;
        let backward = SoftmaxProblem { inplace: false, stats_tag, ..self.clone() };
        // Rows are far from 0, where short types are too coarse for a step.
        let (direction, src_dt, dst_dt) =
            (Direction::ForwardTraining, DataType::F32, DataType::F32);
        let forward = SoftmaxProblem { direction, src_dt, dst_dt, ..backward.clone() };
        let Rows { outer, inner, .. } = self.rows();
        let dependence =
            Dependence::Parts { count: outer * inner, inner, unit: Unit::One, noun: "row" };
        Ok(Gradients {
            forward: Box::new(forward),
            backward: Box::new(backward),
            results: vec![(NORM_ARG_DST, NORM_ARG_DIFF_DST)],
            saved: vec![(NORM_ARG_DST, NORM_ARG_DST)],
            of: vec![Gradient { input: NORM_ARG_SRC, output: NORM_ARG_DIFF_SRC, dependence }],
        })
    }
}
