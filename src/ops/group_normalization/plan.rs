//! The execution of a problem: units of work, their statistics and scalars, and the sums over samples.
//!
//! A unit is a few groups of one sample or, in backward, of a block of samples. It computes the statistics of its
//! groups, then their elements while these are still in a cache. Blocks of samples depend only on the shape, and their
//! sums of diff_scale and diff_shift are added in a fixed tree, so the number of threads changes no bit.

use super::problem::{GroupNormalization, Shape};
use super::statistics::{
    Found, Scalars, Slopes, found, found_about_mean, join, probes, provisional_mean,
};
use super::surround::{Seen, Stages, Surround, TENSORS};
use super::sweeps::{Call, Channels, Numbers, Sweeps};
use super::wide::Wide;
use super::workspace::{MOST_SAMPLE_BLOCKS, Shared, Sums, Workspace};
use crate::error::Result;
use crate::primitive::{
    Arguments, Execution, Implementation, Padding, PostOpChain, PropKind, Variant,
};
use crate::rows::statistics::{Statistics, exact, mean_in_range, reciprocal, variance_is_usable};
use crate::rows::{Neutral, Parameter, Slots, length_of, width_of};
use crate::simd::Level;
use crate::tensor::DataType;
use norm_sys as sys;
use std::ops::Range;

/// The maximum number of blocks of units; each has a workspace.
const MOST_BLOCKS: usize = 32;

/// What an implementation decides.
pub(super) struct PlanSpec {
    /// The groups of a unit.
    pub(super) groups_at_once: usize,
    /// The post-operations, with rows as the implementation counts them; `None` if those are the logical rows.
    pub(super) chain: Option<PostOpChain>,
    /// The tensors that the kernels see.
    pub(super) seen: Seen,
    /// The steps around the kernels.
    pub(super) around: Option<Surround>,
}

/// An implementation: the plan and its sweeps.
pub(super) struct Plan<S> {
    variant: &'static Variant,
    sweeps: S,
    shape: Shape,
    wide: Wide,
    forward: bool,
    rms: bool,
    global: bool,
    /// Whether backward sums diff_scale and diff_shift.
    sums: bool,
    writes_statistics: bool,
    epsilon: f64,
    groups_at_once: usize,
    around: Option<Surround>,
    /// The argument that is normalized.
    src: i32,
    chain: Option<PostOpChain>,
    plain_chain: Option<PostOpChain>,
    /// Scale and shift.
    parameters: [Parameter; 2],
    /// Which of them the problem has.
    given: [bool; 2],
    /// The padding of the output.
    padding: Padding,
}

impl<S: Sweeps> Plan<S> {
    pub(super) fn new(
        p: &GroupNormalization,
        variant: &'static Variant,
        sweeps: S,
        spec: PlanSpec,
    ) -> Result<Self> {
        let forward = p.prop_kind.is_forward();
        let level = variant.level.unwrap_or(Level::Portable);
        let parameter =
            |neutral| Parameter::new(level, p.shape.channels, DataType::F32, Some(neutral));
        Ok(Self {
            variant,
            sweeps,
            shape: p.shape,
            wide: Wide::new(p, &spec.seen)?,
            forward,
            rms: p.flags.rms(),
            global: p.flags.global_stats(),
            sums: p.writes_scale() || p.writes_shift(),
            writes_statistics: p.prop_kind == PropKind::ForwardTraining && !p.flags.global_stats(),
            epsilon: exact(p.epsilon),
            groups_at_once: spec.groups_at_once,
            around: spec.around,
            src: p.normalized_argument(),
            chain: spec.chain,
            plain_chain: if forward { p.chain(None, None)? } else { None },
            parameters: [
                parameter(Neutral::One).plus_one(p.flags.plus_one()),
                parameter(Neutral::MinusZero),
            ],
            given: [p.kernel_flags().scale(), p.kernel_flags().shift()],
            padding: Padding::of(if forward { &p.dst } else { &p.diff_src })?,
        })
    }

    /// The number of samples in a unit.
    fn samples_per_block(&self) -> usize {
        if self.forward { 1 } else { self.shape.samples.div_ceil(MOST_SAMPLE_BLOCKS).max(1) }
    }

    fn sample_blocks(&self) -> usize {
        self.shape.samples.div_ceil(self.samples_per_block())
    }

    /// The number of units in a block of samples.
    fn units_of_samples(&self) -> usize {
        self.shape.groups.div_ceil(self.groups_at_once)
    }

    fn units(&self) -> usize {
        self.sample_blocks() * self.units_of_samples()
    }

    fn blocks(&self) -> usize {
        self.units().min(MOST_BLOCKS)
    }

    /// The most channels of a unit.
    fn width(&self) -> usize {
        self.groups_at_once.min(self.shape.groups) * self.shape.per_group()
    }

