//! Problems whose results are parts of the baseline's.

use super::baseline::{Comparison, difference, spec};
use crate::execution::{Output, run_once};
use crate::modes::end::End;
use crate::modes::inputs;
use crate::problem::{Data, Excerpt};

impl Comparison<'_> {
    /// Runs each excerpt of the problem and compares its results with those that it repeats.
    pub(super) fn excerpts(&mut self) -> Result<(), End> {
        let mut data = Data::default();
        for tensor in &self.tensors {
            if !tensor.elements.is_empty() {
                data.set(tensor.id, tensor.data_type().decode(&tensor.elements));
            }
        }
        let excerpts = self.case.problem.excerpts(&data);
        for excerpt in &excerpts {
            self.excerpt(excerpt)?;
        }
        if !excerpts.is_empty() {
            self.summary.push(format!("{} excerpts", excerpts.len()));
        }
        Ok(())
    }

    fn excerpt(&mut self, excerpt: &Excerpt) -> Result<(), End> {
        let Excerpt { what, problem, data, places } = excerpt;
        let case = self.case.with(&**problem);
        let prepared = case.prepare()?;
        let specs = problem.tensors();
        let layouts = inputs::layouts(&specs, &*prepared)?;
        let tensors = inputs::tensors(&specs, layouts, &inputs::with_attributes(&**problem, data));
        let result = run_once(&*prepared, &tensors, case.placement(), None);
        let Some(outputs) = self.outputs(what, result)? else { return Ok(()) };
        for output in outputs {
            let Some((_, places)) = places.iter().find(|(id, _)| *id == output.id) else {
                continue;
            };
            self.compare_places(what, &output, places);
        }
        Ok(())
    }

    fn compare_places(&mut self, what: &str, output: &Output, places: &[usize]) {
        let expected = self.baseline.iter().find(|expected| expected.id == output.id);
        let expected = expected.expect("an output of the problem");
        let Output { name, layout, elements, .. } = expected;
        let size = layout.data_type.size();
        let element = |place: &usize| &elements[place * size..(place + 1) * size];
        let want: Vec<u8> = places.iter().flat_map(element).copied().collect();
        let data_type = spec(&self.specs, output.id).data_type;
        if let Some((at, difference)) = difference(data_type, &output.elements, &want) {
            let at = layout.coordinates(places[at]);
            self.differences.push(format!("{what}: {name}{at} {difference}"));
        }
    }
}
