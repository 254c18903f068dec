//! Every text of a reading and of an analysis.
//!
//! Each structure is taken apart by all of its fields: a new field does not compile until somebody has decided here
//! whether it may hold what must not be shown.

use super::edit::put_at;
use super::{Kind, Redaction, Redactor, hosts, keys};
use crate::analysis::{Analysis, LaunchAnalysis, SourceFacts, SourceReading, Unrecognised};
use crate::event::{Event, Field, Value};
use crate::finding::Finding;
use crate::grammar::nvidia_smi::{DumpNote, DumpProblem};
use crate::holders::{Breakdown, Unmatched};
use crate::launch::{Launch, Rank, RankEvent};
use crate::observe::{Observation, ProcessUse};
use crate::place::Place;
use crate::reconcile::{BridgeItem, Reconciliation, Verdict};
use std::sync::Arc;

impl Redactor {
    /// Redacts what was read, before anything judges, cuts or lays it out. The arguments keep their values until
    /// [`Redactor::analysis`], since the budget computes with them.
    pub fn readings(&mut self, readings: &mut [SourceReading]) {
        for launch in readings.iter().flat_map(|reading| &reading.launches) {
            if let Some((arguments, _)) = &launch.arguments {
                self.learn_arguments(arguments);
            }
            for host in launch.stream.split(" / ").filter_map(host_of) {
                self.learn(Kind::Host, host);
            }
        }
        for reading in readings {
            let SourceReading { facts, launches, observations, notes, unrecognised } = reading;
            let SourceFacts { name, kind: _, bytes: _, lines: _, found_instead, left_out: _ } = facts;
            self.shared(name);
            found_instead.iter_mut().for_each(|words| self.owned(words));
            launches.iter_mut().for_each(|launch| self.launch(launch));
            observations.iter_mut().for_each(|observation| self.observation(observation));
            notes.iter_mut().for_each(|note| self.note(note));
            for Unrecognised { place, text } in unrecognised {
                self.place(place);
                self.shared(text);
            }
        }
    }

    /// Redacts what the analysis added: the arguments' values and the words of rules. Says in it that this was done.
    pub fn analysis(&mut self, analysis: &mut Analysis) {
        // Sources, observations, notes and unrecognised lines are those of the readings.
        let Analysis {
            sources: _,
            launches,
            observations: _,
            notes: _,
            reconciliations,
            unrecognised: _,
            redaction,
            unmatched_snapshots,
        } = analysis;
        for Unmatched { name, device: _, why: _ } in unmatched_snapshots {
            self.shared(name);
        }
        // The audit and the facts for plans are made of the redacted readings: numbers, and labels of the log.
        for LaunchAnalysis { launch, ledgers: _, devices: _, findings, audit: _, facts: _, holders } in
            launches
        {
            for breakdown in holders.iter_mut().flatten() {
                self.breakdown(breakdown);
            }
            if let Some((arguments, _)) = &mut launch.arguments {
                self.arguments(Arc::make_mut(arguments));
            }
            findings.iter_mut().for_each(|finding| self.finding(finding));
        }
        for reconciliation in reconciliations {
            self.reconciliation(reconciliation);
        }
        *redaction = Some(Redaction { counts: self.counts.clone(), edits: std::mem::take(&mut self.edits) });
    }

    /// Snapshots are not among the readings: their files' names come in here.
    fn breakdown(&mut self, breakdown: &mut Breakdown) {
        let Breakdown { moment: _, scope: _, total: _, sources, place: _, shares: _, conflict, inside: _ } =
            breakdown;
        sources.iter_mut().chain(conflict).for_each(|words| self.owned(words));
    }

    fn launch(&mut self, launch: &mut Launch) {
        let Launch {
            source,
            stream,
            first_line: _,
            last_line: _,
            started_at: _,
            last_event_at: _,
            ready,
            arguments,
            versions: _,
            ranks,
            notes,
            failures,
            retractions: _,
            left_out: _,
            served: _,
            outcome: _,
            failed_stage: _,
            cause,
        } = launch;
        self.shared(source);
        self.stream(stream);
        if let Some((_, place)) = arguments {
            self.place(place);
        }
        notes.iter_mut().for_each(|event| self.event(event));
        for Rank { tag: _, events, identity: _ } in ranks {
            for RankEvent { event, worker: _, repeated_at } in events {
                self.event(event);
                repeated_at.iter_mut().for_each(|place| self.place(place));
            }
        }
        failures.iter_mut().chain(ready).chain(cause).for_each(|event| self.event(event));
    }

    fn event(&mut self, event: &mut Arc<Event>) {
        let Event {
            place,
            stamp: _,
            stream,
            rank: _,
            text,
            template: _,
            wording_range: _,
            role: _,
            label,
            fields,
        } = Arc::make_mut(event);
        let began = place.column;
        self.place(place);
        self.stream(stream);
        self.shared(label);
        let edits = match self.edited(text) {
            Some((redacted, edits)) => {
                *text = redacted.into();
                edits
            }
            None => Vec::new(),
        };
        for Field { name, value, place, length } in fields {
            let start = place.column.checked_sub(began).and_then(|start| usize::try_from(start).ok());
            let replaced =
                start.and_then(|start| put_at(&edits, start, *length)).and_then(|put| text.get(put));
            self.place(place);
            self.value(value, replaced.filter(|_| keys::class_of(name) == Some(keys::Class::Secret)));
        }
        if !edits.is_empty() {
            self.edits.insert(place.clone(), edits);
        }
    }

