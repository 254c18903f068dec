//! The releases the catalogue was read from, under short names for its rows.

use crate::version::Version;

pub(super) const V0_1_20: Version = Version::new(1, 20);
pub(super) const V0_2_15: Version = Version::new(2, 15);
pub(super) const V0_3_6: Version = Version::post(3, 6, 3);
pub(super) const V0_4_1: Version = Version::post(4, 1, 7);
pub(super) const V0_4_3: Version = Version::post(4, 3, 4);
pub(super) const V0_4_6: Version = Version::post(4, 6, 5);
pub(super) const V0_4_8: Version = Version::post(4, 8, 1);
pub(super) const V0_4_10: Version = Version::post(4, 10, 2);
pub(super) const V0_5_1: Version = Version::post(5, 1, 3);
pub(super) const V0_5_3: Version = Version::new(5, 3);
pub(super) const V0_5_6: Version = Version::post(5, 6, 2);
pub(super) const V0_5_8: Version = Version::post(5, 8, 1);
pub(super) const V0_5_9: Version = Version::new(5, 9);
pub(super) const V0_5_10: Version = Version::new(5, 10);
pub(super) const V0_5_12: Version = Version::new(5, 12);
pub(super) const V0_5_15: Version = Version::new(5, 15);
pub(super) const V0_5_18: Version = Version::new(5, 18);
pub(super) const V0_5_20: Version = Version::new(5, 20);
pub(super) const V0_5_23: Version = Version::new(5, 23);
/// Forks and day-0 images: any release may be behind them.
pub(super) const ANY: (Version, Version) = (V0_1_20, V0_5_23);
