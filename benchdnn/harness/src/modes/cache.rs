//! Recent results of the oracle.
//!
//! A batch runs the same shape in many layouts, and without a cache the oracle would need most of
//! the time.

use super::inputs;
use crate::fill::Fill;
use crate::problem::{Data, Expected, Key, Problem};
use std::rc::Rc;

/// The data of a problem and the expected results.
#[derive(Debug)]
pub(super) struct Prediction {
    pub(super) data: Data,
    pub(super) expected: Vec<Expected>,
}

impl Prediction {
    /// Runs the oracle on the problem with this data.
    pub(super) fn of(problem: &dyn Problem, data: Data) -> Prediction {
        let expected = problem.expected(&data);
        Prediction::with_attributes(problem, data, expected)
    }

    /// Applies the attributes to the oracle's results.
    fn with_attributes(problem: &dyn Problem, data: Data, plain: Vec<Expected>) -> Prediction {
        let expected = match problem.attributes().is_default() {
            true => plain,
            false => problem.with_attributes(&data, &plain),
        };
        Prediction { data, expected }
    }

    fn expected(&self, id: i32) -> Option<&Expected> {
        self.expected.iter().find(|expected| expected.id == id)
    }

    /// The memory that it uses, without what it shares with `plain`.
    fn bytes(&self, plain: Option<&Prediction>) -> usize {
        let shared = plain.map_or(0, |plain| plain.data.len());
        let own = |expected: &&Expected| {
            let other = plain.and_then(|plain| plain.expected(expected.id));
            !other.is_some_and(|other| Rc::ptr_eq(&other.values, &expected.values))
        };
        let expected = self.expected.iter().filter(own);
        let expected: usize = expected.map(|it| it.values.len() + it.terms.len()).sum();
        (self.data.len().saturating_sub(shared) + expected) * size_of::<f64>()
    }
}

#[derive(Debug)]
struct Entry {
    key: Key,
    prediction: Rc<Prediction>,
    bytes: usize,
}

/// Recent predictions with exact data.
#[derive(Debug)]
pub struct Cache {
    entries: Vec<Entry>,
    bytes: usize,
    /// The most bytes that it may contain.
    limit: usize,
}

/// The most bytes in the cache. The batches vary flags and attributes innermost and layouts outermost, so a layout
/// finds the predictions of the previous one only if all of them are kept.
const CACHED_BYTES: usize = 1 << 30;

impl Default for Cache {
    /// Empty.
    fn default() -> Cache {
        Cache { entries: Vec::new(), bytes: 0, limit: CACHED_BYTES }
    }
}

impl Cache {
    /// The prediction for the problem with exact data.
    pub(super) fn prediction(&mut self, problem: &dyn Problem) -> Rc<Prediction> {
        let Some(key) = problem.key() else {
            return Rc::new(Prediction::of(problem, inputs::make(problem, Fill::Exact)));
        };
        if let Some(prediction) = self.find(&key) {
            return prediction;
        }
        let plain_key = Key { attributes: None, ..key.clone() };
        let plain = self.find(&plain_key).unwrap_or_else(|| {
            let data = problem.fill(Fill::Exact);
            let expected = problem.expected(&data);
            self.keep(plain_key, Prediction { data, expected }, None)
        });
        if key.attributes.is_none() {
            return plain;
        }
        let data = inputs::with_attributes(problem, &plain.data);
        let prediction = Prediction::with_attributes(problem, data, plain.expected.clone());
        self.keep(key, prediction, Some(&plain))
    }

    fn find(&self, key: &Key) -> Option<Rc<Prediction>> {
        let mut entries = self.entries.iter();
        entries.find(|entry| entry.key == *key).map(|entry| entry.prediction.clone())
    }

    /// Keeps a prediction if there is room after those of other families are dropped. Dropping the oldest of the same
    /// family instead would lose all of them if they alternate and do not all fit.
    fn keep(
        &mut self,
        key: Key,
        prediction: Prediction,
        plain: Option<&Prediction>,
    ) -> Rc<Prediction> {
        let bytes = prediction.bytes(plain);
        let prediction = Rc::new(prediction);
        while self.bytes + bytes > self.limit
            && let Some(place) =
                self.entries.iter().position(|entry| entry.key.family != key.family)
        {
            self.bytes -= self.entries.remove(place).bytes;
        }
        if self.bytes + bytes <= self.limit {
            self.bytes += bytes;
            self.entries.push(Entry { key, prediction: prediction.clone(), bytes });
        }
        prediction
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::{AttributeTensor, Attributes};
    use crate::check::Kind;
    use crate::library::Request;
    use crate::problem::Spec;

    /// A problem of `size` values, one of several of its family.
    #[derive(Clone, Debug)]
    struct Sample {
        size: usize,
        member: u32,
        attributes: Attributes,
    }

    fn sample(size: usize, member: u32) -> Sample {
        Sample { size, member, attributes: Attributes::default() }
    }

    impl Problem for Sample {
        fn name(&self) -> &str {
            ""
        }

        fn line(&self, _: bool) -> String {
            String::new()
        }

        fn entry(&self, _: &str) -> Option<String> {
            None
        }

        fn sizes(&self) -> Vec<Vec<usize>> {
            Vec::new()
        }

        fn attributes(&self) -> &Attributes {
            &self.attributes
        }

        fn without_attributes(&self) -> Box<dyn Problem> {
            Box::new(self.clone())
        }

        fn attribute_tensors(&self) -> Vec<AttributeTensor> {
            Vec::new()
        }

        fn own_tensors(&self) -> Vec<Spec> {
            Vec::new()
        }

        fn request(&self) -> Box<dyn Request> {
            unreachable!("the cache creates nothing")
        }

        fn fill(&self, _: Fill) -> Data {
            Data::from([(1, vec![f64::from(self.member); self.size])])
        }

        fn expected(&self, data: &Data) -> Vec<Expected> {
            vec![Expected::new(17, Kind::Result, data.get(1).to_vec(), data.get(1).to_vec())]
        }

        fn key(&self) -> Option<Key> {
            let family = self.size.to_string();
            Some(Key { family, plain: format!("{}x{}", self.size, self.member), attributes: None })
        }
    }

    #[test]
    fn predictions_are_found_again_as_far_as_there_is_room() {
        let mut cache = Cache::default();
        let (one, two) = (sample(32, 1), sample(32, 2));
        let first = cache.prediction(&one);
        let room_for_one = cache.bytes;
        assert_eq!(room_for_one, 3 * 32 * 8);
        cache.prediction(&two);
        assert!(Rc::ptr_eq(&first, &cache.prediction(&one)));

        // If two alternate, one is found instead of none.
        let mut cache = Cache { limit: room_for_one, ..Cache::default() };
        let first = cache.prediction(&one);
        for _ in 0..3 {
            let other = cache.prediction(&two);
            assert!(!Rc::ptr_eq(&other, &cache.prediction(&two)));
            assert!(Rc::ptr_eq(&first, &cache.prediction(&one)));
        }
        // Another family replaces it.
        let other = cache.prediction(&sample(31, 1));
        assert!(Rc::ptr_eq(&other, &cache.prediction(&sample(31, 1))));
        assert!(!Rc::ptr_eq(&first, &cache.prediction(&one)));
        assert!(cache.bytes <= cache.limit && cache.entries.len() == 1);
    }
}
