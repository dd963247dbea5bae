//! The sizes of a problem as text, in oneDNN's form: `g32mb2ic320ih64iw64eps0.1_n"name"`.

use super::parameters::{EPSILON, GnormProblem};
use crate::language::descriptor::{Descriptor, dimension, is_too_large, named};
use crate::language::value::BadValue;

/// The number of samples if a descriptor does not give it, as in oneDNN.
const SAMPLES: usize = 2;

/// The names of the sizes, in the order in which they are written.
const NAMES: [&str; 6] = ["g", "mb", "ic", "id", "ih", "iw"];

/// Reads a descriptor into a problem.
pub(super) fn parse(text: &str) -> Result<GnormProblem, BadValue> {
    let (mut sizes, mut epsilon, mut name) = ([None; 6], EPSILON, String::new());
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if let Some(rest) = rest.strip_prefix('_') {
            at = text.len() - rest.len();
        } else if let Some(rest) = rest.strip_prefix('n') {
            let start = text.len() - rest.len();
            name = Descriptor::name(rest).map_err(|error| error.shifted(start))?;
            break;
        } else if let Some(rest) = rest.strip_prefix("eps") {
            let start = text.len() - rest.len();
            let end = start + number(rest);
            epsilon = read_epsilon(&text[start..end]).map_err(|error| error.shifted(start))?;
            at = end;
        } else {
            let (index, size) = read_size(text, at)?;
            if sizes[index].replace(size.0).is_some() {
                let name = NAMES[index];
                return Err(BadValue::at(at, format!("'{text}' names {name} twice")));
            }
            at = size.1;
        }
    }
    let [groups, samples, channels, depth, height, width] = sizes;
    let missing = |name: &str| {
        BadValue::at(text.len(), format!("'{text}' has no {name}, as in g32mb2ic320ih64iw64"))
    };
    let groups = groups.ok_or_else(|| missing("g"))?;
    let channels = channels.ok_or_else(|| missing("ic"))?;
    let mut dims = vec![samples.unwrap_or(SAMPLES), channels];
    dims.extend(match (depth, height, width) {
        (None, None, None) => vec![],
        (None, None, Some(width)) => vec![width],
        (None, Some(height), width) => vec![height, width.unwrap_or(height)],
        (Some(depth), None, None) => vec![depth; 3],
        (Some(depth), Some(height), Some(width)) => vec![depth, height, width],
        (Some(_), ..) => return Err(missing(if height.is_none() { "ih" } else { "iw" })),
    });
    // Channels that no integer holds have no remainder.
    if !is_too_large(&dims) && (groups == 0 || channels % groups != 0) {
        let message = format!("{groups} groups do not divide {channels} channels");
        return Err(BadValue::new(message));
    }
    Ok(GnormProblem { dims, groups, epsilon, name, ..GnormProblem::default() })
}

/// Reads a size: which one it is, its value, and where it ends.
fn read_size(text: &str, at: usize) -> Result<(usize, (usize, usize)), BadValue> {
    let rest = &text[at..];
    let Some(index) = NAMES.iter().position(|name| rest.starts_with(name)) else {
        let message = format!(
            "'{text}' is not a problem such as g32mb2ic320ih64iw64: 32 groups, 2 samples, 320 channels, \
             64x64 positions"
        );
        return Err(BadValue::at(at, message));
    };
    let start = at + NAMES[index].len();
    let digits = text[start..].bytes().take_while(u8::is_ascii_digit).count();
    let value = dimension(&text[start..start + digits]).map_err(|error| error.shifted(start))?;
    Ok((index, (value, start + digits)))
}

/// The length of the number at the start of a text.
fn number(text: &str) -> usize {
    let mut before = ' ';
    let belongs = |c: &char| {
        let is_part = c.is_ascii_digit()
            || *c == '.'
            || matches!(c, 'e' | 'E')
            || matches!(c, '-' | '+') && matches!(before, 'e' | 'E');
        before = *c;
        is_part
    };
    text.chars().take_while(belongs).count()
}

fn read_epsilon(text: &str) -> Result<f32, BadValue> {
    match text.parse::<f32>() {
        Ok(epsilon) if epsilon.is_finite() && epsilon >= 0.0 => Ok(epsilon.abs()),
        _ => Err(BadValue::new(format!("'{text}' is not a finite number of 0 or more"))),
    }
}

/// The descriptor of a problem.
pub(super) fn text(problem: &GnormProblem) -> String {
    let GnormProblem { dims, groups, epsilon, .. } = problem;
    let mut text = format!("g{groups}mb{}ic{}", dims[0], dims[1]);
    for (name, dim) in NAMES[8 - dims.len()..].iter().zip(&dims[2..]) {
        text.push_str(&format!("{name}{dim}"));
    }
    if *epsilon != EPSILON {
        let plain = *epsilon == 0.0 || (1e-3..1e6).contains(epsilon);
        text.push_str(&if plain { format!("eps{epsilon}") } else { format!("eps{epsilon:e}") });
    }
    named(&text, &problem.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_any_order_and_written_in_one() {
        for (given, dims, groups, canonical) in [
            ("g32mb2ic320ih64iw64", &[2, 320, 64, 64][..], 32, "g32mb2ic320ih64iw64"),
            ("mb3ic4g2", &[3, 4], 2, "g2mb3ic4"),
            ("g2ic4iw7", &[2, 4, 7], 2, "g2mb2ic4iw7"),
            ("g2ic4ih7_n\"a b\"", &[2, 4, 7, 7], 2, "g2mb2ic4ih7iw7_n\"a b\""),
            (
                "g1_mb1_ic4_id3_eps1e-5nname",
                &[1, 4, 3, 3, 3],
                1,
                "g1mb1ic4id3ih3iw3eps1e-5_n\"name\"",
            ),
            ("g5mb2ic10id9ih1iw10eps0.5", &[2, 10, 9, 1, 10], 5, "g5mb2ic10id9ih1iw10eps0.5"),
        ] {
            let problem = parse(given).expect(given);
            assert_eq!((&problem.dims[..], problem.groups), (dims, groups), "{given}");
            assert_eq!(text(&problem), canonical, "{given}");
            assert_eq!(parse(canonical).expect(canonical), problem, "{given}");
        }
    }

    #[test]
    fn mistakes_are_pointed_at() {
        let error = |text| parse(text).expect_err(text);
        assert_eq!(error("g2mb2ic4x7").offset, 8);
        assert_eq!(error("g2mb2ic").offset, 7);
        assert_eq!(error("g2ic4ic4").offset, 5);
        assert_eq!(error("g2ic4eps-1").offset, 8);
        assert!(error("mb2ic4").message.contains("has no g"));
        assert!(error("g2mb2").message.contains("has no ic"));
        assert!(error("g2ic4id3ih2").message.contains("has no iw"));
        assert!(error("g3ic4").message.contains("3 groups do not divide 4 channels"));
        assert!(error("g0ic4").message.contains("0 groups do not divide 4 channels"));
    }
}
