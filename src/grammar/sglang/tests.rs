//! The grammar as a whole: every row's line, every surprise, wrapped and torn lines, and properties on mutated lines.

mod joining;
mod properties;

use super::catalogue::samples::SAMPLES;
use super::catalogue::{template, templates};
use super::*;
use crate::event::{Edge, FailureKind, PoolRole, WorkerHint};
use crate::quantity::{Decimal, Quantity, Unit};
use crate::stage::{Stage, Worker};
use crate::version::{Version, VersionRange};
use std::collections::HashSet;

pub(in crate::grammar::sglang) fn line(text: &str) -> LogicalLine {
    LogicalLine {
        place: Place { source: Arc::from("log"), line: 1, column: 1 },
        text: text.to_owned(),
        stream: Arc::from(""),
        envelope_time: None,
        hit: true,
        cut: false,
    }
}

fn read_line(text: &str) -> Option<Event> {
    parse_line(&line(text))
}

fn gib(digits: &str) -> Quantity {
    Quantity::from_print(&Decimal::parse(digits).unwrap(), Unit::Gib).unwrap()
}

fn assemble(lines: &[&str]) -> Vec<Event> {
    let mut assembler = Assembler::new();
    let mut events = Vec::new();
    for (index, text) in lines.iter().enumerate() {
        let mut line = line(text);
        line.place.line = index as u64 + 1;
        events.extend(assembler.push(&line));
    }
    events.extend(assembler.finish());
    events
}

#[test]
fn every_row_has_a_line_that_it_prints() {
    let sampled: HashSet<_> = SAMPLES.iter().map(|(id, _)| *id).collect();
    for row in templates() {
        assert!(sampled.contains(row.id), "{} has no sample", row.id);
    }
    for (id, text) in SAMPLES {
        let row = template(id).unwrap();
        assert!(row.prints(text), "{id}: {text}");
    }
}

#[test]
fn every_line_is_read_as_its_row_or_as_one_of_the_same_words() {
    for (id, text) in SAMPLES {
        let row = template(id).unwrap();
        let event = read_line(&format!("[2026-11-29 13:52:37 TP0] {text}")).unwrap_or_else(|| panic!("{id}"));
        let read = event.template.unwrap_or_else(|| panic!("{id} has no template"));
        assert!(read.id == id || read.prints(text), "{id} read as {}", read.id);
        assert!(event.wording_range.first <= row.first && event.wording_range.last >= row.last, "{id}");
        assert!(event.fields.iter().all(|field| field.value != Value::Cut), "{id}: {:?}", event.fields);
        assert_eq!(event.rank.coordinates.tp, Some(0));
        for field in &event.fields {
            let start = field.place.column as usize - event.place.column as usize;
            assert!(event.text.get(start..start + field.length).is_some(), "{id}: {}", field.name);
        }
    }
}

/// Rows that another row's words hide: their first lines are the same.
const HIDDEN: [&str; 11] = [
    "kv.alloc.kv1.v3",
    "graph.begin.v3",
    "graph.end.v3",
    "sum.v4",
    "err.unbal.v2b",
    "err.graph.v3",
    "err.phase",
    "err.prefill.v2",
    "err.decode.v2",
    "err.prefill.v1",
    "fork.dsv4",
];

#[test]
fn the_row_itself_is_found_wherever_its_words_are_its_own() {
    for (id, text) in SAMPLES {
        let read = read_line(text).unwrap().template.unwrap().id;
        assert!(read == id || HIDDEN.contains(&id), "{id} read as {read}");
    }
}

#[test]
fn wording_tells_the_releases() {
    let range = |text: &str| read_line(text).unwrap().wording_range;
    let between = |first, last| VersionRange { first, last };
    assert_eq!(
        range("Load weight end. elapsed=0.13 s, type=A, avail mem=124.15 GB, mem usage=14.98 GB."),
        between(Version::new(5, 10), Version::new(5, 23))
    );
    assert_eq!(
        range("Capture cuda graph end. Time elapsed: 3.44 s. avail mem=0.08 GB. mem usage=34.60 GB."),
        between(Version::post(4, 3, 4), Version::post(4, 3, 4))
    );
    // Several rows, one wording: the union.
    assert_eq!(
        range("Capture cuda graph end. Time elapsed: 3.44 s. mem usage=0.08 GB. avail mem=34.60 GB."),
        between(Version::post(4, 6, 5), Version::new(5, 12))
    );
    assert_eq!(
        range("Use sliding window memory pool. full_layer_tokens=1, swa_layer_tokens=2").first,
        Version::post(5, 8, 1)
    );
    // A wording that is no row's claims nothing.
    assert_eq!(range("Load weight end. avail mem=124.15 GB, new field=3"), VersionRange::ALL);
}

