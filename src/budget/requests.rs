//! How many requests may run at once: limits that follow from the token count, and the table that maps them to tokens.

use super::python::truncate;
use crate::quantity::Quantity;
use crate::version::Version;

/// What bounds running requests on one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestInputs {
    /// The final token count, after all caps.
    pub tokens: i128,
    /// The divided token count, before caps: what table rows are estimated from up to 0.5.9.
    pub profiled_tokens: i128,
    /// The model's context length in tokens.
    pub context_length: u32,
    /// `--max-running-requests`, where it is given.
    pub max_running_requests: Option<u32>,
    /// `max_num_reqs` (0.2.15 only), where it is given.
    pub max_num_reqs: Option<u32>,
    /// `dp_size`.
    pub dp: u32,
    /// DP attention.
    pub dp_attention: bool,
    /// `speculative_num_draft_tokens` with speculative decoding, 0 without.
    pub draft_tokens: u32,
    /// Requests that the state cache of a hybrid model can hold: its slots over slots per request.
    pub state_cache_requests: Option<i128>,
}

/// The limits that result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// Rows of the request-to-token table, padding included.
    pub rows: i128,
    /// Tokens per row.
    pub columns: i128,
    /// The limit that the summary line prints as `max_running_requests` (0.1.20 prints none).
    pub running: i128,
}

impl RequestLimits {
    /// Memory of the request-to-token table: four bytes an entry.
    pub fn table(&self) -> Quantity {
        Quantity::exact(
            self.rows.saturating_mul(self.columns).saturating_mul(4).clamp(0, crate::quantity::LARGEST),
        )
    }
}

/// The limits of one rank, by release. `None` for a context length of 0.
///
/// Sources: `init_memory_pool` and `tp_worker.py` (up to 0.5.9), `_resolve_max_num_reqs` (0.5.10 and later).
pub fn request_limits(version: Version, inputs: &RequestInputs) -> Option<RequestLimits> {
    if inputs.context_length == 0 {
        return None;
    }
    if version >= Version::new(5, 10) {
        return resolved_together(version, inputs);
    }
    let half = inputs.tokens.div_euclid(2);
    let context = i128::from(inputs.context_length);
    if version < Version::new(2, 15) {
        let rows = estimate(inputs.profiled_tokens, inputs, 256.0)?;
        return Some(RequestLimits { rows, columns: context + 8, running: half });
    }
    let user = inputs.max_running_requests.map(i128::from);
    if version < Version::new(3, 6) {
        let estimated = estimate(inputs.profiled_tokens, inputs, 512.0)?.clamp(2048, 5120);
        let rows = inputs.max_num_reqs.map_or(estimated, i128::from);
        return Some(RequestLimits {
            rows,
            columns: context + 8,
            running: user.unwrap_or(half).min(rows - 1),
        });
    }
    let estimated = estimate(inputs.profiled_tokens, inputs, 512.0)?.clamp(2048, 4096);
    let held = |rows: i128| inputs.state_cache_requests.map_or(rows, |requests| rows.min(requests));
    let padding = if version < Version::new(4, 8) { 1 } else { 0 };
    let rows = held(user.unwrap_or(estimated)) + padding;
    let divided = version >= Version::new(5, 9) || inputs.dp_attention && version >= Version::new(4, 3);
    let per_worker = |requests: i128| if divided { requests / dp(inputs) } else { requests };
    let running = user.map_or(half, per_worker).min(rows);
    let drafts = if version >= Version::new(5, 3) { i128::from(inputs.draft_tokens) } else { 0 };
    Some(RequestLimits { rows, columns: context + 4 + drafts, running })
}

/// 0.5.10 and later: one number is both the limit and, with a padding row, the table's size.
fn resolved_together(version: Version, inputs: &RequestInputs) -> Option<RequestLimits> {
    let half = inputs.tokens.div_euclid(2);
    let estimated = estimate(inputs.tokens, inputs, 512.0)?.clamp(2048, 4096);
    let bound = match inputs.max_running_requests {
        Some(user) if version >= Version::new(5, 15) => (i128::from(user) / dp(inputs)).min(half),
        Some(user) => (i128::from(user) / dp(inputs)).min(estimated),
        None => estimated.min(half),
    };
    let running = inputs.state_cache_requests.map_or(bound, |requests| bound.min(requests));
    let padding = if version >= Version::new(5, 12) { 1 } else { 0 };
    let columns = i128::from(inputs.context_length) + 4 + i128::from(inputs.draft_tokens);
    Some(RequestLimits { rows: running + padding, columns, running })
}

fn dp(inputs: &RequestInputs) -> i128 {
    i128::from(inputs.dp.max(1))
}

