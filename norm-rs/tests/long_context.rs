//! Attention over 131072 keys: correct against f64, and with little memory besides the tensors.
//!
//! A single test in its own process, because it measures the memory of the process.
#![cfg(target_os = "linux")]

use norm_rs::sdpa::{Causal, Forward, ForwardArgs};
use norm_rs::{DataType, Engine, Memory, MemoryDesc, Stream, Tag};

const KEYS: usize = 131_072;
const SIZE: usize = 32;
/// Heads of a decode, and of a prefill of 64 queries; all share one head of keys and values.
const DECODE: usize = 16;
const PREFILL: usize = 2;
const QUERIES: usize = 64;

/// How much memory the library may use besides the tensors, whatever the length: the stages of its threads, and a
/// partial result for each block of 256 keys. A row of scores for each head of the decode would need four times as
/// much, the scores of the prefill thirty-two times.
const ALLOWED: usize = 2 << 20;

/// A field of `/proc/self/status`, in bytes.
fn status(field: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find(|line| line.starts_with(field)).expect("the field is there");
    let kilobytes = line.split_whitespace().nth(1).and_then(|number| number.parse::<usize>().ok());
    kilobytes.expect("a number") << 10
}

/// Reproducible numbers between -1 and 1 (SplitMix64).
fn fill(list: &mut [f32], seed: u64) {
    for (at, x) in (0u64..).zip(list) {
        let mut z = (at ^ seed << 40).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        *x = ((z >> 40) as f32 / (1 << 23) as f32) - 1.0;
    }
}

/// The tensors of one problem.
struct Tensors {
    keys: usize,
    k: Memory<'static>,
    v: Memory<'static>,
}

impl Tensors {
    fn new(engine: &Engine, keys: usize) -> Self {
        let (key, value) = Self::descs(keys);
        let mut k = Memory::new(engine, &key).unwrap();
        let mut v = Memory::new(engine, &value).unwrap();
        fill(k.as_mut_slice().unwrap(), 1);
        fill(v.as_mut_slice().unwrap(), 2);
        Self { keys, k, v }
    }

    fn descs(keys: usize) -> (MemoryDesc, MemoryDesc) {
        let key = MemoryDesc::with_tag(&[1, 1, SIZE, keys], DataType::F32, Tag::Abdc);
        (key.unwrap(), MemoryDesc::dense(&[1, 1, keys, SIZE], DataType::F32).unwrap())
    }

    /// Queries of `heads`; the last query of a head is the same for any number of queries.
    fn queries(engine: &Engine, heads: usize, queries: usize) -> Memory<'static> {
        let desc = MemoryDesc::dense(&[1, heads, queries, SIZE], DataType::F32).unwrap();
        let mut memory = Memory::new(engine, &desc).unwrap();
        let mut rows = memory.as_mut_slice::<f32>().unwrap().chunks_mut(SIZE);
        for head in 0..heads {
            for query in 0..queries {
                let seed = 10 + (head * QUERIES + queries - 1 - query) as u64;
                fill(rows.next().expect("a row for each query"), seed);
            }
        }
        memory
    }

    fn attention(&self, engine: &Engine, q: &Memory<'_>, dst: &mut Memory<'_>) {
        let (key, value) = Self::descs(self.keys);
        let query = q.desc().unwrap();
        let builder = Forward::inference(engine, &query, &key, &value).scale(1.0);
        let attention = builder.causal(Causal::BottomRight).build().unwrap();
        let stream = Stream::new(engine).unwrap();
        attention.execute(&stream, ForwardArgs::new(q, &self.k, &self.v, dst)).unwrap();
    }

    /// The result of a query that sees the first `seen` keys, in f64, and the error that it may have.
    fn expected(&self, query: &[f32], seen: usize) -> Vec<(f64, f64)> {
        let rows = |memory: &Memory<'_>| memory.as_slice::<f32>().unwrap()[..seen * SIZE].to_vec();
        let (k, v) = (rows(&self.k), rows(&self.v));
        let product = |key: &[f32]| -> (f64, f64) {
            let terms = query.iter().zip(key).map(|(a, b)| f64::from(*a) * f64::from(*b));
            terms.fold((0.0, 0.0), |(sum, all), term| (sum + term, all + term.abs()))
        };
        let products: Vec<_> = k.chunks(SIZE).map(product).collect();
        let largest = products.iter().fold(f64::NEG_INFINITY, |most, (sum, _)| most.max(*sum));
        let of_scores = products.iter().fold(0.0f64, |most, (_, all)| most.max(*all));
        let weights: Vec<f64> = products.iter().map(|(sum, _)| (sum - largest).exp()).collect();
        let total: f64 = weights.iter().sum();
        let relative = (80.0 + seen as f64 / 128.0) * 2f64.powi(-24) * (1.0 + of_scores);
        let mut result = vec![(0.0, 0.0); SIZE];
        for (weight, value) in weights.iter().zip(v.chunks(SIZE)) {
            for ((sum, bound), x) in result.iter_mut().zip(value) {
                *sum += weight / total * f64::from(*x);
                *bound += weight / total * f64::from(x.abs()) * relative;
            }
        }
        result
    }
}

