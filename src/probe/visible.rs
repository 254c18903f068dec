//! Which devices CUDA shows to programs here: `CUDA_VISIBLE_DEVICES` and its relatives.
//!
//! CUDA renumbers the devices that the variable leaves, nvidia-smi and NVML never do. The driver's own rule: entries are
//! numbers or (beginnings of) UUIDs, and the first entry that names no device ends the list.

use std::env;

/// The variables that decide what is seen, as set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Visibility {
    /// `CUDA_VISIBLE_DEVICES`. `None` where it is not set.
    pub cuda: Option<String>,
    /// `NVIDIA_VISIBLE_DEVICES`: what a container's runtime was told to pass in.
    pub nvidia: Option<String>,
    /// `CUDA_DEVICE_ORDER`: by speed unless it says `PCI_BUS_ID`.
    pub order: Option<String>,
}

/// One entry of `CUDA_VISIBLE_DEVICES`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Number(u32),
    Uuid(String),
}

impl Visibility {
    /// As the environment of this process has it.
    pub fn from_environment() -> Visibility {
        let variable = |name| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        Visibility {
            cuda: variable("CUDA_VISIBLE_DEVICES"),
            nvidia: variable("NVIDIA_VISIBLE_DEVICES"),
            order: variable("CUDA_DEVICE_ORDER"),
        }
    }

    /// The variables that are set, for people.
    pub fn notes(&self) -> Vec<String> {
        [
            ("CUDA_VISIBLE_DEVICES", &self.cuda),
            ("NVIDIA_VISIBLE_DEVICES", &self.nvidia),
            ("CUDA_DEVICE_ORDER", &self.order),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)))
        .collect()
    }

    fn entries(&self) -> Option<Vec<Entry>> {
        let read = |entry: &str| {
            let entry = entry.trim();
            if let Ok(number) = entry.parse() {
                return Some(Entry::Number(number));
            }
            (entry.starts_with("GPU-") || entry.starts_with("MIG-")).then(|| Entry::Uuid(entry.to_string()))
        };
        Some(self.cuda.as_deref()?.split(',').map_while(read).collect())
    }

    /// The number that CUDA gives each of these devices, by UUID in NVML's order. `None` for a hidden one, and for all
    /// where numbers can't be told: CUDA sorts by speed unless told otherwise, which is NVML's order only on cards of one
    /// kind (`alike`).
    pub fn ordinals(&self, uuids: &[&str], alike: bool) -> Vec<Option<u32>> {
        let by_number = alike || self.order.as_deref() == Some("PCI_BUS_ID");
        let Some(entries) = self.entries() else {
            return (0..).zip(uuids).map(|(number, _)| by_number.then_some(number)).collect();
        };
        let mut ordinals = vec![None; uuids.len()];
        for (ordinal, entry) in (0..).zip(entries) {
            let at = match entry {
                Entry::Number(number) if by_number => usize::try_from(number).ok(),
                Entry::Number(_) => continue,
                Entry::Uuid(start) => uuids.iter().position(|uuid| uuid.starts_with(&start)),
            };
            match at.and_then(|at| ordinals.get_mut(at)) {
                Some(slot) => *slot = Some(ordinal),
                None => break,
            }
        }
        ordinals
    }

    /// Whether this variable hides the device from CUDA. Unknown numbering hides nothing.
    pub fn hides(&self, ordinal: Option<u32>, alike: bool) -> bool {
        let by_number = alike || self.order.as_deref() == Some("PCI_BUS_ID");
        let Some(entries) = self.entries() else { return false };
        let sure = by_number || entries.iter().all(|entry| matches!(entry, Entry::Uuid(_)));
        sure && ordinal.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUIDS: [&str; 3] = ["GPU-aa", "GPU-bb", "GPU-cc"];

    fn cuda(value: &str) -> Visibility {
        Visibility { cuda: Some(value.to_string()), ..Visibility::default() }
    }

    #[test]
    fn entries_renumber_as_the_driver_does() {
        assert_eq!(Visibility::default().ordinals(&UUIDS, true), [Some(0), Some(1), Some(2)]);
        assert_eq!(cuda("2,0").ordinals(&UUIDS, true), [Some(1), None, Some(0)]);
        assert_eq!(cuda("GPU-b").ordinals(&UUIDS, true), [None, Some(0), None]);
        assert_eq!(cuda("1,-1,0").ordinals(&UUIDS, true), [None, Some(0), None], "-1 ends the list");
        assert_eq!(
            cuda("0,7,1").ordinals(&UUIDS, true),
            [Some(0), None, None],
            "so does a device that is not"
        );
        assert_eq!(cuda("").ordinals(&UUIDS, true), [None, None, None]);
    }

    #[test]
    fn cards_of_several_kinds_have_no_known_order() {
        assert_eq!(cuda("0").ordinals(&UUIDS, false), [None, None, None]);
        assert!(!cuda("0").hides(None, false));
        assert_eq!(cuda("GPU-cc").ordinals(&UUIDS, false), [None, None, Some(0)]);
        assert!(cuda("GPU-cc").hides(None, false));
        let ordered = Visibility { order: Some("PCI_BUS_ID".into()), ..cuda("1") };
        assert_eq!(ordered.ordinals(&UUIDS, false), [None, Some(0), None]);
        assert!(ordered.hides(None, false));
    }

    #[test]
    fn nothing_set_hides_nothing() {
        assert!(!Visibility::default().hides(None, true));
        assert_eq!(cuda("3").notes(), ["CUDA_VISIBLE_DEVICES=3"]);
    }
}
