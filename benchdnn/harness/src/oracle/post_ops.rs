//! The functions of post-ops, in f64: the formulas of oneDNN's developer guide for eltwise and
//! binary. [`estimate`](super::estimate) chains them.

use crate::data_type::DataType;

/// The distance between neighbours in f32.
pub(super) fn ulp(value: f64) -> f64 {
    DataType::F32.ulp(if value.is_finite() { value } else { 0.0 })
}

/// A function of one value with the parameters alpha and beta.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EltwiseAlgorithm {
    /// `|x|`
    Abs,
    /// `min(max(x, alpha), beta)`
    Clip,
    /// The same.
    ClipV2,
    /// The same.
    ClipV2Dst,
    /// `x > 0 ? x : alpha*(exp(x) - 1)`
    Elu,
    /// The same.
    EluDst,
    /// `exp(x)`
    Exp,
    /// The same.
    ExpDst,
    /// `x/2 * (1 + erf(x/sqrt(2)))`
    GeluErf,
    /// `x/2 * (1 + tanh(sqrt(2/pi)*(x + 0.044715*x^3)))`
    GeluTanh,
    /// `max(0, min(1, alpha*x + beta))`
    Hardsigmoid,
    /// `x * max(0, min(1, alpha*x + beta))`
    Hardswish,
    /// `alpha*x + beta`
    Linear,
    /// `log(x)`
    Log,
    /// `1/(1 + exp(-x))`
    Logistic,
    /// The same.
    LogisticDst,
    /// `x * tanh(log(1 + exp(x)))`
    Mish,
    /// `alpha * x^beta`
    Pow,
    /// `x > 0 ? x : alpha*x`
    Relu,
    /// The same.
    ReluDst,
    /// The nearest integer, ties to even.
    Round,
    /// `sqrt(x)`
    Sqrt,
    /// The same.
    SqrtDst,
    /// `x^2`
    Square,
    /// `log(1 + exp(alpha*x)) / alpha`
    SoftRelu,
    /// `x / (1 + exp(-alpha*x))`
    Swish,
    /// `tanh(x)`
    Tanh,
    /// The same.
    TanhDst,
}

/// Names of the functions in benchdnn; the long ones are those of the C interface.
const ELTWISE: [(&str, &str, EltwiseAlgorithm); 28] = [
    ("abs", "eltwise_abs", EltwiseAlgorithm::Abs),
    ("clip", "eltwise_clip", EltwiseAlgorithm::Clip),
    ("clip_v2", "eltwise_clip_v2", EltwiseAlgorithm::ClipV2),
    ("clip_v2_dst", "eltwise_clip_v2_use_dst_for_bwd", EltwiseAlgorithm::ClipV2Dst),
    ("elu", "eltwise_elu", EltwiseAlgorithm::Elu),
    ("elu_dst", "eltwise_elu_use_dst_for_bwd", EltwiseAlgorithm::EluDst),
    ("exp", "eltwise_exp", EltwiseAlgorithm::Exp),
    ("exp_dst", "eltwise_exp_use_dst_for_bwd", EltwiseAlgorithm::ExpDst),
    ("gelu_erf", "eltwise_gelu_erf", EltwiseAlgorithm::GeluErf),
    ("gelu_tanh", "eltwise_gelu_tanh", EltwiseAlgorithm::GeluTanh),
    ("hardsigmoid", "eltwise_hardsigmoid", EltwiseAlgorithm::Hardsigmoid),
    ("hardswish", "eltwise_hardswish", EltwiseAlgorithm::Hardswish),
    ("linear", "eltwise_linear", EltwiseAlgorithm::Linear),
    ("log", "eltwise_log", EltwiseAlgorithm::Log),
    ("logistic", "eltwise_logistic", EltwiseAlgorithm::Logistic),
    ("logistic_dst", "eltwise_logistic_use_dst_for_bwd", EltwiseAlgorithm::LogisticDst),
    ("mish", "eltwise_mish", EltwiseAlgorithm::Mish),
    ("pow", "eltwise_pow", EltwiseAlgorithm::Pow),
    ("relu", "eltwise_relu", EltwiseAlgorithm::Relu),
    ("relu_dst", "eltwise_relu_use_dst_for_bwd", EltwiseAlgorithm::ReluDst),
    ("round", "eltwise_round", EltwiseAlgorithm::Round),
    ("sqrt", "eltwise_sqrt", EltwiseAlgorithm::Sqrt),
    ("sqrt_dst", "eltwise_sqrt_use_dst_for_bwd", EltwiseAlgorithm::SqrtDst),
    ("square", "eltwise_square", EltwiseAlgorithm::Square),
    ("soft_relu", "eltwise_soft_relu", EltwiseAlgorithm::SoftRelu),
    ("swish", "eltwise_swish", EltwiseAlgorithm::Swish),
    ("tanh", "eltwise_tanh", EltwiseAlgorithm::Tanh),
    ("tanh_dst", "eltwise_tanh_use_dst_for_bwd", EltwiseAlgorithm::TanhDst),
];

