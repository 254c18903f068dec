//! The rows of the `MIG devices` box: instances of a parent device with memory of their own.
//!
//! Separate because such a row is told from a device's only by its first cell. The line below it has a pair of
//! figures as well, but of BAR1.

use super::block::{DeviceFacts, DeviceId};
use super::cells::{offset, pair_cell};
use crate::input::LogicalLine;
use crate::observe::MigInstance;
use nom::character::complete::{space1, u32 as number};
use nom::sequence::preceded;

/// `0    7   0   0`: device, GPU instance, compute instance, MIG device.
fn coordinates(cell: &str) -> Option<(u32, MigInstance)> {
    let next = || preceded(space1, number);
    let (device, gpu, compute, instance) = super::cells::whole((number, next(), next(), next()), cell)?;
    let mig =
        MigInstance { gpu_instance: Some(gpu), compute_instance: Some(compute), device: Some(instance) };
    Some((device, mig))
}

/// An instance's row: `|  0    7   0   0  |     10MiB /  9856MiB  | 14      0 |  1   0    0    0    0 |`.
pub(super) fn mig_row(line: &LogicalLine, cells: &[&str]) -> Option<DeviceFacts> {
    let (first, second) = (cells.first()?, cells.get(1)?);
    let (device, mig) = coordinates(first)?;
    let (used, total) = pair_cell(second)?;
    let place = line.place.further(offset(&line.text, second.trim_start()));
    let id = DeviceId { mig: Some(mig), ..DeviceId::numbered(device) };
    Some(DeviceFacts { used, total, ..DeviceFacts::new(place, id) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_four_numbers() {
        let (device, mig) = coordinates("  0    7   1   2  ").unwrap();
        assert_eq!(
            (device, mig.gpu_instance, mig.compute_instance, mig.device),
            (0, Some(7), Some(1), Some(2))
        );
        assert_eq!(coordinates("  0  NVIDIA H200                    On  "), None);
        assert_eq!(coordinates(" N/A   38C    P0            125W /  700W "), None);
    }
}
