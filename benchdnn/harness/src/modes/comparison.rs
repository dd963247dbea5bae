//! `--compare`: the same problem on another library.

use super::cache::Prediction;
use super::case::Case;
use super::end::End;
use super::inputs;
use crate::check;
use crate::data_type::DataType;
use crate::execution::{Fault, Output, Placed, Role, Tensor};
use crate::executor::{Control as _, Prepared};
use crate::library::Executor as _;
use crate::outcome::{Compared, Halt, Side};
use crate::peer::Peer;
use crate::problem::Expected;
use crate::report::Reporter;

/// Why another library does not offer a problem.
pub(super) type NotOffered = String;

/// The problem as another library prepares it. The outer error ends the run.
pub(super) fn prepare(
    case: &Case<'_>,
    peer: &Peer,
) -> Result<Result<Box<dyn Prepared>, NotOffered>, Halt> {
    let threads = case.run.threads;
    let library = peer.open(threads)?;
    let request = case.problem.request();
    let prepared = library.set_threads(threads).and_then(|()| library.prepare(&*request));
    Ok(prepared.map_err(|refusal| refusal.message))
}

/// The problem's tensors, given in this library's layouts, in those of another library.
pub(super) fn tensors(
    case: &Case<'_>,
    theirs: &dyn Prepared,
    ours: &[Tensor],
) -> Result<Vec<Tensor>, NotOffered> {
    let specs = case.problem.tensors();
    // Other libraries may have descriptors of unused arguments.
    let layouts = inputs::layouts_of_used(&specs, theirs).map_err(said)?;
    if !case.can_share(&case.problem.shared_buffers(), &specs, &layouts) {
        return Err("in place needs src and dst with the same layout".to_owned());
    }
    // The elements are in the order of the indices, whatever the layout.
    let tensor = |(ours, layout): (&Tensor, _)| Tensor { layout, ..ours.clone() };
    Ok(ours.iter().zip(layouts).map(tensor).collect())
}

fn said(fault: Fault) -> NotOffered {
    match fault {
        Fault::Refused(refusal) => refusal.message,
        Fault::Damaged(what) => what,
    }
}

/// Mode C: executes once and compares the results with ours and with the oracle's.
pub(super) fn correctness(
    case: &Case<'_>,
    peer: &Peer,
    inputs: &[Tensor],
    ours: &[Output],
    prediction: &Prediction,
    reporter: &mut Reporter<'_>,
) -> Result<Compared, End> {
    let executed = prepare(case, peer)?.and_then(|prepared| {
        let tensors = tensors(case, &*prepared, inputs)?;
        let placed = Placed::new(&tensors, case.placement());
        // Some versions of oneDNN require an argument that they do not read.
        let bound = prepared.bind(&placed.arguments(true)).map_err(|refusal| refusal.message)?;
        reporter.detail(5, &format!("compare: implementation: {}", prepared.implementation()));
        placed.run(&*bound, None).map_err(said)
    });
    let theirs = match executed {
        Ok(theirs) => theirs,
        Err(reason) => return Ok(Compared::NotOffered(reason)),
    };
    let (mut equal, mut wrong, mut errors) = (true, false, [0.0_f64; 2]);
    for ours in ours {
        let find = |output: &&Output| output.id == ours.id;
        let Some(theirs) = theirs.iter().find(find) else { continue };
        let expected = prediction.expected.iter().find(|expected| expected.id == ours.id);
        let expected = expected.expect("the oracle gives every output");
        if let Some(Apart { line, errors: worst, wrong: outside }) = compare(ours, theirs, expected)
        {
            equal = false;
            wrong |= outside;
            reporter.say(&line);
            errors = [errors[0].max(worst[0]), errors[1].max(worst[1])];
        }
    }
    if equal {
        reporter.say("  compare: all results are equal");
    }
    Ok(Compared::Offered { equal: Some(equal), nearer: nearer(errors), wrong })
}

/// Which side has the smaller error.
fn nearer([ours, theirs]: [f64; 2]) -> Option<Side> {
    if ours < theirs {
        Some(Side::Ours)
    } else if theirs < ours {
        Some(Side::Theirs)
    } else {
        None
    }
}

/// Two results that differ.
struct Apart {
    /// The line to print.
    line: String,
    /// The largest error of each side, relative to the tolerance.
    errors: [f64; 2],
    /// Whether theirs exceeds the tolerance.
    wrong: bool,
}

