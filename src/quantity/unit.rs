//! The units that memory is printed in, by the name a log gives them.

use std::fmt;

/// A unit of memory. `GB` in a log is ambiguous: on GPU lines SGLang means GiB, on host-memory lines 10^9
/// bytes, so the grammar decides and passes the meaning on as one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// One byte.
    Byte,
    /// 2^10 bytes.
    Kib,
    /// 2^20 bytes.
    Mib,
    /// 2^30 bytes.
    Gib,
    /// 2^40 bytes.
    Tib,
    /// 10^3 bytes.
    Kb,
    /// 10^6 bytes.
    Mb,
    /// 10^9 bytes.
    Gb,
}

/// What a decimal-looking unit word (`GB`, `MB`, `KB`) stands for where it was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Convention {
    /// `GB` is 2^30 bytes: SGLang's GPU lines, torch 1.x, nvidia-smi's relatives.
    Binary,
    /// `GB` is 10^9 bytes: SGLang's host-pool (HiCache) lines.
    Decimal,
}

impl Unit {
    /// How many bytes one of this unit is.
    pub const fn bytes(self) -> i128 {
        match self {
            Unit::Byte => 1,
            Unit::Kib => super::KIB,
            Unit::Mib => super::MIB,
            Unit::Gib => super::GIB,
            Unit::Tib => 1 << 40,
            Unit::Kb => 1_000,
            Unit::Mb => 1_000_000,
            Unit::Gb => 1_000_000_000,
        }
    }

    /// The unit that a printed word names, letter case aside. `None` for a word that is no unit of memory.
    pub fn named(word: &str, convention: Convention) -> Option<Unit> {
        let binary = convention == Convention::Binary;
        Some(match word.to_ascii_lowercase().as_str() {
            "b" | "byte" | "bytes" => Unit::Byte,
            "kib" => Unit::Kib,
            "mib" => Unit::Mib,
            "gib" => Unit::Gib,
            "tib" => Unit::Tib,
            "kb" if binary => Unit::Kib,
            "mb" if binary => Unit::Mib,
            "gb" if binary => Unit::Gib,
            "kb" => Unit::Kb,
            "mb" => Unit::Mb,
            "gb" => Unit::Gb,
            _ => return None,
        })
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Unit::Byte => "B",
            Unit::Kib => "KiB",
            Unit::Mib => "MiB",
            Unit::Gib => "GiB",
            Unit::Tib => "TiB",
            Unit::Kb => "kB",
            Unit::Mb => "MB",
            Unit::Gb => "GB",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gb_is_gib_on_gpu_lines_and_decimal_on_host_lines() {
        assert_eq!(Unit::named("GB", Convention::Binary), Some(Unit::Gib));
        assert_eq!(Unit::named("GB", Convention::Decimal), Some(Unit::Gb));
        assert_eq!(Unit::named("GiB", Convention::Decimal), Some(Unit::Gib));
        assert_eq!(Unit::named("tokens", Convention::Binary), None);
    }
}
