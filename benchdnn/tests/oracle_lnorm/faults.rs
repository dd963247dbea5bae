//! The exact data and the tolerances expose every known mistake, wherever it has an effect.

use crate::all_flags;
use crate::mistakes::{self, Mistake};
use benchdnn::check::{Check, Kind, check, mistrusted};
use benchdnn::data_type::DataType;
use benchdnn::fill::Fill;
use benchdnn::fill::lnorm::{LnormData, LnormShape, lnorm};
use benchdnn::oracle::lnorm::{BackwardInput, Flags, ForwardInput, backward, forward};
use benchdnn::steps::StepShape;
use rayon::prelude::*;

const EPSILON: f32 = 1.0 / 16.0;

/// Rows only depend on their index, so more rows also expose a mistake that fewer rows expose.
const MOST_ROWS: usize = 24;

/// Rows and columns of the shapes of the continuous-integration batch, and of every length around
/// the 16 lanes.
fn shapes() -> Vec<(usize, usize)> {
    let mut shapes = Vec::new();
    for name in ["shapes_ci", "shapes_layouts", "shapes_tails"] {
        let path = format!("{}/inputs/lnorm/{name}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let lines = text.lines().map(|line| line.split('#').next().unwrap());
        for word in lines.flat_map(str::split_whitespace) {
            let dims = word.split("_n").next().unwrap().split('x');
            let dims: Vec<usize> = dims.map(|dim| dim.parse().expect(word)).collect();
            let (cols, rows) = dims.split_last().unwrap();
            shapes.push((rows.iter().product::<usize>().min(MOST_ROWS), *cols));
        }
    }
    assert!(shapes.len() >= 10, "{} shapes", shapes.len());
    shapes.extend((1..=34).map(|cols| (5, cols)));
    shapes.extend([(1, 1), (1, 2), (1, 3), (1, 16), (1, 17), (2, 1024)]);
    shapes
}

/// All pairs of types of src and dst, with each type of the parameters.
fn types() -> Vec<[DataType; 3]> {
    let all = DataType::ROUNDED_FLOATS;
    all.iter()
        .enumerate()
        .flat_map(|(i, &src)| {
            all.iter().enumerate().map(move |(j, &dst)| [src, dst, all[(i + j) % 3]])
        })
        .collect()
}

struct Case {
    shape: LnormShape,
    data: LnormData,
}

impl Case {
    fn run(&self, mistake: Mistake) -> Vec<Check> {
        if self.shape.forward { self.forward(mistake) } else { self.backward(mistake) }
    }

    fn forward(&self, mistake: Mistake) -> Vec<Check> {
        let (shape, data) = (&self.shape, &self.data);
        let flags = shape.flags;
        let input = ForwardInput {
            rows: shape.rows,
            cols: shape.cols,
            src: &data.src,
            scale: Some(&data.scale),
            shift: Some(&data.shift),
            mean: Some(&data.mean),
            variance: Some(&data.variance),
            epsilon: f64::from(shape.epsilon),
            flags,
        };
        let want = forward(&input);
        let got = mistakes::forward(mistake, &input);
        let f32 = DataType::F32;
        let dst = rounded(shape.dst_dt, &got.dst);
        let mut checks =
            vec![check("dst", Kind::Result, shape.dst_dt, &dst, &want.dst, &want.dst_terms)];
        if !flags.global_stats {
            let variance = rounded(f32, &got.variance);
            checks.push(check("variance", Kind::Variance, f32, &variance, &want.variance, &[]));
            if !flags.rms_norm {
                let mean = rounded(f32, &got.mean);
                checks.push(check("mean", Kind::Mean, f32, &mean, &want.mean, &want.mean_terms));
            }
        }
        checks
    }

    fn backward(&self, mistake: Mistake) -> Vec<Check> {
        let (shape, data) = (&self.shape, &self.data);
        let input = BackwardInput {
            rows: shape.rows,
            cols: shape.cols,
            src: &data.src,
            diff_dst: &data.diff_dst,
            scale: Some(&data.scale),
            mean: Some(&data.mean),
            variance: &data.variance,
            epsilon: f64::from(shape.epsilon),
            flags: shape.flags,
        };
        let want = backward(&input);
        let got = mistakes::backward(mistake, &input);
        let column = |name, got: &[f64], want: &[f64], terms: &[f64]| {
            check(name, Kind::ColumnSum, shape.ss_dt, &rounded(shape.ss_dt, got), want, terms)
        };
        let diff_src = rounded(shape.src_dt, &got.diff_src);
        let mut checks = vec![check(
            "diff_src",
            Kind::Result,
            shape.src_dt,
            &diff_src,
            &want.diff_src,
            &want.diff_src_terms,
        )];
        if shape.flags.scale {
            let terms = &want.diff_scale_terms;
            checks.push(column("diff_scale", &got.diff_scale, &want.diff_scale, terms));
        }
        if shape.flags.shift {
            let terms = &want.diff_shift_terms;
            checks.push(column("diff_shift", &got.diff_shift, &want.diff_shift, terms));
        }
        checks
    }
}

fn rounded(dt: DataType, values: &[f64]) -> Vec<f64> {
    values.iter().map(|&value| dt.round(value)).collect()
}

/// Whether the mistake changes anything, in theory.
fn can_matter(mistake: Mistake, forward: bool, flags: Flags, cols: usize) -> bool {
    let Flags { global_stats, rms_norm, shift, .. } = flags;
    // Layer normalization of a single column by its own statistics gives 0, or the shift.
    let zero = forward && cols == 1 && !global_stats && !rms_norm;
    match mistake {
        Mistake::None => false,
        Mistake::MeanTermKept => !forward && rms_norm && !global_stats,
        Mistake::FactorMissing => !forward && !global_stats,
        Mistake::EpsilonOutside => !zero,
        // Backward and with global statistics the variance is given.
        Mistake::SampleVariance => forward && !global_stats,
        // With global statistics there are no sums over a row.
        Mistake::TailNotSummed => !global_stats,
        Mistake::TailNotWritten => !zero || shift,
    }
}

const MISTAKES: [Mistake; 6] = [
    Mistake::MeanTermKept,
    Mistake::FactorMissing,
    Mistake::EpsilonOutside,
    Mistake::SampleVariance,
    Mistake::TailNotSummed,
    Mistake::TailNotWritten,
];

/// The problems of one shape: types, flags and directions.
fn cases(rows: usize, cols: usize, epsilon: f32) -> impl Iterator<Item = Case> {
    let types = types().into_iter();
    types.flat_map(move |[src_dt, dst_dt, ss_dt]| {
        all_flags().flat_map(move |flags| {
            [true, false].into_iter().map(move |forward| {
                let shape = LnormShape {
                    rows,
                    cols,
                    src_dt,
                    dst_dt,
                    ss_dt,
                    forward,
                    flags,
                    epsilon,
                    gain: 1.0,
                    steps: StepShape::default(),
                };
                Case { data: lnorm(&shape, Fill::Exact, 1), shape }
            })
        })
    })
}

#[test]
fn every_mistake_is_exposed() {
    let (exposed, missed): (Vec<usize>, Vec<Vec<String>>) = shapes()
        .into_par_iter()
        .map(|(rows, cols)| {
            let (mut exposed, mut missed) = (0, Vec::new());
            for case in cases(rows, cols, EPSILON) {
                let LnormShape { flags, forward, .. } = case.shape;
                let possible =
                    MISTAKES.into_iter().filter(|&m| can_matter(m, forward, flags, cols));
                for mistake in possible {
                    // In inference, the result alone must show it, because there is no other output.
                    if case.run(mistake)[0].passed() {
                        missed.push(format!("{mistake:?}: {:?}", case.shape));
                    }
                    exposed += 1;
                }
            }
            (exposed, missed)
        })
        .unzip();
    let (exposed, missed) = (exposed.iter().sum::<usize>(), missed.concat());
    assert!(missed.is_empty(), "{} of {exposed} missed:\n{}", missed.len(), missed.join("\n"));
    assert!(exposed > 20_000, "{exposed} cases");
}

/// Where `can_matter` is false, the mistake changes at most the last bit.
#[test]
fn mistakes_that_cannot_matter_do_not() {
    for (rows, cols) in [(5, 1), (5, 2), (5, 33)] {
        for case in cases(rows, cols, EPSILON) {
            let LnormShape { flags, forward, .. } = case.shape;
            for mistake in MISTAKES {
                if !can_matter(mistake, forward, flags, cols) && mistake != Mistake::None {
                    let result = case.run(mistake)[0];
                    assert!(result.passed(), "{mistake:?}: {:?}: {result:?}", case.shape);
                }
            }
        }
    }
}

#[test]
fn what_is_right_passes_and_is_trusted() {
    let others = [0.0, 1e-12, 1e-5, 1.0];
    let few_rows = |(rows, cols): (usize, usize)| (rows.min(5), cols);
    let problems: Vec<((usize, usize), f32)> = (shapes().into_iter().map(|s| (s, EPSILON)))
        .chain(others.iter().flat_map(|&e| shapes().into_iter().map(move |s| (few_rows(s), e))))
        .collect();
    let run = |((rows, cols), epsilon): ((usize, usize), f32)| {
        let mut wrong = Vec::new();
        for case in cases(rows, cols, epsilon) {
            let checks = case.run(Mistake::None);
            let failed = checks.iter().filter(|check| !check.passed());
            wrong.extend(failed.map(|check| format!("{:?}: {check:?}", case.shape)));
            // One column: the result is 0 by definition, so the mean must show it.
            let Flags { global_stats, shift, rms_norm, .. } = case.shape.flags;
            let zero = case.shape.forward && cols == 1 && !global_stats && !shift && !rms_norm;
            let judged = if zero { &checks[..] } else { &checks[..1] };
            if mistrusted(judged) {
                wrong.push(format!("mistrusted: {:?}", case.shape));
            }
        }
        wrong
    };
    let wrong = problems.into_par_iter().map(run).collect::<Vec<_>>().concat();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
