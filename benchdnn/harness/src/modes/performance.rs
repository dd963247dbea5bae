//! Modes P and F: time.

use super::case::Case;
use super::comparison::{self, NotOffered};
use super::end::End;
use crate::contest::{Contestant, FEWEST, FEWEST_THREADED, Quartiles, Terms, alternate};
use crate::execution::{Placed, Role, Tensor};
use crate::executor::{Bound, Prepared, Refusal};
use crate::fill::Fill;
use crate::outcome::{Against, Compared, Halt, Performance, Roof};
use crate::problem::{Part, Spec};
use crate::report::Reporter;
use crate::roofline::{Region, Roofline, Traffic};
use crate::rotation::{Rotation, Turn, sets};
use crate::run::ColdCache;
use crate::timing::{self, Timing};
use std::time::Instant;

/// Timed creations: the first, and one that a library's cache may speed up.
const CREATIONS: usize = 2;

/// Measures only executions: buffers and primitive are prepared before.
pub(super) fn measure(
    case: &Case<'_>,
    prepared: &dyn Prepared,
    reporter: &mut Reporter<'_>,
) -> Result<(Performance, Option<Compared>), End> {
    let run = case.run;
    let (descriptor, primitive) = creation(case)?;
    let tensors = case.tensors(prepared, Fill::Perf, reporter)?;
    let specs = case.problem.tensors();
    let weights = weights(&specs);
    let placed = sets(&tensors, case.placement(), run.cold_cache, &weights, reporter);
    let (turn, own_turn) = (Turn::default(), Turn::default());
    let ours = rotation(prepared, &placed, &turn, false)?;

    let offer = offer(case, &tensors)?;
    let own_places = match &offer {
        Some(Ok(offer)) if !comparison::same_places(&tensors, &offer.tensors) => {
            Some(sets(&offer.tensors, case.placement(), run.cold_cache, &weights, reporter))
        }
        _ => None,
    };
    let theirs = offer.as_ref().map(|offer| {
        let offer = offer.as_ref().map_err(String::clone)?;
        match &own_places {
            Some(places) => offer.start(places, &own_turn),
            None => offer.start(&placed, &turn),
        }
    });
    let roofline = roofline(case, &specs, &placed);
    let copy = roofline.as_ref().and_then(|roofline| roofline.best(run.max_ms() / 10, &turn));

    let us = || ours.execute();
    let them = theirs.as_ref().and_then(|theirs| theirs.as_ref().ok());
    let them = them.map(|theirs| || theirs.execute());
    let mut contestants: Vec<&dyn Contestant<Refusal>> = vec![&us];
    if let Some(them) = &them {
        contestants.push(them);
    }
    contestants.extend(copy.iter().map(|copy| copy as &dyn Contestant<Refusal>));
    let (timing, mut others) = contest(case, us, &contestants)?;
    let roof = copy.and_then(|copy| {
        let (timing, share) = others.pop()?;
        Some(Roof { copy: copy.name(), timing, share })
    });
    let against = others.pop().and_then(|(timing, ratio)| {
        let implementation = offer.as_ref()?.as_ref().ok()?.prepared.implementation();
        Some(Against { implementation, timing, ratio })
    });
    let compared = theirs.as_ref().map(|theirs| match theirs {
        Ok(_) => Compared::Offered { equal: None, nearer: None, wrong: false },
        Err(reason) => Compared::NotOffered(reason.clone()),
    });
    let performance = Performance {
        implementation: prepared.implementation(),
        threads: threads(case),
        input_bytes: bytes(&tensors, Role::Input),
        output_bytes: bytes(&tensors, Role::Output),
        timing,
        descriptor,
        primitive,
        against,
        roof,
    };
    Ok((performance, compared))
}

/// The arguments to which `--cold-cache=wei` applies.
fn weights(specs: &[Spec]) -> Vec<i32> {
    specs.iter().filter(|spec| spec.part == Part::Weights).map(|spec| spec.id).collect()
}

/// Another contestant's time, and the ratios of its times to the problem's.
type Opponent = (Timing, Quartiles);

/// Times the problem, which is the first contestant, and the others in alternation with it.
fn contest(
    case: &Case<'_>,
    us: impl Fn() -> Result<(), Refusal>,
    contestants: &[&dyn Contestant<Refusal>],
) -> Result<(Timing, Vec<Opponent>), Refusal> {
    let run = case.run;
    if contestants.len() == 1 {
        return Ok((timing::measure(run.max_ms(), run.fix_times, us)?, Vec::new()));
    }
    let threaded = threads(case) > 1;
    let terms = Terms {
        max_ms: run.max_ms(),
        rounds: run.fix_times,
        cold: run.cold_cache != ColdCache::None,
        fewest: if threaded { FEWEST_THREADED } else { FEWEST },
        threaded,
    };
    let mut seconds = alternate(contestants, terms)?;
    let own = seconds.remove(0);
    let against =
        |theirs: Vec<f64>| (Timing::of_seconds(&theirs), Quartiles::of_ratios(&theirs, &own));
    Ok((Timing::of_seconds(&own), seconds.into_iter().map(against).collect()))
}

