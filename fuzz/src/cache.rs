//! A KV cache together with a model of it, which knows the length of each sequence and what was written to each token.
//! A refused call changes nothing, and a sequence keeps its tokens whatever happens to others.

use crate::handles::{has_message, made};
use crate::source::Source;
use norm_sys as sys;

/// What was written to a token of a layer: its key and its value; `None` if unknown.
pub(crate) type Token = [Option<u8>; 2];

/// A sequence of the model.
#[derive(Clone)]
pub(crate) struct Sequence {
    pub(crate) number: i64,
    /// What each layer has, for each token.
    pub(crate) tokens: Vec<Vec<Token>>,
    /// Whether it was truncated and not extended since. A ring then has what the next token sees, not what the last one
    /// saw.
    pub(crate) is_cut: bool,
}

/// A sequence in an open step: its index in the list, its first new token, and their number.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) at: Option<usize>,
    pub(crate) start: usize,
    pub(crate) tokens: usize,
}

pub(crate) struct Step {
    pub(crate) parts: Vec<Part>,
    pub(crate) rows: usize,
    /// Which layers keys and values of the step were written to.
    pub(crate) written: Vec<[bool; 2]>,
}

pub(crate) struct Cache {
    pub(crate) handle: sys::norm_kv_cache_t,
    pub(crate) kind: u32,
    pub(crate) data_type: u32,
    pub(crate) layers: usize,
    pub(crate) heads: i64,
    /// Elements of a key and of a value.
    pub(crate) sizes: [i64; 2],
    pub(crate) places: usize,
    pub(crate) step_tokens: i64,
    pub(crate) window: usize,
    pub(crate) first_tokens: usize,
    pub(crate) sequences: Vec<Sequence>,
    pub(crate) step: Option<Step>,
    /// Which layers' memory rope was given.
    pub(crate) roped: Vec<bool>,
    /// The numbers of former sequences.
    gone: Vec<i64>,
}

/// Numbers that are never valid.
const HOSTILE: [i64; 6] = [-1, i64::MAX, i64::MIN, 1 << 62, -(1 << 40), 65537];

