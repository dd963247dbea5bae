//! Known mistakes of elementwise functions of one tensor and of two, made by a library under test. The harness must
//! detect each.

mod sham;

use benchdnn::attributes::Attributes;
use benchdnn::drivers::{binary, eltwise};
use benchdnn::harness;
use benchdnn::library::{TensorRequest, Wanted};
use benchdnn::oracle::post_ops::{BinaryAlgorithm, EltwiseAlgorithm};
use benchdnn::problem::{Data, Expected, Problem};
use benchdnn::tensor::Layout;
use norm_sys::{
    NORM_ARG_ATTR_DROPOUT_MASK, NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC, NORM_ARG_DST, NORM_ARG_SRC_0,
    NORM_ARG_SRC_1, NORM_ARG_SRC_2,
};
use sham::Faulty;
use std::any::Any;
use std::rc::Rc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// alpha and beta are swapped.
    ParametersSwapped,
    /// Swish ignores alpha.
    AlphaLost,
    /// The gradient does not multiply by diff_dst.
    DiffDstLost,
    /// The gradient that should be computed from dst uses dst as src.
    DstIsSrc,
    /// One kind of gelu is computed for the other.
    OtherGelu,
    /// The sources are swapped.
    SourcesSwapped,
    /// Equal elements are not greater or equal.
    GreaterAlone,
    /// The condition is inverted.
    ConditionTurned,
    /// The second source is repeated along the wrong dimension.
    WrongBroadcast,
    /// A sum adds to zeros, not to what dst held.
    SumLost,
    /// f64 problems are computed in f32.
    Single,
    /// Dropout has another seed.
    SeedLost,
    /// Dropout has no offset.
    OffsetLost,
    /// Dropout does not multiply the elements that it keeps.
    KeptUnchanged,
    /// The mask of dropout has 1 for the elements that are dropped.
    MaskTurned,
}

/// The library's computation, and the layouts of its tensors.
#[derive(Clone)]
struct Created {
    fault: Fault,
    problem: Rc<dyn Problem>,
    layouts: Vec<(i32, Layout)>,
}

fn layout(request: &TensorRequest, dims: &[usize]) -> Layout {
    match &request.wanted {
        Wanted::Ordered(order) => Layout::ordered(dims, order, 0, request.data_type),
        _ => Layout::dense(dims, request.data_type),
    }
}

/// The attributes that the library uses, and the layouts of their tensors.
fn attributes(fault: Fault, of: &Attributes, dims: &[usize]) -> (Attributes, Vec<(i32, Layout)>) {
    let mut used = of.clone();
    if let Some(dropout) = &mut used.dropout.value {
        match fault {
            Fault::SeedLost => dropout.seed += 1,
            Fault::OffsetLost => dropout.offset = 0,
            _ => {}
        }
    }
    let layouts = of.tensors(dims, 1).into_iter();
    let layouts = layouts.map(|tensor| (tensor.id, Layout::dense(&tensor.dims, tensor.data_type)));
    (used, layouts.collect())
}

fn of_eltwise(fault: Fault, request: &eltwise::Request) -> Created {
    let eltwise::Request { direction, dims, src, dst, .. } = request;
    let (mut algorithm, [mut alpha, mut beta]) = (request.algorithm, request.parameters);
    match fault {
        Fault::ParametersSwapped => (alpha, beta) = (beta, alpha),
        Fault::AlphaLost => alpha = 1.0,
        Fault::OtherGelu => algorithm = EltwiseAlgorithm::GeluTanh,
        _ => {}
    }
    let (attributes, more) = attributes(fault, &request.attributes, dims);
    let problem = eltwise::EltwiseProblem {
        dims: dims.clone(),
        direction: *direction,
        algorithm,
        alpha,
        beta,
        src_dt: src.data_type,
        dst_dt: dst.data_type,
        attributes,
        ..eltwise::EltwiseProblem::default()
    };
    let wanted = src.wanted.clone();
    let of = |data_type| layout(&TensorRequest { data_type, wanted: wanted.clone() }, dims);
    let mut layouts = vec![
        (NORM_ARG_SRC_0, of(src.data_type)),
        (NORM_ARG_DST, of(dst.data_type)),
        (NORM_ARG_DIFF_DST, of(dst.data_type)),
        (NORM_ARG_DIFF_SRC, of(src.data_type)),
    ];
    layouts.extend(more);
    Created { fault, problem: Rc::new(problem), layouts }
}

