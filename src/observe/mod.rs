//! Observations: what an outside instrument says of a device at a moment.
//!
//! Parsed dumps and live probes all become this one type, so that the reconciliation does not care
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
    /// NVML, asked by this program.
    Nvml,
    /// The CUDA driver's cuMemGetInfo, asked by this program: its total leaves the driver's reserve out.
    Cuda,
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
            Instrument::Nvml => "nvml",
            Instrument::Cuda => "cuda",
        }
    }

    /// The instrument of this name.
    pub fn named(name: &str) -> Option<Instrument> {
        const ALL: [Instrument; 8] = [
            Instrument::NvidiaSmi,
            Instrument::Nvitop,
            Instrument::Gpustat,
            Instrument::RocmSmi,
            Instrument::AmdSmi,
            Instrument::NpuSmi,
            Instrument::Nvml,
            Instrument::Cuda,
        ];
        ALL.into_iter().find(|instrument| instrument.name() == name)
    }
}

/// A PCI address. The domain is printed with four or eight digits by version, so it is compared as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BusId {
    /// The domain; 0 where none is printed.
    pub domain: u32,
    /// The bus.
    pub bus: u8,
    /// The device on the bus.
    pub device: u8,
    /// The device's function.
    pub function: u8,
}

impl BusId {
    /// The address in NCCL's form, `1b000`: all digits of `0000:1b:00.0` as one hexadecimal number (NCCL `busIdToInt64`).
    pub fn from_digits(digits: &str) -> Option<BusId> {
        let number = u64::from_str_radix(digits, 16).ok()?;
        let byte = |shift: u32| (number >> shift & 0xff) as u8;
        Some(BusId {
            domain: u32::try_from(number >> 20).ok()?,
            bus: byte(12),
            device: byte(4),
            function: (number & 0xf) as u8,
        })
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

/// Which of NVML's memory calls answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryCall {
    /// `nvmlDeviceGetMemoryInfo`: counts the driver's reserve as used.
    First,
    /// `nvmlDeviceGetMemoryInfo_v2`: tells it apart.
    Second,
}

/// What only a probe of this program knows of a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProbeFacts {
    /// Whether it was asked in this run, of this machine; a recorded sample was not.
    pub live: bool,
    /// PCI address.
    pub pci: Option<String>,
    /// The number that CUDA gives the device in this environment.
    pub cuda_device: Option<u32>,
    /// Whether `CUDA_VISIBLE_DEVICES` hides the device.
    pub hidden: bool,
    /// The CUDA version that the driver supports, such as `13.0`.
    pub cuda_version: Option<String>,
    /// What the probe's own CUDA context took while it asked. It is taken out of `used` and put back into `free`.
    pub own_context: Option<Quantity>,
    /// Which of NVML's calls told the memory.
    pub memory_call: Option<MemoryCall>,
    /// Whether the device has no memory of its own: the figures are the host's.
    pub integrated: bool,
    /// What could not be asked, and what takes memory unseen.
    pub remarks: Vec<String>,
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
    /// PCI address, where the form prints one.
    pub bus: Option<BusId>,
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
    /// What only a probe knows; `None` for a parsed dump.
    pub probe: Option<Box<ProbeFacts>>,
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
            bus: None,
            uuid: None,
            name: None,
            total: None,
            used: None,
            free: None,
            reserved: None,
            processes: Vec::new(),
            processes_listed: false,
            probe: None,
        }
    }

    /// Whether this program asked the device itself, in this run.
    pub fn is_live(&self) -> bool {
        self.probe.as_ref().is_some_and(|facts| facts.live)
    }

    /// What the asking itself took of the device, where it took anything.
    pub fn own_context(&self) -> Option<Quantity> {
        self.probe.as_ref()?.own_context
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nccl_prints_the_digits_of_a_bus_id_as_one_number() {
        let known = |domain, bus, device| Some(BusId { domain, bus, device, function: 0 });
        assert_eq!(BusId::from_digits("1b000"), known(0, 0x1b, 0));
        assert_eq!(BusId::from_digits("1000"), known(0, 1, 0));
        assert_eq!(BusId::from_digits("1900c5040"), known(0x1900, 0xc5, 4));
        assert_eq!(BusId::from_digits("bus"), None);
    }
}
