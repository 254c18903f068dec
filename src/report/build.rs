//! From an analysis to the JSON report.

use super::build_budget::budget;
use super::*;
use crate::analysis::{Analysis, LaunchAnalysis, SourceFacts};
use crate::finding::Finding;
use crate::holders::Breakdown;
use crate::launch::{Launch, Rank};
use crate::ledger::{Ledger, Posting, PostingKind};
use crate::observe::Observation;
use crate::place::Place;
use crate::quantity::Quantity;
use crate::reconcile::{DeviceBasis, DeviceChoice, Reconciliation, Verdict};
use crate::server_args::ServerArgs;

/// The report of an analysis. The same analysis always gives the same report: there is no clock in it.
pub fn report(analysis: &Analysis) -> Report {
    Report {
        schema: SCHEMA_NAME.to_string(),
        tool: Tool {
            name: env!("CARGO_PKG_NAME").to_string(),
            version: env!("CARGO_PKG_VERSION").to_string(),
        },
        sources: analysis.sources.iter().map(source).collect(),
        launches: analysis
            .launches
            .iter()
            .enumerate()
            .map(|(index, launch)| launch_report(index, launch))
            .collect(),
        observations: analysis.observations.iter().map(observation).collect(),
        reconciliations: analysis.reconciliations.iter().map(|one| reconciliation(analysis, one)).collect(),
        unrecognised: analysis
            .unrecognised
            .iter()
            .map(|line| UnrecognisedReport { place: position(&line.place), text: line.text.to_string() })
            .collect(),
        notes: analysis
            .notes
            .iter()
            .map(|note| NoteReport { place: position(&note.place), text: note.problem.to_string() })
            .collect(),
        redaction: analysis.redaction.as_ref().map(|redaction| RedactionReport {
            kinds: redaction.counts.iter().map(|(kind, count)| (kind.name().to_string(), *count)).collect(),
        }),
    }
}

pub(super) fn amount(quantity: Quantity) -> Amount {
    Amount { mib: quantity.mib(), low_mib: quantity.low_mib(), high_mib: quantity.high_mib() }
}

pub(super) fn position(place: &Place) -> Position {
    Position { source: place.source.to_string(), line: place.line, column: place.column }
}

fn source(facts: &SourceFacts) -> Source {
    Source {
        name: facts.name.to_string(),
        kind: facts.kind.name().to_string(),
        bytes: facts.bytes,
        lines: facts.lines,
        compression: None,
    }
}

fn launch_report(index: usize, analysed: &LaunchAnalysis) -> LaunchReport {
    let launch = &analysed.launch;
    let versions = launch.versions;
    let ready = launch.ready.as_ref().and_then(|ready| ready.stamp);
    let ranks = launch.ranks.iter().zip(&analysed.ledgers).zip(&analysed.devices).zip(&analysed.holders);
    LaunchReport {
        index,
        source: launch.source.to_string(),
        stream: launch.stream.to_string(),
        first_line: launch.first_line,
        last_line: launch.last_line,
        started_at: launch.started_at.map(|stamp| stamp.to_string()),
        last_event_at: launch.last_event_at.map(|stamp| stamp.to_string()),
        ready_after_s: ready.zip(launch.started_at).and_then(|(ready, start)| ready.seconds_since(&start)),
        outcome: launch.outcome.name().to_string(),
        failed_stage: launch.failed_stage.map(|stage| stage.name().to_string()),
        sglang_version: (versions.first == versions.last).then(|| versions.first.to_string()),
        sglang_version_range: [versions.first.to_string(), versions.last.to_string()],
        model: model(launch),
        server_args: launch.args().map(arguments),
        ranks: ranks
            .map(|(((rank, ledger), choice), holders)| rank_report(rank, ledger, choice, holders))
            .collect(),
        budget: analysed.audit.as_ref().map(|audit| budget(launch, audit)),
        findings: analysed.findings.iter().map(finding).collect(),
    }
}

fn model(launch: &Launch) -> Option<Model> {
    let path = launch.args().and_then(|arguments| arguments.text("model_path")).map(str::to_string);
    let classes = launch.model_classes();
    (path.is_some() || !classes.is_empty()).then_some(Model { path, classes })
}

fn arguments(arguments: &ServerArgs) -> serde_json::Map<String, serde_json::Value> {
    match arguments.to_json() {
        serde_json::Value::Object(map) => map,
        _ => serde_json::Map::new(),
    }
}

