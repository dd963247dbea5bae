//! A driver outside the harness. All modes run an operation without rows, with an integer input and two outputs, and
//! detect its faults. So a driver needs nothing but its problem and its row.

use benchdnn::attributes::{AttributeTensor, Attributes};
use benchdnn::check::Kind;
use benchdnn::data_type::DataType;
use benchdnn::driver::{Row, erased};
use benchdnn::execution::Role;
use benchdnn::executor::{Argument, Bound, Control, CpuIsa, Prepared, Refusal, RefusalKind};
use benchdnn::fill::Fill;
use benchdnn::harness::{self, Streams};
use benchdnn::language::descriptor::{self, Descriptor};
use benchdnn::language::options::{Info, Opt, multiply, word};
use benchdnn::language::value::{list, one_of};
use benchdnn::library::{self, Connection, Executor};
use benchdnn::problem::{
    Data, Dependence, Expected, Gradient, Gradients, Part, Problem, Spec, Unit,
};
use benchdnn::tensor::Layout;
use norm_sys::{NORM_ARG_DIFF_DST, NORM_ARG_DIFF_SRC, NORM_ARG_DST, NORM_ARG_SRC, NORM_ARG_SRC_1};
use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;

/// The second output: whether src is positive.
const POSITIVE: i32 = 18;

/// `dst = src^2 + offset` and `positive = src > 0`; backward `diff_src = 2*src*diff_dst`.
#[derive(Clone, Debug, Default, PartialEq)]
struct Square {
    dims: Vec<usize>,
    backward: bool,
    attributes: Attributes,
}

#[derive(Debug, Default)]
struct Settings {
    backward: Vec<bool>,
}

const DIRECTIONS: [(&str, bool); 2] = [("FWD", false), ("BWD", true)];

const OPTIONS: &[Opt<Settings>] = &[Opt {
    info: Info {
        name: "dir",
        short: None,
        value: "LIST",
        topic: "Problems of square",
        default: "FWD",
        help: "FWD, BWD",
    },
    set: |state, text| {
        list(text, ',', |item| one_of(item, &DIRECTIONS)).map(|list| state.backward = list)
    },
}];

const ROW: Row<Settings> = Row {
    name: "square",
    about: "Squares",
    manual: "",
    options: OPTIONS,
    problems: |settings, _, descriptor| {
        let Descriptor { dims, .. } = Descriptor::parse(descriptor, &(1..=4))?;
        let mut problems = vec![Square { dims, ..Square::default() }];
        multiply(&mut problems, &settings.backward, |problem, &value| problem.backward = value);
        Ok(erased(problems))
    },
    sample: || Rc::new(Square { dims: vec![4], ..Square::default() }),
};

impl library::Request for Square {
    fn create(&self, _: &Rc<Connection>) -> Result<Box<dyn Prepared>, Refusal> {
        let message = "no real library has it".to_owned();
        Err(Refusal { kind: RefusalKind::Unimplemented, message })
    }
}

impl Problem for Square {
    fn name(&self) -> &str {
        ""
    }

    fn line(&self, canonical: bool) -> String {
        let direction = DIRECTIONS[usize::from(self.backward)].0;
        let mut words: Vec<String> =
            word(OPTIONS, "dir", direction, canonical).into_iter().collect();
        words.push(descriptor::text(&self.dims, ""));
        words.join(" ")
    }

    fn entry(&self, _: &str) -> Option<String> {
        None
    }

    fn sizes(&self) -> Vec<Vec<usize>> {
        vec![self.dims.clone()]
    }

    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn without_attributes(&self) -> Box<dyn Problem> {
        Box::new(self.clone())
    }

    fn attribute_tensors(&self) -> Vec<AttributeTensor> {
        Vec::new()
    }

