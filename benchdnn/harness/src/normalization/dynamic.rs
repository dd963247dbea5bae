//! Dynamic scales of dst: which elements share one, the tensors of scales and zero points, and the expected results.

use crate::attributes::{AttributeTensor, Attributes, Policy};
use crate::check::Kind;
use crate::data_type::DataType;
use crate::execution::Role;
use crate::oracle::dynamic::{self, Quantized};
use crate::oracle::estimate::Estimate;
use crate::post_op_chain::Chain;
use crate::problem::{Expected, Place, Spec};
use crate::step_chain;
use crate::tensor::Layout;
use norm_sys::{NORM_ARG_ATTR_SCALES, NORM_ARG_ATTR_ZERO_POINTS, NORM_ARG_DST};

/// Below this, a value with an error is a zero to which nothing was added; the error is that of subnormal products.
const ZERO: f64 = f32::MIN_POSITIVE as f64 / 1024.0;

/// The dynamic scales of a problem.
#[derive(Clone, Copy, Debug)]
pub struct Dynamic<'a> {
    attributes: &'a Attributes,
    dims: &'a [usize],
    dst_dt: DataType,
    /// The number of neighbours along the last dimension that share a scale.
    group: usize,
}

impl<'a> Dynamic<'a> {
    /// The scales of a problem with these dimensions of dst; `None` without dynamic ones.
    pub fn of(attributes: &'a Attributes, dims: &'a [usize], dst_dt: DataType) -> Option<Self> {
        let scale = attributes.scale(NORM_ARG_DST)?;
        if !matches!(scale.policy, Policy::Mx | Policy::DynamicFp) {
            return None;
        }
        let cols = dims.last().copied().unwrap_or(1);
        let group = scale.groups.last().copied().unwrap_or(cols).max(1);
        Some(Dynamic { attributes, dims, dst_dt, group })
    }

    /// The elements that share a scale.
    pub fn group(&self) -> usize {
        self.group
    }

    /// Scales and zero points: one of each for a group of dst's elements.
    pub fn specs(&self) -> Vec<Spec> {
        let mut dims = self.dims.to_vec();
        dims.last_mut().into_iter().for_each(|cols| *cols /= self.group);
        let spec = |id, name, data_type| Spec {
            sliced: true,
            place: Place::Preferred(Layout::dense(&dims, data_type)),
            ..Spec::new(id | NORM_ARG_DST, name, Role::Output, dims.clone(), data_type)
        };
        let scale = self.attributes.scale(NORM_ARG_DST);
        let point = self.attributes.zero_point(NORM_ARG_DST);
        let scale = scale.map(|it| spec(NORM_ARG_ATTR_SCALES, "dst_scale", it.data_type));
        let point = point.map(|it| spec(NORM_ARG_ATTR_ZERO_POINTS, "dst_zero_point", it.data_type));
        scale.into_iter().chain(point).collect()
    }

    /// dst with dynamic scales, the scales, and the zero points if there are any.
    fn quantized(&self, dst: &Expected) -> Vec<Expected> {
        let scales = self.attributes.scale(NORM_ARG_DST).expect("a problem with dynamic scales");
        let with_zero_points = self.attributes.zero_point(NORM_ARG_DST).is_some();
        let kind = match scales.policy {
            Policy::Mx => dynamic::Kind::PowerOfTwo,
            _ if with_zero_points && self.dst_dt == DataType::U8 => dynamic::Kind::Range,
            _ => dynamic::Kind::Largest,
        };
        let values: Vec<Estimate> = (dst.values.iter().zip(&*dst.terms))
            .map(|(&value, &error)| match value == 0.0 && error < ZERO {
                true => Estimate::exact(0.0),
                false => Estimate { value, error },
            })
            .collect();
        let (group, data_type, scale_type) = (self.group, self.dst_dt, scales.data_type);
        let how = dynamic::Problem { kind, group, data_type, scale_type };
        let Quantized { elements, scales, zero_points } = dynamic::quantize(&how, &values);
        let (id, points) = (NORM_ARG_ATTR_SCALES, NORM_ARG_ATTR_ZERO_POINTS);
        vec![
            step_chain::expected(NORM_ARG_DST, Kind::Chain, &elements),
            step_chain::expected(id | NORM_ARG_DST, Kind::Rounded, &scales),
            step_chain::expected(points | NORM_ARG_DST, Kind::Rounded, &zero_points),
        ]
    }
}

/// The tensors of attributes without dynamic scales and zero points, which are outputs.
pub fn inputs(
    dynamic: Option<Dynamic<'_>>,
    mut tensors: Vec<AttributeTensor>,
) -> Vec<AttributeTensor> {
    if dynamic.is_some() {
        let bases = [NORM_ARG_ATTR_SCALES, NORM_ARG_ATTR_ZERO_POINTS];
        tensors.retain(|tensor| bases.iter().all(|base| tensor.id != base | NORM_ARG_DST));
    }
    tensors
}

/// Replaces the expected dst by that after the attributes.
pub fn with_attributes(
    chain: &Chain<'_>,
    dynamic: Option<Dynamic<'_>>,
    plain: &[Expected],
) -> Vec<Expected> {
    let through = |expected: &Expected| match (expected.id, dynamic) {
        (NORM_ARG_DST, Some(dynamic)) => dynamic.quantized(&chain.applied_to(expected)),
        (NORM_ARG_DST, None) => vec![chain.applied_to(expected)],
        _ => vec![expected.clone()],
    };
    plain.iter().flat_map(through).collect()
}
