//! The grammar of SGLang's log lines.

pub mod catalogue;
