//! A library under test that computes what a test defines, so that the harness must detect its mistakes.

use benchdnn::driver::Driver;
use benchdnn::executor::{Argument, Bound, Control, CpuIsa, Prepared, Refusal};
use benchdnn::harness::{self, Streams};
use benchdnn::library::{self, Executor};
use benchdnn::problem::Data;
use benchdnn::tensor::Layout;
use std::any::Any;

/// A primitive with a mistake, or without one.
pub(crate) trait Faulty: Clone + 'static {
    fn layout(&self, argument: i32) -> Option<Layout>;

    /// The outputs, given the values of all arguments.
    fn outputs(&self, data: Data) -> Vec<(i32, Vec<f64>)>;
}

/// Creates primitives from requests of a driver.
struct Sham<C>(C);

impl<C> Control for Sham<C> {
    fn set_cpu_isa(&self, isa: CpuIsa) -> Result<bool, Refusal> {
        Ok(isa == CpuIsa::Default)
    }

    fn set_threads(&self, _: u64) -> Result<(), Refusal> {
        Ok(())
    }

    fn threads(&self) -> u64 {
        1
    }

    fn last_threads(&self) -> u64 {
        1
    }
}

impl<F: Faulty, C: Fn(&dyn Any) -> F> Executor for Sham<C> {
    fn prepare(&self, request: &dyn library::Request) -> Result<Box<dyn Prepared>, Refusal> {
        Ok(Box::new(Created(self.0(request))))
    }
}

struct Created<F>(F);

impl<F: Faulty> Prepared for Created<F> {
    fn implementation(&self) -> String {
        "sham".to_owned()
    }

    fn next_implementation(&mut self) -> Result<bool, Refusal> {
        Ok(false)
    }

    fn layout(&self, argument: i32) -> Option<Layout> {
        self.0.layout(argument)
    }

    fn bind<'a>(&self, arguments: &[Argument<'a>]) -> Result<Box<dyn Bound + 'a>, Refusal> {
        Ok(Box::new(Execution { primitive: self.0.clone(), arguments: arguments.to_vec() }))
    }
}

struct Execution<'a, F> {
    primitive: F,
    arguments: Vec<Argument<'a>>,
}

impl<F: Faulty> Bound for Execution<'_, F> {
    fn execute(&self) -> Result<(), Refusal> {
        let mut data = Data::default();
        for Argument { id, layout, buffer } in &self.arguments {
            data.set(*id, layout.data_type.decode(&buffer.elements(layout)));
        }
        for (id, values) in self.primitive.outputs(data) {
            let found = self.arguments.iter().find(|argument| argument.id == id);
            let used = self.primitive.layout(id).is_some();
            if let Some(Argument { layout, buffer, .. }) = found.filter(|_| used) {
                buffer.put(layout, &layout.data_type.encode(&values));
            }
        }
        Ok(())
    }
}

/// Runs a command of the drivers on the library whose primitives `create` makes from requests. Returns the exit status
/// and the result lines.
pub(crate) fn run<F: Faulty>(
    drivers: Vec<Box<dyn Driver>>,
    create: impl Fn(&dyn Any) -> F,
    command: &str,
) -> (u8, Vec<String>) {
    let words = std::iter::once("--summary=no-failures").chain(command.split_whitespace());
    let arguments: Vec<String> = words.map(str::to_owned).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let streams = Streams { out: &mut out, err: &mut err, progress: None };
    let status = harness::run(&arguments, drivers, &Sham(create), streams)
        .expect("a vector takes everything");
    assert_eq!(String::from_utf8_lossy(&err), "", "{command}");
    let text = String::from_utf8(out).expect("UTF-8");
    let results: Vec<_> =
        text.lines().filter(|line| line.contains("__REPRO")).map(str::to_owned).collect();
    assert!(!results.is_empty(), "{command}");
    (status, results)
}
