//! The library under test, called through function pointers.
//!
//! Nothing else in the harness calls the C functions by name: [`Library`] has a pointer to each
//! function that all drivers need, and a driver's [`Request`] calls those that create its primitive
//! descriptors. The pointers are those of the functions linked into the program, or of another
//! library with the same C interface ([`Opened`]). [`Connection`] adds an engine and a stream.
//! [`Executor`] is what the modes see, and tests replace it by a faulty library.

mod attributes;
mod connection;
mod dropout;
mod explain;
pub(crate) mod functions;
mod handle;
mod objects;
mod primitive;
mod row_attributes;
mod steps;
mod tables;
mod values;
mod wanted;

pub use attributes::PrimitiveAttr;
pub(crate) use attributes::{binary, eltwise};
pub use connection::Connection;
pub use functions::Opened;
pub(crate) use functions::functions;
pub use handle::Handle;
pub use objects::{MemoryDesc, has_tag};
pub use primitive::PrimitiveDesc;
pub use steps::{ResidualRequest, StepsRequest, flag_bits};
pub use tables::{Library, Own};
pub use values::data_type;
pub(crate) use wanted::hint;
pub use wanted::{TensorRequest, Wanted};

use crate::executor::{Control, Explainable, Prepared, Refusal, RefusalKind};
use std::any::Any;
use std::fmt;
use std::rc::Rc;

/// The inputs of a primitive descriptor: a driver's own type.
pub trait Request: Any + fmt::Debug {
    /// Creates the primitive descriptor, with the library's first implementation.
    fn create(&self, connection: &Rc<Connection>) -> Result<Box<dyn Prepared>, Refusal>;
}

/// A library as the modes see it: settings, and primitive descriptors.
pub trait Executor: Control {
    /// Creates a primitive descriptor with the library's first implementation.
    fn prepare(&self, request: &dyn Request) -> Result<Box<dyn Prepared>, Refusal>;

    /// Explains the size of outputs, in lines of text.
    fn explain(&self, _explainable: &Explainable<'_>) -> Result<String, Refusal> {
        let message = "the library has no norm_explain".to_owned();
        Err(Refusal { kind: RefusalKind::Unimplemented, message })
    }
}

impl Executor for Rc<Connection> {
    fn prepare(&self, request: &dyn Request) -> Result<Box<dyn Prepared>, Refusal> {
        request.create(self)
    }

    fn explain(&self, explainable: &Explainable<'_>) -> Result<String, Refusal> {
        explain::explain(self, explainable)
    }
}
