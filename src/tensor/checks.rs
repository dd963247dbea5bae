//! Checks of the tensors of a problem. The messages name the descriptor as the caller knows it.

use super::{DataType, Layout, MemoryDesc};
use crate::error::{Error, Result};

impl MemoryDesc {
    /// Checks the data type: `what` supports those for which `supports` is true.
    pub(crate) fn check_type(
        &self,
        name: &str,
        what: &str,
        supports: impl Fn(DataType) -> bool,
    ) -> Result<()> {
        let Some(data_type) = self.data_type else {
            return Err(Error::invalid(format!("{name}: an empty descriptor")));
        };
        if supports(data_type) {
            return Ok(());
        }
        let types: Vec<_> = DataType::ALL.into_iter().filter(|t| supports(*t)).collect();
        let names: Vec<_> = types.into_iter().map(DataType::name).collect();
        let (types, found) = (names.join(", "), data_type.name());
        Err(Error::unimplemented(format!("{name}: {what} supports {types}, not {found}")))
    }

    /// This descriptor, checked to have the dimensions of `other`. The layout `any` becomes that of `other`, including
    /// gaps if the data types agree.
    pub(crate) fn resolved_for(
        &self,
        name: &str,
        (other_name, other): (&str, &Self),
    ) -> Result<Self> {
        if self.dims() != other.dims() {
            return Err(Error::invalid(format!(
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

    /// Checks that elements of an output do not overlap.
    pub(crate) fn check_output(&self, name: &str) -> Result<()> {
        if self.overlaps_itself() {
            return Err(Error::invalid(format!("{name}: elements of an output share an address")));
        }
        Ok(())
    }
}
