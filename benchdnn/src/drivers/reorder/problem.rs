//! One reorder: what it is, the tensors that it has, and the line that makes it again.

use super::library::Request;
use super::settings::OPTIONS;
use crate::attributes::{ATTRIBUTES, AttributeTensor, Attributes, Context};
use crate::execution::Role;
use crate::fill::DataType;
use crate::language::descriptor;
use crate::language::options::word;
use crate::tensor::{Layout, Tag};
use norm_sys::{NORM_ARG_DST, NORM_ARG_SRC};
use std::ops::RangeInclusive;

/// The fewest and the most dimensions of the primitive.
pub(super) const DIMENSIONS: RangeInclusive<usize> = 1..=12;

/// What is kept with the elements of dst for a convolution, as written: `FLAG:MASK[+...]`.
pub(super) type Extra = String;

/// One problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Dimensions.
    pub dims: Vec<usize>,
    /// The name that was given to it; often empty.
    pub name: String,
    /// Type of src.
    pub src_dt: DataType,
    /// Type of dst.
    pub dst_dt: DataType,
    /// Layout of src.
    pub src_tag: Tag,
    /// Layout of dst.
    pub dst_tag: Tag,
    /// Strides of src and dst in place of the tags; empty where a tag counts.
    pub strides: [Vec<usize>; 2],
    /// See `Extra`; empty for nothing.
    pub extra: String,
    /// Bits of the dimensions that are known only when it is executed.
    pub runtime_dims: u64,
    /// Factors, zero points and a sum.
    pub attributes: Attributes,
    /// Threads for creating the primitive and for executing it.
    pub contexts: [Context; 2],
}

impl Default for Problem {
    /// No dimensions; everything else is plain.
    fn default() -> Problem {
        let plain = Tag::parse("abx").expect("a tag");
        Problem {
            dims: Vec::new(),
            name: String::new(),
            src_dt: DataType::F32,
            dst_dt: DataType::F32,
            src_tag: plain.clone(),
            dst_tag: plain,
            strides: [Vec::new(), Vec::new()],
            extra: String::new(),
            runtime_dims: 0,
            attributes: Attributes::default(),
            contexts: [Context::default(); 2],
        }
    }
}

/// A tensor of a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The argument id.
    pub id: i32,
    /// What people call it.
    pub name: &'static str,
    /// What the primitive does with it.
    pub role: Role,
    /// How its elements lie in memory.
    pub layout: Layout,
}

/// The tensors of a problem: src, dst, and those of the attributes in their order.
pub fn arguments(problem: &Problem) -> Vec<Spec> {
    let [src, dst] = problem.layouts();
    let role = if problem.attributes.reads_dst() { Role::Updated } else { Role::Output };
    let mut all = vec![
        Spec { id: NORM_ARG_SRC, name: "src", role: Role::Input, layout: src },
        Spec { id: NORM_ARG_DST, name: "dst", role, layout: dst },
    ];
    all.extend(problem.attribute_tensors().iter().map(|tensor| Spec {
        id: tensor.id,
        name: tensor.name(),
        role: Role::Input,
        layout: tensor.layout(),
    }));
    all
}

impl Problem {
    /// Elements of the tensor.
    pub fn count(&self) -> usize {
        self.dims.iter().product()
    }

    /// The layouts of src and dst.
    pub fn layouts(&self) -> [Layout; 2] {
        let sides = [
            (&self.src_tag, &self.strides[0], self.src_dt),
            (&self.dst_tag, &self.strides[1], self.dst_dt),
        ];
        sides.map(|(tag, strides, data_type)| {
            if !strides.is_empty() {
                return Layout::strided(&self.dims, strides, data_type);
            }
            match tag.order(self.dims.len()).expect("checked with the descriptor") {
                Some(order) => Layout::blocked(&self.dims, &order, tag.blocks(), data_type),
                None => Layout::dense(&self.dims, data_type),
            }
        })
    }

    /// The tensors that come with the attributes.
    pub fn attribute_tensors(&self) -> Vec<AttributeTensor> {
        self.attributes.tensors(&self.dims, 1)
    }

    /// What the library is asked for.
    pub fn request(&self) -> Request {
        let [src, dst] = self.layouts();
        let strided = [!self.strides[0].is_empty(), !self.strides[1].is_empty()];
        Request { src, dst, strided, attributes: self.attributes.clone() }
    }

    /// The options that are not at their defaults, or all if `canonical`, and the descriptor.
    pub fn line(&self, canonical: bool) -> String {
        let said = |name, text: &str| word(OPTIONS, name, text, canonical);
        let mut words: Vec<String> = [
            said("sdt", self.src_dt.name()),
            said("ddt", self.dst_dt.name()),
            said("stag", &self.src_tag.to_string()),
            said("dtag", &self.dst_tag.to_string()),
            said("strides", &self.strides_text()),
            said("oflag", &self.extra),
            said("runtime-dim-mask", &self.runtime_dims.to_string()),
        ]
        .into_iter()
        .flatten()
        .collect();
        words.extend(self.attributes.words(canonical));
        for (name, context) in ["ctx-init", "ctx-exe"].into_iter().zip(self.contexts) {
            words.extend(word(ATTRIBUTES, name, &context.text(), canonical));
        }
        words.push(self.descriptor());
        words.join(" ")
    }

    /// What the performance template calls `name`.
    pub fn entry(&self, name: &str) -> Option<String> {
        Some(match name {
            "desc" => self.descriptor(),
            "sdt" => self.src_dt.name().to_owned(),
            "ddt" => self.dst_dt.name().to_owned(),
            "dt" => format!("{}:{}", self.src_dt.name(), self.dst_dt.name()),
            "stag" => self.src_tag.to_string(),
            "dtag" => self.dst_tag.to_string(),
            "tag" => format!("{}:{}", self.src_tag, self.dst_tag),
            "attr" => self.attributes.words(false).join(" "),
            _ => return None,
        })
    }

    fn strides_text(&self) -> String {
        let joined =
            |strides: &[usize]| strides.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        match &self.strides {
            [src, dst] if src.is_empty() && dst.is_empty() => String::new(),
            [src, dst] => format!("{}:{}", joined(src), joined(dst)),
        }
    }

    fn descriptor(&self) -> String {
        descriptor::text(&self.dims, &self.name)
    }
}
