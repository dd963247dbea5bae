//! What attributes do to the rows of an output, in f32 and in order: times the scale of src, the post-operations,
//! divided by the scale of dst.

use super::{Arguments, Attr, BinaryAlgorithm, EltwiseAlgorithm, PostOp};
use crate::simd::lanes::Lanes;
use crate::simd::math::{self, Exponent};
use crate::simd::portable::Portable;
use crate::simd::{LANES, Level, Ramp, Simd, entry_points, read_scalar};
use crate::tensor::{DataType, DimPlaces, MemoryDesc, Places, RowMap};
use norm_sys as sys;

/// Elements that all steps are taken on before the next: they stay in a first-level cache.
const STRETCH: usize = 1024;

/// A tensor that a step reads. Where it has one element for many of the output, that is repeated.
struct Operand {
    argument: i32,
    data_type: DataType,
    place: Place,
    /// Whether it is one element.
    single: bool,
}

/// Where the elements of a row lie.
enum Place {
    /// Rows in an order of the caller's, and the distance of neighbours in one.
    Strided { rows: RowMap, step: usize },
    /// Rows in logical order, in any layout.
    Any { rows: Places, cols: DimPlaces },
}

impl Operand {
    /// For rows of an output of dimensions `dims`, in the order of its outer dimensions that is given, or in
    /// logical order.
    fn new(
        argument: i32,
        desc: &MemoryDesc,
        data_type: DataType,
        dims: &[i64],
        order: Option<&[usize]>,
    ) -> Self {
        let place = match order {
            Some(order) => {
                let stride = |d: &usize| match desc.dims()[*d] {
                    1 => 0,
                    _ => desc.strides()[*d],
                };
                let sizes: Vec<i64> = order.iter().map(|d| dims[*d]).collect();
                let strides: Vec<i64> = order.iter().map(stride).collect();
                let rows = RowMap::new(&sizes, &strides);
                Place::Strided { rows, step: stride(&(dims.len() - 1)) as usize }
            }
            None => {
                let (rows, cols) = Places::of(desc).repeated(dims).split_last();
                Place::Any { rows, cols }
            }
        };
        let single = desc.dims().iter().all(|dim| *dim == 1);
        Self { argument, data_type, place, single }
    }

    /// Elements `col` to `col + to.len() - 1` of a row, as f32: where they are, or in `to`.
    ///
    /// # Safety
    /// They are there, counted from `start`.
    #[inline(always)]
    #[allow(clippy::undocumented_unsafe_blocks)]
    unsafe fn read<'a>(
        &self,
        start: *const u8,
        row: usize,
        col: usize,
        to: &'a mut [f32],
    ) -> &'a [f32] {
        // SAFETY of the blocks below: the caller's.
        match &self.place {
            Place::Strided { rows, step: 0 } => {
                to.fill(unsafe { read_scalar(self.data_type, start, rows.offset(row)) });
            }
            Place::Strided { rows, step: 1 } => {
                let first = rows.offset(row) + col;
                let there = start.cast::<f32>().wrapping_add(first);
                if self.data_type == DataType::F32 && there.is_aligned() {
                    return unsafe { std::slice::from_raw_parts(there, to.len()) };
                }
                // The type is looked up once for all.
                macro_rules! read_all {
                    ($($data_type:ident),*) => {
                        match self.data_type {
                            $(DataType::$data_type => {
                                for (i, to) in to.iter_mut().enumerate() {
                                    *to = unsafe {
                                        read_scalar(DataType::$data_type, start, first + i)
                                    };
                                }
                            })*
                        }
                    };
                }
                read_all!(F32, Bf16, F16, S8, U8, S32, F64, F8E4m3, F8E5m2);
            }
            Place::Strided { rows, step } => {
                let first = rows.offset(row) + col * step;
                for (i, to) in to.iter_mut().enumerate() {
                    *to = unsafe { read_scalar(self.data_type, start, first + i * step) };
                }
            }
            Place::Any { rows, cols } => {
                let first = rows.offset(row);
                for (i, to) in to.iter_mut().enumerate() {
                    let at = first + cols.offset(col + i);
                    *to = unsafe { read_scalar(self.data_type, start, at) };
                }
            }
        }
        to
    }
}

