//! The catalogue of SGLang's memory-relevant lines: wording as data, one row a template.
//!
//! Everything that varies by release is a row here and nothing else: the interpreter in `pattern`
//! matches lines against the same `pattern` text that a reader sees, the role says what the line is for, and
//! [`needles()`] derives from the rows what the scanner searches for. The rows stand in one file a family.
//!
//! The patterns' notation is described in the module `pattern`.

mod args;
mod dist;
mod error;
mod fork;
mod graph;
mod host;
mod kv;
mod launcher;
mod load;
mod lora;
pub(crate) mod machine;
mod needles;
mod post;
mod releases;
#[cfg(test)]
pub(crate) mod samples;
mod summary;
mod trace;
mod update;

pub use needles::needles;

use super::pattern::Matcher;
use crate::event::{Edge, Role, WorkerHint};
use crate::stage::{Stage, Worker};
use crate::version::{Version, VersionRange};
use std::collections::HashMap;
use std::sync::OnceLock;

/// Which ranks print a line, in the releases that print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Printers {
    /// Every rank.
    EveryRank,
    /// Lines of the model runner: every rank, save that 0.4.6 to 0.5.3 filter them to TP rank 0.
    ModelRunner,
    /// Capture lines of the draft worker: every rank up to 0.5.9, TP rank 0 from 0.5.12 on.
    DraftWorker,
    /// TP rank 0 of each pipeline stage or replica.
    TpRankZero,
    /// The launcher.
    Launcher,
}

/// One row: a line of SGLang by its words.
#[derive(Debug, PartialEq, Eq)]
pub struct Template {
    /// The catalogue's name for it, such as `load.begin`.
    pub id: &'static str,
    /// The words, with holes.
    pub pattern: &'static str,
    /// What the line is for. Where the wording has alternatives that change it (`draft` for `target`,
    /// `VA upper bound` for `is allocated`), the event's own role is the refined one.
    pub role: Role,
    /// The first release seen to print it.
    pub first: Version,
    /// The last release seen to print it.
    pub last: Version,
    /// Who prints it.
    pub printers: Printers,
}

impl Template {
    /// The releases between the first and the last one seen to print this row. Several rows can print the same
    /// words: what a line's wording says of the release is [`crate::event::Event::wording_range`].
    pub const fn releases(&self) -> VersionRange {
        VersionRange { first: self.first, last: self.last }
    }

    /// Whether `message` (a line without its prefix) is exactly this row's wording, letter case aside.
    pub fn prints(&self, message: &str) -> bool {
        compiled().iter().filter(|row| row.template == self).any(|row| row.matcher.prints(message))
    }
}

/// The families of rows, in the order in which rows of equal merit are preferred.
static FAMILIES: [&[Template]; 15] = [
    dist::ROWS,
    load::ROWS,
    kv::ROWS,
    graph::ROWS,
    post::ROWS,
    summary::ROWS,
    lora::ROWS,
    update::ROWS,
    host::ROWS,
    error::ROWS,
    args::ROWS,
    launcher::ROWS,
    fork::ROWS,
    trace::ROWS,
    machine::ROWS,
];

/// All rows.
pub fn templates() -> impl Iterator<Item = &'static Template> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// The row of this id.
pub fn template(id: &str) -> Option<&'static Template> {
    templates().find(|template| template.id == id)
}

/// A row with its pattern made ready for matching.
pub(super) struct Row {
    /// The row.
    pub template: &'static Template,
    /// Its pattern, compiled.
    pub matcher: Matcher,
}

/// All rows, compiled once.
pub(super) fn compiled() -> &'static [Row] {
    static COMPILED: OnceLock<Vec<Row>> = OnceLock::new();
    COMPILED.get_or_init(|| {
        templates()
            .filter_map(|template| Some(Row { template, matcher: Matcher::compile(template.pattern)? }))
            .collect()
    })
}

/// The rows that a line can be of, by its first two bytes: trying all of them costs ten times as much.
struct Index {
    by_opening: HashMap<[u8; 2], Vec<&'static Row>>,
    /// Rows that begin with a value.
    others: Vec<&'static Row>,
}

/// The rows that a line with this beginning can be of, earlier ones first among those of one kind.
pub(super) fn candidates(text: &str) -> impl Iterator<Item = &'static Row> {
    static INDEX: OnceLock<Index> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let mut index = Index { by_opening: HashMap::new(), others: Vec::new() };
        for row in compiled() {
            match row.matcher.openings() {
                None => index.others.push(row),
                Some(mut openings) => {
                    openings.sort_unstable();
                    openings.dedup();
                    for opening in openings {
                        index.by_opening.entry(opening).or_default().push(row);
                    }
                }
            }
        }
        index
    });
    let opening = match text.as_bytes() {
        [first, second, ..] => Some([first.to_ascii_lowercase(), second.to_ascii_lowercase()]),
        _ => None,
    };
    let listed = opening.and_then(|opening| index.by_opening.get(&opening));
    listed.into_iter().flatten().chain(&index.others).copied()
}

/// A row, written compactly.
const fn row(
    id: &'static str,
    pattern: &'static str,
    role: Role,
    (first, last): (Version, Version),
    printers: Printers,
) -> Template {
    Template { id, pattern, role, first, last, printers }
}

/// A stage begins; target and draft print the same words.
const fn begins(stage: Stage) -> Role {
    Role::Stage(stage, Edge::Begin, WorkerHint::ByOrder)
}

/// A stage ends; target and draft print the same words.
const fn ends(stage: Stage) -> Role {
    Role::Stage(stage, Edge::End, WorkerHint::ByOrder)
}

/// A stage of a known worker begins.
const fn begins_for(worker: Worker, stage: Stage) -> Role {
    Role::Stage(stage, Edge::Begin, WorkerHint::Known(worker))
}

/// A stage of a known worker ends.
const fn ends_for(worker: Worker, stage: Stage) -> Role {
    Role::Stage(stage, Edge::End, WorkerHint::Known(worker))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_are_unique_and_every_pattern_compiles() {
        let ids: HashSet<_> = templates().map(|template| template.id).collect();
        assert_eq!(ids.len(), templates().count());
        let compiled: HashSet<_> = compiled().iter().map(|row| row.template.id).collect();
        assert_eq!(ids.difference(&compiled).collect::<Vec<_>>(), Vec::<&&str>::new());
    }

    #[test]
    fn ranges_are_in_order_and_made_of_known_releases() {
        for template in templates() {
            assert!(template.first <= template.last, "{}", template.id);
            assert!(crate::version::KNOWN.contains(&template.first), "{}", template.id);
            assert!(crate::version::KNOWN.contains(&template.last), "{}", template.id);
        }
    }
}
