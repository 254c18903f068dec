//! gpustat: one line a device, processes at its end:
//! `[0] NVIDIA H200 | 38°C,   0 % | 12345 / 143771 MB | root:python/2135(12300M)`. Its `MB` and `M` are MiB.

use crate::grammar::nvidia_smi::block::{
    Block, DeviceFacts, DeviceId, Form, FormReader, Found, ProcessFacts,
};
use crate::grammar::nvidia_smi::cells::{number, offset, pair_cell};
use crate::input::LogicalLine;
use crate::observe::{Instrument, ProcessUse};
use crate::quantity::Quantity;
use nom::Parser;
use nom::bytes::complete::is_not;
use nom::character::complete::{char, space1, u32 as index};
use nom::sequence::{delimited, separated_pair};

/// Literals by which a scanner finds its lines.
pub(crate) const HINTS: [&str; 2] = [" MB | ", "°C, "];

/// Reads gpustat's lines.
#[derive(Debug, Default)]
pub(crate) struct Gpustat {
    block: Option<Block>,
}

/// `[0] NVIDIA H200`: number and name.
fn device(cell: &str) -> Option<(u32, &str)> {
    let number = delimited(char('['), index::<&str, nom::error::Error<&str>>, char(']'));
    let (_, (number, name)) = separated_pair(number, space1, is_not("|")).parse(cell.trim_start()).ok()?;
    Some((number, name.trim()))
}

/// `root(12300M)`, `root/2135(12300M)`, `root:python/2135(12300M)`. An unknown figure is printed `?M`.
fn process(word: &str) -> Option<ProcessUse> {
    let (who, figure) = word.strip_suffix("M)")?.rsplit_once('(')?;
    let (who, pid) = match who.rsplit_once('/') {
        Some((name, digits)) => match number::<u64>(digits) {
            Some(pid) => (name, Some(pid)),
            None => (who, None),
        },
        None => (who, None),
    };
    let used = number::<u32>(figure).map(|mib| Quantity::whole_mib(i128::from(mib)));
    if used.is_none() && figure != "?" {
        return None;
    }
    let name = who.split_once(':').map_or(who, |(_, command)| command);
    Some(ProcessUse { pid, name: name.to_owned(), kind: None, used })
}

impl FormReader for Gpustat {
    fn take(&mut self, line: &LogicalLine, found: &mut Found) -> bool {
        let mut cells = line.text.split('|');
        let Some((index, name)) = cells.next().and_then(device) else { return false };
        let Some((at, (used, total))) = cells.find_map(|cell| Some((cell, pair_cell(cell)?))) else {
            return false;
        };
        let id = DeviceId::numbered(index);
        if self.block.as_ref().is_some_and(|block| block.is_done_for(&id)) {
            self.close(found);
        }
        let block =
            self.block.get_or_insert_with(|| found.open(&line.place, Form::Relative, Instrument::Gpustat));
        let place = line.place.further(offset(&line.text, at.trim_start()));
        for word in cells.flat_map(str::split_whitespace) {
            if let Some(listed) = process(word) {
                let place = line.place.further(offset(&line.text, word));
                block.processes.push(ProcessFacts {
                    place,
                    device: id.clone(),
                    device_name: None,
                    listed,
                    cut: false,
                });
            }
        }
        let device = DeviceFacts { name: Some(name.to_owned()), used, total, ..DeviceFacts::new(place, id) };
        // Its list may be switched off: only a cell for it says that it was asked for.
        block.devices.push(DeviceFacts { processes_listed: line.text.matches('|').count() >= 3, ..device });
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
    fn processes_of_all_forms_are_read() {
        let read = |word| process(word).map(|read| (read.name, read.pid, read.used.is_some()));
        assert_eq!(read("root(12300M)"), Some(("root".to_owned(), None, true)));
        assert_eq!(read("root/2135(12300M)"), Some(("root".to_owned(), Some(2135), true)));
        assert_eq!(read("root:python/2135(12300M)"), Some(("python".to_owned(), Some(2135), true)));
        assert_eq!(read("root(?M)"), Some(("root".to_owned(), None, false)));
        assert_eq!(read("38°C,"), None);
    }
}
