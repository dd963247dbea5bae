//! Attention on slices compared with f64 loops: options, strides, gradients; the bits of the objects; refusals.

use norm_rs::sdpa::{
    Causal, Gradients, Heads, Mask, Options, Results, Window, attention, attention_backward,
    attention_quantized, attention_training,
};
use norm_rs::{ErrorKind, Result, bf16};

use crate::attention::Case;
use crate::data::{bits, f64s, numbers};

const SIZES: [usize; 7] = [2, 4, 2, 5, 7, 8, 6];

/// The dimensions of queries, keys, values and results.
fn dims() -> [[usize; 4]; 4] {
    let [batch, heads, groups, queries, keys, d, e] = SIZES;
    [
        [batch, heads, queries, d],
        [batch, groups, keys, d],
        [batch, groups, keys, e],
        [batch, heads, queries, e],
    ]
}

fn f32s(list: &[f64]) -> Vec<f32> {
    list.iter().map(|x| *x as f32).collect()
}

#[track_caller]
fn near(got: &[f32], want: &[f64], allowed: f64) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        let got = f64::from(*got);
        assert!(got == *want || (got - want).abs() <= allowed, "{got}, not {want}");
    }
}

/// A case with every option, and its masks.
fn every_option() -> (Case, Vec<f32>) {
    let [batch, heads, _, queries, keys, ..] = SIZES;
    let mask: Vec<f32> = numbers(7, batch * heads * queries * keys, -1.0, 1.0);
    let case = Case {
        causal: Causal::BottomRight,
        window: Window::BeforeSelf(4),
        soft_cap: 0.75,
        slopes: Some(vec![0.5, 0.25, 0.125, 0.0625]),
        sinks: Some(vec![0.5, -0.25, 1.0, 0.0]),
        mask: Some(f64s(&mask)),
        query_lengths: Some(vec![5, 3]),
        key_lengths: Some(vec![7, 4]),
        ..Case::new(SIZES)
    };
    (case, mask)
}

#[test]
fn slices_match_the_formulas() -> Result<()> {
    let (case, mask) = every_option();
    let [of_q, of_k, of_v, of_dst] = dims();
    let [slopes, sinks] = [&case.slopes, &case.sinks].map(|list| f32s(list.as_ref().unwrap()));
    let options = Options {
        causal: case.causal,
        window: case.window,
        soft_cap: Some(0.75),
        sinks: Some(&sinks),
        alibi_slopes: Some(&slopes),
        mask: Some(Mask::Added(Heads::new(&mask, [2, 4, 5, 7]))),
        query_lengths: case.query_lengths.as_deref(),
        key_lengths: case.key_lengths.as_deref(),
        ..Options::default()
    };
    let (q, k, v) = (f32s(&case.q), f32s(&case.k), f32s(&case.v));
    let heads = (Heads::new(&q[..], of_q), Heads::new(&k[..], of_k), Heads::new(&v[..], of_v));
    let mut dst = vec![9f32; of_dst.iter().product()];
    let mut sums = vec![9f32; 2 * 4 * 5];
    let to = Heads::new(&mut dst[..], of_dst);
    attention_training(heads.0, heads.1, heads.2, &options, to, &mut sums)?;
    let expected = case.forward();
    near(&dst, &expected.dst, 2e-6);
    near(&sums, &expected.sums, 4e-6);

    let diff: Vec<f32> = numbers(9, dst.len(), -1.0, 1.0);
    let [mut diff_q, mut diff_k, mut diff_v] = [&q, &k, &v].map(|list| vec![9f32; list.len()]);
    let (mut diff_sinks, mut diff_mask) = ([9f32; 4], vec![9f32; mask.len()]);
    attention_backward(
        heads.0,
        heads.1,
        heads.2,
        &options,
        Results { dst: Heads::new(&dst[..], of_dst), log_sum_exp: &sums },
        Heads::new(&diff[..], of_dst),
        Gradients {
            diff_q: Heads::new(&mut diff_q, of_q),
            diff_k: Heads::new(&mut diff_k, of_k),
            diff_v: Heads::new(&mut diff_v, of_v),
            diff_sinks: Some(&mut diff_sinks),
            diff_mask: Some(Heads::new(&mut diff_mask, [2, 4, 5, 7])),
        },
    )?;
    let slopes = case.backward(&f64s(&diff));
    near(&diff_q, &slopes.q, 1e-5);
    near(&diff_k, &slopes.k, 1e-5);
    near(&diff_v, &slopes.v, 1e-5);
    near(&diff_sinks, &slopes.sinks, 1e-5);
    // A mask is added to scores. The change of the sum of results.
    let loss = |case: &Case| -> f64 {
        case.forward().dst.iter().zip(&diff).map(|(a, b)| a * f64::from(*b)).sum()
    };
    let mut moved = case;
    for (at, found) in diff_mask.iter().enumerate().step_by(3) {
        let [above, below] = [1e-5, -2e-5].map(|step| {
            moved.mask.as_mut().unwrap()[at] += step;
            loss(&moved)
        });
        moved.mask.as_mut().unwrap()[at] += 1e-5;
        assert!((f64::from(*found) - (above - below) / 2e-5).abs() < 1e-5, "[{at}]: {found}");
    }
    Ok(())
}

