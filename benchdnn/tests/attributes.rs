//! The language of attributes: what is accepted, what lines repeat, and where errors point.

use benchdnn::attributes::{
    ATTRIBUTES, AttributeSettings, Attributes, Mask, Policy, PostOp, Scratchpad, Value,
};
use benchdnn::data_type::DataType;
use benchdnn::drivers;
use benchdnn::job::Job;
use benchdnn::language::options::{defaults, set};
use benchdnn::library::Connection;
use benchdnn::machine::{Request, read};
use benchdnn::oracle::post_ops::{BinaryAlgorithm, EltwiseAlgorithm};
use benchdnn::tensor::Tag;
use std::rc::Rc;

fn library() -> Rc<Connection> {
    Rc::new(Connection::linked().expect("a library that can be used"))
}

fn all(name: &str, value: &str) -> Vec<Attributes> {
    let mut settings: AttributeSettings = defaults(ATTRIBUTES);
    set(ATTRIBUTES, &mut settings, name, value).expect("an option").expect(value);
    settings.combinations()
}

fn one(name: &str, value: &str) -> Attributes {
    let mut all = all(name, value);
    assert_eq!(all.len(), 1, "{value}");
    all.remove(0)
}

fn post_op(text: &str) -> PostOp {
    one("attr-post-ops", text).post_ops.value.remove(0)
}

/// The offset of an error in a value, and the message.
fn wrong(name: &str, value: &str) -> (usize, String) {
    let mut settings: AttributeSettings = defaults(ATTRIBUTES);
    let result = set(ATTRIBUTES, &mut settings, name, value).expect("an option");
    let error = result.expect_err(value);
    (error.offset, error.message)
}