/// The problem as another library offers it.
struct Offer {
    prepared: Box<dyn Prepared>,
    tensors: Vec<Tensor>,
}

/// The other library's offer, if there is another library.
fn offer(case: &Case<'_>, ours: &[Tensor]) -> Result<Option<Result<Offer, NotOffered>>, Halt> {
    let Some(peer) = &case.run.peer else { return Ok(None) };
    let offer = comparison::prepare(case, peer)?.and_then(|prepared| {
        let tensors = comparison::tensors(case, &*prepared, ours)?;
        Ok(Offer { prepared, tensors })
    });
    Ok(Some(offer))
}

impl Offer {
    /// Binds the other library's primitive, and executes it once to check that it runs.
    fn start<'p>(
        &self,
        placed: &'p [Placed<'_>],
        turn: &'p Turn,
    ) -> Result<Rotation<'p>, NotOffered> {
        let start = || {
            // Some versions of oneDNN require an argument that they do not read.
            let rotation = rotation(&*self.prepared, placed, turn, true)?;
            rotation.execute().map(|()| rotation)
        };
        start().map_err(|refusal: Refusal| refusal.message)
    }
}

/// The limit, if it is requested and there are bytes to move.
fn roofline(case: &Case<'_>, specs: &[Spec], placed: &[Placed<'_>]) -> Option<Roofline> {
    if !case.run.roofline {
        return None;
    }
    let traffics = placed.iter().map(|placed| traffic(specs, placed));
    let traffics: Vec<Traffic> = traffics.collect::<Option<_>>()?;
    // SAFETY: the buffers outlive the copies; the caller waits for them and runs nothing else.
    unsafe { Roofline::new(&traffics, threads(case) as usize) }
}

/// How many threads an execution may use.
fn threads(case: &Case<'_>) -> u64 {
    let threads = match case.wanted_threads() {
        0 => case.library().threads(),
        threads => threads,
    };
    threads.max(1)
}

/// Times the creation of the primitive descriptor, and of the primitive.
fn creation(case: &Case<'_>) -> Result<(Timing, Timing), End> {
    let (mut descriptor, mut primitive) = (Vec::new(), Vec::new());
    for _ in 0..CREATIONS {
        let start = Instant::now();
        let prepared = case.prepare()?;
        descriptor.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        prepared.bind(&[])?;
        primitive.push(start.elapsed().as_secs_f64());
    }
    Ok((Timing::of_seconds(&descriptor), Timing::of_seconds(&primitive)))
}

fn rotation<'p>(
    prepared: &dyn Prepared,
    placed: &'p [Placed<'_>],
    turn: &'p Turn,
    unused: bool,
) -> Result<Rotation<'p>, Refusal> {
    let bind = |placed: &'p Placed<'_>| prepared.bind(&placed.arguments(unused));
    Ok(Rotation::new(placed.iter().map(bind).collect::<Result<_, _>>()?, turn))
}

/// The tensors that every implementation has to move; `None` if a plain copy does not move as many.
fn traffic(specs: &[Spec], placed: &Placed<'_>) -> Option<Traffic> {
    let of_role = |written: bool| {
        let main = specs.iter().filter(move |spec| {
            spec.part == Part::Main
                && spec.role != Role::Unused
                && spec.role.is_written() == written
        });
        main.filter_map(|spec| placed.buffer(spec.id))
            .map(|buffer| Region { pointer: buffer.pointer(), bytes: buffer.span() })
    };
    let (inputs, outputs): (Vec<_>, Vec<_>) = (of_role(false).collect(), of_role(true).collect());
    match (&inputs[..], &outputs[..]) {
        (&[first], &[to]) => Some(Traffic { first, second: None, to }),
        (&[first, second], &[to]) => Some(Traffic { first, second: Some(second), to }),
        _ => None,
    }
}

/// Bytes of the tensors of a role: every element once.
fn bytes(tensors: &[Tensor], role: Role) -> u64 {
    let of_role =
        tensors.iter().filter(|tensor| tensor.role == role || tensor.role == Role::Updated);
    of_role.map(|tensor| (tensor.layout.count() * tensor.data_type().size()) as u64).sum()
}
