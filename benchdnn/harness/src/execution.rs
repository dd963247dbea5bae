//! One execution of a primitive on guarded buffers.
//!
//! [`Placed`] puts a problem's tensors into buffers, in one of several placements. After each
//! execution it checks that the library changed neither inputs nor unused arguments, nor memory
//! around and between the elements.

use crate::data_type::DataType;
use crate::executor::{Argument, Bound, Prepared, Refusal};
use crate::float_mode::{self, FloatMode};
use crate::outcome::{Outcome, Status};
use crate::tensor::{Buffer, Damage, Layout};
use std::fmt;
use std::rc::Rc;

/// What a primitive does with a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is read.
    Input,
    /// Every element is written.
    Output,
    /// Every element is read and written.
    Updated,
    /// It is passed but unused, and must not be changed.
    Unused,
}

impl Role {
    /// Whether it is written.
    pub fn is_written(self) -> bool {
        matches!(self, Role::Output | Role::Updated)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Role::Input => "input",
            Role::Output => "output",
            Role::Updated => "updated",
            Role::Unused => "unused",
        })
    }
}

/// A tensor of a problem.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// The argument id.
    pub id: i32,
    /// The name in messages.
    pub name: &'static str,
    /// What the primitive does with it.
    pub role: Role,
    /// The layout of its elements in memory.
    pub layout: Layout,
    /// Its elements in row-major order; empty if it is not read.
    pub elements: Rc<Vec<u8>>,
}

/// The result of an execution.
#[derive(Clone, Debug)]
pub struct Output {
    /// The argument id.
    pub id: i32,
    /// The name in messages.
    pub name: &'static str,
    /// Dimensions and type. The elements below are in row-major order.
    pub layout: Layout,
    /// Its elements in row-major order.
    pub elements: Vec<u8>,
}

/// The placement of an execution's buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Every tensor starts one element off its alignment.
    pub misaligned: bool,
    /// These inputs and outputs share buffers.
    pub inplace: Pairs,
}

/// At most two pairs of an input and an output that share a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pairs([Option<(i32, i32)>; 2]);

impl Pairs {
    /// The pairs. No problem has more than two.
    pub fn new(pairs: &[(i32, i32)]) -> Pairs {
        assert!(pairs.len() <= 2, "at most two pairs of tensors share buffers");
        Pairs(std::array::from_fn(|i| pairs.get(i).copied()))
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self == Pairs::default()
    }

    /// Whether this input shares the buffer of an output.
    fn has_input(self, id: i32) -> bool {
        self.0.iter().flatten().any(|pair| pair.0 == id)
    }

    /// The input whose buffer this output shares.
    fn input_of(self, id: i32) -> Option<i32> {
        self.0.iter().flatten().find(|pair| pair.1 == id).map(|pair| pair.0)
    }
}

/// Why an execution has no result to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The library refused.
    Refused(Refusal),
    /// The library violated its contract.
    Damaged(String),
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Fault {
        Fault::Refused(refusal)
    }
}

impl From<Fault> for Outcome {
    fn from(fault: Fault) -> Outcome {
        match fault {
            Fault::Refused(refusal) => refusal.into(),
            Fault::Damaged(what) => Outcome::because(Status::Failed, what),
        }
    }
}

impl Tensor {
    /// The type of its elements.
    pub fn data_type(&self) -> DataType {
        self.layout.data_type
    }
}

/// Tensors in buffers.
pub struct Placed<'t> {
    tensors: &'t [Tensor],
    /// The buffer of each tensor.
    buffers: Vec<Rc<Buffer>>,
    inplace: Pairs,
}

impl<'t> Placed<'t> {
    /// Makes the buffers.
    pub fn new(tensors: &'t [Tensor], placement: Placement) -> Placed<'t> {
        let Placement { misaligned, inplace } = placement;
        let mut buffers: Vec<Rc<Buffer>> = Vec::new();
        for tensor in tensors {
            let Tensor { id, role, layout, elements, .. } = tensor;
            let shift = if misaligned { layout.data_type.size() } else { 0 };
            // Every driver lists the input of a pair before its output.
            let buffer = match (role, inplace.input_of(*id)) {
                (Role::Input, _) if inplace.has_input(*id) => {
                    Rc::new(Buffer::in_place(layout, elements, shift))
                }
                (Role::Output | Role::Updated, Some(input)) => {
                    let input = tensors.iter().position(|tensor| tensor.id == input);
                    buffers[input.expect("a pair of the problem's tensors")].clone()
                }
                (Role::Input, _) => Rc::new(Buffer::input(layout, elements, shift)),
                (Role::Updated, _) => Rc::new(Buffer::in_place(layout, elements, shift)),
                (Role::Output | Role::Unused, _) => Rc::new(Buffer::output(layout, shift)),
            };
            buffers.push(buffer);
        }
        Placed { tensors, buffers, inplace }
    }

    /// The same, with separate buffers for the tensors that `anew` selects. The others are shared.
    pub fn again(&self, anew: impl Fn(&Tensor) -> bool) -> Placed<'t> {
        assert!(self.inplace.is_empty(), "sets of buffers are not for working in place");
        let mut placed = Placed::new(&[], Placement::default());
        placed.tensors = self.tensors;
        let pairs = self.tensors.iter().zip(&self.buffers);
        placed.buffers = pairs
            .map(|(tensor, buffer)| match tensor.role {
                _ if !anew(tensor) => buffer.clone(),
                Role::Input => Rc::new(Buffer::input(&tensor.layout, &tensor.elements, 0)),
                Role::Updated => Rc::new(Buffer::in_place(&tensor.layout, &tensor.elements, 0)),
                Role::Output | Role::Unused => Rc::new(Buffer::output(&tensor.layout, 0)),
            })
            .collect();
        placed
    }