fn rank_report(rank: &Rank, ledger: &Ledger, choice: &DeviceChoice, holders: &[Breakdown]) -> RankReport {
    let coordinates = rank.tag.coordinates;
    RankReport {
        tag: rank.tag.text.clone(),
        coordinates: CoordinatesReport {
            dp: coordinates.dp,
            tp: coordinates.tp,
            pp: coordinates.pp,
            ep: coordinates.ep,
            attn_cp: coordinates.attn_cp,
            moe_dp: coordinates.moe_dp,
            gpu: coordinates.gpu,
        },
        device: choice.device,
        device_basis: choice.basis.map(DeviceBasis::name).map(str::to_string),
        opening: ledger.opening.map(amount),
        closing: ledger.closing.map(amount),
        postings: ledger.postings.iter().map(posting).collect(),
        balance: BalanceReport { holds: ledger.balance.holds, residual: ledger.balance.residual.map(amount) },
        headroom: ledger.headroom.map(amount),
        holders: holders.iter().map(breakdown).collect(),
    }
}

fn breakdown(breakdown: &Breakdown) -> HoldersReport {
    let shares = breakdown.shares.iter().map(|share| ShareReport {
        holder: share.holder.name().to_string(),
        amount: amount(share.amount),
        basis: share.basis.name().to_string(),
    });
    let inside = breakdown
        .inside
        .iter()
        .map(|part| InsideReport { label: part.label.to_string(), amount: amount(part.amount) });
    HoldersReport {
        moment: breakdown.moment.name().to_string(),
        scope: breakdown.scope.name().to_string(),
        total: amount(breakdown.total),
        sources: breakdown.sources.clone(),
        place: breakdown.place.as_ref().map(position),
        shares: shares.collect(),
        inside: inside.collect(),
        conflict: breakdown.conflict.clone(),
    }
}

fn posting(posting: &Posting) -> PostingReport {
    PostingReport {
        kind: match posting.kind {
            PostingKind::Stage => "stage",
            PostingKind::Gap => "gap",
        }
        .to_string(),
        stage: posting.stage.name().to_string(),
        worker: posting.worker.name().to_string(),
        label: posting.label.clone(),
        before: posting.before.map(amount),
        after: posting.after.map(amount),
        used: posting.used.map(amount),
        claimed: posting.claimed.map(amount),
        state: posting.state.name().to_string(),
        in_balance: posting.in_chain,
        parts: posting
            .parts
            .iter()
            .map(|part| PartReport {
                label: part.label.clone(),
                size: amount(part.size),
                tokens: part.tokens,
            })
            .collect(),
        progress: posting
            .progress
            .iter()
            .map(|point| ProgressReport { label: point.label.clone(), available: amount(point.available) })
            .collect(),
        elapsed_s: posting.elapsed_seconds,
        places: posting.places.iter().map(position).collect(),
    }
}

fn finding(finding: &Finding) -> FindingReport {
    FindingReport {
        code: finding.rule.code.to_string(),
        name: finding.rule.name.to_string(),
        severity: finding.severity.name().to_string(),
        rank: finding.rank.clone(),
        stage: finding.stage.map(|stage| stage.name().to_string()),
        title: finding.title.clone(),
        explanation: finding.explanation.clone(),
        arithmetic: finding.arithmetic.clone(),
        advice: finding.advice.clone(),
        amount: finding.amount.map(amount),
        places: finding.places.iter().map(position).collect(),
    }
}

fn observation(observation: &Observation) -> ObservationReport {
    ObservationReport {
        source: observation.place.source.to_string(),
        place: position(&observation.place),
        taken_at: observation.taken_at.map(|stamp| stamp.to_string()),
        instrument: observation.instrument.name().to_string(),
        device: observation.device,
        mig: observation.mig.map(|mig| MigReport {
            gi: mig.gpu_instance,
            ci: mig.compute_instance,
            dev: mig.device,
        }),
        uuid: observation.uuid.clone(),
        name: observation.name.clone(),
        total: observation.total.map(amount),
        used: observation.used.map(amount),
        free: observation.free.map(amount),
        reserved: observation.reserved.map(amount),
        processes: observation
            .processes
            .iter()
            .map(|process| ProcessReport {
                pid: process.pid,
                name: process.name.clone(),
                kind: process.kind.clone(),
                used: process.used.map(amount),
            })
            .collect(),
    }
}

fn reconciliation(analysis: &Analysis, one: &Reconciliation) -> ReconciliationReport {
    let rank = analysis.launches.get(one.launch).and_then(|launch| launch.launch.ranks.get(one.rank));
    ReconciliationReport {
        launch: one.launch,
        rank: rank.map(|rank| rank.tag.text.clone()).unwrap_or_default(),
        observation: one.observation,
        bridge: one
            .bridge
            .iter()
            .map(|item| BridgeReport {
                label: item.label.clone(),
                amount: amount(item.amount),
                basis: item.basis.name().to_string(),
            })
            .collect(),
        unexplained: amount(one.unexplained),
        holds: one.verdict == Verdict::Holds,
        cannot_tell: match &one.verdict {
            Verdict::CannotTell(why) => Some(why.clone()),
            _ => None,
        },
        seconds_apart: one.seconds_apart,
    }
}
