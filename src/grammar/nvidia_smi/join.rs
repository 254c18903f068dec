//! Blocks to samples: which blocks, of which forms, are of one moment.
//!
//! Separate because no form knows of another, and neither of them knows whether the next one is of the same sample.

use super::block::{Block, DeviceFacts, Form, MOST_DEVICES};
use super::devices::Devices;
use super::notes::DumpNote;
use crate::observe::{Instrument, Observation};
use crate::quantity::Quantity;
use crate::time::Stamp;

/// Forms printed one after another by a script are one sample if their clocks are no further apart than this.
/// Each call of nvidia-smi takes up to a second or two on a machine with eight devices.
const SAME_SAMPLE_SECONDS: f64 = 10.0;

/// How far ahead a process box without devices looks for the box that it may belong to.
const LOOK_AHEAD: usize = 8;

/// Blocks of one moment.
#[derive(Debug)]
pub(super) struct Sample {
    pub blocks: Vec<Block>,
    pub instrument: Instrument,
    pub taken_at: Option<Stamp>,
}

/// Joins blocks to observations, in the order of the source.
pub(super) fn observations(blocks: Vec<Block>, notes: &mut Vec<DumpNote>) -> Vec<Observation> {
    let samples = samples(blocks).into_iter();
    // A list of devices alone is no observation: it only connects what other forms name.
    let tells =
        |block: &Block| block.form != Form::DeviceList || block.devices.iter().any(DeviceFacts::has_figures);
    let samples = samples.filter(|sample| sample.blocks.iter().any(tells));
    samples.flat_map(|sample| Devices::of(sample).observations(notes)).collect()
}

/// Groups blocks into samples.
fn samples(blocks: Vec<Block>) -> Vec<Sample> {
    let mut samples: Vec<Sample> = Vec::new();
    let forms: Vec<Form> = blocks.iter().map(|block| block.form).collect();
    for (at, block) in blocks.into_iter().enumerate() {
        let ahead = forms.get(at + 1..).unwrap_or_default();
        match samples.last_mut() {
            Some(sample) if sample.takes(&block, ahead) => {
                sample.taken_at = sample.taken_at.or(block.taken_at);
                sample.blocks.push(block);
            }
            _ => samples.push(Sample {
                instrument: block.instrument,
                taken_at: block.taken_at,
                blocks: vec![block],
            }),
        }
    }
    samples
}

impl Sample {
    /// Whether a block is of the same moment: same instrument, a form not told yet, clocks that agree as far as
    /// there are any, and no figure that contradicts. `ahead` are the forms that follow it.
    fn takes(&self, block: &Block, ahead: &[Form]) -> bool {
        let has = |form| self.blocks.iter().any(|told| told.form == form);
        if self.instrument != block.instrument || has(block.form) {
            return false;
        }
        if block.form == Form::DeviceBox && has(Form::ProcessBox) {
            // A list before its devices is the end of the sample before, unless these devices get no list.
            let next =
                ahead.iter().take(LOOK_AHEAD).find(|form| matches!(form, Form::DeviceBox | Form::ProcessBox));
            if next == Some(&Form::ProcessBox) {
                return false;
            }
        }
        let apart = match (self.taken_at, block.taken_at) {
            (Some(one), Some(other)) => {
                other.seconds_since(&one).is_none_or(|seconds| seconds.abs() > SAME_SAMPLE_SECONDS)
            }
            _ => false,
        };
        !apart && !self.contradicts(block)
    }

    fn contradicts(&self, block: &Block) -> bool {
        let differ = |one: Option<Quantity>, other: Option<Quantity>| {
            one.zip(other).is_some_and(|(one, other)| !one.meets(other))
        };
        block.devices.iter().take(MOST_DEVICES).any(|device| {
            self.blocks.iter().flat_map(|told| told.devices.iter().take(MOST_DEVICES)).any(|told| {
                told.id.same_as(&device.id)
                    && (differ(told.used, device.used) || differ(told.total, device.total))
            })
        })
    }
}
