//! The live probe: what the drivers of this machine say now.
//!
//! NVML is asked first: it takes nothing. The CUDA driver is asked where it is wanted, or where NVML is missing. Libraries
//! are loaded at run time, so the same program runs, and says why not, where there is no GPU. Asking happens on a thread of
//! its own, since a driver that hangs cannot be interrupted.

mod cuda;
mod error;
mod ffi;
mod host;
mod nvml;
mod record;
mod vendors;
mod visible;

pub use cuda::CUDA_VARIABLE;
pub use error::{CudaError, CudaUnavailable, NvmlUnavailable, ProbeError};
pub use nvml::NVML_VARIABLE;
pub use record::{SAMPLE_SCHEMA, read_sample, sample_line};
pub use visible::Visibility;

use crate::observe::{Instrument, Observation};
use crate::place::Place;
use crate::time::Stamp;
use cuda::CudaProbe;
use nvml::NvmlProbe;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// The source that live samples name: they stand in no file.
pub const LIVE: &str = "live probe";

/// Whether the CUDA driver is asked, which takes a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AskCuda {
    /// Only where NVML is missing.
    #[default]
    WithoutNvml,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What to ask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProbeOptions {
    /// Whether to make a context.
    pub cuda: AskCuda,
    /// Devices as nvidia-smi numbers them; all that CUDA may see where empty.
    pub devices: Vec<u32>,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// One observation a device and instrument.
    pub observations: Vec<Observation>,
    /// What could not be asked, and why.
    pub notes: Vec<String>,
    /// What decides which devices are seen.
    pub visible: Visibility,
    /// When it was asked.
    pub taken_at: Stamp,
}

/// A thread that asks, and the limit on waiting for it.
pub struct Prober {
    requests: Option<Sender<()>>,
    answers: Receiver<Result<Probe, ProbeError>>,
    limit: Duration,
}

impl Prober {
    /// Starts the thread. Libraries are loaded at the first sample and kept.
    pub fn start(options: ProbeOptions, limit: Duration) -> Prober {
        let (requests, asked) = channel::<()>();
        let (answer, answers) = channel();
        // Detached on purpose: a thread inside a hanging driver cannot be joined.
        std::thread::spawn(move || {
            let mut asker = Asker { options, nvml: None, cuda: None };
            while asked.recv().is_ok() {
                if answer.send(asker.sample()).is_err() {
                    return;
                }
            }
        });
        Prober { requests: Some(requests), answers, limit }
    }

    /// Asks once.
    ///
    /// # Errors
    /// Where nobody can be asked, a device is missing, or no answer comes within the limit.
    pub fn sample(&self) -> Result<Probe, ProbeError> {
        let asked = self.requests.as_ref().is_some_and(|requests| requests.send(()).is_ok());
        if !asked {
            return Err(ProbeError::Stopped);
        }
        match self.answers.recv_timeout(self.limit) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => Err(ProbeError::TimedOut { seconds: self.limit.as_secs() }),
            Err(RecvTimeoutError::Disconnected) => Err(ProbeError::Stopped),
        }
    }
}

/// How long the thread may take to close its libraries.
const CLOSING: Duration = Duration::from_millis(500);

impl Drop for Prober {
    /// Lets the thread close its libraries before the process may end: NVML's shutdown beside the exit handlers of libcuda
    /// is asking for trouble. A thread that hangs is left behind.
    fn drop(&mut self) {
        self.requests = None;
        while self.answers.recv_timeout(CLOSING).is_ok() {}
    }
}

/// The thread's own state: libraries stay open between samples.
struct Asker {
    options: ProbeOptions,
    nvml: Option<NvmlProbe>,
    cuda: Option<CudaProbe>,
}

