//! `nvidia-smi -L`: `GPU 0: NVIDIA H200 (UUID: GPU-…)`. It has no figures, but it connects the numbers of a box with
//! the UUIDs of a process CSV.

use super::block::{Block, DeviceFacts, DeviceId, Form, FormReader, Found};
use super::cells::{uuid_cell, whole};
use crate::input::LogicalLine;
use crate::observe::Instrument;
use nom::bytes::complete::{is_not, tag, take_until};
use nom::character::complete::{char, u32 as number};
use nom::combinator::map_opt;
use nom::sequence::{delimited, terminated};

/// Literals by which a scanner finds its lines.
pub(super) const HINTS: [&str; 1] = ["(UUID: GPU-"];

/// Reads the list.
#[derive(Debug, Default)]
pub(super) struct List {
    block: Option<Block>,
}

/// A device's line: number, name, UUID.
fn device(text: &str) -> Option<(u32, &str, &str)> {
    let index = delimited(tag("GPU "), number, tag(": "));
    let name = terminated(take_until(" (UUID: "), tag(" (UUID: "));
    let uuid = terminated(map_opt(is_not(")"), uuid_cell), char(')'));
    whole((index, name, uuid), text)
}

impl FormReader for List {
    fn take(&mut self, line: &LogicalLine, found: &mut Found) -> bool {
        let Some((index, name, uuid)) = device(&line.text) else { return false };
        let id = DeviceId { uuid: Some(uuid.to_owned()), ..DeviceId::numbered(index) };
        if self.block.as_ref().is_some_and(|block| block.is_done_for(&id)) {
            self.close(found);
        }
        // The time above is left to a form with figures.
        let block = self
            .block
            .get_or_insert_with(|| Block::new(line.place.clone(), Form::DeviceList, Instrument::NvidiaSmi));
        let name = Some(name.trim().to_owned());
        block.devices.push(DeviceFacts { name, ..DeviceFacts::new(line.place.clone(), id) });
        true
    }

    fn close(&mut self, found: &mut Found) {
        found.keep(self.block.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_line_has_number_name_and_uuid() {
        let uuid = "GPU-00000000-0000-4000-8000-000000000000";
        assert_eq!(device(&format!("GPU 0: NVIDIA H200 (UUID: {uuid})")), Some((0, "NVIDIA H200", uuid)));
        assert_eq!(device("GPU 0: busy"), None);
    }
}