#[test]
fn roles_follow_the_alternatives_of_the_wording() {
    let role = |text: &str| read_line(text).unwrap().role;
    let stage = |stage, edge, worker| Role::Stage(stage, edge, WorkerHint::Known(worker));
    assert_eq!(
        role("Capture target decode CUDA graph end. elapsed=3.44 s, mem usage=0.08 GB, avail mem=34.60 GB."),
        stage(Stage::GraphDecode, Edge::End, Worker::Target)
    );
    assert_eq!(
        role("Capture target verify CUDA graph end. elapsed=3.44 s, mem usage=0.08 GB, avail mem=34.60 GB."),
        stage(Stage::GraphVerify, Edge::End, Worker::Target)
    );
    assert_eq!(
        role("Capture draft decode CUDA graph end. elapsed=3.44 s, mem usage=0.08 GB, avail mem=34.60 GB."),
        stage(Stage::GraphDraft, Edge::End, Worker::Draft)
    );
    assert_eq!(
        role("Capture draft prefill CUDA graph end. elapsed=3.44 s, mem usage=0.08 GB, avail mem=34.60 GB."),
        stage(Stage::GraphPrefill, Edge::End, Worker::Draft)
    );
    assert_eq!(
        role(
            "Full KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 5, K size: 1.00 GB, V size: 1.00 GB"
        ),
        Role::Pool(PoolRole::AddressSpace)
    );
    assert_eq!(
        role(
            "Capture draft extend cuda graph begin. This can take up to several minutes. avail mem=31.27 GB"
        ),
        stage(Stage::GraphDraftExtend, Edge::Begin, Worker::Draft)
    );
}

#[test]
fn fields_are_read_with_their_units() {
    let event = read_line("[2026-11-29 13:52:37] Load weight begin. avail mem=139.13 GB").unwrap();
    assert_eq!(event.memory("avail mem"), Some(gib("139.13")));
    let field = event.field("avail mem").unwrap();
    assert_eq!((field.place.column, field.length), (52, 9));
    assert_eq!(&*event.label, "Load weight begin");

    let event = read_line("Allocating 191.88 GB host memory for hierarchical KV cache.").unwrap();
    let decimal = Quantity::from_print(&Decimal::parse("191.88").unwrap(), Unit::Gb).unwrap();
    assert_eq!(event.memory("host memory"), Some(decimal));

    let event = read_line(
        "[unified-memory-pool] UnifiedKVPool allocated: total_bytes=24.00 GB (=25769803776 B), 3 sub-pool(s)",
    )
    .unwrap();
    assert_eq!(event.memory("bytes"), Quantity::from_print(&Decimal::new(25_769_803_776, 0), Unit::Byte));
    assert_eq!(event.memory("total_bytes"), Some(gib("24.00")));

    let unbalanced = "The memory capacity is unbalanced. Some GPUs may be occupied by other processes. \
                      pre_model_load_memory=60.0234375, local_gpu_memory=78.5, local_gpu_memory * 0.9=70.65";
    let event = read_line(unbalanced).unwrap();
    assert_eq!(event.memory("pre_model_load_memory"), Some(gib("60.0234375")));
    assert_eq!(event.memory("local_gpu_memory"), Some(gib("78.5")));
    assert!(event.number("local_gpu_memory * 0.9").is_some());
    let event = read_line(&format!("RuntimeError: {unbalanced}")).unwrap();
    assert_eq!(event.role, Role::Failure(FailureKind::Unbalanced));
    assert_eq!(event.field("exception").unwrap().value, Value::Word("RuntimeError".into()));
}