/// Two packed sequences have the bits of each alone, forward and backward. Rows outside them stay unchanged.
#[test]
fn packed_sequences() -> Result<()> {
    let (rows, keys, d, e) = (9, 12, 8, 6);
    let [q, k, v, diff]: [Vec<f32>; 4] =
        [(1, 2 * rows * d), (2, keys * d), (3, keys * e), (4, 2 * rows * e)]
            .map(|(seed, count)| numbers(seed, count, -1.0, 1.0));
    let (of_q, of_k) = ([1, 2, rows, d], [1, 1, keys, d]);
    let (of_v, of_dst) = ([1, 1, keys, e], [1, 2, rows, e]);
    let causal = Causal::BottomRight;
    let ends = ([0i32, 3, 8], [1i32, 5, 12]);
    let options = Options {
        causal,
        query_offsets: Some(&ends.0),
        key_offsets: Some(&ends.1),
        ..Options::default()
    };
    // All tokens, or some of them, with strides. Buffers are filled with nines, so that the written elements show.
    let run = |options: &Options<'_>,
               q0: usize,
               queries: usize,
               k0: usize,
               count: usize|
     -> Result<Vec<Vec<f32>>> {
        let cut = |list: &[f32], size: usize, first: usize| list[first * size..].to_vec();
        let (q, diff) = (cut(&q, d, q0), cut(&diff, e, q0));
        let (k, v) = (cut(&k, d, k0), cut(&v, e, k0));
        fn heads<S>(slice: S, [b, h, _, size]: [usize; 4], count: usize, step: usize) -> Heads<S> {
            let head = step * size;
            Heads::with_strides(slice, [b, h, count, size], [2 * head, head, size, 1])
        }
        let given = (heads(&q[..], of_q, queries, rows), heads(&k[..], of_k, count, keys));
        let values = heads(&v[..], of_v, count, keys);
        let (mut dst, mut sums) = (vec![9f32; diff.len()], vec![9f32; 2 * queries]);
        let to = heads(&mut dst[..], of_dst, queries, rows);
        attention_training(given.0, given.1, values, options, to, &mut sums)?;
        let mut gradients = [&q, &k, &v].map(|list| vec![9f32; list.len()]);
        let [diff_q, diff_k, diff_v] = &mut gradients;
        attention_backward(
            given.0,
            given.1,
            values,
            options,
            Results { dst: heads(&dst[..], of_dst, queries, rows), log_sum_exp: &sums },
            heads(&diff[..], of_dst, queries, rows),
            Gradients {
                diff_q: heads(&mut diff_q[..], of_q, queries, rows),
                diff_k: heads(&mut diff_k[..], of_k, count, keys),
                diff_v: heads(&mut diff_v[..], of_v, count, keys),
                diff_sinks: None,
                diff_mask: None,
            },
        )?;
        let [diff_q, diff_k, diff_v] = gradients;
        Ok(vec![dst, diff_q, diff_k, diff_v])
    };
    let together = run(&options, 0, rows, 0, keys)?;
    let mut written = together.iter().map(|list| vec![9f32; list.len()]).collect::<Vec<_>>();
    for b in 0..2 {
        let [(q0, q1), (k0, k1)] =
            [ends.0, ends.1].map(|ends| (ends[b] as usize, ends[b + 1] as usize));
        let own = Options { causal, ..Options::default() };
        let alone = run(&own, q0, q1 - q0, k0, k1 - k0)?;
        let sizes = [
            (e, 2, rows, q0, q1),
            (d, 2, rows, q0, q1),
            (d, 1, keys, k0, k1),
            (e, 1, keys, k0, k1),
        ];
        for ((to, from), (size, heads, all, first, end)) in
            written.iter_mut().zip(&alone).zip(sizes)
        {
            for head in 0..heads {
                let count = (end - first) * size;
                let at = (head * all + first) * size;
                to[at..at + count].copy_from_slice(&from[head * all * size..][..count]);
            }
        }
    }
    for (together, written) in together.iter().zip(&written) {
        assert_eq!(bits(together), bits(written));
    }
    Ok(())
}

