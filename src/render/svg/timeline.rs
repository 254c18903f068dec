//! Free memory over time: the curve of a rank between its printed figures, its stages shaded.
//!
//! Capture bars carry no clock of their own; they are spread evenly over their capture.

use super::colours::Kind;
use super::{Shown, framed, percent, round_step};
use crate::ledger::{Ledger, PostingKind, PostingState};
use crate::quantity::{Quantity, group_digits, mib_text};
use crate::render::View;
use crate::render::names::{posting_name, rank_names};
use crate::time::Stamp;
use maud::{Markup, html};

/// Height of the plot, and of the scale below it.
const PLOT: u32 = 220;
const SCALE: u32 = 24;
/// Room at the top for the first label.
const TOP: u32 = 16;
/// So many bars of a capture are drawn, evenly picked.
const MOST_BARS: usize = 200;
/// The share of the width that the shortest stage takes.
const NARROWEST: f64 = 0.004;

/// A figure of the curve.
#[derive(Debug)]
struct Point {
    seconds: f64,
    free: f64,
    words: String,
}

/// A stage on the axis of time.
#[derive(Debug)]
struct Band {
    from: f64,
    to: f64,
    kind: Kind,
    words: String,
}

/// The title and the curve of one rank, and the kinds that are shaded in it. `None` where the log has no clock or too few figures.
pub(in crate::render) fn timeline(
    view: &View<'_>,
    rank: usize,
    id: &str,
) -> Option<(String, Markup, Vec<Kind>)> {
    let ledger = view.ledger(rank)?;
    let start = view.launch.launch.started_at?;
    let (points, mut bands) = read(view, ledger, start);
    let begin = points.first()?.seconds.floor();
    let end = points
        .iter()
        .map(|point| point.seconds)
        .chain(bands.iter().map(|band| band.to))
        .fold(begin, f64::max);
    // Clocks of logs print seconds: less than two of them have no shape.
    if end - begin < 2.0 {
        return None;
    }
    bands.retain(|band| band.to >= begin);
    let most = points.iter().map(|point| point.free).fold(0.0, f64::max);
    if points.len() < 3 || most <= 0.0 {
        return None;
    }
    let whole = round_step(most, 4.0) * (most / round_step(most, 4.0)).ceil();
    let name = rank_names(&view.launch.launch, &[rank]).map(|name| format!(" of {name}")).unwrap_or_default();
    let title = format!("Free memory{name} over time");
    let (first, last) = (points.first()?, points.last()?);
    let description = format!(
        "A curve that falls from {} MiB at {:.0} s to {} MiB at {:.0} s after the first line of the log.",
        group_digits(first.free as i128),
        first.seconds,
        group_digits(last.free as i128),
        last.seconds
    );
    let shapes = Axes { begin, end, whole }.shapes(&points, &bands);
    let kinds = bands.iter().map(|band| band.kind).collect();
    let picture = framed(id, &title, &description, TOP + PLOT + SCALE, shapes);
    Some((title, picture, kinds))
}

/// The figures in the order of time. A clock that steps back would draw a loop: such figures are left out.
fn read(view: &View<'_>, ledger: &Ledger, start: Stamp) -> (Vec<Point>, Vec<Band>) {
    let mut points: Vec<Point> = Vec::new();
    let mut bands = Vec::new();
    let mut push = |seconds: f64, free: Quantity, what: &str| {
        if seconds >= points.last().map_or(0.0, |point| point.seconds) {
            let words = format!("{what}: {} MiB free, {seconds:.1} s", mib_text(free));
            points.push(Point { seconds, free: free.mib(), words });
        }
    };
    for posting in ledger.postings.iter().filter(|posting| posting.kind == PostingKind::Stage) {
        let name = posting_name(posting);
        let at = |stamp: Option<Stamp>| stamp.and_then(|stamp| stamp.seconds_since(&start));
        let unfinished = posting.state == PostingState::Begun;
        let last = view.launch.launch.last_event_at.filter(|_| unfinished);
        let (begin, end) = (at(posting.began_at), at(posting.ended_at.or(last)));
        if let (Some(begin), Some(before)) = (begin, posting.before) {
            push(begin, before, &format!("before {name}"));
        }
        if let (Some(begin), Some(end)) = (begin, end) {
            let steps = posting.progress.len() as f64 + 1.0;
            let every = posting.progress.len().div_ceil(MOST_BARS).max(1);
            for (index, point) in posting.progress.iter().enumerate().step_by(every) {
                let seconds = begin + (end - begin) * (index as f64 + 0.5) / steps;
                push(seconds, point.available, &format!("{name}, {}", point.label));
            }
            let words = format!("{name}, {begin:.0} s to {end:.0} s");
            bands.push(Band { from: begin, to: end, kind: Kind::of_stage(posting.stage), words });
        }
        if let (Some(end), Some(after)) = (end, posting.after) {
            push(end, after, &format!("after {name}"));
        }
    }
    let ready = view.launch.launch.ready.as_ref().and_then(|ready| ready.stamp);
    if let (Some(seconds), Some(free)) =
        (ready.and_then(|ready| ready.seconds_since(&start)), ledger.headroom)
    {
        push(seconds, free, "ready");
    }
    (points, bands)
}

