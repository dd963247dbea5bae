//! Mode I: the primitive is created, and with `--compare` what that takes is measured.
//!
//! The time is that of the library's two calls, for the descriptor and for the primitive. The first
//! ones of a problem are the slow ones where a library keeps what it made.

use super::case::{Case, End};
use super::comparison::{self, NotOffered};
use crate::contest::Quartiles;
use crate::executor::{Prepared, Refusal};
use crate::outcome::{Compared, Creation, Halt};
use crate::peer::Peer;
use crate::run::Run;
use crate::timing::Timing;

/// How often creating is repeated if nothing else is said.
const AGAIN: u64 = 100;

/// Creates the primitive of a descriptor that was made for the first time.
pub(super) fn measure(
    case: &Case,
    first: &dyn Prepared,
    run: &Run,
) -> Result<(Option<Box<Creation>>, Option<Compared>), End> {
    let ours = seconds(first)?;
    let Some(peer) = &run.peer else { return Ok((None, None)) };
    let theirs = match theirs(case, peer, run)? {
        Ok(theirs) => theirs,
        Err(reason) => return Ok((None, Some(Compared::NotOffered(reason)))),
    };
    let mut again = [Vec::new(), Vec::new()];
    let request = case.problem.request();
    for round in 0..if run.fix_times > 0 { run.fix_times } else { AGAIN } {
        for turn in 0..2 {
            let seconds = match (round + turn) % 2 {
                0 => seconds(&*case.prepare(&request, run)?)?,
                _ => match self::theirs(case, peer, run)? {
                    Ok(seconds) => seconds,
                    Err(reason) => return Ok((None, Some(Compared::NotOffered(reason)))),
                },
            };
            again[((round + turn) % 2) as usize].push(seconds);
        }
    }
    let creation = Creation {
        first_ms: [1e3 * ours, 1e3 * theirs],
        ratio: Quartiles::of_ratios(&again[1], &again[0]),
        again: again.map(|seconds| Timing::of_seconds(&seconds)),
    };
    let compared = Compared::Offered { equal: None, nearer: None, wrong: false };
    Ok((Some(Box::new(creation)), Some(compared)))
}

/// What the library took for the descriptor, and takes for the primitive.
fn seconds(prepared: &dyn Prepared) -> Result<f64, Refusal> {
    let primitive = prepared.bind(&[])?;
    Ok((prepared.creation() + primitive.creation()).as_secs_f64())
}

/// The same of the other library.
fn theirs(case: &Case, peer: &Peer, run: &Run) -> Result<Result<f64, NotOffered>, Halt> {
    let prepared = comparison::prepare(case, peer, run)?;
    Ok(prepared.and_then(|prepared| seconds(&*prepared).map_err(|refusal| refusal.message)))
}
