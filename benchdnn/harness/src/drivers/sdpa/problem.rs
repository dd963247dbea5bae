//! One attention as the harness sees it: its line and its request.

use super::choices::Types;
use super::parameters::SdpaProblem;
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
    Data, Dependence, Excerpt, Expected, Gradient, Gradients, Key, Problem, Slices, Spec, Unit,
};
use crate::tensor::{Layout, Tag};
use norm_sys::*;

impl SdpaProblem {
    fn create_from(&self) -> Request {
        let [q, k, v, dst] = self.types.0;
        let diff = self.diff_dt.unwrap_or(q);
        let twins = [self.dims[0].clone(), self.key_dims(), self.value_dims(), self.dst_dims()];
        let ids = [NORM_ARG_QUERIES, NORM_ARG_KEYS, NORM_ARG_VALUES, NORM_ARG_DST];
        let packed = [self.flags.query_offsets(), self.flags.key_offsets()];
        let tagged = |at: usize, data_type| {
            let request = TensorRequest::tagged(&self.tags[at], 4, data_type);
            if !packed[usize::from(matches!(at, 1 | 2))] {
                return request;
            }
            let order = match request.wanted {
                Wanted::Ordered(order) => order,
                _ => (0..4).collect(),
            };
            let dims = self.library_dims(ids[at], twins[at].clone());
            let layout = SdpaProblem::packed_layout(&dims, &order, data_type);
            TensorRequest { data_type, wanted: Wanted::Strided(layout) }
        };
        Request {
            queries: tagged(0, q),
            keys: tagged(1, k),
            values: tagged(2, v),
            dst: tagged(3, dst),
            diff_queries: tagged(0, diff),
            diff_keys: tagged(1, diff),
            diff_values: tagged(2, diff),
            diff_dst: tagged(3, q),
            problem: self.clone(),
        }
    }

    fn descriptor(&self) -> String {
        let sizes = self.dims.each_ref().map(|dims| descriptor::text(dims, ""));
        descriptor::named(&sizes.join(":"), &self.name)
    }

    fn diff_text(&self) -> &'static str {
        self.diff_dt.map_or("", DataType::name)
    }

    fn own_words(&self, canonical: bool) -> [Option<String>; 18] {
        let said = |name, text: &str| word(OPTIONS, name, text, canonical);
        [
            said("dir", self.direction.name()),
            said("dt", &self.types.text()),
            said("diff-dt", self.diff_text()),
            said("qtag", &self.tags[0].to_string()),
            said("ktag", &self.tags[1].to_string()),
            said("vtag", &self.tags[2].to_string()),
            said("dtag", &self.tags[3].to_string()),
            said("mdt", self.mask_dt.name()),
            said("mask", self.mask.name()),
            said("mask-dims", &self.mask_dims),
            said("scale", &self.scale.text()),
            said("diff-mask", &self.diff_mask.to_string()),
            said("kv-scales", self.kv_scales.name()),
            said("window", &self.window.text()),
            said("first-keys", &self.first_keys.to_string()),
            said("soft-cap", &self.soft_cap.to_string()),
            said("flags", &self.flags.text()),
            said("page-size", &self.page_size.to_string()),
        ]
    }
}

impl Problem for SdpaProblem {
    fn name(&self) -> &str {
        &self.name
    }

    fn line(&self, canonical: bool) -> String {
        let inplace = word(OPTIONS, "inplace", &self.inplace.to_string(), canonical);
        let end = [inplace, Some(self.descriptor())];
        line(self, canonical, self.own_words(canonical), end)
    }

    fn entry(&self, name: &str) -> Option<String> {
        Some(match name {
            "desc" => self.descriptor(),
            "dir" => self.direction.name().to_owned(),
            "dt" | "sdt" => self.types.text(),
            "ddt" => self.types.0[3].name().to_owned(),
            "stag" => self.tags[..3].iter().map(Tag::to_string).collect::<Vec<_>>().join(":"),
            "dtag" => self.tags[3].to_string(),
            "tag" => self.tags.iter().map(Tag::to_string).collect::<Vec<_>>().join(":"),
            "mask" => self.mask.name().to_owned(),
            "window" => self.window.text(),
            "flags" => self.flags.text(),
            "attr" => self.attributes.words(false).join(" "),
            _ => return None,
        })
    }

