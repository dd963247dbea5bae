//! The packing of gate and up in src, the data of a problem, and the expected results.

use super::parameters::{GatedProblem, Packing};
use crate::attributes::Policy;
use crate::check::Kind;
use crate::data_type::DataType;
use crate::execution::Role;
use crate::fill::{self, Fill, GatedData};
use crate::oracle::dynamic::{self, Quantized};
use crate::oracle::estimate::Estimate;
use crate::oracle::gated::{Gradients, Numbers, Output, backward, forward};
use crate::post_op_chain::Chain;
use crate::problem::{Data, Expected, Part, Place, Problem as _, Spec};
use crate::step_chain;
use crate::tensor::Layout;
use norm_sys::{
    NORM_ARG_ATTR_SCALES, NORM_ARG_ATTR_ZERO_POINTS, NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC,
    NORM_ARG_DIFF_SRC_1, NORM_ARG_DST, NORM_ARG_SRC, NORM_ARG_SRC_1,
};

/// The indices of element `col` of gate and of up in a row of src.
fn places(packing: Packing, cols: usize, col: usize) -> [usize; 2] {
    match packing {
        Packing::GateFirst => [col, cols + col],
        Packing::UpFirst => [cols + col, col],
        Packing::Interleaved => [2 * col, 2 * col + 1],
        Packing::Separate => [col, col],
    }
}

impl GatedProblem {
    fn cols(&self) -> usize {
        self.dims.last().copied().unwrap_or(1)
    }

    /// The dimensions of src.
    pub(super) fn src_dims(&self) -> Vec<usize> {
        let mut dims = self.dims.clone();
        if self.packing != Packing::Separate {
            dims.last_mut().into_iter().for_each(|cols| *cols *= 2);
        }
        dims
    }

    fn numbers(&self) -> Numbers {
        let [alpha, limit, shift] = [self.alpha, self.limit, self.shift].map(f64::from);
        Numbers { alpha, limit, shift }
    }

    /// src, packed from gate and up.
    fn packed(&self, gate: &[f64], up: &[f64]) -> Vec<f64> {
        let cols = self.cols();
        let mut src = vec![0.0; 2 * gate.len()];
        for (i, (gate, up)) in gate.iter().zip(up).enumerate() {
            let [of_gate, of_up] = places(self.packing, cols, i % cols);
            let row = i / cols * 2 * cols;
            (src[row + of_gate], src[row + of_up]) = (*gate, *up);
        }
        src
    }

    /// gate and up, from src and, if they are separate, from src_1.
    fn unpacked(&self, data: &Data) -> [Vec<f64>; 2] {
        let src = data.get(NORM_ARG_SRC);
        if self.packing == Packing::Separate {
            return [src.to_vec(), data.get(NORM_ARG_SRC_1).to_vec()];
        }
        let cols = self.cols();
        [0, 1].map(|part| {
            let place = |i: usize| i / cols * 2 * cols + places(self.packing, cols, i % cols)[part];
            (0..src.len() / 2).map(|i| src[place(i)]).collect()
        })
    }

    pub(super) fn data(&self, fill: Fill) -> Data {
        let types = (self.src_dt, self.dst_dt);
        let count = self.dims.iter().product();
        let limit = f64::from(self.limit);
        let GatedData { gate, up, diff_dst } = fill::gated(count, types, limit, fill);
        match self.packing {
            Packing::Separate => Data::from([
                (NORM_ARG_SRC, gate),
                (NORM_ARG_SRC_1, up),
                (NORM_ARG_DIFF_DST, diff_dst),
            ]),
            _ => {
                Data::from([(NORM_ARG_SRC, self.packed(&gate, &up)), (NORM_ARG_DIFF_DST, diff_dst)])
            }
        }
    }

    pub(super) fn results(&self, data: &Data) -> Vec<Expected> {
        let [gate, up] = self.unpacked(data);
        let (function, numbers) = (self.function, self.numbers());
        let of =
            |id, Output { values, bounds }: Output| Expected::new(id, Kind::Chain, values, bounds);
        if self.direction.is_forward() {
            return vec![of(NORM_ARG_DST, forward(function, numbers, &gate, &up))];
        }
        let diff_dst = data.get(NORM_ARG_DIFF_DST);
        let gradients = backward(function, numbers, [&gate, &up, diff_dst]);
        let Gradients { gate, up, dst } = gradients;
        let mut all = match self.packing {
            Packing::Separate => vec![of(NORM_ARG_DIFF_SRC, gate), of(NORM_ARG_DIFF_SRC_1, up)],
            _ => {
                let values = self.packed(&gate.values, &up.values);
                let bounds = self.packed(&gate.bounds, &up.bounds);
                vec![of(NORM_ARG_DIFF_SRC, Output { values, bounds })]
            }
        };
        if self.rewrites {
            all.push(of(NORM_ARG_DST, dst));
        }
        all
    }

