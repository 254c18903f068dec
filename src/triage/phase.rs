//! What a launch was doing when it died: by the innermost frame that tells, else by the stage that its lines were in.
//!
//! Which function belongs to which phase is data. File names are those of SGLang 0.4 to 0.5.23; frames of models, layers and
//! torch itself say nothing (a linear layer runs in capture, in prefill and in decode) and are passed over.

use super::traceback::Frame;
use crate::event::{Edge, Event, Role};
use crate::launch::Launch;
use crate::stage::{RankTag, Stage, Worker};

/// What was going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// A stage of start-up, of the target or the draft model.
    Startup(Stage, Worker),
    /// A prefill (extend) batch.
    Prefill,
    /// A decode batch.
    Decode,
    /// Speculative decoding: drafting, or verifying the draft.
    Speculation,
    /// The encoder of images, audio or video.
    Encoder,
    /// Sampling.
    Sampler,
    /// Weights of a running server are exchanged.
    WeightUpdate,
    /// Host pools of the hierarchical cache.
    HostPool,
    /// Serving, with nothing that tells which step.
    Serving,
    /// The input does not say.
    Unknown,
}

/// When, relative to the KV pool: what decides in which direction the fraction must go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Period {
    /// Before the pool is sized: the fraction plays no part yet.
    BeforePool,
    /// While the pool is allocated.
    Pool,
    /// Between the pool and the ready line: in the slack.
    AfterPool,
    /// While requests are served: in what the slack has left.
    Serving,
    /// Not known.
    Unknown,
}

impl Phase {
    /// The phase in words, to follow "in" or "while": complete with its preposition.
    pub fn words(self) -> &'static str {
        match self {
            Phase::Startup(stage, worker) => startup_words(stage, worker),
            Phase::Prefill => "in prefill",
            Phase::Decode => "in decode",
            Phase::Speculation => "in speculative decoding",
            Phase::Encoder => "in the image or audio encoder",
            Phase::Sampler => "in sampling",
            Phase::WeightUpdate => "while exchanging weights",
            Phase::HostPool => "while allocating the host pool",
            Phase::Serving => "while serving",
            Phase::Unknown => "at an unknown stage",
        }
    }

    /// The stage of start-up that it is; serving for everything after.
    pub fn stage(self) -> Stage {
        match self {
            Phase::Startup(stage, _) => stage,
            Phase::Unknown | Phase::HostPool => Stage::Other,
            _ => Stage::Ready,
        }
    }
}

const fn startup_words(stage: Stage, worker: Worker) -> &'static str {
    match (stage, worker) {
        (Stage::DistributedInit, _) => "in distributed init",
        (Stage::Weights, Worker::Target) => "in loading the weights",
        (Stage::Weights, Worker::Draft) => "in loading the draft model's weights",
        (Stage::KvCache | Stage::MemoryPool, Worker::Target) => "in allocating the KV pool",
        (Stage::KvCache | Stage::MemoryPool, Worker::Draft) => "in allocating the draft model's KV pool",
        (Stage::MambaCache, _) => "in allocating the state cache",
        (Stage::AttentionBackend, _) => "in setting up the attention backend",
        (Stage::GraphDecode, _) => "in decode graph capture",
        (Stage::GraphPrefill, _) => "in prefill graph capture",
        (Stage::GraphDraft, _) => "in draft graph capture",
        (Stage::GraphDraftExtend, _) => "in draft extend graph capture",
        (Stage::GraphVerify, _) => "in verify graph capture",
        (Stage::Lora, _) => "in loading LoRA adapters",
        (Stage::PostCaptureResize, _) => "in sizing the KV pool after capture",
        (Stage::Ready, _) => "while serving",
        (Stage::Other, _) => "at an unknown stage",
    }
}

const fn startup(stage: Stage) -> Phase {
    Phase::Startup(stage, Worker::Target)
}

