//! Limits that are judgements, not arithmetic: each named, with its reason and its default.
//!
//! Whether sums agree is decided by intervals and needs no threshold. How much is *too much* is opinion; it stands here,
//! in one place, and every value can be set with `--threshold NAME=SIZE`.

use crate::quantity::{Convention, Decimal, GIB, MIB, Quantity, Unit};
use thiserror::Error;

/// The limits, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thresholds {
    values: [i128; LIMITS.len()],
}

/// One limit: its name, default and reason.
#[derive(Debug, PartialEq, Eq)]
pub struct LimitDoc {
    /// The name on the command line.
    pub name: &'static str,
    /// The default in bytes.
    pub default: i128,
    /// Why this much.
    pub reason: &'static str,
}

/// The limits by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Memory that moves between two stages, unlogged.
    Gap,
    /// Unlogged memory worth a line in the report.
    GapNotice,
    /// Distributed init of a single rank.
    InitSingle,
    /// Distributed init with several ranks.
    InitParallel,
    /// Spread between ranks in the same stage.
    Peers,
    /// Held before the first figure, single rank.
    HeldSingle,
    /// Held before the first figure, several ranks.
    HeldParallel,
    /// A process that is not the server's.
    Foreign,
    /// Too little room after start-up, on a card of 80 GiB or more.
    HeadroomLow,
    /// More room than needed after start-up, on a card of 80 GiB.
    HeadroomGenerous,
}

/// All limits, in the order of [`Limit`].
pub const LIMITS: [LimitDoc; 10] = [
    LimitDoc {
        name: "gap",
        default: GIB,
        reason: "attention workspaces take up to 512 MiB between pool and capture (FlashInfer), 2 GiB only in deterministic \
                 mode; twice the common workspace is left for tables and warm-up",
    },
    LimitDoc {
        name: "gap-notice",
        default: 64 * MIB,
        reason: "request tables and cuBLAS workspaces move less than this on small models",
    },
    LimitDoc {
        name: "init-single",
        default: 512 * MIB,
        reason: "without peers there is no NCCL traffic: 92 to 94 MiB were measured on an H200 (SGLang 0.5.12, 0.5.15)",
    },
    LimitDoc {
        name: "init-parallel",
        default: 3 * GIB,
        reason: "1,034 MiB were measured for two ranks with NCCL and custom all-reduce; channels grow with the ranks",
    },
    LimitDoc {
        name: "peers",
        default: 256 * MIB,
        reason: "ranks of one group hold equal shards; lazily built buffers and embeddings on edge ranks stay below this",
    },
    LimitDoc {
        name: "held-single",
        default: 1536 * MIB,
        reason: "a CUDA context takes 527 MiB and the first kernels 70 to 190 more (measured on an H200)",
    },
    LimitDoc {
        name: "held-parallel",
        default: 4 * GIB,
        reason: "a context of 527 MiB plus communicators of 1 to 3 GiB that are set up before the first figure",
    },
    LimitDoc {
        name: "foreign",
        default: 64 * MIB,
        reason: "monitoring agents and display servers stay below this",
    },
    LimitDoc {
        name: "headroom-low",
        default: 5 * GIB,
        reason: "SGLang's tuning guide wants 5 to 8 GB of available_gpu_mem; smaller cards in proportion to 80 GiB",
    },
    LimitDoc {
        name: "headroom-generous",
        default: 8 * GIB,
        reason: "the guide's upper end; in proportion to 80 GiB, since larger cards run larger chunks and graphs",
    },
];

/// A `--threshold` that could not be taken.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ThresholdError {
    /// Not of the form `NAME=SIZE`.
    #[error("`{0}` is not NAME=SIZE, such as gap=512MiB")]
    Form(String),
    /// No limit has this name.
    #[error("there is no threshold `{0}`; the names are {names}", names = LIMITS.iter().map(|limit| limit.name).collect::<Vec<_>>().join(", "))]
    Name(String),
    /// The size has no unit or is no number.
    #[error("`{0}` is no size: give a number and MiB or GiB, such as 512MiB")]
    Size(String),
}

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds { values: LIMITS.map(|limit| limit.default) }
    }
}

impl Thresholds {
    /// The value of a limit, in bytes.
    pub fn get(&self, limit: Limit) -> i128 {
        self.values.get(limit as usize).copied().unwrap_or_default()
    }

    /// Sets one limit from `NAME=SIZE`.
    pub fn set(&mut self, setting: &str) -> Result<(), ThresholdError> {
        let (name, size) =
            setting.split_once('=').ok_or_else(|| ThresholdError::Form(setting.to_string()))?;
        let index = LIMITS.iter().position(|limit| limit.name == name.trim());
        let index = index.ok_or_else(|| ThresholdError::Name(name.trim().to_string()))?;
        let bytes = parse_size(size).ok_or_else(|| ThresholdError::Size(size.to_string()))?;
        if let Some(value) = self.values.get_mut(index) {
            *value = bytes;
        }
        Ok(())
    }
}

/// Reads a size as a user writes it: `512MiB`, `4 GiB`, `1.5GB` (GB is taken as GiB, as SGLang prints it).
pub fn parse_size(text: &str) -> Option<i128> {
    let text = text.trim();
    let unit_start = text.find(|character: char| character.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at_checked(unit_start)?;
    let decimal = Decimal::parse(number.trim())?;
    let unit = Unit::named(unit, Convention::Binary)?;
    (decimal.mantissa() >= 0).then(|| Quantity::from_print(&decimal, unit))?.map(Quantity::midpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_set_by_name() {
        let mut thresholds = Thresholds::default();
        assert_eq!(thresholds.get(Limit::HeadroomGenerous), 8 * GIB, "the order of LIMITS is that of Limit");
        thresholds.set("gap=512MiB").unwrap();
        assert_eq!(thresholds.get(Limit::Gap), 512 * MIB);
        assert!(matches!(thresholds.set("gpa=1GiB"), Err(ThresholdError::Name(_))));
        assert!(matches!(thresholds.set("gap=12"), Err(ThresholdError::Size(_))));
        assert!(matches!(thresholds.set("gap"), Err(ThresholdError::Form(_))));
    }

    #[test]
    fn sizes_are_read_as_users_write_them() {
        assert_eq!(parse_size("1.5 GiB"), Some(1536 * MIB));
        assert_eq!(parse_size("4GB"), Some(4 * GIB));
        assert_eq!(parse_size("-4GB"), None);
        assert_eq!(parse_size("tokens"), None);
    }
}
