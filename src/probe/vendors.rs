//! Other makers' devices: their own tools are run, and what they print is read as a dump.

use crate::input::Source;
use crate::observe::Observation;
use crate::read::read_source;
use std::io::ErrorKind;
use std::process::{Command, Stdio};

/// Each maker's tools, the first that answers is taken.
const TOOLS: [(&str, &[&str]); 3] = [
    ("amd-smi", &["metric", "--mem-usage"]),
    ("rocm-smi", &["--showmeminfo", "vram"]),
    ("npu-smi", &["info"]),
];

/// What a tool told, the command as the source of every figure; and why the others told nothing.
pub(super) fn sample() -> (Vec<Observation>, Vec<String>) {
    let mut reasons = Vec::new();
    for (program, arguments) in TOOLS {
        let shown = format!("{program} {}", arguments.join(" "));
        let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
        let output = match output {
            Ok(output) => output,
            // The usual case is not worth a word: it is another maker's tool.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => {
                reasons.push(format!("`{shown}`: {error}"));
                continue;
            }
        };
        match read_source(&Source::memory(&shown, output.stdout)) {
            Ok(reading) if reading.observations.iter().any(|sample| sample.total.is_some()) => {
                return (reading.observations, reasons);
            }
            Ok(_) => reasons.push(format!("`{shown}` printed no memory figures ({})", output.status)),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    if reasons.is_empty() {
        reasons.push("amd-smi, rocm-smi and npu-smi are not installed".to_string());
    }
    (Vec::new(), reasons)
}
