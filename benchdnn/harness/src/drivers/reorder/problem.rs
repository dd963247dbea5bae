//! One reorder as the harness sees it: its line, its request and its tensors.

use super::data;
use super::parameters::ReorderProblem;
use super::request::Request;
use super::settings::OPTIONS;
use crate::attributes::{AttributeTensor, Attributes, Context};
use crate::driver::line;
use crate::execution::Role;
use crate::fill::{self, Fill};
use crate::language::descriptor;
use crate::language::options::word;
use crate::library::{self, has_tag};
use crate::problem::{Data, Expected, Gradients, Part, Place, Problem, Spec};
use crate::tensor::Tag;
use norm_sys::{NORM_ARG_DST, NORM_ARG_SRC};

impl ReorderProblem {
    fn create_from(&self) -> Request {
        let [src, dst] = self.layouts();
        let strided = [!self.strides[0].is_empty(), !self.strides[1].is_empty()];
        Request { src, dst, strided, attributes: self.attributes.clone() }
    }

    fn strides_text(&self) -> String {
        let joined =
            |strides: &[usize]| strides.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        match &self.strides {
            [src, dst] if src.is_empty() && dst.is_empty() => String::new(),
            [src, dst] => format!("{}:{}", joined(src), joined(dst)),
        }
    }

    /// The names of the types of src and dst.
    fn type_names(&self) -> [&'static str; 2] {
        let [src, dst] = self.absent;
        [src.unwrap_or(self.src_dt.name()), dst.unwrap_or(self.dst_dt.name())]
    }

    fn descriptor(&self) -> String {
        descriptor::text(&self.dims, &self.name)
    }
}

impl Problem for ReorderProblem {
    fn name(&self) -> &str {
        &self.name
    }

    fn line(&self, canonical: bool) -> String {
        let said = |name, text: &str| word(OPTIONS, name, text, canonical);
        let [src_dt, dst_dt] = self.type_names();
        let own = [
            said("sdt", src_dt),
            said("ddt", dst_dt),
            said("stag", &self.src_tag.to_string()),
            said("dtag", &self.dst_tag.to_string()),
            said("strides", &self.strides_text()),
            said("oflag", &self.extra),
            said("runtime-dim-mask", &self.runtime_dims.to_string()),
        ];
        line(self, canonical, own, [Some(self.descriptor())])
    }

    fn entry(&self, name: &str) -> Option<String> {
        let [src_dt, dst_dt] = self.type_names();
        Some(match name {
            "desc" => self.descriptor(),
            "sdt" => src_dt.to_owned(),
            "ddt" => dst_dt.to_owned(),
            "dt" => format!("{src_dt}:{dst_dt}"),
            "stag" => self.src_tag.to_string(),
            "dtag" => self.dst_tag.to_string(),
            "tag" => format!("{}:{}", self.src_tag, self.dst_tag),
            "attr" => self.attributes.words(false).join(" "),
            _ => return None,
        })
    }

    fn unlisted_tag(&self) -> Option<String> {
        let Request { src, dst, strided, .. } = self.create_from();
        let sides = [(src, strided[0], "stag"), (dst, strided[1], "dtag")];
        sides.into_iter().find_map(|(layout, strided, option)| {
            let order = layout.order();
            let letters = Tag::letters(&order);
            // The harness does not know which blocked layouts have a tag.
            let is_plain = !strided && layout.blocks.is_empty();
            (is_plain && !has_tag(&order)).then(|| format!("no tag {letters}, for --{option}"))
        })
    }

    fn sizes(&self) -> Vec<Vec<usize>> {
        vec![self.dims.clone()]
    }

    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn without_attributes(&self) -> Box<dyn Problem> {
        Box::new(ReorderProblem { attributes: Attributes::default(), ..self.clone() })
    }

    fn attribute_tensors(&self) -> Vec<AttributeTensor> {
        self.attributes.tensors(&self.dims, 1)
    }

    fn contexts(&self) -> [Context; 2] {
        self.contexts
    }

    fn own_tensors(&self) -> Vec<Spec> {
        let [src, dst] = self.layouts();
        let dst_role = if self.attributes.reads_dst() { Role::Updated } else { Role::Output };
        let sides = [(NORM_ARG_SRC, "src", Role::Input, src), (NORM_ARG_DST, "dst", dst_role, dst)];
        sides
            .map(|(id, name, role, layout)| Spec {
                part: Part::Main,
                place: Place::Given(layout.clone()),
                ..Spec::new(id, name, role, layout.dims, layout.data_type)
            })
            .to_vec()
    }

    fn skip_reason(&self) -> Option<String> {
        if let Some(name) = self.absent.into_iter().flatten().next() {
            return Some(format!("the library has no {name}"));
        }
        if !self.extra.is_empty() {
            return Some("compensation for convolutions is not implemented".to_owned());
        }
        if self.runtime_dims != 0 {
            return Some("dimensions known only at execution are not implemented".to_owned());
        }
        let sides = [(NORM_ARG_SRC, self.src_dt), (NORM_ARG_DST, self.dst_dt)];
        sides.into_iter().find_map(|(argument, data_type)| {
            let zero_point = self.attributes.zero_point(argument);
            let name = data_type.name();
            zero_point
                .filter(|_| !data_type.is_integer())
                .map(|_| format!("zero points are for integers, not {name}"))
        })
    }

    /// oneDNN's batches have scales and zero points for groups of elements.
    fn unimplemented_reason(&self) -> Option<String> {
        let mut all = self.attributes.quantizations();
        let grouped = all.any(|quantization| !quantization.groups.is_empty());
        grouped.then(|| "reorder has no scales or zero points for groups".to_owned())
    }

    fn request(&self) -> Box<dyn library::Request> {
        Box::new(self.create_from())
    }

    fn fill(&self, _: Fill) -> Data {
        Data::from([(NORM_ARG_SRC, fill::reorder(self.count(), self.src_dt, self.dst_dt))])
    }

    fn expected(&self, data: &Data) -> Vec<Expected> {
        vec![data::expected(self, data)]
    }

    fn gradients(&self) -> Result<Gradients, String> {
        Err("--check=grad: a reorder has no gradients".to_owned())
    }
}
