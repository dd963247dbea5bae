//! The normalization of heads before their rotation.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arguments::parameter_error;
use crate::call::Given;
use crate::plan::OfHeads;
use crate::rope_angles::FLOATS;
use crate::tensor::Tensor;

/// The parameters of the normalization, as they were passed.
pub(crate) struct HeadNorm<'a, 'py> {
    /// `None` for no normalization.
    pub(crate) epsilon: Option<f64>,
    pub(crate) scale: Given<'a, 'py>,
    pub(crate) scale_plus_one: bool,
    pub(crate) rounded: bool,
}

impl<'a, 'py> HeadNorm<'a, 'py> {
    /// The normalization of heads of `size` elements, and its scale.
    pub(crate) fn read(&self, size: usize) -> PyResult<(Option<OfHeads>, Option<Tensor<'a, 'py>>)> {
        let Self { epsilon, scale, scale_plus_one, rounded } = *self;
        let read = |scale| {
            Tensor::read("scale", FLOATS, scale)
                .map_err(|error| parameter_error("scale", scale, error))
        };
        let scale = scale.map(read).transpose()?;
        let Some(epsilon) = epsilon else {
            let given = [
                ("scale", scale.is_some()),
                ("scale_plus_one", scale_plus_one),
                ("rounded", rounded),
            ];
            return match given.iter().find(|(_, given)| *given) {
                None => Ok((None, None)),
                Some((name, _)) => Err(without_epsilon(name)),
            };
        };
        if let Some(scale) = &scale {
            scale.expect_shape(&[size], "one element for each element of a head")?;
            scale.expect_dense()?;
        } else if scale_plus_one {
            return Err(PyValueError::new_err(
                "scale_plus_one needs scale: pass scale, or leave scale_plus_one out",
            ));
        }
        let epsilon = epsilon as f32; // the library rejects what is not finite or negative
        Ok((Some(OfHeads { epsilon, scale_plus_one, rounded }), scale))
    }
}

/// The error for a parameter of the normalization if there is none.
pub(crate) fn without_epsilon(name: &str) -> PyErr {
    PyValueError::new_err(format!(
        "{name} is given, but epsilon is not: pass epsilon, such as 1e-6, which normalizes each head before the \
         rotation, or leave {name} out"
    ))
}
