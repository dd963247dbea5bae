//! One rope as the harness sees it: its line, its request, its tensors and its results.

use super::choices::Angles;
use super::parameters::{PAIRINGS, RopeProblem};
use super::request::Request;
use super::settings::OPTIONS;
use crate::attributes::{AttributeTensor, Attributes, Context};
use crate::check::Kind;
use crate::data_type::DataType;
use crate::direction::Direction;
use crate::driver::line;
use crate::execution::Role;
use crate::fill::{self, Fill, RopeFill};
use crate::language::descriptor;
use crate::language::options::word;
use crate::library::{self, TensorRequest, Wanted, has_tag};
use crate::oracle::rope::{Norm, normalized, rotated};
use crate::problem::{
    Data, Dependence, Expected, Gradient, Gradients, Key, Part, Problem, Slices, Spec, Unit,
};
use crate::tensor::{Layout, Tag};
use norm_sys::{
    NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC, NORM_ARG_DST, NORM_ARG_POSITIONS, NORM_ARG_ROPE_COS,
    NORM_ARG_ROPE_FREQUENCIES, NORM_ARG_ROPE_SIN, NORM_ARG_SCALE, NORM_ARG_SLOTS, NORM_ARG_SRC,
};

impl RopeProblem {
    fn create_from(&self) -> Request {
        let ndims = self.dims.len();
        // Slots need a layout, and so does the input of backward.
        let dst_tag = match &self.dst_tag {
            Tag::Any if self.flags.slots() || !self.direction.is_forward() => &self.src_tag,
            tag => tag,
        };
        Request {
            src: TensorRequest::tagged(&self.src_tag, ndims, self.src_dt),
            dst: TensorRequest::tagged(dst_tag, ndims, self.dst_dt),
            diff_src: TensorRequest { data_type: self.src_dt, wanted: Wanted::Any },
            problem: self.clone(),
        }
    }

    fn descriptor(&self) -> String {
        descriptor::text(&self.dims, &self.name)
    }

    /// The input and the output.
    fn ids(&self) -> (i32, i32) {
        match self.direction.is_forward() {
            true => (NORM_ARG_SRC, NORM_ARG_DST),
            false => (NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC),
        }
    }

    /// A row of the output, and its error bounds.
    fn row(&self, row: usize, data: &Data) -> (Vec<f64>, Vec<f64>) {
        let cols = self.cols();
        let head = &data.get(self.ids().0)[row * cols..(row + 1) * cols];
        let scale = self.flags.scale().then(|| data.get(NORM_ARG_SCALE));
        let (head, errors) = if self.flags.norm() {
            let (epsilon, plus_one) = (f64::from(self.epsilon), self.flags.plus_one());
            let round = |x| self.dst_dt.round(x);
            let round: Option<&dyn Fn(f64) -> f64> =
                if self.flags.rounded() { Some(&round) } else { None };
            normalized(head, &Norm { epsilon, scale, plus_one }, round)
        } else {
            (head.to_vec(), Vec::new())
        };
        rotated(&head, &errors, self.pairing, &self.angles_of(row, data))
    }
}

impl Problem for RopeProblem {
    fn name(&self) -> &str {
        &self.name
    }

