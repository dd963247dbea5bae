//! How epsilon, scale and the input make the output of RMS normalization small or large: numbered tests on the numbers
//! of a small language model, whose attention came out uniform.
//!
//! `cargo run --release -p norm-rs --example eps_analysis`
//!
//! Each test prints what it measures and ends the program if the value is wrong.

use norm_rs::explain::{Explain, Explanation, Remedy, RemedyKind, Warnings};
use norm_rs::{DataType, Engine, Memory, MemoryDesc, Result};

const COLS: usize = 2048;
const EPSILON: f32 = 1e-5;
/// The size of the embeddings in the model's first layer.
const SMALL: f64 = 0.007;

/// Row `x` under scale `w`: its measures, the remedies, and the output of the library in f32.
fn measure(x: &[f64], w: &[f64], epsilon: f32) -> Result<(Explanation, Vec<Remedy>, f64)> {
    let engine = Engine::cpu()?;
    let row = MemoryDesc::dense(&[1, x.len()], DataType::F64)?;
    let weights = MemoryDesc::dense(&[w.len()], DataType::F64)?;
    let src = Memory::from_slice(&engine, &row, x)?;
    let scale = Memory::from_slice(&engine, &weights, w)?;
    let explain = Explain::new(&src).scale(&scale).epsilon(epsilon);
    let [x, w] = [x, w].map(|list| list.iter().map(|x| *x as f32).collect::<Vec<_>>());
    let mut out = vec![0f32; x.len()];
    norm_rs::rms_norm(&x, x.len(), Some(&w), None, epsilon, &mut out)?;
    let out: Vec<f64> = out.iter().map(|x| f64::from(*x)).collect();
    Ok((explain.measure()?, explain.remedies()?, rms(&out)))
}

fn rms(x: &[f64]) -> f64 {
    (x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64).sqrt()
}

fn near(what: &str, found: f64, expected: f64, tolerance: f64) {
    println!("    {what}: {found:.8}");
    assert!(
        (found - expected).abs() <= tolerance,
        "{what} is {found}, not {expected} within {tolerance}"
    );
}

/// Numbers of the size of the embeddings.
fn wave() -> Vec<f64> {
    (0..COLS).map(|i| SMALL * (i as f64 / 100.0).sin()).collect()
}

fn main() -> Result<()> {
    type Test = fn() -> Result<()>;
    let tests: [(&str, Test); 11] = [
        ("the ratio law: rms / sqrt(rms^2 + epsilon)", ratio_law),
        ("where epsilon matters: rms near sqrt(epsilon), not near epsilon", regime),
        ("uniform weights", uniform_weights),
        ("spiky weights: every 16th is 0.115, the others 0.04", spiky_weights),
        ("aligned weights: large where the input is", aligned_weights),
        ("layer 0: 35 of 2048 channels carry the weights and much of the input", layer_0),
        ("uniform weights, to the digits", digits),
        ("the model without epsilon is wrong", without_epsilon),
        ("22 layers", layers),
        ("scores of this size make softmax uniform", softmax_collapse),
        ("remedies", remedies),
    ];
    for (number, (name, test)) in tests.iter().enumerate() {
        println!("{}. {name}", number + 1);
        test()?;
    }
    Ok(())
}

#[cfg_attr(test, test)]
fn ratio_law() -> Result<()> {
    println!("    rms \\ epsilon      1e-8      1e-6      1e-5      1e-3");
    for size in [1.0, 0.1, 0.01, 0.005, 1e-3, 1e-4] {
        print!("    {size:<14}");
        for epsilon in [1e-8f32, 1e-6, 1e-5, 1e-3] {
            let (found, _, _) = measure(&vec![size; 64], &vec![1.0; 64], epsilon)?;
            let expected = size / (size * size + f64::from(epsilon)).sqrt();
            assert!((found.ratio - expected).abs() < 1e-12, "{} is not {expected}", found.ratio);
            print!("{:>10.7}", found.ratio);
        }
        println!();
    }
    let ratio =
        |size: f64| measure(&[size; 64], &[1.0; 64], EPSILON).map(|(found, _, _)| found.ratio);
    near("ratio at 0.1", ratio(0.1)?, 0.9995004, 1e-7);
    near("ratio at 0.005", ratio(0.005)?, 0.8451543, 1e-7);
    Ok(())
}

