//! The primitives that a thread used most recently.

use std::cell::RefCell;
use std::rc::Rc;

use super::stream_scope::with_current;
use super::view::Tensor;
use crate::data_type::DataType;
use crate::engine::Engine;
use crate::error::Result;
use crate::info::{CpuIsa, effective_cpu_isa};
use crate::layer_normalization::{self, Flags};
use crate::memory_desc::MemoryDesc;
use crate::primitive::{Args, Primitive, PropKind};
use crate::softmax::{self, Algorithm};
use crate::stream::Stream;

/// The number of primitives that each thread keeps for the functions on slices, arrays and tensors.
///
/// A model has few distinct problems: its widths, forward and backward, for one or two batch sizes
/// at a time.
pub const CACHED: usize = 32;

/// The operation of a problem.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operation {
    Normalization { flags: Flags, epsilon: f32, params: DataType, diff_params: DataType },
    Softmax { algorithm: Algorithm, axis: usize },
}

/// The key of a problem.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Problem {
    pub(super) operation: Operation,
    pub(super) prop_kind: PropKind,
    /// src; in the backward pass of softmax dst.
    pub(super) data: Tensor,
    /// dst; in a backward pass diff_dst.
    pub(super) dst: Tensor,
    /// Backward only.
    pub(super) diff_src: Option<Tensor>,
}

/// A primitive and the objects for its arguments.
pub(super) struct Plan {
    problem: Problem,
    isa: CpuIsa,
    pub(super) engine: Engine,
    stream: Stream<'static>,
    primitive: Primitive,
    pub(super) data: MemoryDesc,
    pub(super) dst: MemoryDesc,
    /// Backward only; otherwise as dst.
    pub(super) diff_src: MemoryDesc,
    /// Mean and variance: f32, dense, one for each row.
    pub(super) stats: MemoryDesc,
    /// Scale and shift: dense, one for each column.
    pub(super) params: MemoryDesc,
    pub(super) diff_params: MemoryDesc,
}

impl Plan {
    fn new(problem: &Problem, isa: CpuIsa) -> Result<Self> {
        let engine = Engine::cpu()?;
        let Problem { data, dst, diff_src, operation, .. } = problem;
        let cols = data.shape.cols();
        let (params, diff_params) = match operation {
            Operation::Normalization { params, diff_params, .. } => (*params, *diff_params),
            Operation::Softmax { .. } => (DataType::F32, DataType::F32),
        };
        let stats = MemoryDesc::dense(data.shape.outer(), DataType::F32)?;
        let params = MemoryDesc::dense(&[cols], params)?;
        let diff_params = MemoryDesc::dense(&[cols], diff_params)?;
        let (data, dst, diff_src) =
            (data.desc()?, dst.desc()?, diff_src.as_ref().unwrap_or(dst).desc()?);
        let primitive = problem.primitive(&engine, [&data, &dst, &diff_src], &stats)?;
        let stream = Stream::new(&engine)?;
        let problem = *problem;
        Ok(Self {
            problem,
            isa,
            engine,
            stream,
            primitive,
            data,
            dst,
            diff_src,
            stats,
            params,
            diff_params,
        })
    }

    /// Executes on the thread's stream.
    pub(super) fn execute(&self, args: Args<'_>) -> Result<()> {
        with_current(&self.stream, |stream| self.primitive.execute(stream, args))
    }
}

impl Problem {
    fn primitive(
        &self,
        engine: &Engine,
        [data, dst, diff_src]: [&MemoryDesc; 3],
        stats: &MemoryDesc,
    ) -> Result<Primitive> {
        let forward =
            matches!(self.prop_kind, PropKind::ForwardTraining | PropKind::ForwardInference);
        Ok(match self.operation {
            Operation::Normalization { flags, epsilon, params, .. } if forward => {
                let builder = match self.prop_kind {
                    PropKind::ForwardTraining => {
                        layer_normalization::Forward::training(engine, data)
                    }
                    _ => layer_normalization::Forward::inference(engine, data),
                };
                let builder = builder.dst(dst).stats(stats).scale_shift_type(params);
                builder.epsilon(epsilon).flags(flags).build()?.into_primitive()
            }
            Operation::Normalization { flags, epsilon, params, diff_params } => {
                let builder = match self.prop_kind {
                    PropKind::Backward => layer_normalization::Backward::new(engine, data),
                    _ => layer_normalization::Backward::data(engine, data),
                };
                let builder = builder.diff_src(diff_src).diff_dst(dst).stats(stats);
                let builder = builder.scale_shift_type(params).diff_scale_shift_type(diff_params);
                builder.epsilon(epsilon).flags(flags).build()?.into_primitive()
            }
            Operation::Softmax { algorithm, axis } if forward => {
                let builder = softmax::Forward::new(engine, data, axis).algorithm(algorithm);
                builder.dst(dst).build()?.into_primitive()
            }
            Operation::Softmax { algorithm, axis } => {
                let builder = softmax::Backward::new(engine, data, axis).algorithm(algorithm);
                builder.diff_dst(dst).diff_src(diff_src).build()?.into_primitive()
            }
        })
    }
}

