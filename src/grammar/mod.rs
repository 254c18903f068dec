//! The grammars: text to facts.

pub mod nvidia_smi;
pub mod sglang;