fn check(tensors: &Tensors, q: &Memory<'_>, dst: &Memory<'_>, queries: usize, rows: &[usize]) {
    let [q, dst] = [q, dst].map(|memory| memory.as_slice::<f32>().unwrap());
    let mut worst = 0.0f64;
    for &row in rows {
        let seen = tensors.keys - (queries - 1 - row % queries);
        let expected = tensors.expected(&q[row * SIZE..][..SIZE], seen);
        for (found, (expected, bound)) in dst[row * SIZE..][..SIZE].iter().zip(expected) {
            let apart = (f64::from(*found) - expected).abs();
            assert!(apart <= bound, "row {row}: {found} is not {expected} within {bound}");
            worst = worst.max(apart);
        }
    }
    println!("{queries} queries: off by at most {worst:.1e}");
    // The bound is for the worst case; random numbers come much closer.
    assert!(worst < 1e-7, "off by {worst}");
}

#[test]
fn many_keys_take_no_memory() {
    let engine = Engine::cpu().unwrap();
    // This starts the threads and allocates their stages.
    let small = Tensors::new(&engine, 2048);
    for (heads, queries) in [(DECODE, 1), (PREFILL, QUERIES)] {
        let q = Tensors::queries(&engine, heads, queries);
        let mut dst = Memory::new(&engine, &q.desc().unwrap()).unwrap();
        small.attention(&engine, &q, &mut dst);
    }
    drop(small);
    let before = status("VmRSS:");

    let tensors = Tensors::new(&engine, KEYS);
    let (one, many) =
        (Tensors::queries(&engine, DECODE, 1), Tensors::queries(&engine, PREFILL, QUERIES));
    let mut decoded = Memory::new(&engine, &one.desc().unwrap()).unwrap();
    let mut prefilled = Memory::new(&engine, &many.desc().unwrap()).unwrap();
    let sizes = [&tensors.k, &tensors.v, &one, &many, &decoded, &prefilled];
    let sizes: usize = sizes.iter().map(|memory| memory.desc().unwrap().size()).sum();

    tensors.attention(&engine, &one, &mut decoded);
    let of_decode = status("VmHWM:") - before;
    tensors.attention(&engine, &many, &mut prefilled);
    let of_both = status("VmHWM:") - before;
    println!("tensors {sizes}, decode {of_decode}, with prefill {of_both} bytes");
    for (what, grown) in [("decode", of_decode), ("prefill", of_both)] {
        assert!(grown <= sizes + ALLOWED, "{what}: {grown} bytes, tensors have {sizes}");
        assert!(grown + ALLOWED >= sizes, "{what}: {grown} bytes measured of {sizes}");
    }

    check(&tensors, &one, &decoded, 1, &[0, 5, DECODE - 1]);
    let last = QUERIES - 1;
    check(&tensors, &many, &prefilled, QUERIES, &[0, last, QUERIES + 17, PREFILL * QUERIES - 1]);
    let [decoded, prefilled] =
        [&decoded, &prefilled].map(|memory| memory.as_slice::<f32>().unwrap());
    for head in 0..PREFILL {
        let row = &prefilled[(head * QUERIES + last) * SIZE..][..SIZE];
        assert_eq!(&decoded[head * SIZE..][..SIZE], row, "the last query alone, head {head}");
    }
}
