//! Rope compared with f64 loops: directions, pairings, tables, slots, weights, and refusals.

use norm_rs::primitive::Arg;
use norm_rs::rope::{
    Backward, BackwardArgs, Forward, ForwardArgs, Norm, Pairing, Scaling, frequencies, permute,
};
use norm_rs::{DataType, Engine, ErrorKind, Memory, MemoryDesc, Result, Stream};

const TOKENS: usize = 5;
const HEADS: usize = 3;
const HEAD: usize = 16;
const POSITIONS: [i64; TOKENS] = [0, 3, 131_071, 1, 900_000];
const PAIRINGS: [Pairing; 3] = [Pairing::Interleaved, Pairing::HalfSplit, Pairing::HalfSplitOfHead];

fn places(pairing: Pairing, pair: usize, pairs: usize) -> (usize, usize) {
    match pairing {
        Pairing::Interleaved => (2 * pair, 2 * pair + 1),
        Pairing::HalfSplit => (pair, pair + pairs),
        Pairing::HalfSplitOfHead => (pair, pair + HEAD / 2),
    }
}

/// Heads rotated by positions times frequencies.
fn turned(pairing: Pairing, src: &[f32], frequencies: &[f64], sign: f64) -> Vec<f64> {
    let mut values: Vec<f64> = src.iter().map(|x| f64::from(*x)).collect();
    for (row, head) in values.chunks_mut(HEAD).enumerate() {
        for (pair, frequency) in frequencies.iter().enumerate() {
            let angle = POSITIONS[row / HEADS] as f64 * frequency;
            let (sin, cos) = ((angle).sin() * sign, angle.cos());
            let (a, b) = places(pairing, pair, frequencies.len());
            (head[a], head[b]) = (head[a] * cos - head[b] * sin, head[a] * sin + head[b] * cos);
        }
    }
    values
}

fn source() -> Vec<f32> {
    (0..TOKENS * HEADS * HEAD).map(|i| ((i * 37 % 101) as f32 - 50.0) / 16.0).collect()
}

#[track_caller]
fn near(got: &[f32], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        assert!((f64::from(*got) - want).abs() < 2e-6, "{got}, not {want}");
    }
}

#[test]
fn heads_are_turned_and_turned_back() -> Result<()> {
    let (engine, src) = (Engine::cpu()?, source());
    let stream = Stream::new(&engine)?;
    let heads = MemoryDesc::dense(&[TOKENS, HEADS, HEAD], DataType::F32)?;
    let tokens = MemoryDesc::dense(&[TOKENS, 1], DataType::S64)?;
    let positions = Memory::from_slice(&engine, &tokens, &POSITIONS)?;
    for pairing in PAIRINGS {
        for rotary in [HEAD, 6] {
            let (values, magnitude) = frequencies(Scaling::None, rotary, 10_000.0)?;
            assert_eq!(magnitude, 1.0);
            let desc = MemoryDesc::dense(&[rotary / 2], DataType::F64)?;
            let angles = Memory::from_slice(&engine, &desc, &values)?;
            let forward =
                Forward::new(&engine, pairing, &heads, &tokens).rotary_dims(rotary).build()?;
            let mut dst = Memory::new(&engine, &heads)?;
            let from = Memory::from_slice(&engine, &heads, &src)?;
            let args = ForwardArgs::new(&from, &mut dst, &positions).frequencies(&angles);
            forward.execute(&stream, args)?;
            near(dst.as_slice::<f32>()?, &turned(pairing, &src, &values, 1.0));
            let turned_dst = dst.as_slice::<f32>()?.to_vec();
            let backward =
                Backward::new(&engine, pairing, &heads, &tokens).rotary_dims(rotary).build()?;
            let args = BackwardArgs::in_place(&mut dst, &positions).frequencies(&angles);
            backward.execute(&stream, args)?;
            near(dst.as_slice::<f32>()?, &turned(pairing, &turned_dst, &values, -1.0));
        }
    }
    Ok(())
}

