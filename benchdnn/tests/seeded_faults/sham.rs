//! A library that computes with plain loops in f64 and makes at most one mistake.

use super::around;
use super::fault::Fault;
use benchdnn::attributes::PostOp;
use benchdnn::data_type::DataType;
use benchdnn::drivers::lnorm::{LnormProblem, Request};
use benchdnn::execution::Role;
use benchdnn::executor::{Argument, Bound, Control, CpuIsa, Prepared, Refusal};
use benchdnn::float_mode::{self, FloatMode};
use benchdnn::library::{self, Executor, Wanted};
use benchdnn::oracle::lnorm::Flags;
use benchdnn::oracle::post_ops::EltwiseAlgorithm;
use benchdnn::problem::{Place, Problem, Spec};
use benchdnn::tensor::{Buffer, Layout};
use norm_sys::*;
use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;

#[derive(Debug)]
pub(super) struct Faulty {
    pub(super) fault: Fault,
    pub(super) threads: Rc<Cell<u64>>,
    pub(super) portable: Rc<Cell<bool>>,
}

impl Control for Faulty {
    fn set_cpu_isa(&self, isa: CpuIsa) -> Result<bool, Refusal> {
        self.portable.set(isa == CpuIsa::Portable);
        Ok(matches!(isa, CpuIsa::Default | CpuIsa::Portable | CpuIsa::Avx2))
    }

    fn set_threads(&self, threads: u64) -> Result<(), Refusal> {
        self.threads.set(threads);
        Ok(())
    }

    fn threads(&self) -> u64 {
        self.threads.get().max(1)
    }

    fn last_threads(&self) -> u64 {
        self.threads.get().max(1)
    }
}

impl Executor for Faulty {
    fn prepare(&self, request: &dyn library::Request) -> Result<Box<dyn Prepared>, Refusal> {
        let request: &dyn Any = request;
        let request: &Request = request.downcast_ref().expect("a request of the driver");
        Ok(Box::new(Sham {
            fault: self.fault,
            threads: self.threads.clone(),
            portable: self.portable.get(),
            problem: problem(request),
            request: request.clone(),
        }))
    }
}

/// The problem of a request, without its tags.
fn problem(request: &Request) -> LnormProblem {
    LnormProblem {
        dims: request.dims.clone(),
        direction: request.direction,
        src_dt: request.diff_src.data_type,
        steps: around::steps(request),
        dst_dt: request.dst.data_type,
        ss_dt: request.ss_dt,
        flags: request.flags,
        attributes: request.attributes.clone(),
        epsilon: request.epsilon,
        ..LnormProblem::default()
    }
}

/// A tensor of the problem.
fn tensor(problem: &LnormProblem, id: i32) -> Option<Spec> {
    let problem: &dyn Problem = problem;
    problem.tensors().into_iter().find(|spec| spec.id == id)
}

struct Sham {
    fault: Fault,
    threads: Rc<Cell<u64>>,
    portable: bool,
    problem: LnormProblem,
    request: Request,
}

impl Sham {
    fn tensor(&self, dims: &[usize], dt: DataType, wanted: &Wanted) -> Layout {
        match wanted {
            Wanted::Any | Wanted::Null => Layout::dense(dims, dt),
            Wanted::Ordered(order) => Layout::ordered(dims, order, 0, dt),
            Wanted::Strided(layout) => layout.clone(),
            Wanted::Blocked(..) => unreachable!("lnorm's faults are seeded in plain layouts"),
        }
    }
}

impl Prepared for Sham {
    fn implementation(&self) -> String {
        "sham".to_owned()
    }

    fn next_implementation(&mut self) -> Result<bool, Refusal> {
        Ok(false)
    }

