//! Which keys queries see, measured through attention itself, and the width of windows.

use std::ops::RangeInclusive;

use norm_rs::primitive::Arg;
use norm_rs::sdpa::{
    Backward, BackwardArgs, Causal, Forward, ForwardArgs, Previous, Strategy, Window,
    adaptive_window,
};
use norm_rs::{DataType, Engine, ErrorKind, Memory, MemoryDesc, Stream};

use crate::data::{elements, memory};

/// Attention of one head whose products are 0: each key that a query sees has the same weight.
struct Even {
    engine: Engine,
    queries: usize,
    keys: usize,
    causal: Causal,
    window: Window,
}

impl Even {
    fn new(queries: usize, keys: usize, causal: Causal, window: Window) -> Self {
        Self { engine: Engine::cpu().unwrap(), queries, keys, causal, window }
    }

    fn descs(&self, size: usize) -> [MemoryDesc; 3] {
        let dense = |dims: &[usize]| MemoryDesc::dense(dims, DataType::F32).unwrap();
        let (queries, keys) = (self.queries, self.keys);
        [dense(&[1, 1, queries, 1]), dense(&[1, 1, 1, keys]), dense(&[1, 1, keys, size])]
    }

    /// dst and the sums, with values of `size` elements.
    fn run(&self, values: &[f32], size: usize) -> (Vec<f32>, Vec<f32>) {
        let [query, key, value] = self.descs(size);
        let new = |desc| Memory::new(&self.engine, desc).unwrap();
        let builder = Forward::training(&self.engine, &query, &key, &value);
        let attention = builder.causal(self.causal).window(self.window).build().unwrap();
        let (q, k) = (new(&query), new(&key));
        let v = memory(&self.engine, &[1, 1, self.keys, size], values);
        let dst = attention.primitive().arg_desc(Arg::Dst).unwrap().unwrap();
        let mut dst = Memory::new(&self.engine, &dst).unwrap();
        let mut sums = new(&query);
        let args = ForwardArgs::new(&q, &k, &v, &mut dst).log_sum_exp(&mut sums);
        attention.execute(&Stream::new(&self.engine).unwrap(), args).unwrap();
        (elements(&dst), elements(&sums))
    }

    /// The keys that each query sees: those with a weight, which must be one over their number.
    fn seen(&self) -> Vec<Vec<usize>> {
        let (keys, queries) = (self.keys, self.queries);
        let one = |at: usize| if at.is_multiple_of(keys + 1) { 1.0 } else { 0.0 };
        let (weights, sums) = self.run(&(0..keys * keys).map(one).collect::<Vec<_>>(), keys);
        let row = |i: usize| -> Vec<usize> {
            let row = &weights[i * keys..][..keys];
            let seen: Vec<usize> = (0..keys).filter(|j| row[*j] != 0.0).collect();
            let even = 1.0 / seen.len() as f32;
            assert!(seen.iter().all(|j| (row[*j] - even).abs() < 1e-6), "{row:?}");
            assert!((sums[i].exp() - seen.len() as f32).abs() < 1e-3 || seen.is_empty());
            seen
        };
        (0..queries).map(row).collect()
    }

    /// The number of queries that see each key, from the gradient of the values: the sum of `diff_dst * weight`, where
    /// `diff_dst` is the number of keys that the query sees.
    fn seen_by(&self, counts: &[usize]) -> Vec<usize> {
        let (dst, sums) = self.run(&vec![0.0; self.keys], 1);
        let [query, key, value] = self.descs(1);
        let builder = Backward::new(&self.engine, &query, &key, &value);
        let backward = builder.causal(self.causal).window(self.window).build().unwrap();
        let new = |desc| Memory::new(&self.engine, desc).unwrap();
        let (q, k, v) = (new(&query), new(&key), new(&value));
        let rows = [1, 1, self.queries, 1];
        let (dst, sums) = (memory(&self.engine, &rows, &dst), memory(&self.engine, &rows, &sums));
        let counts: Vec<f32> = counts.iter().map(|count| *count as f32).collect();
        let diff = memory(&self.engine, &rows, &counts);
        let (mut dq, mut dk, mut dv) = (new(&query), new(&key), new(&value));
        let gradients = (&mut dq, &mut dk, &mut dv);
        let args = BackwardArgs::new((&q, &k, &v), (&dst, &sums), &diff, gradients);
        backward.execute(&Stream::new(&self.engine).unwrap(), args).unwrap();
        elements::<f32>(&dv).iter().map(|count| count.round() as usize).collect()
    }
}