/// One step. `x` is the element so far.
enum Step {
    /// `x` times the scale of an argument.
    Multiply(i32, DataType),
    /// `x` divided by it, which is times its reciprocal.
    Divide(i32, DataType),
    Eltwise {
        algorithm: EltwiseAlgorithm,
        alpha: f32,
        beta: f32,
        exponent: Exponent,
    },
    Binary {
        algorithm: BinaryAlgorithm,
        first: Operand,
        second: Option<Operand>,
    },
    Sum {
        scale: f32,
        zero_point: f32,
        dst: Operand,
    },
}

impl Step {
    /// The argument of the one element that the step reads, and its type.
    fn value(&self) -> Option<(i32, DataType)> {
        match self {
            Self::Multiply(id, data_type) | Self::Divide(id, data_type) => Some((*id, *data_type)),
            Self::Binary { first, second: None, .. } if first.single => {
                Some((first.argument, first.data_type))
            }
            _ => None,
        }
    }

    /// The same as a ramp, if it is one, for the value that it reads.
    fn ramp(&self, value: Option<f32>) -> Option<Ramp> {
        use {BinaryAlgorithm as B, EltwiseAlgorithm as E};
        Some(match (self, value) {
            (Self::Multiply(..), Some(value)) => Ramp::times(value),
            (Self::Divide(..), Some(value)) => Ramp::times(1.0 / value),
            (Self::Binary { algorithm: B::Add, .. }, Some(value)) => Ramp::plus(value),
            (Self::Binary { algorithm: B::Sub, .. }, Some(value)) => Ramp::plus(-value),
            (Self::Binary { algorithm: B::Mul, .. }, Some(value)) => Ramp::times(value),
            (Self::Eltwise { algorithm, alpha, beta, .. }, _) => match algorithm {
                E::Relu if *alpha == 0.0 => Ramp::between(0.0, f32::INFINITY),
                E::Linear => Ramp::linear(*alpha, *beta),
                E::Clip | E::ClipV2 => Ramp::between(*alpha, *beta),
                _ => return None,
            },
            _ => return None,
        })
    }
}

/// The most steps: both scales and every post-operation.
const MOST_STEPS: usize = super::MAX_POST_OPS + 2;

/// The steps of a primitive.
pub(crate) struct Steps(Vec<Step>);

/// The id of an argument of the post-operation at a place in the list.
fn post_op_argument(at: usize, arg: i32) -> i32 {
    sys::NORM_ARG_ATTR_MULTIPLE_POST_OP(at as i32) | arg
}

/// The steps with the addresses of an execution.
pub(crate) struct BoundSteps<'a> {
    steps: &'a Steps,
    /// Of each step its factor, and what it reads.
    factors: [f32; MOST_STEPS],
    operands: [[*const u8; 2]; MOST_STEPS],
}

// SAFETY: what the addresses lead to is read, or each row of it is one thread's.
unsafe impl Sync for BoundSteps<'_> {}

/// The ramps that the steps of an execution are.
pub(crate) struct Ramps {
    ramps: [Ramp; MOST_STEPS],
    count: usize,
}

impl std::ops::Deref for Ramps {
    type Target = [Ramp];
    fn deref(&self) -> &[Ramp] {
        &self.ramps[..self.count]
    }
}

impl BoundSteps<'_> {
    /// Whether a step reads a tensor that begins at an address.
    pub(crate) fn read(&self, address: *const u8) -> bool {
        self.operands.iter().flatten().any(|operand| *operand == address)
    }
}