/// `int(tokens / context_len * factor)`.
fn estimate(tokens: i128, inputs: &RequestInputs, factor: f64) -> Option<i128> {
    truncate(tokens as f64 / f64::from(inputs.context_length) * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(tokens: i128, context_length: u32, max_running_requests: Option<u32>) -> RequestInputs {
        RequestInputs {
            tokens,
            profiled_tokens: tokens,
            context_length,
            max_running_requests,
            max_num_reqs: None,
            dp: 1,
            dp_attention: false,
            draft_tokens: 0,
            state_cache_requests: None,
        }
    }

    fn running(version: Version, inputs: &RequestInputs) -> i128 {
        request_limits(version, inputs).unwrap().running
    }

    #[test]
    fn worked_examples() {
        for version in [Version::new(5, 15), Version::new(5, 18), Version::new(5, 23)] {
            assert_eq!(running(version, &inputs(414_961, 131_072, None)), 2048);
            assert_eq!(running(version, &inputs(414_961, 8192, None)), 4096);
            assert_eq!(running(version, &inputs(3000, 8192, None)), 1500);
            assert_eq!(running(version, &inputs(414_961, 8192, Some(5000))), 5000);
        }
        assert_eq!(running(Version::new(5, 12), &inputs(414_961, 8192, Some(5000))), 4096);
    }

    #[test]
    fn recorded_servers_print_the_same() {
        assert_eq!(running(Version::new(5, 12), &inputs(845_985, 8192, None)), 4096);
        assert_eq!(running(Version::new(5, 12), &inputs(2_821_670, 32_768, None)), 4096);
        assert_eq!(running(Version::new(5, 12), &inputs(731_957, 8192, Some(48))), 48, "EAGLE sets 48");
    }

    #[test]
    fn the_oldest_releases() {
        let limits = request_limits(Version::new(1, 20), &inputs(414_961, 8192, None)).unwrap();
        assert_eq!(limits, RequestLimits { rows: 12_967, columns: 8200, running: 207_480 });
        let limits = request_limits(Version::new(2, 15), &inputs(414_961, 8192, None)).unwrap();
        assert_eq!(limits, RequestLimits { rows: 5120, columns: 8200, running: 5119 });
        let given = RequestInputs { max_num_reqs: Some(100), ..inputs(414_961, 8192, Some(50)) };
        let limits = request_limits(Version::new(2, 15), &given).unwrap();
        assert_eq!((limits.rows, limits.running), (100, 50));
    }

    #[test]
    fn padding_row_and_data_parallel_shares() {
        let user = RequestInputs { dp: 4, ..inputs(414_961, 8192, Some(1000)) };
        let attention = RequestInputs { dp_attention: true, ..user };
        let limits = |version, inputs| {
            let limits = request_limits(version, inputs).unwrap();
            (limits.rows, limits.columns, limits.running)
        };
        assert_eq!(limits(Version::post(3, 6, 3), &attention), (1001, 8196, 1000));
        assert_eq!(limits(Version::post(4, 3, 4), &attention), (1001, 8196, 250));
        assert_eq!(limits(Version::post(4, 10, 2), &attention), (1000, 8196, 250));
        assert_eq!(limits(Version::new(5, 3), &user), (1000, 8196, 1000));
        assert_eq!(limits(Version::new(5, 9), &user), (1000, 8196, 250));
        assert_eq!(limits(Version::new(5, 12), &user), (251, 8196, 250));
        let drafting = RequestInputs { draft_tokens: 8, ..user };
        assert_eq!(limits(Version::post(5, 1, 3), &drafting).1, 8196);
        assert_eq!(limits(Version::new(5, 3), &drafting).1, 8204);
        let estimated = inputs(414_961, 8192, None);
        assert_eq!(limits(Version::post(4, 6, 5), &estimated), (4097, 8196, 4097));
        assert_eq!(limits(Version::post(4, 10, 2), &estimated), (4096, 8196, 4096));
    }

    #[test]
    fn state_caches_and_impossible_contexts() {
        let hybrid = RequestInputs { state_cache_requests: Some(107), ..inputs(414_961, 8192, None) };
        for version in [Version::new(5, 9), Version::new(5, 12), Version::new(5, 23)] {
            assert_eq!(running(version, &hybrid), 107);
        }
        assert_eq!(request_limits(Version::new(5, 12), &inputs(1, 0, None)), None);
    }

    #[test]
    fn the_table_takes_four_bytes_an_entry() {
        let limits = RequestLimits { rows: 2048, columns: 131_076, running: 2047 };
        assert!((limits.table().mib() / 1024.0 - 1.0).abs() < 0.001);
    }
}
