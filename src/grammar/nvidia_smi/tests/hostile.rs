//! Input that is no dump, or a damaged one: no panic, no invented figure, kinds told apart.

use super::samples::{
    BOX, BOX_418, BOX_470, BOX_GB10, BOX_MIG, BOX_WDDM, DEVICE_CSV, DEVICE_CSV_BARE, MEMORY_TEXT, PMON,
    PROCESS_CSV, XML,
};
use super::{lines, read};
use crate::grammar::nvidia_smi::{hints, looks_like_dump, parse};
use proptest::prelude::*;

const GOOD: [&str; 11] =
    [BOX, BOX_418, BOX_470, BOX_GB10, BOX_MIG, BOX_WDDM, DEVICE_CSV, MEMORY_TEXT, PMON, PROCESS_CSV, XML];

const LOG: &str = "[2026-05-07 15:39:13 TP0] Decode batch, #running-req: 3, #token: 1287, token usage: 0.00, cuda graph: True, gen throughput (token/s): 312.61, #queue-req: 0
[2026-05-07 15:39:13] INFO:     127.0.0.1:58914 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK
[2026-05-07 15:39:13 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=124.15 GB, mem usage=14.98 GB.
Capturing batches (bs=1 avail_mem=17.95 GB): 100%|██████████| 8/8 [00:01<00:00,  7.04it/s]
[2026-05-07 15:39:14] server_args=ServerArgs(model_path='m', host='0.0.0.0', port=30000, mem_fraction_static=0.85)
Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:00<00:02,  1.21it/s]
| model | memory | note | 12 GB / 24 GB |
";

#[test]
fn a_log_is_no_dump() {
    let dump = read(LOG);
    assert!(dump.observations.is_empty() && dump.notes.is_empty(), "{dump:?}");
    assert!(!looks_like_dump(LOG));
    assert!(!looks_like_dump(&LOG.repeat(10)));
    assert!(!looks_like_dump(""));
    assert!(!looks_like_dump("<html><body>NVIDIA-SMI</body></html>"));
}

#[test]
fn a_dump_is_known_by_its_head() {
    for text in GOOD {
        assert!(looks_like_dump(text), "{text}");
        assert!(hints().any(|hint| text.contains(hint)), "{text}");
    }
    assert!(looks_like_dump(DEVICE_CSV_BARE));
    let head: String = BOX.chars().take(700).collect();
    assert!(looks_like_dump(&head));
    assert!(!looks_like_dump(&format!("{}{BOX}", LOG.repeat(12))), "a log with a dump at its end is a log");
}

#[test]
fn hints_are_rare_in_a_serving_log() {
    for hint in hints() {
        assert!(!LOG.contains(hint), "{hint}");
        assert!(hint.len() >= 4, "{hint}");
    }
}

#[test]
fn more_rows_than_any_machine_has_devices_are_all_kept() {
    let rows: String = (0..400).map(|row| format!("{row}, {} MiB\n", 1000 + row)).collect();
    let dump = read(&format!("index, memory.used [MiB]\n{rows}"));
    assert_eq!(dump.observations.len(), 400);
    assert_eq!((dump.observations[399].device, dump.observations[399].used), (Some(399), super::mib(1399)));
}

/// A good dump with lines taken out, doubled, cut or swapped.
fn mutated() -> impl Strategy<Value = String> {
    let step = (0_u8..4, any::<prop::sample::Index>(), any::<prop::sample::Index>());
    (0..GOOD.len(), prop::collection::vec(step, 0..12)).prop_map(|(which, steps)| {
        let mut lines: Vec<String> = GOOD[which].lines().map(str::to_owned).collect();
        for (what, at, other) in steps {
            if lines.len() < 2 {
                break;
            }
            let (at, other) = (at.index(lines.len()), other.index(lines.len()));
            match what {
                0 => drop(lines.remove(at)),
                1 => lines.insert(other, lines[at].clone()),
                2 => {
                    let length = lines[at].chars().count();
                    lines[at] = lines[at].chars().take(other % (length + 1)).collect();
                }
                _ => lines.swap(at, other),
            }
        }
        lines.join("\n")
    })
}

proptest! {
    #[test]
    fn arbitrary_lines_never_panic(text in "(\\PC{0,60}\n){0,12}") {
        let _ = (parse(&lines(&text)), looks_like_dump(&text));
    }

    #[test]
    fn lines_of_the_grammars_own_words_never_panic(
        words in prop::collection::vec(prop::sample::select(vec![
            "|", "+--", "==|", "0", "1", "GPU", "Processes:", "MIG devices:", "N/A", "12MiB", "/", "12230...", "C", "MiB", ",",
            "GPU-1", "00000000:00:06.0", "Off", "<gpu id=\"0\">", "<total>", "</gpu>", "<mig_device>", "FB Memory Usage", " : ",
            "Used", "# gpu pid fb command", "[0] X", "memory.used", "pid", "\n", "\n", "\n", "│", "GPU[0] : ", "AMD-SMI", "npu-smi",
            "<!--", "&amp;", "NVIDIA-SMI", "MIG Device", "Processes", "é", "GPU: 0", "VRAM_USED", "PID: 7",
        ]), 0..80),
    ) {
        let text = words.join(" ");
        let _ = (parse(&lines(&text)), looks_like_dump(&text));
    }

    #[test]
    fn mutated_dumps_never_panic_and_invent_no_figure(text in mutated()) {
        let dump = read(&text);
        for seen in &dump.observations {
            for figure in [seen.used, seen.total].into_iter().flatten() {
                // Every figure stands in the text: MiB of its middle, unless the line was cut at a digit.
                let mib = figure.low() / crate::quantity::MIB + i128::from(figure.low() > 0);
                prop_assert!(mib == 0 || text.contains(&mib.to_string()), "{mib} is not in the text");
            }
        }
    }

    #[test]
    fn a_printed_box_is_read_back(devices in prop::collection::vec((0_u32..400_000, 1_u32..400_000), 1..9)) {
        let text: String = devices
            .iter()
            .enumerate()
            .map(|(index, (used, total))| format!(
                "|   {index}  NVIDIA H200                    On  |   00000000:{index:02X}:06.0 Off |                    0 |\n\
                 | N/A   38C    P0            125W /  700W |{used:>9}MiB /{total:>7}MiB |      0%      Default |\n"
            ))
            .collect();
        let expected: Vec<_> = (0..)
            .zip(&devices)
            .map(|(index, (used, total))| (Some(index), super::mib(i128::from(*used)), super::mib(i128::from(*total))))
            .collect();
        prop_assert_eq!(super::figures(&read(&text)), expected);
    }
}
