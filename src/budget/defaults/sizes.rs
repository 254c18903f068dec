//! Default chunk and graph sizes, by release and size class of the card.

use super::{Disaggregation, Settings};
use crate::version::Version;

/// One size class: cards below this many MiB get these defaults.
struct Class {
    below_mib: u32,
    chunk: i64,
    /// The largest captured batch with fewer than four tensor-parallel ranks.
    few_ranks: u32,
    /// The same with four or more.
    many_ranks: u32,
}

const fn class(below_mib: u32, chunk: i64, few_ranks: u32, many_ranks: u32) -> Class {
    Class { below_mib, chunk, few_ranks, many_ranks }
}

/// A release's defaults by size class, and those for an unknown capacity.
struct Era {
    from: Version,
    classes: &'static [Class],
    unknown: Class,
}

const LARGEST: u32 = u32::MAX;
const CLASS_60_GIB: Class = class(60 * 1024, 4096, 32, 160);
const CLASS_160_GIB: Class = class(160 * 1024, 8192, 256, 512);
const CLASS_LARGEST: Class = class(LARGEST, 16384, 512, 512);
const CLASS_20_GIB: Class = class(20 * 1024, 2048, 8, 8);
const UNKNOWN_0_5_3: Class = class(LARGEST, 4096, 160, 160);

/// Oldest first. From 0.4.6 to 0.5.1 the larger cards' batch is the model runner's own choice: the sizes that it
/// captures without speculative decoding end there (`get_batch_sizes_to_capture`).
static ERAS: [Era; 8] = [
    Era {
        from: Version::new(2, 15),
        classes: &[class(LARGEST, 8192, 160, 160)],
        unknown: class(LARGEST, 8192, 160, 160),
    },
    Era {
        from: Version::new(3, 6),
        classes: &[class(25_000, 2048, 4, 4), class(LARGEST, 8192, 160, 160)],
        unknown: class(LARGEST, 8192, 160, 160),
    },
    Era {
        from: Version::new(4, 1),
        classes: &[class(25_000, 2048, 8, 80), class(LARGEST, 8192, 160, 160)],
        unknown: class(LARGEST, 8192, 160, 160),
    },
    Era {
        from: Version::new(4, 6),
        classes: &[
            class(25_000, 2048, 8, 80),
            class(96 * 1024 + 1, 8192, 160, 160),
            class(LARGEST, 8192, 256, 256),
        ],
        unknown: class(LARGEST, 8192, 160, 160),
    },
    Era {
        from: Version::new(4, 8),
        classes: &[
            class(35 * 1024, 2048, 8, 80),
            class(90 * 1024 + 1, 8192, 160, 160),
            class(160_001, 8192, 256, 256),
            class(160 * 1024, 8192, 512, 512),
            CLASS_LARGEST,
        ],
        unknown: class(LARGEST, 4096, 160, 160),
    },
    Era {
        from: Version::new(5, 3),
        classes: &[CLASS_20_GIB, class(35 * 1024, 2048, 16, 80), CLASS_60_GIB, CLASS_160_GIB, CLASS_LARGEST],
        unknown: UNKNOWN_0_5_3,
    },
    Era {
        from: Version::new(5, 6),
        classes: &[CLASS_20_GIB, class(35 * 1024, 2048, 24, 80), CLASS_60_GIB, CLASS_160_GIB, CLASS_LARGEST],
        unknown: UNKNOWN_0_5_3,
    },
    Era {
        from: Version::new(5, 20),
        classes: &[CLASS_20_GIB, class(35 * 1024, 4096, 48, 160), CLASS_60_GIB, CLASS_160_GIB, CLASS_LARGEST],
        unknown: UNKNOWN_0_5_3,
    },
];

fn class_of(settings: &Settings) -> Option<&'static Class> {
    let era = ERAS.iter().rev().find(|era| settings.version >= era.from)?;
    match settings.capacity_mib {
        Some(capacity) => era.classes.iter().find(|class| capacity < class.below_mib),
        None => Some(&era.unknown),
    }
}

/// The chunk, in tokens, that SGLang chooses when `--chunked-prefill-size` is not given. `None` before 0.2.15, which has
/// no chunks. On one half of a disaggregated deployment 0.4.6 chooses 16384 for larger cards.
pub fn default_chunked_prefill_size(settings: &Settings) -> Option<i64> {
    let class = class_of(settings)?;
    let (from, until) = (Version::new(4, 6), Version::new(4, 8));
    let release = from <= settings.version && settings.version < until;
    if release && settings.disaggregation != Disaggregation::None && class.chunk > 2048 {
        return Some(16384);
    }
    Some(class.chunk)
}

/// The largest decode batch that graphs are captured for when none is given. `None` before 0.2.15. From 0.5.23 a default
/// is not larger than `max_running_requests`.
pub fn default_graph_max_batch(settings: &Settings) -> Option<u32> {
    let class = class_of(settings)?;
    let batch = if settings.tp < 4 { class.few_ranks } else { class.many_ranks };
    let capped = settings.version >= Version::new(5, 23);
    Some(settings.max_running_requests.filter(|_| capped).map_or(batch, |requests| batch.min(requests)))
}