fn of_binary(fault: Fault, request: &binary::Request) -> Created {
    let binary::Request { source_dims, dims, sources, dst, .. } = request;
    let algorithm = match request.algorithm {
        BinaryAlgorithm::Ge if fault == Fault::GreaterAlone => BinaryAlgorithm::Gt,
        algorithm => algorithm,
    };
    let (attributes, more) = attributes(fault, &request.attributes, dims);
    let problem = binary::BinaryProblem {
        dims: source_dims.clone(),
        algorithm,
        src_dts: [sources[0].data_type, sources[1].data_type],
        dst_dt: dst.data_type,
        attributes,
        ..binary::BinaryProblem::default()
    };
    let ids = [NORM_ARG_SRC_0, NORM_ARG_SRC_1, NORM_ARG_SRC_2];
    let pairs = sources.iter().zip(source_dims);
    let mut layouts: Vec<_> =
        ids.into_iter().zip(pairs.map(|(source, dims)| layout(source, dims))).collect();
    layouts.push((NORM_ARG_DST, layout(dst, dims)));
    layouts.extend(more);
    Created { fault, problem: Rc::new(problem), layouts }
}

impl Faulty for Created {
    fn layout(&self, argument: i32) -> Option<Layout> {
        self.layouts.iter().find(|(id, _)| *id == argument).map(|(_, layout)| layout.clone())
    }

    fn outputs(&self, mut data: Data) -> Vec<(i32, Vec<f64>)> {
        spoil(self.fault, &mut data);
        let dropout = self.problem.attributes().dropout.value.as_ref();
        let kept = dropout.map_or(1.0, |dropout| 1.0 - f64::from(dropout.probability));
        let spoiled = |id: i32, value: f64| match self.fault {
            Fault::Single => f64::from(value as f32),
            Fault::KeptUnchanged if id == NORM_ARG_DST => value * kept,
            Fault::MaskTurned if id == NORM_ARG_ATTR_DROPOUT_MASK => 1.0 - value,
            _ => value,
        };
        let values = |Expected { id, values, .. }| {
            (id, values.iter().map(|value| spoiled(id, *value)).collect())
        };
        let mut expected = self.problem.expected(&data);
        if !self.problem.attributes().is_default() {
            expected = self.problem.with_attributes(&data, &expected);
        }
        expected.into_iter().map(values).collect()
    }
}

/// Changes the data that the library reads.
fn spoil(fault: Fault, data: &mut Data) {
    match fault {
        Fault::DiffDstLost => data.change(NORM_ARG_DIFF_DST, |values| values.fill(1.0)),
        Fault::DstIsSrc => data.change(NORM_ARG_DST, |values| {
            values.iter_mut().for_each(|value| *value = value.tanh());
        }),
        Fault::SourcesSwapped => {
            let (first, second) =
                (data.get(NORM_ARG_SRC_0).to_vec(), data.get(NORM_ARG_SRC_1).to_vec());
            data.set(NORM_ARG_SRC_0, second);
            data.set(NORM_ARG_SRC_1, first);
        }
        Fault::ConditionTurned => data.change(NORM_ARG_SRC_2, |values| {
            values.iter_mut().for_each(|value| *value = 1.0 - *value);
        }),
        Fault::WrongBroadcast => data.change(NORM_ARG_SRC_1, |values| values.rotate_left(1)),
        Fault::SumLost => data.change(NORM_ARG_DST, |values| values.fill(0.0)),
        _ => {}
    }
}

