//! The default rules of each release, as data.

use crate::version::Version;

/// Fractions by parallel size: the first row whose size is reached counts.
pub(super) type Steps = &'static [(u32, f64)];

/// How a release derives its default fraction.
pub(super) enum Rule {
    /// A table by tensor-parallel size.
    Table(Steps),
    /// A table by tensor- times pipeline-parallel size for cards up to 80 GiB, and an allowance for cards above 96 GiB (0.4.6).
    TableThenLargeCards(Steps),
    /// A reservation by size class of the card (0.4.8 to 0.5.1).
    SizeClasses,
    /// A reservation computed from chunk size, graph sizes and parallel size (0.5.3 and later).
    Formula(Formula),
}

/// What changed between the releases that compute a reservation.
pub(super) struct Formula {
    /// What prefill (piecewise) graphs are given.
    pub(super) prefill_graphs: PrefillGraphs,
    /// MiB for a draft model of its own.
    pub(super) standalone_mib: f64,
    /// MiB for a draft head.
    pub(super) draft_head_mib: f64,
    /// Whether terms are left out for graphs that are disabled and for the other half of a disaggregated deployment, and
    /// DeepEP's buffers are counted.
    pub(super) by_role: bool,
    /// Whether breakable prefill graphs with DeepEP are counted, and post-capture sizing replaces the reservation.
    pub(super) breakable_and_post_capture: bool,
    /// The fraction where the capacity is unknown.
    pub(super) unknown_capacity: f64,
    /// Whether XPUs get an allowance.
    pub(super) xpu: bool,
}

/// What the reservation holds for prefill (piecewise) graphs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PrefillGraphs {
    /// The release has none.
    None,
    /// A quarter MiB a token, on top of the floor.
    QuarterMibPerToken,
    /// 8 MiB per captured size.
    EightMibPerSize,
    /// 8 MiB per captured size; 1.5 GiB for MLA models.
    EightMibPerSizeOrMla,
}

/// Where the multimodal allowance is applied.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Multimodal {
    /// Not at all.
    None,
    /// In the model runner, by a fixed factor: the `server_args=` line shows the fraction before it.
    Runner(f64),
    /// In the server arguments, by the size of the vision tower.
    Tower,
}

/// The rules of a run of releases.
pub(super) struct Era {
    /// The first release.
    from: Version,
    /// The rule in words.
    pub(super) words: &'static str,
    /// The rule.
    pub(super) rule: Rule,
    /// The multimodal allowance.
    pub(super) multimodal: Multimodal,
}

const OLDEST: Steps = &[(8, 0.78), (4, 0.80), (2, 0.85)];
const STEPS_0_2_15: Steps = &[(16, 0.79), (8, 0.83), (4, 0.85), (2, 0.87)];
const STEPS_0_3_6: Steps = &[(16, 0.79), (8, 0.82), (4, 0.85), (2, 0.87)];
const STEPS_0_4_1: Steps = &[(16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87)];

/// The fraction of a single card, in every table.
pub(super) const SINGLE_CARD: f64 = 0.88;

const FORMULA_0_5_3: Formula = Formula {
    prefill_graphs: PrefillGraphs::None,
    standalone_mib: 6144.0,
    draft_head_mib: 2048.0,
    by_role: false,
    breakable_and_post_capture: false,
    unknown_capacity: 0.88,
    xpu: false,
};
const FORMULA_0_5_6: Formula = Formula { prefill_graphs: PrefillGraphs::QuarterMibPerToken, ..FORMULA_0_5_3 };
const FORMULA_0_5_8: Formula = Formula { prefill_graphs: PrefillGraphs::EightMibPerSize, ..FORMULA_0_5_3 };
const FORMULA_0_5_10: Formula =
    Formula { prefill_graphs: PrefillGraphs::EightMibPerSizeOrMla, draft_head_mib: 4096.0, ..FORMULA_0_5_3 };
const FORMULA_0_5_15: Formula =
    Formula { standalone_mib: 0.0, draft_head_mib: 0.0, by_role: true, ..FORMULA_0_5_10 };
const FORMULA_0_5_18: Formula = Formula { breakable_and_post_capture: true, ..FORMULA_0_5_15 };
const FORMULA_0_5_20: Formula = Formula { unknown_capacity: 0.95, xpu: true, ..FORMULA_0_5_18 };