impl Steps {
    /// Those of attributes whose post-operations are resolved, for an output; `order` is that in which rows are
    /// counted, or nothing for the logical one. `None` if there is nothing to do.
    pub(crate) fn new(attr: &Attr, dst: &MemoryDesc, order: Option<&[usize]>) -> Option<Self> {
        let operand = |argument, desc: &MemoryDesc, data_type: Option<DataType>| {
            let data_type = data_type.or(desc.data_type()).unwrap_or(DataType::F32);
            Operand::new(argument, desc, data_type, dst.dims(), order)
        };
        let scale = |arg| {
            let scale = attr.scales.get(arg)?;
            Some((sys::NORM_ARG_ATTR_SCALES | arg, scale.data_type))
        };
        let mut steps = Vec::new();
        steps.extend(scale(sys::NORM_ARG_SRC).map(|(id, kind)| Step::Multiply(id, kind)));
        for (at, post_op) in attr.post_ops.iter().enumerate() {
            steps.extend(match post_op {
                PostOp::Eltwise { algorithm, alpha, beta } => Some(Step::Eltwise {
                    algorithm: *algorithm,
                    alpha: *alpha,
                    beta: *beta,
                    exponent: Exponent::new(*beta),
                }),
                PostOp::Binary { algorithm, src1, src2 } => Some(Step::Binary {
                    algorithm: *algorithm,
                    first: operand(post_op_argument(at, sys::NORM_ARG_SRC_1), src1, None),
                    second: src2
                        .as_ref()
                        .map(|src2| operand(post_op_argument(at, sys::NORM_ARG_SRC_2), src2, None)),
                }),
                PostOp::Sum { scale, zero_point, data_type } => Some(Step::Sum {
                    scale: *scale,
                    zero_point: *zero_point as f32,
                    dst: operand(sys::NORM_ARG_DST, dst, *data_type),
                }),
                PostOp::Prelu { .. } | PostOp::Depthwise(_) => None,
            });
        }
        steps.extend(scale(sys::NORM_ARG_DST).map(|(id, kind)| Step::Divide(id, kind)));
        (!steps.is_empty()).then_some(Self(steps))
    }

    /// Whether all steps are ramps.
    pub(crate) fn are_ramps(&self) -> bool {
        self.0.iter().all(|step| step.ramp(step.value().map(|_| 1.0)).is_some())
    }

    /// The ramps of one execution.
    ///
    /// # Safety
    /// Its buffers were checked.
    pub(crate) unsafe fn ramps(&self, arguments: &Arguments) -> Ramps {
        let mut ramps = Ramps { ramps: [Ramp::NONE; MOST_STEPS], count: self.0.len() };
        for (ramp, step) in ramps.ramps.iter_mut().zip(&self.0) {
            // SAFETY: what is read is one element.
            let value = step.value().map(|(argument, data_type)| unsafe {
                read_scalar(data_type, arguments.get(argument), 0)
            });
            *ramp = step.ramp(value).unwrap_or(Ramp::NONE);
        }
        ramps
    }

    /// The steps of one execution.
    ///
    /// # Safety
    /// Its buffers were checked.
    #[allow(clippy::undocumented_unsafe_blocks)]
    pub(crate) unsafe fn bind(&self, arguments: &Arguments) -> BoundSteps<'_> {
        let mut bound = BoundSteps {
            steps: self,
            factors: [1.0; MOST_STEPS],
            operands: [[std::ptr::null(); 2]; MOST_STEPS],
        };
        let address = |operand: &Operand| arguments.get(operand.argument).cast_const();
        for (i, step) in self.0.iter().enumerate() {
            match step {
                // SAFETY of both: a scale is one element.
                Step::Multiply(id, data_type) => {
                    bound.factors[i] = unsafe { read_scalar(*data_type, arguments.get(*id), 0) };
                }
                Step::Divide(id, data_type) => {
                    let scale = unsafe { read_scalar(*data_type, arguments.get(*id), 0) };
                    bound.factors[i] = 1.0 / scale;
                }
                Step::Binary { first, second, .. } => {
                    bound.operands[i][0] = address(first);
                    bound.operands[i][1] = second.as_ref().map_or(std::ptr::null(), address);
                }
                Step::Sum { dst, .. } => bound.operands[i][0] = address(dst),
                Step::Eltwise { .. } => {}
            }
        }
        bound
    }
}

