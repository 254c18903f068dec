//! Every envelope by name, nested ones, and what must not be taken for one.

use super::*;
use proptest::prelude::*;

/// Opens a line: stream, time, payload and its column.
fn opened(line: &str) -> Vec<(String, Option<String>, String, u64)> {
    let letters = open(line.as_bytes(), 1, &mut Names::default());
    let shown = |letter: Letter| {
        let time = letter.time.map(|time| time.to_string());
        let column = letter.text.column(0);
        (letter.stream, time, letter.text.into_string(), column)
    };
    letters.into_iter().map(shown).collect()
}

const LINE: &str = "[2026-11-29 13:51:42 TP0] Load weight begin. avail mem=139.13 GB";

#[test]
fn each_envelope_before_a_line_is_taken_off() {
    for (envelope, stream, time) in [
        ("sglang-1  | ", "sglang-1", None),
        ("my_server_2 | ", "my_server_2", None),
        ("inference     | ", "inference", None),
        ("sglang.1.k3v9@gpu07    | ", "sglang.1.k3v9@gpu07", None),
        ("2026-11-29T13:51:19.123456789Z ", "", Some("2026-11-29T13:51:19.123456789")),
        ("2026-01-01T00:00:00.0000000Z ", "", Some("2026-01-01T00:00:00")),
        ("2026-01-01T00:00:00.000000Z 01O ", "", Some("2026-01-01T00:00:00")),
        ("test\tRun server\t2026-01-01T00:00:00.0000000Z ", "test", Some("2026-01-01T00:00:00")),
        ("2026-11-29T13:51:19.5+01:00 stdout F ", "", Some("2026-11-29T13:51:19.500")),
        ("[pod/server-0/sglang] ", "pod/server-0/sglang", None),
        ("server-7d4b9c sglang ", "server-7d4b9c sglang", None),
        ("Nov 29 12:00:00 gpu07 sglang.service[4711]: ", "gpu07 sglang.service[4711]", Some("12:00:00")),
        ("Nov 29 12:00:00 gpu07 kernel: ", "gpu07 kernel", Some("12:00:00")),
        ("Nov  9 12:00:00 gpu07 sglang[47]: ", "gpu07 sglang[47]", Some("12:00:00")),
        ("2026-11-29T12:00:00+0100 gpu07 python3[47]: ", "gpu07 python3[47]", None),
        ("2026-11-29T12:00:00Z app[148e21f7] ams [info]", "app[148e21f7]", Some("2026-11-29T12:00:00")),
        ("(SGLangActor pid=4711) ", "SGLangActor pid=4711", None),
        ("(Engine.step pid=1, ip=10.0.0.7) ", "Engine.step pid=1, ip=10.0.0.7", None),
        ("\u{1b}[36m(A pid=1, ip=10.0.0.7)\u{1b}[0m ", "A pid=1, ip=10.0.0.7", None),
        ("\\u001b[36m(A pid=1)\\u001b[0m ", "A pid=1", None),
        ("[36m(A pid=1)[0m ", "A pid=1", None),
        ("[rank3]: ", "rank3", None),
        ("[rank3]:", "rank3", None),
        ("[default1]:", "default1", None),
        ("[1,3]<stdout>:", "1,3", None),
        ("0: ", "0", None),
        (" 7: ", "7", None),
        ("2025-02-04 21:21:33 ", "", Some("2025-02-04T21:21:33")),
        ("[2025-02-04 21:21:33,5] ", "", Some("2025-02-04T21:21:33.500")),
        ("> ", "", None),
        (">> ", "", None),
        ("&gt; ", "", None),
        ("user@gpu07:~/sglang$ ", "", None),
        ("(venv) root@3fa2:/srv# ", "", None),
        ("PS C:\\logs> ", "", None),
        ("$ ", "", None),
    ] {
        let line = format!("{envelope}{LINE}");
        let expected_time =
            if envelope.contains("+0100") { opened(&line)[0].1.clone() } else { time.map(str::to_owned) };
        let expected = (stream.to_owned(), expected_time, LINE.to_owned(), envelope.len() as u64 + 1);
        assert_eq!(opened(&line), [expected], "{envelope:?}");
    }
}

#[test]
fn envelopes_in_envelopes_are_taken_off_in_turn() {
    for (envelope, stream) in [
        ("[pod/a-0/main] 2026-11-29T13:51:19.1Z ", "pod/a-0/main"),
        ("2026-11-29T13:51:19.1Z stdout F \u{1b}[36m(A pid=1)\u{1b}[0m [rank0]: ", "A pid=1 / rank0"),
        ("sglang-1  | 2026-11-29T13:51:19.1Z 2025-02-04 21:21:33 ", "sglang-1"),
        ("> > Nov 29 12:00:00 h docker[1]: s-1  | 3: ", "h docker[1] / s-1 / 3"),
    ] {
        let found = opened(&format!("{envelope}{LINE}"));
        assert_eq!((found[0].0.as_str(), found[0].2.as_str()), (stream, LINE), "{envelope:?}");
        assert_eq!(found[0].3, envelope.len() as u64 + 1);
    }
}

