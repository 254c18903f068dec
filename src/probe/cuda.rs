//! The CUDA driver: cuMemGetInfo's free and total, the figures that SGLang prints as `avail mem`.
//!
//! Asking takes a context, and a context takes memory of the device. NVML measures how much, before and after; the
//! figures given here are those of the device without it.

use super::error::{CudaError, CudaUnavailable};
use super::ffi::{CudaDevice, CudaLibrary, PrimaryContext};
use super::nvml::NvmlProbe;
use crate::grammar::nvidia_smi::cells::bus_id_cell;
use crate::observe::{Instrument, Observation, ProbeFacts};
use crate::place::Place;
use crate::quantity::{MIB, Quantity, mib_text, mib_whole};
use crate::time::Stamp;
use std::ffi::OsString;

/// Names another library than the driver's, for tests and unusual installations.
pub const CUDA_VARIABLE: &str = "VRAMLEDGER_CUDA";

#[cfg(windows)]
const LIBRARY: &str = "nvcuda.dll";
#[cfg(not(windows))]
const LIBRARY: &str = "libcuda.so.1";

/// What cuInit alone may keep of a device until the process ends: 3.25 MiB on an H200.
const KEPT_BY_INIT: i128 = 16 * MIB;

/// The CUDA driver, started.
pub(super) struct CudaProbe {
    library: CudaLibrary,
    version: String,
}

impl CudaProbe {
    /// Loads the driver's library and starts it.
    pub(super) fn open() -> Result<CudaProbe, CudaUnavailable> {
        let path = std::env::var_os(CUDA_VARIABLE).unwrap_or_else(|| OsString::from(LIBRARY));
        let library =
            CudaLibrary::load(&path).map_err(|error| CudaUnavailable::Library(with_causes(&error)))?;
        library.init()?;
        let version = super::cuda_version(library.driver_version()?);
        Ok(CudaProbe { library, version })
    }

    /// One observation a device that CUDA sees and `wanted` takes. `by_nvml` are NVML's observations of the same moment;
    /// a device that CUDA can't tell of leaves its remark there.
    pub(super) fn sample(
        &self,
        (place, taken_at): (&Place, Stamp),
        nvml: Option<&NvmlProbe>,
        by_nvml: &mut [Observation],
        wanted: &dyn Fn(Option<u32>) -> bool,
    ) -> Result<Vec<Observation>, CudaUnavailable> {
        let mut samples = Vec::new();
        for ordinal in 0..self.library.device_count()? {
            let number = u32::try_from(ordinal).ok();
            let mut sample = Observation {
                taken_at: Some(taken_at),
                device: number,
                probe: Some(Box::new(ProbeFacts {
                    live: true,
                    cuda_device: number,
                    cuda_version: Some(self.version.clone()),
                    ..ProbeFacts::default()
                })),
                ..Observation::unknown(place.clone(), Instrument::Cuda)
            };
            let device = match self.identify(ordinal, &mut sample) {
                Ok(device) => device,
                Err(error) => {
                    remark(&mut sample, error.to_string());
                    samples.push(sample);
                    continue;
                }
            };
            let twin = by_nvml.iter().position(|known| same_uuid(known, &sample));
            let twin = twin.and_then(|at| by_nvml.get_mut(at));
            adopt(&mut sample, twin.as_deref());
            if !wanted(sample.device) {
                continue;
            }
            let before = twin.as_ref().and_then(|known| known.used).map(Quantity::low);
            let used_now = || nvml.zip(sample.uuid.as_deref()).and_then(|(nvml, uuid)| nvml.used(uuid));
            match self.library.is_integrated(device) {
                Ok(true) => host_figures(&mut sample),
                Ok(false) => {
                    match self.library.context(device).and_then(|context| measure(context, &used_now)) {
                        Ok(asked) => figures(&mut sample, &asked, before),
                        Err(error) => refused(&mut sample, &error),
                    }
                }
                Err(error) => refused(&mut sample, &error),
            }
            samples.push(sample);
        }
        Ok(samples)
    }

    fn identify(&self, ordinal: i32, sample: &mut Observation) -> Result<CudaDevice, CudaError> {
        let device = self.library.device(ordinal)?;
        sample.name = Some(self.library.name(device)?);
        sample.uuid = self.library.uuid(device).ok().map(|uuid| uuid_text(&uuid));
        let pci = self.library.pci(device).ok();
        sample.bus = pci.as_deref().and_then(bus_id_cell);
        if let Some(facts) = sample.probe.as_mut() {
            facts.pci = pci;
        }
        Ok(device)
    }
}

/// An error with what caused it: the loader's own words stand at the end.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let words: Vec<String> =
        std::iter::once(error.to_string()).chain(causes.map(ToString::to_string)).collect();
    words.join(": ")
}

/// What was read while a context stood and after it went.
struct Asked {
    free: u64,
    total: u64,
    /// NVML's used figure with the context standing, and after its release.
    during: Option<i128>,
    after: Option<i128>,
}

