//! The relatives of nvidia-smi that people paste in its place. nvitop draws nvidia-smi's own boxes and is read by
//! [`super::table`].

mod amd;
mod gpustat;
mod npu;
mod rocm;

pub(super) use amd::{Amd, HINTS as AMD_HINTS};
pub(super) use gpustat::{Gpustat, HINTS as GPUSTAT_HINTS};
pub(super) use npu::{HINTS as NPU_HINTS, Npu};
pub(super) use rocm::{HINTS as ROCM_HINTS, Rocm};
