//! Small things that several rules share: wording of ranks and stages, sums.

use crate::ledger::{Posting, PostingKind};
use crate::quantity::mib_text;
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
