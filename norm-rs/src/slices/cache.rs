//! The primitives that a thread used most recently.

use std::cell::RefCell;
use std::rc::Rc;

use crate::data_type::DataType;
use crate::engine::Engine;
use crate::error::Result;
use crate::info::{CpuIsa, effective_cpu_isa};
use crate::layer_normalization::{Backward, Flags, Forward};
use crate::memory_desc::MemoryDesc;
use crate::primitive::{Primitive, PropKind};
use crate::stream::Stream;

/// The number of primitives that each thread keeps for the functions on slices.
///
/// A model has few distinct problems: its widths, forward and backward, for one or two batch sizes
/// at a time.
pub const CACHED: usize = 32;

/// The key of a problem.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Problem {
    pub(super) prop_kind: PropKind,
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) data_type: DataType,
    pub(super) flags: Flags,
    pub(super) epsilon: f32,
}

/// A primitive and the objects for its arguments.
pub(super) struct Plan {
    pub(super) engine: Engine,
    pub(super) stream: Stream<'static>,
    pub(super) primitive: Primitive,
    /// `[rows, cols]`: src, dst and their gradients.
    pub(super) rows: MemoryDesc,
    /// `[rows]`, f32: mean and variance.
    pub(super) stats: MemoryDesc,
    /// `[cols]`: scale, shift and their gradients.
    pub(super) params: MemoryDesc,
}

impl Plan {
    fn new(problem: &Problem) -> Result<Self> {
        let &Problem { prop_kind, rows, cols, data_type, flags, epsilon } = problem;
        let engine = Engine::cpu()?;
        let src = MemoryDesc::dense(&[rows, cols], data_type)?;
        let stats = MemoryDesc::dense(&[rows], DataType::F32)?;
        let params = MemoryDesc::dense(&[cols], data_type)?;
        let primitive = match prop_kind {
            PropKind::ForwardTraining | PropKind::ForwardInference => {
                let builder = match prop_kind {
                    PropKind::ForwardTraining => Forward::training(&engine, &src),
                    _ => Forward::inference(&engine, &src),
                };
                let builder = builder.dst(&src).stats(&stats).scale_shift_type(data_type);
                builder.epsilon(epsilon).flags(flags).build()?.into_primitive()
            }
            PropKind::Backward | PropKind::BackwardData => {
                let builder = match prop_kind {
                    PropKind::Backward => Backward::new(&engine, &src),
                    _ => Backward::data(&engine, &src),
                };
                let builder = builder.diff_src(&src).diff_dst(&src).stats(&stats);
                let builder = builder.scale_shift_type(data_type).diff_scale_shift_type(data_type);
                builder.epsilon(epsilon).flags(flags).build()?.into_primitive()
            }
        };
        Ok(Self { stream: Stream::new(&engine)?, engine, primitive, rows: src, stats, params })
    }
}

/// Primitives, most recently used first.
#[derive(Default)]
struct Cache {
    // The instruction-set limit may change between calls and governs new primitives, so it is part
    // of the key.
    plans: Vec<(Problem, CpuIsa, Rc<Plan>)>,
}

impl Cache {
    fn get(&mut self, problem: &Problem, isa: CpuIsa) -> Result<Rc<Plan>> {
        let found = self.plans.iter().position(|(p, i, _)| p == problem && *i == isa);
        match found {
            Some(at) => self.plans[..=at].rotate_right(1),
            None => {
                let plan = Rc::new(Plan::new(problem)?);
                self.plans.truncate(CACHED - 1);
                self.plans.insert(0, (*problem, isa, plan));
            }
        }
        Ok(Rc::clone(&self.plans[0].2))
    }
}

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::default();
}

/// The primitive for a problem, from the cache or new.
pub(super) fn plan(problem: &Problem) -> Result<Rc<Plan>> {
    let isa = effective_cpu_isa();
    // The cache is gone while the thread destroys its thread-local values.
    CACHE
        .try_with(|cache| cache.borrow_mut().get(problem, isa))
        .unwrap_or_else(|_| Plan::new(problem).map(Rc::new))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(rows: usize) -> Problem {
        Problem {
            prop_kind: PropKind::ForwardInference,
            rows,
            cols: 4,
            data_type: DataType::F32,
            flags: Flags::NONE,
            epsilon: 1e-5,
        }
    }

    #[test]
    fn equal_problems_share_a_primitive() {
        let first = plan(&problem(3)).unwrap();
        for other in [
            problem(2),
            Problem { cols: 5, ..problem(3) },
            Problem { epsilon: 1e-6, ..problem(3) },
            Problem { flags: Flags::RMS_NORM, ..problem(3) },
            Problem { data_type: DataType::Bf16, ..problem(3) },
            Problem { prop_kind: PropKind::ForwardTraining, ..problem(3) },
            Problem { prop_kind: PropKind::BackwardData, ..problem(3) },
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
