//! The options of the steps around a normalization: `--residual`, `--gate` and `--partial`.
//!
//! The driver of each normalization has these options; their formulas are in
//! [`oracle::steps`](crate::oracle::steps).

use crate::data_type::DataType;
use crate::language::value::{BadValue, integer, starts};
use crate::oracle::steps::GateFunction;
use crate::tensor::Tag;
use std::fmt;

/// A residual that is added to src.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residual {
    /// Its type.
    pub data_type: DataType,
    /// The type of the sum; `None` if it is not stored.
    pub sum: Option<DataType>,
    /// Whether the f32 sum is normalized, and not the stored one.
    pub exact: bool,
}

/// A gate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gate {
    /// Its type.
    pub data_type: DataType,
    /// The function of its elements.
    pub function: GateFunction,
}

/// The number of a row's elements in the mean square.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Partial {
    /// All of them.
    #[default]
    Whole,
    /// The first ones.
    Elements(usize),
    /// The first ones, in per cent of the row, rounded up.
    Share(f32),
}

/// The layout of a residual.
#[derive(Clone, Debug, PartialEq)]
pub enum ResidualTag {
    /// A tag for every element; `any` for the layout of src.
    Plain(Tag),
    /// One row that all rows share, with strides of 0.
    Row,
}

impl ResidualTag {
    const ROW: &'static str = "row";

    /// The tag, unless rows share elements.
    pub fn plain(&self) -> Option<&Tag> {
        match self {
            ResidualTag::Plain(tag) => Some(tag),
            ResidualTag::Row => None,
        }
    }
}

impl fmt::Display for ResidualTag {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResidualTag::Plain(tag) => tag.fmt(out),
            ResidualTag::Row => out.write_str(ResidualTag::ROW),
        }
    }
}

/// The steps of one problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    /// What is added to src.
    pub residual: Option<Residual>,
    /// Layouts of the residual and of the sum.
    pub residual_tags: (ResidualTag, Tag),
    /// The gate, used as the flags say.
    pub gate: Option<Gate>,
    /// Its layout; `any` for that of src.
    pub gate_tag: Tag,
    /// The elements in the mean square.
    pub partial: Partial,
}

impl Default for Steps {
    /// None.
    fn default() -> Steps {
        Steps {
            residual: None,
            residual_tags: (ResidualTag::Plain(Tag::Any), Tag::Any),
            gate: None,
            gate_tag: Tag::Any,
            partial: Partial::Whole,
        }
    }
}

/// The parameters of the steps' data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepShape {
    /// What is added to src.
    pub residual: Option<Residual>,
    /// The gate.
    pub gate: Option<Gate>,
    /// The number of elements in the mean square; 0 for all.
    pub partial: usize,
    /// The elements that share a dynamic scale; 0 without dynamic scales.
    pub group: usize,
    /// Whether all rows share one row of the residual.
    pub shared_row: bool,
}

impl Residual {
    /// Reads `DT[:SUM_DT|:none][:rounded|:exact]`; nothing for no residual.
    pub fn parse(text: &str) -> Result<Option<Residual>, BadValue> {
        if text.is_empty() {
            return Ok(None);
        }
        let mut pieces = text.split(':').zip(starts(text, ':')).peekable();
        let (first, _) = pieces.next().expect("a split has at least one piece");
        let read = DataType::among(&DataType::ROUNDED_FLOATS);
        let data_type = read(first)?;
        let mut residual = Residual { data_type, sum: Some(data_type), exact: false };
        let is_mode = |text: &str| matches!(text, "rounded" | "exact");
        if let Some((sum, at)) = pieces.next_if(|(piece, _)| !is_mode(piece)) {
            residual.sum = match sum {
                "none" => None,
                _ => Some(read(sum).map_err(|error| {
                    let message = format!("{}, or none, rounded, exact", error.message);
                    BadValue::at(at, message)
                })?),
            };
        }
        if let Some((mode, at)) = pieces.next() {
            residual.exact = match mode {
                "rounded" => false,
                "exact" => true,
                _ => {
                    return Err(BadValue::at(at, format!("'{mode}' is none of rounded, exact")));
                }
            };
        }
        match pieces.next() {
            None => Ok(Some(residual)),
            Some((text, at)) => {
                let form = "DT[:none|:SUM_DT][:rounded|:exact]";
                Err(BadValue::at(at, format!("'{text}' is one value too many for {form}")))
            }
        }
    }

    /// The type that the sum is rounded to before it is normalized, unless it is exact.
    pub fn stored(&self) -> DataType {
        self.sum.unwrap_or(self.data_type)
    }
}

impl fmt::Display for Residual {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.data_type.name())?;
        match self.sum {
            None => out.write_str(":none")?,
            Some(sum) if sum != self.data_type => write!(out, ":{}", sum.name())?,
            Some(_) => {}
        }
        out.write_str(if self.exact { ":exact" } else { "" })
    }
}

impl Gate {
    /// Reads `DT[:swish[:ALPHA]|:logistic]`; nothing for no gate.
    pub fn parse(text: &str) -> Result<Option<Gate>, BadValue> {
        if text.is_empty() {
            return Ok(None);
        }
        let pieces: Vec<(&str, usize)> = text.split(':').zip(starts(text, ':')).collect();
        let data_type = DataType::among(&DataType::ROUNDED_FLOATS)(pieces[0].0)?;
        let function = match pieces.get(1) {
            None | Some(("swish", _)) => GateFunction::Swish { alpha: alpha(pieces.get(2))? },
            Some(("logistic", _)) => GateFunction::Logistic,
            Some((name, at)) => {
                let hint = match *name {
                    "silu" => "; silu is swish",
                    "sigmoid" => "; sigmoid is logistic",
                    _ => "",
                };
                return Err(BadValue::at(
                    *at,
                    format!("'{name}' is none of swish, logistic{hint}"),
                ));
            }
        };
        let most = if function == GateFunction::Logistic { 2 } else { 3 };
        match pieces.get(most) {
            None => Ok(Some(Gate { data_type, function })),
            Some((text, at)) => Err(BadValue::at(*at, format!("'{text}' is one value too many"))),
        }
    }
}

