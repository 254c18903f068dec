//! Whose the memory is: the processes that an instrument lists on a rank's device.

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

/// Sorts a sample's processes into the rank's own and others. The rank's own is the one whose name carries its tag, else
/// the largest SGLang or Python process that is not larger than what the log says is in use.
pub fn owners(sample: &Observation, tag: &RankTag, used_by_log: Quantity) -> Vec<Owner> {
    let fits = |process: &&ProcessUse| {
        process.used.is_none_or(|used| used.low() <= used_by_log.high() + super::UNEXPLAINED_LIMIT)
    };
    let size = |process: &ProcessUse| process.used.map_or(0, Quantity::midpoint);
    let candidates = || sample.processes.iter().filter(|process| is_server(&process.name)).filter(fits);
    let named = candidates().find(|process| carries_tag(&process.name, tag));
    let schedulers = || candidates().filter(|process| process.name.contains("sglang"));
    let own = named
        .or_else(|| schedulers().max_by_key(|process| size(process)))
        .or_else(|| candidates().max_by_key(|process| size(process)));
    sample
        .processes
        .iter()
        .map(|process| Owner {
            process: process.clone(),
            own: own.is_some_and(|own| std::ptr::eq(own, process)),
        })
        .collect()
}

/// Whether a process of this name can be an SGLang rank: renamed by setproctitle, a Ray actor, or plain Python.
fn is_server(name: &str) -> bool {
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
    use crate::stage::Coordinates;

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