/// Runs a command with the fault. Returns the exit status and the result lines.
fn run(fault: Fault, command: &str) -> (u8, Vec<String>) {
    let create = |request: &dyn Any| match request.downcast_ref::<eltwise::Request>() {
        Some(request) => of_eltwise(fault, request),
        None => of_binary(fault, request.downcast_ref().expect("a request of a driver")),
    };
    sham::run(vec![eltwise::ROW.driver(), binary::ROW.driver()], create, command)
}

/// Each mistake, with problems that show it.
const FAULTS: &[(Fault, &str)] = &[
    (
        Fault::ParametersSwapped,
        "--eltwise --alg=linear,pow,hardswish --alpha=0.25 --beta=0.5 --dt=f32,bf16 33x17",
    ),
    (Fault::AlphaLost, "--eltwise --dir=FWD_D,BWD_D --alg=swish --alpha=1.702 --dt=f32,f16 33x17"),
    (Fault::DiffDstLost, "--eltwise --dir=BWD_D --alg=relu,exp,tanh_dst --dt=f32,bf16 33x17"),
    (Fault::DiffDstLost, "--eltwise --check=grad --dir=BWD_D --alg=square,mish 5x17"),
    (Fault::DstIsSrc, "--eltwise --dir=BWD_D --alg=tanh_dst,logistic_dst,exp_dst 33x17"),
    (Fault::OtherGelu, "--eltwise --dir=FWD_D,BWD_D --alg=gelu_erf 33x17"),
    (Fault::SourcesSwapped, "--binary --alg=sub,div,lt,select --sdt=f32,bf16 33x17"),
    (Fault::GreaterAlone, "--binary --alg=ge --sdt=f32,s8 --ddt=f32,u8 33x17"),
    (Fault::ConditionTurned, "--binary --alg=select --sdt=f32,s8 33x17 33x17:1x17"),
    (Fault::Single, "--eltwise --dt=f64,f32:f64 --alg=exp,linear,gelu_erf,log --alpha=0.3 33x17"),
    (Fault::Single, "--eltwise --dir=BWD_D --dt=f64,f64:f32 --alg=exp,gelu_erf,tanh_dst 33x17"),
    (Fault::WrongBroadcast, "--binary --alg=add,mul --sdt=f32,f16 33x17:1x17 33x17:33x1"),
    (
        Fault::SumLost,
        "--binary --alg=sub --sdt=f32,s8 --attr-post-ops=sum:0.5 33x17 1x17:33x17 33x1:1x17",
    ),
    (Fault::SumLost, "--binary --alg=mul --attr-post-ops=sum:0.5 --inplace=true 33x17 33x17:1x17"),
    (
        Fault::SeedLost,
        "--eltwise --alg=linear,exp --alpha=1 --dt=f32,bf16 --attr-dropout=0.5:77,0.25:-3:undef:8 33x17",
    ),
    (
        Fault::SeedLost,
        "--binary --alg=add --sdt=f32,bf16 --attr-dropout=0.5:77,0.25:-3:abx:8 33x17",
    ),
    (Fault::OffsetLost, "--eltwise --alg=exp --attr-dropout=0.5:77:any:8,0.1:77:undef:8 33x17"),
    (Fault::KeptUnchanged, "--eltwise --alg=exp --dt=f32,f16 --attr-dropout=0.25:77 33x17"),
    (Fault::KeptUnchanged, "--binary --alg=mul --attr-dropout=0.25:77:undef 33x17"),
    (Fault::MaskTurned, "--eltwise --alg=exp --attr-dropout=0.5:77,0.25:77:abx:8 33x17"),
];

#[test]
fn without_a_fault_everything_passes() {
    for (_, command) in FAULTS {
        let (status, results) = run(Fault::None, command);
        for line in &results {
            assert!(line.contains(":PASSED "), "{line}");
        }
        assert_eq!(status, harness::FINE);
    }
}

#[test]
fn every_fault_fails() {
    for (fault, command) in FAULTS {
        let (status, results) = run(*fault, command);
        for line in &results {
            assert!(line.contains(":FAILED "), "{fault:?}: {line}");
        }
        assert_eq!(status, harness::FAILED, "{fault:?}");
    }
}