/// Oldest first.
static ERAS: [Era; 14] = [
    Era {
        from: Version::new(1, 20),
        words: "table by tensor-parallel size (0.1.20)",
        rule: Rule::Table(OLDEST),
        multimodal: Multimodal::None,
    },
    Era {
        from: Version::new(2, 15),
        words: "table by tensor-parallel size (0.2.15)",
        rule: Rule::Table(STEPS_0_2_15),
        multimodal: Multimodal::Runner(0.95),
    },
    Era {
        from: Version::new(3, 6),
        words: "table by tensor-parallel size (0.3.6)",
        rule: Rule::Table(STEPS_0_3_6),
        multimodal: Multimodal::Runner(0.95),
    },
    Era {
        from: Version::new(4, 1),
        words: "table by tensor-parallel size (0.4.1 to 0.4.3)",
        rule: Rule::Table(STEPS_0_4_1),
        multimodal: Multimodal::Runner(0.95),
    },
    Era {
        from: Version::new(4, 6),
        words: "table by parallel size up to 80 GiB, an allowance above 96 GiB (0.4.6)",
        rule: Rule::TableThenLargeCards(STEPS_0_4_1),
        multimodal: Multimodal::Runner(0.90),
    },
    Era {
        from: Version::new(4, 8),
        words: "reservation by size class of the card (0.4.8)",
        rule: Rule::SizeClasses,
        multimodal: Multimodal::Runner(0.90),
    },
    Era {
        from: Version::new(4, 10),
        words: "reservation by size class of the card (0.4.10 to 0.5.1)",
        rule: Rule::SizeClasses,
        multimodal: Multimodal::Tower,
    },
    Era {
        from: Version::new(5, 3),
        words: "reservation from chunk and graph sizes (0.5.3)",
        rule: Rule::Formula(FORMULA_0_5_3),
        multimodal: Multimodal::Tower,
    },
    Era {
        from: Version::new(5, 6),
        words: "reservation from chunk and graph sizes (0.5.6)",
        rule: Rule::Formula(FORMULA_0_5_6),
        multimodal: Multimodal::Tower,
    },
    Era {
        from: Version::new(5, 8),
        words: "reservation from chunk and graph sizes (0.5.8 and 0.5.9)",
        rule: Rule::Formula(FORMULA_0_5_8),
        multimodal: Multimodal::Tower,
    },
    Era {
        from: Version::new(5, 10),
        words: "reservation from chunk, graph and piecewise graph sizes (0.5.10 to 0.5.12)",
        rule: Rule::Formula(FORMULA_0_5_10),
        multimodal: Multimodal::Tower,
    },
    Era {
        from: Version::new(5, 15),
        words: "reservation from chunk and graph sizes by role, draft weights inside the budget (0.5.15)",
        rule: Rule::Formula(FORMULA_0_5_15),
        multimodal: Multimodal::Tower,
    },
    Era {
        from: Version::new(5, 18),
        words: "reservation from chunk and graph sizes by role, or for post-capture sizing (0.5.18)",
        rule: Rule::Formula(FORMULA_0_5_18),
        multimodal: Multimodal::Tower,
    },
    Era {
        from: Version::new(5, 20),
        words: "reservation from chunk and graph sizes by role, or for post-capture sizing (0.5.20 and later)",
        rule: Rule::Formula(FORMULA_0_5_20),
        multimodal: Multimodal::Tower,
    },
];

/// The rules of `version`; of the oldest known release for anything older.
pub(super) fn of(version: Version) -> &'static Era {
    let [oldest, later @ ..] = &ERAS;
    later.iter().rev().find(|era| version >= era.from).unwrap_or(oldest)
}

/// The fraction that a table gives a parallel size.
pub(super) fn step(steps: Steps, size: u32) -> f64 {
    steps.iter().find(|(least, _)| size >= *least).map_or(SINGLE_CARD, |(_, fraction)| *fraction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::KNOWN;

    #[test]
    fn eras_are_in_order_and_every_known_release_has_one() {
        assert!(ERAS.windows(2).all(|pair| pair[0].from < pair[1].from));
        for version in KNOWN {
            assert!(of(version).from <= version, "{version}");
        }
        assert_eq!(of(Version::new(0, 1)).words, ERAS[0].words);
    }
}
