//! Operations in candle's graph: results and gradients against candle's own arithmetic in f64.

use candle_core::{D, DType, Device, Result, Tensor, Var};
use norm_rs::candle::{layer_norm, log_softmax, rms_norm, softmax};

const EPSILON: f32 = 1e-3;

fn numbers(seed: usize, dims: &[usize]) -> Tensor {
    let count = dims.iter().product();
    let numbers: Vec<f64> =
        (0..count).map(|i| ((i + 37 * seed) as f64 * 0.73).sin() * 2.0 + 0.5).collect();
    Tensor::from_vec(numbers, dims, &Device::Cpu).unwrap()
}

fn given(given: bool, parameter: &Tensor) -> Option<&Tensor> {
    given.then_some(parameter)
}

/// The normalization composed of candle's operations.
fn composed(
    x: &Tensor,
    scale: Option<&Tensor>,
    shift: Option<&Tensor>,
    rms: bool,
) -> Result<Tensor> {
    let centred = if rms { x.clone() } else { x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)? };
    let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
    let mut y = centred.broadcast_div(&(variance + f64::from(EPSILON))?.sqrt()?)?;
    if let Some(scale) = scale {
        y = y.broadcast_mul(scale)?;
    }
    if let Some(shift) = shift {
        y = y.broadcast_add(shift)?;
    }
    Ok(y)
}

#[track_caller]
fn assert_close(got: &Tensor, expected: &Tensor, bound: f64) {
    assert_eq!(got.shape(), expected.shape());
    let difference = (got.to_dtype(DType::F64).unwrap() - expected).unwrap().abs().unwrap();
    let largest: f64 = difference.flatten_all().unwrap().max(0).unwrap().to_scalar().unwrap();
    assert!(largest < bound, "off by {largest:e}, {got}\n{expected}");
}

/// Compares a normalization and its gradients in one type with the f64 graph.
fn check(
    dims: &[usize],
    x_type: DType,
    scale: bool,
    shift: bool,
    rms: bool,
    bound: f64,
) -> Result<()> {
    let cols = *dims.last().unwrap();
    // Numbers that the type represents exactly.
    let exact = |tensor: Tensor, dtype| tensor.to_dtype(dtype)?.to_dtype(DType::F64);
    let x = Var::from_tensor(&exact(numbers(1, dims), x_type)?)?;
    let gamma = Var::from_tensor(&exact(numbers(2, &[cols]), DType::F32)?)?;
    let beta = Var::from_tensor(&exact(numbers(3, &[cols]), DType::F32)?)?;
    let d = exact(numbers(4, dims), x_type)?;
    let expected = composed(&x, given(scale, &gamma), given(shift, &beta), rms)?;
    let wanted = (&expected * &d)?.sum_all()?.backward()?;

    let own_x = Var::from_tensor(&x.to_dtype(x_type)?)?;
    let own_gamma = Var::from_tensor(&gamma.to_dtype(DType::F32)?)?;
    let own_beta = Var::from_tensor(&beta.to_dtype(DType::F32)?)?;
    let norm = if rms { rms_norm } else { layer_norm };
    let y = norm(
        &own_x,
        given(scale, own_gamma.as_tensor()),
        given(shift, own_beta.as_tensor()),
        EPSILON,
    )?;
    assert_eq!(y.dtype(), x_type);
    assert_close(&y, &expected, bound);
    let gradients = (&y * d.to_dtype(x_type)?)?.to_dtype(DType::F64)?.sum_all()?.backward()?;
    assert_close(gradients.get(&own_x).unwrap(), wanted.get(&x).unwrap(), bound);
    for (used, own, parameter) in [(scale, &own_gamma, &gamma), (shift, &own_beta, &beta)] {
        let gradient = gradients.get(own);
        assert_eq!(gradient.is_some(), used);
        if let Some(gradient) = gradient {
            assert_eq!(gradient.dtype(), DType::F32);
            assert_close(gradient, wanted.get(parameter).unwrap(), bound * 8.0);
        }
    }
    Ok(())
}

#[test]
fn normalization_and_its_gradients() -> Result<()> {
    for dims in [&[12][..], &[5, 12], &[2, 3, 12], &[2, 1, 2, 1, 3, 12]] {
        for rms in [false, true] {
            for (scale, shift) in [(false, false), (true, false), (false, true), (true, true)] {
                check(dims, DType::F32, scale, shift, rms, 2e-5)?;
            }
            check(dims, DType::BF16, true, true, rms, 0.06)?;
            check(dims, DType::F16, true, false, rms, 0.01)?;
            check(dims, DType::F64, true, true, rms, 2e-6)?;
        }
    }
    Ok(())
}

