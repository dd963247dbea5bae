//! Excerpts of a problem with pages that place the same keys and values as a cache does: in a ring, where pages replace
//! those that the window has left behind, and forked, where a sequence shares all pages but its last with its copy.

use super::data::Sequences;
use super::parameters::SdpaProblem;
use crate::oracle::sdpa::Attention;
use crate::problem::{Data, Excerpt};
use norm_sys::*;

impl SdpaProblem {
    /// The excerpts.
    pub(super) fn as_in_caches(&self, data: &Data) -> Vec<Excerpt> {
        self.in_ring(data).into_iter().chain([self.forked(data)]).collect()
    }

    /// The number of pages that a sequence uses.
    fn used_pages(&self, data: &Data, b: usize) -> usize {
        self.lengths(data, b).1.div_ceil(self.page_size)
    }

    /// With a page that is seen in place of each that no query sees; `None` without any.
    fn in_ring(&self, data: &Data) -> Option<Excerpt> {
        let attention = Attention { mask: None, ..self.attention(data, &Sequences::NONE) };
        let queries = self.shape().queries;
        let is_seen = |b: usize, page: usize| {
            let mut keys = page * self.page_size..(page + 1) * self.page_size;
            keys.any(|key| (0..queries).any(|query| attention.sees([b, 0, query, key])))
        };
        let mut replaced = 0;
        let mut other = data.clone();
        other.change(NORM_ARG_PAGE_TABLE, |table| {
            for (b, own) in table.chunks_mut(self.pages().max(1)).enumerate() {
                let used = 0..self.used_pages(data, b);
                let (seen, unseen): (Vec<_>, Vec<_>) = used.partition(|page| is_seen(b, *page));
                if seen.is_empty() {
                    continue;
                }
                for page in unseen {
                    own[page] = own[seen[page % seen.len()]];
                    replaced += 1;
                }
            }
        });
        let problem = SdpaProblem { inplace: false, ..self.clone() };
        (replaced > 0).then(|| self.whole("in a ring of pages", problem, other))
    }

    /// With a copy of each sequence.
    fn forked(&self, data: &Data) -> Excerpt {
        let (sequences, pool) = (self.shape().sequences, self.pool());
        let mut problem =
            SdpaProblem { own_pool: pool + sequences, inplace: false, ..self.clone() };
        problem.dims.iter_mut().for_each(|dims| dims[0] *= 2);
        let last_page = |b: usize| self.used_pages(data, b).checked_sub(1);
        let table = data.get(NORM_ARG_PAGE_TABLE);
        let mut other = data.clone();
        let mut places = Vec::new();
        for (spec, forked) in self.specs().iter().zip(problem.specs()) {
            let (count, id) = (spec.count(), spec.id);
            if spec.role.is_written() {
                places.push((id, (0..count).chain(0..count).collect()));
            } else if spec.dims[0] == pool && forked.dims[0] == pool + sequences {
                other.change(id, |pages| {
                    let size = count / pool;
                    for b in 0..sequences {
                        let last =
                            last_page(b).map_or(0, |page| table[b * self.pages() + page] as usize);
                        pages.extend_from_within(last * size..(last + 1) * size);
                    }
                });
            } else if forked.count() == 2 * count {
                other.change(id, |values| values.extend_from_within(..));
            }
        }
        other.change(NORM_ARG_PAGE_TABLE, |table| {
            for b in 0..sequences {
                if let Some(page) = last_page(b) {
                    table[(sequences + b) * self.pages() + page] = (pool + b) as f64;
                }
            }
        });
        Excerpt { what: "forked".to_owned(), problem: Box::new(problem), data: other, places }
    }
}
