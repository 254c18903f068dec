//! Recorded samples: one observation a line of JSON, written by `probe --record` and read back wherever a dump is.

use crate::grammar::nvidia_smi::cells::bus_id_cell;
use crate::input::LogicalLine;
use crate::observe::{Instrument, MigInstance, Observation, ProbeFacts, ProcessUse};
use crate::quantity::{MIB, Quantity};
use crate::report::{Amount, ObservationReport, observation_report};
use crate::time::Stamp;
use serde::{Deserialize, Serialize};

/// The name of this format's version; also the literal by which a scanner finds its lines.
pub const SAMPLE_SCHEMA: &str = "vramledger.sample/1";
/// Byte counts up to 2^50 come back whole: serde_json's reading of a number is true to the last bit but one.
const LARGEST_EXACT: f64 = 1_125_899_906_842_624.0;

#[derive(Serialize, Deserialize)]
struct Sample {
    schema: String,
    observation: ObservationReport,
}

/// A sample as one line, without its line feed.
///
/// # Errors
/// Never for observations; serde's signature says so.
pub fn sample_line(observation: &Observation) -> serde_json::Result<String> {
    serde_json::to_string(&Sample {
        schema: SAMPLE_SCHEMA.to_string(),
        observation: observation_report(observation),
    })
}

/// The sample in a line. `None` where the line is none, or a damaged one.
pub fn read_sample(line: &LogicalLine) -> Option<Observation> {
    if !line.text.contains(SAMPLE_SCHEMA) {
        return None;
    }
    let Sample { schema, observation } = serde_json::from_str(&line.text).ok()?;
    if schema != SAMPLE_SCHEMA {
        return None;
    }
    let facts = ProbeFacts {
        live: false,
        pci: observation.pci,
        cuda_device: observation.cuda_device,
        cuda_version: observation.cuda_version,
        own_context: amount(observation.own_context),
        remarks: observation.remarks,
        ..ProbeFacts::default()
    };
    let process = |process: crate::report::ProcessReport| ProcessUse {
        pid: process.pid,
        name: process.name,
        kind: process.kind,
        used: amount(process.used),
    };
    Some(Observation {
        taken_at: observation.taken_at.as_deref().and_then(Stamp::parse),
        driver: observation.driver,
        device: observation.device,
        mig: observation.mig.map(|mig| MigInstance {
            gpu_instance: mig.gi,
            compute_instance: mig.ci,
            device: mig.dev,
        }),
        bus: facts.pci.as_deref().and_then(bus_id_cell),
        uuid: observation.uuid,
        name: observation.name,
        total: amount(observation.total),
        used: amount(observation.used),
        free: amount(observation.free),
        reserved: amount(observation.reserved),
        processes: observation.processes.into_iter().map(process).collect(),
        processes_listed: observation.processes_listed.unwrap_or_default(),
        probe: Some(Box::new(facts)),
        ..Observation::unknown(line.place.clone(), Instrument::named(&observation.instrument)?)
    })
}

/// Bytes of MiB, rounded to whole ones.
fn amount(amount: Option<Amount>) -> Option<Quantity> {
    let amount = amount?;
    let bytes = |mib: f64| {
        let bytes = (mib * MIB as f64).round();
        (bytes.abs() <= LARGEST_EXACT).then_some(bytes as i128)
    };
    Some(Quantity::between(bytes(amount.low_mib)?, bytes(amount.high_mib)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Place;
    use proptest::prelude::*;
    use std::sync::Arc;

    fn line(text: String) -> LogicalLine {
        LogicalLine {
            place: Place::new(&Arc::from("samples"), 1, 1),
            text,
            stream: Arc::from(""),
            envelope_time: None,
            hit: true,
            cut: false,
        }
    }

    proptest! {
        #[test]
        fn samples_come_back_to_the_byte(total in 0_i128..1 << 50, used in 0_i128..(1 << 50) - 7, pid in any::<u64>()) {
            let mut sample = Observation::unknown(Place::new(&Arc::from("samples"), 1, 1), Instrument::Nvml);
            sample.total = Some(Quantity::exact(total));
            sample.used = Some(Quantity::between(used, used + 7));
            sample.taken_at = Stamp::parse("2026-11-29T13:52:06.123");
            sample.processes_listed = true;
            sample.processes =
                vec![ProcessUse { pid: Some(pid), name: "python \"x\"".into(), kind: None, used: None }];
            sample.probe = Some(Box::new(ProbeFacts { own_context: Some(Quantity::exact(used)), ..ProbeFacts::default() }));
            prop_assert_eq!(read_sample(&line(sample_line(&sample).unwrap())), Some(sample));
        }

        #[test]
        fn other_lines_are_none(text in ".*") {
            prop_assert_eq!(read_sample(&line(text.clone() + SAMPLE_SCHEMA)), None);
        }
    }

    #[test]
    fn absurd_figures_are_unknown() {
        let huge = Amount { mib: 1e300, low_mib: 1e300, high_mib: 1e300 };
        assert_eq!(amount(Some(huge)), None);
    }
}
