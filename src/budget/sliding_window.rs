//! Hybrid sliding-window models: one budget split over a pool for full-attention layers and one for windowed layers.

use super::python::{floor_divide, truncate};
use crate::quantity::GIB;
use crate::version::Version;

/// The layers of a model in which some attend to a window only, on one rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlidingWindow {
    /// Layers with full attention.
    pub full_layers: u32,
    /// Layers with windowed attention.
    pub window_layers: u32,
    /// Bytes per token of one full layer.
    pub full_bytes: u32,
    /// Bytes per token of one windowed layer.
    pub window_bytes: u32,
    /// `swa_full_tokens_ratio`: tokens of the window pool for each of the full pool.
    pub ratio: f64,
    /// Layers of a draft model, stored as full layers (counted from 0.5.15).
    pub draft_layers: u32,
}

/// The token counts of the two pools; `max_total_num_tokens` is the full pool's, or the window pool's where no layer has
/// full attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSplit {
    /// Tokens of the full pool.
    pub full: i128,
    /// Tokens of the window pool.
    pub window: i128,
}

impl SlidingWindow {
    /// Bytes per token when every layer keeps every token: what the budget is divided by up to 0.5.10.
    pub fn unsplit_cell(&self) -> i128 {
        i128::from(self.full_bytes) * i128::from(self.full_layers)
            + i128::from(self.window_bytes) * i128::from(self.window_layers)
    }

    /// Bytes per token of the full pool, with the window pool's share: what the budget is divided by from 0.5.12
    /// (`HybridSWAPoolConfigurator`). Without full layers, the windowed ones alone.
    pub fn shared_cell(&self, version: Version) -> f64 {
        let draft = if version >= Version::new(5, 15) { self.draft_layers } else { 0 };
        let full = f64::from(self.full_bytes) * (f64::from(self.full_layers) + f64::from(draft));
        let window = f64::from(self.window_bytes) * f64::from(self.window_layers);
        if self.full_layers == 0 { window + full } else { full + self.ratio * window }
    }

    /// The window pool's tokens for a full pool's: `int(full × ratio)`.
    fn window_of(&self, full: i128) -> Option<i128> {
        truncate(full as f64 * self.ratio)
    }

    /// The two pools for `rest` GiB, without other caps. `None` where a divisor is not positive.
    ///
    /// To 0.5.6 the tokens of all layers are redistributed by layer count, without rounding to pages. In 0.5.8 to 0.5.10 their
    /// bytes are, and pools are whole pages; the window pool follows the unrounded full pool to 0.5.9, the rounded one
    /// after. From 0.5.12 the budget is divided by [`SlidingWindow::shared_cell`].
    pub fn split(&self, version: Version, rest_gib: f64, page_size: i128) -> Option<WindowSplit> {
        if version >= Version::new(5, 12) {
            let bytes = truncate(rest_gib * GIB as f64)?;
            let cell = self.shared_cell(version);
            let full = (cell > 0.0).then(|| truncate(floor_divide(bytes as f64, cell))).flatten()?;
            return self.split_tokens(version, full, page_size);
        }
        let tokens = super::capacity::tokens(version, rest_gib, self.unsplit_cell())?;
        self.split_tokens(version, tokens, page_size)
    }

    /// The two pools for a capped token count: of all layers up to 0.5.10, of the full pool from 0.5.12.
    pub fn split_tokens(&self, version: Version, tokens: i128, page_size: i128) -> Option<WindowSplit> {
        let page = page_size.max(1);
        let pages = |tokens: i128| tokens.div_euclid(page) * page;
        if version >= Version::new(5, 8) && self.full_layers == 0 {
            return Some(WindowSplit { full: 0, window: pages(tokens) });
        }
        let (full_layers, window_layers) = (f64::from(self.full_layers), f64::from(self.window_layers));
        if version < Version::new(5, 8) {
            let layers = tokens as f64 * (full_layers + window_layers);
            let full = truncate(layers / (self.ratio * window_layers + full_layers))?;
            return Some(WindowSplit { full, window: self.window_of(full)? });
        }
        let full = if version >= Version::new(5, 12) {
            tokens
        } else {
            let full = f64::from(self.full_bytes) * full_layers;
            let window = f64::from(self.window_bytes) * window_layers;
            truncate(tokens as f64 * (full + window) / (full + self.ratio * window))?
        };
        let followed = if version >= Version::new(5, 10) { pages(full) } else { full };
        Some(WindowSplit { full: pages(full), window: pages(self.window_of(followed)?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::capacity::rest_gib;

    const EXAMPLE: SlidingWindow = SlidingWindow {
        full_layers: 12,
        window_layers: 12,
        full_bytes: 8 * 64 * 2 * 2,
        window_bytes: 8 * 64 * 2 * 2,
        ratio: 0.8,
        draft_layers: 0,
    };

    fn split(version: Version, page_size: i128) -> (i128, i128) {
        let rest = rest_gib(60.00, 78.50, 0.837, 0.0);
        let split = EXAMPLE.split(version, rest, page_size).unwrap();
        (split.full, split.window)
    }

    #[test]
    fn worked_example_of_every_rule() {
        let rest = rest_gib(60.00, 78.50, 0.837, 0.0);
        let unsplit = crate::budget::capacity::tokens(Version::post(5, 6, 2), rest, EXAMPLE.unsplit_cell());
        assert_eq!(unsplit, Some(1_031_198));
        for version in [Version::post(4, 10, 2), Version::new(5, 3), Version::post(5, 6, 2)] {
            assert_eq!(split(version, 64), (1_145_775, 916_620), "not rounded to pages");
        }
        assert_eq!(split(Version::new(5, 9), 64), (1_145_728, 916_608));
        for version in [Version::new(5, 10), Version::new(5, 12), Version::new(5, 23)] {
            assert_eq!(split(version, 64), (1_145_728, 916_544));
            assert_eq!(split(version, 1), (1_145_775, 916_620));
        }
        assert_eq!(EXAMPLE.shared_cell(Version::new(5, 12)), 44_236.8);
    }

    #[test]
    fn draft_layers_are_full_layers_from_0_5_15() {
        let drafted = SlidingWindow { draft_layers: 1, ..EXAMPLE };
        assert_eq!(drafted.shared_cell(Version::new(5, 12)), 44_236.8);
        assert_eq!(drafted.shared_cell(Version::new(5, 15)), 44_236.8 + 2048.0);
    }

    #[test]
    fn models_without_full_layers_have_one_pool() {
        let windowed = SlidingWindow { full_layers: 0, ..EXAMPLE };
        assert_eq!(windowed.shared_cell(Version::new(5, 12)), 24_576.0);
        let split = windowed.split(Version::new(5, 12), 1.0, 64).unwrap();
        assert_eq!(split, WindowSplit { full: 0, window: (1 << 30) / 24_576 / 64 * 64 });
    }

    #[test]
    fn impossible_geometries_are_refused() {
        let empty = SlidingWindow { full_layers: 0, window_layers: 0, ..EXAMPLE };
        assert_eq!(empty.split(Version::new(5, 12), 1.0, 64), None);
        assert_eq!(empty.split(Version::new(5, 3), 1.0, 64), None);
    }
}
