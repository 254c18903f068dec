//! Charts of bars on one scale of MiB: a row has its name and its figure above its bars.

use super::colours::Kind;
use super::{Shown, percent, round_step};
use crate::quantity::group_digits;
use maud::{Markup, html};

/// Height of a row, and where its text and its bar stand in it.
const ROW: u32 = 44;
const TEXT: u32 = 14;
const BAR: u32 = 21;
const THICK: u32 = 14;
/// Height of the scale below the rows.
const SCALE: u32 = 24;
/// A tolerance is drawn from this share of the width on: about two pixels.
const VISIBLE: f64 = 0.003;

/// A chart and what is to be said of it.
#[derive(Debug, Clone)]
pub(in crate::render) struct Chart {
    /// Unique in its page.
    pub(in crate::render) id: String,
    /// What it shows.
    pub(in crate::render) title: String,
    /// What is to be seen, for those who do not see it.
    pub(in crate::render) description: String,
    /// MiB of the whole width.
    pub(in crate::render) whole: f64,
    /// The rows, from the top.
    pub(in crate::render) rows: Vec<Row>,
}

/// A row.
#[derive(Debug, Clone, Default)]
pub(in crate::render) struct Row {
    /// Its name, at the left.
    pub(in crate::render) name: String,
    /// Its figure, at the right.
    pub(in crate::render) figure: String,
    /// Whether it is set in bold.
    pub(in crate::render) strong: bool,
    /// Its bars.
    pub(in crate::render) bars: Vec<Bar>,
    /// Where parts of the bar end, in MiB, and what they are.
    pub(in crate::render) parts: Vec<(f64, f64, String)>,
    /// What the log claims: from, to, and in words.
    pub(in crate::render) claim: Option<(f64, f64, String)>,
    /// Between which MiB the bar may end.
    pub(in crate::render) tolerance: Option<(f64, f64)>,
    /// Where a line leads on to the next row.
    pub(in crate::render) link: Option<f64>,
}

/// A piece of a row, in MiB from the left.
#[derive(Debug, Clone)]
pub(in crate::render) struct Bar {
    /// Where it begins.
    pub(in crate::render) from: f64,
    /// Where it ends; before its beginning where memory was given back.
    pub(in crate::render) to: f64,
    /// Its colour.
    pub(in crate::render) kind: Kind,
    /// The exact figures.
    pub(in crate::render) words: String,
}

impl Chart {
    /// Its height in pixels.
    pub(in crate::render) fn height(&self) -> u32 {
        ROW.saturating_mul(u32::try_from(self.rows.len()).unwrap_or(u32::MAX)).saturating_add(SCALE)
    }

    /// The kinds that its bars have.
    pub(in crate::render) fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.rows.iter().flat_map(|row| &row.bars).map(|bar| bar.kind)
    }

    /// The shapes, without a frame.
    pub(in crate::render) fn shapes(&self) -> Markup {
        let bottom = self.height() - SCALE;
        html! {
            (self.scale(bottom))
            @for (index, row) in (0u32..).zip(&self.rows) { (self.row(row, index.saturating_mul(ROW))) }
        }
    }

    fn at(&self, mib: f64) -> String {
        percent(mib / self.whole)
    }

    /// Where a piece begins and how wide it is.
    fn span(&self, from: f64, to: f64) -> (String, String) {
        let (left, right) = (from.min(to).clamp(0.0, self.whole), from.max(to).clamp(0.0, self.whole));
        (self.at(left), self.at(right - left))
    }

    /// A tolerance that is wide enough to be seen.
    fn visible(&self, tolerance: Option<(f64, f64)>) -> Option<(f64, f64)> {
        tolerance.filter(|(low, high)| (high - low) / self.whole >= VISIBLE)
    }

    fn row(&self, row: &Row, top: u32) -> Markup {
        let name = if row.strong { "name strong" } else { "name" };
        let figure = if row.strong { "figure strong" } else { "figure" };
        html! {
            g {
                text paint-order="stroke" class=(name) x="0" y=(top + TEXT) { (Shown(&row.name)) }
                text paint-order="stroke" class=(figure) x="100%" y=(top + TEXT) { (Shown(&row.figure)) }
                rect class="track" x="0" y=(top + BAR) width="100%" height=(THICK) {}
                @for bar in &row.bars {
                    @let (left, width) = self.span(bar.from, bar.to);
                    rect class=(bar.kind.class()) x=(left) y=(top + BAR) width=(width) height=(THICK) {
                        title { (Shown(&bar.words)) }
                    }
                }
                @for (from, to, words) in &row.parts {
                    @let (left, width) = self.span(*from, *to);
                    rect class="part" fill="none" pointer-events="all" x=(left) y=(top + BAR)
                        width=(width) height=(THICK) {
                        title { (Shown(words)) }
                    }
                }
                @if let Some((from, to, words)) = &row.claim {
                    @let (left, width) = self.span(*from, *to);
                    rect class="claim" x=(left) y=(top + BAR + THICK + 2) width=(width) height="2" {
                        title { (Shown(words)) }
                    }
                }
                @if let Some((low, high)) = self.visible(row.tolerance) {
                    @let (low, high) = (self.at(low), self.at(high));
                    line class="whisker" x1=(low) x2=(high) y1=(top + BAR + THICK / 2) y2=(top + BAR + THICK / 2) {}
                    line class="whisker" x1=(low) x2=(low) y1=(top + BAR + 3) y2=(top + BAR + THICK - 3) {}
                    line class="whisker" x1=(high) x2=(high) y1=(top + BAR + 3) y2=(top + BAR + THICK - 3) {}
                }
                @if let Some(link) = row.link {
                    line class="link" x1=(self.at(link)) x2=(self.at(link)) y1=(top + BAR + THICK) y2=(top + BAR + ROW) {}
                }
            }
        }
    }

    /// MiB along the bottom. The last tick is left out where it would run into the end.
    fn scale(&self, bottom: u32) -> Markup {
        let step = round_step(self.whole, 5.0);
        let ticks = (1u32..8).map(|tick| f64::from(tick) * step).take_while(|mib| *mib <= self.whole * 0.92);
        html! {
            @for mib in ticks {
                line class="grid" x1=(self.at(mib)) x2=(self.at(mib)) y1="0" y2=(bottom) {}
                text paint-order="stroke" class="tick middle" x=(self.at(mib)) y=(bottom + 15) { (group_digits(mib as i128)) }
            }
            text paint-order="stroke" class="tick" x="0" y=(bottom + 15) { "0" }
            text paint-order="stroke" class="tick end" x="100%" y=(bottom + 15) { "MiB" }
        }
    }
}