    fn layout(&self, argument: i32) -> Option<Layout> {
        let spec = tensor(&self.problem, argument)?;
        let (dims, dt) = (&spec.dims, spec.data_type);
        if let Some(wanted) = around::wanted(&self.request, argument) {
            return Some(self.tensor(dims, dt, wanted));
        }
        let wanted = match (argument, &self.request.dst.wanted) {
            (NORM_ARG_MEAN | NORM_ARG_VARIANCE, _) => &self.request.stat.wanted,
            (NORM_ARG_DST | NORM_ARG_DIFF_DST, own) if *own != Wanted::Any => own,
            (NORM_ARG_SRC | NORM_ARG_DIFF_SRC | NORM_ARG_DST | NORM_ARG_DIFF_DST, _) => {
                &self.request.src.wanted
            }
            _ => match &spec.place {
                Place::Preferred(layout) => return Some(layout.clone()),
                _ => &Wanted::Any,
            },
        };
        (spec.role != Role::Unused).then(|| self.tensor(dims, dt, wanted))
    }

    fn bind<'a>(&self, arguments: &[Argument<'a>]) -> Result<Box<dyn Bound + 'a>, Refusal> {
        Ok(Box::new(Calculation {
            fault: self.fault,
            threads: self.threads.clone(),
            portable: self.portable,
            problem: self.problem.clone(),
            arguments: arguments.to_vec(),
            runs: Cell::new(0),
            rounds_up: Cell::new(false),
        }))
    }
}

pub(super) struct Calculation<'a> {
    pub(super) fault: Fault,
    threads: Rc<Cell<u64>>,
    portable: bool,
    pub(super) problem: LnormProblem,
    arguments: Vec<Argument<'a>>,
    runs: Cell<u32>,
    rounds_up: Cell<bool>,
}

