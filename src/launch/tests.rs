//! Which lines belong to one start: the cases that were once sorted wrongly.

use super::*;
use crate::grammar::sglang::Assembler;
use crate::input::LogicalLine;

/// The launches of lines, each with the name of its stream.
fn launches(lines: &[(&str, &str)]) -> Vec<Launch> {
    let source: Arc<str> = "server.log".into();
    let mut assembler = Assembler::new();
    let mut builder = LaunchBuilder::new(Arc::clone(&source));
    let mut events = Vec::new();
    for (number, (stream, text)) in (1..).zip(lines) {
        events.extend(assembler.push(&LogicalLine {
            place: Place { source: Arc::clone(&source), line: number, column: 1 },
            text: (*text).to_string(),
            stream: (*stream).into(),
            envelope_time: None,
            hit: true,
            cut: false,
        }));
    }
    events.extend(assembler.finish());
    for event in events {
        let text = event.text.strip_prefix("server_args=");
        let arguments = text.and_then(crate::server_args::parse).map(Arc::new);
        builder.push(event, arguments);
    }
    builder.finish()
}

fn plain(lines: &[&'static str]) -> Vec<Launch> {
    launches(&lines.iter().map(|line| ("", *line)).collect::<Vec<_>>())
}

fn outcomes(launches: &[Launch]) -> Vec<Outcome> {
    launches.iter().map(|launch| launch.outcome).collect()
}

const BEGIN: &str = "[2026-03-02 09:00:00] Init torch distributed begin.";
const INIT: &str = "[2026-03-02 09:00:01] Init torch distributed ends. elapsed=0.23 s, mem usage=0.09 GB";
const READY: &str = "[2026-03-02 09:00:30] The server is fired up and ready to roll!";

#[test]
fn prose_that_quotes_a_stage_begins_no_launch() {
    let launches = plain(&[BEGIN, INIT, READY, "Load weight end took a while here"]);
    assert_eq!(outcomes(&launches), [Outcome::Ready]);
    assert!(plain(&["Load weight end took a while here"]).is_empty());
}

#[test]
fn two_pods_that_print_the_same_line_at_the_same_second_both_count() {
    let launches = launches(&[("pod/a", BEGIN), ("pod/b", BEGIN), ("pod/a", INIT), ("pod/b", INIT)]);
    let lines: Vec<usize> = launches.iter().map(|launch| launch.ranks[0].events.len()).collect();
    assert_eq!(lines, [2, 2]);
}

#[test]
fn a_copy_in_a_second_form_is_no_launch_even_of_a_line_without_figures() {
    let launches = plain(&[BEGIN, "INFO:sglang.srt:Init torch distributed begin.", INIT]);
    assert_eq!(launches.len(), 1);
    assert_eq!(launches[0].ranks[0].events.len(), 2);
    assert_eq!(launches[0].ranks[0].events[0].repeated_at.len(), 1);
}

#[test]
fn servers_that_start_side_by_side_in_one_stream_are_told_apart_by_their_levels() {
    const ARGUMENTS: &str =
        "[2026-03-02 09:00:00] server_args=ServerArgs(model_path='/m', speculative_algorithm=None)";
    const OTHER: &str =
        "[2026-03-02 09:00:00] server_args=ServerArgs(model_path='/n', speculative_algorithm=None)";
    let launches = plain(&[
        ARGUMENTS,
        OTHER,
        BEGIN,
        BEGIN,
        INIT,
        INIT,
        "[2026-03-02 09:00:02] Load weight begin. avail mem=79.00 GB",
        "[2026-03-02 09:00:02] Load weight begin. avail mem=43.00 GB",
        "[2026-03-02 09:00:03] Load weight end. elapsed=1.00 s, type=A, avail mem=64.00 GB, mem usage=15.00 GB.",
        "[2026-03-02 09:00:03] Load weight end. elapsed=1.00 s, type=B, avail mem=36.00 GB, mem usage=7.00 GB.",
        "[2026-03-02 09:00:04] KV Cache is allocated. #tokens: 100, K size: 25.00 GB, V size: 25.00 GB",
        "[2026-03-02 09:00:04] KV Cache is allocated. #tokens: 200, K size: 16.00 GB, V size: 16.00 GB",
        "[2026-03-02 09:00:04] Memory pool end. avail mem=13.90 GB",
        "[2026-03-02 09:00:04] Memory pool end. avail mem=3.90 GB",
        READY,
        READY,
    ]);
    assert_eq!(outcomes(&launches), [Outcome::Ready, Outcome::Ready]);
    for launch in &launches {
        let events = &launch.ranks[0].events;
        assert_eq!(events.len(), 6);
        let levels: Vec<f64> = events
            .iter()
            .filter_map(|event| event.event.memory("avail mem"))
            .map(|level| (level.mib() / 1024.0 * 10.0).round() / 10.0)
            .collect();
        let expected = if launch.model_classes() == ["A"] { [79.0, 64.0, 13.9] } else { [43.0, 36.0, 3.9] };
        assert_eq!(levels, expected);
    }
}

#[test]
fn a_node_without_a_web_server_is_ready_by_its_health_check() {
    let launches = plain(&[
        "[2026-03-02 09:00:01 TP2] Load weight begin. avail mem=78.00 GB",
        "[2026-03-02 09:00:09] Dummy health check server started in background thread at 127.0.0.1:30000",
    ]);
    assert_eq!(outcomes(&launches), [Outcome::Ready]);
}

#[test]
fn what_fails_behind_the_draft_s_decode_graphs_failed_at_its_extend_graphs() {
    let launches = plain(&[
        "[2026-03-02 09:00:01] Capture draft decode CUDA graph begin. backend=full, num_tokens_per_bs=1, bs=[1, 2], avail mem=36.46 GB",
        "[2026-03-02 09:00:02] Capture draft decode CUDA graph end. elapsed=1.00 s, mem usage=0.06 GB, avail mem=36.39 GB.",
        "[2026-03-02 09:00:02] Scheduler hit an exception: Traceback (most recent call last):",
        "ModuleNotFoundError: No module named 'cutlass'",
    ]);
    assert_eq!(launches[0].failed_stage, Some(Stage::GraphDraftExtend));
}

/// NCCL's line of one rank of a communicator.
fn communicator(pid: u32, rank: u32, size: u32, bus: &str) -> String {
    format!(
        "gpu-01:{pid}:{pid} [{rank}] NCCL INFO ncclCommInitRank comm 0x1 rank {rank} nranks {size} cudaDev {rank} nvmlDev {rank} \
         busId {bus} commId 0x2 - Init START"
    )
}

/// The ids that the ranks of two lines, `TP0` and `TP1`, get from these lines of NCCL.
fn pids(lines: &[String]) -> Vec<Option<u64>> {
    let ranks = [BEGIN.replace("] ", " TP0] "), BEGIN.replace("] ", " TP1] ")];
    let all: Vec<(&str, &str)> = ranks.iter().chain(lines).map(|line| ("", line.as_str())).collect();
    let launches = launches(&all);
    assert!(launches[0].notes.is_empty(), "{:?}", launches[0].notes);
    launches[0].ranks.iter().map(|rank| rank.identity.as_ref().map(|identity| identity.pid)).collect()
}

#[test]
fn the_communicator_of_all_ranks_names_their_processes() {
    let of_one = [communicator(11, 0, 1, "1b000"), communicator(12, 0, 1, "1c000")];
    let of_all = [communicator(11, 0, 2, "1b000"), communicator(12, 1, 2, "1c000")];
    assert_eq!(pids(&[of_one.clone(), of_all].concat()), [Some(11), Some(12)]);
    assert_eq!(pids(&of_one), [None, None]);
}

#[test]
fn what_two_replicas_claim_names_no_process() {
    let lines =
        [communicator(11, 0, 2, "1b000"), communicator(21, 0, 2, "4b000"), communicator(12, 1, 2, "1c000")];
    assert_eq!(pids(&lines), [None, Some(12)]);
}

#[test]
fn a_bus_id_of_digits_only_is_hexadecimal_all_the_same() {
    let lines: Vec<(&str, String)> = vec![("", communicator(11, 0, 1, "19000")), ("", BEGIN.to_string())];
    let lines: Vec<(&str, &str)> = lines.iter().map(|(stream, line)| (*stream, line.as_str())).collect();
    let launches = launches(&lines);
    let bus = launches[0].ranks[0].identity.as_ref().and_then(|identity| identity.bus).expect("an address");
    assert_eq!((bus.bus, bus.device), (0x19, 0));
}
