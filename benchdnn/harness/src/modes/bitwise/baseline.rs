//! The run that all others are compared with.

use crate::data_type::DataType;
use crate::execution::{Fault, Output, Tensor, run_once};
use crate::executor::Prepared;
use crate::fill::Fill;
use crate::modes::case::Case;
use crate::modes::end::End;
use crate::problem::{Problem, Slices, Spec};
use crate::report::Reporter;
use crate::tensor::Layout;
use std::rc::Rc;

/// The baseline, and what was compared with it.
pub(super) struct Comparison<'c> {
    pub(super) case: &'c Case<'c>,
    pub(super) specs: Vec<Spec>,
    /// None if the problem has no slices.
    pub(super) slices: Option<Slices>,
    pub(super) prepared: Box<dyn Prepared>,
    pub(super) tensors: Vec<Tensor>,
    pub(super) baseline: Vec<Output>,
    /// A readable list of what was compared.
    pub(super) summary: Vec<String>,
    /// What differed.
    pub(super) differences: Vec<String>,
    pub(super) runs: usize,
    pub(super) shared: bool,
}

impl<'c> Comparison<'c> {
    pub(super) fn baseline(
        case: &'c Case<'c>,
        reporter: &mut Reporter<'_>,
    ) -> Result<Comparison<'c>, End> {
        case.library().set_threads(1)?;
        let prepared = case.prepare()?;
        let tensors = case.tensors(&*prepared, Fill::Random, reporter)?;
        let baseline = run_once(&*prepared, &tensors, case.placement(), None)?;
        let specs = case.problem.tensors();
        let problem = case.problem;
        let slices = problem.slices().filter(|slices| !are_bound(slices, problem, &specs));
        Ok(Comparison {
            case,
            specs,
            slices,
            prepared,
            tensors,
            baseline,
            summary: Vec::new(),
            differences: Vec::new(),
            runs: 1,
            shared: false,
        })
    }

    /// Compares a run's outputs with the baseline.
    pub(super) fn compare(
        &mut self,
        what: &str,
        result: Result<Vec<Output>, Fault>,
    ) -> Result<(), End> {
        let Some(outputs) = self.outputs(what, result)? else { return Ok(()) };
        for (output, expected) in outputs.iter().zip(&self.baseline) {
            let spec = spec(&self.specs, output.id);
            let (got, want) = (&output.elements, &expected.elements);
            if let Some((at, difference)) = difference(spec.data_type, got, want) {
                let at = expected.layout.coordinates(at);
                self.differences.push(format!("{what}: {}{at} {difference}", spec.name));
            }
        }
        Ok(())
    }

    /// Compares the slices of a run with the baseline's slices that they repeat.
    pub(super) fn compare_slices(
        &mut self,
        what: &str,
        result: Result<Vec<Output>, Fault>,
        slices: &Slices,
        of_baseline: impl Fn(usize) -> usize,
    ) -> Result<(), End> {
        let Some(outputs) = self.outputs(what, result)? else { return Ok(()) };
        for (output, expected) in outputs.iter().zip(&self.baseline) {
            let spec = spec(&self.specs, output.id);
            if !spec.sliced {
                continue;
            }
            let per_slice = per_slice(slices, spec);
            let bytes = (per_slice * spec.data_type.size()).max(1);
            for (slice, got) in output.elements.chunks(bytes).enumerate() {
                let place = of_baseline(slice);
                let want = &expected.elements[place * bytes..][..got.len()];
                if let Some((at, difference)) = difference(spec.data_type, got, want) {
                    let at = expected.layout.coordinates(place * per_slice + at);
                    self.differences.push(format!("{what}: {}{at} {difference}", spec.name));
                    break;
                }
            }
        }
        Ok(())
    }

    /// Counts a run; `None` if it violated the contract.
    pub(super) fn outputs(
        &mut self,
        what: &str,
        result: Result<Vec<Output>, Fault>,
    ) -> Result<Option<Vec<Output>>, End> {
        self.runs += 1;
        match result {
            Ok(outputs) => Ok(Some(outputs)),
            Err(Fault::Damaged(damage)) => {
                self.differences.push(format!("{what}: {damage}"));
                Ok(None)
            }
            Err(fault) => Err(fault.into()),
        }
    }

    /// The tensors in other layouts.
    pub(super) fn with_layouts(&self, layouts: &[Layout]) -> Vec<Tensor> {
        let place = |(tensor, layout): (&Tensor, &Layout)| Tensor {
            layout: layout.clone(),
            ..tensor.clone()
        };
        self.tensors.iter().zip(layouts).map(place).collect()
    }

    /// The tensors with these slices of the problem, in this order.
    pub(super) fn with_slices(
        &self,
        layouts: &[Layout],
        slices: &Slices,
        order: &[usize],
    ) -> Vec<Tensor> {
        let mut tensors = self.with_layouts(layouts);
        for (tensor, spec) in tensors.iter_mut().zip(&self.specs) {
            // Outputs, and tensors that are updated in place, have no elements of their own.
            if !spec.sliced || tensor.elements.is_empty() {
                continue;
            }
            let bytes = per_slice(slices, spec) * spec.data_type.size();
            let slice = |&slice: &usize| &tensor.elements[slice * bytes..][..bytes];
            tensor.elements = Rc::new(order.iter().map(slice).collect::<Vec<_>>().concat());
        }
        tensors
    }
}

pub(super) fn spec(specs: &[Spec], id: i32) -> &Spec {
    specs.iter().find(|spec| spec.id == id).expect("an argument of the problem")
}

/// The number of elements of a tensor in each slice.
fn per_slice(slices: &Slices, spec: &Spec) -> usize {
    spec.dims[slices.dims.len()..].iter().product()
}

/// Whether a tensor of an attribute differs along only some of the slices' dimensions, so that slices cannot be taken
/// out or moved.
fn are_bound(slices: &Slices, problem: &dyn Problem, specs: &[Spec]) -> bool {
    let (ndims, leading) = (specs[0].dims.len(), slices.dims.len());
    specs[problem.own_tensors().len()..].iter().any(|spec| {
        let broadcast = !spec.sliced && spec.dims.len() == ndims;
        broadcast && spec.dims[..leading].iter().any(|&dim| dim > 1)
    })
}

/// The first element whose bits differ, and how.
pub(super) fn difference(dt: DataType, got: &[u8], want: &[u8]) -> Option<(usize, String)> {
    if got == want {
        return None;
    }
    let size = dt.size();
    let pairs = got.chunks_exact(size).zip(want.chunks_exact(size)).enumerate();
    for (at, (got, want)) in pairs.filter(|(_, (got, want))| got != want) {
        let (got_value, want_value) = (dt.decode(got)[0], dt.decode(want)[0]);
        if !(got_value.is_nan() && want_value.is_nan()) {
            let hex = |bytes: &[u8]| match *bytes {
                [a, b] => format!("{:04x}", u16::from_ne_bytes([a, b])),
                [a, b, c, d] => format!("{:08x}", u32::from_ne_bytes([a, b, c, d])),
                _ => format!("{bytes:02x?}"),
            };
            let (got, want) = (hex(got), hex(want));
            return Some((
                at,
                format!("has bits {got} ({got_value:?}), the baseline {want} ({want_value:?})"),
            ));
        }
    }
    None
}