#[cfg_attr(test, test)]
fn regime() -> Result<()> {
    let root = f64::from(EPSILON).sqrt();
    for (size, dominated) in [(10.0 * root, false), (root, true), (f64::from(EPSILON), true)] {
        let (found, _, _) = measure(&[size; 64], &[1.0; 64], EPSILON)?;
        println!("    rms {size:.2e}: ratio {:.6}", found.ratio);
        assert_eq!(found.warnings.contains(Warnings::EPSILON_DOMINATES), dominated);
    }
    let (found, _, _) = measure(&[root; 64], &[1.0; 64], EPSILON)?;
    near("ratio at sqrt(epsilon)", found.ratio, 0.5f64.sqrt(), 1e-12);
    Ok(())
}

#[cfg_attr(test, test)]
fn uniform_weights() -> Result<()> {
    weights(&[0.046; COLS], (0.039, 5.5))
}

#[cfg_attr(test, test)]
fn spiky_weights() -> Result<()> {
    weights(&std::array::from_fn(|i| if i % 16 == 0 { 0.115 } else { 0.04 }), (0.041, 5.8))
}

#[cfg_attr(test, test)]
fn aligned_weights() -> Result<()> {
    weights(&std::array::from_fn(|i| 0.0795 * (i as f64 / 100.0).sin().abs()), (0.058, 8.3))
}

fn weights(w: &[f64; COLS], (out, amplification): (f64, f64)) -> Result<()> {
    let (found, _, of_library) = measure(&wave(), w, EPSILON)?;
    println!("    correlation of |scale| and |src|: {:.3}", found.correlation);
    near("RMS of scale", found.scale_rms, rms(w), 1e-12);
    near("RMS out", found.rms_out, out, 5e-4);
    near("RMS out of the kernel in f32", of_library, found.rms_out, 1e-7);
    near("amplification of the embeddings", found.rms_out / SMALL, amplification, 0.05);
    // The shorter law holds for weights that are uncorrelated with the input.
    let short = found.ratio * found.scale_rms;
    println!("    ratio * RMS of scale: {short:.8}");
    assert_eq!((found.rms_out - short).abs() < 1e-3, found.correlation < 0.5);
    Ok(())
}

#[cfg_attr(test, test)]
fn layer_0() -> Result<()> {
    let is_large = |i: usize| i % 58 == 29 && i < 35 * 58;
    let sign = |i: usize| if i.is_multiple_of(2) { 1.0 } else { -1.0 };
    let pick =
        |large: f64, other: f64| (0..COLS).map(move |i| if is_large(i) { large } else { other });
    let w: Vec<f64> = pick(0.3511, 0.0).collect();
    let x: Vec<f64> = pick(0.02175, 0.006452).enumerate().map(|(i, x)| x * sign(i)).collect();
    let (found, _, of_library) = measure(&x, &w, EPSILON)?;
    near("RMS in", found.rms_in, 0.007, 5e-6);
    near("mean of scale", found.scale_mean, 0.006, 5e-6);
    near("RMS of scale", found.scale_rms, 0.046, 5e-4);
    near("RMS out", found.rms_out, 0.130, 5e-4);
    near("RMS out of the kernel in f32", of_library, found.rms_out, 1e-7);
    near("amplification", found.amplification, 18.571, 0.05);
    near("correlation", found.correlation, 1.0, 1e-9);
    Ok(())
}

/// All digits that f64 arithmetic with an epsilon of exactly 1e-5 gives; an f32 epsilon changes the ninth.
#[cfg_attr(test, test)]
fn digits() -> Result<()> {
    let (found, _, of_library) = measure(&wave(), &[0.046; COLS], EPSILON)?;
    near("mean of squares * 1e5", found.rms_in * found.rms_in * 1e5, 2.4559264, 1e-7);
    near("RMS in", found.rms_in, 0.0049557304, 1e-10);
    near("divisor", found.divisor, 0.0058787128, 1e-10);
    near("ratio", found.ratio, 0.8429958, 1e-7);
    near("RMS out", found.rms_out, 0.0387778086, 1e-9);
    near("RMS out of the kernel in f32", of_library, 0.0387778086, 1e-8);
    Ok(())
}

#[cfg_attr(test, test)]
fn without_epsilon() -> Result<()> {
    let (found, _, of_library) = measure(&wave(), &[0.046; COLS], EPSILON)?;
    println!("    with epsilon {:.6}, without 0.046", found.rms_out);
    assert!((found.rms_out - 0.046).abs() > 0.005 && (of_library - 0.046).abs() > 0.005);
    Ok(())
}

