//! rocm-smi: `--showmeminfo vram` as text and as CSV, in bytes. Its default table has only percent, which is said.

use crate::grammar::nvidia_smi::block::{Block, DeviceFacts, DeviceId, Form, FormReader, Found};
use crate::grammar::nvidia_smi::cells::{bytes_number, offset};
use crate::grammar::nvidia_smi::notes::DumpProblem;
use crate::input::LogicalLine;
use crate::observe::Instrument;
use crate::quantity::Quantity;
use nom::bytes::complete::{is_not, tag};
use nom::character::complete::{char, space0, u32 as index};
use nom::combinator::rest;
use nom::sequence::{delimited, preceded, terminated};
use nom::{IResult, Parser};

/// Literals by which a scanner finds its lines.
pub(crate) const HINTS: [&str; 4] = ["ROCm System Management", "VRAM Total", "vram Total", "VRAM%"];

/// The command that prints sizes.
const REMEDY: &str = "rocm-smi --showmeminfo vram prints bytes";

/// Reads rocm-smi's output.
#[derive(Debug, Default)]
pub(crate) struct Rocm {
    block: Option<Block>,
    /// The labels of a CSV heading.
    columns: Vec<String>,
    /// Whether percent only has been noted for this output.
    noted: bool,
}

/// `GPU[0] : VRAM Total Memory (B): 206141652992`: device, label, content.
fn labelled(text: &str) -> IResult<&str, (u32, &str, &str)> {
    let device = delimited(tag("GPU["), index, char(']'));
    let label = terminated(is_not(":"), char(':'));
    (terminated(device, (space0, char(':'), space0)), label, preceded(space0, rest)).parse(text)
}

/// What a label is about.
enum Label {
    Total,
    Used,
    Name,
    Percent,
}

/// Classifies a label, letter case aside: it changed over versions.
fn classify(label: &str) -> Option<Label> {
    let label = label.trim().to_ascii_lowercase();
    Some(match label.as_str() {
        "vram total memory (b)" => Label::Total,
        "vram total used memory (b)" => Label::Used,
        "card series" | "card model" | "product name" => Label::Name,
        "gpu memory allocated (vram%)" | "gpu memory use (%)" => Label::Percent,
        _ => return None,
    })
}

impl Rocm {
    fn fact(&mut self, line: &LogicalLine, device: u32, label: &str, content: &str, found: &mut Found) {
        let Some(label) = classify(label) else { return };
        if let Label::Percent = label {
            self.percent(line, found);
            return;
        }
        let amount: Option<Quantity> = bytes_number(content);
        let id = DeviceId::numbered(device);
        let told = |facts: &DeviceFacts| match label {
            Label::Total => facts.total.is_some(),
            Label::Used => facts.used.is_some(),
            Label::Name | Label::Percent => false,
        };
        let again = |block: &Block| {
            block.is_full() || block.devices.iter().any(|facts| facts.id == id && told(facts))
        };
        if self.block.as_ref().is_some_and(again) {
            found.keep(self.block.take());
        }
        let block =
            self.block.get_or_insert_with(|| found.open(&line.place, Form::Relative, Instrument::RocmSmi));
        let place = line.place.further(offset(&line.text, content));
        let at = block.devices.iter().position(|facts| facts.id == id).unwrap_or_else(|| {
            block.devices.push(DeviceFacts::new(place.clone(), id));
            block.devices.len() - 1
        });
        let Some(facts) = block.devices.get_mut(at) else { return };
        match label {
            Label::Total => facts.total = amount,
            Label::Used => (facts.used, facts.place) = (amount, place),
            Label::Name => facts.name = Some(content.trim().to_owned()),
            Label::Percent => {}
        }
    }

    fn percent(&mut self, line: &LogicalLine, found: &mut Found) {
        if !std::mem::replace(&mut self.noted, true) {
            let problem = DumpProblem::PercentOnly { instrument: Instrument::RocmSmi, remedy: REMEDY };
            found.note(&line.place, problem);
        }
    }

    /// A row of the CSV variant: `card0,206141652992,297521152`.
    fn csv_row(&mut self, line: &LogicalLine, text: &str, found: &mut Found) -> bool {
        let mut cells = text.split(',');
        let device =
            cells.next().and_then(|card| card.strip_prefix("card")).and_then(|card| card.parse().ok());
        let Some(device) = device else { return false };
        for (label, content) in self.columns.clone().iter().zip(cells) {
            self.fact(line, device, label, content, found);
        }
        true
    }
}

impl FormReader for Rocm {
    fn take(&mut self, line: &LogicalLine, found: &mut Found) -> bool {
        let text = line.text.trim();
        if text.contains("ROCm System Management Interface") {
            self.close(found);
            return true;
        }
        if let Ok((_, (device, label, content))) = labelled(text) {
            self.fact(line, device, label, content, found);
            return true;
        }
        if text.starts_with("device,") && text.contains("VRAM Total") {
            self.close(found);
            self.columns = text.split(',').skip(1).map(str::to_owned).collect();
            return true;
        }
        if text.contains("VRAM%") && text.contains("GPU%") {
            self.percent(line, found);
            return true;
        }
        !self.columns.is_empty() && self.csv_row(line, text, found)
    }

    fn close(&mut self, found: &mut Found) {
        found.keep(self.block.take());
        *self = Rocm::default();
    }
}