    fn unlisted_tag(&self) -> Option<String> {
        let options = ["qtag", "ktag", "vtag", "dtag"];
        self.tags.iter().zip(options).find_map(|(tag, option)| {
            let order = tag.order(4).ok()??;
            let letters = Tag::letters(&order);
            (!has_tag(&order)).then(|| format!("no tag {letters}, for --{option}"))
        })
    }

    fn sizes(&self) -> Vec<Vec<usize>> {
        self.all_dims()
    }

    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn without_attributes(&self) -> Box<dyn Problem> {
        Box::new(SdpaProblem { attributes: Attributes::default(), ..self.clone() })
    }

    fn attribute_tensors(&self) -> Vec<AttributeTensor> {
        self.attributes.tensors(&self.dst_dims(), 1)
    }

    fn contexts(&self) -> [Context; 2] {
        self.contexts
    }

    fn own_tensors(&self) -> Vec<Spec> {
        if self.is_packed() { self.packed_specs() } else { self.specs() }
    }

    fn inplace_pair(&self) -> Option<(i32, i32)> {
        let [q, _, _, dst] = self.types.0;
        let shape = self.shape();
        let fits = self.direction.is_forward() && q == dst && shape.head == shape.values;
        fits.then_some((NORM_ARG_QUERIES, NORM_ARG_DST))
    }

    fn works_in_place(&self) -> bool {
        self.inplace
    }

    fn skip_reason(&self) -> Option<String> {
        if let Some(reason) = self.refused() {
            return Some(reason);
        }
        let same_tags = self.tags[3] == Tag::Any || self.tags[3] == self.tags[0];
        if self.inplace && (self.inplace_pair().is_none() || !same_tags) {
            return Some(
                "in place needs queries and dst of the same type, size and layout".to_owned(),
            );
        }
        None
    }

    fn is_trivial(&self) -> bool {
        if self.is_packed() { self.packed_hides_most() } else { self.hides_most() }
    }

    fn unimplemented_reason(&self) -> Option<String> {
        let double = self.types.0.contains(&DataType::F64).then_some("f64");
        let scaled = !self.attributes.scales.value.is_empty();
        let scaled = scaled.then_some("scales but those of --kv-scales");
        let points = (!self.attributes.zero_points.value.is_empty()).then_some("zero points");
        let dropout = self.attributes.dropout.value.is_some().then_some("dropout");
        let chain = (!self.attributes.post_ops.value.is_empty()).then_some("post-ops");
        let [q, k, v, dst] = self.types.0;
        let floats = |dt: &DataType| DataType::ROUNDED_FLOATS.contains(dt);
        let stored = |dt: &DataType| floats(dt) || [DataType::S8, DataType::F8E4m3].contains(dt);
        let types = [q, dst].into_iter().find(|dt| !floats(dt));
        let types = types.or([k, v].into_iter().find(|dt| !stored(dt)));
        let what = double.or(scaled).or(points).or(dropout).or(chain);
        let what = what.or(types.map(|dt| dt.name()))?;
        Some(format!("attention has no {what}"))
    }

    fn request(&self) -> Box<dyn library::Request> {
        Box::new(self.create_from())
    }

    fn request_with(&self, layouts: &[(i32, Layout)]) -> Option<Box<dyn library::Request>> {
        let mut request = self.create_from();
        for (id, layout) in layouts {
            let place = match *id {
                NORM_ARG_QUERIES => &mut request.queries,
                NORM_ARG_KEYS => &mut request.keys,
                NORM_ARG_VALUES => &mut request.values,
                NORM_ARG_DST => &mut request.dst,
                NORM_ARG_DIFF_QUERIES => &mut request.diff_queries,
                NORM_ARG_DIFF_KEYS => &mut request.diff_keys,
                NORM_ARG_DIFF_VALUES => &mut request.diff_values,
                NORM_ARG_DIFF_DST => &mut request.diff_dst,
                _ => return None,
            };
            place.wanted = Wanted::Strided(layout.clone());
        }
        Some(Box::new(request))
    }