impl EltwiseAlgorithm {
    /// All functions, in the order of their names.
    pub fn all() -> impl Iterator<Item = EltwiseAlgorithm> {
        ELTWISE.iter().map(|row| row.2)
    }

    /// The function with this name, its long name, or another short name of oneDNN.
    pub fn named(text: &str) -> Option<EltwiseAlgorithm> {
        let text = if text == "srelu" { "soft_relu" } else { text };
        ELTWISE.iter().find(|(short, long, _)| [*short, *long].contains(&text)).map(|row| row.2)
    }

    /// The names.
    pub fn names() -> Vec<&'static str> {
        ELTWISE.iter().map(|row| row.0).collect()
    }

    /// The name.
    pub fn name(self) -> &'static str {
        ELTWISE[self as usize].0
    }

    /// The function.
    pub fn of(self, x: f64, alpha: f64, beta: f64) -> f64 {
        use EltwiseAlgorithm::*;
        match self {
            Abs => x.abs(),
            // Comparisons, because `clamp` panics if beta is below alpha.
            Clip | ClipV2 | ClipV2Dst => {
                let x = if x > alpha { x } else { alpha };
                if x > beta { beta } else { x }
            }
            Elu | EluDst => {
                if x > 0.0 {
                    x
                } else {
                    alpha * x.exp_m1()
                }
            }
            Exp | ExpDst => x.exp(),
            GeluErf => 0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2)),
            GeluTanh => 0.5 * x * (1.0 + gelu_argument(x).tanh()),
            Hardsigmoid => hardsigmoid(x, alpha, beta),
            Hardswish => x * hardsigmoid(x, alpha, beta),
            Linear => alpha * x + beta,
            Log => x.ln(),
            Logistic | LogisticDst => logistic(x),
            Mish => x * soft_relu(x).tanh(),
            Pow => alpha * x.powf(beta),
            Relu | ReluDst => {
                if x > 0.0 {
                    x
                } else {
                    alpha * x
                }
            }
            Round => x.round_ties_even(),
            Sqrt | SqrtDst => x.sqrt(),
            Square => x * x,
            SoftRelu => soft_relu(alpha * x) / alpha,
            Swish => x * logistic(alpha * x),
            Tanh | TanhDst => x.tanh(),
        }
    }

    /// The possible error of f32 arithmetic for `y`, the function's value at `x`.
    pub(super) fn rounding(self, x: f64, y: f64, alpha: f64, beta: f64) -> f64 {
        use EltwiseAlgorithm::*;
        // The effect of rounding the inner argument `z`.
        let inner = |f: fn(f64) -> f64, z: f64| (f(z + ulp(z)) - f(z)).abs();
        let line = ulp(alpha * x) + ulp(alpha * x + beta);
        match self {
            Abs | Clip | ClipV2 | ClipV2Dst | Round => 0.0,
            Relu | ReluDst | Elu | EluDst if x > 0.0 => 0.0,
            Relu | ReluDst | Sqrt | SqrtDst | Square | Exp | ExpDst | Log => ulp(y),
            Elu | EluDst | Tanh | TanhDst | Logistic | LogisticDst => 3.0 * ulp(y),
            Linear => line,
            Hardsigmoid if y <= 0.0 || y >= 1.0 => 0.0,
            Hardsigmoid => line,
            Hardswish => x.abs() * line + ulp(y),
            GeluErf | GeluTanh => x.abs() / 4_194_304.0 + ulp(0.0), // 2^-22
            // Where e^x is subnormal, it is off by one spacing, ulp(0), and the factor of x is e^x.
            Mish => 6.0 * ulp(y) + x.abs() * ulp(0.0),
            Swish => {
                let z = alpha * x;
                x.abs() * (inner(logistic, z) + 3.0 * ulp(logistic(z))) + ulp(y)
            }
            SoftRelu => {
                let z = alpha * x;
                (inner(soft_relu, z) + 4.0 * ulp(soft_relu(z))) / alpha.abs() + ulp(y)
            }
            Pow => alpha.abs() * ulp(x.powf(beta)) + ulp(y),
        }
    }
}