fn lines(arguments: &[&str]) -> Vec<String> {
    let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
    match read(&arguments, drivers::all(), &library()) {
        Ok(Request::Jobs { jobs, .. }) => jobs.iter().map(Job::line).collect(),
        Ok(Request::Help(_)) => panic!("help"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn scales_have_an_argument_a_policy_and_a_value() {
    let attributes = one("attr-scales", "src:common:64+dst:per_dim_01:bf16:2x4");
    let [src, dst] = &attributes.scales.value[..] else { panic!("two scales") };
    assert_eq!((src.argument, src.policy, src.value), (1, Policy::Common, Value::Given(64.0)));
    assert_eq!((dst.argument, dst.policy, dst.value), (17, Policy::PerDim01, Value::Filled));
    assert_eq!((dst.data_type, &dst.groups[..]), (DataType::Bf16, &[2, 4][..]));
    assert_eq!(all("attr-scales", ",src:common:2,msrc3:common").len(), 3);
    let zero_points = one("attr-zero-points", "src0:common:-1+wei:per_oc:s8").zero_points.value;
    assert_eq!(zero_points[0].value, Value::Given(-1.0));
    assert_eq!((zero_points[0].data_type, zero_points[1].data_type), (DataType::S32, DataType::S8));
    assert_eq!(one("attr-scales", "src:common:2:bf16").absent_type(), None);
    assert_eq!(one("attr-zero-points", "src:per_tensor:s4:1x16").absent_type(), Some("s4"));
}

#[test]
fn post_ops_are_read() {
    assert_eq!(post_op("sum"), PostOp::Sum { scale: 1.0, zero_point: 0, data_type: None });
    let data_type = Some(DataType::S8);
    assert_eq!(post_op("sum:0.5:-3:s8"), PostOp::Sum { scale: 0.5, zero_point: -3, data_type });
    for (text, algorithm, alpha, beta) in [
        ("relu", EltwiseAlgorithm::Relu, 0.0, 0.0),
        ("eltwise_relu:0.5", EltwiseAlgorithm::Relu, 0.5, 0.0),
        ("LINEAR:0.5:-1", EltwiseAlgorithm::Linear, 0.5, -1.0),
        ("clip:-1:2:1", EltwiseAlgorithm::Clip, -1.0, 2.0),
        ("srelu:2", EltwiseAlgorithm::SoftRelu, 2.0, 0.0),
        ("tanh_dst", EltwiseAlgorithm::TanhDst, 0.0, 0.0),
    ] {
        assert_eq!(post_op(text), PostOp::Eltwise { algorithm, alpha, beta }, "{text}");
    }
    for (text, algorithm, data_type, mask, tag) in [
        ("add:f32", BinaryAlgorithm::Add, DataType::F32, Mask::Policy(Policy::Common), "any"),
        ("mul:s8:per_oc", BinaryAlgorithm::Mul, DataType::S8, Mask::Policy(Policy::PerOc), "any"),
        ("div:u8:5:axb", BinaryAlgorithm::Div, DataType::U8, Mask::Bits(5), "axb"),
        (
            "select:bf16",
            BinaryAlgorithm::Select,
            DataType::Bf16,
            Mask::Policy(Policy::Common),
            "any",
        ),
        ("select:f32.3.axb:0", BinaryAlgorithm::Select, DataType::F32, Mask::Bits(3), "axb"),
    ] {
        let PostOp::Binary(binary) = post_op(text) else { panic!("{text}") };
        assert_eq!((binary.algorithm, binary.data_type, binary.mask), (algorithm, data_type, mask));
        assert_eq!(binary.tag, Tag::parse(tag).expect(tag), "{text}");
    }
    assert_eq!(post_op("prelu:per_oc"), PostOp::Prelu(Policy::PerOc));
    let dw = PostOp::Depthwise { kernel: 3, stride: 2, padding: 1, data_type: Some(DataType::U8) };
    assert_eq!(post_op("dw:k3s2p1:u8"), dw);
    let chain = one("attr-post-ops", "mul:f32:common+linear:0.5:-1+sum").post_ops.value;
    assert_eq!(chain.len(), 3);
    for name in EltwiseAlgorithm::names().into_iter().chain(BinaryAlgorithm::names()) {
        let text = if BinaryAlgorithm::names().contains(&name) { ":f32" } else { "" };
        post_op(&format!("{name}{text}"));
    }
}

#[test]
fn other_attributes() {
    assert_eq!(one("attr-scratchpad", "USER").scratchpad.value, Scratchpad::User);
    assert!(one("attr-fpmath", "bf16:true").math_mode.value.1);
    assert!(!one("attr-fpmath", "tf32").math_mode.value.1);
    assert!(one("attr-deterministic", "1").deterministic.value);
    assert_eq!(one("attr-rounding-mode", "dst:stochastic:7").rounding.value.seed, 7);
    let dropout = one("attr-dropout", "0.5:12345:axb:3:true").dropout.value.expect("a dropout");
    assert_eq!((dropout.probability, dropout.seed, dropout.offset), (0.5, 12345, 3));
    assert!(dropout.host_scalars && one("attr-dropout", "0").is_default());
    assert_eq!(all("attr-acc-mode", "strict,relaxed,any,f32,s32,f16").len(), 6);
    assert!(Attributes::default().is_default() && one("attr-post-ops", "").is_default());
    assert!(!one("attr-post-ops", "sum").is_default());
}

#[test]
fn mistakes_are_pointed_at() {
    let at = |name, value| wrong(name, value).0;
    assert_eq!(at("attr-scales", "src:common:64+dts:common"), 14);
    assert_eq!(at("attr-scales", ",src:commn:64"), 5);
    assert_eq!(at("attr-scales", "src:common:x"), 11);
    assert_eq!(at("attr-scales", "src:common:-1"), 11);
    assert_eq!(at("attr-scales", "src"), 3);
    assert_eq!(at("attr-scales", "src:common:1:f33"), 13);
    assert_eq!(at("attr-scales", "src:common:1:f32:2"), 17);
    assert_eq!(at("attr-scales", "src:common:1+src:common:2"), 13);
    assert_eq!(at("attr-zero-points", "src:common:0.5"), 11);
    assert_eq!(at("attr-post-ops", "relu,rleu"), 5);
    assert_eq!(at("attr-post-ops", "relu:0:0:2:1"), 11);
    assert_eq!(at("attr-post-ops", "add"), 3);
    assert_eq!(at("attr-post-ops", "relu+add:f3"), 9);
    assert_eq!(at("attr-post-ops", "add:f32:per_c"), 8);
    assert_eq!(at("attr-post-ops", "add:f32:1:axq"), 10);
    assert_eq!(at("attr-post-ops", "add:f32:1:axb:2"), 14);
    assert_eq!(at("attr-post-ops", "select:f32:per_oc"), 11);
    assert_eq!(at("attr-post-ops", "dw:3"), 3);
    assert_eq!(at("attr-post-ops", "sum:1:0.5"), 6);
    assert_eq!(at("attr-dropout", "1.5"), 0);
    assert_eq!(at("attr-rounding-mode", "dst"), 3);
    assert_eq!(at("ctx-exe", "4,0"), 2);
    let chain = vec!["relu"; 33].join("+");
    assert_eq!(at("attr-post-ops", &chain), 32 * 5);
    let (_, message) = wrong("attr-post-ops", "rleu");
    assert!(
        message.starts_with("'rleu' is not a post-op; they are sum, dw, prelu, abs"),
        "{message}"
    );
    let (_, message) = wrong("attr-post-ops", "gelu");
    assert_eq!(message, "'gelu' is not a post-op; write gelu_erf or gelu_tanh");
}

/// Lines repeat the attributes in a fixed order, without those at their defaults.
#[test]
fn lines_reproduce_attributes() {
    let words = [
        "--lnorm",
        "--dt=f32:s8",
        "--attr-scales=,src:common:64+dst:common:0.5",
        "--attr-post-ops=sum+add:f32:per_oc",
        "--attr-scratchpad=user",
        "--ctx-exe=2",
        "3x4",
    ];
    let lines = lines(&words);
    assert_eq!(
        lines,
        [
            "--lnorm --dt=f32:s8 --attr-post-ops=sum+add:f32:per_oc --attr-scratchpad=user \
             --ctx-exe=2 3x4",
            "--lnorm --dt=f32:s8 --attr-scales=src:common:64+dst:common:0.5 \
             --attr-post-ops=sum+add:f32:per_oc --attr-scratchpad=user --ctx-exe=2 3x4",
        ]
    );
    for line in &lines {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(self::lines(&words), *std::slice::from_ref(line));
    }
    let reorder = ["--reorder", "--sdt=s8", "--strides=8x1:", "--attr-zero-points=src:common:-1"];
    let line = &self::lines(&[&reorder[..], &["2x4"]].concat())[0];
    let again: Vec<&str> = line.split(' ').collect();
    assert_eq!(self::lines(&again), *std::slice::from_ref(line));
    // A reset clears them.
    assert_eq!(self::lines(&["--attr-post-ops=sum", "--reset", "3x4"]), ["--lnorm 3x4"]);
}

/// Batches in the style of oneDNN's: continued options, lists with an empty item, and values that a later option
/// resets.
#[test]
fn batches_are_understood() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("attributes");
    std::fs::create_dir_all(&folder).expect("a writable folder");
    let text = "--reset --allow-enum-tags-only=0 --match=.*n.*\n\
                --dt=f32:s8,u8:s8, \\\n     s8:bf16\n\
                --attr-scales=,src:common:128, \\\n  dst:common:0.125\n\
                --ss_dt=bf16\n--flags=,CH 4x5_n\"a b\" # a remark\n--ss_dt=f32 --attr-scales= 6x7_n1";
    std::fs::write(folder.join("batch"), text).expect("a writable file");
    let option = format!("--batch={}", folder.join("batch").display());
    let lines = lines(&[&option]);
    assert_eq!(lines.len(), 3 * 3 * 2 + 3 * 2);
    assert!(lines[17].contains("--dt=s8:bf16 --ss_dt=bf16 --flags=CH"), "{}", lines[17]);
    assert!(!lines[23].contains("ss_dt") && !lines[23].contains("attr"), "{}", lines[23]);
}

#[test]
fn tags_without_a_number_are_refused_where_that_is_asked_for() {
    let of = |words: &[&str]| {
        let arguments: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        read(&arguments, drivers::all(), &library()).map(drop)
    };
    let odd = ["--tag=bdca", "2x3x4x5"];
    assert!(of(&odd).is_ok());
    let error = of(&[&["--allow-enum-tags-only=true"], &odd[..]].concat()).expect_err("no tag");
    assert!(error.to_string().contains("no tag bdca, for --tag"), "{error}");
}

/// Every batch of every driver is valid, and the lines of its problems reproduce them.
#[test]
fn every_batch_reproduces_itself() {
    use benchdnn::language::batch;
    for driver in ["lnorm", "reorder"] {
        for name in batch::embedded(driver).filter(|name| name.starts_with("test_")) {
            let named = format!("--{driver}");
            let lines = lines(&[&named, &format!("--batch={name}")]);
            assert!(lines.len() > 50, "{name}: {}", lines.len());
            for line in lines.iter().step_by(lines.len() / 40 + 1) {
                let words: Vec<&str> = line.split(' ').collect();
                if !line.contains(['"', '\'']) {
                    assert_eq!(self::lines(&words), *std::slice::from_ref(line), "{name}");
                }
            }
        }
    }
}