/// Windows of 0, 1, 3 and the whole sequence in both conventions: which keys each row sees, forward and backward.
#[test]
fn masks_count_as_both_conventions_say() {
    let length = 9;
    let with_self = [1, 3, length].map(|window| (Window::WithSelf(window), window - 1));
    let before_self = [0, 1, 3, length].map(|window| (Window::BeforeSelf(window), window));
    for (window, before) in with_self.into_iter().chain(before_self) {
        let even = Even::new(length, length, Causal::TopLeft, window);
        let expected: Vec<Vec<usize>> =
            (0..length).map(|i| (i.saturating_sub(before)..=i).collect()).collect();
        let seen = even.seen();
        assert_eq!(seen, expected, "{window:?}");
        let counts: Vec<usize> = seen.iter().map(Vec::len).collect();
        let by: Vec<usize> =
            (0..length).map(|j| expected.iter().filter(|row| row.contains(&j)).count()).collect();
        assert_eq!(even.seen_by(&counts), by, "{window:?}, backward");
    }
    // A window of W keys is one of W - 1 keys before its own. That of the whole sequence hides nothing.
    let seen = |window| Even::new(length, length, Causal::TopLeft, window).seen();
    assert_eq!(seen(Window::WithSelf(length)), seen(Window::None));
    assert_eq!(seen(Window::WithSelf(4)), seen(Window::BeforeSelf(3)));
    // The last query sees the last key.
    let seen = Even::new(3, 7, Causal::BottomRight, Window::WithSelf(2)).seen();
    assert_eq!(seen, [[3, 4], [4, 5], [5, 6]]);
}

/// The pairs of a causal mask divided by those with a window of a half, a quarter and an eighth of the sequence, as
/// 4096 keys are of 8192, 16384 and 32768.
#[test]
fn pairs_of_windows() {
    let window = 512;
    for (length, ratio) in [(1024, 1.33), (2048, 2.29), (4096, 4.27)] {
        let pairs = |window| -> f64 {
            let even = Even::new(length, length, Causal::TopLeft, window);
            let (_, sums) = even.run(&vec![0.0; length], 1);
            sums.iter().map(|sum| f64::from(*sum).exp().round()).sum()
        };
        let all = pairs(Window::None);
        assert_eq!(all, (length * (length + 1) / 2) as f64);
        let with_self = pairs(Window::WithSelf(window));
        assert_eq!(with_self, (window * (window + 1) / 2 + (length - window) * window) as f64);
        assert!((all / with_self - ratio).abs() < 0.005, "{length}");
        let before_self = pairs(Window::BeforeSelf(window));
        assert_eq!(before_self, with_self + (length - window) as f64);
    }
}