/// Each element of a stretch replaced by the value of an expression of 16 of them, and of as many others.
macro_rules! each {
    ($stretch:expr, |$x:ident $(, $y:ident: $others:ident)*| $value:expr) => {{
        let len = $stretch.len();
        let whole = len - len % LANES;
        let mut i = 0;
        // SAFETY: the elements are there, in the others as well; the instruction set is the caller's.
        unsafe {
            while i < whole {
                let $x = Lanes::<S>::load($stretch.as_ptr().add(i), LANES);
                $(let $y = Lanes::<S>::load($others.as_ptr().add(i), LANES);)*
                ($value).store($stretch.as_mut_ptr().add(i), LANES);
                i += LANES;
            }
            if i < len {
                let $x = Lanes::<S>::load($stretch.as_ptr().add(i), len - i);
                $(let $y = Lanes::<S>::load($others.as_ptr().add(i), len - i);)*
                ($value).store($stretch.as_mut_ptr().add(i), len - i);
            }
        }
    }};
}

/// # Safety
/// The instruction set of `S` is there.
#[inline(always)]
unsafe fn eltwise<S: Simd>(
    stretch: &mut [f32],
    algorithm: EltwiseAlgorithm,
    (a, b): (f32, f32),
    exponent: Exponent,
) {
    use EltwiseAlgorithm as E;
    match algorithm {
        E::Relu if a == 0.0 => each!(stretch, |x| x.lt(0.0).select(0.0, x)),
        E::Relu => each!(stretch, |x| x.all(0.0).lt(x).select(x, x * a)),
        E::Tanh => each!(stretch, |x| math::tanh(x)),
        E::Elu => each!(stretch, |x| math::elu(x, a)),
        E::Square => each!(stretch, |x| x * x),
        E::Abs => each!(stretch, |x| x.abs()),
        E::Sqrt => each!(stretch, |x| x.sqrt()),
        E::Linear => each!(stretch, |x| x.mul_add(a, b)),
        E::SoftRelu => each!(stretch, |x| math::softplus(x * a) / a),
        E::Hardsigmoid => each!(stretch, |x| x.mul_add(a, b).within(0.0, 1.0)),
        E::Logistic => each!(stretch, |x| math::logistic(x)),
        E::Exp => each!(stretch, |x| math::exp(x)),
        E::GeluTanh => each!(stretch, |x| math::gelu_tanh(x)),
        E::Swish => each!(stretch, |x| x * math::logistic(x * a)),
        E::Log => each!(stretch, |x| math::log(x)),
        E::Clip | E::ClipV2 => each!(stretch, |x| x.within(a, b)),
        E::Pow => each!(stretch, |x| math::pow(x, exponent) * a),
        E::GeluErf => each!(stretch, |x| math::gelu_erf(x)),
        E::Round => each!(stretch, |x| math::round(x)),
        E::Mish => each!(stretch, |x| math::mish(x)),
        E::Hardswish => each!(stretch, |x| x * x.mul_add(a, b).within(0.0, 1.0)),
    }
}

/// # Safety
/// The others are as many as the stretch has elements; the instruction set of `S` is there.
#[inline(always)]
unsafe fn binary<S: Simd>(stretch: &mut [f32], algorithm: BinaryAlgorithm, others: &[f32]) {
    use BinaryAlgorithm as B;
    match algorithm {
        B::Add => each!(stretch, |x, y: others| x + y),
        B::Mul => each!(stretch, |x, y: others| x * y),
        B::Max => each!(stretch, |x, y: others| x.max(y)),
        B::Min => each!(stretch, |x, y: others| x.min(y)),
        B::Div => each!(stretch, |x, y: others| x / y),
        B::Sub => each!(stretch, |x, y: others| x - y),
        B::Ge => each!(stretch, |x, y: others| y.le(x).select(1.0, 0.0)),
        B::Gt => each!(stretch, |x, y: others| y.lt(x).select(1.0, 0.0)),
        B::Le => each!(stretch, |x, y: others| x.le(y).select(1.0, 0.0)),
        B::Lt => each!(stretch, |x, y: others| x.lt(y).select(1.0, 0.0)),
        B::Eq => each!(stretch, |x, y: others| x.eq(y).select(1.0, 0.0)),
        B::Ne => each!(stretch, |x, y: others| x.eq(y).select(0.0, 1.0)),
        // With the condition, in `select`.
        B::Select => {}
    }
}

