//! Small things that several rules share: wording of ranks and stages, fraction arithmetic.

use crate::launch::Launch;
use crate::ledger::{Ledger, Posting, PostingKind};
use crate::quantity::{Quantity, mib_text};
use crate::stage::{Stage, Worker};

/// A rank in a sentence: `rank TP1`, or `the server` where lines carry no tag.
pub(super) fn rank_words(tag: &str) -> String {
    if tag.is_empty() { "the server".into() } else { format!("rank {tag}") }
}

/// A posting in a sentence.
pub(super) fn posting_words(posting: &Posting) -> String {
    match posting.kind {
        PostingKind::Gap => format!("the gap {}", posting.label),
        PostingKind::Stage => stage_words(posting.stage, posting.worker),
    }
}

/// A stage in a sentence.
pub(super) fn stage_words(stage: Stage, worker: Worker) -> String {
    let words = match stage {
        Stage::DistributedInit => "distributed init",
        Stage::Weights => "the weights",
        Stage::KvCache => "the KV pool",
        Stage::MambaCache => "the Mamba cache",
        Stage::MemoryPool => "the memory pool",
        Stage::AttentionBackend => "the attention backend",
        Stage::GraphDecode => "decode graph capture",
        Stage::GraphPrefill => "prefill graph capture",
        Stage::GraphDraft => "draft graph capture",
        Stage::GraphDraftExtend => "draft extend graph capture",
        Stage::GraphVerify => "verify graph capture",
        Stage::Lora => "LoRA",
        Stage::PostCaptureResize => "post-capture sizing of the KV pool",
        Stage::Ready => "serving",
        Stage::Other => "an unnamed stage",
    };
    match worker {
        Worker::Target => words.to_string(),
        Worker::Draft => format!("{words} of the draft model"),
    }
}

/// `before − after = used`, spelt out.
pub(super) fn difference_sum(posting: &Posting) -> Option<String> {
    let (before, after) = (posting.before?, posting.after?);
    Some(format!("{} − {} = {} MiB", mib_text(before), mib_text(after), mib_text(before - after)))
}

/// Pre: the free memory that mem_fraction_static is a share of, the minimum over ranks of the first level printed.
/// SGLang measures it at the end of distributed init and never prints it; `Load weight begin` stands nearest.
pub(super) fn pre(ledgers: &[Ledger]) -> Option<Quantity> {
    ledgers.iter().filter_map(|ledger| ledger.opening).reduce(Quantity::min)
}

/// mem_fraction_static as the arguments have it.
pub(super) fn fraction(launch: &Launch) -> Option<f64> {
    launch.args()?.float("mem_fraction_static").filter(|fraction| *fraction > 0.0 && *fraction < 1.0)
}

/// How far mem_fraction_static moves for this many bytes of slack, rounded to the safe side: hundredths, as users set it.
/// Positive `bytes` of extra room wanted lowers the fraction.
pub(super) fn fraction_for_room(launch: &Launch, ledgers: &[Ledger], bytes: i128) -> Option<f64> {
    let (fraction, pre) = (fraction(launch)?, pre(ledgers)?.midpoint());
    if pre <= 0 {
        return None;
    }
    let moved = fraction - bytes as f64 / pre as f64;
    // A hair is added before cutting, so that 0.85 does not become 0.84 by its binary tail.
    let hundredths = (moved * 100.0 + 1e-9).floor() / 100.0;
    (hundredths > 0.0 && hundredths < 1.0 && (hundredths - fraction).abs() > 0.004).then_some(hundredths)
}