/// Queries of RMS 0.530 and keys of RMS 0.020 give scores from -0.044 to 0.038, and so 18 keys almost the same weight:
/// 1/18 = 0.0556 for the first, and for the last, which has the lowest score, 0.0531.
#[test]
fn small_scores_make_attention_uniform() {
    const SIZE: usize = 64;
    let (engine, keys, scale) = (Engine::cpu().unwrap(), 18, 1.0 / (SIZE as f32).sqrt());
    let dense = |dims: &[usize]| MemoryDesc::dense(dims, DataType::F32).unwrap();
    let (query_rms, key_rms) = (0.53f32, 0.02f32);
    let wanted = |key: usize| match key {
        0 => 0.002,
        17 => -0.044,
        key => 0.038 - 0.068 * ((key - 1) as f32 / 15.0),
    };
    // Each key has a part in the direction of the query, for its score, and an orthogonal one.
    let key_of = |d: usize, key: usize| {
        let part = wanted(key) / (scale * SIZE as f32 * query_rms * key_rms);
        let sign = if d >> (key % 6) & 1 == 0 { 1.0 } else { -1.0 };
        key_rms * (part + sign * (1.0 - part * part).sqrt())
    };
    let queries = [query_rms; SIZE];
    let of_keys: Vec<f32> = (0..SIZE * keys).map(|at| key_of(at / keys, at % keys)).collect();
    let rms = |numbers: &mut dyn Iterator<Item = f32>| {
        (numbers.map(|x| f64::from(x).powi(2)).sum::<f64>() / SIZE as f64).sqrt()
    };
    let scores: Vec<f64> = (0..keys)
        .map(|key| {
            let elements = || of_keys[key..].iter().copied().step_by(keys);
            assert!((rms(&mut elements()) - 0.02).abs() < 1e-7);
            let products = elements().zip(queries).map(|(k, q)| f64::from(k) * f64::from(q));
            f64::from(scale) * products.sum::<f64>()
        })
        .collect();

    let one = |at: usize| if at.is_multiple_of(keys + 1) { 1.0 } else { 0.0 };
    let q = memory(&engine, &[1, 1, 1, SIZE], &queries);
    let k = memory(&engine, &[1, 1, SIZE, keys], &of_keys);
    let v = memory(&engine, &[1, 1, keys, keys], &(0..keys * keys).map(one).collect::<Vec<f32>>());
    let (query, key, value) =
        (dense(&[1, 1, 1, SIZE]), dense(&[1, 1, SIZE, keys]), dense(&[1, 1, keys, keys]));
    let builder = Forward::inference(&engine, &query, &key, &value).scale(scale).entropy();
    let attention = builder.build().unwrap();
    let mut dst = Memory::new(&engine, &dense(&[1, 1, 1, keys])).unwrap();
    let mut entropy = memory(&engine, &[1, 1], &[0f32]);
    let args = ForwardArgs::new(&q, &k, &v, &mut dst).entropy(&mut entropy);
    attention.execute(&Stream::new(&engine).unwrap(), args).unwrap();

    let weights: Vec<f32> = elements(&dst);
    let sum: f64 = scores.iter().map(|score| score.exp()).sum();
    for (weight, score) in weights.iter().zip(&scores) {
        assert!((f64::from(*weight) - score.exp() / sum).abs() < 1e-8, "{weight} of {score}");
    }
    let near = |value: f32, expected: f32| (value - expected).abs() < 5e-5;
    let (least, most) = weights.iter().fold((1f32, 0f32), |(a, b), w| (a.min(*w), b.max(*w)));
    assert!(near(weights[0], 0.0556) && near(weights[17], 0.0531), "{weights:?}");
    assert!(least == weights[17] && near(most, 0.0576), "{weights:?}");
    let entropy = elements::<f32>(&entropy)[0];
    assert!((entropy - 18f32.ln()).abs() < 1e-3, "{entropy} is not ln 18");
}

#[test]
fn widths_by_length_and_by_entropy() {
    let width = |strategy, length| adaptive_window(strategy, length, 512..=4096, None).unwrap();
    let by_length =
        [(100, 512), (1024, 512), (1026, 513), (4096, 2048), (8192, 4096), (100_000, 4096)];
    for (length, expected) in by_length {
        assert_eq!(width(Strategy::ByLength, length), expected);
        // Nothing was measured.
        assert_eq!(width(Strategy::ByEntropy(None), length), expected);
    }
    for (entropy, expected) in
        [(0.0, 512), (1.0, 1408), (2.0, 2304), (3.0, 3200), (4.0, 4096), (7.0, 4096)]
    {
        assert_eq!(width(Strategy::ByEntropyOver4(Some(entropy)), 8192), expected);
    }
    assert_eq!(width(Strategy::Fixed, 10), 4096);
    let perplexity = Strategy::ByPerplexity { perplexity: Some(100.0), vocabulary: 10_000.0 };
    assert_eq!(width(perplexity, 8192), 2304);
}

#[test]
fn widths_change_in_steps() {
    let next =
        |previous| adaptive_window(Strategy::ByLength, 8192, 512..=4096, Some(previous)).unwrap();
    let previous = Previous::new(1000);
    assert_eq!(next(previous), 4096);
    assert_eq!(next(Previous { smoothing: 0.25, ..previous }), 1774);
    assert_eq!(next(Previous { max_step: Some(64), ..previous }), 1064);
    // From the bounds, if the window was outside them.
    assert_eq!(next(Previous { max_step: Some(64), ..Previous::new(100) }), 576);
    let refused = |bounds, previous| {
        let error = adaptive_window(Strategy::ByLength, 10, bounds, previous).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArguments);
        error.to_string()
    };
    assert!(refused(0..=5, None).contains("min_window"));
    assert!(refused(RangeInclusive::new(6, 5), None).contains("max_window"));
    let smoothing = |smoothing| Some(Previous { smoothing, ..previous });
    assert!(refused(1..=5, smoothing(0.0)).contains("smoothing"));
    assert!(refused(1..=5, Some(Previous::new(0))).contains("previous"));
    assert!(refused(1..=5, Some(Previous { max_step: Some(0), ..previous })).contains("max_step"));
}
