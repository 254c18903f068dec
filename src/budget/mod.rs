//! SGLang's memory arithmetic redone: default fractions, KV capacity, bytes per token, request limits.
//!
//! Everything here is a pure function of typed inputs, by release: no log is read. Where SGLang computes in Python
//! floats, so does this module, in the same order, because a token count can hang on the last bit; what is uncertain
//! because a log prints two decimals is carried as an interval instead. Facts were read from the sources of the releases
//! in [`crate::version::KNOWN`]; between two of them the newer rule is assumed to start at the newer.

pub mod audit;
pub mod capacity;
pub mod cell;
pub mod checks;
pub mod defaults;
pub mod model;
pub mod plan;
pub mod post_capture;
pub mod python;
pub mod requests;
pub mod sliding_window;
pub mod state_cache;
