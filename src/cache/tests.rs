//! Compares the book with a plain model over random calls. In place of data, pages have lists of marks, which steps
//! write.

use super::book::{Book, PageCopy};
use super::shape::{CacheKind, Parameters, Shape};
use crate::error::Status;
use crate::tensor::DataType;
use std::collections::{BTreeMap, BTreeSet};

const PLAIN: Parameters = Parameters {
    kind: CacheKind::Paged,
    data_type: DataType::F32,
    layers: 1,
    kv_heads: 1,
    key_size: 1,
    value_size: 1,
    sequences: 4,
    tokens: 40,
    step_tokens: 24,
    page_size: 4,
    pages: 18,
    window: 0,
    first_tokens: 0,
};

fn shape(p: &Parameters) -> Shape {
    Shape::new(p).unwrap_or_else(|e| panic!("{p:?}: {e}"))
}

/// A random number generator, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// The state that a failed call must not change.
#[derive(Debug, PartialEq)]
struct State {
    pages: Vec<(usize, Vec<Option<i32>>)>,
    free: Vec<i32>,
    copied: u64,
    parts: usize,
}

/// What the caller knows: the marks of each sequence's tokens.
struct Model {
    shape: Shape,
    book: Book,
    sequences: BTreeMap<i64, Vec<u64>>,
    /// All sequence numbers so far.
    seen: BTreeSet<i64>,
    pages: Vec<Vec<u64>>,
    next_mark: u64,
    full: usize,
}

impl Model {
    fn new(p: &Parameters) -> Self {
        let shape = shape(p);
        Self {
            shape,
            book: Book::new(shape).unwrap(),
            sequences: BTreeMap::new(),
            seen: BTreeSet::new(),
            pages: vec![vec![0; shape.page]; shape.pages],
            next_mark: 1,
            full: 0,
        }
    }

    fn any(&self, random: &mut Random) -> Option<i64> {
        self.sequences.keys().nth(random.below(self.sequences.len())).copied()
    }

    fn begin(&mut self, number: i64, tokens: Vec<u64>) {
        assert!(self.seen.insert(number), "the number {number} was used before");
        self.sequences.insert(number, tokens);
    }

    fn extend(&mut self, random: &mut Random) {
        let mut numbers: Vec<i64> = self.sequences.keys().copied().collect();
        numbers.retain(|_| random.below(3) > 0);
        let most = self.shape.step_tokens / numbers.len().max(1);
        let room = |number: &i64| self.shape.tokens - self.sequences[number].len();
        let tokens: Vec<i64> =
            numbers.iter().map(|n| random.below(most + 1).min(room(n)) as i64).collect();
        let mut copies = Vec::new();
        let before = self.state();
        match self.book.extend(&numbers, &tokens, 0, &mut |copy| copies.push(copy)) {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error.status, Status::OutOfMemory, "{error}");
                assert!(copies.is_empty());
                assert_eq!(self.state(), before, "a full pool changed something");
                self.full += 1;
                return;
            }
        }
        for PageCopy { from, to, tokens } in copies {
            let part = self.pages[from as usize][..tokens].to_vec();
            self.pages[to as usize][..tokens].copy_from_slice(&part);
        }
        for (number, count) in numbers.iter().zip(tokens) {
            let place = self.book.find(*number).unwrap();
            for _ in 0..count {
                let list = self.sequences.get_mut(number).unwrap();
                let slot = self.book.slot(place, list.len()) as usize;
                list.push(self.next_mark);
                self.pages[slot / self.shape.page][slot % self.shape.page] = self.next_mark;
                self.next_mark += 1;
            }
        }
    }

    fn truncate(&mut self, random: &mut Random) {
        let Some(number) = self.any(random) else { return };
        let length = random.below(self.sequences[&number].len() + 1);
        let before = self.state();
        match self.book.truncate(number, length as i64) {
            Ok(()) => self.sequences.get_mut(&number).unwrap().truncate(length),
            Err(error) => {
                assert!(self.shape.window.is_some(), "{error}");
                assert_eq!(self.state(), before);
            }
        }
    }

    fn step(&mut self, random: &mut Random) {
        match random.below(10) {
            0 => match self.book.new_sequence() {
                Ok(number) => self.begin(number, Vec::new()),
                Err(error) => {
                    assert_eq!(error.status, Status::OutOfMemory);
                    assert_eq!(self.sequences.len(), self.shape.sequences);
                }
            },
            1 if !self.sequences.is_empty() && self.sequences.len() < self.shape.sequences => {
                let number = self.any(random).unwrap();
                let copy = self.book.fork(number).unwrap();
                self.begin(copy, self.sequences[&number].clone());
            }
            2 if random.below(2) == 0 => {
                if let Some(number) = self.any(random) {
                    self.book.drop_sequence(number).unwrap();
                    assert!(self.book.drop_sequence(number).is_err(), "dropped twice");
                    self.sequences.remove(&number);
                }
            }
            3 => self.truncate(random),
            _ => self.extend(random),
        }
        self.check();
    }

    fn state(&self) -> State {
        let places = self.book.places();
        State {
            pages: places.map(|place| (place, self.book.pages_of(place).collect())).collect(),
            free: self.book.pool().free_pages().to_vec(),
            copied: self.book.copied(),
            parts: self.book.parts().len(),
        }
    }

    /// Every page is free or has as many owners as sequences, and tokens see only their own sequence's marks.
    fn check(&self) {
        let mut owners = vec![0u32; self.shape.pages];
        for (number, marks) in &self.sequences {
            let place = self.book.find(*number).unwrap();
            assert_eq!(self.book.length(place), marks.len());
            let pages: Vec<Option<i32>> = self.book.pages_of(place).collect();
            let seen = self.shape.first_seen(marks.len());
            for (column, page) in pages.iter().enumerate() {
                let Some(page) = page else {
                    let end = (column + 1) * self.shape.page;
                    assert!(end <= seen && column >= self.shape.kept, "column {column} is needed");
                    continue;
                };
                owners[*page as usize] += 1;
                let first = column * self.shape.page;
                let held = &marks[first..marks.len().min(first + self.shape.page)];
                assert_eq!(&self.pages[*page as usize][..held.len()], held, "page {page}");
            }
        }
        let pool = self.book.pool();
        let mut free = pool.free_pages().to_vec();
        free.sort_unstable();
        let unowned: Vec<i32> =
            (0..self.shape.pages as i32).filter(|page| owners[*page as usize] == 0).collect();
        assert_eq!(free, unowned);
        for (page, owners) in owners.iter().enumerate() {
            assert_eq!(pool.owners(page as i32), *owners, "owners of page {page}");
        }
    }
}

