//! `nvidia-smi pmon -s m` and `dmon -s m`: columns named by comment lines, one row per sample and process or device.
//!
//! The `MB` of their headings are MiB. Figures are never cut here, but names are, at fifteen letters.

use super::block::{Block, DeviceFacts, DeviceId, Form, FormReader, Found, ProcessFacts};
use super::cells::{is_unknown, mib_cell, number, number_cell, offset};
use crate::input::LogicalLine;
use crate::observe::{Instrument, ProcessUse};
use std::collections::HashSet;

/// Literals by which a scanner finds the headings of this form.
pub(super) const HINTS: [&str; 4] = ["# gpu", "#gpu", "# Idx", "#Date"];

/// Reads the monitors' rows.
#[derive(Debug, Default)]
pub(super) struct Monitor {
    columns: Vec<String>,
    block: Option<Block>,
    told: HashSet<(u32, Option<u64>)>,
    last_device: Option<u32>,
}

/// The words of a row: blanks part them, in the CSV variant commas.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| letter.is_whitespace() || letter == ',').filter(|word| !word.is_empty())
}

/// The columns of a heading that lists memory or processes.
fn heading(text: &str) -> Option<Vec<String>> {
    let columns: Vec<String> = words(text.strip_prefix('#')?).map(str::to_ascii_lowercase).collect();
    let has = |name: &str| columns.iter().any(|column| column == name);
    (has("gpu") && (has("fb") || has("pid"))).then_some(columns)
}

/// Whether a word can stand in a column of numbers, dates and times.
fn is_measure(word: &str) -> bool {
    is_unknown(word) || word.bytes().all(|byte| byte.is_ascii_digit() || b".:/-".contains(&byte))
}

/// One row by the columns that matter.
#[derive(Debug)]
struct Row<'a> {
    device: u32,
    pid: Option<u64>,
    kind: Option<&'a str>,
    memory: Option<&'a str>,
    name: String,
}

impl Monitor {
    fn row<'a>(&self, text: &'a str) -> Option<Row<'a>> {
        let mut row = Row { device: 0, pid: None, kind: None, memory: None, name: String::new() };
        let mut rest = words(text);
        for (at, column) in self.columns.iter().enumerate() {
            let last = at + 1 == self.columns.len();
            match column.as_str() {
                "command" | "name" if last => row.name = rest.by_ref().collect::<Vec<_>>().join(" "),
                column => {
                    let word = rest.next()?;
                    match column {
                        "gpu" => row.device = number(word)?,
                        "pid" => row.pid = number_cell(word)?,
                        "type" => row.kind = Some(word),
                        "fb" => row.memory = mib_cell(word).map(|_| word),
                        _ if is_measure(word) => {}
                        _ => return None,
                    }
                    if column == "fb" && row.memory.is_none() {
                        return None;
                    }
                }
            }
        }
        rest.next().is_none().then_some(row)
    }

    fn lists_processes(&self) -> bool {
        self.columns.iter().any(|column| column == "pid")
    }

    fn post(&mut self, line: &LogicalLine, row: Row<'_>, found: &mut Found) {
        let of_processes = self.lists_processes();
        let back = self.last_device.is_some_and(|last| row.device < last);
        let full = self.block.as_ref().is_some_and(Block::is_full);
        if back || full || !self.told.insert((row.device, row.pid)) {
            self.finish(found);
            self.told.insert((row.device, row.pid));
        }
        self.last_device = Some(row.device);
        let form = if of_processes { Form::ProcessMonitor } else { Form::DeviceMonitor };
        let block = self.block.get_or_insert_with(|| found.open(&line.place, form, Instrument::NvidiaSmi));
        let id = DeviceId::numbered(row.device);
        let place = line.place.further(row.memory.map_or(0, |word| offset(&line.text, word)));
        let used = row.memory.and_then(|word| mib_cell(word).flatten());
        if !of_processes {
            block.devices.push(DeviceFacts { used, ..DeviceFacts::new(place, id) });
            return;
        }
        if block.devices.last().is_none_or(|device| device.id != id) {
            block
                .devices
                .push(DeviceFacts { processes_listed: true, ..DeviceFacts::new(place.clone(), id.clone()) });
        }
        if row.pid.is_some() {
            let kind = row.kind.filter(|kind| !is_unknown(kind)).map(str::to_owned);
            let listed = ProcessUse { pid: row.pid, name: row.name, kind, used };
            block.processes.push(ProcessFacts { place, device: id, device_name: None, listed, cut: false });
        }
    }

    fn finish(&mut self, found: &mut Found) {
        found.keep(self.block.take());
        self.told.clear();
        self.last_device = None;
    }
}

impl FormReader for Monitor {
    fn take(&mut self, line: &LogicalLine, found: &mut Found) -> bool {
        let text = line.text.trim();
        if text.starts_with('#') {
            if let Some(columns) = heading(text) {
                // The heading comes again every few rows: the same one ends nothing.
                if columns != self.columns {
                    self.close(found);
                    self.columns = columns;
                }
                return true;
            }
            return !self.columns.is_empty() && text.trim_start_matches(['#', ' ']).starts_with("Idx");
        }
        if self.columns.is_empty() || !text.starts_with(|first: char| first.is_ascii_digit()) {
            return false;
        }
        let Some(row) = self.row(text) else { return false };
        self.post(line, row, found);
        true
    }

    fn close(&mut self, found: &mut Found) {
        self.finish(found);
        self.columns.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_of_all_variants_are_known() {
        for text in [
            "# gpu         pid   type     fb   ccpm    command ",
            "# gpu        pid  type    sm   mem   enc   dec    fb   command",
            "# gpu    fb  bar1  ccpm",
            "#Date       Time        gpu     fb   bar1",
            "#gpu, fb, bar1, ccpm",
        ] {
            assert!(heading(text).is_some(), "{text}");
        }
        assert!(heading("# gpu   pwr gtemp mtemp").is_none());
        assert!(heading("# a comment on the gpu").is_none());
    }
}