    /// The buffer of a tensor, if the problem uses it.
    pub fn buffer(&self, id: i32) -> Option<&Buffer> {
        let mut pairs = self.tensors.iter().zip(&self.buffers);
        let pair = pairs.find(|(tensor, _)| tensor.id == id && tensor.role != Role::Unused);
        pair.map(|(_, buffer)| &**buffer)
    }

    /// The arguments to bind, including unused ones if `unused`.
    pub fn arguments(&self, unused: bool) -> Vec<Argument<'_>> {
        self.tensors
            .iter()
            .zip(&self.buffers)
            .filter(|(tensor, _)| unused || tensor.role != Role::Unused)
            .map(|(tensor, buffer)| Argument { id: tensor.id, layout: &tensor.layout, buffer })
            .collect()
    }

    /// Resets the outputs, executes under the caller's floating-point mode, checks that nothing else has changed, and
    /// returns the outputs.
    pub fn run(&self, bound: &dyn Bound, mode: Option<FloatMode>) -> Result<Vec<Output>, Fault> {
        self.set_back(Buffer::clear);
        match mode {
            None => bound.execute()?,
            Some(mode) => {
                let (result, kept) = float_mode::under(mode, || bound.execute());
                result?;
                if !kept {
                    let mode = mode.name();
                    return Err(Fault::Damaged(format!("the caller's {mode} was not restored")));
                }
            }
        }
        self.take(bound)
    }

    /// Executes until `enough` is true, at most `tries` times. Checks and returns the outputs of the last execution.
    pub fn run_until(
        &self,
        bound: &dyn Bound,
        tries: usize,
        enough: impl Fn() -> bool,
    ) -> Result<Vec<Output>, Fault> {
        for attempt in 0..tries {
            // Unless inputs are overwritten, the next execution can follow immediately.
            let updates = || self.tensors.iter().any(|tensor| tensor.role == Role::Updated);
            if attempt == 0 || !self.inplace.is_empty() || updates() {
                self.set_back(Buffer::clear);
            }
            bound.execute()?;
            if enough() {
                break;
            }
        }
        self.take(bound)
    }

    fn take(&self, bound: &dyn Bound) -> Result<Vec<Output>, Fault> {
        let mut outputs = Vec::new();
        for (tensor, buffer) in self.tensors.iter().zip(&self.buffers) {
            let &Tensor { id, name, role, ref layout, .. } = tensor;
            let intact = match role {
                Role::Input if self.inplace.has_input(id) => Ok(()),
                Role::Input => buffer.unchanged(layout, &tensor.elements),
                Role::Unused => buffer.untouched(),
                Role::Output | Role::Updated => buffer.contained(layout),
            };
            intact.map_err(|Damage(what)| Fault::Damaged(format!("{name} {what}")))?;
            if role.is_written() {
                let elements = buffer.elements(layout);
                outputs.push(Output { id, name, layout: layout.clone(), elements });
            }
        }
        self.all_written(bound, &outputs)?;
        Ok(outputs)
    }

    /// Checks that every element was written. An element that looks unwritten is checked again after an execution over
    /// another pattern.
    fn all_written(&self, bound: &dyn Bound, outputs: &[Output]) -> Result<(), Fault> {
        let suspects: Vec<&Output> = outputs
            .iter()
            .filter(|output| self.inplace.input_of(output.id).is_none())
            .filter(|output| !self.is_updated(output.id))
            .filter(|output| !Buffer::unwritten(&output.layout, &output.elements).is_empty())
            .collect();
        if suspects.is_empty() {
            return Ok(());
        }
        self.set_back(Buffer::clear_differently);
        bound.execute()?;
        for Output { id, name, layout, elements } in suspects {
            let mut tensors = self.tensors.iter().zip(&self.buffers);
            let (_, buffer) = tensors.find(|(tensor, _)| tensor.id == *id).expect("an output");
            let again = buffer.elements(layout);
            let missing = Buffer::unwritten(layout, elements)
                .into_iter()
                .find(|&index| Buffer::is_still_unwritten(layout, &again, index));
            if let Some(index) = missing {
                let at = layout.coordinates(index);
                return Err(Fault::Damaged(format!("{name}{at} was never written")));
            }
        }
        Ok(())
    }

    fn is_updated(&self, id: i32) -> bool {
        self.tensors.iter().any(|tensor| tensor.id == id && tensor.role == Role::Updated)
    }

    /// Clears everything that may be written, with `clear`, and restores inputs that are overwritten in place and
    /// updated tensors.
    fn set_back(&self, clear: fn(&Buffer)) {
        let tensors = || self.tensors.iter().zip(&self.buffers);
        tensors().filter(|(tensor, _)| tensor.role != Role::Input).for_each(|(_, buffer)| {
            clear(buffer);
        });
        for (tensor, buffer) in tensors() {
            let shares = self.inplace.input_of(tensor.id).is_some();
            // In place, the shared buffer contains the input.
            if self.inplace.has_input(tensor.id) || (tensor.role == Role::Updated && !shares) {
                buffer.put(&tensor.layout, &tensor.elements);
            }
        }
    }
}

/// Places the tensors, binds them and runs once.
pub fn run_once(
    prepared: &dyn Prepared,
    tensors: &[Tensor],
    placement: Placement,
    mode: Option<FloatMode>,
) -> Result<Vec<Output>, Fault> {
    let placed = Placed::new(tensors, placement);
    let bound = prepared.bind(&placed.arguments(true))?;
    placed.run(&*bound, mode)
}