#[test]
fn random_calls_keep_every_token() {
    let contiguous = Parameters { kind: CacheKind::Contiguous, page_size: 0, pages: 0, ..PLAIN };
    let ring = Parameters { kind: CacheKind::Ring, window: 7, pages: 9, ..PLAIN };
    let kinds = [
        (contiguous, false),
        (PLAIN, true),
        (Parameters { pages: 0, ..PLAIN }, false),
        (Parameters { page_size: 1, pages: 60, ..PLAIN }, true),
        (ring, true),
        (Parameters { first_tokens: 5, pages: 0, ..ring }, false),
        (Parameters { window: 1, page_size: 3, pages: 0, ..ring }, false),
        (Parameters { first_tokens: 2, window: 12, pages: 10, ..ring }, true),
    ];
    for (index, (parameters, fills)) in kinds.iter().enumerate() {
        let (mut model, mut random) = (Model::new(parameters), Random(index as u64 + 11));
        for _ in 0..10_000 {
            model.step(&mut random);
        }
        let copied = model.book.copied();
        // A page of one token is full or empty.
        let copies = parameters.page_size != 1;
        assert!(if copies { copied > 10 } else { copied == 0 }, "{index}: {copied} pages copied");
        if *fills {
            assert!(model.full > 10, "{index}: the pool was full {} times", model.full);
        } else {
            assert_eq!(model.full, 0, "{index}: the default number of pages is too small");
        }
    }
}

/// A ring keeps only the pages of its window, however long the sequence gets.
#[test]
fn a_ring_reuses_pages() {
    let parameters = Parameters {
        kind: CacheKind::Ring,
        sequences: 1,
        tokens: 1 << 20,
        page_size: 16,
        pages: 0,
        window: 100,
        first_tokens: 20,
        ..PLAIN
    };
    let shape = shape(&parameters);
    // 99 + 24 tokens, one more page for the ends, and two kept pages.
    assert_eq!(shape.pages, 8 + 1 + 2);
    let mut book = Book::new(shape).unwrap();
    let number = book.new_sequence().unwrap();
    for step in 0..10_000 {
        book.extend(&[number], &[1 + step % 24], 0, &mut |_| panic!("a copy")).unwrap();
    }
    assert!(book.length(0) > 120_000);
    let kept: Vec<bool> = book.pages_of(0).take(4).map(|page| page.is_some()).collect();
    assert_eq!(kept, [true, true, false, false]);
    let length = book.length(0) as i64;
    let refused = book.truncate(number, length - 150).unwrap_err();
    assert!(refused.to_string().contains("have returned to the pool"), "{refused}");
    book.truncate(number, length - 1).unwrap();
    book.truncate(number, 32).unwrap();
    assert_eq!(book.pages_of(0).collect::<Vec<_>>(), [Some(0), Some(1)]);
    assert_eq!(book.pool().free(), shape.pages - 2);
    book.extend(&[number], &[24], 0, &mut |_| panic!("a copy")).unwrap();
}

#[test]
fn sizes_are_checked() {
    let error = |p: Parameters| Shape::new(&p).expect_err("it is refused").to_string();
    assert!(error(Parameters { page_size: 0, ..PLAIN }).contains("page_size"));
    assert!(error(Parameters { window: 3, ..PLAIN }).contains("window"));
    assert!(error(Parameters { kind: CacheKind::Ring, ..PLAIN }).contains("window"));
    let most = i64::from(i32::MAX);
    assert!(error(Parameters { tokens: most, page_size: 16, ..PLAIN }).contains("tokens"));
    assert!(error(Parameters { pages: most + 1, ..PLAIN }).contains("pages"));
    assert!(error(Parameters { tokens: i64::MAX, ..PLAIN }).contains("tokens"));
    let huge = Parameters { layers: i64::MAX, kv_heads: 1 << 40, ..PLAIN };
    assert!(error(huge).contains("address space"));
    let windows = Parameters { kind: CacheKind::Ring, window: i64::MAX, pages: 0, ..PLAIN };
    assert_eq!(shape(&windows).pages, 4 * 10);
    assert_eq!(shape(&Parameters { pages: 0, ..PLAIN }).pages, 4 * 10);
}