pub(super) fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `log(1 + exp(x))` without overflow.
fn soft_relu(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn hardsigmoid(x: f64, alpha: f64, beta: f64) -> f64 {
    (alpha * x + beta).clamp(0.0, 1.0)
}

fn gelu_argument(x: f64) -> f64 {
    (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)
}

/// The error function.
fn erf(x: f64) -> f64 {
    unsafe extern "C" {
        #[link_name = "erf"]
        safe fn c_erf(x: f64) -> f64;
    }
    c_erf(x)
}

/// A function of a value and another tensor's element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryAlgorithm {
    /// `x + y`
    Add,
    /// `x / y`
    Div,
    /// `x == y`, as 1 or 0
    Eq,
    /// `x >= y`
    Ge,
    /// `x > y`
    Gt,
    /// `x <= y`
    Le,
    /// `x < y`
    Lt,
    /// The larger one.
    Max,
    /// The smaller one.
    Min,
    /// `x * y`
    Mul,
    /// `x != y`
    Ne,
    /// `x - y`
    Sub,
    /// `x` where a third tensor's element is not 0, else `y`.
    Select,
}

/// Names of the functions in benchdnn; the long ones are those of the C interface.
const BINARY: [(&str, &str, BinaryAlgorithm); 13] = [
    ("add", "binary_add", BinaryAlgorithm::Add),
    ("div", "binary_div", BinaryAlgorithm::Div),
    ("eq", "binary_eq", BinaryAlgorithm::Eq),
    ("ge", "binary_ge", BinaryAlgorithm::Ge),
    ("gt", "binary_gt", BinaryAlgorithm::Gt),
    ("le", "binary_le", BinaryAlgorithm::Le),
    ("lt", "binary_lt", BinaryAlgorithm::Lt),
    ("max", "binary_max", BinaryAlgorithm::Max),
    ("min", "binary_min", BinaryAlgorithm::Min),
    ("mul", "binary_mul", BinaryAlgorithm::Mul),
    ("ne", "binary_ne", BinaryAlgorithm::Ne),
    ("sub", "binary_sub", BinaryAlgorithm::Sub),
    ("select", "binary_select", BinaryAlgorithm::Select),
];

impl BinaryAlgorithm {
    /// All functions, in the order of their names.
    pub fn all() -> impl Iterator<Item = BinaryAlgorithm> {
        BINARY.iter().map(|row| row.2)
    }

    /// The function with this name.
    pub fn named(text: &str) -> Option<BinaryAlgorithm> {
        BINARY.iter().find(|(short, long, _)| [*short, *long].contains(&text)).map(|row| row.2)
    }

