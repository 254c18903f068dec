//! Host memory, for devices that have none of their own.
//!
//! SGLang's `get_available_gpu_memory` (`utils/common.py`, 0.4.7 to 0.5.15) takes psutil's `virtual_memory().available`
//! for integrated devices, which on Linux is `MemAvailable` of `/proc/meminfo`.

use crate::quantity::{KIB, Quantity};

/// Total and available memory of this machine. `None` where there is no `/proc/meminfo`.
pub(super) fn memory() -> Option<(Quantity, Quantity)> {
    read(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn read(text: &str) -> Option<(Quantity, Quantity)> {
    let figure = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kib: i128 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        // `kB` in /proc/meminfo are KiB.
        Some(Quantity::exact(kib.checked_mul(KIB)?))
    };
    Some((figure("MemTotal")?, figure("MemAvailable")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_kb_are_kib() {
        let text = "MemTotal:       16384 kB\nMemFree:  1 kB\nMemAvailable:    8192 kB\n";
        assert_eq!(read(text), Some((Quantity::exact(16 << 20), Quantity::exact(8 << 20))));
        assert_eq!(read("MemTotal: 1 kB\n"), None);
    }
}
