//! The pipeline: from parsed sources to launches, ledgers, reconciliations and findings.
//!
//! Renderers and the JSON report read an [`Analysis`] and compute nothing themselves.

use crate::budget::audit::{Audit, AuditInputs, ModelFacts, audit};
use crate::budget::plan::{Facts, PlanError};
use crate::event::{Event, Field};
use crate::finding::{Finding, Severity};
use crate::grammar::nvidia_smi::DumpNote;
use crate::holders::{Breakdown, SnapshotSource, Unmatched, breakdowns, match_snapshots};
use crate::launch::{Launch, Outcome, Rank};
use crate::ledger::Ledger;
use crate::observe::Observation;
use crate::place::Place;
use crate::quantity::{MIB, Quantity};
use crate::reconcile::{DeviceChoice, Reconciliation, choose_devices, reconcile, with_processes};
use crate::redact::{Edit, Redaction, moved};
use crate::rules::{self, Context};
use crate::thresholds::Thresholds;
use crate::triage;
use std::sync::Arc;

/// What a source turned out to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourceKind {
    /// SGLang log lines.
    Log,
    /// nvidia-smi output, or a relative's.
    Smi,
    /// Both in one.
    Mixed,
    /// Neither.
    Unknown,
}

impl SourceKind {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            SourceKind::Log => "log",
            SourceKind::Smi => "smi",
            SourceKind::Mixed => "mixed",
            SourceKind::Unknown => "unknown",
        }
    }
}

/// One source as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceFacts {
    /// The path as given, or `-`.
    pub name: Arc<str>,
    /// What it held.
    pub kind: SourceKind,
    /// Its size in bytes, as read.
    pub bytes: u64,
    /// Its physical lines.
    pub lines: u64,
    /// What was found instead, where neither log nor dump was.
    pub found_instead: Option<String>,
    /// Events that were left out to bound memory.
    pub left_out: u64,
}

/// A line that looks like memory and that no grammar knew.
#[derive(Debug, Clone, PartialEq)]
pub struct Unrecognised {
    /// Where it stands.
    pub place: Place,
    /// What it says.
    pub text: Arc<str>,
}

/// Everything that one source gave.
#[derive(Debug, Clone)]
pub struct SourceReading {
    /// The source.
    pub facts: SourceFacts,
    /// Its launches.
    pub launches: Vec<Launch>,
    /// Its observations.
    pub observations: Vec<Observation>,
    /// What its dumps could not say.
    pub notes: Vec<DumpNote>,
    /// Lines that no grammar knew.
    pub unrecognised: Vec<Unrecognised>,
}

/// One launch with its books and what was found in them.
#[derive(Debug, Clone)]
pub struct LaunchAnalysis {
    /// The launch.
    pub launch: Launch,
    /// One ledger a rank, in the order of `launch.ranks`.
    pub ledgers: Vec<Ledger>,
    /// One choice a rank.
    pub devices: Vec<DeviceChoice>,
    /// SGLang's budget arithmetic redone.
    pub audit: Option<Audit>,
    /// What a what-if starts from, one entry a world of the audit.
    pub facts: Vec<Result<Facts, PlanError>>,
    /// Who holds the memory: the breakdowns of each rank, in the order of `launch.ranks`.
    pub holders: Vec<Vec<Breakdown>>,
    /// Findings, worst first.
    pub findings: Vec<Finding>,
}

/// What the user set.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Limits that are judgements.
    pub thresholds: Thresholds,
    /// `--map TP0=3`: rank tag and device.
    pub mapped: Vec<(String, u32)>,
    /// `--gpu-mem`: the card's size in MiB as nvidia-smi prints it, where no sample tells.
    pub card_mib: Option<u32>,
    /// `--model-config` and `--weights-index`.
    pub model: Option<ModelFacts>,
    /// `--snapshot`: PyTorch's memory snapshots of the last launch's processes.
    pub snapshots: Vec<SnapshotSource>,
}

/// The whole result.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// The sources in the order given.
    pub sources: Vec<SourceFacts>,
    /// The launches in the order read.
    pub launches: Vec<LaunchAnalysis>,
    /// All observations.
    pub observations: Vec<Observation>,
    /// What the dumps could not say.
    pub notes: Vec<DumpNote>,
    /// Ledgers against observations.
    pub reconciliations: Vec<Reconciliation>,
    /// Lines that no grammar knew.
    pub unrecognised: Vec<Unrecognised>,
    /// What was redacted. `None` where nothing was asked to be.
    pub redaction: Option<Redaction>,
    /// Snapshots that no rank was found for.
    pub unmatched_snapshots: Vec<Unmatched>,
}

