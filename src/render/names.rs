//! Words for stages, ranks, releases and spans of time, as the reports show them.

use crate::launch::{Launch, Outcome};
use crate::ledger::{Posting, PostingKind};
use crate::quantity::{Quantity, group_digits, mib_text};
use crate::stage::{Stage, Worker};

/// A stage as a table row names it.
pub(super) fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::DistributedInit => "distributed init",
        Stage::Weights => "weights",
        Stage::KvCache => "KV cache pool",
        Stage::MambaCache => "Mamba cache",
        Stage::MemoryPool => "memory pool",
        Stage::AttentionBackend => "attention backend",
        Stage::GraphDecode => "decode graphs",
        Stage::GraphPrefill => "prefill graphs",
        Stage::GraphDraft => "draft graphs",
        Stage::GraphDraftExtend => "draft extend graphs",
        Stage::GraphVerify => "verify graphs",
        Stage::Lora => "LoRA",
        Stage::PostCaptureResize => "KV pool after capture",
        Stage::Ready => "ready",
        Stage::Other => "unnamed stage",
    }
}

/// A posting's name: its stage and whose it is; unknown stages keep their own words.
pub(super) fn posting_name(posting: &Posting) -> String {
    if posting.kind == PostingKind::Gap {
        return "(unlogged)".into();
    }
    let name = match posting.stage {
        Stage::Other if !posting.label.trim().is_empty() => posting.label.trim(),
        stage => stage_name(stage),
    };
    // The draft's own captures say so in their names.
    let told = matches!(posting.stage, Stage::GraphDraft | Stage::GraphDraftExtend);
    if posting.worker == Worker::Draft && !told { format!("{name}, draft") } else { name.to_string() }
}

/// A posting's names, longest first: with the sizes of a capture or the place of a gap, and without.
pub(super) fn posting_names(posting: &Posting) -> Vec<String> {
    let name = posting_name(posting);
    let longer = match (posting.kind, posting.stage) {
        (PostingKind::Gap, Stage::Other) => None,
        (PostingKind::Gap, stage) => Some(format!("(unlogged, before {})", stage_name(stage))),
        _ => capture_sizes(posting).map(|sizes| format!("{name}, {sizes}")),
    };
    longer.into_iter().chain([name]).collect()
}

/// The largest size that a capture's bars show: `bs ≤ 32`, `≤ 8,192 tokens`.
fn capture_sizes(posting: &Posting) -> Option<String> {
    let sizes = posting.progress.iter().filter_map(|point| {
        let (name, size) = point.label.split_once('=')?;
        Some((name, size.parse::<u32>().ok()?))
    });
    let (name, size) = sizes.max_by_key(|(_, size)| *size)?;
    let size = group_digits(i128::from(size));
    Some(if name == "num_tokens" { format!("≤ {size} tokens") } else { format!("{name} ≤ {size}") })
}

/// Ranks by their tags, runs drawn together: `TP0–TP7`, `TP1, TP5`. `None` for ranks without a tag.
pub(super) fn rank_names(launch: &Launch, ranks: &[usize]) -> Option<String> {
    let tag = |rank: usize| launch.ranks.get(rank).map(|rank| rank.tag.text.as_str()).unwrap_or_default();
    if ranks.iter().all(|rank| tag(*rank).is_empty()) {
        return None;
    }
    let named = |rank: usize| if tag(rank).is_empty() { "(no tag)" } else { tag(rank) };
    let mut names: Vec<String> = Vec::new();
    let mut rest = ranks;
    while let Some(first) = rest.first() {
        let run = rest.iter().zip(*first..).take_while(|(rank, expected)| **rank == *expected).count();
        let (head, tail) = rest.split_at(run.max(1));
        match head {
            [one] => names.push(named(*one).into()),
            [one, other] => names.extend([named(*one).into(), named(*other).into()]),
            [one, .., last] => names.push(format!("{}–{}", named(*one), named(*last))),
            [] => break,
        }
        rest = tail;
    }
    Some(listed(names))
}

/// How a launch ended, with the seconds that it took to be ready where both clocks were printed.
pub(super) fn outcome(launch: &Launch) -> String {
    let ready_at = launch.ready.as_ref().and_then(|ready| ready.stamp);
    let took = ready_at.zip(launch.started_at).and_then(|(ready, start)| ready.seconds_since(&start));
    let ready = match took.filter(|seconds| *seconds >= 0.0) {
        Some(seconds) => format!("ready after {}", duration(seconds)),
        None => "ready".to_string(),
    };
    match (launch.outcome, launch.failed_stage) {
        (Outcome::Ready, _) => ready,
        (Outcome::Running, _) => format!("{ready}, then served"),
        (Outcome::Incomplete, _) => "log ends before ready".into(),
        (Outcome::Failed, Some(Stage::Ready)) if launch.ready.is_none() => "failed while serving".into(),
        (Outcome::Failed, Some(Stage::Ready)) => format!("{ready}, failed while serving"),
        (Outcome::Failed, Some(stage)) if stage != Stage::Other => format!("failed at {}", stage_name(stage)),
        (Outcome::Failed, _) => "failed".into(),
    }
}

/// Seconds in words: `44 s`, `3 min 20 s`, `2 h 5 min`.
pub(super) fn duration(seconds: f64) -> String {
    let whole = seconds.abs().round().min(1e15) as u64;
    match whole {
        0..120 => format!("{whole} s"),
        120..7200 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// The tolerance of a figure, as it would be shown behind it: `5`. `None` where it is too small to matter.
pub(super) fn tolerance(quantity: Quantity) -> Option<String> {
    mib_text(quantity).split_once(" ± ").map(|(_, tolerance)| tolerance.to_string())
}

/// A number of things: `1 rank`, `8 ranks`.
pub(super) fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", group_digits(number as i128), if number == 1 { one } else { many })
}

/// Things one after the other, at most eight of them.
pub(super) fn listed(things: impl IntoIterator<Item = String>) -> String {
    const MOST: usize = 8;
    let things: Vec<String> = things.into_iter().collect();
    let shown = things.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    if things.len() > MOST { format!("{shown} and {} more", things.len() - MOST) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing;

    #[test]
    fn runs_of_ranks_are_drawn_together() {
        let launch = testing::ranks(8);
        assert_eq!(rank_names(&launch, &[0, 1, 2, 5, 6]).as_deref(), Some("TP0–TP2, TP5, TP6"));
        assert_eq!(rank_names(&launch, &[3]).as_deref(), Some("TP3"));
        assert_eq!(rank_names(&testing::ranks(1), &[0]), None, "a lone rank has no tag");
    }

    #[test]
    fn durations_are_in_words() {
        assert_eq!(duration(44.2), "44 s");
        assert_eq!(duration(200.0), "3 min 20 s");
        assert_eq!(duration(7500.0), "2 h 5 min");
    }
}