    /// The names.
    pub fn names() -> Vec<&'static str> {
        BINARY.iter().map(|row| row.0).collect()
    }

    /// The name.
    pub fn name(self) -> &'static str {
        BINARY[self as usize].0
    }

    /// Whether it has a third operand.
    pub fn is_ternary(self) -> bool {
        self == BinaryAlgorithm::Select
    }

    /// Whether the result is 1 or 0.
    pub fn is_comparison(self) -> bool {
        use BinaryAlgorithm::*;
        matches!(self, Eq | Ge | Gt | Le | Lt | Ne)
    }

    /// The function; `condition` is `select`'s.
    pub fn of(self, x: f64, y: f64, condition: bool) -> f64 {
        use BinaryAlgorithm::*;
        match self {
            Add => x + y,
            Div => x / y,
            Mul => x * y,
            Sub => x - y,
            Max => {
                if x > y {
                    x
                } else {
                    y
                }
            }
            Min => {
                if x < y {
                    x
                } else {
                    y
                }
            }
            Eq => f64::from(u8::from(x == y)),
            Ne => f64::from(u8::from(x != y)),
            Ge => f64::from(u8::from(x >= y)),
            Gt => f64::from(u8::from(x > y)),
            Le => f64::from(u8::from(x <= y)),
            Lt => f64::from(u8::from(x < y)),
            Select => {
                if condition {
                    x
                } else {
                    y
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_at_their_algorithms() {
        for (i, (short, long, algorithm)) in ELTWISE.iter().enumerate() {
            assert_eq!(*algorithm as usize, i, "{short}");
            assert_eq!(EltwiseAlgorithm::named(long), Some(*algorithm));
        }
        for (i, (short, long, algorithm)) in BINARY.iter().enumerate() {
            assert_eq!(*algorithm as usize, i, "{short}");
            assert_eq!(BinaryAlgorithm::named(long), Some(*algorithm));
        }
        assert_eq!(EltwiseAlgorithm::named("srelu"), Some(EltwiseAlgorithm::SoftRelu));
    }

    /// Values from tables: Abramowitz and Stegun, and the formulas by hand.
    #[test]
    fn functions_have_known_values() {
        use EltwiseAlgorithm::*;
        let rows = [
            (Abs, -2.5, 0.0, 0.0, 2.5),
            (Clip, 3.0, -1.0, 2.0, 2.0),
            (ClipV2, -3.0, -1.0, 2.0, -1.0),
            (Elu, -1.0, 2.0, 0.0, -1.264_241_117_657_115_4),
            (Elu, 1.5, 2.0, 0.0, 1.5),
            (Exp, 1.0, 0.0, 0.0, std::f64::consts::E),
            (GeluErf, 1.0, 0.0, 0.0, 0.841_344_746_068_542_9),
            (GeluErf, -2.0, 0.0, 0.0, -0.045_500_263_896_358_4),
            (GeluTanh, 1.0, 0.0, 0.0, 0.841_191_990_608_276_4),
            (Hardsigmoid, 1.0, 0.25, 0.5, 0.75),
            (Hardsigmoid, -9.0, 0.25, 0.5, 0.0),
            (Hardswish, 2.0, 0.25, 0.25, 1.5),
            (Hardswish, 9.0, 0.25, 0.25, 9.0),
            (Linear, 3.0, 0.5, -1.0, 0.5),
            (Log, 2.0, 0.0, 0.0, std::f64::consts::LN_2),
            (Logistic, 0.0, 0.0, 0.0, 0.5),
            (Logistic, 2.0, 0.0, 0.0, 0.880_797_077_977_882_3),
            (Mish, 1.0, 0.0, 0.0, 0.865_098_388_267_310_3),
            (Pow, 3.0, 2.0, 2.0, 18.0),
            (Relu, -3.0, 0.5, 0.0, -1.5),
            (Relu, 3.0, 0.5, 0.0, 3.0),
            (Round, 2.5, 0.0, 0.0, 2.0),
            (Round, 3.5, 0.0, 0.0, 4.0),
            (Sqrt, 2.25, 0.0, 0.0, 1.5),
            (Square, -1.5, 0.0, 0.0, 2.25),
            (SoftRelu, 0.0, 2.0, 0.0, std::f64::consts::LN_2 / 2.0),
            (SoftRelu, 1000.0, 1.0, 0.0, 1000.0),
            (SoftRelu, 0.0, -1.0, 0.0, -std::f64::consts::LN_2),
            (Swish, 2.0, 1.0, 0.0, 1.761_594_155_955_764_9),
            (Tanh, 0.5, 0.0, 0.0, 0.462_117_157_260_009_8),
        ];
        for (algorithm, x, alpha, beta, want) in rows {
            let got = algorithm.of(x, alpha, beta);
            assert!(
                (got - want).abs() < 1e-14 * f64::abs(want).max(1.0),
                "{algorithm:?}({x}): {got}"
            );
        }
    }

    #[test]
    fn two_operands() {
        use BinaryAlgorithm::*;
        let of = |algorithm: BinaryAlgorithm| algorithm.of(3.0, 2.0, false);
        let got: Vec<f64> = BinaryAlgorithm::all().map(of).collect();
        assert_eq!(got, [5.0, 1.5, 0.0, 1.0, 1.0, 0.0, 0.0, 3.0, 2.0, 6.0, 1.0, 1.0, 2.0]);
        assert_eq!(Select.of(3.0, 2.0, true), 3.0);
        assert_eq!((Ge.of(2.0, 2.0, false), Gt.of(2.0, 2.0, false)), (1.0, 0.0));
    }
}