/// What the whole width and the whole height stand for.
struct Axes {
    begin: f64,
    end: f64,
    whole: f64,
}

impl Axes {
    fn x(&self, seconds: f64) -> String {
        percent(self.share(seconds))
    }

    fn share(&self, seconds: f64) -> f64 {
        (seconds - self.begin) / (self.end - self.begin)
    }

    /// Where a stage begins and how wide it is: never too narrow to be seen.
    fn span(&self, band: &Band) -> (String, String) {
        let width = (self.share(band.to) - self.share(band.from).max(0.0)).max(NARROWEST);
        (percent(self.share(band.from).min(1.0 - width)), percent(width))
    }

    fn y(&self, mib: f64) -> String {
        self.above(mib, 0.0)
    }

    /// So many pixels above a level.
    fn above(&self, mib: f64, pixels: f64) -> String {
        let share = 1.0 - (mib / self.whole).clamp(0.0, 1.0);
        format!("{:.2}", f64::from(TOP) + f64::from(PLOT) * share - pixels)
    }

    fn shapes(&self, points: &[Point], bands: &[Band]) -> Markup {
        html! {
            @for band in bands {
                @let (left, width) = self.span(band);
                rect class={ "band " (band.kind.class()) } x=(left) y=(TOP) width=(width) height=(PLOT) {
                    title { (Shown(&band.words)) }
                }
            }
            (self.scales())
            @for (one, other) in points.iter().zip(points.iter().skip(1)) {
                line class="curve" x1=(self.x(one.seconds)) y1=(self.y(one.free))
                    x2=(self.x(other.seconds)) y2=(self.y(other.free)) {}
            }
            @for point in points {
                circle class="dot" cx=(self.x(point.seconds)) cy=(self.y(point.free)) r="2.5" {
                    title { (Shown(&point.words)) }
                }
            }
        }
    }

    fn scales(&self) -> Markup {
        let levels = round_step(self.whole, 4.0);
        let levels = (0u32..6).map(|tick| f64::from(tick) * levels).take_while(|mib| *mib <= self.whole);
        let step = round_step(self.end - self.begin, 5.0).max(1.0);
        let first = (self.begin / step).floor() + 1.0;
        let moments = (0u32..8)
            .map(|tick| (first + f64::from(tick)) * step)
            .filter(|at| (0.08..=0.92).contains(&self.share(*at)));
        html! {
            @for mib in levels {
                line class="grid" x1="0" x2="100%" y1=(self.y(mib)) y2=(self.y(mib)) {}
                @if mib > 0.0 {
                    text paint-order="stroke" class="tick end" x="99.7%" y=(self.above(mib, 4.0)) {
                        (group_digits(mib as i128)) " MiB"
                    }
                }
            }
            text paint-order="stroke" class="tick" x="0" y=(TOP + PLOT + 16) { (group_digits(self.begin as i128)) " s" }
            @for at in moments {
                text paint-order="stroke" class="tick middle" x=(self.x(at)) y=(TOP + PLOT + 16) { (group_digits(at as i128)) " s" }
            }
            text paint-order="stroke" class="tick end" x="100%" y=(TOP + PLOT + 16) { (group_digits(self.end as i128)) " s" }
        }
    }
}