/// Pieces of a frame's file and function, and the phase that they tell. The first row that fits counts, so the more special
/// stand first; an empty piece fits everything.
const PLACES: [(&str, &str, Phase); 58] = [
    ("memory_pool_host", "", Phase::HostPool),
    ("mem_cache/pool_host", "", Phase::HostPool),
    ("hiradix_cache", "", Phase::HostPool),
    ("host_memory", "", Phase::HostPool),
    ("draft_extend_cuda_graph_runner", "replay", Phase::Speculation),
    ("draft_cuda_graph_runner", "replay", Phase::Speculation),
    ("cuda_graph_runner", "replay", Phase::Decode),
    ("draft_extend_cuda_graph_runner", "", startup(Stage::GraphDraftExtend)),
    ("draft_cuda_graph_runner", "", startup(Stage::GraphDraft)),
    ("piecewise_cuda_graph_runner", "", startup(Stage::GraphPrefill)),
    ("prefill_cuda_graph_runner", "", startup(Stage::GraphPrefill)),
    ("breakable_cuda_graph_runner", "", startup(Stage::GraphPrefill)),
    ("cuda_graph_runner", "", startup(Stage::GraphDecode)),
    ("npu_graph_runner", "", startup(Stage::GraphDecode)),
    ("cuda_graph_setup", "", startup(Stage::GraphDecode)),
    ("model_runner", "init_device_graphs", startup(Stage::GraphDecode)),
    ("model_runner", "init_cuda_graphs", startup(Stage::GraphDecode)),
    ("model_runner", "init_piecewise_cuda_graphs", startup(Stage::GraphPrefill)),
    ("layers/sampler", "", Phase::Sampler),
    ("sampling/", "", Phase::Sampler),
    ("", "get_image_feature", Phase::Encoder),
    ("", "get_video_feature", Phase::Encoder),
    ("", "get_audio_feature", Phase::Encoder),
    ("mm_utils", "", Phase::Encoder),
    ("layers/attention/vision", "", Phase::Encoder),
    ("encode_server", "", Phase::Encoder),
    ("model_runner", "init_lora_manager", startup(Stage::Lora)),
    ("lora_manager", "", startup(Stage::Lora)),
    ("lora/mem_pool", "", startup(Stage::Lora)),
    ("", "update_weights", Phase::WeightUpdate),
    ("weight_updater", "", Phase::WeightUpdate),
    ("", "resume_memory_occupation", Phase::WeightUpdate),
    ("mem_cache/", "_create_buffers", startup(Stage::KvCache)),
    ("mem_cache/memory_pool", "__init__", startup(Stage::KvCache)),
    ("mem_cache/swa_memory_pool", "__init__", startup(Stage::KvCache)),
    ("mem_cache/unified_memory_pool", "__init__", startup(Stage::KvCache)),
    ("mem_cache/allocator", "__init__", startup(Stage::KvCache)),
    ("kv_pool_runtime", "", startup(Stage::PostCaptureResize)),
    ("kv_cache_configurator", "", startup(Stage::KvCache)),
    ("model_runner_kv_cache_mixin", "", startup(Stage::KvCache)),
    ("model_runner", "init_memory_pool", startup(Stage::KvCache)),
    ("model_runner", "profile_max_num_token", startup(Stage::KvCache)),
    ("", "process_weights_after_loading", startup(Stage::Weights)),
    ("", "create_weights", startup(Stage::Weights)),
    ("", "load_weights", startup(Stage::Weights)),
    ("model_loader/", "", startup(Stage::Weights)),
    ("model_runner", "load_model", startup(Stage::Weights)),
    ("layers/attention/", "__init__", startup(Stage::AttentionBackend)),
    ("model_runner", "init_attention_backend", startup(Stage::AttentionBackend)),
    ("model_runner", "init_cublas", startup(Stage::AttentionBackend)),
    ("model_runner", "kernel_warmup", startup(Stage::AttentionBackend)),
    ("distributed/", "init", startup(Stage::DistributedInit)),
    ("model_runner", "init_torch_distributed", startup(Stage::DistributedInit)),
    ("speculative/", "verify", Phase::Speculation),
    ("speculative/", "draft", Phase::Speculation),
    ("model_runner", "forward_extend", Phase::Prefill),
    ("model_runner", "forward_decode", Phase::Decode),
    ("scheduler", "event_loop", Phase::Serving),
];

