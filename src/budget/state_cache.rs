//! Hybrid models with linear attention (Mamba and its relatives): the state cache that is taken off the KV budget.

use super::python::{floor_divide, truncate};
use crate::quantity::GIB;
use crate::version::Version;

/// What sizes the state cache of one rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StateCache {
    /// Bytes of one request's state.
    pub per_request: u64,
    /// `mamba_full_memory_ratio`: memory of states for each byte of KV (0.9 by default; asked from 0.5.6).
    pub ratio: f64,
    /// `max_mamba_cache_size`, where it is given.
    pub slots: Option<u32>,
    /// `max_running_requests`, where it is given.
    pub max_running_requests: Option<u32>,
    /// Whether the radix cache is off: slots then follow the running requests.
    pub no_radix_cache: bool,
    /// What slots and requests are divided by: the data-parallel size under DP attention, else 1.
    pub attention_dp: u32,
    /// `speculative_num_draft_tokens` with speculative decoding, 0 without.
    pub draft_tokens: u32,
    /// Slots per running request: 3, more with extra buffers, 1 without radix cache.
    pub slots_per_request: u32,
}

/// How many states fit, and what they leave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StateSplit {
    /// Slots, as `max_mamba_cache_size` ends up. The buffers hold one more.
    pub slots: i128,
    /// GiB left for KV.
    pub rest_gib: f64,
}

impl StateCache {
    /// The states' share of `rest` GiB. `None` before 0.5.3, which has no such models, and for states of no size.
    ///
    /// Sources: `handle_max_mamba_cache` (0.5.6 to 0.5.15), `kv_cache_configurator.py` (0.5.18 and later, which charge one
    /// slot of padding).
    pub fn split(&self, version: Version, rest_gib: f64) -> Option<StateSplit> {
        if version < Version::new(5, 3) || self.per_request == 0 {
            return None;
        }
        let rules: fn(&StateCache, f64) -> Option<StateSplit> = if version >= Version::new(5, 18) {
            StateCache::with_padding
        } else if version >= Version::new(5, 15) {
            StateCache::solved_jointly
        } else if version >= Version::new(5, 8) {
            StateCache::drafts_first
        } else if version >= Version::new(5, 6) {
            StateCache::shared_with_drafts
        } else {
            StateCache::fixed
        };
        rules(self, rest_gib)
    }

    fn bytes(&self) -> f64 {
        self.per_request as f64
    }

    fn dp(&self) -> u32 {
        self.attention_dp.max(1)
    }

    /// Slots that need no measuring: given, or the running requests where no radix cache keeps more.
    fn given_slots(&self) -> Option<u32> {
        let requests = self.max_running_requests.filter(|_| self.no_radix_cache);
        self.slots.or(requests).map(|slots| slots / self.dp())
    }

    /// The ratio's share of the rest, in bytes.
    fn budget_bytes(&self, rest_gib: f64) -> f64 {
        rest_gib * self.ratio / (1.0 + self.ratio) * GIB as f64
    }

    fn left(slots: i128, rest_gib: f64, bytes: f64) -> Option<StateSplit> {
        Some(StateSplit { slots, rest_gib: rest_gib - bytes / GIB as f64 })
    }

    /// 0.5.3: as many slots as requests, 512 by default.
    fn fixed(&self, rest_gib: f64) -> Option<StateSplit> {
        let slots = self.slots.or(self.max_running_requests).unwrap_or(512) / self.dp();
        Self::left(slots.into(), rest_gib, f64::from(slots) * self.bytes())
    }

    /// 0.5.6: every slot holds the states of all draft tokens too.
    fn shared_with_drafts(&self, rest_gib: f64) -> Option<StateSplit> {
        let states = 1.0 + f64::from(self.draft_tokens);
        let slots = if self.no_radix_cache {
            i128::from(self.slots.or(self.max_running_requests).unwrap_or(512))
        } else {
            truncate(floor_divide(floor_divide(self.budget_bytes(rest_gib), self.bytes()), states))?
        };
        let slots = slots / i128::from(self.dp());
        Self::left(slots, rest_gib, slots as f64 * self.bytes() * states)
    }

    /// 0.5.8 to 0.5.12: states of draft tokens are taken off before the ratio is applied.
    fn drafts_first(&self, rest_gib: f64) -> Option<StateSplit> {
        let requests = self.max_running_requests.unwrap_or(0) / self.dp();
        let drafts = self.bytes() * f64::from(requests) * f64::from(self.draft_tokens);
        let rest_gib = rest_gib - drafts / GIB as f64;
        let slots = match self.given_slots() {
            Some(slots) => slots.into(),
            None => truncate(floor_divide(self.budget_bytes(rest_gib), self.bytes()))?,
        };
        Self::left(slots, rest_gib, slots as f64 * self.bytes())
    }