/// A residual stream that grows by the same factor in each layer.
#[cfg_attr(test, test)]
fn layers() -> Result<()> {
    let growth = 93f64.powf(1.0 / 22.0);
    near("growth of a layer", growth, 1.2288, 5e-5);
    let mut x: Vec<f64> =
        (0..COLS).map(|i| 0.01 * 2f64.sqrt() * (i as f64 / 100.0).sin()).collect();
    let scale = 0.01 / rms(&x);
    x.iter_mut().for_each(|x| *x *= scale);
    println!("    layer    RMS in     ratio   RMS out  amplification");
    for layer in 0..22 {
        let (found, _, of_library) = measure(&x, &[0.046; COLS], EPSILON)?;
        let Explanation { rms_in, ratio, rms_out, amplification, .. } = found;
        // The law of a uniform weight holds in each layer: epsilon counts in the first ones only.
        assert!((ratio - rms_in / (rms_in * rms_in + 1e-5).sqrt()).abs() < 1e-7);
        assert!((of_library - 0.046 * ratio).abs() < 1e-7 && (ratio > 0.999) == (layer >= 10));
        println!("    {layer:5} {rms_in:9.5} {ratio:9.6} {rms_out:9.6} {amplification:14.4}");
        // The block adds its norm's output times its gain.
        let gain = (growth - 1.0) * rms_in / rms_out;
        let added: Vec<f64> = x.iter().map(|x| gain * 0.046 * x / found.divisor).collect();
        x.iter_mut().zip(added).for_each(|(x, added)| *x += added);
    }
    near("RMS after 22 layers", rms(&x), 0.93, 1e-9);
    near("growth", rms(&x) / 0.01, 93.0, 1e-6);
    Ok(())
}

/// The scores of one query with 18 keys, from -0.044 to 0.038.
fn scores() -> Vec<f32> {
    (0..18).map(|i| -0.044 + 0.082 * (i as f32 / 17.0).powf(0.8)).collect()
}

/// The entropy of softmax as a fraction of the largest possible one.
fn entropy(weights: &[f32]) -> f64 {
    let terms =
        weights.iter().map(|w| f64::from(*w)).map(|w| if w > 0.0 { -w * w.ln() } else { 0.0 });
    terms.sum::<f64>() / (weights.len() as f64).ln()
}

#[cfg_attr(test, test)]
fn softmax_collapse() -> Result<()> {
    let mut weights = [0f32; 18];
    norm_rs::softmax(&scores(), 18, &mut weights)?;
    near("smallest weight", weights[0].into(), 0.0531, 5e-5);
    near("1/18", 1.0 / 18.0, 0.0556, 5e-5);
    assert!(weights.iter().all(|w| (f64::from(*w) * 18.0 - 1.0).abs() < 0.05));
    near("entropy / ln 18", entropy(&weights), 1.0, 1e-3);
    println!("    factor of the scale   entropy / ln 18   largest weight");
    let mut before = 1.0;
    for factor in [1.0f32, 10.0, 100.0, 1000.0] {
        let scores: Vec<f32> = scores().iter().map(|score| score * factor).collect();
        norm_rs::softmax(&scores, 18, &mut weights)?;
        println!("    {factor:19} {:17.4} {:16.4}", entropy(&weights), weights[17]);
        assert!(entropy(&weights) < before);
        before = entropy(&weights);
    }
    Ok(())
}

#[cfg_attr(test, test)]
fn remedies() -> Result<()> {
    let (found, remedies, _) = measure(&wave(), &[0.046; COLS], EPSILON)?;
    println!("{found}");
    println!("    {:16} {:>12} {:>9} {:>9} {:>8}", "remedy", "value", "ratio", "RMS out", "scores");
    for Remedy { kind, value, ratio, rms_out, scores, .. } in &remedies {
        let kind = format!("{kind:?}");
        println!("    {kind:16} {value:12.4e} {ratio:9.6} {rms_out:9.6} {scores:8.4}");
    }
    let the =
        |kind| remedies.iter().find(|remedy| remedy.kind == kind).expect("every kind is there");
    near("ratio with a smaller epsilon", the(RemedyKind::SmallerEpsilon).ratio, 0.99, 1e-9);
    near(
        "RMS out with a larger epsilon",
        the(RemedyKind::LargerEpsilon).rms_out,
        found.rms_out / 2.0,
        1e-9,
    );
    near("RMS out with the ratio in the weights", the(RemedyKind::FoldRatio).rms_out, 0.046, 1e-9);
    near(
        "RMS out with 1 + scale",
        the(RemedyKind::ScalePlusOne).rms_out,
        1.046 * found.ratio,
        1e-9,
    );
    near("factor of the temperature", the(RemedyKind::Temperature).value, 1.0 / found.ratio, 1e-12);
    // No element is 3 times as large as the RMS.
    near("RMS out of the clipped input", the(RemedyKind::ClipSrc).rms_out, found.rms_out, 1e-12);
    Ok(())
}
