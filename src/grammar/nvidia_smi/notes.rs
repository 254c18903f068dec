//! What could not be read from a dump, and why: the other half of a parse, so that nothing is dropped in silence.

use crate::observe::Instrument;
use crate::place::Place;
use crate::quantity::{Quantity, mib_text, mib_whole};
use std::fmt;
use thiserror::Error;

/// A remark on a dump, with the place that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpNote {
    /// Where the cause stands.
    pub place: Place,
    /// What is wrong.
    pub problem: DumpProblem,
}

impl fmt::Display for DumpNote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.problem)
    }
}

/// Why a dump says less than it seems to. Each wording ends with what the reader can do, where there is something.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DumpProblem {
    /// CSV rows whose columns cannot be told apart by their values.
    #[error(
        "CSV without its header line: used, free and total cannot be told apart by value; \
         query again with --format=csv, without noheader"
    )]
    HeaderMissing,
    /// CSV rows that don't say which device they are about.
    #[error("the CSV names no device; add index, uuid or pci.bus_id to the query")]
    DeviceNotNamed,
    /// An instrument that prints shares of the memory instead of sizes.
    #[error("this {} output carries memory in percent only; {}", .instrument.name(), .remedy)]
    PercentOnly {
        /// Who printed it.
        instrument: Instrument,
        /// The command that prints sizes.
        remedy: &'static str,
    },
    /// A process list without any figure, though memory is in use.
    #[error(
        "{} MiB are in use and the process list tells nothing of whom: attribution is impossible from here; \
         in a container, run {} on the host",
        mib_whole(*.used), .instrument.name()
    )]
    NoAttribution {
        /// Who printed the list.
        instrument: Instrument,
        /// What the device has in use.
        used: Quantity,
    },
    /// A process's figure of six digits, cut by nvidia-smi itself.
    #[error(
        "nvidia-smi cut the memory of process {} itself: it is {} MiB; \
         --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv prints it whole",
        .pid.map_or_else(|| "?".to_owned(), |pid| pid.to_string()),
        mib_text(*.used)
    )]
    FigureCut {
        /// The process.
        pid: Option<u64>,
        /// What is known of its memory.
        used: Quantity,
    },
    /// A process list that the device or the permissions do not allow.
    #[error("the instrument does not list this device's processes: {words}")]
    ProcessesRefused {
        /// Its own words.
        words: String,
    },
    /// A box that ends before its first device.
    #[error("the {} output stops before its first device", .instrument.name())]
    HeaderOnly {
        /// Who printed it.
        instrument: Instrument,
    },
    /// A listing of some of the attached devices: their order does not give their number.
    #[error("{shown} of {attached} attached devices are shown: their order does not tell their number")]
    SomeDevices {
        /// Devices in the dump.
        shown: usize,
        /// Devices that it says are attached.
        attached: usize,
    },
    /// A line of XML that is no XML.
    #[error("damaged XML: {reason}")]
    DamagedXml {
        /// What the XML reader says.
        reason: String,
    },
    /// What a live probe could not ask, or left out.
    #[error("{words}")]
    Probe {
        /// The probe's own words.
        words: String,
    },
    /// The instrument itself failed.
    #[error("the instrument failed: {words}")]
    InstrumentFailed {
        /// Its own words.
        words: String,
    },
}
