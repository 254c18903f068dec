//! The log lines of a launch: those that the report rests on, numbered, with anchors that findings lead to.
//!
//! Only lines that the grammar reads are kept in memory, so only they can be shown; a break in the numbers says that lines
//! stand in between.

use super::findings;
use super::{Shown, class};
use crate::event::{Event, Role};
use crate::place::Place;
use crate::render::View;
use crate::render::findings::tone;
use crate::render::names::counted;
use crate::text;
use maud::{Markup, html};
use std::collections::BTreeMap;

/// So many lines are shown in full; of more, those that findings quote and their neighbours.
const MOST: usize = 400;
/// Neighbours to either side of a quoted line.
const AROUND: usize = 5;
/// Columns of a line; arguments print thousands.
const WIDE: usize = 400;
const ARGUMENTS: usize = 160;

/// The lines of one launch.
pub(super) struct Log<'a> {
    view: View<'a>,
    lines: BTreeMap<u64, Line<'a>>,
    left_out: usize,
}

struct Line<'a> {
    event: &'a Event,
    /// Findings that rest on it, by their position.
    cited: Vec<usize>,
}

impl<'a> Log<'a> {
    /// The lines of a launch: every one that was read, or where these are too many, those near evidence.
    pub(super) fn of(view: &View<'a>) -> Log<'a> {
        let launch = &view.launch.launch;
        let mut lines: BTreeMap<u64, Line<'a>> = BTreeMap::new();
        let ranks = launch.ranks.iter().flat_map(|rank| &rank.events).map(|event| &event.event);
        let others = launch.notes.iter().chain(&launch.failures).chain(&launch.ready);
        for event in ranks.chain(others).filter(|event| event.place.source == launch.source) {
            // Several messages may be glued into a line: the first stands for it, unless a later one is no mere bar.
            let line = lines.entry(event.place.line).or_insert(Line { event, cited: Vec::new() });
            if matches!(line.event.role, Role::Progress(_)) && !matches!(event.role, Role::Progress(_)) {
                line.event = event;
            }
        }
        for (index, finding) in view.launch.findings.iter().enumerate() {
            for place in finding.places.iter().filter(|place| place.source == launch.source) {
                if let Some(line) = lines.get_mut(&place.line)
                    && !line.cited.contains(&index)
                {
                    line.cited.push(index);
                }
            }
        }
        let all = lines.len();
        if all > MOST {
            let cited: Vec<bool> = lines.values().map(|line| !line.cited.is_empty()).collect();
            let near = |at: usize| {
                let window = cited.get(at.saturating_sub(AROUND)..(at + AROUND + 1).min(all));
                window.is_some_and(|window| window.contains(&true))
            };
            let mut at = 0;
            let mut kept = 0;
            lines.retain(|_, line| {
                let keep = !line.cited.is_empty() || kept < MOST && near(at);
                at += 1;
                kept += usize::from(keep);
                keep
            });
        }
        Log { view: *view, left_out: all - lines.len(), lines }
    }

    /// Where a place's line is shown.
    pub(super) fn anchor(&self, place: &Place) -> Option<String> {
        let here = place.source == self.view.launch.launch.source;
        (here && self.lines.contains_key(&place.line)).then(|| self.id(place.line))
    }

    fn id(&self, line: u64) -> String {
        format!("log-{}-{line}", self.view.index + 1)
    }

    /// The list of lines.
    pub(super) fn section(&self) -> Markup {
        let mut last = None;
        html! {
            @if !self.lines.is_empty() {
                h3 { "Log lines" }
                p.dim {
                    "The lines of the log that this report rests on, by their numbers."
                    @if self.left_out > 0 {
                        " " (counted(self.left_out, "line is", "lines are"))
                        " left out: no finding rests on them or stands near."
                    }
                }
                ol.log {
                    @for (number, line) in &self.lines {
                        (self.line(*number, line, last.replace(*number).is_some_and(|last| last + 1 < *number)))
                    }
                }
            }
        }
    }

    fn line(&self, number: u64, line: &Line<'_>, apart: bool) -> Markup {
        let wide = if line.event.role == Role::ServerArgs { ARGUMENTS } else { WIDE };
        let words = text::cut(&text::clean(&line.event.text, false), wide, "…");
        let class_name = match (line.cited.is_empty(), apart) {
            (true, false) => "",
            (true, true) => "apart",
            (false, false) => "cited",
            (false, true) => "cited apart",
        };
        html! {
            li id=(self.id(number)) value=(number) class=[(!class_name.is_empty()).then_some(class_name)] {
                @if !line.event.rank.text.is_empty() { span.tag { (Shown(&line.event.rank.text)) } " " }
                code { (Shown(&words)) }
                @for index in &line.cited {
                    @if let Some(finding) = self.view.launch.findings.get(*index) {
                        " "
                        a.badge.(class(tone(finding.severity))) href={ "#" (findings::id(&self.view, *index)) } {
                            (finding.rule.code)
                        }
                    }
                }
            }
        }
    }
}
