//! The positions of tokens: one number, or parts such as time, row and column.

use norm_rs::DataType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::plan::{MOST_SECTIONS, Sections};
use crate::tensor::{Tensor, tuple};

/// Element types of positions.
const INDICES: &[DataType] = &[DataType::S32, DataType::S64];

/// The positions, as they were passed.
pub(crate) struct Positions<'a, 'py> {
    pub(crate) array: &'a Bound<'py, PyAny>,
    pub(crate) sections: Option<Vec<usize>>,
    pub(crate) interleaved_sections: bool,
    pub(crate) index_dim: Option<usize>,
}

impl<'a, 'py> Positions<'a, 'py> {
    /// The array, for heads in `input`.
    pub(crate) fn read(&self, input: &Tensor<'_, '_>) -> PyResult<(Tensor<'a, 'py>, Sections)> {
        let sections = self.sections()?;
        let positions = Tensor::read("positions", INDICES, self.array)?;
        let (name, shape) = (input.name, &positions.shape);
        let outer = &input.shape[..input.shape.len().saturating_sub(1)];
        let (own, parts) = match sections.parts {
            0 => (&shape[..], None),
            _ => shape.split_last().map_or((&shape[..], None), |(last, own)| (own, Some(*last))),
        };
        let fits = |(own, of_input): (&usize, &usize)| own == of_input || *own == 1;
        let fits = own.len() == outer.len() && own.iter().zip(outer).all(fits);
        if !fits || parts.unwrap_or(0) != sections.parts {
            let last = match sections.parts {
                0 => String::new(),
                parts => format!(", and {parts} at the end, the number of sections"),
            };
            return Err(PyValueError::new_err(format!(
                "positions has the shape {}, but {name} has {}: pass the dimensions of {name} without the last, with 1 \
                 where positions are shared, such as for heads{last}",
                tuple(shape),
                tuple(&input.shape)
            )));
        }
        match self.index_dim {
            Some(dim) if own.get(dim) != Some(&1) => Err(PyValueError::new_err(format!(
                "index_dim is {dim}: pass the number of a dimension of {name} before the last, in which positions has \
                 the size 1; positions has the shape {}",
                tuple(shape)
            ))),
            _ => Ok((positions, sections)),
        }
    }

    fn sections(&self) -> PyResult<Sections> {
        let interleaved = self.interleaved_sections;
        let Some(given) = &self.sections else {
            if interleaved {
                return Err(PyValueError::new_err(
                    "interleaved_sections is True, but there are no sections: pass sections, or leave it out",
                ));
            }
            return Ok(Sections::default());
        };
        let parts = given.len();
        if !(2..=MOST_SECTIONS).contains(&parts) {
            return Err(PyValueError::new_err(format!(
                "sections has the length {parts}: pass 2 to {MOST_SECTIONS} numbers, how many pairs each part of a \
                 position rotates, or None for positions of one number"
            )));
        }
        let mut pairs = [0; MOST_SECTIONS];
        pairs[..parts].copy_from_slice(given);
        Ok(Sections { pairs, parts, interleaved })
    }
}
