//! What the driver keeps for itself.
//!
//! NVML's version 2 counts a card as used + free + reserved; the reserve is part of nvidia-smi's total and of nothing else
//! it prints, and cudaMemGetInfo's total leaves it out. Version 1 (older nvidia-smi) counts it as used. The plain table
//! prints no reserve at all, so it has to come from another form of the dump, from the log, or from what is known of the
//! card.

use super::Basis;
use crate::event::Role;
use crate::launch::Launch;
use crate::observe::{Instrument, MemoryCall, Observation};
use crate::quantity::Quantity;

/// Reserves measured on real cards: product name, nvidia-smi's total in MiB, reserve in bytes.
/// H200: NVML v2 on driver 580.159.04, equal to NVML's total − cudaMemGetInfo's total to the byte.
const MEASURED: [(&str, i128, i128); 1] = [("H200", 143_771, 644_939_776)];

/// The largest share of a card, in thousandths, that a driver's reserve is taken for where nothing prints it: 4.3 on an
/// H200; smaller cards reserve relatively more (some 14 on a 24 GiB card).
const LARGEST_SHARE: i128 = 20;

/// The driver's reserve of a card, and how it is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Reserve {
    /// How much.
    pub amount: Quantity,
    /// How it is known.
    pub basis: Basis,
    source: Source,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Printed,
    CountedAsUsed,
    NotInTotal,
    CapacityInLog,
    KnownForCard,
    Remainder,
    Implausible,
}

/// The reserve measured on a card of this name and total, if one was.
pub fn known_reserve(name: &str, total: Quantity) -> Option<Quantity> {
    let row = MEASURED
        .iter()
        .find(|(model, mib, _)| name.contains(model) && total.meets(Quantity::whole_mib(*mib)))?;
    Some(Quantity::exact(row.2))
}

impl Reserve {
    /// The reserve to use for a sample. `remainder` is total − used − free by the log: what is left for it.
    pub(super) fn of(sample: &Observation, launch: &Launch, remainder: Quantity, total: Quantity) -> Reserve {
        let made = |amount, basis, source| Reserve { amount, basis, source };
        let as_used = made(Quantity::ZERO, Basis::Derived, Source::CountedAsUsed);
        if sample.instrument == Instrument::Cuda {
            return made(Quantity::ZERO, Basis::Measured, Source::NotInTotal);
        }
        if sample.probe.as_ref().is_some_and(|facts| facts.memory_call == Some(MemoryCall::First)) {
            return as_used;
        }
        if let Some(printed) = sample.reserved {
            // Whether `used` counts the reserve in shows in the sample itself, where it prints all four figures.
            let counted_in = sample.free.zip(sample.used).is_some_and(|(free, used)| {
                (total - used - free).meets(Quantity::ZERO) && !(total - used - free).meets(printed)
            });
            return if counted_in { as_used } else { made(printed, Basis::Measured, Source::Printed) };
        }
        if let Some(capacity) = capacity_in_log(launch) {
            return made(total - capacity, Basis::Logged, Source::CapacityInLog);
        }
        let known = sample.name.as_deref().and_then(|name| known_reserve(name, total));
        if let Some(known) = known {
            // An old driver counts the same reserve as used: then total − used − free leaves nothing.
            let counted_in = remainder.meets(Quantity::ZERO) && !remainder.meets(known);
            return if counted_in { as_used } else { made(known, Basis::Derived, Source::KnownForCard) };
        }
        let largest = total.scale(LARGEST_SHARE, 1000).unwrap_or(Quantity::ZERO);
        let plausible = Quantity::between(0, largest.high());
        match remainder.intersect(plausible) {
            Some(amount) => made(amount, Basis::Derived, Source::Remainder),
            None => made(plausible, Basis::Derived, Source::Implausible),
        }
    }

    /// The row's words.
    pub(super) fn label(&self) -> &'static str {
        match self.source {
            Source::Printed => "kept by the driver",
            Source::CountedAsUsed => "kept by the driver (this driver counts it as used)",
            Source::NotInTotal => "kept by the driver (not in this total)",
            Source::CapacityInLog => "kept by the driver: total less the capacity that PyTorch saw",
            Source::KnownForCard => "kept by the driver (not printed; measured on a card of this name)",
            Source::Remainder => "kept by the driver (not printed: what the other figures leave)",
            Source::Implausible => "kept by the driver (not printed: at most this much)",
        }
    }
}

/// `GPU 0 has a total capacity of 139.80 GiB`: cudaMemGetInfo's total, quoted by an out-of-memory sentence.
fn capacity_in_log(launch: &Launch) -> Option<Quantity> {
    let failures = launch.failures.iter().filter(|event| matches!(event.role, Role::Failure(_)));
    failures.into_iter().find_map(|event| event.memory("total"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_of_an_h200_is_known() {
        let reserve = known_reserve("NVIDIA H200", Quantity::whole_mib(143_771)).unwrap();
        assert!(Quantity::whole_mib(616).meets(reserve), "nvidia-smi prints 616 for 615.06");
        assert_eq!(known_reserve("NVIDIA H100 80GB HBM3", Quantity::whole_mib(81_559)), None);
    }
}
