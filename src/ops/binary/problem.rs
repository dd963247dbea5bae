//! The validated problem.

use crate::error::{Error, Result};
use crate::heap;
use crate::primitive::{Accepted, Attr, BinaryAlgorithm, OpArgument, PostOp, Start, Usage};
use crate::rows::Elementwise;
use crate::tensor::{DataType, Layout, MemoryDesc};
use norm_sys as sys;

/// A validated problem.
#[derive(Debug)]
pub(crate) struct Binary {
    pub(super) algorithm: BinaryAlgorithm,
    /// The attributes, with the tensors of post-operations resolved.
    attr: Attr,
    /// src_0, src_1, src_2 (the condition of a selection) and dst, then the attributes' arguments.
    pub(super) arguments: Vec<OpArgument>,
}

/// What a binary primitive supports.
const ACCEPTED: Accepted = Accepted {
    scales: &[sys::NORM_ARG_SRC_0, sys::NORM_ARG_SRC_1],
    post_op: |post_op| {
        matches!(post_op, PostOp::Sum { .. } | PostOp::Eltwise { .. } | PostOp::Binary { .. })
    },
    dropout: true,
    ..Accepted::NOTHING
};

impl Binary {
    /// `src2` is the condition of a selection; other algorithms have none.
    pub(crate) fn new(
        algorithm: BinaryAlgorithm,
        [src0, src1, dst]: [&MemoryDesc; 3],
        src2: Option<&MemoryDesc>,
        attr: &Attr,
    ) -> Result<Self> {
        check_type("src0_desc", src0)?;
        src0.check_layout("src0_desc")?;
        let dst = resolved("dst_desc", dst, src0)?;
        check_type("dst_desc", &dst)?;
        dst.check_output("dst_desc")?;
        let src1 = resolved("src1_desc", src1, src0)?;
        check_type("src1_desc", &src1)?;
        check_broadcast("src0_desc", src0, &dst)?;
        check_broadcast("src1_desc", &src1, &dst)?;
        let dims = dst.dims().iter().zip(src0.dims().iter().zip(src1.dims()));
        if let Some(d) = dims.clone().position(|(dim, (a, b))| dim != a && dim != b) {
            return Err(Error::invalid(format_args!(
                "dst_desc: dims[{d}] = {} is that of neither source",
                dst.dims()[d]
            )));
        }
        let src2 = src2.map(|src2| checked_condition(src2, src0, &dst)).transpose()?;
        attr.check("binary", &ACCEPTED)?;
        check_sums(attr, &dst)?;
        let resolved = attr.resolved(&dst)?;
        let mut arguments = heap::list([
            OpArgument::tensor(sys::NORM_ARG_SRC_0, "src_0", Usage::Input, src0),
            OpArgument::tensor(sys::NORM_ARG_SRC_1, "src_1", Usage::Input, &src1),
        ])?;
        let condition = src2
            .as_ref()
            .map(|src2| OpArgument::tensor(sys::NORM_ARG_SRC_2, "src_2", Usage::Input, src2));
        heap::extend(&mut arguments, condition)?;
        heap::push(
            &mut arguments,
            OpArgument::tensor(sys::NORM_ARG_DST, "dst", Usage::Output, &dst),
        )?;
        let tensors = [(sys::NORM_ARG_SRC_0, src0), (sys::NORM_ARG_SRC_1, &src1)];
        attr.add_arguments(&mut arguments, &tensors, &dst)?;
        Ok(Self { algorithm, attr: resolved, arguments })
    }

    pub(super) fn elementwise(&self) -> Elementwise<'_> {
        let start = Start::Binary { algorithm: self.algorithm };
        Elementwise::new(start, &self.arguments, &self.attr)
    }
}

fn check_type(name: &str, desc: &MemoryDesc) -> Result<()> {
    desc.check_type(name, "binary", |t| t == DataType::S32 || t.is_supported(true))
}

/// Resolves the layout `any` to that of src0.
fn resolved(name: &str, desc: &MemoryDesc, src0: &MemoryDesc) -> Result<MemoryDesc> {
    if desc.ndims() != src0.ndims() {
        return Err(Error::invalid(format_args!(
            "{name}: {} dimensions, but src0_desc has {}",
            desc.ndims(),
            src0.ndims()
        )));
    }
    match desc.layout() {
        Layout::Any if desc.dims() == src0.dims() => desc.resolved_for(name, ("src0_desc", src0)),
        Layout::Any => desc.resolved_like(src0),
        _ => Ok(desc.clone()),
    }
}

/// Checks that each dimension is that of dst, or 1.
fn check_broadcast(name: &str, desc: &MemoryDesc, dst: &MemoryDesc) -> Result<()> {
    if desc.dims().iter().zip(dst.dims()).all(|(d, dim)| *d == 1 || d == dim) {
        return Ok(());
    }
    Err(Error::invalid(format_args!(
        "{name}: dimensions {:?} do not broadcast to those of dst_desc, {:?}",
        desc.dims(),
        dst.dims()
    )))
}

/// Checks the condition of a selection, an s8 tensor.
fn checked_condition(src2: &MemoryDesc, src0: &MemoryDesc, dst: &MemoryDesc) -> Result<MemoryDesc> {
    let src2 = resolved("src2_desc", src2, src0)?;
    match src2.data_type() {
        Some(DataType::S8) => (),
        other => {
            let found = other.map_or("undef", DataType::name);
            return Err(Error::invalid(format_args!(
                "src2_desc: the condition is s8, not {found}"
            )));
        }
    }
    check_broadcast("src2_desc", &src2, dst)?;
    Ok(src2)
}

/// Checks the sums, which may read dst as another type of the same size.
fn check_sums(attr: &Attr, dst: &MemoryDesc) -> Result<()> {
    let size = dst.data_type().map(DataType::size);
    for post_op in attr.post_ops.iter() {
        if let PostOp::Sum { data_type: Some(data_type), .. } = post_op
            && Some(data_type.size()) != size
        {
            return Err(Error::invalid(format_args!(
                "attr: a sum reads dst as {}, which has another size",
                data_type.name()
            )));
        }
    }
    Ok(())
}