#[test]
fn tables_give_what_frequencies_give() -> Result<()> {
    let (engine, src) = (Engine::cpu()?, source());
    let heads = MemoryDesc::dense(&[1, TOKENS * HEADS, HEAD], DataType::F32)?;
    let start = MemoryDesc::dense(&[1, 1], DataType::S32)?;
    let positions = Memory::from_slice(&engine, &start, &[2i32])?;
    let rows = TOKENS * HEADS + 2;
    let table = MemoryDesc::dense(&[rows, HEAD / 2], DataType::F32)?;
    let (values, _) = frequencies(Scaling::Linear(2.0), HEAD, 10_000.0)?;
    let angle = |at: usize| (at / (HEAD / 2)) as f64 * values[at % (HEAD / 2)];
    let cos: Vec<f32> = (0..rows * HEAD / 2).map(|at| angle(at).cos() as f32).collect();
    let sin: Vec<f32> = (0..rows * HEAD / 2).map(|at| angle(at).sin() as f32).collect();
    let cos = Memory::from_slice(&engine, &table, &cos)?;
    let sin = Memory::from_slice(&engine, &table, &sin)?;
    let desc = MemoryDesc::dense(&[HEAD / 2], DataType::F64)?;
    let angles = Memory::from_slice(&engine, &desc, &values)?;
    let from = Memory::from_slice(&engine, &heads, &src)?;
    let stream = Stream::new(&engine)?;
    // Tokens follow one another in dimension 1, from position 2.
    let rope = || Forward::new(&engine, Pairing::HalfSplit, &heads, &start).index_dim(1);
    let (mut first, mut second) = (Memory::new(&engine, &heads)?, Memory::new(&engine, &heads)?);
    let args = ForwardArgs::new(&from, &mut first, &positions).tables(&cos, &sin);
    rope().tables(&table).build()?.execute(&stream, args)?;
    let args = ForwardArgs::new(&from, &mut second, &positions).frequencies(&angles);
    rope().build()?.execute(&stream, args)?;
    let second: Vec<f64> = second.as_slice::<f32>()?.iter().map(|x| f64::from(*x)).collect();
    near(first.as_slice::<f32>()?, &second);
    Ok(())
}

#[test]
fn tokens_go_to_their_slots_normalized() -> Result<()> {
    let (engine, src) = (Engine::cpu()?, source());
    let heads = MemoryDesc::dense(&[TOKENS, HEADS, HEAD], DataType::F32)?;
    let cache = MemoryDesc::dense(&[8, HEADS, HEAD], DataType::F32)?;
    let tokens = MemoryDesc::dense(&[TOKENS, 1], DataType::S64)?;
    let scale = MemoryDesc::dense(&[HEAD], DataType::F32)?;
    let norm = Norm { epsilon: 1e-6, scale: Some(&scale), scale_plus_one: false, rounded: false };
    let rope = Forward::new(&engine, Pairing::HalfSplit, &heads, &tokens)
        .dst(&cache)
        .norm(norm)
        .slots()
        .build()?;
    let (values, _) = frequencies(Scaling::None, HEAD, 10_000.0)?;
    let desc = MemoryDesc::dense(&[HEAD / 2], DataType::F64)?;
    let angles = Memory::from_slice(&engine, &desc, &values)?;
    let weights = [0.5f32; HEAD];
    let weights = Memory::from_slice(&engine, &scale, &weights)?;
    let positions = Memory::from_slice(&engine, &tokens, &POSITIONS)?;
    let slots = [6i64, 0, -1, 3, 1];
    let row = MemoryDesc::dense(&[TOKENS], DataType::S64)?;
    let from = Memory::from_slice(&engine, &heads, &src)?;
    let mut room = vec![7.0f32; 8 * HEADS * HEAD];
    let mut dst = Memory::from_mut_slice(&engine, &cache, &mut room)?;
    let slot_memory = Memory::from_slice(&engine, &row, &slots)?;
    let args = ForwardArgs::new(&from, &mut dst, &positions)
        .frequencies(&angles)
        .scale(&weights)
        .slots(&slot_memory);
    rope.execute(&Stream::new(&engine)?, args)?;
    let normalized: Vec<f32> = src
        .chunks(HEAD)
        .flat_map(|head| {
            let square: f64 = head.iter().map(|x| f64::from(*x).powi(2)).sum();
            let r = 0.5 / (square / HEAD as f64 + 1e-6).sqrt();
            head.iter().map(move |x| (f64::from(*x) * r) as f32).collect::<Vec<_>>()
        })
        .collect();
    let want = turned(Pairing::HalfSplit, &normalized, &values, 1.0);
    let got = dst.as_slice::<f32>()?;
    for slot in 0..8usize {
        let got = &got[slot * HEADS * HEAD..(slot + 1) * HEADS * HEAD];
        match slots.iter().position(|to| *to == slot as i64) {
            Some(token) => near(got, &want[token * HEADS * HEAD..(token + 1) * HEADS * HEAD]),
            None => assert!(got.iter().all(|x| *x == 7.0), "{slot}"),
        }
    }
    Ok(())
}