impl Calculation<'_> {
    pub(super) fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn argument(&self, id: i32) -> Option<&Argument<'_>> {
        self.arguments.iter().find(|argument| argument.id == id)
    }

    fn used(&self, id: i32, role: Role) -> Option<&Argument<'_>> {
        let spec = tensor(&self.problem, id)?;
        self.argument(id).filter(|_| spec.role == role)
    }

    pub(super) fn read(&self, id: i32) -> Vec<f64> {
        let argument = self.used(id, Role::Input);
        argument.map_or_else(Vec::new, |argument| {
            argument.layout.data_type.decode(&argument.buffer.elements(argument.layout))
        })
    }

    pub(super) fn write(&self, id: i32, values: &[f64]) {
        let written = self.used(id, Role::Output).or_else(|| self.used(id, Role::Updated));
        if let Some(argument) = written {
            let dt = argument.layout.data_type;
            let values: Vec<f64> = values.iter().map(|&value| self.stored(dt, value)).collect();
            argument.buffer.put(argument.layout, &dt.encode(&values));
        }
    }

    /// A stored value, including the fault.
    fn stored(&self, dt: DataType, value: f64) -> f64 {
        match self.fault {
            Fault::Wraps if dt == DataType::S8 => f64::from(value.round_ties_even() as i64 as i8),
            Fault::Truncates if dt.is_integer() => value.trunc(),
            Fault::HalvesGoUp if dt.is_integer() => (value + 0.5).floor(),
            Fault::DoubleInSingle => f64::from(value as f32),
            _ => value,
        }
    }

    /// The values of an attribute's tensor.
    fn operand(&self, id: i32) -> Vec<f64> {
        self.read(id)
    }

    /// Applies scales and post-ops in place.
    fn chain(&self, dst: &mut [f64]) {
        let (dims, attributes) = (&self.problem.dims, &self.problem.attributes);
        let cols = self.problem.cols();
        let scale = |argument: i32| {
            attributes
                .scale(argument)
                // Dynamic scales are outputs.
                .and_then(|_| self.operand(NORM_ARG_ATTR_SCALES | argument).first().copied())
                .unwrap_or(1.0)
        };
        let (src_scale, dst_scale) = (scale(NORM_ARG_SRC), scale(NORM_ARG_DST));
        let src_scale = if self.has(Fault::SrcScaleLost) { 1.0 } else { src_scale };
        if !self.has(Fault::SrcScaleLast) {
            dst.iter_mut().for_each(|x| *x *= src_scale);
        }
        let mut post_ops: Vec<_> = attributes.post_ops.value.iter().enumerate().collect();
        if self.has(Fault::PostOpsReversed) {
            post_ops.reverse();
        }
        let held = self
            .used(NORM_ARG_DST, Role::Updated)
            .map(|argument| (argument.layout.data_type, argument.buffer.elements(argument.layout)));
        let before = |data_type: Option<DataType>| match &held {
            None => Vec::new(),
            Some((own, bytes)) if self.has(Fault::SumTypeIgnored) => own.decode(bytes),
            Some((own, bytes)) => data_type.unwrap_or(*own).decode(bytes),
        };
        for (index, post_op) in post_ops {
            let base = NORM_ARG_ATTR_MULTIPLE_POST_OP_BASE * (index as i32 + 1);
            let before = match post_op {
                PostOp::Sum { data_type, .. } => before(*data_type),
                _ => Vec::new(),
            };
            let (other, condition) =
                (self.operand(base | NORM_ARG_SRC_1), self.operand(base | NORM_ARG_SRC_2));
            for (i, x) in dst.iter_mut().enumerate() {
                *x = match post_op {
                    &PostOp::Sum { scale, zero_point, .. } => {
                        let before = before[i];
                        let lost = self.has(Fault::SumLost);
                        let scale = if lost { 0.0 } else { f64::from(scale) };
                        *x + scale * (before - f64::from(zero_point))
                    }
                    &PostOp::Eltwise { algorithm, alpha, beta } => {
                        let beta = if self.has(Fault::BetaLost) { 0.0 } else { f64::from(beta) };
                        let algorithm = match algorithm {
                            EltwiseAlgorithm::GeluErf if self.has(Fault::TanhForErf) => {
                                EltwiseAlgorithm::GeluTanh
                            }
                            algorithm => algorithm,
                        };
                        algorithm.of(*x, f64::from(alpha), beta)
                    }
                    PostOp::Binary(binary) => {
                        let mask = binary.mask.bits(dims.len(), dims.len() - 1);
                        let mut at = 0;
                        for (d, dim) in dims.iter().enumerate() {
                            let index = i / dims[d + 1..].iter().product::<usize>() % dim;
                            at = if mask >> d & 1 == 1 { at * dim + index } else { at };
                        }
                        if self.has(Fault::OperandAlongRows) && other.len() == cols {
                            at = i / cols % cols;
                        }
                        let taken = condition.get(i).is_some_and(|&condition| condition != 0.0);
                        let taken = taken != self.has(Fault::ConditionTurned);
                        binary.algorithm.of(*x, other[at], taken)
                    }
                    _ => unreachable!("no library takes it"),
                };
            }
        }
        if self.has(Fault::SrcScaleLast) {
            dst.iter_mut().for_each(|x| *x *= src_scale);
        }
        let multiplied = self.has(Fault::DstScaleMultiplied);
        let divisor = if multiplied { 1.0 / dst_scale } else { dst_scale };
        dst.iter_mut().for_each(|x| *x /= divisor);
    }

    /// A change in the last bits of a result.
    fn disturbance(&self, src: &Buffer, row: usize) -> f64 {
        let disturbed = match self.fault {
            Fault::ThreadsMatter => self.threads.get() == 3,
            Fault::LevelMatters => self.portable,
            Fault::AlignmentMatters => !src.pointer().addr().is_multiple_of(64),
            Fault::PositionMatters => row == 5,
            Fault::FloatModeMatters => self.rounds_up.get(),
            Fault::RepeatMatters => self.runs.get() == 3,
            _ => false,
        };
        if disturbed { 1.0 + 1.0 / 64.0 } else { 1.0 }
    }

    fn root(&self, variance: f64) -> f64 {
        let epsilon = f64::from(self.problem.epsilon);
        match self.fault {
            Fault::EpsilonOutsideTheRoot => 1.0 / (variance.sqrt() + epsilon),
            _ => 1.0 / (variance + epsilon).sqrt(),
        }
    }

    fn summed<'r>(&self, row: &'r [f64]) -> &'r [f64] {
        match self.fault {
            Fault::TailLaneLostInSums => &row[..row.len() - 1],
            _ => row,
        }
    }

    fn forward(&self) {
        let cols = self.problem.cols();
        let Flags { global_stats, rms_norm, gate_input, gate_output, .. } = self.problem.flags;
        let (scale, shift) = (self.factors(), self.read(NORM_ARG_SHIFT));
        let (mut means, mut variances) = (self.read(NORM_ARG_MEAN), self.read(NORM_ARG_VARIANCE));
        let (mut src, mut counted) = self.sums(self.read(NORM_ARG_SRC));
        self.gated(&mut src, gate_input);
        self.gated(&mut counted, gate_input);
        let (part, divisor) = self.counted();
        let (mut dst, count) = (Vec::new(), cols as f64);
        let buffer = self.argument(NORM_ARG_SRC).expect("src is always there").buffer;
        for (i, (x, counted)) in src.chunks(cols).zip(counted.chunks(cols)).enumerate() {
            if !global_stats {
                let sum: f64 = self.summed(counted).iter().sum();
                let mean = if rms_norm { 0.0 } else { sum / count };
                let part = self.summed(&counted[..part]);
                let squares: f64 = part.iter().map(|x| (x - mean).powi(2)).sum();
                let sample = self.has(Fault::SampleVariance);
                means.push(mean);
                variances.push(squares / if sample { divisor - 1.0 } else { divisor });
            }
            let mean = if rms_norm { 0.0 } else { means[i] };
            let r = self.root(variances[i]) * self.disturbance(buffer, i);
            for (c, x) in x.iter().enumerate() {
                let g = scale.get(c).copied().unwrap_or(1.0);
                let xhat = self.rounded_first((x - mean) * r);
                dst.push(xhat * g + shift.get(c).copied().unwrap_or(0.0));
            }
        }
        self.gated(&mut dst, gate_output);
        self.chain(&mut dst);
        self.quantize(&mut dst);
        self.write(NORM_ARG_DST, &dst);
        self.write(NORM_ARG_MEAN, &means);
        self.write(NORM_ARG_VARIANCE, &variances);
    }

    fn backward(&self) {
        let cols = self.problem.cols();
        let Flags { global_stats, rms_norm, gate_input, gate_output, .. } = self.problem.flags;
        let (mut src, mut diff_dst) = (self.read(NORM_ARG_SRC), self.read(NORM_ARG_DIFF_DST));
        let (scale, means) = (self.factors(), self.read(NORM_ARG_MEAN));
        let (shift, variances) = (self.read(NORM_ARG_SHIFT), self.read(NORM_ARG_VARIANCE));
        let (part, divisor) = self.counted();
        // What the gate multiplies, times the gradient of the product.
        let mut factors = if gate_output { diff_dst.clone() } else { src.clone() };
        self.gated(&mut src, gate_input);
        self.gated(&mut diff_dst, gate_output);
        let (mut diff_src, count) = (Vec::new(), cols as f64);
        let (mut diff_scale, mut diff_shift) = (vec![0.0; cols], vec![0.0; cols]);
        let buffer = self.argument(NORM_ARG_SRC).expect("src is always there").buffer;
        for (i, (x, dy)) in src.chunks(cols).zip(diff_dst.chunks(cols)).enumerate() {
            let (mut mean, mut variance) = (if rms_norm { 0.0 } else { means[i] }, variances[i]);
            // Given statistics are f32, so those of f64 are computed from src.
            if !global_stats && [self.problem.src_dt, self.problem.dst_dt].contains(&DataType::F64)
            {
                mean = if rms_norm { 0.0 } else { x.iter().sum::<f64>() / count };
                variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
            }
            let r = self.root(variance) * self.disturbance(buffer, i);
            let xhat: Vec<f64> = x.iter().map(|x| (x - mean) * r).collect();
            let g = |c: usize| scale.get(c).copied().unwrap_or(1.0);
            let d: Vec<f64> = dy.iter().enumerate().map(|(c, dy)| dy * g(c)).collect();
            let sum_d: f64 = self.summed(&d).iter().sum();
            let sum_dx: f64 = self.summed(&d).iter().zip(&xhat).map(|(d, x)| d * x).sum();
            let subtracts_mean = !rms_norm || self.has(Fault::MeanTermInRmsGradient);
            for c in 0..cols {
                let mut inner = d[c];
                if !global_stats {
                    if subtracts_mean {
                        inner -= sum_d / count;
                    }
                    let missing = self.has(Fault::GradientWithoutRoot);
                    let x = if missing { x[c] - mean } else { xhat[c] };
                    inner -= if c < part { x * sum_dx / divisor } else { 0.0 };
                }
                let n = g(c) * xhat[c] + shift.get(c).copied().unwrap_or(0.0);
                factors.iter_mut().skip(i * cols + c).take(1).for_each(|factor| {
                    *factor *= if gate_output { n } else { r * inner };
                });
                diff_src.push(r * inner);
                diff_scale[c] += dy[c] * xhat[c];
                diff_shift[c] += dy[c];
            }
        }
        self.gated(&mut diff_src, gate_input);
        self.write_diff_gate(&factors);
        if !self.has(Fault::SumGradientDropped) {
            let diff_sum = self.read(NORM_ARG_DIFF_RESIDUAL_DST);
            diff_src.iter_mut().zip(diff_sum).for_each(|(diff_src, more)| *diff_src += more);
        }
        self.write(NORM_ARG_DIFF_SRC, &diff_src);
        self.write(NORM_ARG_DIFF_SCALE, &diff_scale);
        self.write(NORM_ARG_DIFF_SHIFT, &diff_shift);
    }

    /// Writes the byte `value` to an element of an argument; `past` counts from its end.
    fn poke(&self, id: i32, past: isize, value: u8) {
        let argument = self.argument(id).expect("all arguments are passed");
        let size = argument.layout.data_type.size() as isize;
        let at = argument.layout.span() as isize + past * size;
        // SAFETY: the guard after a tensor is longer than an element.
        unsafe { argument.buffer.pointer().offset(at).write_bytes(value, size as usize) };
    }
}