#[test]
fn strides_and_bytes_change_no_bit() -> Result<()> {
    let case = Case::new(SIZES);
    let [of_q, of_k, of_v, of_dst] = dims();
    let (q, k, v) = (f32s(&case.q), f32s(&case.k), f32s(&case.v));
    let mut expected = vec![0f32; of_dst.iter().product()];
    let heads = (Heads::new(&q[..], of_q), Heads::new(&k[..], of_k), Heads::new(&v[..], of_v));
    let causal = Options { causal: Causal::TopLeft, ..Options::default() };
    attention(heads.0, heads.1, heads.2, &causal, Heads::new(&mut expected[..], of_dst))?;

    // Tokens outside of heads, and the causal mask as bytes.
    let [batch, many, tokens, size] = of_q;
    let mut turned = vec![0f32; q.len()];
    for (at, row) in q.chunks(size).enumerate() {
        let (b, h, token) = (at / (many * tokens), at / tokens % many, at % tokens);
        turned[((b * tokens + token) * many + h) * size..][..size].copy_from_slice(row);
    }
    let strides = [tokens * many * size, size, many * size, 1];
    let mask: Vec<u8> = (0..5 * 7).map(|at| u8::from(at % 7 <= at / 7)).collect();
    let mask = Some(Mask::Bytes(Heads::new(&mask[..], [1, 1, 5, 7])));
    let options = Options { mask, ..Options::default() };
    let mut dst = vec![0f32; expected.len()];
    let from = Heads::with_strides(&turned[..], [batch, many, tokens, size], strides);
    attention(from, heads.1, heads.2, &options, Heads::new(&mut dst[..], of_dst))?;
    assert_eq!(bits(&dst), bits(&expected));

    // The result in another type is the same, rounded.
    let mut rounded = vec![bf16::ZERO; dst.len()];
    let to = Heads::new(&mut rounded[..], of_dst);
    attention(heads.0, heads.1, heads.2, &causal, to)?;
    let own: Vec<bf16> = expected.iter().map(|x| bf16::from_f32(*x)).collect();
    assert_eq!(bits(&rounded), bits(&own));
    Ok(())
}

