//! What a call wants of an array: its name in messages, its element types, and what the array is for.
//!
//! What to do about an array that does not fit depends on the last. A copy of an input will do, but the caller of a
//! function that writes into a copy never sees the result.

use norm_rs::DataType;
use pyo3::PyErr;
use pyo3::exceptions::{PyTypeError, PyValueError};

use crate::tensor::type_name;

/// What to do about strides of an input that the library cannot use.
pub(crate) const MAKE_CONTIGUOUS: &str =
    "pass a contiguous copy: numpy.ascontiguousarray(...), or .contiguous() of a torch.Tensor";

/// The same for an output.
pub(crate) const NEW_CONTIGUOUS: &str = "pass a contiguous array, such as numpy.empty(shape, dtype), and read the \
                                         result from it after the call";

/// What to say about an output that its library does not let anyone write.
pub(crate) const READ_ONLY: &str =
    "is read-only: pass a writable array, and read the result from it after the call";

/// Element types of masks.
const MASKS: &[DataType] = &[DataType::F32, DataType::Bf16, DataType::F16, DataType::U8];

/// Element types of conditions.
const CONDITIONS: &[DataType] = &[DataType::U8, DataType::S8];

/// What an array is for.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Input,
    /// An input whose elements of bool are bytes of 0 and 1.
    Mask,
    /// As a mask, with integers only.
    Condition,
    Output,
}

/// What a call wants of an array.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'x> {
    /// The name of the parameter.
    pub(crate) name: &'static str,
    types: &'x [DataType],
    role: Role,
}

impl<'x> Wanted<'x> {
    pub(crate) fn input(name: &'static str, types: &'x [DataType]) -> Self {
        Self { name, types, role: Role::Input }
    }

    pub(crate) fn mask(name: &'static str) -> Self {
        Self { name, types: MASKS, role: Role::Mask }
    }

    pub(crate) fn condition(name: &'static str) -> Self {
        Self { name, types: CONDITIONS, role: Role::Condition }
    }

    pub(crate) fn output(name: &'static str, types: &'x [DataType]) -> Self {
        Self { name, types, role: Role::Output }
    }

    pub(crate) fn is_output(&self) -> bool {
        self.role == Role::Output
    }

    /// Whether elements of bool are bytes.
    pub(crate) fn has_bools(&self) -> bool {
        matches!(self.role, Role::Mask | Role::Condition)
    }

    pub(crate) fn has(&self, data_type: DataType) -> bool {
        self.types.contains(&data_type)
    }

    /// The error for elements of another type.
    pub(crate) fn wrong_type(&self, given: &str) -> PyErr {
        let (name, list) = (self.name, type_names(self.types));
        PyTypeError::new_err(match self.role {
            Role::Input => format!("{name} has elements of {given}: convert them to {list}"),
            Role::Mask => format!(
                "{name} has elements of {given}: pass float32, bfloat16 or float16, which are added, or bool or uint8, \
                 where False and 0 hide a key"
            ),
            Role::Condition => {
                format!("{name} has elements of {given}: convert them to bool, int8 or uint8")
            }
            Role::Output => format!(
                "{name} has elements of {given}: pass an array of {list}, and read the result from it after the call"
            ),
        })
    }

    /// What to do about strides that the library cannot use.
    pub(crate) fn contiguous(&self) -> &'static str {
        if self.is_output() { NEW_CONTIGUOUS } else { MAKE_CONTIGUOUS }
    }

    /// An error whose remedy is a copy, which `copy` is an expression for; for an output, a new array.
    pub(crate) fn needs_copy(&self, what: &str, copy: &str) -> PyErr {
        let name = self.name;
        PyValueError::new_err(match self.role {
            Role::Output => {
                format!(
                    "{name} {what}: pass a new array, and read the result from it after the call"
                )
            }
            _ => format!("{name} {what}: pass {name}{copy}"),
        })
    }
}

/// A list of types in words.
fn type_names(types: &[DataType]) -> String {
    let names: Vec<_> = types.iter().map(|&data_type| type_name(data_type)).collect();
    match names.split_last() {
        None => String::new(),
        Some((last, [])) => last.to_string(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    }
}
