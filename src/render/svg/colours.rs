//! What a shape stands for, and so its colour: one class of the style sheet each.

use super::Shown;
use crate::render::entries::EntryKind;
use crate::stage::Stage;
use maud::{Markup, html};

/// What a piece of a card's memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::render) enum Kind {
    /// Kept by the driver.
    Kept,
    /// In use before the first figure.
    Held,
    /// Weights.
    Weights,
    /// KV and state pools.
    Pool,
    /// CUDA graphs.
    Graphs,
    /// Any other stage.
    Other,
    /// Everything between the first figure and the last, not told apart.
    Used,
    /// Held by other processes.
    Foreign,
    /// Moved without a line of its own.
    Gap,
    /// Given back.
    Back,
    /// Free.
    Free,
}

impl Kind {
    /// The kind of a ledger's row; what was given back is a kind of its own.
    pub(in crate::render) fn of(entry: EntryKind) -> Kind {
        match entry {
            EntryKind::Held => Kind::Held,
            EntryKind::Gap => Kind::Gap,
            EntryKind::Left => Kind::Free,
            EntryKind::Stage(stage) => Kind::of_stage(stage),
        }
    }

    /// The kind of a stage.
    pub(in crate::render) fn of_stage(stage: Stage) -> Kind {
        match stage {
            Stage::Weights | Stage::Lora => Kind::Weights,
            Stage::KvCache | Stage::MambaCache | Stage::MemoryPool | Stage::PostCaptureResize => Kind::Pool,
            stage if stage.is_capture() => Kind::Graphs,
            _ => Kind::Other,
        }
    }

    /// The class in the style sheet.
    pub(in crate::render) const fn class(self) -> &'static str {
        match self {
            Kind::Kept => "keep",
            Kind::Held => "held",
            Kind::Weights => "weights",
            Kind::Pool => "pool",
            Kind::Graphs => "graphs",
            Kind::Other => "other",
            Kind::Used => "used",
            Kind::Foreign => "other",
            Kind::Gap => "gap",
            Kind::Back => "back",
            Kind::Free => "free",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Kind::Kept => "kept by the driver",
            Kind::Held => "before the first figure",
            Kind::Weights => "weights",
            Kind::Pool => "KV cache and state pools",
            Kind::Graphs => "CUDA graphs",
            Kind::Other => "other stages",
            Kind::Used => "used",
            Kind::Foreign => "other processes",
            Kind::Gap => "unlogged",
            Kind::Back => "given back",
            Kind::Free => "free",
        }
    }
}

/// The colours that a picture uses, in words.
pub(in crate::render) fn legend(kinds: impl IntoIterator<Item = Kind>) -> Markup {
    let mut kinds: Vec<Kind> = kinds.into_iter().collect();
    kinds.sort_unstable();
    kinds.dedup();
    html! {
        ul.legend {
            @for kind in kinds {
                li {
                    svg width="12" height="12" aria-hidden="true" {
                        rect class=(kind.class()) x="1" y="1" width="10" height="10" {}
                    }
                    (Shown(kind.words()))
                }
            }
        }
    }
}
