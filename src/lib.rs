//! Reads SGLang start-up logs and nvidia-smi dumps, and tells where the GPU memory went.

pub mod observe;
pub mod place;
pub mod quantity;
pub mod time;