impl Bound for Calculation<'_> {
    fn execute(&self) -> Result<(), Refusal> {
        self.runs.set(self.runs.get() + 1);
        let (one, tiny) = (std::hint::black_box(1.0_f32), std::hint::black_box(1e-20_f32));
        self.rounds_up.set(one + tiny != 1.0);
        let forward = self.problem.direction.is_forward();
        let result = if forward { NORM_ARG_DST } else { NORM_ARG_DIFF_SRC };
        let output = self.argument(result).expect("the result is always there");
        let before = output.buffer.elements(output.layout);
        // Like a correct library, the computation ignores the caller's mode.
        float_mode::under(FloatMode::Default, || match forward {
            true => self.forward(),
            false => self.backward(),
        });
        match self.fault {
            Fault::TailLaneNotWritten => {
                let mut elements = output.buffer.elements(output.layout);
                let last = elements.len() - output.layout.data_type.size();
                elements[last..].copy_from_slice(&before[last..]);
                output.buffer.put(output.layout, &elements);
            }
            Fault::TailLaneTooMany => self.poke(result, 0, 0),
            Fault::InputWritten => self.poke(NORM_ARG_SRC, -1, 0),
            Fault::MeanWritten => self.poke(NORM_ARG_MEAN, -1, 0),
            Fault::UnaskedGradient => self.poke(NORM_ARG_DIFF_SCALE, -1, 0),
            _ => {}
        }
        Ok(())
    }
}