/// # Safety
/// As [`binary`].
#[inline(always)]
unsafe fn select<S: Simd>(stretch: &mut [f32], others: &[f32], conditions: &[f32]) {
    each!(stretch, |x, y: others, condition: conditions| condition.eq(0.0).select(y, x));
}

/// [`steps_on`] without vectors, for reference implementations.
///
/// # Safety
/// As [`steps_on`].
pub(crate) unsafe fn take_steps(
    bound: &BoundSteps<'_>,
    stretch: &mut [f32],
    at: (usize, usize),
    others: [&mut [f32]; 2],
) {
    // SAFETY: the caller's.
    unsafe { steps_on::<Portable>(bound, stretch, at, others) }
}

/// Takes all steps on the elements of a row from `col` on; `others` are as long as `stretch`, and for what steps
/// read.
///
/// # Safety
/// The row and those elements of it are there for all operands, whose elements nobody writes meanwhile; the instruction
/// set of `S` is there.
#[inline(always)]
#[allow(clippy::undocumented_unsafe_blocks)]
unsafe fn steps_on<S: Simd>(
    bound: &BoundSteps<'_>,
    stretch: &mut [f32],
    (row, col): (usize, usize),
    others: [&mut [f32]; 2],
) {
    let [ys, zs] = others;
    for (i, step) in bound.steps.0.iter().enumerate() {
        let (factor, operands) = (bound.factors[i], bound.operands[i]);
        // SAFETY: the caller's.
        match step {
            Step::Multiply(..) | Step::Divide(..) => each!(stretch, |x| x * factor),
            Step::Eltwise { algorithm, alpha, beta, exponent } => unsafe {
                eltwise::<S>(stretch, *algorithm, (*alpha, *beta), *exponent);
            },
            Step::Binary { algorithm, first, second: None } => unsafe {
                let ys = first.read(operands[0], row, col, ys);
                binary::<S>(stretch, *algorithm, ys);
            },
            Step::Binary { first, second: Some(second), .. } => unsafe {
                let ys = first.read(operands[0], row, col, ys);
                let zs = second.read(operands[1], row, col, zs);
                select::<S>(stretch, ys, zs);
            },
            Step::Sum { scale, zero_point, dst } => {
                let ys = unsafe { dst.read(operands[0], row, col, ys) };
                each!(stretch, |x, y: ys| (y - *zero_point).mul_add(*scale, x));
            }
        }
    }
}

/// Rows of f32, of which one begins `step` elements after the other.
pub(crate) struct Rows {
    pub(crate) start: *mut f32,
    pub(crate) step: usize,
    pub(crate) cols: usize,
}

/// Takes all steps on rows `first` to `last - 1`, of which the first is where `rows` begin.
///
/// # Safety
/// The rows are there, aligned and this thread's, and the operands of the steps are there and apart from them; the
/// instruction set of `S` is there.
#[inline(always)]
unsafe fn step_rows<S: Simd>(bound: &BoundSteps<'_>, rows: &Rows, first: usize, last: usize) {
    let (mut ys, mut zs) = ([0.0; STRETCH], [0.0; STRETCH]);
    for row in first..last {
        let start = rows.start.wrapping_add((row - first) * rows.step);
        let mut col = 0;
        while col < rows.cols {
            let len = STRETCH.min(rows.cols - col);
            // SAFETY: the caller's.
            unsafe {
                let stretch = std::slice::from_raw_parts_mut(start.add(col), len);
                let others = [&mut ys[..len], &mut zs[..len]];
                steps_on::<S>(bound, stretch, (row, col), others);
            }
            col += len;
        }
    }
}

entry_points! {
    /// The steps, per level.
    mod entries: step_rows<>(
        bound: &BoundSteps<'_>, rows: &Rows, first: usize, last: usize
    ) -> ();
}

/// Takes all steps on rows; see [`step_rows`].
pub(crate) type StepEntry = unsafe fn(&BoundSteps<'_>, &Rows, usize, usize);

pub(crate) fn step_entry(level: Level) -> StepEntry {
    entries::at(level).unwrap_or(entries::portable::entry_portable)
}