impl Asker {
    fn sample(&mut self) -> Result<Probe, ProbeError> {
        let visible = Visibility::from_environment();
        let taken_at = Stamp::now();
        let place = Place::new(&Arc::from(LIVE), 1, 1);
        let mut reasons = Vec::new();
        let mut observations = self.by_nvml(&place, taken_at, &visible).unwrap_or_else(|error| {
            reasons.push(error.to_string());
            Vec::new()
        });
        let answered = !observations.is_empty() || reasons.is_empty();
        let ask_cuda = match self.options.cuda {
            AskCuda::Always => true,
            AskCuda::WithoutNvml => !answered,
            AskCuda::Never => false,
        };
        let mut by_cuda = Vec::new();
        if ask_cuda {
            match self.by_cuda((&place, taken_at), &mut observations) {
                Ok(found) => by_cuda = found,
                Err(error) => reasons.push(error.to_string()),
            }
        }
        let hidden = self.select(&mut observations)?;
        observations.extend(by_cuda);
        if observations.is_empty() && !answered {
            let (found, more) = vendors::sample();
            observations = found;
            reasons.extend(more);
        }
        if observations.is_empty() {
            return Err(nothing(reasons, hidden, answered, &visible));
        }
        let mut notes = reasons;
        if !hidden.is_empty() {
            let numbers: Vec<String> = hidden.iter().map(u32::to_string).collect();
            notes.push(format!(
                "GPU {} hidden by CUDA_VISIBLE_DEVICES: --device shows it all the same",
                numbers.join(", ")
            ));
        }
        Ok(Probe { observations, notes, visible, taken_at })
    }

    fn by_nvml(
        &mut self,
        place: &Place,
        taken_at: Stamp,
        visible: &Visibility,
    ) -> Result<Vec<Observation>, NvmlUnavailable> {
        let nvml = match &mut self.nvml {
            Some(nvml) => nvml,
            closed => closed.insert(NvmlProbe::open()?),
        };
        nvml.sample(place, taken_at, visible)
    }

    fn by_cuda(
        &mut self,
        moment: (&Place, Stamp),
        by_nvml: &mut [Observation],
    ) -> Result<Vec<Observation>, CudaUnavailable> {
        let cuda = match &mut self.cuda {
            Some(cuda) => cuda,
            closed => closed.insert(CudaProbe::open()?),
        };
        let devices = &self.options.devices;
        let wanted = |device: Option<u32>| {
            devices.is_empty() || device.is_some_and(|device| devices.contains(&device))
        };
        cuda.sample(moment, self.nvml.as_ref(), by_nvml, &wanted)
    }

    /// Keeps the devices that were asked for; else those that CUDA may see. Gives the numbers of the hidden ones.
    fn select(&self, observations: &mut Vec<Observation>) -> Result<Vec<u32>, ProbeError> {
        let mut known: Vec<u32> = observations.iter().filter_map(|sample| sample.device).collect();
        known.dedup();
        let devices = &self.options.devices;
        if let Some(missing) = devices.iter().find(|device| !known.contains(device))
            && !known.is_empty()
        {
            let known: Vec<String> = known.iter().map(u32::to_string).collect();
            return Err(ProbeError::NoSuchDevice { device: *missing, known: known.join(", ") });
        }
        if !devices.is_empty() {
            observations.retain(|sample| sample.device.is_some_and(|device| devices.contains(&device)));
            return Ok(Vec::new());
        }
        let is_hidden = |sample: &Observation| sample.probe.as_ref().is_some_and(|facts| facts.hidden);
        let hidden: Vec<u32> = observations
            .iter()
            .filter(|sample| is_hidden(sample))
            .filter_map(|sample| sample.device)
            .collect();
        observations.retain(|sample| sample.device.is_none_or(|device| !hidden.contains(&device)));
        Ok(hidden)
    }
}

fn nothing(reasons: Vec<String>, hidden: Vec<u32>, answered: bool, visible: &Visibility) -> ProbeError {
    if !answered {
        return ProbeError::NothingToAsk { reasons };
    }
    let variables = visible.notes().join(", ");
    let why = (!hidden.is_empty() || !variables.is_empty()).then_some(variables);
    ProbeError::NoDevice { why }
}

impl Probe {
    /// Whether any device told its memory.
    pub fn has_figures(&self) -> bool {
        self.observations.iter().any(|sample| sample.used.is_some() || sample.free.is_some())
    }

    /// The observation of the same device by the same instrument.
    pub fn twin(&self, of: &Observation) -> Option<&Observation> {
        let instance = |sample: &Observation| sample.mig;
        self.observations.iter().find(|sample| {
            (sample.instrument, sample.device, instance(sample)) == (of.instrument, of.device, instance(of))
        })
    }

    /// Whether the CUDA driver was asked.
    pub fn asked_cuda(&self) -> bool {
        self.observations.iter().any(|sample| sample.instrument == Instrument::Cuda)
    }
}

/// `13.0` of 13000: 1000 × major + 10 × minor.
fn cuda_version(number: i32) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}
