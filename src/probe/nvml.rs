//! NVML: what the driver tells for the asking, without a context and so without taking memory.

use super::error::NvmlUnavailable;
use super::ffi;
use super::visible::Visibility;
use crate::grammar::nvidia_smi::cells::bus_id_cell;
use crate::observe::{Instrument, MemoryCall, MigInstance, Observation, ProbeFacts, ProcessUse};
use crate::place::Place;
use crate::quantity::Quantity;
use crate::time::Stamp;
use nvml_wrapper::enum_wrappers::device::{EccCounter, RetirementCause};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Device, Nvml};
use std::ffi::{OsStr, OsString};

/// Names another library than the driver's, for tests and unusual installations.
pub const NVML_VARIABLE: &str = "VRAMLEDGER_NVML";
/// Longest process name asked for.
const NAME_BYTES: usize = 512;

#[cfg(windows)]
const LIBRARIES: [&str; 1] = ["nvml.dll"];
#[cfg(not(windows))]
const LIBRARIES: [&str; 2] = ["libnvidia-ml.so.1", "libnvidia-ml.so"];

/// NVML, opened.
pub(super) struct NvmlProbe {
    nvml: Nvml,
    driver: Option<String>,
    cuda_version: Option<String>,
}

impl NvmlProbe {
    /// Loads and opens NVML.
    pub(super) fn open() -> Result<NvmlProbe, NvmlUnavailable> {
        let named = std::env::var_os(NVML_VARIABLE);
        let candidates: Vec<OsString> = match named {
            Some(named) => vec![named],
            None => LIBRARIES.iter().map(OsString::from).collect(),
        };
        let mut failure = NvmlUnavailable::Library("no library is named".to_string());
        for candidate in candidates {
            match Nvml::builder().lib_path(OsStr::new(&candidate)).init() {
                Ok(nvml) => {
                    let driver = nvml.sys_driver_version().ok();
                    let cuda_version = nvml.sys_cuda_driver_version().ok().map(super::cuda_version);
                    return Ok(NvmlProbe { nvml, driver, cuda_version });
                }
                Err(error) => failure = error.into(),
            }
            if !matches!(failure, NvmlUnavailable::Library(_)) {
                break;
            }
        }
        Err(failure)
    }

    /// One observation a device, or a MIG instance of it. A device that does not answer is there with its remark.
    pub(super) fn sample(
        &self,
        place: &Place,
        taken_at: Stamp,
        visible: &Visibility,
    ) -> Result<Vec<Observation>, NvmlUnavailable> {
        let count = self.nvml.device_count()?;
        let mut samples: Vec<Observation> = (0..count)
            .flat_map(|index| match self.nvml.device_by_index(index) {
                Ok(device) => self.device(place, taken_at, index, &device),
                Err(error) => vec![self.silent(place, taken_at, index, &error)],
            })
            .collect();
        number_as_cuda_does(&mut samples, visible);
        Ok(samples)
    }

    /// A device's memory in use now, by its UUID. `None` where it can't be told.
    pub(super) fn used(&self, uuid: &str) -> Option<i128> {
        let device = self.nvml.device_by_uuid(uuid).ok()?;
        self.memory(&device).ok()?.used.map(Quantity::low)
    }

    fn silent(&self, place: &Place, taken_at: Stamp, index: u32, error: &NvmlError) -> Observation {
        let mut sample = self.blank(place, taken_at, index);
        remark(&mut sample, told("the device", error));
        sample
    }

    fn blank(&self, place: &Place, taken_at: Stamp, index: u32) -> Observation {
        Observation {
            taken_at: Some(taken_at),
            driver: self.driver.clone(),
            device: Some(index),
            probe: Some(Box::new(ProbeFacts {
                live: true,
                cuda_version: self.cuda_version.clone(),
                ..ProbeFacts::default()
            })),
            ..Observation::unknown(place.clone(), Instrument::Nvml)
        }
    }

