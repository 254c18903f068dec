//! Renderers: an analysis as text for people. They know looks and words, and compute nothing.

mod balance;
mod bridge;
mod budget;
mod entries;
mod findings;
mod fold;
mod header;
mod holders;
mod ledger;
mod names;
mod page;
mod plan;
mod quote;
mod rest;
mod sheet;
mod snapshot;
mod verdict;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use plan::plan;

use crate::analysis::{Analysis, LaunchAnalysis};
use crate::ledger::Ledger;
use crate::observe::Observation;
use page::Page;

pub use snapshot::{SnapshotView, snapshot};

/// How the terminal report looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableOptions {
    /// Columns of the terminal; below 60 the report is laid out for 60.
    pub width: usize,
    /// Whether to colour with escape codes.
    pub colour: bool,
    /// Whether each rank gets a table of its own, also where ranks agree.
    pub per_rank: bool,
    /// Verdict and findings only.
    pub quiet: bool,
    /// ASCII characters only.
    pub ascii: bool,
}

/// The report for a terminal: verdict, header, ledger, bridge, budget, findings, and what else was found. Every string that comes
/// from input is cleaned; without `colour` the text holds no control characters but line ends.
pub fn terminal(analysis: &Analysis, options: &TableOptions) -> String {
    let mut page = Page::new(options.width, options.ascii);
    verdict::write(&mut page, analysis);
    for (index, launch) in analysis.launches.iter().enumerate() {
        let view = View { analysis, index, launch };
        page.gap();
        if !options.quiet {
            header::write(&mut page, &view);
            ledger::write(&mut page, &view, options);
            bridge::write(&mut page, &view, options);
            budget::write(&mut page, &view);
            holders::write(&mut page, &view, options.per_rank);
        } else if analysis.launches.len() > 1 && !launch.findings.is_empty() {
            header::write_name(&mut page, &view);
        }
        findings::write(&mut page, &view);
    }
    rest::write(&mut page, analysis, options);
    page.finish(options.colour)
}

/// One launch within its analysis.
#[derive(Clone, Copy)]
struct View<'a> {
    analysis: &'a Analysis,
    index: usize,
    launch: &'a LaunchAnalysis,
}

impl<'a> View<'a> {
    fn ledger(&self, rank: usize) -> Option<&'a Ledger> {
        self.launch.ledgers.get(rank)
    }

    /// The sample that a rank is compared with.
    fn sample(&self, rank: usize) -> Option<&'a Observation> {
        let observation = self.launch.devices.get(rank)?.observation?;
        self.analysis.observations.get(observation)
    }
}
