//! The oracle of attention: gradients compared with differences of forward, and known cases.

use benchdnn::oracle::sdpa::{Attention, Mask, Rules, Saved, Shape, Window, backward, forward};

/// Numbers from -1 to 1, the same on every run.
fn numbers(seed: u64, count: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let one = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as f64 / f64::from(1u32 << 31) - 1.0
    };
    (0..count).map(one).collect()
}

const SHAPE: Shape =
    Shape { sequences: 2, heads: 4, groups: 2, queries: 3, keys: 5, head: 3, values: 2 };

#[derive(Clone)]
struct Tensors {
    queries: Vec<f64>,
    keys: Vec<f64>,
    values: Vec<f64>,
    mask: Vec<f64>,
    sinks: Vec<f64>,
    slopes: Vec<f64>,
    lengths: [Vec<f64>; 2],
}

impl Tensors {
    fn new(options: u32) -> Tensors {
        let Shape { sequences: b, heads: h, groups: g, queries: s, keys: t, head: d, values: e } =
            SHAPE;
        let mut mask = numbers(4, b * h * s * t);
        mask.iter_mut().step_by(7).for_each(|x| *x = f64::NEG_INFINITY);
        let when = |bit: u32, values: Vec<f64>| if options & bit > 0 { values } else { vec![] };
        Tensors {
            queries: numbers(1, b * h * s * d).iter().map(|x| 3.0 * x).collect(),
            keys: numbers(2, b * g * d * t),
            values: numbers(3, b * g * t * e),
            mask: when(1, mask),
            sinks: when(2, numbers(5, h)),
            slopes: when(4, numbers(6, h)),
            lengths: [when(8, vec![2.0, 3.0]), when(8, vec![5.0, 2.0])],
        }
    }

    fn attention(&self, rules: Rules) -> Attention<'_> {
        let dims = [SHAPE.sequences, SHAPE.heads, SHAPE.queries, SHAPE.keys];
        let mask = Mask { values: &self.mask, dims, hides: false };
        Attention {
            shape: SHAPE,
            rules,
            queries: &self.queries,
            keys: &self.keys,
            values: &self.values,
            mask: (!self.mask.is_empty()).then_some(mask),
            sinks: &self.sinks,
            slopes: &self.slopes,
            query_lengths: &self.lengths[0],
            key_lengths: &self.lengths[1],
        }
    }
}

/// The sum of dst with these weights.
fn loss(tensors: &Tensors, rules: Rules, weights: &[f64]) -> f64 {
    let dst = forward(&tensors.attention(rules)).dst;
    dst[0].iter().zip(weights).map(|(y, w)| y * w).sum()
}

#[test]
fn gradients_are_the_limits_of_differences() {
    const STEP: f64 = 1.0 / 65536.0;
    let windows = [Window::None, Window::WithSelf(2), Window::BeforeSelf(2)];
    for options in 0..64 {
        let rules = Rules {
            scale: 0.7,
            soft_cap: if options & 16 > 0 { 1.5 } else { 0.0 },
            causal: options & 32 > 0,
            bottom_right: options & 32 > 0,
            window: windows[options as usize % 3],
            first_keys: options as usize % 2,
            bf16: false,
        };
        let tensors = Tensors::new(options);
        let weights = numbers(9, SHAPE.sequences * SHAPE.heads * SHAPE.queries * SHAPE.values);
        let saved = forward(&tensors.attention(rules));
        let saved =
            Saved { diff_dst: &weights, dst: &saved.dst[0], logarithms: &saved.logarithms[0] };
        let gradients = backward(&tensors.attention(rules), saved);
        type Field = fn(&mut Tensors) -> &mut Vec<f64>;
        let fields: [(&[f64], Field); 4] = [
            (&gradients.queries[0], |tensors| &mut tensors.queries),
            (&gradients.keys[0], |tensors| &mut tensors.keys),
            (&gradients.values[0], |tensors| &mut tensors.values),
            (&gradients.sinks[0], |tensors| &mut tensors.sinks),
        ];
        for (number, (gradient, field)) in fields.into_iter().enumerate() {
            let count = field(&mut tensors.clone()).len();
            for at in 0..count {
                let moved = |by: f64| {
                    let mut tensors = tensors.clone();
                    field(&mut tensors)[at] += by;
                    loss(&tensors, rules, &weights)
                };
                let difference = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
                let error = (gradient[at] - difference).abs();
                assert!(error < 1e-8, "options {options}, tensor {number}, {at}: {error:e}");
            }
        }
    }
}