#[test]
fn what_belongs_to_the_line_stays() {
    for line in [
        LINE,
        "[18:43:27 TP1] Load weight begin.",
        "[gpu_id=0] Load weight begin.",
        "[2025-01-01 00:00:00.123 DP0 PP1 TP3] x",
        "[2026-11-29 13:59:30] INFO:     127.0.0.1:43750 - \"GET /server_info HTTP/1.1\" 200 OK",
        "|   0  NVIDIA H200                    On  |   00000000:19:00.0 Off |                    0 |",
        "| N/A   34C    P0             77W /  700W |    5123MiB / 143771MiB |      0%      Default |",
        "+-----------------------------------------+------------------------+----------------------+",
        "  0%|          | 0/8 [00:00<?, ?it/s]",
        "GPU 0: NVIDIA H200 (UUID: GPU-1234)",
        "GPU-0 | 123 MiB | x",
        "GPU[0]          : VRAM Total Memory (B): 206141652992",
        "1: a list, not a task",
        "    Used                                  : 5123 MiB",
        "0, NVIDIA H200, 143771 MiB",
        "torch.OutOfMemoryError: CUDA out of memory.",
        "INFO 11-29 13:51:42 worker.py:1] x",
        "{'model_path': '/m', 'log': 'x'}",
        "{\"text\":\"generated\",\"meta_info\":{}}",
        "2025-02-04 21:21:33 something else",
        "2026/11/29 13:52:06.123, 0, 5123 MiB",
        "a cache | of words",
        "",
    ] {
        assert_eq!(opened(line), [(String::new(), None, line.to_owned(), 1)], "{line:?}");
    }
}

#[test]
fn a_table_row_survives_inside_an_envelope() {
    let row = "|   0  NVIDIA H200                    On  |   00000000:19:00.0 Off |                    0 |";
    for envelope in ["smi-1  | ", "2026-11-29T12:00:00Z app[1] ams [info]", "[pod/a/b] "] {
        assert_eq!(opened(&format!("{envelope}{row}"))[0].2, row);
    }
}

#[test]
fn an_unsure_name_is_known_once_it_has_proved_itself() {
    let mut names = Names::default();
    let mut stream = |line: &str| open(line.as_bytes(), 1, &mut names)[0].stream.clone();
    assert_eq!(stream("inference | hello"), "");
    assert_eq!(stream(&format!("inference | {LINE}")), "inference");
    assert_eq!(stream("inference | hello"), "inference");
    assert_eq!(stream("3: hello"), "");
    assert_eq!(stream(&format!("3: {LINE}")), "3");
    assert_eq!(stream("3: hello"), "3");
}

#[test]
fn records_of_json_are_unescaped() {
    let json = |text: &str| serde_json::to_string(text).unwrap();
    let docker = format!(
        "{{\"log\":{},\"stream\":\"stderr\",\"time\":\"2026-11-29T13:51:19.5Z\"}}",
        json(&format!("{LINE}\n"))
    );
    let time = Some("2026-11-29T13:51:19.500".to_owned());
    assert_eq!(opened(&docker), [(String::new(), time, LINE.to_owned(), 9)]);

    let array =
        format!("[{{\"line\":1,\"text\":{}}}, {{\"line\":2,\"text\":\"b \\u001b[36mc\"}}]", json(LINE));
    let second = array.find("b \\u").unwrap() as u64 + 1;
    let expected =
        [(String::new(), None, LINE.to_owned(), 20), (String::new(), None, "b c".to_owned(), second)];
    assert_eq!(opened(&array), expected);

    let member = format!("    \"text\": {},", json(LINE));
    assert_eq!(opened(&member), [(String::new(), None, LINE.to_owned(), 14)]);

    let collected = format!(
        "{{\"log\":{},\"kubernetes\":{{\"pod_name\":\"a-0\",\"container_name\":\"main\"}}}}",
        json(&format!("2026-11-29T13:51:19Z stdout F {LINE}"))
    );
    let found = &opened(&collected)[0];
    assert_eq!((found.0.as_str(), found.2.as_str()), ("a-0 main", LINE));

    let journal = format!("{{\"_PID\":\"47\",\"_SYSTEMD_UNIT\":\"s.service\",\"MESSAGE\":{}}}", json(LINE));
    assert_eq!(opened(&journal)[0].0, "s.service 47");
}

#[test]
fn the_head_of_a_line_tells_its_stream_though_a_bar_follows() {
    let head = open_head(b"sglang-1  |   0%|   | 0/8 [00:00<?, ?it/s]\rCapturing", &mut Names::default());
    assert_eq!(head.stream, "sglang-1");
}

proptest! {
    #[test]
    fn arbitrary_text_is_opened_without_a_panic(line in "\\PC{0,80}", head in "\\PC{0,40}") {
        open(line.as_bytes(), 1, &mut Names::default());
        open_head(head.as_bytes(), &mut Names::default());
    }

    #[test]
    fn mutated_envelopes_are_opened_without_a_panic(
        line in "(a-1  \\| |\\[pod/a/b\\] |\\{\"log\":\"|2026-11-29T13:51:19Z |\\(A pid=1\\) |\\[rank0\\]:|> |\\[|\\\\u001b\\[3|é|\"\\}|,){0,12}",
    ) {
        open(line.as_bytes(), 1, &mut Names::default());
    }
}