// SAFETY of the blocks in this file: handles are live, and arrays have the lengths that are passed.
impl Cache {
    /// A cache, mostly with sensible sizes, if the library accepts it.
    pub(crate) fn new(source: &mut Source<'_>, engine: sys::norm_engine_t) -> Option<Self> {
        let kinds = [sys::norm_kv_contiguous, sys::norm_kv_paged, sys::norm_kv_ring];
        let kind = source.one_of(&kinds);
        let types = [sys::norm_f32, sys::norm_bf16, sys::norm_f16, sys::norm_s8, sys::norm_f8_e4m3];
        let data_type = source.one_of(&types);
        let (ring, paged) = (kind == sys::norm_kv_ring, kind != sys::norm_kv_contiguous);
        let mut p = [0i64; 11];
        p[0] = 1 + source.below(3) as i64;
        p[1] = 1 + source.below(2) as i64;
        p[2] = source.one_of(&[1, 4, 8, 17, 32]);
        p[3] = source.one_of(&[1, 4, 8, 17, 32]);
        p[4] = 1 + source.below(4) as i64;
        p[5] = source.one_of(&[1, 5, 16, 33, 64]);
        p[6] = 1 + source.below(20) as i64;
        p[7] = if paged { source.one_of(&[1, 2, 3, 4, 16]) } else { 0 };
        p[8] = if paged { source.one_of(&[0, 0, 3, 7, 20]) } else { 0 };
        p[9] = if ring { source.one_of(&[1, 2, 5, 16]) } else { 0 };
        p[10] = if ring { source.one_of(&[0, 0, 1, 4]) } else { 0 };
        let spoiled = source.one_in(12);
        if spoiled {
            p[source.below(11)] = source.one_of(&HOSTILE[..4]);
        }
        let engine = if source.one_in(60) { std::ptr::null_mut() } else { engine };
        let data_type = if source.one_in(30) { source.below(20) as u32 } else { data_type };
        let handle = made(|out| unsafe {
            sys::norm_kv_cache_create(
                out, engine, kind, data_type, p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8],
                p[9], p[10],
            )
        })?;
        let small = p.iter().all(|size| *size < 1000);
        let cache = Self {
            handle,
            kind,
            data_type,
            layers: p[0] as usize,
            heads: p[1],
            sizes: [p[2], p[3]],
            places: p[4] as usize,
            step_tokens: p[6],
            window: p[9].clamp(0, 1 << 20) as usize,
            first_tokens: p[10].clamp(0, 1 << 20) as usize,
            sequences: Vec::new(),
            step: None,
            roped: vec![false; p[0].clamp(0, 1000) as usize],
            gone: Vec::new(),
        };
        // A huge window or first_tokens is fine, but a huge cache is not used.
        (small || p[..9].iter().all(|size| *size < 1000)).then_some(cache)
    }

    pub(crate) fn is_quantized(&self) -> bool {
        self.data_type == sys::norm_s8 || self.data_type == sys::norm_f8_e4m3
    }

    /// An index in the list of sequences, if there are any.
    pub(crate) fn place(&self, source: &mut Source<'_>) -> Option<usize> {
        (!self.sequences.is_empty()).then(|| source.below(self.sequences.len()))
    }

    /// The number of a sequence, sometimes one that no sequence has.
    fn number(&self, source: &mut Source<'_>) -> (i64, Option<usize>) {
        if !self.gone.is_empty() && source.one_in(12) {
            return (source.one_of(&self.gone), None);
        }
        match self.place(source) {
            Some(at) if !source.one_in(12) => (self.sequences[at].number, Some(at)),
            _ => (source.one_of(&HOSTILE), None),
        }
    }

    fn stats(&self) -> [i64; 8] {
        let mut stats = [0i64; 8];
        let status = unsafe { sys::norm_kv_cache_get_stats(self.handle, (&raw mut stats).cast()) };
        assert_eq!(status, sys::norm_success);
        stats
    }

    /// Compares lengths and counts with the model.
    pub(crate) fn check(&self) {
        for sequence in &self.sequences {
            let mut length = -7;
            let status = unsafe {
                sys::norm_kv_cache_get_length(self.handle, sequence.number, &raw mut length)
            };
            assert_eq!((status, length), (sys::norm_success, sequence.tokens.len() as i64));
        }
        let [sequences, _, _, pages, used, shared, _, _] = self.stats();
        assert_eq!(sequences, self.sequences.len() as i64);
        assert!(0 <= shared && shared <= used && used <= pages, "{:?}", self.stats());
        assert!(!self.sequences.is_empty() || used == 0, "pages of no sequence");
    }

    /// Makes a call that changes the cache or, if refused, nothing. Returns whether it succeeded.
    fn attempt(&mut self, call: impl FnOnce(sys::norm_kv_cache_t) -> sys::norm_status_t) -> bool {
        let before = self.stats();
        let status = call(self.handle);
        if status != sys::norm_success {
            has_message();
            assert_eq!(before, self.stats(), "a refused call changed the cache");
            self.check();
        }
        status == sys::norm_success
    }

    pub(crate) fn begin(&mut self) {
        let mut number = -7;
        let begun = self
            .attempt(|cache| unsafe { sys::norm_kv_cache_new_sequence(cache, &raw mut number) });
        assert_eq!(begun, self.sequences.len() < self.places);
        if begun {
            self.add(number, Vec::new(), false);
        } else {
            assert_eq!(number, -7);
        }
    }

    fn add(&mut self, number: i64, tokens: Vec<Vec<Token>>, is_cut: bool) {
        let is_new = self.sequences.iter().all(|s| s.number != number);
        assert!(number >= 0 && is_new && !self.gone.contains(&number), "{number} was used before");
        self.sequences.push(Sequence { number, tokens, is_cut });
    }

    pub(crate) fn drop_sequence(&mut self, source: &mut Source<'_>) {
        let (number, at) = self.number(source);
        let dropped = self.attempt(|cache| unsafe { sys::norm_kv_cache_drop(cache, number) });
        assert_eq!(dropped, at.is_some(), "sequence {number}");
        if let Some(at) = at {
            self.gone.push(self.sequences.remove(at).number);
            self.step = None;
        }
    }

    pub(crate) fn fork(&mut self, source: &mut Source<'_>) {
        let (number, at) = self.number(source);
        let (full, mut copy) = (self.sequences.len() == self.places, -7);
        let forked =
            self.attempt(|cache| unsafe { sys::norm_kv_cache_fork(cache, number, &raw mut copy) });
        assert_eq!(forked, at.is_some() && !full, "sequence {number}");
        match at.filter(|_| forked) {
            Some(at) => {
                let Sequence { tokens, is_cut, .. } = self.sequences[at].clone();
                self.add(copy, tokens, is_cut);
                self.step = None;
            }
            None => assert_eq!(copy, -7),
        }
    }

    pub(crate) fn truncate(&mut self, source: &mut Source<'_>) {
        let (number, at) = self.number(source);
        let length = at.map_or(0, |at| self.sequences[at].tokens.len() as i64);
        let to = match source.below(8) {
            0 => source.one_of(&HOSTILE),
            1 => length + 1,
            2 => 0,
            byte => (length - byte as i64 + 3).max(0),
        };
        let done = self.attempt(|cache| unsafe { sys::norm_kv_cache_truncate(cache, number, to) });
        let allowed = at.is_some() && (0..=length).contains(&to);
        assert!(allowed || !done, "truncation of {number} to {to} of {length}");
        assert!(done || !allowed || self.kind == sys::norm_kv_ring, "truncation to {to}");
        if done {
            let sequence = &mut self.sequences[at.expect("a sequence")];
            sequence.tokens.truncate(to as usize);
            sequence.is_cut = true;
            self.step = None;
        }
    }

    /// Marks the keys of the step's tokens in a layer as unknown.
    pub(crate) fn forget_keys(&mut self, layer: usize) {
        for part in self.step.iter().flat_map(|step| &step.parts) {
            let Some(at) = part.at else { continue };
            for token in &mut self.sequences[at].tokens[part.start..][..part.tokens] {
                token[layer][0] = None;
            }
        }
    }

    pub(crate) fn extend(&mut self, source: &mut Source<'_>) {
        let count = source.below(self.sequences.len() + 2);
        let mut list: Vec<(i64, Option<usize>)> = (0..count)
            .map(|at| match self.sequences.get(at) {
                Some(sequence) if !source.one_in(12) => (sequence.number, Some(at)),
                _ if source.one_in(3) => self.number(source),
                _ => (-1, None),
            })
            .collect();
        if count > 1 && source.one_in(3) {
            list.reverse();
        }
        let mut tokens: Vec<i64> = Vec::new();
        for (number, _) in &list {
            let few = if *number == -1 { 0 } else { source.below(6) as i64 };
            tokens.push(if source.one_in(40) { source.one_of(&HOSTILE) } else { few });
        }
        let most = tokens.iter().copied().max().unwrap_or(0);
        let rows = match source.below(8) {
            0..=3 => 0,
            4..=6 => most.saturating_add(source.below(2) as i64),
            _ => source.one_of(&HOSTILE),
        };
        let numbers: Vec<i64> = list.iter().map(|(number, _)| *number).collect();
        let done = self.attempt(|cache| unsafe {
            let (numbers, tokens) = (numbers.as_ptr(), tokens.as_ptr());
            sys::norm_kv_cache_extend(cache, count as i32, numbers, tokens, rows)
        });
        if !done {
            return;
        }
        let mut parts = Vec::new();
        for ((number, at), new) in list.into_iter().zip(tokens) {
            let new = usize::try_from(new).expect("tokens that were accepted");
            assert!(at.is_some() || number == -1 && new == 0, "an extension of {number}");
            let start = at.map_or(0, |at| {
                let Sequence { tokens: all, is_cut, .. } = &mut self.sequences[at];
                *is_cut &= new == 0;
                all.resize(all.len() + new, vec![[None; 2]; self.layers]);
                all.len() - new
            });
            parts.push(Part { at, start, tokens: new });
        }
        // A step without sequences is no step.
        let written = vec![[false; 2]; self.layers];
        self.step = (count > 0).then_some(Step { parts, rows: rows as usize, written });
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        // SAFETY: a live handle that is not used again.
        unsafe { sys::norm_kv_cache_destroy(self.handle) };
    }
}