#[test]
fn server_arguments_are_kept_from_behind_the_equals_sign() {
    let event =
        read_line("[2026-11-29 13:52:19] server_args=ServerArgs(model_path='/a', tp_size=2)").unwrap();
    assert_eq!(event.role, Role::ServerArgs);
    let field = event.field("server_args").unwrap();
    assert_eq!(field.value, Value::Word("ServerArgs(model_path='/a', tp_size=2)".into()));
    assert_eq!(field.place.column, 35);
    let event = read_line("server_args={'model_path': '/a', 'tp_size': 2}").unwrap();
    assert_eq!(event.template.unwrap().id, "args.dict");
}

#[test]
fn unknown_labels_with_a_stage_s_figures_become_stages() {
    for (text, edge) in [
        ("[TP0] Frobnicate expert tables begin. avail mem=20.60 GB", Edge::Begin),
        ("[TP0] Expert tables finished, elapsed=3 s, mem usage=1.50 GB", Edge::End),
        ("[TP0] Expert tables: avail_mem=20.60GB", Edge::Whole),
    ] {
        let event = read_line(text).unwrap();
        assert_eq!(event.role, Role::Stage(Stage::Other, edge, WorkerHint::ByOrder), "{text}");
        assert_eq!(event.template, None);
        assert!(event.fields.iter().any(|field| field.memory().is_some()));
    }
    let event =
        read_line("Warming shapes (n=4 avail_mem=20.60 GB):  12%|x    | 1/8 [00:01<00:13,  1.96s/it]")
            .unwrap();
    assert_eq!(event.role, Role::Progress(Stage::Other));
}

#[test]
fn tomorrow_s_fields_in_a_known_line_keep_its_role() {
    let event = read_line(
        "Capture target decode CUDA graph end. mode=new, mem usage=0.08 GB, avail mem=34.60 GB, elapsed=3.44 s",
    )
    .unwrap();
    assert!(matches!(event.role, Role::Stage(Stage::GraphDecode, Edge::End, _)));
    assert_eq!(event.memory("mem usage"), Some(gib("0.08")));
    let event =
        read_line("available_gpu_mem=31.18 GB, max_total_num_tokens=731957, context_len=8192").unwrap();
    assert_eq!(event.role, Role::Summary);
    assert_eq!(event.count("max_total_num_tokens"), Some(731_957));
}

#[test]
fn letter_case_of_labels_does_not_matter() {
    let event = read_line("load weight BEGIN. avail mem=20.60 GB").unwrap();
    assert_eq!(event.template.unwrap().id, "load.begin");
    assert_eq!(
        read_line(
            "dsv4 Memory Calculation: bytes_per_full_token=1.00, available_bytes=4.00 GB, full_token=5"
        )
        .unwrap()
        .role,
        Role::Pool(PoolRole::Evidence)
    );
}

#[test]
fn failures_are_told_apart() {
    for (text, kind) in [
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 28.00 MiB.",
            FailureKind::OutOfMemory,
        ),
        (
            "torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB (GPU 0)",
            FailureKind::OutOfMemory,
        ),
        ("RuntimeError: CUDA driver error: 2", FailureKind::OutOfMemory),
        ("cuMemCreate failed: CUresult 2", FailureKind::OutOfMemory),
        (
            "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled cuda error. Cuda failure 2 'out of memory'",
            FailureKind::OutOfMemory,
        ),
        (
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
            FailureKind::OutOfMemory,
        ),
        (
            "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 28.00 MiB.",
            FailureKind::CaptureFailed,
        ),
        (
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
            FailureKind::BudgetExhausted,
        ),
        ("RuntimeError: Not enough memory. Please try to incr", FailureKind::BudgetExhausted),
        (
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072",
            FailureKind::Exception,
        ),
        (
            "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
            FailureKind::Exception,
        ),
        (
            "Memory access fault by GPU node-2 (Agent handle: 0x1) on address 0x2. Reason: Unknown.",
            FailureKind::Exception,
        ),
        (
            "RuntimeError: alloc_req_slots runs out of memory. Please set a smaller number for `--max-running-requests`. x=3, num_reqs=5, ",
            FailureKind::SlotsExhausted,
        ),
        ("Prefill out of memory. Try to lower your batch size.", FailureKind::SlotsExhausted),
        ("AssertionError", FailureKind::Exception),
        ("ValueError: bad shape", FailureKind::Exception),
    ] {
        assert_eq!(read_line(text).map(|event| event.role), Some(Role::Failure(kind)), "{text}");
    }
    let event = read_line("Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 28.00 MiB. GPU 0 has a total capacity of 139.80 GiB").unwrap();
    assert_eq!(event.memory("total"), Some(gib("139.80")));
    assert_eq!(event.place.further(76), event.field("asked").unwrap().place);
}