    /// The elements that share a dynamic scale of dst; 0 without one.
    pub(super) fn group(&self) -> usize {
        let scale = self.attributes.scale(NORM_ARG_DST).filter(|scale| {
            matches!(scale.policy, Policy::Mx | Policy::DynamicFp) && self.direction.is_forward()
        });
        scale.map_or(0, |scale| scale.groups.last().copied().unwrap_or(self.cols()).max(1))
    }

    /// dst after the attributes.
    pub(super) fn attributed(&self, data: &Data, plain: &[Expected]) -> Vec<Expected> {
        if !self.direction.is_forward() {
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
        let chained = plain.iter().map(|expected| chain.applied_to(expected));
        match self.group() {
            0 => chained.collect(),
            group => chained.flat_map(|dst| self.quantized(group, &dst)).collect(),
        }
    }

    /// dst with dynamic scales, the scales, and the zero points if there are any.
    fn quantized(&self, group: usize, dst: &Expected) -> Vec<Expected> {
        let scales = self.attributes.scale(NORM_ARG_DST).expect("a problem with dynamic scales");
        let with_zero_points = self.attributes.zero_point(NORM_ARG_DST).is_some();
        let kind = match scales.policy {
            Policy::Mx => dynamic::Kind::PowerOfTwo,
            _ if with_zero_points && self.dst_dt == DataType::U8 => dynamic::Kind::Range,
            _ => dynamic::Kind::Largest,
        };
        let values: Vec<Estimate> = (dst.values.iter().zip(&*dst.terms))
            .map(|(&value, &error)| Estimate { value, error })
            .collect();
        let (data_type, scale_type) = (self.dst_dt, scales.data_type);
        let how = dynamic::Problem { kind, group, data_type, scale_type };
        let Quantized { elements, scales, zero_points } = dynamic::quantize(&how, &values);
        let (id, points) = (NORM_ARG_ATTR_SCALES, NORM_ARG_ATTR_ZERO_POINTS);
        vec![
            step_chain::expected(NORM_ARG_DST, Kind::Chain, &elements),
            step_chain::expected(id | NORM_ARG_DST, Kind::Rounded, &scales),
            step_chain::expected(points | NORM_ARG_DST, Kind::Rounded, &zero_points),
        ]
    }

    /// The operation's own tensors.
    pub(super) fn specs(&self) -> Vec<Spec> {
        use Role::{Input, Output};
        let tensor = |id, name, role, dims: &[usize], data_type| Spec {
            part: Part::Main,
            sliced: self.dims.len() > 1,
            ..Spec::new(id, name, role, dims.to_vec(), data_type)
        };
        let (src_dims, dims) = (self.src_dims(), &self.dims);
        let separate = self.packing == Packing::Separate;
        let mut all = vec![tensor(NORM_ARG_SRC, "src", Input, &src_dims, self.src_dt)];
        if separate {
            all.push(tensor(NORM_ARG_SRC_1, "src_1", Input, dims, self.src_dt));
        }
        if self.direction.is_forward() {
            all.push(tensor(NORM_ARG_DST, "dst", Output, dims, self.dst_dt));
            all.extend(self.dynamic_specs());
            return all;
        }
        all.push(tensor(NORM_ARG_DIFF_DST, "diff_dst", Input, dims, self.dst_dt));
        all.push(tensor(NORM_ARG_DIFF_SRC, "diff_src", Output, &src_dims, self.src_dt));
        if separate {
            all.push(tensor(NORM_ARG_DIFF_SRC_1, "diff_src_1", Output, dims, self.src_dt));
        }
        if self.rewrites {
            all.push(tensor(NORM_ARG_DST, "dst", Output, dims, self.dst_dt));
        }
        all
    }

    /// Dynamic scales and zero points.
    fn dynamic_specs(&self) -> Vec<Spec> {
        let group = self.group();
        if group == 0 {
            return Vec::new();
        }
        let mut dims = self.dims.clone();
        dims.last_mut().into_iter().for_each(|cols| *cols /= group);
        let spec = |id, name, data_type| Spec {
            sliced: self.dims.len() > 1,
            place: Place::Preferred(Layout::dense(&dims, data_type)),
            ..Spec::new(id | NORM_ARG_DST, name, Role::Output, dims.clone(), data_type)
        };
        let attributes = &self.attributes;
        let (scale, point) = (attributes.scale(NORM_ARG_DST), attributes.zero_point(NORM_ARG_DST));
        let scale = scale.map(|it| spec(NORM_ARG_ATTR_SCALES, "dst_scale", it.data_type));
        let point = point.map(|it| spec(NORM_ARG_ATTR_ZERO_POINTS, "dst_zero_point", it.data_type));
        scale.into_iter().chain(point).collect()
    }
}