    fn own_tensors(&self) -> Vec<Spec> {
        let spec = |id, name, role, data_type| Spec {
            part: Part::Main,
            ..Spec::new(id, name, role, self.dims.clone(), data_type)
        };
        let src = spec(NORM_ARG_SRC, "src", Role::Input, DataType::F32);
        match self.backward {
            true => vec![
                src,
                spec(NORM_ARG_DIFF_DST, "diff_dst", Role::Input, DataType::F32),
                spec(NORM_ARG_DIFF_SRC, "diff_src", Role::Output, DataType::F32),
            ],
            false => vec![
                src,
                spec(NORM_ARG_SRC_1, "offset", Role::Input, DataType::S32),
                spec(NORM_ARG_DST, "dst", Role::Output, DataType::F32),
                spec(POSITIVE, "positive", Role::Output, DataType::U8),
            ],
        }
    }

    fn request(&self) -> Box<dyn library::Request> {
        Box::new(self.clone())
    }

    fn fill(&self, _: Fill) -> Data {
        let count: usize = self.dims.iter().product();
        let values = |value: fn(usize) -> f64| (0..count).map(value).collect::<Vec<f64>>();
        Data::from([
            (NORM_ARG_SRC, values(|i| (i % 17) as f64 / 4.0 - 1.5)),
            (NORM_ARG_SRC_1, values(|i| (i % 5) as f64 + 1.0)),
            (NORM_ARG_DIFF_DST, values(|i| (i % 3) as f64 + 0.5)),
        ])
    }

    fn expected(&self, data: &Data) -> Vec<Expected> {
        let src = data.get(NORM_ARG_SRC);
        let exact = |id, values: Vec<f64>| {
            let terms = values.iter().map(|value| value.abs()).collect();
            Expected::new(id, Kind::Result, values, terms)
        };
        let with = |other: &[f64], result: fn(f64, f64) -> f64| {
            src.iter().zip(other).map(|(&x, &other)| result(x, other)).collect()
        };
        match self.backward {
            true => {
                let diff_dst = data.get(NORM_ARG_DIFF_DST);
                vec![exact(NORM_ARG_DIFF_SRC, with(diff_dst, |x, d| 2.0 * x * d))]
            }
            false => vec![
                exact(NORM_ARG_DST, with(data.get(NORM_ARG_SRC_1), |x, offset| x * x + offset)),
                exact(POSITIVE, with(src, |x, _| f64::from(u8::from(x > 0.0)))),
            ],
        }
    }

    fn gradients(&self) -> Result<Gradients, String> {
        if !self.backward {
            return Err("--check=grad needs --dir=BWD".to_owned());
        }
        let dependence = Dependence::Parts { count: 1, inner: 1, unit: Unit::Rms, noun: "tensor" };
        let (input, output) = (NORM_ARG_SRC, NORM_ARG_DIFF_SRC);
        Ok(Gradients {
            forward: Box::new(Square { backward: false, ..self.clone() }),
            backward: Box::new(self.clone()),
            results: vec![(NORM_ARG_DST, NORM_ARG_DIFF_DST)],
            saved: Vec::new(),
            of: vec![Gradient { input, output, dependence }],
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The second output is always 1.
    SecondOutput,
    /// The gradient lacks its factor.
    Gradient,
    /// A result depends on the number of threads.
    Threads,
}

struct Toy {
    fault: Fault,
    threads: Rc<Cell<u64>>,
}

impl Control for Toy {
    fn set_cpu_isa(&self, isa: CpuIsa) -> Result<bool, Refusal> {
        Ok(matches!(isa, CpuIsa::Default | CpuIsa::Portable))
    }

    fn set_threads(&self, threads: u64) -> Result<(), Refusal> {
        self.threads.set(threads);
        Ok(())
    }

    fn threads(&self) -> u64 {
        1
    }

    fn last_threads(&self) -> u64 {
        self.threads.get()
    }
}

impl Executor for Toy {
    fn prepare(&self, request: &dyn library::Request) -> Result<Box<dyn Prepared>, Refusal> {
        let request: &dyn Any = request;
        let problem: &Square = request.downcast_ref().expect("a request of the driver");
        let threads = self.threads.clone();
        Ok(Box::new(Created { fault: self.fault, threads, problem: problem.clone() }))
    }
}

#[derive(Clone)]
struct Created {
    fault: Fault,
    threads: Rc<Cell<u64>>,
    problem: Square,
}

impl Prepared for Created {
    fn implementation(&self) -> String {
        "toy".to_owned()
    }

    fn next_implementation(&mut self) -> Result<bool, Refusal> {
        Ok(false)
    }

    fn layout(&self, argument: i32) -> Option<Layout> {
        let spec = self.problem.own_tensors().into_iter().find(|spec| spec.id == argument)?;
        Some(Layout::dense(&spec.dims, spec.data_type))
    }

    fn bind<'a>(&self, arguments: &[Argument<'a>]) -> Result<Box<dyn Bound + 'a>, Refusal> {
        Ok(Box::new(Execution { toy: self.clone(), arguments: arguments.to_vec() }))
    }
}