    fn line(&self, canonical: bool) -> String {
        let said = |name, text: &str| word(OPTIONS, name, text, canonical);
        let own = [
            said("dir", self.direction.name()),
            said("sdt", self.src_dt.name()),
            said("ddt", self.dst_dt.name()),
            said("positions", self.position_dt.name()),
            said("stag", &self.src_tag.to_string()),
            said("dtag", &self.dst_tag.to_string()),
            said("pairing", PAIRINGS[self.pairing as usize].0),
            said("angles", self.angles.name()),
            said("tables", self.table_dt.name()),
            said("tokens", &self.tokens),
            said("index-dim", &self.index_dim.to_string()),
            said("rotary", &self.rotary.to_string()),
            said("magnitude", &self.magnitude.to_string()),
            said("sections", &self.sections_text()),
            said("flags", &self.flags.text()),
            said("eps", &format!("{:e}", self.epsilon)),
            said("limit", &self.limit.to_string()),
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
            "tag" => format!("{}:{}", self.src_tag, self.dst_tag),
            "pairing" => PAIRINGS[self.pairing as usize].0.to_owned(),
            "flags" => self.flags.text(),
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
        Box::new(RopeProblem { attributes: Attributes::default(), ..self.clone() })
    }

    fn attribute_tensors(&self) -> Vec<AttributeTensor> {
        self.attributes.tensors(&self.dims, 1)
    }

    fn contexts(&self) -> [Context; 2] {
        self.contexts
    }

    fn own_tensors(&self) -> Vec<Spec> {
        use Role::{Input, Output};
        let (input, output) = self.ids();
        let forward = self.direction.is_forward();
        let main = |id, name, role, dims, data_type| Spec {
            part: Part::Main,
            sliced: true,
            ..Spec::new(id, name, role, dims, data_type)
        };
        let mut all = if forward {
            vec![
                main(input, "src", Input, self.dims.clone(), self.src_dt),
                main(output, "dst", self.dst_role(), self.dst_dims(), self.dst_dt),
            ]
        } else {
            vec![
                main(input, "diff_dst", Input, self.dims.clone(), self.dst_dt),
                main(output, "diff_src", Output, self.dims.clone(), self.src_dt),
            ]
        };
        let mut add = |id, name, dims, data_type| {
            all.push(Spec::new(id, name, Input, dims, data_type));
        };
        add(NORM_ARG_POSITIONS, "positions", self.position_dims(), self.position_dt);
        match self.angles {
            Angles::Frequencies => {
                let dims = vec![self.pairs()];
                add(NORM_ARG_ROPE_FREQUENCIES, "rope_frequencies", dims, DataType::F64);
            }
            Angles::Tables => {
                let dims = vec![self.table_rows(), self.pairs()];
                add(NORM_ARG_ROPE_COS, "rope_cos", dims.clone(), self.table_dt);
                add(NORM_ARG_ROPE_SIN, "rope_sin", dims, self.table_dt);
            }
        }
        if self.flags.scale() {
            add(NORM_ARG_SCALE, "scale", vec![self.cols()], DataType::F32);
        }
        if self.flags.slots() {
            add(NORM_ARG_SLOTS, "slots", vec![self.dims[0]], DataType::S64);
        }
        all[2].sliced = self.own_positions()[0] == self.dims[0];
        all.extend(self.gradient_tensors());
        all
    }

    fn inplace_pair(&self) -> Option<(i32, i32)> {
        (!self.flags.slots()).then(|| self.ids())
    }

    fn works_in_place(&self) -> bool {
        self.inplace
    }

    fn skip_reason(&self) -> Option<String> {
        if let Some(reason) = self.refused() {
            return Some(reason.to_owned());
        }
        let slots = self.flags.slots();
        if self.inplace && (self.src_dt != self.dst_dt || slots) {
            return Some("in place needs src and dst of the same type, without slots".to_owned());
        }
        let same_tags = [&Tag::Any, &self.src_tag].contains(&&self.dst_tag);
        if self.inplace && self.direction.is_forward() && !same_tags {
            return Some("in place needs src and dst with the same layout".to_owned());
        }
        None
    }

    fn request(&self) -> Box<dyn library::Request> {
        Box::new(self.create_from())
    }

    fn request_with(&self, layouts: &[(i32, Layout)]) -> Option<Box<dyn library::Request>> {
        let mut request = self.create_from();
        for (id, layout) in layouts {
            let place = match *id {
                NORM_ARG_SRC => &mut request.src,
                NORM_ARG_DST | NORM_ARG_DIFF_DST => &mut request.dst,
                NORM_ARG_DIFF_SRC => &mut request.diff_src,
                _ => return None,
            };
            place.wanted = Wanted::Strided(layout.clone());
        }
        Some(Box::new(request))
    }

    fn fill(&self, fill: Fill) -> Data {
        let (input, _) = self.ids();
        let table = match self.angles {
            Angles::Frequencies => 0,
            Angles::Tables => self.table_rows() * self.pairs(),
        };
        let data = fill::rope(
            &RopeFill {
                src: if self.through_norm() {
                    (self.dims.iter().product(), self.src_dt)
                } else {
                    (0, self.src_dt)
                },
                count: self.dims.iter().product(),
                data_type: if self.direction.is_forward() { self.src_dt } else { self.dst_dt },
                positions: self.position_dims().iter().product(),
                limit: self.limit(),
                pairs: self.pairs(),
                table: (table, self.table_dt),
                scale: (if self.flags.scale() { self.cols() } else { 0 }, DataType::F32),
                slots: if self.flags.slots() { (self.dims[0], self.dst_dims()[0]) } else { (0, 0) },
            },
            fill,
        );
        let [cos, sin] = data.tables;
        Data::from([
            (input, data.input),
            // In forward, src is `input`.
            (if self.through_norm() { NORM_ARG_SRC } else { 0 }, data.src),
            (NORM_ARG_POSITIONS, data.positions),
            (NORM_ARG_ROPE_FREQUENCIES, data.frequencies),
            (NORM_ARG_ROPE_COS, cos),
            (NORM_ARG_ROPE_SIN, sin),
            (NORM_ARG_SCALE, data.scale),
            (NORM_ARG_SLOTS, data.slots),
            (if self.flags.slots() { NORM_ARG_DST } else { 0 }, self.held()),
        ])
    }

    fn expected(&self, data: &Data) -> Vec<Expected> {
        if self.through_norm() {
            return self.through_expected(data);
        }
        let cols = self.cols();
        let rows: usize = self.outer().iter().product();
        let count: usize = self.dst_dims().iter().product();
        // With slots, the others keep what they held.
        let mut values = data.get(NORM_ARG_DST).to_vec();
        values.resize(count, 0.0);
        let mut terms = vec![0.0; count];
        for row in 0..rows {
            let Some(to) = self.dst_row(row, data) else { continue };
            let (one, bounds) = self.row(row, data);
            values[to * cols..(to + 1) * cols].copy_from_slice(&one);
            terms[to * cols..(to + 1) * cols].copy_from_slice(&bounds);
        }
        vec![Expected::new(self.ids().1, Kind::Chain, values, terms)]
    }

    fn key(&self) -> Option<Key> {
        let (inplace, contexts) = (false, [Context::default(); 2]);
        let (src_tag, dst_tag) = (Tag::Any, Tag::Any);
        let direction =
            if self.direction.is_forward() { Direction::ForwardTraining } else { self.direction };
        let attributes = Attributes::default();
        let same = RopeProblem {
            inplace,
            contexts,
            src_tag,
            dst_tag,
            direction,
            attributes,
            ..self.clone()
        };
        let family = format!("{:?}", (self.src_dt, self.dst_dt));
        Some(Key { family, plain: format!("{same:?}"), attributes: None })
    }

    fn slices(&self) -> Option<Slices> {
        if self.flags.slots() || self.index() == Some(0) {
            return None;
        }
        let mut dims = self.dims.clone();
        dims[0] = 1;
        let one = RopeProblem { dims, ..self.clone() };
        Some(Slices { dims: vec![self.dims[0]], noun: "slice", one: Box::new(one) })
    }

    fn gradients(&self) -> Result<Gradients, String> {
        if self.direction.is_forward() {
            let message = "--check=grad is for --dir=BWD_D and BWD_DW; forward has no gradients";
            return Err(message.to_owned());
        }
        // A rounded function is constant between its steps.
        let flags = self.flags.without_rounding();
        let backward = RopeProblem { inplace: false, flags, ..self.clone() };
        let (direction, src_dt, dst_dt) =
            (Direction::ForwardTraining, DataType::F32, DataType::F32);
        let forward = RopeProblem { direction, src_dt, dst_dt, ..backward.clone() };
        let count: usize = self.outer().iter().product();
        let unit = if flags.norm() { Unit::Rms } else { Unit::One };
        let dependence = Dependence::Parts { count, inner: 1, unit, noun: "head" };
        Ok(Gradients {
            forward: Box::new(forward),
            backward: Box::new(backward),
            results: vec![(NORM_ARG_DST, NORM_ARG_DIFF_DST)],
            saved: Vec::new(),
            of: vec![Gradient { input: NORM_ARG_SRC, output: NORM_ARG_DIFF_SRC, dependence }],
        })
    }
}