    /// Bytes of the scratchpad for scale and shift.
    fn rooms(&self) -> [usize; 2] {
        [0, 1].map(|i| self.parameters[i].room(self.given[i]))
    }

    /// Bytes of the stages of a unit.
    fn stage_bytes(&self) -> usize {
        self.around.as_ref().map_or(0, Surround::bytes)
    }

    /// Bytes of the sums of diff_scale and diff_shift.
    fn sums_room(&self) -> usize {
        let sums = if self.sums { 2 * self.sample_blocks() } else { 0 };
        sums.saturating_mul(self.shape.channels * size_of::<f64>()).next_multiple_of(64)
    }

    /// The addresses of an execution, without post-operations.
    fn call(&self, execution: &Execution<'_>) -> Call<'_> {
        let mut call = Call::new(execution, self.src, self.forward);
        let [scale_room, _] = self.rooms();
        let scratchpad = execution.scratchpad;
        let argument = |i: usize, id| {
            if self.given[i] { execution.arguments.get(id) } else { std::ptr::null_mut() }
        };
        // SAFETY: the execution's buffers were checked, and the scratchpad begins with room for scale and shift.
        unsafe {
            call.scale = self.parameters[0].get(argument(0, sys::NORM_ARG_SCALE), scratchpad);
            if self.forward || self.around.is_some() {
                let (shift, room) =
                    (argument(1, sys::NORM_ARG_SHIFT), scratchpad.wrapping_add(scale_room));
                call.shift = self.parameters[1].get(shift, room);
            }
        }
        call
    }

    /// Runs a unit: channels of a block of samples. The stages belong to this thread.
    fn unit(
        &self,
        (call, arguments): (&Call<'_>, &Arguments),
        unit: usize,
        work: &mut Workspace<'_>,
        (sums, stages): (Sums, Stages),
    ) {
        let (block, part) = (unit / self.units_of_samples(), unit % self.units_of_samples());
        let first = part * self.groups_at_once;
        let groups = first..self.shape.groups.min(first + self.groups_at_once);
        let per_block = self.samples_per_block();
        let (start, channels) =
            (groups.start * self.shape.per_group(), groups.len() * self.shape.per_group());
        if self.sums {
            sums.clear(block, start, channels);
        }
        for sample in block * per_block..self.shape.samples.min((block + 1) * per_block) {
            let at = self.channels(sample, &groups);
            // SAFETY: the execution's buffers were checked, and the unit belongs to this thread.
            let seen = self
                .around
                .as_ref()
                .map(|around| unsafe { around.enter(arguments, call, at, stages) });
            let call = seen.as_ref().unwrap_or(call);
            if self.forward {
                self.forward_unit(call, sample, &groups, work);
            } else {
                self.backward_unit(call, sample, &groups, work);
            }
            if self.sums {
                sums.add(block, start, [&work.first[..channels], &work.second[..channels]]);
            }
            if let Some(around) = &self.around {
                let numbers = [&work.high[..channels], &work.r[..channels]];
                // SAFETY: as above.
                unsafe { around.leave(arguments, call, at, stages, numbers) };
            }
        }
    }

    /// Runs forward for groups of a sample.
    fn forward_unit(
        &self,
        call: &Call<'_>,
        sample: usize,
        groups: &Range<usize>,
        work: &mut Workspace<'_>,
    ) {
        let at = self.channels(sample, groups);
        if !self.global && !self.wide.double {
            self.sum(call, at, work);
        }
        let mut run = 0..0;
        for group in groups.clone() {
            let own = self.own(groups, group);
            match self.statistics(call, (sample, group), &own, work) {
                Some(found) => {
                    let Scalars { high, r, low } = Scalars::new(&found, self.epsilon, self.rms);
                    work.high[own.clone()].fill(high);
                    work.r[own.clone()].fill(r);
                    work.low[own.clone()].fill(low);
                    run.end = own.end;
                }
                None => {
                    self.normalize(call, at, &run, work);
                    run = own.end..own.end;
                }
            }
        }
        self.normalize(call, at, &run, work);
    }

    /// Normalizes a run of channels, possibly none.
    fn normalize(
        &self,
        call: &Call<'_>,
        at: Channels,
        run: &Range<usize>,
        work: &mut Workspace<'_>,
    ) {
        if !run.is_empty() {
            self.sweeps.normalize(call, at.part(run), &work.numbers(run));
        }
    }

    /// Sums the values and squares of a unit's channels about the provisional means of their groups.
    fn sum(&self, call: &Call<'_>, at: Channels, work: &mut Workspace<'_>) {
        let about = &mut work.about[..at.count];
        if self.rms {
            about.fill(0.0);
        } else {
            self.sweeps.probe(call, at, about);
            for group in about.chunks_mut(self.shape.per_group()) {
                let mean = provisional_mean(group, probes(self.shape.positions));
                group.fill(mean);
            }
        }
        let sums = [&mut work.first[..at.count], &mut work.second[..at.count]];
        self.sweeps.moments(call, at, about, sums);
    }

    /// The statistics of a group from its sums; stores them if they are outputs. Returns `None` for a group that needs
    /// f64, which is then complete.
    fn statistics(
        &self,
        call: &Call<'_>,
        (sample, group): (usize, usize),
        own: &Range<usize>,
        work: &mut Workspace<'_>,
    ) -> Option<Statistics> {
        let index = sample * self.shape.groups + group;
        let (found, narrow) = if self.global {
            // SAFETY: the statistics are given, and the group exists.
            let (mean, variance) = unsafe { call.given(index) };
            let found = Statistics { mean: f64::from(mean), variance: f64::from(variance) };
            (found, mean_in_range(mean) && !self.wide.double)
        } else if let Some(found) = self.narrow(call, (sample, group), own, work) {
            (found, true)
        } else {
            (self.wide.statistics(call, sample, group), false)
        };
        if self.writes_statistics {
            // SAFETY: the statistics are outputs, and no other thread writes those of this group. Out-of-range
            // variances become +Inf.
            unsafe {
                if !call.mean.is_null() {
                    call.mean.add(index).write_unaligned(found.mean as f32);
                }
                call.variance.add(index).write_unaligned(found.variance as f32);
            }
        }
        if !narrow {
            self.wide.forward(call, sample, group, &found);
        }
        narrow.then_some(found)
    }

    /// The statistics of a group from its channels' sums; `None` if it needs f64.
    fn narrow(
        &self,
        call: &Call<'_>,
        (sample, group): (usize, usize),
        own: &Range<usize>,
        work: &mut Workspace<'_>,
    ) -> Option<Statistics> {
        if self.wide.double {
            return None;
        }
        let (counted, elements) = (self.shape.counted, self.shape.counted_elements());
        let total = |sums: &[f64]| join(counted, |i| sums[own.start + i]);
        let sums = [if self.rms { 0.0 } else { total(work.first) }, total(work.second)];
        let mean = match found(sums, work.about[own.start], elements, self.rms) {
            Found::Statistics(found) => return Some(found),
            Found::NeedsF64 => return None,
            Found::Mean(mean) => mean,
        };
        work.about[own.clone()].fill(mean as f32);
        let at = self.channels(sample, &(group..group + 1));
        let sums = [&mut work.first[own.clone()], &mut work.second[own.clone()]];
        self.sweeps.moments(call, at, &work.about[own.clone()], sums);
        let squares = join(own.len(), |i| work.second[own.start + i]);
        match found_about_mean(squares, mean, elements) {
            Found::Statistics(found) => Some(found),
            _ => None,
        }
    }

    /// Runs backward for groups of a sample. The sums of their channels stay in the workspace.
    fn backward_unit(
        &self,
        call: &Call<'_>,
        sample: usize,
        groups: &Range<usize>,
        work: &mut Workspace<'_>,
    ) {
        let mut run = 0..0;
        for group in groups.clone() {
            let own = self.own(groups, group);
            // SAFETY: the statistics are given, and the group exists.
            let (mean, variance) = unsafe { call.given(sample * self.shape.groups + group) };
            let given = Statistics { mean: f64::from(mean), variance: f64::from(variance) };
            let usable = self.global || variance_is_usable(variance) && !self.wide.double;
            if usable && mean_in_range(mean) && !self.wide.double {
                work.high[own.clone()].fill(mean);
                work.r[own.clone()].fill(reciprocal(given.variance, self.epsilon) as f32);
                run.end = own.end;
                continue;
            }
            self.gradient(call, (sample, groups), &run, work);
            run = own.end..own.end;
            let found = if usable { given } else { self.wide.statistics(call, sample, group) };
            // For the steps after the gradient.
            work.high[own.clone()].fill(found.mean as f32);
            work.r[own.clone()].fill(reciprocal(found.variance, self.epsilon) as f32);
            let sums = [&mut work.first[own.clone()], &mut work.second[own.clone()]];
            self.wide.backward(call, (sample, group), &found, sums);
        }
        self.gradient(call, (sample, groups), &run, work);
    }

    /// Computes the gradient of a run of a unit's channels, which is empty or has whole groups, and their sums.
    fn gradient(
        &self,
        call: &Call<'_>,
        (sample, groups): (usize, &Range<usize>),
        run: &Range<usize>,
        work: &mut Workspace<'_>,
    ) {
        if run.is_empty() {
            return;
        }
        let (at, per_group) = (self.channels(sample, groups).part(run), self.shape.per_group());
        if !self.global || self.sums {
            let numbers = Numbers {
                high: &work.high[run.clone()],
                r: &work.r[run.clone()],
                low: &work.low[run.clone()],
                slope: &work.about[run.clone()],
            };
            let sums = [&mut work.first[run.clone()], &mut work.second[run.clone()]];
            self.sweeps.products(call, at, &numbers, sums);
        }
        for first in run.clone().step_by(per_group) {
            // SAFETY: scale has a value per channel.
            let scale = |i| unsafe {
                f64::from(call.scale.add(at.first + first - run.start + i).read_unaligned())
            };
            let total = |sums: &[f64]| join(per_group, |i| scale(i) * sums[first + i]);
            let sums = [total(work.first), total(work.second)];
            let Slopes { shift, slope } = Slopes::new(work.r[first], sums, &self.shape, self.rms);
            work.low[first..first + per_group].fill(shift);
            work.about[first..first + per_group].fill(slope);
        }
        if !self.shape.is_partial() || self.global {
            self.sweeps.gradient(call, at, &work.numbers(run), self.global);
            return;
        }
        self.sweeps.partial_gradient(call, at, &work.numbers(run), &self.shape);
    }

    /// The channels of groups.
    fn channels(&self, sample: usize, groups: &Range<usize>) -> Channels {
        let per_group = self.shape.per_group();
        Channels { sample, first: groups.start * per_group, count: groups.len() * per_group }
    }

    /// The channels of a group, counted from the first of its unit.
    fn own(&self, groups: &Range<usize>, group: usize) -> Range<usize> {
        let first = (group - groups.start) * self.shape.per_group();
        first..first + self.shape.per_group()
    }

    /// Handles an execution without elements: statistics and sums are 0.
    fn without_elements(&self, call: &Call<'_>) {
        for index in 0..self.shape.samples * self.shape.groups {
            // SAFETY: the outputs were checked.
            unsafe {
                if self.writes_statistics && !call.mean.is_null() {
                    call.mean.add(index).write_unaligned(0.0);
                }
                if self.writes_statistics {
                    call.variance.add(index).write_unaligned(0.0);
                }
            }
        }
    }
}

impl<S: Sweeps> Implementation for Plan<S> {
    fn variant(&self) -> &'static Variant {
        self.variant
    }

    fn scratchpad_size(&self) -> usize {
        let workspaces = Workspace::size(self.width()).saturating_mul(self.blocks());
        let [scale, shift] = self.rooms();
        let stages = self.stage_bytes().saturating_mul(self.blocks());
        let rest = self.sums_room().saturating_add(workspaces).saturating_add(stages);
        scale.saturating_add(shift).saturating_add(rest)
    }

    fn execute(&self, execution: &Execution<'_>) -> usize {
        let mut call = self.call(execution);
        let [chain, plain] = [&self.chain, &self.plain_chain].map(|chain| {
            // SAFETY: the execution's buffers were checked.
            chain.as_ref().map(|chain| unsafe { chain.bind(execution.arguments) })
        });
        (call.chain, call.plain_chain) = (chain.as_ref().or(plain.as_ref()), plain.as_ref());
        let output = if self.forward { call.dst } else { call.diff_src };
        // SAFETY: the execution's buffers were checked.
        unsafe { self.padding.clear(output) };
        let Shape { samples, channels, positions, .. } = self.shape;
        if samples == 0 || positions == 0 {
            self.without_elements(&call);
            Sums::clear_outputs(execution, channels);
            return 1;
        }
        let rooms: usize = self.rooms().iter().sum();
        let sums = Sums {
            start: execution.scratchpad.wrapping_add(rooms).cast(),
            channels,
            blocks: self.sample_blocks(),
        };
        let scratchpad = Shared(execution.scratchpad.wrapping_add(rooms + self.sums_room()));
        let (units, blocks, width) = (self.units(), self.blocks(), self.width());
        let elements = samples * channels * positions;
        let (threads, length) = (width_of(execution.threads, elements), length_of(elements));
        let stages_at = scratchpad.get().wrapping_add(blocks * Workspace::size(width));
        let (stages_at, slots) = (Shared(stages_at), Slots::new(blocks));
        let threads = execution.run(blocks, threads, length, &|block| {
            let start = scratchpad.get().wrapping_add(block * Workspace::size(width));
            // SAFETY: the aligned scratchpad has a workspace for each block.
            let mut work = unsafe { Workspace::new(start, width) };
            let slot = self.around.as_ref().map(|around| (around, slots.take()));
            let stages = slot.as_ref().map_or([std::ptr::null_mut(); TENSORS], |(around, slot)| {
                around.stages(stages_at.get().wrapping_add(slot.number() * self.stage_bytes()))
            });
            for unit in units * block / blocks..units * (block + 1) / blocks {
                self.unit((&call, execution.arguments), unit, &mut work, (sums, stages));
            }
        });
        sums.join(execution);
        threads.max(1)
    }
}
