//! Reads SGLang start-up logs and nvidia-smi dumps, and tells where the GPU memory went.

pub mod analysis;
pub mod budget;
pub mod cli;
pub mod event;
pub mod finding;
pub mod grammar;
pub mod input;
pub mod launch;
pub mod ledger;
pub mod observe;
pub mod place;
pub mod probe;
pub mod quantity;
pub mod read;
pub mod reconcile;
pub mod render;
pub mod report;
pub mod rules;
pub mod server_args;
pub mod stage;
pub mod text;
pub mod thresholds;
pub mod time;
pub mod version;