#[test]
fn softmax_and_its_gradient() -> Result<()> {
    for (dim, dtype, bound) in [
        (0, DType::F32, 1e-5),
        (1, DType::F32, 1e-5),
        (2, DType::F32, 1e-5),
        (1, DType::F64, 1e-13),
    ] {
        let x = numbers(1, &[4, 5, 6]).to_dtype(DType::F32)?.to_dtype(DType::F64)?;
        let x = Var::from_tensor(&x)?;
        let own = Var::from_tensor(&x.to_dtype(dtype)?)?;
        let d = numbers(2, &[4, 5, 6]);
        let exp = x.exp()?;
        let expected = exp.broadcast_div(&exp.sum_keepdim(dim)?)?;
        for log in [false, true] {
            let expected = if log { expected.log()? } else { expected.clone() };
            let y = if log { log_softmax(&own, dim)? } else { softmax(&own, dim)? };
            assert_close(&y, &expected, bound);
            let wanted = (&expected * &d)?.sum_all()?.backward()?;
            let gradients = (y * d.to_dtype(dtype)?)?.sum_all()?.backward()?;
            assert_close(gradients.get(&own).unwrap(), wanted.get(&x).unwrap(), 2.0 * bound);
        }
    }
    Ok(())
}

/// Views are used in place, and their gradients arrive at the underlying tensor.
#[test]
fn transposed_and_narrowed_tensors() -> Result<()> {
    let x = Var::from_tensor(&numbers(1, &[6, 9]).to_dtype(DType::F32)?)?;
    let view = x.t()?.narrow(0, 2, 5)?;
    assert!(!view.is_contiguous());
    let y = rms_norm(&view, None, None, EPSILON)?;
    let dense = rms_norm(&view.contiguous()?, None, None, EPSILON)?;
    assert_eq!(y.to_vec2::<f32>()?, dense.to_vec2::<f32>()?);
    let weights = numbers(2, &[5, 6]).to_dtype(DType::F32)?;
    let gradient =
        |y: &Tensor| (y * &weights)?.sum_all()?.backward()?.get(&x).unwrap().to_vec2::<f32>();
    assert_eq!(gradient(&y)?, gradient(&dense)?);
    Ok(())
}

#[test]
fn mistakes_are_named() -> Result<()> {
    let x = numbers(1, &[2, 3]).to_dtype(DType::F32)?;
    // The message, which a backtrace may follow.
    let message = |result: Result<Tensor>| {
        let said = result.expect_err("a mistake").to_string();
        said.lines().next().unwrap_or_default().to_owned()
    };
    let wide = numbers(2, &[3]);
    let said = message(rms_norm(&x, Some(&wide), None, EPSILON));
    assert_eq!(said, "scale is F64; convert it with to_dtype to F32, BF16 or F16");
    let said = message(rms_norm(&x.to_dtype(DType::U8)?, None, None, EPSILON));
    assert_eq!(said, "src is U8; convert it with to_dtype to F32, BF16, F16 or F64");
    let short = numbers(2, &[2]).to_dtype(DType::F32)?;
    let said = message(layer_norm(&x, Some(&short), None, EPSILON));
    assert_eq!(said, "scale has 2 elements; pass one for each of the 3 columns");
    let row = numbers(2, &[1, 3]).to_dtype(DType::F32)?;
    let said = message(layer_norm(&x, None, Some(&row), EPSILON));
    assert!(
        said.starts_with("shift has the shape [1, 3]") && said.contains("flatten_all"),
        "{said}"
    );
    let (scale, shift) = (wide.to_dtype(DType::F32)?, wide.to_dtype(DType::BF16)?);
    let said = message(layer_norm(&x, Some(&scale), Some(&shift), EPSILON));
    assert_eq!(said, "shift is bf16 and scale f32; convert one to the other's type");
    let point = Tensor::new(1f32, &Device::Cpu)?;
    let said = message(layer_norm(&point, None, None, EPSILON));
    assert_eq!(said, "src has no dimensions; pass a tensor of rows");
    let said = message(softmax(&numbers(1, &[1, 1, 1, 1, 1, 2, 3]), 6));
    assert_eq!(said, "src has 7 dimensions; reshape it to 6");
    let said = message(softmax(&x.to_dtype(DType::U8)?, 1));
    assert_eq!(said, "src is U8; convert it with to_dtype to F32, BF16, F16 or F64");
    Ok(())
}