/// How many sizes prefill (piecewise) graphs are captured for, up to `most` tokens.
pub fn prefill_graph_sizes(version: Version, most: i64) -> usize {
    let to = |first: i64, last: i64, step: i64| {
        let last = last.min(most);
        usize::try_from(last.saturating_sub(first).div_euclid(step) + 1).unwrap_or(0)
    };
    let common = to(4, 32, 4) + to(48, 256, 16) + to(288, 512, 32);
    if version < Version::new(5, 8) {
        common + to(640, 4096, 128) + to(4352, i64::MAX, 256)
    } else {
        common + to(576, 1024, 64) + to(1280, 4096, 256) + to(4608, i64::MAX, 512)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults(version: Version, capacity: u32, tp: u32) -> (Option<i64>, Option<u32>) {
        let settings = Settings { tp, ..Settings::new(version, Some(capacity)) };
        (default_chunked_prefill_size(&settings), default_graph_max_batch(&settings))
    }

    #[test]
    fn prefill_graph_sizes_have_their_lengths() {
        for (most, sizes) in [(2048, 42), (4096, 50), (8192, 58), (16384, 74)] {
            assert_eq!(prefill_graph_sizes(Version::new(5, 12), most), sizes, "{most}");
        }
        assert_eq!(prefill_graph_sizes(Version::post(5, 6, 2), 4096), 8 + 14 + 8 + 28);
        assert_eq!(prefill_graph_sizes(Version::new(5, 12), -1), 0);
        assert_eq!(prefill_graph_sizes(Version::new(5, 12), 5), 1);
    }

    #[test]
    fn size_classes_of_the_newer_releases() {
        let few = |version, capacity| defaults(version, capacity, 1);
        assert_eq!(few(Version::new(5, 12), 15360), (Some(2048), Some(8)));
        assert_eq!(few(Version::new(5, 12), 24564), (Some(2048), Some(24)));
        assert_eq!(few(Version::new(5, 3), 24564), (Some(2048), Some(16)));
        assert_eq!(few(Version::new(5, 20), 24564), (Some(4096), Some(48)));
        assert_eq!(few(Version::new(5, 12), 46068), (Some(4096), Some(32)));
        assert_eq!(few(Version::new(5, 12), 81559), (Some(8192), Some(256)));
        assert_eq!(
            few(Version::new(5, 12), 143_771),
            (Some(8192), Some(256)),
            "as the recorded servers print"
        );
        assert_eq!(few(Version::new(5, 12), 183_359), (Some(16384), Some(512)));
        let many = |version, capacity| defaults(version, capacity, 4).1;
        assert_eq!(many(Version::new(5, 3), 24564), Some(80));
        assert_eq!(many(Version::new(5, 20), 24564), Some(160));
        assert_eq!(many(Version::new(5, 12), 46068), Some(160));
        assert_eq!(many(Version::new(5, 12), 81559), Some(512));
    }

    #[test]
    fn size_classes_of_the_older_releases() {
        assert_eq!(defaults(Version::new(1, 20), 81559, 1), (None, None));
        assert_eq!(defaults(Version::new(2, 15), 81559, 1), (Some(8192), Some(160)));
        assert_eq!(defaults(Version::post(3, 6, 3), 24564, 1), (Some(2048), Some(4)));
        assert_eq!(defaults(Version::post(4, 3, 4), 24564, 1), (Some(2048), Some(8)));
        assert_eq!(defaults(Version::post(4, 3, 4), 24564, 4), (Some(2048), Some(80)));
        assert_eq!(defaults(Version::post(4, 3, 4), 143_771, 1), (Some(8192), Some(160)));
        assert_eq!(defaults(Version::post(4, 6, 5), 143_771, 1), (Some(8192), Some(256)));
        assert_eq!(defaults(Version::post(4, 10, 2), 24564, 1), (Some(2048), Some(8)));
        assert_eq!(defaults(Version::post(4, 10, 2), 46068, 1), (Some(8192), Some(160)));
        assert_eq!(defaults(Version::post(5, 1, 3), 183_359, 1), (Some(16384), Some(512)));
    }

    #[test]
    fn unknown_capacity_and_special_roles() {
        let unknown = Settings::new(Version::new(5, 12), None);
        assert_eq!(default_chunked_prefill_size(&unknown), Some(4096));
        assert_eq!(default_graph_max_batch(&unknown), Some(160));
        let mut capped = Settings::new(Version::new(5, 23), Some(81559));
        capped.max_running_requests = Some(64);
        assert_eq!(default_graph_max_batch(&capped), Some(64));
        capped.version = Version::new(5, 20);
        assert_eq!(default_graph_max_batch(&capped), Some(256));
        let mut prefill = Settings::new(Version::post(4, 6, 5), Some(81559));
        prefill.disaggregation = Disaggregation::Prefill;
        assert_eq!(default_chunked_prefill_size(&prefill), Some(16384));
    }
}