struct Execution<'a> {
    toy: Created,
    arguments: Vec<Argument<'a>>,
}

impl Bound for Execution<'_> {
    fn execute(&self) -> Result<(), Refusal> {
        let Created { fault, threads, problem } = &self.toy;
        let mut data = Data::default();
        for Argument { id, layout, buffer } in &self.arguments {
            data.set(*id, layout.data_type.decode(&buffer.elements(layout)));
        }
        for Expected { id, values, .. } in problem.expected(&data) {
            let mut values = values.to_vec();
            match fault {
                Fault::SecondOutput if id == POSITIVE => values.fill(1.0),
                Fault::Gradient if id == NORM_ARG_DIFF_SRC => {
                    values.iter_mut().for_each(|value| *value /= 2.0);
                }
                Fault::Threads if threads.get() == 3 => values[0] += 1.0,
                _ => {}
            }
            let argument = self.arguments.iter().find(|argument| argument.id == id);
            let Argument { layout, buffer, .. } = argument.expect("an output");
            buffer.put(layout, &layout.data_type.encode(&values));
        }
        Ok(())
    }
}

/// Runs a command line on the toy library. Returns the exit status and the output.
fn run(fault: Fault, command: &str) -> (u8, String) {
    let arguments: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let streams = Streams { out: &mut out, err: &mut err, progress: None };
    let toy = Toy { fault, threads: Rc::default() };
    let status = harness::run(&arguments, vec![ROW.driver()], &toy, streams)
        .expect("a vector takes everything");
    assert_eq!(String::from_utf8_lossy(&err), "", "{command}");
    (status, String::from_utf8(out).expect("UTF-8"))
}

#[test]
fn every_mode_runs_the_toy() {
    for command in [
        "--dir=FWD,BWD 30x17 5 0x3",
        "--check=grad --dir=BWD 30x17 5 0x3",
        "--mode=B --dir=FWD,BWD 30x17",
        "--mode=CBP --fix-times-per-prb=2 --dir=FWD,BWD --cold-cache=all 30x17",
        "--mode=F --roofline --dir=BWD 64x64",
        "--mode=I --dir=FWD,BWD 30x17",
        "--mode=R --dir=FWD,BWD 30x17",
        "--impl=toy --canonical=true 30x17",
    ] {
        let (status, text) = run(Fault::None, command);
        assert_eq!(status, harness::FINE, "{command}\n{text}");
        assert!(text.contains(" skipped:0 mistrusted:0 "), "{command}\n{text}");
    }
    let (_, text) = run(Fault::None, "--mode=B 30x17");
    assert!(text.contains("repeats") && !text.contains("rows"), "{text}");
    let (_, text) = run(Fault::None, "--mode=F --roofline --dir=BWD 64x64");
    assert!(text.contains("  roofline: "), "{text}");
}

#[test]
fn modes_detect_its_faults() {
    for (fault, command, reason) in [
        (Fault::SecondOutput, "30x17", "positive has "),
        (Fault::Gradient, "--dir=BWD 30x17", "diff_src has "),
        (Fault::Gradient, "--check=grad --dir=BWD 30x17", "gradient has "),
        (Fault::Threads, "--mode=B 30x17", "comparisons of bits failed"),
    ] {
        let (status, text) = run(fault, command);
        assert_eq!(status, harness::FAILED, "{fault:?}\n{text}");
        assert!(text.contains("0:FAILED (") && text.contains(reason), "{fault:?}\n{text}");
    }
}