#[test]
fn weights_are_permuted_both_ways() -> Result<()> {
    let engine = Engine::cpu()?;
    let desc = MemoryDesc::dense(&[2 * HEAD, 3], DataType::F32)?;
    let weights: Vec<f32> = (0..2 * HEAD * 3).map(|i| i as f32).collect();
    let from = Memory::from_slice(&engine, &desc, &weights)?;
    let (mut there, mut back) = (Memory::new(&engine, &desc)?, Memory::new(&engine, &desc)?);
    permute((Pairing::HalfSplit, Pairing::Interleaved), 2, HEAD, &from, &mut there)?;
    assert_eq!(there.as_slice::<f32>()?[3..6], [24.0, 25.0, 26.0]);
    permute((Pairing::Interleaved, Pairing::HalfSplit), 2, HEAD, &there, &mut back)?;
    assert_eq!(back.as_slice::<f32>()?, weights);
    Ok(())
}

#[test]
fn wrong_problems_are_refused() -> Result<()> {
    let engine = Engine::cpu()?;
    let heads = MemoryDesc::dense(&[TOKENS, HEADS, HEAD], DataType::F32)?;
    let tokens = MemoryDesc::dense(&[TOKENS, 1], DataType::S32)?;
    let odd = Forward::new(&engine, Pairing::HalfSplit, &heads, &tokens).rotary_dims(5).build();
    let error = odd.expect_err("odd");
    assert!(
        error.kind() == ErrorKind::InvalidArguments && error.to_string().contains("rotary_dims")
    );
    // Rope has flags in C only.
    let norm = Norm { epsilon: 0.0, scale: None, scale_plus_one: true, rounded: false };
    let rope = || Forward::new(&engine, Pairing::HalfSplit, &heads, &tokens);
    let error = rope().norm(norm).build().expect_err("no scale");
    let expected = "norm: scale_plus_one needs a scale; pass its descriptor as Norm::scale";
    assert_eq!((error.to_string().as_str(), error.argument()), (expected, Some("norm")));
    let error = rope().sections(&[HEAD / 2], true).build().expect_err("one section");
    assert_eq!(error.argument(), Some("sections"), "{error}");
    let rope = rope().build()?;
    let desc = MemoryDesc::dense(&[HEAD / 2], DataType::F64)?;
    let angles = Memory::from_slice(&engine, &desc, &[1.0f64; HEAD / 2])?;
    let positions = Memory::from_slice(&engine, &tokens, &[0i32, 1, 2, -1, 4])?;
    let mut both = Memory::new(&engine, &heads)?;
    let args = ForwardArgs::in_place(&mut both, &positions).frequencies(&angles);
    let error = rope.execute(&Stream::new(&engine)?, args).expect_err("below 0");
    assert_eq!(error.argument(), Some("positions"), "{error}");
    // Arguments have the names of the methods that pass them.
    let mut dst = Memory::new(&engine, &heads)?;
    let args = ForwardArgs::new(&both, &mut dst, &positions);
    let error = rope.execute(&Stream::new(&engine)?, args).expect_err("no frequencies");
    let expected = "frequencies is missing; it is an input: pass it with frequencies()";
    assert_eq!((error.to_string().as_str(), error.argument()), (expected, Some("frequencies")));
    assert_eq!(
        [Arg::RopeFrequencies, Arg::RopeCos, Arg::RopeSin].map(Arg::name),
        ["frequencies", "cos", "sin"]
    );
    assert!(frequencies(Scaling::Yarn(&[4.0]), 8, 1e4).is_err());
    assert!(frequencies(Scaling::None, 7, 1e4).is_err());
    Ok(())
}