/// Analyses everything that was read.
pub fn analyse(readings: Vec<SourceReading>, settings: &Settings) -> Analysis {
    let mut analysis = Analysis {
        sources: Vec::new(),
        launches: Vec::new(),
        observations: Vec::new(),
        notes: Vec::new(),
        reconciliations: Vec::new(),
        unrecognised: Vec::new(),
        redaction: None,
        unmatched_snapshots: Vec::new(),
    };
    let mut launches = Vec::new();
    for reading in readings {
        analysis.sources.push(reading.facts);
        launches.extend(reading.launches);
        analysis.observations.extend(reading.observations);
        analysis.notes.extend(reading.notes);
        analysis.unrecognised.extend(reading.unrecognised);
    }
    let last_with_ranks = launches.iter().rposition(|launch| !launch.ranks.is_empty());
    for (index, mut launch) in launches.into_iter().enumerate() {
        // Frames say where it died even where the log's lines don't.
        if let Some(stage) = triage::stage_at_death(&launch) {
            launch.failed_stage = Some(stage);
        }
        let ledgers: Vec<Ledger> = launch.ranks.iter().map(Ledger::of).collect();
        // A dump without a clock shows the latest state: of several launches in a log, the last one's.
        let observations = samples_for(&launch, &analysis.observations, Some(index) == last_with_ranks);
        let mapped = |rank: &Rank| {
            settings.mapped.iter().find(|(tag, _)| *tag == rank.tag.text).map(|(_, device)| *device)
        };
        let devices = choose_devices(&launch, &ledgers, &observations, &mapped);
        for (rank, (ledger, choice)) in ledgers.iter().zip(&devices).enumerate() {
            let Some((observation, sample)) = choice
                .observation
                .and_then(|at| Some((at, with_processes(observations.get(at)?, &observations))))
            else {
                continue;
            };
            let Some(rank_facts) = launch.ranks.get(rank) else { continue };
            analysis.reconciliations.extend(reconcile(
                (index, &launch),
                (rank, rank_facts),
                ledger,
                (observation, &sample),
            ));
        }
        let diagnosis = triage::diagnose(&launch, &ledgers, &devices);
        let inputs = AuditInputs {
            launch: &launch,
            ledgers: &ledgers,
            card_mib: settings.card_mib.or_else(|| smallest_card(&analysis.observations)),
            model: settings.model.as_ref(),
        };
        let audit = audit(&inputs);
        let facts: Vec<Result<Facts, PlanError>> = audit
            .iter()
            .flat_map(|audit| audit.worlds.iter().map(|world| Facts::of(&inputs, audit, world)))
            .collect();
        // A snapshot has no clock: as a dump without one, it is of the last launch.
        let of_launch = if Some(index) == last_with_ranks { settings.snapshots.as_slice() } else { &[] };
        let (matched, unmatched) = match_snapshots(&launch, of_launch);
        analysis.unmatched_snapshots.extend(unmatched);
        let holders = launch.ranks.iter().zip(&ledgers).zip(&matched).enumerate();
        let holders = holders
            .map(|(rank, ((facts, ledger), snapshot))| {
                let reconciliation = analysis.reconciliation(index, rank);
                breakdowns(&launch, facts, ledger, reconciliation, snapshot.as_ref())
            })
            .collect();
        let context = Context {
            launch: &launch,
            diagnosis: diagnosis.as_ref(),
            audit: audit.as_ref(),
            facts: &facts,
            ledgers: &ledgers,
            devices: &devices,
            observations: &analysis.observations,
            reconciliations: analysis.reconciliations.iter().filter(|one| one.launch == index).collect(),
            unrecognised: &analysis.unrecognised,
            thresholds: &settings.thresholds,
        };
        let findings = rules::check(&context);
        analysis.launches.push(LaunchAnalysis { launch, ledgers, devices, audit, facts, holders, findings });
    }
    analysis
}

/// The smallest card of all samples, in MiB as its instrument prints it: SGLang's defaults go by it, used or not.
fn smallest_card(observations: &[Observation]) -> Option<u32> {
    let whole = observations.iter().filter(|sample| sample.mig.is_none());
    let least = whole.filter_map(|sample| sample.total).map(Quantity::midpoint).min()?;
    u32::try_from((least + MIB / 2) / MIB).ok()
}

/// The observations that can speak of a launch. A sample without a clock is only held against the last launch.
fn samples_for(launch: &Launch, observations: &[Observation], is_last: bool) -> Vec<Observation> {
    observations
        .iter()
        .map(|sample| {
            let apart = sample
                .taken_at
                .zip(launch.ready.as_ref().and_then(|ready| ready.stamp).or(launch.last_event_at));
            let of_this_launch = match apart.and_then(|(taken, moment)| taken.seconds_since(&moment)) {
                Some(_) => is_last || sample_precedes_end(launch, sample),
                None => is_last,
            };
            if of_this_launch {
                sample.clone()
            } else {
                // Kept in its position, so that indices stay those of the analysis, but without figures to match.
                Observation { total: None, used: None, free: None, ..sample.clone() }
            }
        })
        .collect()
}