    /// A device, and its MIG instances behind it.
    fn device(&self, place: &Place, taken_at: Stamp, index: u32, device: &Device<'_>) -> Vec<Observation> {
        let mut whole = self.figures(self.blank(place, taken_at, index), device);
        if let Ok(pci) = device.pci_info()
            && let Some(facts) = whole.probe.as_mut()
        {
            whole.bus = bus_id_cell(&pci.bus_id);
            facts.pci = Some(pci.bus_id);
        }
        health(&self.nvml, device, &mut whole);
        let mut samples = vec![whole];
        // A device whose MIG mode can't be asked has none.
        let most =
            device.mig_mode().ok().filter(|mode| mode.current != 0).and(device.mig_device_count().ok());
        for number in 0..most.unwrap_or(0) {
            let Ok(instance) = device.mig_device_by_index(number) else { continue };
            let ids = ffi::nvml_instances(&self.nvml, &instance).ok();
            let mut sample = self.figures(self.blank(place, taken_at, index), &instance);
            sample.mig = Some(MigInstance {
                gpu_instance: ids.map(|ids| ids.0),
                compute_instance: ids.map(|ids| ids.1),
                device: Some(number),
            });
            samples.push(sample);
        }
        samples
    }

    /// Name, UUID, memory and processes of a device or an instance.
    fn figures(&self, mut sample: Observation, device: &Device<'_>) -> Observation {
        sample.uuid = device.uuid().ok();
        sample.name = device.name().ok();
        match self.memory(device) {
            Ok(memory) => {
                (sample.total, sample.used, sample.free, sample.reserved) =
                    (memory.total, memory.used, memory.free, memory.reserved);
                if memory.call == MemoryCall::First {
                    remark(
                        &mut sample,
                        "memory by NVML's first call: this driver lacks the second, so `used` counts what the driver keeps"
                            .to_string(),
                    );
                }
                if let Some(facts) = sample.probe.as_mut() {
                    facts.memory_call = Some(memory.call);
                }
            }
            Err(NvmlError::NotSupported) => remark(
                &mut sample,
                "NVML has no memory figures for this device (NVML_ERROR_NOT_SUPPORTED): it may share the host's memory; \
                 --cuda asks CUDA"
                    .to_string(),
            ),
            Err(error) => remark(&mut sample, told("its memory", &error)),
        }
        self.processes(&mut sample, device);
        sample
    }

    fn memory(&self, device: &Device<'_>) -> Result<Memory, NvmlError> {
        let exact = |bytes: u64| Some(Quantity::exact(i128::from(bytes)));
        match device.memory_info() {
            Ok(memory) => Ok(Memory {
                total: exact(memory.total),
                used: exact(memory.used),
                free: exact(memory.free),
                reserved: exact(memory.reserved),
                call: MemoryCall::Second,
            }),
            // The symbol is missing, or the version in the struct is one that the library does not know.
            Err(
                NvmlError::FailedToLoadSymbol(_)
                | NvmlError::FunctionNotFound
                | NvmlError::InvalidArg
                | NvmlError::UnexpectedVariant(_),
            ) => {
                let (total, used, free) = ffi::nvml_memory_v1(&self.nvml, device)?;
                Ok(Memory {
                    total: exact(total),
                    used: exact(used),
                    free: exact(free),
                    reserved: None,
                    call: MemoryCall::First,
                })
            }
            Err(error) => Err(error),
        }
    }

    fn processes(&self, sample: &mut Observation, device: &Device<'_>) {
        let mut listed: Vec<(ProcessInfo, &str)> = Vec::new();
        match device.running_compute_processes() {
            Ok(found) => {
                sample.processes_listed = true;
                listed.extend(found.into_iter().map(|process| (process, "C")));
            }
            Err(error) => remark(sample, told("its processes", &error)),
        }
        for process in device.running_graphics_processes().unwrap_or_default() {
            match listed.iter_mut().find(|(known, _)| known.pid == process.pid) {
                Some((_, kind)) => *kind = "C+G",
                None => listed.push((process, "G")),
            }
        }
        sample.processes = listed.into_iter().map(|(process, kind)| self.process(&process, kind)).collect();
        let sum: Option<Quantity> = sample.processes.iter().map(|process| process.used).sum();
        let hidden = sample.used.zip(sum).map(|(used, sum)| used - sum);
        let context = crate::quantity::MIB * 256;
        if sample.processes_listed && hidden.is_some_and(|hidden| hidden.surely_above(context)) {
            let amount = hidden.map(crate::quantity::mib_whole).unwrap_or_default();
            remark(
                sample,
                format!(
                    "{amount} MiB in use belong to no listed process: processes of other containers are not shown in \
                     here; run it on the host"
                ),
            );
        }
    }