fn measure(context: PrimaryContext<'_>, used_now: &dyn Fn() -> Option<i128>) -> Result<Asked, CudaError> {
    let (free, total) = context.memory()?;
    let during = used_now();
    context.release()?;
    Ok(Asked { free, total, during, after: used_now() })
}

/// The device's figures without the probe's own context.
fn figures(sample: &mut Observation, asked: &Asked, before: Option<i128>) {
    let total = Quantity::exact(i128::from(asked.total));
    let free = Quantity::exact(i128::from(asked.free));
    let own = own_context(before, asked.during, asked.after);
    sample.total = Some(total);
    sample.free = Some(free + own.unwrap_or(Quantity::ZERO));
    sample.used = Some(total - free - own.unwrap_or(Quantity::ZERO));
    if let Some(facts) = sample.probe.as_mut() {
        facts.own_context = own;
    }
    match own {
        None => remark(
            sample,
            "the probe's own context is in `used` (some 500 MiB): without NVML it can't be measured"
                .to_string(),
        ),
        Some(own) if own.width() > 0 => remark(
            sample,
            format!(
                "memory of the device moved while the probe asked: its own context took {} MiB",
                mib_text(own)
            ),
        ),
        Some(_) => {}
    }
}

/// What the context took, by NVML. Exact where the device is left as it was found; else somebody else moved memory
/// meanwhile, and the truth lies between the rise and the fall.
fn own_context(before: Option<i128>, during: Option<i128>, after: Option<i128>) -> Option<Quantity> {
    let (before, during) = (before?, during?);
    let rise = during - before;
    match after {
        Some(after) if (before..=before + KEPT_BY_INIT).contains(&after) => Some(Quantity::exact(rise)),
        Some(after) => Some(Quantity::between(rise, during - after)),
        None => Some(Quantity::exact(rise)),
    }
}

fn refused(sample: &mut Observation, error: &CudaError) {
    let words = if error.code == CudaError::OUT_OF_MEMORY {
        format!("too full for a context, so cuMemGetInfo can't be asked: {error}")
    } else {
        error.to_string()
    };
    remark(sample, words);
}

/// A device without memory of its own: the host's, as SGLang takes it.
fn host_figures(sample: &mut Observation) {
    let host = super::host::memory();
    if let Some((total, available)) = host {
        sample.total = Some(total);
        sample.free = Some(available);
        sample.used = Some(total - available);
    }
    if let Some(facts) = sample.probe.as_mut() {
        facts.integrated = true;
    }
    remark(
        sample,
        match host {
            Some((_, available)) => format!(
                "an integrated device shares the host's memory: {} MiB are available to programs (page cache can be given up), \
                 the figure that SGLang prints",
                mib_whole(available)
            ),
            None => "an integrated device shares the host's memory, which can't be asked here".to_string(),
        },
    );
}

/// Takes over what NVML knows of the same device.
fn adopt(sample: &mut Observation, twin: Option<&Observation>) {
    let Some(twin) = twin else {
        remark(sample, "NVML does not tell of this device: it is numbered as CUDA does".to_string());
        return;
    };
    sample.device = twin.device;
    sample.mig = twin.mig;
    sample.uuid.clone_from(&twin.uuid);
    sample.driver.clone_from(&twin.driver);
    sample.processes.clone_from(&twin.processes);
    sample.processes_listed = twin.processes_listed;
}

/// Whether both tell of one device: the prefix (`GPU-`, `MIG-`) aside, which CUDA does not have.
fn same_uuid(one: &Observation, other: &Observation) -> bool {
    let tail = |sample: &Observation| {
        sample
            .uuid
            .as_deref()
            .and_then(|uuid| uuid.get(uuid.len().checked_sub(36)?..))
            .map(str::to_ascii_lowercase)
    };
    tail(one).is_some_and(|uuid| tail(other) == Some(uuid))
}

fn uuid_text(bytes: &[u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("GPU-{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

fn remark(sample: &mut Observation, words: String) {
    if let Some(facts) = sample.probe.as_mut() {
        facts.remarks.push(words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_on_a_quiet_device_is_exact() {
        // H200, driver 580: nothing before, 526.8 MiB with a context, 3.25 MiB kept by cuInit.
        let own = own_context(Some(0), Some(552_402_944), Some(3_407_872)).unwrap();
        assert_eq!(own, Quantity::exact(552_402_944));
    }

    #[test]
    fn a_busy_device_gives_an_interval() {
        let own = own_context(Some(0), Some(700 * MIB), Some(200 * MIB)).unwrap();
        assert_eq!((own.low(), own.high()), (500 * MIB, 700 * MIB));
        assert_eq!(own_context(None, Some(1), Some(1)), None);
    }

    #[test]
    fn uuids_are_printed_as_nvidia_smi_does() {
        let uuid: [u8; 16] = std::array::from_fn(|at| at as u8);
        assert_eq!(uuid_text(&uuid), "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
