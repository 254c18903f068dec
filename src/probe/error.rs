//! Why the driver gave no answer: every code by its name.

use nvml_wrapper::error::NvmlError;
use thiserror::Error;

/// A call of the CUDA driver that failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{call} failed with {name} ({code})")]
pub struct CudaError {
    /// The function, without its version suffix.
    pub call: &'static str,
    /// The `CUresult`.
    pub code: i32,
    /// Its name, as `cuGetErrorName` gives it: `CUDA_ERROR_OUT_OF_MEMORY`.
    pub name: String,
}

impl CudaError {
    /// `CUDA_ERROR_OUT_OF_MEMORY`: for a context, the device is too full.
    pub const OUT_OF_MEMORY: i32 = 2;
}

/// Why CUDA could not be asked at all.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CudaUnavailable {
    /// No such library, or one that lacks a function.
    #[error("libcuda can't be loaded: {0}")]
    Library(String),
    /// The driver refused.
    #[error(transparent)]
    Driver(#[from] CudaError),
}

/// Why NVML could not be asked at all, or not about a device.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NvmlUnavailable {
    /// No such library.
    #[error("NVML can't be loaded: {0}")]
    Library(String),
    /// NVML answered with an error.
    #[error("NVML: {words} ({name})")]
    Answer {
        /// `NVML_ERROR_DRIVER_NOT_LOADED`.
        name: &'static str,
        /// What it means.
        words: String,
    },
}

impl From<NvmlError> for NvmlUnavailable {
    fn from(error: NvmlError) -> NvmlUnavailable {
        match error {
            NvmlError::LibloadingError(error) => NvmlUnavailable::Library(error.to_string()),
            error => NvmlUnavailable::Answer { name: nvml_name(&error), words: error.to_string() },
        }
    }
}

/// An error of NVML in words, its name behind.
pub(super) fn nvml_words(error: &NvmlError) -> String {
    format!("{error} ({})", nvml_name(error))
}

/// The name that nvml.h gives an error.
fn nvml_name(error: &NvmlError) -> &'static str {
    match error {
        NvmlError::Uninitialized => "NVML_ERROR_UNINITIALIZED",
        NvmlError::InvalidArg => "NVML_ERROR_INVALID_ARGUMENT",
        NvmlError::NotSupported => "NVML_ERROR_NOT_SUPPORTED",
        NvmlError::NoPermission => "NVML_ERROR_NO_PERMISSION",
        NvmlError::NotFound => "NVML_ERROR_NOT_FOUND",
        NvmlError::InsufficientSize(_) => "NVML_ERROR_INSUFFICIENT_SIZE",
        NvmlError::InsufficientPower => "NVML_ERROR_INSUFFICIENT_POWER",
        NvmlError::DriverNotLoaded => "NVML_ERROR_DRIVER_NOT_LOADED",
        NvmlError::Timeout => "NVML_ERROR_TIMEOUT",
        NvmlError::IrqIssue => "NVML_ERROR_IRQ_ISSUE",
        NvmlError::LibraryNotFound => "NVML_ERROR_LIBRARY_NOT_FOUND",
        NvmlError::FunctionNotFound | NvmlError::FailedToLoadSymbol(_) => "NVML_ERROR_FUNCTION_NOT_FOUND",
        NvmlError::CorruptedInfoROM => "NVML_ERROR_CORRUPTED_INFOROM",
        NvmlError::GpuLost => "NVML_ERROR_GPU_IS_LOST",
        NvmlError::ResetRequired => "NVML_ERROR_RESET_REQUIRED",
        NvmlError::OperatingSystem => "NVML_ERROR_OPERATING_SYSTEM",
        NvmlError::LibRmVersionMismatch => "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
        NvmlError::InUse => "NVML_ERROR_IN_USE",
        NvmlError::InsufficientMemory => "NVML_ERROR_MEMORY",
        NvmlError::NoData => "NVML_ERROR_NO_DATA",
        NvmlError::VgpuEccNotSupported => "NVML_ERROR_VGPU_ECC_NOT_SUPPORTED",
        NvmlError::UnexpectedVariant(_) => "a code that nvml.h of this program does not know",
        _ => "NVML_ERROR_UNKNOWN",
    }
}

/// Why a probe gave no sample.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProbeError {
    /// Nobody could be asked.
    #[error("no GPU can be asked on this machine: {}", .reasons.join("; "))]
    NothingToAsk {
        /// Each way that was tried, and why it failed.
        reasons: Vec<String>,
    },
    /// The driver answers, and has no device to show.
    #[error("the driver shows no device{}", .why.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    NoDevice {
        /// What hides them, where that is known.
        why: Option<String>,
    },
    /// A device that was asked for does not exist.
    #[error("there is no GPU {device}: the driver numbers {known}")]
    NoSuchDevice {
        /// The number asked for.
        device: u32,
        /// The numbers that exist.
        known: String,
    },
    /// No answer in time.
    #[error(
        "the driver did not answer within {seconds} s: it hangs, or a device does (see the kernel's log for `NVRM: Xid`); \
         --timeout waits longer"
    )]
    TimedOut {
        /// The limit.
        seconds: u64,
    },
    /// The asking thread ended without an answer.
    #[error("the thread that asks the driver ended without an answer")]
    Stopped,
}