/// The phase that a traceback tells, its frames innermost first. `None` where none of them is known.
pub fn by_frames(frames: &[Frame<'_>]) -> Option<Phase> {
    let phase = frames.iter().find_map(|frame| {
        let file = frame.file.replace('\\', "/");
        PLACES
            .iter()
            .find(|(piece, function, _)| file.contains(piece) && frame.function.contains(function))
            .map(|(.., phase)| *phase)
    })?;
    let drafts = frames.iter().any(|frame| frame.file.contains("speculative/"));
    let served = frames.iter().any(|frame| frame.function.contains("event_loop"));
    Some(match phase {
        // Adapters of a running server, and pools that grow under load.
        Phase::Startup(Stage::Lora, _) if served => Phase::Serving,
        Phase::Startup(stage, _) if drafts && !stage.is_capture() => Phase::Startup(stage, Worker::Draft),
        phase => phase,
    })
}

/// The phase that the launch's lines tell: the stage that it failed at.
pub fn by_stage(launch: &Launch, failure: &Event, tag: Option<&RankTag>) -> Phase {
    match launch.failed_stage {
        None | Some(Stage::Other) => Phase::Unknown,
        Some(Stage::Ready) => Phase::Serving,
        Some(stage) => Phase::Startup(stage, worker_before(launch, failure, tag)),
    }
}

/// The worker of the last start-up line before the failure.
fn worker_before(launch: &Launch, failure: &Event, tag: Option<&RankTag>) -> Worker {
    launch
        .ranks
        .iter()
        .filter(|rank| tag.is_none_or(|tag| rank.tag == *tag))
        .flat_map(|rank| &rank.events)
        .filter(|event| event.event.place.line < failure.place.line)
        .filter(|event| matches!(event.event.role, Role::Stage(..)))
        .max_by_key(|event| event.event.place.line)
        .map(|event| event.worker)
        .unwrap_or_default()
}

/// When the phase lies. A draft model is loaded after the target's pool up to 0.5.12, before it from 0.5.15: the lines
/// tell, and where there are none, `private_pools` do: graphs are only captured once the pool is there.
pub fn period(phase: Phase, launch: &Launch, failure: &Event, private_pools: bool) -> Period {
    let pool_done = launch.ranks.iter().flat_map(|rank| &rank.events).any(|event| {
        event.event.place.line < failure.place.line
            && matches!(
                event.event.role,
                Role::Stage(Stage::KvCache | Stage::MemoryPool, Edge::End | Edge::Whole, _)
            )
    });
    match phase {
        Phase::Startup(Stage::KvCache | Stage::MemoryPool | Stage::MambaCache, Worker::Target)
            if !pool_done =>
        {
            Period::Pool
        }
        Phase::Startup(Stage::PostCaptureResize, _) => Period::Pool,
        Phase::Startup(stage, _) if stage.is_capture() || stage == Stage::AttentionBackend => {
            Period::AfterPool
        }
        Phase::Startup(Stage::KvCache | Stage::MemoryPool | Stage::MambaCache, Worker::Target) => {
            Period::AfterPool
        }
        Phase::Startup(..) if pool_done => Period::AfterPool,
        Phase::Startup(..) => Period::BeforePool,
        Phase::HostPool | Phase::Unknown if private_pools => Period::AfterPool,
        Phase::HostPool | Phase::Unknown => Period::Unknown,
        _ => Period::Serving,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(list: &[(&'static str, &'static str)]) -> Vec<Frame<'static>> {
        list.iter().rev().map(|(file, function)| Frame { file, function, line: 1 }).collect()
    }

    const LINEAR: (&str, &str) = ("/x/sglang/srt/layers/linear.py", "forward");
    const LOOP: (&str, &str) = ("/x/sglang/srt/managers/scheduler.py", "event_loop_overlap");

    #[test]
    fn the_innermost_telling_frame_decides() {
        for (outer, expected) in [
            (("/x/sglang/srt/model_executor/cuda_graph_runner.py", "capture"), startup(Stage::GraphDecode)),
            (
                ("/x/sglang/srt/model_executor/piecewise_cuda_graph_runner.py", "warmup"),
                startup(Stage::GraphPrefill),
            ),
            (("/x/sglang/srt/model_executor/model_runner.py", "forward_extend"), Phase::Prefill),
            (("/x/sglang/srt/model_executor/model_runner.py", "forward_decode"), Phase::Decode),
            (("/x/sglang/srt/managers/mm_utils.py", "embed_mm_inputs"), Phase::Encoder),
            (("/x/sglang/srt/layers/sampler.py", "forward"), Phase::Sampler),
            (("/x/sglang/srt/model_loader/loader.py", "load_model"), startup(Stage::Weights)),
            (("/x/sglang/srt/mem_cache/memory_pool.py", "_create_buffers"), startup(Stage::KvCache)),
            (("C:\\sglang\\srt\\mem_cache\\memory_pool_host.py", "init_kv_buffer"), Phase::HostPool),
        ] {
            assert_eq!(by_frames(&frames(&[LOOP, outer, LINEAR])), Some(expected), "{outer:?}");
        }
    }

    #[test]
    fn a_draft_model_s_weights_are_the_draft_s() {
        let draft = frames(&[
            ("/x/sglang/srt/speculative/eagle_worker.py", "__init__"),
            ("/x/sglang/srt/model_executor/model_runner.py", "load_model"),
        ]);
        assert_eq!(by_frames(&draft), Some(Phase::Startup(Stage::Weights, Worker::Draft)));
    }

    #[test]
    fn unknown_frames_tell_nothing() {
        assert_eq!(by_frames(&frames(&[LINEAR])), None);
        assert_eq!(by_frames(&[]), None);
        assert_eq!(by_frames(&frames(&[LOOP, LINEAR])), Some(Phase::Serving));
    }
}
