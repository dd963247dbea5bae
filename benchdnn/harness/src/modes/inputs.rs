//! The tensors of a problem: their layouts and their generated data.

use crate::execution::{Fault, Role, Tensor};
use crate::executor::Prepared;
use crate::fill::{self, Fill};
use crate::problem::{Data, Place, Problem, Spec};
use crate::tensor::Layout;
use std::rc::Rc;

/// The layouts of all tensors. The library's descriptors must match the problem, and it must not have a descriptor of
/// an unused argument.
pub(super) fn layouts(specs: &[Spec], prepared: &dyn Prepared) -> Result<Vec<Layout>, Fault> {
    let unused = |spec: &&Spec| spec.role == Role::Unused && prepared.layout(spec.id).is_some();
    match specs.iter().find(unused) {
        Some(Spec { name, .. }) => Err(Fault::Damaged(format!(
            "the library has a descriptor of {name}, which is not used"
        ))),
        None => layouts_of_used(specs, prepared),
    }
}

/// The same without checking the descriptors of unused arguments.
pub(super) fn layouts_of_used(
    specs: &[Spec],
    prepared: &dyn Prepared,
) -> Result<Vec<Layout>, Fault> {
    specs.iter().map(|spec| layout(spec, prepared)).collect()
}

/// Unused tensors are dense.
fn layout(spec: &Spec, prepared: &dyn Prepared) -> Result<Layout, Fault> {
    let fits = |layout: &Layout| layout.dims == spec.dims && layout.data_type == spec.data_type;
    let name = spec.name;
    match &spec.place {
        Place::Given(layout) => Ok(layout.clone()),
        Place::Preferred(own) => {
            Ok(prepared.layout(spec.id).filter(fits).unwrap_or_else(|| own.clone()))
        }
        Place::Queried if spec.role == Role::Unused => {
            Ok(Layout::dense(&spec.dims, spec.data_type))
        }
        Place::Queried => match prepared.layout(spec.id) {
            None => Err(Fault::Damaged(format!("the library has no descriptor of {name}"))),
            Some(layout) if fits(&layout) => Ok(layout),
            Some(layout) => {
                Err(Fault::Damaged(format!("the library's descriptor of {name} is of {layout}")))
            }
        },
    }
}

/// All of the problem's inputs: the operation's, the attributes', and the previous contents of an output that is added
/// to, which in place are the input.
pub(super) fn make(problem: &dyn Problem, fill: Fill) -> Data {
    with_attributes(problem, &problem.fill(fill))
}

/// The operation's inputs, with those that the attributes add.
pub(super) fn with_attributes(problem: &dyn Problem, own: &Data) -> Data {
    let mut data = own.clone();
    for tensor in problem.attribute_tensors().iter().filter(|tensor| !tensor.is_output()) {
        data.set(tensor.id, fill::attribute(tensor));
    }
    for spec in problem.own_tensors() {
        if spec.role == Role::Updated && !problem.works_in_place() {
            data.set(spec.id, fill::before(&spec.dims, spec.data_type));
        }
    }
    data
}

/// Tensors in these layouts with this data.
pub(super) fn tensors(specs: &[Spec], layouts: Vec<Layout>, data: &Data) -> Vec<Tensor> {
    let tensor = |(spec, layout): (&Spec, Layout)| {
        let values = match spec.role {
            Role::Input | Role::Updated => data.get(spec.id),
            Role::Output | Role::Unused => &[],
        };
        let elements = Rc::new(spec.data_type.encode(values));
        Tensor { id: spec.id, name: spec.name, role: spec.role, layout, elements }
    };
    specs.iter().zip(layouts).map(tensor).collect()
}