#[test]
fn errors_name_the_slice() {
    let case = Case::new(SIZES);
    let [of_q, of_k, of_v, of_dst] = dims();
    let (q, k, v) = (f32s(&case.q), f32s(&case.k), f32s(&case.v));
    let mut dst = vec![9f32; of_dst.iter().product()];
    let mut refused =
        |q: Heads<&[f32]>, k: Heads<&[f32]>, options: &Options<'_>, words: &[&str]| {
            let v = Heads::new(&v[..], of_v);
            let result = attention(q, k, v, options, Heads::new(&mut dst[..], of_dst));
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArguments);
            assert!(error.to_string().starts_with(error.argument().unwrap()), "{error}");
            for word in words {
                assert!(error.to_string().contains(word), "{error} does not say {word:?}");
            }
            assert!(dst.iter().all(|x| *x == 9.0), "nothing is written");
        };
    let none = Options::default();
    let (of, keys) = (Heads::new(&q[..], of_q), Heads::new(&k[..], of_k));
    refused(Heads::new(&q[1..], of_q), keys, &none, &["q has 319 elements", "320"]);
    refused(of, Heads::new(&k[1..], of_k), &none, &["k has 223 elements", "224"]);
    refused(of, Heads::new(&k[..], [2, 2, 8, 7]), &none, &["7 elements", "8"]);
    let three = Heads::new(&k[..], [2, 3, 4, 8]);
    refused(of, three, &none, &["q: 4 heads are not a multiple of the 3 of k"]);
    let sinks = [0f32; 3];
    let options = Options { sinks: Some(&sinks), ..none };
    refused(of, keys, &options, &["sinks has 3 elements", "pass 4"]);
    let options = Options { key_lengths: Some(&[7, 8]), ..none };
    refused(of, keys, &options, &["key_lengths: 8", "from 0 to 7"]);
    let options = Options { soft_cap: Some(-1.0), ..none };
    refused(of, keys, &options, &["soft_cap"]);
    let options = Options { query_offsets: Some(&[0, 5, 9]), ..none };
    refused(of, keys, &options, &["q has dimensions [2, 4, 5, 8]", "packed"]);
    let mask = [0u8; 34];
    let mask = Some(Mask::Bytes(Heads::new(&mask[..], [1, 1, 5, 7])));
    refused(of, keys, &Options { mask, ..none }, &["mask has 34 elements", "35"]);
}

#[test]
fn quantized_slices_match_the_formulas() -> Result<()> {
    let [of_q, of_k, of_v, of_dst] = dims();
    let count = |dims: [usize; 4]| dims.iter().product::<usize>();
    let codes = |seed, dims| -> Vec<i8> {
        numbers(seed, count(dims), -127.0, 127.0).iter().map(|x: &f32| *x as i8).collect()
    };
    let (k, v) = (codes(3, of_k), codes(4, of_v));
    let tokens = of_k[..3].iter().product();
    let (key_scales, value_scales): (Vec<f32>, Vec<f32>) =
        (numbers(5, tokens, 0.002, 0.02), numbers(6, tokens, 0.002, 0.02));
    let plain = |codes: &[i8], scales: &[f32], size: usize| -> Vec<f32> {
        codes.iter().enumerate().map(|(i, x)| f32::from(*x) * scales[i / size]).collect()
    };
    let q: Vec<f32> = numbers(2, count(of_q), -1.0, 1.0);
    let lengths = [7, 4];
    let options =
        Options { causal: Causal::BottomRight, key_lengths: Some(&lengths), ..Options::default() };
    let (mut got, mut want) = (vec![9.0f32; count(of_dst)], vec![0.0f32; count(of_dst)]);
    let (keys, values) = (plain(&k, &key_scales, of_k[3]), plain(&v, &value_scales, of_v[3]));
    let queries = Heads::new(&q[..], of_q);
    let scales = [&key_scales[..], &value_scales[..]];
    let (own_k, own_v) = (Heads::new(&k[..], of_k), Heads::new(&v[..], of_v));
    attention_quantized(queries, own_k, own_v, scales, &options, Heads::new(&mut got[..], of_dst))?;
    let to = Heads::new(&mut want[..], of_dst);
    attention(queries, Heads::new(&keys[..], of_k), Heads::new(&values[..], of_v), &options, to)?;
    near(&got, &f64s(&want), 1e-5);
    let short = [&key_scales[1..], &value_scales[..]];
    let to = Heads::new(&mut got[..], of_dst);
    let refused = attention_quantized(queries, own_k, own_v, short, &options, to).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArguments);
    assert!(refused.to_string().contains("key_scales"), "{refused}");
    Ok(())
}
