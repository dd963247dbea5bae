//! Mode I: creates the primitive and, with `--compare`, times that.
//!
//! The time is that of the library's two calls, for the descriptor and for the primitive. A library
//! with a cache of primitives is slow the first time and fast later, so both are measured.

use super::case::Case;
use super::comparison::{self, NotOffered};
use super::end::End;
use crate::contest::Quartiles;
use crate::executor::{Prepared, Refusal};
use crate::outcome::{Compared, Creation, Halt};
use crate::peer::Peer;
use crate::timing::Timing;

/// How often creation is repeated by default.
const AGAIN: u64 = 100;

/// Creates the primitive of a descriptor that was created for the first time.
pub(super) fn measure(
    case: &Case<'_>,
    first: &dyn Prepared,
) -> Result<(Option<Box<Creation>>, Option<Compared>), End> {
    let ours = seconds(first)?;
    let Some(peer) = &case.run.peer else { return Ok((None, None)) };
    let theirs = match theirs(case, peer)? {
        Ok(theirs) => theirs,
        Err(reason) => return Ok((None, Some(Compared::NotOffered(reason)))),
    };
    let mut again = [Vec::new(), Vec::new()];
    let fixed = case.run.fix_times;
    for round in 0..if fixed > 0 { fixed } else { AGAIN } {
        for turn in 0..2 {
            let seconds = match (round + turn) % 2 {
                0 => seconds(&*case.prepare()?)?,
                _ => match self::theirs(case, peer)? {
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

/// The time to create the descriptor and the primitive.
fn seconds(prepared: &dyn Prepared) -> Result<f64, Refusal> {
    let primitive = prepared.bind(&[])?;
    Ok((prepared.creation() + primitive.creation()).as_secs_f64())
}

/// The same for the other library.
fn theirs(case: &Case<'_>, peer: &Peer) -> Result<Result<f64, NotOffered>, Halt> {
    let prepared = comparison::prepare(case, peer)?;
    Ok(prepared.and_then(|prepared| seconds(&*prepared).map_err(|refusal| refusal.message)))
}