    /// 0.5.15: slots and draft states are solved together.
    fn solved_jointly(&self, rest_gib: f64) -> Option<StateSplit> {
        let slots = match self.given_slots() {
            Some(slots) => slots.into(),
            None => {
                truncate(floor_divide(self.budget_bytes(rest_gib), self.bytes() * self.states_per_slot()))?
            }
        };
        let drafts = self.draft_requests(slots) as f64 * f64::from(self.draft_tokens);
        Self::left(slots, rest_gib, (slots as f64 + drafts) * self.bytes())
    }

    /// 0.5.18 and later: the same, and a padding slot of either buffer is charged.
    fn with_padding(&self, rest_gib: f64) -> Option<StateSplit> {
        let padding = self.bytes() * (1.0 + f64::from(self.draft_tokens));
        let slots = match self.given_slots() {
            Some(slots) => slots.into(),
            None => {
                let budget = self.budget_bytes(rest_gib) - padding;
                truncate(floor_divide(budget, self.bytes() * self.states_per_slot()))?
            }
        };
        let requests = self.draft_requests(slots) + 1;
        let drafts = if self.draft_tokens > 0 { requests as f64 * f64::from(self.draft_tokens) } else { 0.0 };
        Self::left(slots, rest_gib, (slots as f64 + 1.0 + drafts) * self.bytes())
    }

    /// One state, and the draft states of the share of a request that a slot serves.
    fn states_per_slot(&self) -> f64 {
        1.0 + f64::from(self.draft_tokens) / f64::from(self.slots_per_request.max(1))
    }

    /// Requests that draft states are kept for.
    fn draft_requests(&self, slots: i128) -> i128 {
        if self.draft_tokens == 0 {
            return 0;
        }
        let by_slots = slots.div_euclid(self.slots_per_request.max(1).into());
        self.max_running_requests.map_or(by_slots, |requests| by_slots.min((requests / self.dp()).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: StateCache = StateCache {
        per_request: 75 << 20,
        ratio: 0.9,
        slots: None,
        max_running_requests: None,
        no_radix_cache: false,
        attention_dp: 1,
        draft_tokens: 0,
        slots_per_request: 3,
    };

    fn split(version: Version, cache: StateCache) -> (i128, f64) {
        let split = cache.split(version, 50.0).unwrap();
        (split.slots, (split.rest_gib * 1e6).round() / 1e6)
    }

    #[test]
    fn worked_examples() {
        for version in [Version::new(5, 9), Version::new(5, 12), Version::new(5, 15)] {
            assert_eq!(split(version, EXAMPLE), (323, 26.342_773));
        }
        for version in [Version::new(5, 18), Version::new(5, 20), Version::new(5, 23)] {
            assert_eq!(split(version, EXAMPLE), (322, 26.342_773), "one slot of padding");
        }
        let drafting = StateCache { draft_tokens: 4, ..EXAMPLE };
        assert_eq!(split(Version::post(5, 6, 2), drafting), (64, 26.5625));
    }

    #[test]
    fn fixed_slots() {
        let state: f64 = 75.0 / 1024.0;
        let rounded = |gib: f64| (gib * 1e6).round() / 1e6;
        assert_eq!(split(Version::new(5, 3), EXAMPLE), (512, 50.0 - 512.0 * state));
        let given = StateCache { slots: Some(100), attention_dp: 2, ..EXAMPLE };
        for version in [Version::new(5, 3), Version::new(5, 9), Version::new(5, 15)] {
            assert_eq!(split(version, given), (50, rounded(50.0 - 50.0 * state)));
        }
        assert_eq!(split(Version::new(5, 18), given), (50, rounded(50.0 - 51.0 * state)));
        let no_cache = StateCache { max_running_requests: Some(40), no_radix_cache: true, ..EXAMPLE };
        assert_eq!(split(Version::new(5, 12), no_cache), (40, rounded(50.0 - 40.0 * state)));
        assert_eq!(split(Version::post(5, 6, 2), no_cache), (40, rounded(50.0 - 40.0 * state)));
    }

    #[test]
    fn draft_states_by_release() {
        let state: f64 = 75.0 / 1024.0;
        let rounded = |gib: f64| (gib * 1e6).round() / 1e6;
        let drafting = StateCache { draft_tokens: 4, max_running_requests: Some(48), ..EXAMPLE };
        let first = 50.0 - 48.0 * 4.0 * state;
        let slots = (first * 0.9 / 1.9 / state).floor();
        assert_eq!(split(Version::new(5, 12), drafting), (slots as i128, rounded(first - slots * state)));
        let slots = (50.0 * 0.9 / 1.9 / state / (1.0 + 4.0 / 3.0)).floor();
        let drafts = (slots / 3.0).floor().min(48.0) * 4.0;
        let expected = (slots as i128, rounded(50.0 - (slots + drafts) * state));
        assert_eq!(split(Version::new(5, 15), drafting), expected);
    }

    #[test]
    fn releases_without_such_models_are_refused() {
        assert_eq!(EXAMPLE.split(Version::post(5, 1, 3), 50.0), None);
        assert_eq!(StateCache { per_request: 0, ..EXAMPLE }.split(Version::new(5, 12), 50.0), None);
    }
}