    /// A field's words; all of them are the pseudonym, where the line has one in their place.
    fn value(&mut self, value: &mut Value, pseudonym: Option<&str>) {
        let words: &mut dyn Iterator<Item = &mut String> = match value {
            Value::Word(word) => &mut std::iter::once(word),
            Value::List(items) => &mut items.iter_mut(),
            Value::Memory(_) | Value::Number(_) | Value::Cut => return,
        };
        for word in words {
            match pseudonym {
                Some(pseudonym) => *word = pseudonym.to_string(),
                None => self.owned(word),
            }
        }
    }

    fn observation(&mut self, observation: &mut Observation) {
        let Observation {
            place,
            taken_at: _,
            instrument: _,
            driver,
            device: _,
            mig: _,
            bus: _,
            uuid,
            name,
            total: _,
            used: _,
            free: _,
            reserved: _,
            processes,
            processes_listed: _,
            probe,
        } = observation;
        if let Some(facts) = probe {
            facts.remarks.iter_mut().chain(&mut facts.pci).for_each(|words| self.owned(words));
        }
        self.place(place);
        [driver, name].into_iter().flatten().for_each(|words| self.owned(words));
        if let Some(uuid) = uuid.as_mut().filter(|uuid| !uuid.is_empty()) {
            // Whatever its form: the field itself says what it is.
            if !self.is_pseudonym(uuid) {
                *uuid = self.pseudonym(Kind::Gpu, uuid);
            }
        }
        for ProcessUse { pid: _, name, kind, used: _ } in processes {
            self.owned(name);
            kind.iter_mut().for_each(|kind| self.owned(kind));
        }
    }

    fn note(&mut self, note: &mut DumpNote) {
        let DumpNote { place, problem } = note;
        self.place(place);
        match problem {
            DumpProblem::ProcessesRefused { words }
            | DumpProblem::InstrumentFailed { words }
            | DumpProblem::Probe { words } => self.owned(words),
            DumpProblem::DamagedXml { reason } => self.owned(reason),
            DumpProblem::HeaderMissing
            | DumpProblem::DeviceNotNamed
            | DumpProblem::PercentOnly { .. }
            | DumpProblem::NoAttribution { .. }
            | DumpProblem::FigureCut { .. }
            | DumpProblem::HeaderOnly { .. }
            | DumpProblem::SomeDevices { .. } => {}
        }
    }

    fn finding(&mut self, finding: &mut Finding) {
        let Finding {
            rule: _,
            severity: _,
            rank: _,
            stage: _,
            title,
            explanation,
            arithmetic,
            advice,
            amount: _,
            places: _,
        } = finding;
        let words = [title, explanation].into_iter().chain(arithmetic).chain(advice);
        words.for_each(|words| self.owned(words));
    }

    fn reconciliation(&mut self, reconciliation: &mut Reconciliation) {
        let Reconciliation {
            launch: _,
            rank: _,
            observation: _,
            bridge,
            unexplained: _,
            verdict,
            seconds_apart: _,
            owners: _,
            live: _,
        } = reconciliation;
        for BridgeItem { term: _, label, amount: _, basis: _ } in bridge {
            self.owned(label);
        }
        if let Verdict::CannotTell(why) = verdict {
            self.owned(why);
        }
    }

    fn place(&mut self, place: &mut Place) {
        let Place { source, line: _, column: _ } = place;
        self.shared(source);
    }

    /// An envelope's identity: its machine's name, and whatever else is in it.
    fn stream(&mut self, stream: &mut Arc<str>) {
        if stream.is_empty() {
            return;
        }
        let identities: Vec<String> = stream.split(" / ").map(|identity| self.identity(identity)).collect();
        *stream = identities.join(" / ").into();
    }

    fn identity(&mut self, identity: &str) -> String {
        match host_of(identity).filter(|host| !self.is_pseudonym(host)) {
            Some(host) => {
                let name = self.pseudonym(Kind::Host, host);
                self.text(&identity.replacen(host, &name, 1)).into_owned()
            }
            None => self.text(identity).into_owned(),
        }
    }

    fn owned(&mut self, text: &mut String) {
        if let Some((redacted, _)) = self.edited(text) {
            *text = redacted;
        }
    }

    /// A shared text stays shared: the names of sources stand in every place.
    fn shared(&mut self, text: &mut Arc<str>) {
        if let Some(known) = self.shared.get(text) {
            *text = Arc::clone(known);
            return;
        }
        let redacted: Arc<str> = match self.edited(text) {
            Some((redacted, _)) => redacted.into(),
            None => Arc::clone(text),
        };
        // What was redacted once stays as it is.
        self.shared.insert(Arc::clone(&redacted), Arc::clone(&redacted));
        self.shared.insert(std::mem::replace(text, Arc::clone(&redacted)), redacted);
    }
}

/// The machine in an envelope's identity: of syslog (`host unit[pid]`), kubectl (`pod/name/container`), stern (`pod
/// container`) and docker swarm (`task@host`).
fn host_of(identity: &str) -> Option<&str> {
    let host = match identity.strip_prefix("pod/") {
        Some(path) => path.split('/').next()?,
        None => match (identity.split_once(' '), identity.rsplit_once('@')) {
            (Some((first, rest)), _)
                if !rest.contains(' ') && (rest.ends_with(']') || first.contains('-')) =>
            {
                first
            }
            (None, Some((_, host))) => host,
            _ => return None,
        },
    };
    hosts::is_name(host).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_of_each_envelope_is_known() {
        for (identity, host) in [
            ("gpu7 sglang[12]", Some("gpu7")),
            ("pod/sglang-5d4f/server", Some("sglang-5d4f")),
            ("sglang-5d4f server", Some("sglang-5d4f")),
            ("web.1.abc@gpu7", Some("gpu7")),
            ("sglang-1", None),
            ("build and test", None),
            ("rank3", None),
            ("Actor pid=1, ip=10.0.0.1", None),
        ] {
            assert_eq!(host_of(identity), host, "{identity}");
        }
    }
}
