//! Checks of the tensors of a problem. The messages name the descriptor as the caller knows it.

use super::{DataType, Layout, MemoryDesc};
use crate::error::{Error, Result};
use std::fmt::{self, Display};

impl MemoryDesc {
    /// Checks the data type: `what` supports those for which `supports` is true.
    pub(crate) fn check_type(
        &self,
        name: impl Display,
        what: &str,
        supports: impl Fn(DataType) -> bool,
    ) -> Result<()> {
        let Some(data_type) = self.data_type else {
            return Err(Error::invalid(format_args!("{name}: an empty descriptor")));
        };
        if supports(data_type) {
            return Ok(());
        }
        let (types, found) = (Supported(supports), data_type.name());
        Err(Error::unimplemented(format_args!("{name}: {what} supports {types}, not {found}")))
    }

    /// This descriptor, checked to have the dimensions of `other`. The layout `any` becomes that of `other`, including
    /// gaps if the data types agree.
    pub(crate) fn resolved_for(
        &self,
        name: impl Display,
        (other_name, other): (&str, &Self),
    ) -> Result<Self> {
        if self.dims() != other.dims() {
            return Err(Error::invalid(format_args!(
                "{name}: dimensions {:?} are not those of {other_name}, {:?}",
                self.dims(),
                other.dims()
            )));
        }
        match self.layout {
            Layout::Any if self.data_type == other.data_type && !other.overlaps_itself() => {
                Ok(other.clone())
            }
            Layout::Any => self.resolved_like(other),
            _ => Ok(self.clone()),
        }
    }

    /// Checks that the layout is not left to the library.
    pub(crate) fn check_layout(&self, name: impl Display) -> Result<()> {
        if self.layout != Layout::Strided {
            return Err(Error::invalid(format_args!(
                "{name}: the layout must be given, not `any`"
            )));
        }
        Ok(())
    }

    /// Checks that elements of an output do not overlap.
    pub(crate) fn check_output(&self, name: impl Display) -> Result<()> {
        if self.overlaps_itself() {
            return Err(Error::invalid(format_args!(
                "{name}: elements of an output share an address"
            )));
        }
        Ok(())
    }
}

/// The names of the types for which a function is true.
struct Supported<F>(F);

impl<F: Fn(DataType) -> bool> Display for Supported<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let supported = DataType::ALL.into_iter().filter(|data_type| (self.0)(*data_type));
        for (at, data_type) in supported.enumerate() {
            let separator = if at > 0 { ", " } else { "" };
            write!(f, "{separator}{}", data_type.name())?;
        }
        Ok(())
    }
}
