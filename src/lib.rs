//! Reads SGLang start-up logs and nvidia-smi dumps, and tells where the GPU memory went.

pub mod budget;
pub mod event;
pub mod grammar;
pub mod input;
pub mod observe;
pub mod place;
pub mod quantity;
pub mod server_args;
pub mod stage;
pub mod time;
pub mod version;