    fn process(&self, process: &ProcessInfo, kind: &str) -> ProcessUse {
        let name = match self.nvml.sys_process_name(process.pid, NAME_BYTES) {
            Ok(name) => name,
            // As nvidia-smi prints it: the id is of another namespace, or the process has gone.
            Err(NvmlError::NotFound) => "[Not Found]".to_string(),
            Err(_) => "[N/A]".to_string(),
        };
        ProcessUse {
            pid: Some(u64::from(process.pid)),
            name,
            kind: Some(kind.to_string()),
            used: match process.used_gpu_memory {
                UsedGpuMemory::Used(bytes) => Some(Quantity::exact(i128::from(bytes))),
                UsedGpuMemory::Unavailable => None,
            },
        }
    }
}

/// The memory figures of one call.
struct Memory {
    total: Option<Quantity>,
    used: Option<Quantity>,
    free: Option<Quantity>,
    reserved: Option<Quantity>,
    call: MemoryCall,
}

fn told(what: &str, error: &NvmlError) -> String {
    format!("{what} can't be asked: {}", super::error::nvml_words(error))
}

fn remark(sample: &mut Observation, words: String) {
    if let Some(facts) = sample.probe.as_mut() {
        facts.remarks.push(words);
    }
}

/// Error correction and what it took out of use.
fn health(nvml: &Nvml, device: &Device<'_>, sample: &mut Observation) {
    if let Ok(rows) = ffi::nvml_remapped_rows(nvml, device)
        && (rows.0 + rows.1 > 0 || rows.2)
    {
        let waiting = if rows.2 { ", more at the next reset" } else { "" };
        let words = format!("{} rows of its memory are remapped to spare ones{waiting}", rows.0 + rows.1);
        remark(sample, words);
    }
    let retired: usize = [RetirementCause::MultipleSingleBitEccErrors, RetirementCause::DoubleBitEccError]
        .into_iter()
        .filter_map(|cause| device.retired_pages(cause).ok())
        .map(|pages| pages.len())
        .sum();
    if retired > 0 {
        remark(sample, format!("{retired} pages of its memory are retired: they are missing from free"));
    }
    if let Ok(errors) = device
        .total_ecc_errors(nvml_wrapper::enum_wrappers::device::MemoryError::Uncorrected, EccCounter::Volatile)
        && errors > 0
    {
        remark(sample, format!("{errors} uncorrected memory errors since the driver was loaded"));
    }
}

/// Fills in CUDA's numbers, as `CUDA_VISIBLE_DEVICES` gives them.
fn number_as_cuda_does(samples: &mut [Observation], visible: &Visibility) {
    let whole = || samples.iter().filter(|sample| sample.mig.is_none());
    let uuids: Vec<String> = whole().map(|sample| sample.uuid.clone().unwrap_or_default()).collect();
    let alike = whole().all(|sample| sample.name == whole().next().and_then(|first| first.name.clone()));
    let borrowed: Vec<&str> = uuids.iter().map(String::as_str).collect();
    let ordinals = visible.ordinals(&borrowed, alike);
    let mut ordinals = ordinals.into_iter();
    for sample in samples.iter_mut().filter(|sample| sample.mig.is_none()) {
        let ordinal = ordinals.next().flatten();
        if let Some(facts) = sample.probe.as_mut() {
            facts.cuda_device = ordinal;
            facts.hidden = visible.hides(ordinal, alike);
        }
    }
}
