//! Pictures: bars and curves as SVG, alone or inside a page.
//!
//! Everything is placed in percent of the width, so that text keeps its size however wide the picture is. Each picture has a
//! title and a description, each shape the exact figures it stands for. There are no scripts; all words are cleaned and escaped.

mod bars;
mod bridge;
mod colours;
mod ranks;
mod timeline;
mod waterfall;

pub(super) use bars::Chart;
pub(super) use bridge::bridge;
pub(super) use colours::legend;
pub(super) use ranks::ranks;
pub(super) use timeline::timeline;
pub(super) use waterfall::waterfall;

use super::View;
use super::key_figures::poorest_rank;
use super::{header, names};
use crate::analysis::Analysis;
use crate::text;
use maud::{Markup, PreEscaped, Render, html};

/// Colours and type of the pictures, light and dark: a part of every page that shows them.
pub(super) const STYLE: &str = include_str!("style.css");

/// Width of a picture that stands alone, in pixels, and the margin around it.
const WIDTH: u32 = 760;
const MARGIN: u32 = 20;
/// Room for its title.
const HEAD: u32 = 52;

/// Words of the input inside markup: cleaned, then escaped.
pub(super) struct Shown<'a>(pub(super) &'a str);

impl Render for Shown<'_> {
    fn render_to(&self, buffer: &mut String) {
        text::clean(self.0, false).as_str().render_to(buffer);
    }
}

/// The waterfall of the poorest rank of the last launch that printed figures, as a file of its own. `None` where no launch
/// printed any.
pub fn svg(analysis: &Analysis) -> Option<String> {
    let (view, chart) = analysis.launches.iter().enumerate().rev().find_map(|(index, launch)| {
        let view = View { analysis, index, launch };
        let chart = waterfall(&view, poorest_rank(&view), &format!("waterfall-{}", index + 1))?;
        Some((view, chart))
    })?;
    let subject = subject(&view);
    let title = format!("{} · {subject}", chart.title);
    let height = chart.height() + 2 * MARGIN + HEAD;
    let inner = WIDTH - 2 * MARGIN;
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(WIDTH) height=(height)
            viewBox={ "0 0 " (WIDTH) " " (height) } role="img"
            aria-labelledby="picture-title picture-description" {
            title id="picture-title" { (Shown(&title)) }
            desc id="picture-description" { (Shown(&chart.description)) }
            style { (PreEscaped(STYLE)) }
            rect class="page" width="100%" height="100%" {}
            text paint-order="stroke" class="strong" x=(MARGIN) y="32" { (Shown(&chart.title)) }
            text paint-order="stroke" class="soft" x=(MARGIN) y="52" { (Shown(&text::cut(&text::clean(&subject, false), 100, "…"))) }
            svg x=(MARGIN) y=(MARGIN + HEAD) width=(inner) height=(chart.height()) { (chart.shapes()) }
        }
    };
    Some(format!("{}\n", picture.into_string()))
}

/// What a picture alone must say of whose memory it shows.
fn subject(view: &View<'_>) -> String {
    let model = header::model(&view.launch.launch);
    let outcome = names::outcome(&view.launch.launch);
    [model, Some(outcome)].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// A picture inside a page.
pub(super) fn inline(chart: &Chart) -> Markup {
    framed(&chart.id, &chart.title, &chart.description, chart.height(), chart.shapes())
}

/// The frame that every picture inside a page has.
fn framed(id: &str, title: &str, description: &str, height: u32, shapes: Markup) -> Markup {
    html! {
        svg.picture width="100%" height=(height) role="img" aria-labelledby={ (id) "-title " (id) "-desc" } {
            title id={ (id) "-title" } { (Shown(title)) }
            desc id={ (id) "-desc" } { (Shown(description)) }
            (shapes)
        }
    }
}

/// A share as a percentage of the width, three decimals: the same on every machine.
fn percent(share: f64) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    format!("{:.3}%", share * 100.0)
}

/// A round step for an axis that has `ticks` or fewer of them.
fn round_step(whole: f64, ticks: f64) -> f64 {
    let rough = whole / ticks;
    if !rough.is_finite() || rough <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= rough).unwrap_or(10.0);
    step * power
}

#[cfg(test)]
mod tests;