#[test]
fn frames_are_kept_with_file_line_and_function() {
    let event = read_line("  File \"/a/b c.py\", line 12, in forward").unwrap();
    assert_eq!(event.template.unwrap().id, "trace.frame");
    assert_eq!(event.field("file").unwrap().value, Value::Word("/a/b c.py".into()));
    assert_eq!(event.count("line"), Some(12));
    assert_eq!(event.field("function").unwrap().value, Value::Word("forward".into()));
}

#[test]
fn ordinary_lines_are_none_of_our_business() {
    for text in [
        "[2026-11-29 13:52:53 TP0] Decode batch, #running-req: 1, #token: 549, token usage: 0.95, cuda graph: True, gen throughput (token/s): 140.33, #queue-req: 0",
        "[2026-11-29 13:52:53 TP0] Prefill batch, #new-seq: 1, #new-token: 7, #cached-token: 0, token usage: 0.95",
        "INFO:     127.0.0.1:57580 - \"POST /generate HTTP/1.1\" 200 OK",
        "[2026-11-29 13:52:52] INFO:     Application startup complete.",
        "Downloading shards: model.safetensors 4.98GB / 9.10GB",
        "model-00001.safetensors:  12%|█▎        | 4.98G/9.10G [00:01<00:13, 1.96GB/s]",
        "Compiling num tokens (num_tokens=64):  12%|█▎        | 1/8 [00:01<00:13,  1.96s/it]",
        "    return func(*args, **kwargs)",
        "/usr/lib/python3.12/x.py:54: UserWarning: something",
        "Possible solutions:",
        "[2026-11-29 13:52:53] Failed to load generation config for /models/a: nothing. Proceeding without.",
        "",
        "   ",
    ] {
        assert_eq!(read_line(text), None, "{text}");
    }
}

#[test]
fn a_bar_glued_to_another_is_read() {
    let event = read_line("  0%|          | 0/8 [00:00<?, ?it/s]Capturing batches (bs=8 avail_mem=34.66 GB):   0%|  | 0/8 [00:00<?, ?it/s]").unwrap();
    assert_eq!(event.role, Role::Progress(Stage::GraphDecode));
    assert_eq!((event.count("bs"), event.memory("avail_mem")), (Some(8), Some(gib("34.66"))));
}

#[test]
fn cut_values_are_unknown_and_never_smaller() {
    for text in [
        "Load weight begin. avail mem=",
        "Load weight begin. avail mem=20",
        "Load weight begin. avail mem=20.",
        "Load weight begin. avail mem=20.6",
        "Load weight begin. avail mem=20.60 G",
        "Unknown stage. avail mem=20.60",
        "The memory capacity is unbalanced. Some GPUs may be occupied by other processes. min_per_gpu_memory=78.",
        "The memory capacity is unbalanced. Some GPUs may be occupied by other processes. min_per_gpu_memory=78.5",
        "max_total_num_tokens=1, context_len=2, available_gpu_mem=.20 GB",
    ] {
        let event = read_line(text).unwrap();
        assert_eq!(event.fields.last().unwrap().value, Value::Cut, "{text}");
    }
    let event = read_line("KV Cache is allocated. #tokens: 7319").unwrap();
    assert_eq!(event.field("#tokens").unwrap().value, Value::Cut);
    let mut cut = line("[TP0] max_total_num_tokens=731957, max_prefill_tokens=16384, context_len=819");
    cut.cut = true;
    assert_eq!(parse_line(&cut).unwrap().field("context_len").unwrap().value, Value::Cut);
}