/// Primitives, most recently used first.
#[derive(Default)]
struct Cache {
    plans: Vec<Rc<Plan>>,
}

impl Cache {
    // The instruction-set limit applies to new primitives and may change between calls, so it is part of the key.
    fn get(&mut self, problem: &Problem, isa: CpuIsa) -> Result<Rc<Plan>> {
        let found = self.plans.iter().position(|plan| plan.problem == *problem && plan.isa == isa);
        match found {
            Some(at) => self.plans[..=at].rotate_right(1),
            None => {
                let plan = Rc::new(Plan::new(problem, isa)?);
                self.plans.truncate(CACHED - 1);
                self.plans.insert(0, plan);
            }
        }
        Ok(Rc::clone(&self.plans[0]))
    }
}

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::default();
}

/// The primitive for a problem, from the cache or new.
pub(super) fn plan(problem: &Problem) -> Result<Rc<Plan>> {
    let isa = effective_cpu_isa();
    // The cache no longer exists while the thread destroys its thread-local values.
    CACHE
        .try_with(|cache| cache.borrow_mut().get(problem, isa))
        .unwrap_or_else(|_| Plan::new(problem, isa).map(Rc::new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensors::view::Shape;

    fn tensor(data_type: DataType, rows: usize, cols: usize) -> Tensor {
        Tensor { data_type, shape: Shape::rows(rows, cols) }
    }

    fn normalization(flags: Flags, epsilon: f32, params: DataType) -> Operation {
        Operation::Normalization { flags, epsilon, params, diff_params: DataType::F32 }
    }

    fn problem(rows: usize) -> Problem {
        let data = tensor(DataType::F32, rows, 4);
        Problem {
            operation: normalization(Flags::SCALE, 1e-5, DataType::F32),
            prop_kind: PropKind::ForwardInference,
            data,
            dst: data,
            diff_src: None,
        }
    }

    #[test]
    fn equal_problems_share_a_primitive() {
        let first = plan(&problem(3)).unwrap();
        let with = |operation| Problem { operation, ..problem(3) };
        let both = |data| Problem { data, dst: data, ..problem(3) };
        for other in [
            problem(2),
            both(tensor(DataType::F32, 3, 5)),
            both(tensor(DataType::Bf16, 3, 4)),
            Problem { dst: tensor(DataType::Bf16, 3, 4), ..problem(3) },
            with(normalization(Flags::SCALE, 1e-6, DataType::F32)),
            with(normalization(Flags::SCALE | Flags::RMS_NORM, 1e-5, DataType::F32)),
            with(normalization(Flags::SCALE, 1e-5, DataType::Bf16)),
            with(Operation::Softmax { algorithm: Algorithm::Accurate, axis: 1 }),
            with(Operation::Softmax { algorithm: Algorithm::Log, axis: 1 }),
            with(Operation::Softmax { algorithm: Algorithm::Log, axis: 0 }),
            Problem { prop_kind: PropKind::ForwardTraining, ..problem(3) },
            Problem {
                prop_kind: PropKind::BackwardData,
                diff_src: Some(tensor(DataType::F32, 3, 4)),
                ..problem(3)
            },
        ] {
            assert!(!Rc::ptr_eq(&first, &plan(&other).unwrap()), "{other:?}");
        }
        assert!(Rc::ptr_eq(&first, &plan(&problem(3)).unwrap()));
    }

    #[test]
    fn the_least_recently_used_primitive_is_evicted() {
        let mut cache = Cache::default();
        let isa = effective_cpu_isa();
        let oldest = cache.get(&problem(0), isa).unwrap();
        let second = cache.get(&problem(1), isa).unwrap();
        for rows in 2..CACHED {
            cache.get(&problem(rows), isa).unwrap();
        }
        assert!(Rc::ptr_eq(&oldest, &cache.get(&problem(0), isa).unwrap()));
        cache.get(&problem(CACHED), isa).unwrap(); // one too many: rows 1 is the oldest now
        assert_eq!(cache.plans.len(), CACHED);
        assert!(Rc::ptr_eq(&oldest, &cache.get(&problem(0), isa).unwrap()));
        assert!(!Rc::ptr_eq(&second, &cache.get(&problem(1), isa).unwrap()));
    }
}