fn alpha(piece: Option<&(&str, usize)>) -> Result<f32, BadValue> {
    let Some((text, at)) = piece else { return Ok(1.0) };
    match text.parse::<f32>() {
        Ok(alpha) if alpha.is_finite() => Ok(alpha),
        _ => Err(BadValue::at(*at, format!("'{text}' is not a finite number"))),
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.data_type.name())?;
        match self.function {
            GateFunction::Swish { alpha: 1.0 } => Ok(()),
            GateFunction::Swish { alpha } => write!(out, ":swish:{alpha}"),
            GateFunction::Logistic => out.write_str(":logistic"),
        }
    }
}

impl Partial {
    /// Reads a number of elements or a share such as `25%`; 0 is the whole row.
    pub fn parse(text: &str) -> Result<Partial, BadValue> {
        if let Some(share) = text.strip_suffix('%') {
            return match share.parse::<f32>() {
                Ok(share) if share > 0.0 && share <= 100.0 => Ok(Partial::Share(share)),
                _ => Err(BadValue::new(format!("'{text}' is not a share above 0% up to 100%"))),
            };
        }
        let count = integer(text, 0..=1 << 40).map_err(|error| {
            BadValue::new(format!("{}, nor a share such as 25%", error.message))
        })?;
        Ok(if count == 0 { Partial::Whole } else { Partial::Elements(count as usize) })
    }

    /// The number of elements of a row; 0 for the whole row.
    pub fn elements(self, cols: usize) -> usize {
        match self {
            Partial::Whole => 0,
            Partial::Elements(count) => count,
            Partial::Share(share) => (f64::from(share) * cols as f64 / 100.0).ceil() as usize,
        }
    }
}

impl fmt::Display for Partial {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Partial::Whole => out.write_str("0"),
            Partial::Elements(count) => count.fmt(out),
            Partial::Share(share) => write!(out, "{share}%"),
        }
    }
}

/// Reads the layouts of the residual and the sum: one for both, or `RESIDUAL:SUM`.
pub fn residual_tags(text: &str) -> Result<(ResidualTag, Tag), BadValue> {
    let (residual, sum) = text.split_once(':').unwrap_or((text, text));
    let shared = residual == ResidualTag::ROW;
    let sum = match (shared, text.contains(':')) {
        (true, false) => Tag::Any,
        _ => Tag::parse(sum).map_err(|error| error.shifted(text.len() - sum.len()))?,
    };
    let residual =
        if shared { ResidualTag::Row } else { ResidualTag::Plain(Tag::parse(residual)?) };
    Ok((residual, sum))
}

/// The text of an optional value.
pub fn text(value: Option<impl fmt::Display>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_again() {
        for (read, written) in [
            ("f32", "f32"),
            ("bf16:f32", "bf16:f32"),
            ("bf16:bf16:rounded", "bf16"),
            ("f16:none:exact", "f16:none:exact"),
            ("f16:exact", "f16:exact"),
            ("", ""),
        ] {
            assert_eq!(text(Residual::parse(read).expect(read)), written, "{read}");
        }
        for (read, written) in [
            ("f32", "f32"),
            ("bf16:swish", "bf16"),
            ("bf16:swish:1.5", "bf16:swish:1.5"),
            ("f16:logistic", "f16:logistic"),
        ] {
            assert_eq!(text(Gate::parse(read).expect(read)), written, "{read}");
        }
        for (read, written) in [("0", "0"), ("07", "7"), ("12.5%", "12.5%")] {
            assert_eq!(Partial::parse(read).expect(read).to_string(), written, "{read}");
        }
        assert_eq!(Partial::Share(6.25).elements(100), 7);
    }

    #[test]
    fn bad_values_are_named_at_their_place() {
        let residual = |text| Residual::parse(text).expect_err(text);
        assert_eq!(residual("f33").offset, 0);
        assert_eq!(residual("f32:f33").offset, 4);
        assert!(residual("f32:f33").message.ends_with("or none, rounded, exact"));
        assert_eq!(residual("f32:f32:precise").offset, 8);
        assert_eq!(residual("f32:none:exact:more").offset, 15);
        assert!(residual("f32:exact:f32").message.ends_with("[:none|:SUM_DT][:rounded|:exact]"));
        let gate = |text| Gate::parse(text).expect_err(text);
        assert_eq!(gate("bf16:silu").message, "'silu' is none of swish, logistic; silu is swish");
        assert_eq!(gate("bf16:swish:x").offset, 11);
        assert_eq!(gate("bf16:logistic:1").offset, 14);
        for text in ["", "-1", "0%", "101%", "half", "x%"] {
            assert!(Partial::parse(text).is_err(), "{text}");
        }
        assert!(residual_tags("ab:ba:ab").is_err());
        assert_eq!(residual_tags("row:b*").expect_err("no tag").offset, 4);
        assert_eq!(residual_tags("row").expect("one row").1, Tag::Any);
    }
}
