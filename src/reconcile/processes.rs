//! Whose the memory is: the processes that an instrument lists on a rank's device.

use crate::launch::Rank;
use crate::observe::{Observation, ProcessUse};
use crate::quantity::Quantity;
use crate::stage::RankTag;

/// A listed process and whether it is the rank's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Owner {
    /// The process.
    pub process: ProcessUse,
    /// Whether it is taken for the rank itself.
    pub own: bool,
}

/// The sample with the processes that other forms of the dump list for its device: `--query-gpu` knows none, the box cuts
/// six-digit figures, and `--query-compute-apps` and pmon have no totals.
pub fn with_processes(sample: &Observation, all: &[Observation]) -> Observation {
    let mut whole = sample.clone();
    for other in all.iter().filter(|other| other.place != sample.place && complements(sample, other)) {
        if whole.processes.is_empty() && !whole.processes_listed {
            whole.processes = other.processes.clone();
            continue;
        }
        for process in &mut whole.processes {
            let same = other.processes.iter().find(|known| known.pid.is_some() && known.pid == process.pid);
            let Some(used) = same.and_then(|known| known.used) else { continue };
            process.used = Some(process.used.and_then(|printed| printed.intersect(used)).unwrap_or(used));
        }
    }
    whole
}

/// Whether another sample is a process list of the same device without figures of the device's own.
fn complements(sample: &Observation, other: &Observation) -> bool {
    let same_uuid = sample.uuid.as_ref().zip(other.uuid.as_ref()).map(|(one, other)| one == other);
    let same_index = sample.device.zip(other.device).map(|(one, other)| one == other);
    other.total.is_none()
        && other.used.is_none()
        && !other.processes.is_empty()
        && same_uuid.or(same_index) == Some(true)
        && sample.mig == other.mig
}

/// Sorts a sample's processes into the rank's own and others. The rank's own is the one with its id, where the log tells it
/// and the process can be a server; else the one whose name carries its tag; else the largest SGLang or Python process
/// that is not larger than what the log says is in use. One that is larger grew after the last line (serving, captures
/// that old releases don't log): it is the rank's where no other can be.
pub fn owners(sample: &Observation, rank: &Rank, used_by_log: Quantity) -> Vec<Owner> {
    let (tag, pid) = (&rank.tag, rank.identity.as_ref().map(|identity| identity.pid));
    let fits = |process: &&ProcessUse| {
        process.used.is_none_or(|used| used.low() <= used_by_log.high() + super::UNEXPLAINED_LIMIT)
    };
    let holds_most = |process: &&ProcessUse| {
        let most = used_by_log.scale(1, 2).map_or(0, Quantity::midpoint);
        process.used.is_some_and(|used| used.surely_above(most))
    };
    let size = |process: &&ProcessUse| process.used.map_or(0, Quantity::midpoint);
    let servers = || sample.processes.iter().filter(|process| is_server(&process.name));
    let schedulers = || servers().filter(|process| process.name.contains("sglang"));
    let own = servers()
        .find(|process| pid.is_some() && process.pid == pid)
        .or_else(|| servers().filter(fits).find(|process| carries_tag(&process.name, tag)))
        .or_else(|| schedulers().filter(fits).max_by_key(size))
        .or_else(|| sole(schedulers()))
        .or_else(|| servers().filter(fits).max_by_key(size))
        .or_else(|| sole(servers()))
        // gpustat and others name users, not programs: the only process, if it holds most of what is in use.
        .or_else(|| sole(sample.processes.iter()).filter(fits).filter(holds_most));
    sample
        .processes
        .iter()
        .map(|process| Owner {
            process: process.clone(),
            own: own.is_some_and(|own| std::ptr::eq(own, process)),
        })
        .collect()
}

/// The only one, if there is exactly one.
fn sole<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.next().is_none().then_some(first)
}

/// Whether a process of this name can be an SGLang rank: renamed by setproctitle, a Ray actor, or plain Python.
pub(super) fn is_server(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["sglang", "python", "ray::"].iter().any(|word| name.contains(word))
        || name.is_empty()
        || name == "n/a"
        || name == "[not found]"
}

/// `sglang::scheduler_TP0` carries the tag `TP0`; `TP1` is not `TP10`.
pub(super) fn carries_tag(name: &str, tag: &RankTag) -> bool {
    !tag.text.is_empty()
        && tag.text.split(' ').all(|word| name.split(['_', ' ', ':']).any(|part| part == word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Instrument;
    use crate::place::Place;
    use crate::stage::Coordinates;

    /// A sample whose processes have these names and MiB.
    fn sample(processes: &[(&str, i128)]) -> Observation {
        let processes = processes.iter().map(|(name, mib)| ProcessUse {
            pid: None,
            name: (*name).to_string(),
            kind: None,
            used: Some(Quantity::exact_mib(*mib)),
        });
        let place = Place { source: "smi".into(), line: 1, column: 1 };
        Observation { processes: processes.collect(), ..Observation::unknown(place, Instrument::NvidiaSmi) }
    }

    /// The name of the process that is taken for the rank's own, where the log says that 60,000 MiB are in use.
    fn own(processes: &[(&str, i128)]) -> Option<String> {
        let rank = Rank { tag: RankTag::default(), events: Vec::new(), identity: None };
        let owners = owners(&sample(processes), &rank, Quantity::exact_mib(60_000));
        owners.into_iter().find(|owner| owner.own).map(|owner| owner.process.name)
    }

    #[test]
    fn a_server_that_grew_after_its_last_line_is_still_its_own() {
        assert_eq!(own(&[("sglang::scheduler", 64_000)]).as_deref(), Some("sglang::scheduler"));
        assert_eq!(own(&[("python3", 61_000)]).as_deref(), Some("python3"));
        assert_eq!(
            own(&[("python3", 20_000), ("sglang::scheduler", 64_000)]).as_deref(),
            Some("sglang::scheduler")
        );
    }

    #[test]
    fn a_process_list_of_its_own_file_is_joined_by_uuid_or_index() {
        let device = Observation {
            uuid: Some("GPU-1".into()),
            device: Some(1),
            total: Some(Quantity::exact_mib(100)),
            used: Some(Quantity::exact_mib(90)),
            ..sample(&[])
        };
        let list = |uuid: Option<&str>, index| Observation {
            place: Place { source: "apps.csv".into(), line: 2, column: 1 },
            uuid: uuid.map(str::to_string),
            device: index,
            ..sample(&[("python3", 80)])
        };
        let joined = |other| with_processes(&device, &[other]).processes.len();
        assert_eq!(joined(list(Some("GPU-1"), None)), 1);
        assert_eq!(joined(list(None, Some(1))), 1);
        assert_eq!(joined(list(Some("GPU-2"), None)), 0);
        assert_eq!(joined(list(None, None)), 0);
    }

    #[test]
    fn where_users_are_named_the_only_process_is_own_if_it_holds_most() {
        assert_eq!(own(&[("root", 59_000)]).as_deref(), Some("root"));
        assert_eq!(own(&[("Xorg", 40)]), None);
    }

    #[test]
    fn a_tag_in_a_process_name_is_matched_whole() {
        let tag = RankTag {
            coordinates: Coordinates { tp: Some(1), ..Coordinates::default() },
            text: "TP1".into(),
            through: None,
        };
        assert!(carries_tag("sglang::scheduler_TP1", &tag));
        assert!(!carries_tag("sglang::scheduler_TP10", &tag));
    }
}
