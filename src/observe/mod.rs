//! Observations: what an outside instrument says of a device at a moment.
//!
//! Parsed dumps, and later live probes, all become this one type, so that the reconciliation does not care
//! which instrument spoke. Unknown cells are `None`, never 0.

use crate::place::Place;
use crate::quantity::Quantity;
use crate::time::Stamp;

/// The tool that an observation comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Instrument {
    /// nvidia-smi in any of its forms: table, `-q`, XML, CSV, pmon, dmon.
    NvidiaSmi,
    /// nvitop's screen.
    Nvitop,
    /// gpustat's lines.
    Gpustat,
    /// rocm-smi.
    RocmSmi,
    /// amd-smi.
    AmdSmi,
    /// npu-smi (Ascend).
    NpuSmi,
}

impl Instrument {
    /// The instrument's own name.
    pub const fn name(self) -> &'static str {
        match self {
            Instrument::NvidiaSmi => "nvidia-smi",
            Instrument::Nvitop => "nvitop",
            Instrument::Gpustat => "gpustat",
            Instrument::RocmSmi => "rocm-smi",
            Instrument::AmdSmi => "amd-smi",
            Instrument::NpuSmi => "npu-smi",
        }
    }
}

/// A MIG instance's coordinates on its parent device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MigInstance {
    /// GPU instance id.
    pub gpu_instance: Option<u32>,
    /// Compute instance id.
    pub compute_instance: Option<u32>,
    /// MIG device number.
    pub device: Option<u32>,
}

/// One process on a device, as an instrument lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessUse {
    /// The process id, where it is shown (container tools hide it).
    pub pid: Option<u64>,
    /// The name as printed, cut or not.
    pub name: String,
    /// `C`, `G`, `C+G`, `M+C`, where printed.
    pub kind: Option<String>,
    /// Its memory on the device, context included.
    pub used: Option<Quantity>,
}

/// What an instrument said of one device at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// Where the device's figures stand.
    pub place: Place,
    /// When the sample was taken, where it says.
    pub taken_at: Option<Stamp>,
    /// Who says so.
    pub instrument: Instrument,
    /// The driver's version, as printed: whether `used` counts the driver's own reserve depends on it.
    pub driver: Option<String>,
    /// The device as the instrument numbers it.
    pub device: Option<u32>,
    /// The MIG instance, where the figures are an instance's.
    pub mig: Option<MigInstance>,
    /// GPU UUID, as printed.
    pub uuid: Option<String>,
    /// Product name, as printed.
    pub name: Option<String>,
    /// Memory of the whole card.
    pub total: Option<Quantity>,
    /// Memory in use. Newer drivers leave the driver's own reserve out, older ones count it in.
    pub used: Option<Quantity>,
    /// Memory free for allocation.
    pub free: Option<Quantity>,
    /// Memory that the driver keeps for itself.
    pub reserved: Option<Quantity>,
    /// Processes listed for this device.
    pub processes: Vec<ProcessUse>,
    /// Whether a process list for this device was part of the sample: tells "no processes" from "not asked".
    pub processes_listed: bool,
}

impl Observation {
    /// An observation with every figure still unknown.
    pub fn unknown(place: Place, instrument: Instrument) -> Self {
        Observation {
            place,
            taken_at: None,
            instrument,
            driver: None,
            device: None,
            mig: None,
            uuid: None,
            name: None,
            total: None,
            used: None,
            free: None,
            reserved: None,
            processes: Vec::new(),
            processes_listed: false,
        }
    }
}