/// Whether a sample was taken before the launch's last line.
fn sample_precedes_end(launch: &Launch, sample: &Observation) -> bool {
    let apart =
        sample.taken_at.zip(launch.last_event_at).and_then(|(taken, last)| taken.seconds_since(&last));
    apart.is_some_and(|seconds| seconds <= 0.0)
}

impl Analysis {
    /// The worst severity found. `None` where nothing was.
    pub fn worst(&self) -> Option<Severity> {
        self.launches.iter().flat_map(|launch| &launch.findings).map(|finding| finding.severity).max()
    }

    /// Whether any source gave anything to report on.
    pub fn is_empty(&self) -> bool {
        self.launches.is_empty() && self.observations.is_empty()
    }

    /// The reconciliation of one rank.
    pub fn reconciliation(&self, launch: usize, rank: usize) -> Option<&Reconciliation> {
        self.reconciliations.iter().find(|one| one.launch == launch && one.rank == rank)
    }

    fn edits(&self, message: &Place) -> &[Edit] {
        self.redaction.as_ref().map(|redaction| redaction.edits(message)).unwrap_or_default()
    }

    /// The log line that a place stands in, and the figure there.
    pub fn quote(&self, place: &Place) -> Option<Quote> {
        let of_launch = |launch: &LaunchAnalysis| {
            let rank_events =
                launch.launch.ranks.iter().flat_map(|rank| &rank.events).map(|event| &event.event);
            let others =
                launch.launch.notes.iter().chain(&launch.launch.failures).chain(&launch.launch.ready);
            let events = rank_events.chain(others);
            events
                .into_iter()
                .filter(|event| event.place.source == place.source && event.place.line == place.line)
                .find_map(|event| Quote::of(event, place, self.edits(&event.place)))
        };
        self.launches.iter().find_map(of_launch)
    }
}

/// A log line as evidence: its text and the figure in it that matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quote {
    /// The message, control characters replaced.
    pub text: Arc<str>,
    /// Byte offset of the figure in the text; `None` where the whole line is meant.
    pub start: Option<usize>,
    /// Bytes of the figure.
    pub length: usize,
}

impl Quote {
    /// The quote of a line, in which these pieces were redacted.
    fn of(event: &Event, place: &Place, edits: &[Edit]) -> Option<Quote> {
        let field: Option<&Field> = event.fields.iter().find(|field| field.place == *place);
        if field.is_none() && event.place != *place {
            return None;
        }
        let start =
            field.and_then(|field| usize::try_from(field.place.column.checked_sub(event.place.column)?).ok());
        let start = start.and_then(|start| moved(edits, start));
        let start = start.filter(|start| event.text.is_char_boundary(*start));
        Some(Quote { text: Arc::clone(&event.text), start, length: field.map_or(0, |field| field.length) })
    }
}

/// The verdict on one launch in a few words, worst fact first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether anything needs attention.
    pub healthy: bool,
    /// The phrases, to be joined by the renderer.
    pub phrases: Vec<String>,
}

impl LaunchAnalysis {
    /// Whether all ledgers balance; `None` where none could be balanced.
    pub fn balances(&self) -> Option<bool> {
        let known: Vec<bool> = self.ledgers.iter().filter_map(|ledger| ledger.balance.holds).collect();
        (!known.is_empty()).then(|| known.into_iter().all(|holds| holds))
    }

    /// The verdict line's phrases.
    pub fn verdict(&self) -> Verdict {
        let count =
            |severity: Severity| self.findings.iter().filter(|finding| finding.severity == severity).count();
        let (errors, warnings, infos) =
            (count(Severity::Error), count(Severity::Warning), count(Severity::Info));
        let mut phrases = Vec::new();
        if matches!(self.launch.outcome, Outcome::Failed | Outcome::Incomplete)
            && let Some(failed) = self.findings.iter().find(|finding| finding.rule.name == "launch-failed")
        {
            phrases.push(failed.title.clone());
        }
        phrases.push(
            match self.balances() {
                Some(true) => "books balance",
                Some(false) => "books do not balance",
                None => "too few figures to balance",
            }
            .to_string(),
        );
        let free = self.ledgers.iter().filter_map(Ledger::final_free).reduce(|one, other| one.min(other));
        if let (Outcome::Ready | Outcome::Running, Some(free)) = (self.launch.outcome, free) {
            phrases.push(format!("ready with {} MiB free", crate::quantity::mib_whole(free)));
        }
        let plural = |number: usize, one: &str, many: &str| {
            format!("{number} {}", if number == 1 { one } else { many })
        };
        phrases.push(match (errors + warnings, infos) {
            (0, 0) => "nothing to report".to_string(),
            (0, infos) => {
                format!("nothing needs your attention, {} worth knowing", plural(infos, "thing", "things"))
            }
            (attention, 0) => format!("{} your attention", plural(attention, "thing needs", "things need")),
            (attention, infos) => {
                format!(
                    "{} your attention, {infos} more worth knowing",
                    plural(attention, "thing needs", "things need")
                )
            }
        });
        Verdict { healthy: errors + warnings == 0, phrases }
    }
}
