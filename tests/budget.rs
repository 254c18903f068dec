//! The budget on recorded servers: tokens predicted, defaults derived again, advice that its own arithmetic upholds, and
//! what-ifs held against the recordings that differ in one flag.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod budget {
    mod findings;
    mod hostile;
    mod model;
    mod pairs;
    mod post_capture;
    mod recordings;
    mod support;
}