#[test]
fn equal_scores_give_means_and_the_entropy_of_even_weights() {
    let tensors = Tensors { queries: vec![0.0; 2 * 4 * 3 * 3], ..Tensors::new(0) };
    let rules = Rules { scale: 1.0, causal: true, bottom_right: true, ..Rules::default() };
    let all = forward(&tensors.attention(rules));
    // The queries see 3, 4 and 5 of the 5 keys.
    for (at, logarithm) in all.logarithms[0].iter().enumerate() {
        let keys = 3 + at % 3;
        assert!((logarithm - (keys as f64).ln()).abs() < 1e-15);
        let (group, e) = (at / 6, 1);
        let mean = (0..keys).map(|j| tensors.values[(group * 5 + j) * 2 + e]).sum::<f64>();
        assert!((all.dst[0][at * 2 + e] - mean / keys as f64).abs() < 1e-15);
    }
    let entropy = (3f64.ln() + 4f64.ln() + 5f64.ln()) / 3.0;
    assert!(all.entropies[0].iter().all(|own| (own - entropy).abs() < 1e-14));
}

#[test]
fn windows_see_as_many_keys_as_they_say() {
    let tensors = Tensors::new(0);
    let seen = |causal, bottom_right, window| {
        let rules = Rules { scale: 1.0, causal, bottom_right, window, ..Rules::default() };
        let attention = tensors.attention(rules);
        [0, 1, 2].map(|i| (0..5).filter(|&j| attention.sees([0, 0, i, j])).collect::<Vec<_>>())
    };
    let none = Window::None;
    assert_eq!(seen(false, false, none), [0, 1, 2].map(|_| vec![0, 1, 2, 3, 4]));
    assert_eq!(seen(true, false, none), [vec![0], vec![0, 1], vec![0, 1, 2]]);
    assert_eq!(seen(true, true, none), [vec![0, 1, 2], vec![0, 1, 2, 3], vec![0, 1, 2, 3, 4]]);
    assert_eq!(seen(false, false, Window::WithSelf(2)), [vec![0], vec![0, 1], vec![1, 2]]);
    assert_eq!(seen(true, true, Window::WithSelf(1)), [vec![2], vec![3], vec![4]]);
    assert_eq!(seen(true, true, Window::BeforeSelf(1)), [vec![1, 2], vec![2, 3], vec![3, 4]]);
    assert_eq!(seen(true, true, Window::BeforeSelf(0)), [vec![2], vec![3], vec![4]]);
    let window = Window::WithSelf(1);
    let rules =
        Rules { causal: true, bottom_right: true, window, first_keys: 2, ..Rules::default() };
    let attention = tensors.attention(rules);
    let seen = (0..5).filter(|&j| attention.sees([0, 0, 2, j])).collect::<Vec<_>>();
    assert_eq!(seen, [0, 1, 4]);
}

#[test]
fn a_sink_is_a_key_without_a_value() {
    let rules = Rules { scale: 1.0, ..Rules::default() };
    let tensors = Tensors::new(8);
    let with_sinks = Tensors { sinks: vec![0.25; 4], ..tensors.clone() };
    let [plain, sunk] = [&tensors, &with_sinks].map(|tensors| forward(&tensors.attention(rules)));
    for (row, (a, b)) in plain.logarithms[0].iter().zip(&sunk.logarithms[0]).enumerate() {
        if *a == f64::NEG_INFINITY {
            continue;
        }
        assert!((b - (a.exp() + 0.25f64.exp()).ln()).abs() < 1e-14);
        let part = (a - b).exp();
        for e in 0..2 {
            let [a, b] = [&plain, &sunk].map(|all| all.dst[0][row * 2 + e]);
            assert!((a * part - b).abs() < 1e-15);
        }
    }
}
