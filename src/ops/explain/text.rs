//! An explanation as readable text.

use super::remedies::Remedy;
use super::subject::{Explanation, WARNINGS};
use crate::text::shown;
use std::fmt::{self, Write};

/// Writes lines that end with a line feed.
pub(crate) fn write_text(
    out: &mut impl Write,
    found: &Explanation,
    remedies: &[Remedy],
) -> fmt::Result {
    let Explanation { rows, cols, epsilon, rms_in, divisor, ratio, .. } = *found;
    writeln!(out, "rows           {rows} of {cols} elements, epsilon {}", number(epsilon))?;
    writeln!(out, "RMS in         {}", number(rms_in))?;
    writeln!(out, "divisor        {}", number(divisor))?;
    write!(out, "ratio          {}", number(ratio))?;
    if rows > 1 {
        let (smallest, row) = (number(found.smallest_ratio), found.smallest_ratio_row);
        write!(out, ", smallest {smallest} in row {row}")?;
    }
    let (mean, rms) = (number(found.scale_mean), number(found.scale_rms));
    writeln!(out, "\nscale          mean {mean}, RMS {rms}")?;
    writeln!(out, "correlation    {:.3} of |scale| and |src|", found.correlation)?;
    writeln!(out, "RMS out        {}", number(found.rms_out))?;
    writeln!(out, "amplification  {}", number(found.amplification))?;
    write!(out, "warnings      ")?;
    let mut named = WARNINGS.iter().filter(|(bit, _)| found.warnings & bit != 0).peekable();
    if named.peek().is_none() {
        write!(out, " none")?;
    }
    named.try_for_each(|(_, name)| write!(out, " {}", name.to_str().unwrap_or_default()))?;
    writeln!(out)?;
    if remedies.is_empty() {
        return Ok(());
    }
    let titles = ["value", "ratio", "RMS out", "amplification", "scores"];
    write!(out, "{:<16}", "remedy")?;
    titles.iter().try_for_each(|title| write!(out, "{title:>14}"))?;
    writeln!(out)?;
    for remedy in remedies {
        write!(out, "{:<16}", remedy.kind.name())?;
        let Remedy { value, ratio, rms_out, amplification, scores, .. } = *remedy;
        for x in [value, ratio, rms_out, amplification, scores] {
            // A width applies to strings, not to the output of `shown`.
            let mut cell = crate::text::Text::<32>::new();
            write!(cell, "{}", number(x))?;
            write!(out, "{:>14}", cell.as_str())?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Six significant digits.
fn number(x: f64) -> impl fmt::Display {
    shown(move |f| {
        let size = x.abs();
        if size == 0.0 || !size.is_finite() {
            write!(f, "{x}")
        } else if (1e-4..1e6).contains(&size) {
            let before = size.log10().floor() as i32 + 1;
            write!(f, "{x:.*}", (6 - before).clamp(0, 9) as usize)
        } else {
            write!(f, "{x:.5e}")
        }
    })
}