/// Compares an output; nothing if they are equal.
fn compare(ours: &Output, theirs: &Output, expected: &Expected) -> Option<Apart> {
    let dt = ours.layout.data_type;
    let Expected { kind, values: want, terms, .. } = expected;
    let values = [dt.decode(&ours.elements), dt.decode(&theirs.elements)];
    let Difference { count, largest, at } = difference(dt, ours, theirs, &values)?;
    let checks = values.each_ref().map(|got| check::check(ours.name, *kind, dt, got, want, terms));
    let errors = checks.map(|check| check.worst.map_or(0.0, |worst| worst.in_allowed()));
    let name = ours.name;
    let total = want.len();
    let place = ours.layout.coordinates(at);
    let (a, b, oracle) = (values[0][at], values[1][at], want[at]);
    let nearer = match nearer(errors) {
        Some(Side::Ours) => "ours is nearer to the oracle",
        Some(Side::Theirs) => "theirs is nearer to the oracle",
        None => "both are equally near to the oracle",
    };
    let mut line = format!(
        "  compare: {name}: {count} of {total} differ, by at most {largest:.3e} at {name}{place}: \
         ours {a:?}, theirs {b:?}, oracle {oracle:?}; {nearer}: errors {:.3} and {:.3} of what is \
         allowed",
        errors[0], errors[1]
    );
    let wrong = checks[1].failed > 0;
    if wrong {
        line.push_str(&format!("; theirs has {} wrong", checks[1].failed));
    }
    Some(Apart { line, errors, wrong })
}

/// How two results differ.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Difference {
    count: usize,
    /// The largest one; infinite between a number and an infinity or NaN.
    largest: f64,
    /// Its index.
    at: usize,
}

/// Compares bits; any NaN equals any NaN.
fn difference(
    dt: DataType,
    ours: &Output,
    theirs: &Output,
    values: &[Vec<f64>; 2],
) -> Option<Difference> {
    if ours.elements == theirs.elements {
        return None;
    }
    let size = dt.size();
    let mut found: Option<Difference> = None;
    let bytes = ours.elements.chunks_exact(size).zip(theirs.elements.chunks_exact(size));
    for (at, (ours, theirs)) in bytes.enumerate() {
        let (a, b) = (values[0][at], values[1][at]);
        if ours == theirs || (a.is_nan() && b.is_nan()) {
            continue;
        }
        let apart = if a == b { 0.0 } else { (a - b).abs() };
        let apart = if apart.is_nan() { f64::INFINITY } else { apart };
        found = Some(match found {
            Some(before) if before.largest >= apart => {
                Difference { count: before.count + 1, ..before }
            }
            before => Difference {
                count: before.map_or(0, |before| before.count) + 1,
                largest: apart,
                at,
            },
        });
    }
    found
}

/// Whether two libraries use the same layouts, so that they can share buffers.
pub(super) fn same_places(ours: &[Tensor], theirs: &[Tensor]) -> bool {
    let mut pairs = ours.iter().zip(theirs);
    pairs.all(|(a, b)| a.role == Role::Unused || a.layout.same_places(&b.layout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Kind;
    use crate::tensor::Layout;

    fn output(values: &[f64]) -> Output {
        let layout = Layout::dense(&[values.len() / 2, 2], DataType::F32);
        let elements = DataType::F32.encode(values);
        Output { id: 17, name: "dst", layout, elements }
    }

    fn apart(ours: &[f64], theirs: &[f64], want: &[f64]) -> Option<Apart> {
        let terms = want.iter().map(|value| value.abs()).collect();
        let expected = Expected::new(17, Kind::Result, want.to_vec(), terms);
        compare(&output(ours), &output(theirs), &expected)
    }

    #[test]
    fn the_nearer_one_is_named_and_the_place_of_the_largest_difference() {
        let want = [1.0, 2.0, 3.0, 4.0];
        assert!(apart(&want, &want, &want).is_none());
        let it = apart(&want, &[1.0, 2.5, 3.0, 4.25], &want).expect("they differ");
        let (text, errors) = (it.line, it.errors);
        assert!(it.wrong);
        assert!(
            text.starts_with(
                "  compare: dst: 2 of 4 differ, by at most 5.000e-1 at dst(0,1): ours 2.0, theirs \
                 2.5, oracle 2.0; ours is nearer to the oracle: errors 0.000 and "
            ),
            "{text}"
        );
        assert!(text.ends_with(" of what is allowed; theirs has 2 wrong"), "{text}");
        assert_eq!(nearer(errors), Some(Side::Ours));
        let it = apart(&[1.0, 2.0, 3.5, 4.0], &want, &want).expect("they differ");
        assert!(it.line.contains("at dst(1,0): ours 3.5") && !it.wrong, "{}", it.line);
        assert_eq!(nearer(it.errors), Some(Side::Theirs));
        let ulp = [1.0 + f64::from(f32::EPSILON), 2.0, 3.0, 4.0];
        assert!(!apart(&want, &ulp, &want).expect("they differ").wrong);
    }

    #[test]
    fn infinities_differ_from_numbers_and_nan_from_nothing_but_numbers() {
        let want = [1.0, 2.0, 3.0, 4.0];
        let nan = [f64::NAN, 2.0, 3.0, 4.0];
        assert!(apart(&nan, &nan, &nan).is_none());
        let it = apart(&want, &nan, &want).expect("they differ");
        assert!(it.line.contains("1 of 4 differ, by at most inf at dst(0,0)"), "{}", it.line);
        assert_eq!(it.errors[1], f64::INFINITY);
    }
}