    fn fill(&self, fill: Fill) -> Data {
        if self.is_packed() { self.packed_data(fill) } else { self.data(fill) }
    }

    fn expected(&self, data: &Data) -> Vec<Expected> {
        if self.is_packed() { self.packed_results(data) } else { self.results(data) }
    }

    fn key(&self) -> Option<Key> {
        let forward = self.direction.is_forward();
        let [q, k, v, dst] = self.types.0;
        let any = || std::array::from_fn(|_| Tag::Any);
        let mut same = SdpaProblem {
            name: String::new(),
            tags: any(),
            inplace: false,
            diff_dt: None,
            attributes: Attributes::default(),
            contexts: [Context::default(); 2],
            ..self.clone()
        };
        if forward {
            same.direction = Direction::ForwardTraining;
            same.types = Types([q, k, v, DataType::F32]);
            same.flags = same.flags.with(norm_sdpa_entropy, false);
        }
        let family = format!("{:?}", (q, dst, forward));
        Some(Key { family, plain: format!("{same:?}"), attributes: None })
    }

    fn slices(&self) -> Option<Slices> {
        if self.is_packed() {
            return None;
        }
        let sequences = self.shape().sequences;
        let own_pool = if self.page_size > 0 { self.pool() } else { 0 };
        let mut one = SdpaProblem { own_pool, ..self.clone() };
        one.dims.iter_mut().for_each(|dims| dims[0] = 1);
        Some(Slices { dims: vec![sequences], noun: "sequence", one: Box::new(one) })
    }

    fn excerpts(&self, data: &Data) -> Vec<Excerpt> {
        if self.is_packed() { self.alone(data) } else { self.parts(data) }
    }

    fn gradients(&self) -> Result<Gradients, String> {
        if self.direction.is_forward() {
            let message = "--check=grad is for --dir=BWD_D; forward has no gradients";
            return Err(message.to_owned());
        }
        if self.is_packed() {
            let message = "--check=grad is for sequences that are not packed";
            return Err(message.to_owned());
        }
        let direction = Direction::ForwardTraining;
        let types = Types([DataType::F32; 4]);
        let forward = SdpaProblem { direction, types, ..self.clone() };
        let shape = self.shape();
        let gradient = |input, output, count, noun| {
            let dependence = Dependence::Parts { count, inner: 1, unit: Unit::One, noun };
            Gradient { input, output, dependence }
        };
        let groups = shape.sequences * shape.groups;
        let rows = shape.sequences * shape.heads * shape.queries;
        let mut of = vec![
            gradient(NORM_ARG_QUERIES, NORM_ARG_DIFF_QUERIES, rows, "query"),
            gradient(NORM_ARG_KEYS, NORM_ARG_DIFF_KEYS, groups, "group"),
            gradient(NORM_ARG_VALUES, NORM_ARG_DIFF_VALUES, groups, "group"),
        ];
        let broadcast = |input, output, dims: [usize; 3], noun| {
            let result = [shape.sequences, shape.heads, shape.queries, shape.values];
            let dependence = Dependence::Broadcast { dims, result, noun };
            Gradient { input, output, dependence }
        };
        if self.flags.sinks() {
            let dims = [1, shape.heads, 1];
            of.push(broadcast(NORM_ARG_SINKS, NORM_ARG_DIFF_SINKS, dims, "head"));
        }
        if let Some([b, h, i, _]) = self.mask_tensor().filter(|_| self.diff_mask) {
            let ids = (NORM_ARG_ATTN_MASK, NORM_ARG_DIFF_ATTN_MASK);
            of.push(broadcast(ids.0, ids.1, [b, h, i], "row of the mask"));
        }
        Ok(Gradients {
            forward: Box::new(forward),
            backward: Box::new(self.clone()),
            results: vec![(NORM_ARG_DST, NORM_ARG_DIFF_DST)],
            saved: vec![(NORM_ARG_DST, NORM_ARG_DST), (NORM_ARG_WORKSPACE, NORM_ARG_WORKSPACE)],
            of,
        })
    }
}
