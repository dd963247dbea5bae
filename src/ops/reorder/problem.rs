//! The validated problem.

use super::convert::Arithmetic;
use crate::error::{Error, Result};
use crate::heap;
use crate::primitive::{Accepted, Arguments, Attr, OpArgument, PostOp, Quantized, Usage};
use crate::simd::read_wide;
use crate::tensor::{DataType, Layout, MemoryDesc};
use norm_sys as sys;

/// A validated problem.
#[derive(Debug)]
pub(crate) struct Reorder {
    pub(super) src: MemoryDesc,
    pub(super) dst: MemoryDesc,
    pub(super) src_type: DataType,
    pub(super) dst_type: DataType,
    pub(super) quantized: Quantizations,
    pub(super) arguments: Vec<OpArgument>,
}

/// The scales, zero points and sum of a reorder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantizations {
    pub(super) src_scale: Option<Quantized>,
    pub(super) dst_scale: Option<Quantized>,
    pub(super) src_zero: Option<Quantized>,
    pub(super) dst_zero: Option<Quantized>,
    /// The factor of the previous dst in a sum; 0 without a sum.
    pub(super) sum: f32,
}

impl Quantizations {
    /// All of them, each with the argument that holds its values.
    pub(super) fn all(&self) -> [(Option<Quantized>, i32); 4] {
        let (scales, points) = (sys::NORM_ARG_ATTR_SCALES, sys::NORM_ARG_ATTR_ZERO_POINTS);
        [
            (self.src_scale, scales | sys::NORM_ARG_SRC),
            (self.src_zero, points | sys::NORM_ARG_SRC),
            (self.dst_scale, scales | sys::NORM_ARG_DST),
            (self.dst_zero, points | sys::NORM_ARG_DST),
        ]
    }

    /// Whether elements are converted without arithmetic.
    pub(super) fn is_identity(&self) -> bool {
        self.sum == 0.0 && self.all().iter().all(|(quantized, _)| quantized.is_none())
    }

    /// Whether there is at most one value per tensor.
    pub(super) fn is_uniform(&self) -> bool {
        self.all().iter().all(|(quantized, _)| quantized.is_none_or(|q| q.mask == 0))
    }

    /// The arithmetic with the values at the given indices, in the order of [`all`](Self::all).
    ///
    /// # Safety
    /// The arguments were checked, and the indices are within them.
    pub(super) unsafe fn arithmetic(&self, arguments: &Arguments, at: [usize; 4]) -> Arithmetic {
        let mut values = [1.0, 0.0, 1.0, 0.0];
        for ((value, (quantized, id)), at) in values.iter_mut().zip(self.all()).zip(at) {
            if let Some(quantized) = quantized {
                // SAFETY: guaranteed by the caller.
                *value = unsafe { read_wide(quantized.data_type, arguments.get(id), at) };
            }
        }
        let [src_scale, src_zero, dst_scale, dst_zero] = values;
        let sum = f64::from(self.sum);
        Arithmetic {
            is_identity: self.is_identity(),
            src_scale,
            src_zero,
            sum,
            dst_scale,
            dst_zero,
        }
    }
}

impl Reorder {
    pub(crate) fn new(src: &MemoryDesc, dst: &MemoryDesc, attr: &Attr) -> Result<Self> {
        let src_type = checked_type("src_desc", src)?;
        let dst_type = checked_type("dst_desc", dst)?;
        if src.dims() != dst.dims() {
            return Err(Error::invalid(format_args!(
                "dst_desc: dimensions {:?} are not those of src_desc, {:?}",
                dst.dims(),
                src.dims()
            )));
        }
        dst.check_output("dst_desc")?;
        attr.check("reorder", &ACCEPTED)?;
        let point = |arg, name: &str, data_type: DataType| {
            let found = attr.zero_points.get(arg);
            if found.is_some() && !data_type.is_integer() {
                let what = data_type.name();
                return Err(Error::invalid(format_args!(
                    "attr: {name} is {what}, which cannot have a zero point"
                )));
            }
            Ok(found)
        };
        let quantized = Quantizations {
            src_scale: attr.scales.get(sys::NORM_ARG_SRC),
            dst_scale: attr.scales.get(sys::NORM_ARG_DST),
            src_zero: point(sys::NORM_ARG_SRC, "src", src_type)?,
            dst_zero: point(sys::NORM_ARG_DST, "dst", dst_type)?,
            sum: sum_of(attr, dst_type)?,
        };
        let mut arguments = heap::list([
            OpArgument::tensor(sys::NORM_ARG_SRC, "src", Usage::Input, src),
            OpArgument::tensor(sys::NORM_ARG_DST, "dst", Usage::Output, dst),
        ])?;
        let tensors = [(sys::NORM_ARG_SRC, src), (sys::NORM_ARG_DST, dst)];
        attr.add_arguments(&mut arguments, &tensors, dst)?;
        Ok(Self { src: src.clone(), dst: dst.clone(), src_type, dst_type, quantized, arguments })
    }
}

/// What a reorder supports.
const ACCEPTED: Accepted = Accepted {
    scales: &[sys::NORM_ARG_SRC, sys::NORM_ARG_DST],
    zero_points: &[sys::NORM_ARG_SRC, sys::NORM_ARG_DST],
    masks: true,
    post_op: |post_op| matches!(post_op, PostOp::Sum { zero_point: 0, .. }),
    around: false,
    dynamic: false,
    ..Accepted::NOTHING
};

/// The factor of the sum; 0 without one.
fn sum_of(attr: &Attr, dst: DataType) -> Result<f32> {
    match &attr.post_ops[..] {
        [] => Ok(0.0),
        [PostOp::Sum { scale, data_type, .. }] if data_type.is_none_or(|t| t == dst) => Ok(*scale),
        [_] => Err(Error::unimplemented("attr: the sum of a reorder must have the type of dst")),
        more => {
            let count = more.len();
            Err(Error::unimplemented(format_args!("attr: a reorder supports one sum, not {count}")))
        }
    }
}

fn checked_type(name: &str, desc: &MemoryDesc) -> Result<DataType> {
    match (desc.layout(), desc.data_type()) {
        (Layout::Strided, Some(data_type)) => Ok(data_type),
        (Layout::Any, _) => {
            Err(Error::invalid(format_args!("{name}: the layout must not be `any`")))
        }
        _ => Err(Error::invalid(format_args!("{name}: an empty descriptor"))),
    }
}