/// Positions throughout 0 to 2^20, in three runs: q and k, both moved by the same distance, and k moved by 1 more.
#[test]
fn products_depend_on_the_difference_of_positions() -> Result<()> {
    const PAIRS: usize = 10_000;
    const DIM: usize = 64;
    const END: u64 = 1 << 20;
    let mut state = 1u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let vectors: [Vec<f32>; 2] = [0, 1]
        .map(|_| (0..PAIRS * DIM).map(|_| next() as f32 / (1u64 << 30) as f32 - 1.0).collect());
    // The positions of q and k, for each run.
    let mut positions = [const { [const { Vec::new() }; 2] }; 3];
    for _ in 0..PAIRS {
        let (m, n) = ((next() % END) as i64, (next() % END) as i64);
        let (low, high) = (m.min(n), m.max(n));
        let moved = (next() % (END - (high - low) as u64)) as i64 - low;
        let other = if n + moved > 0 { -1 } else { 1 };
        for (turn, (m, n)) in
            [(m, n), (m + moved, n + moved), (m + moved, n + moved + other)].into_iter().enumerate()
        {
            positions[turn][0].push(m);
            positions[turn][1].push(n);
        }
    }
    let engine = Engine::cpu()?;
    let stream = Stream::new(&engine)?;
    let rows = MemoryDesc::dense(&[PAIRS, DIM], DataType::F32)?;
    let tokens = MemoryDesc::dense(&[PAIRS], DataType::S64)?;
    let of_angles = MemoryDesc::dense(&[DIM / 2], DataType::F64)?;
    for (pairing, base) in [(Pairing::Interleaved, 10_000.0), (Pairing::HalfSplit, 500_000.0)] {
        let (values, _) = frequencies(Scaling::None, DIM, base)?;
        let angles = Memory::from_slice(&engine, &of_angles, &values)?;
        let forward = Forward::new(&engine, pairing, &rows, &tokens).build()?;
        let turned = |which: usize, positions: &[i64]| -> Result<Vec<f32>> {
            let src = Memory::from_slice(&engine, &rows, &vectors[which])?;
            let positions = Memory::from_slice(&engine, &tokens, positions)?;
            let mut dst = Memory::new(&engine, &rows)?;
            let args = ForwardArgs::new(&src, &mut dst, &positions).frequencies(&angles);
            forward.execute(&stream, args)?;
            Ok(dst.as_slice::<f32>()?.to_vec())
        };
        let product = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        };
        let mut products = Vec::new();
        for turn in &positions {
            let (q, k) = (turned(0, &turn[0])?, turned(1, &turn[1])?);
            let pairs = q.chunks(DIM).zip(k.chunks(DIM));
            products.push(pairs.map(|(q, k)| product(q, k)).collect::<Vec<_>>());
        }
        let mut told_apart = 0;
        let both = vectors[0].chunks(DIM).zip(vectors[1].chunks(DIM));
        for (pair, (q, k)) in both.enumerate() {
            let size = (product(q, q) * product(k, k)).sqrt();
            let [first, moved, other] = [0, 1, 2].map(|turn| products[turn][pair] / size);
            assert!((first - moved).abs() < 1e-5, "pair {pair}: {first}, moved {moved}");
            told_apart += usize::from((first - other).abs() > 1e-3);
        }
        assert!(told_apart > PAIRS * 9 / 10, "{told_apart}");
    }
    Ok(())
}

/// The gradient of a normalized head is orthogonal to the head. That of the scale, times the scale, is the product of
/// the result and its gradient, which a rotation preserves.
#[test]
fn backward_goes_through_the_normalization() -> Result<()> {
    let (engine, src) = (Engine::cpu()?, source());
    let stream = Stream::new(&engine)?;
    let heads = MemoryDesc::dense(&[TOKENS, HEADS, HEAD], DataType::F32)?;
    let tokens = MemoryDesc::dense(&[TOKENS, 1], DataType::S64)?;
    let row = MemoryDesc::dense(&[HEAD], DataType::F32)?;
    let positions = Memory::from_slice(&engine, &tokens, &POSITIONS)?;
    let (values, _) = frequencies(Scaling::None, HEAD, 10_000.0)?;
    let desc = MemoryDesc::dense(&[HEAD / 2], DataType::F64)?;
    let angles = Memory::from_slice(&engine, &desc, &values)?;
    let factors: Vec<f32> = (0..HEAD).map(|col| 0.5 + col as f32 / 8.0).collect();
    let scale = Memory::from_slice(&engine, &row, &factors)?;
    let norm = Norm { epsilon: 0.0, scale: Some(&row), scale_plus_one: false, rounded: false };
    let from = Memory::from_slice(&engine, &heads, &src)?;
    let gradient: Vec<f32> = src.iter().rev().map(|x| x * x - 2.0).collect();
    let diff_dst = Memory::from_slice(&engine, &heads, &gradient)?;
    let (mut dst, mut diff_src) = (Memory::new(&engine, &heads)?, Memory::new(&engine, &heads)?);
    let mut diff_scale = Memory::new(&engine, &row)?;
    let pairing = Pairing::Interleaved;
    let forward = Forward::new(&engine, pairing, &heads, &tokens).norm(norm).build()?;
    let args = ForwardArgs::new(&from, &mut dst, &positions).frequencies(&angles).scale(&scale);
    forward.execute(&stream, args)?;
    let backward = Backward::new(&engine, pairing, &heads, &tokens).norm(norm, &heads);
    let backward = backward.diff_scale(&row).build()?;
    let args = BackwardArgs::new(&diff_dst, &mut diff_src, &positions).frequencies(&angles);
    backward.execute(&stream, args.src(&from).scale(&scale).diff_scale(&mut diff_scale))?;
    let product = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let diff_src = diff_src.as_slice::<f32>()?;
    for (head, gradient) in src.chunks(HEAD).zip(diff_src.chunks(HEAD)) {
        assert!(product(head, gradient).abs() < 1e-4);
        assert!(gradient.iter().any(|d| d.abs() > 1e-2));
    }
    let both = product(dst.as_slice::<f32>()?, &gradient);
    assert!((product(&factors, diff_scale.as_slice::<f32>()?) - both).abs() < 1e-3 * both.abs());
    Ok(())
}
