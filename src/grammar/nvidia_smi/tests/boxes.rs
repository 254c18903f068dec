//! The default box: generations, MIG, Windows, cuts, loops.

use super::samples::{
    BOX, BOX_418, BOX_470, BOX_GB10, BOX_MIG, BOX_ORIN_AND_GH200, BOX_WDDM, IDLE_BOX, PROCESS_CSV,
};
use super::{figures, mib, problems, processes, read};
use crate::grammar::nvidia_smi::DumpProblem;
use crate::observe::Instrument;
use crate::quantity::MIB;

#[test]
fn a_box_with_its_processes_is_one_observation_a_device() {
    let dump = read(BOX);
    assert_eq!(
        figures(&dump),
        [(Some(0), mib(122_316), mib(143_771)), (Some(1), mib(122_316), mib(143_771))]
    );
    let first = &dump.observations[0];
    assert_eq!(first.name.as_deref(), Some("NVIDIA H200"));
    assert_eq!(first.driver.as_deref(), Some("580.159.04"));
    assert_eq!(first.instrument, Instrument::NvidiaSmi);
    assert_eq!(first.taken_at.unwrap().to_string(), "2026-11-29T13:47:36");
    assert_eq!((first.place.line, first.place.column), (10, 46), "of the figure itself");
    assert!(first.processes_listed);
    assert_eq!(first.processes[0].pid, Some(2135));
    assert!(first.processes[0].used.unwrap().contains(122_306 * MIB));
    assert_eq!(dump.observations[1].processes[0].name, "sglang::scheduler_TP1");
}

#[test]
fn surprise_21_boxes_of_all_generations() {
    let dump = read(BOX_418);
    assert_eq!(figures(&dump), [(Some(0), mib(11_346), mib(16_130)), (Some(1), mib(11), mib(16_130))]);
    assert_eq!(processes(&dump.observations[0]), [(Some(21_467), "/opt/conda/bin/python", mib(11_335))]);
    assert_eq!(dump.observations[0].name.as_deref(), Some("Tesla V100-SXM2..."));
    assert_eq!(dump.observations[0].driver.as_deref(), Some("418.67"));
    assert_eq!(dump.observations[0].taken_at.unwrap().to_string(), "2019-03-05T09:11:53");

    let dump = read(BOX_470);
    assert_eq!(figures(&dump), [(Some(0), mib(35_213), mib(40_536))]);
    assert_eq!(processes(&dump.observations[0]), [(Some(12_345), "ray::RayWorker.step", mib(35_199))]);
    assert!(dump.notes.is_empty());
}

#[test]
fn surprise_21_windows_prints_a_driver_model_and_no_process_figures() {
    let dump = read(BOX_WDDM);
    assert_eq!(figures(&dump), [(Some(0), mib(20_481), mib(24_564))]);
    assert_eq!(dump.observations[0].name.as_deref(), Some("NVIDIA GeForce RTX 4090"));
    let listed = processes(&dump.observations[0]);
    assert_eq!(listed[1], (Some(7788), "...ta\\Local\\Programs\\Python 3\\python.exe", None));
    assert!(matches!(problems(&dump)[..], [DumpProblem::NoAttribution { .. }]));
}

#[test]
fn surprise_21_mig_instances_are_observations_of_their_own() {
    let dump = read(BOX_MIG);
    assert_eq!(
        figures(&dump),
        [(Some(0), mib(9837), mib(40_960)), (Some(0), mib(10), mib(9856)), (Some(0), mib(9826), mib(9856)),],
        "the line below an instance is of BAR1"
    );
    let mig = dump.observations[2].mig.unwrap();
    assert_eq!((mig.gpu_instance, mig.compute_instance, mig.device), (Some(8), Some(0), Some(1)));
    assert_eq!(processes(&dump.observations[2]), [(Some(31_337), "sglang::scheduler", mib(9816))]);
    assert!(dump.observations[0].processes.is_empty());
    assert!(dump.notes.is_empty(), "the parent's memory is its instances': {:?}", dump.notes);
    let shared = BOX_MIG.replace(
        "                     Memory-Usage |        Vol",
        "              Shared Memory-Usage |        Vol",
    );
    assert_eq!(figures(&read(&shared)), figures(&dump));
}

#[test]
fn surprise_21_a_header_alone_is_said() {
    let header: String = BOX.lines().take(8).map(|line| format!("{line}\n")).collect();
    let dump = read(&header);
    assert!(dump.observations.is_empty());
    assert_eq!(problems(&dump), [&DumpProblem::HeaderOnly { instrument: Instrument::NvidiaSmi }]);
}

#[test]
fn surprise_21_top_and_bottom_may_be_cut() {
    let lines: Vec<&str> = BOX.lines().collect();
    let without_banner = read(&lines[8..].join("\n"));
    assert_eq!(figures(&without_banner), figures(&read(BOX)));
    // From the figures of the first device on: which device they are of is not known.
    let dump = read(&lines[9..].join("\n"));
    assert_eq!(dump.observations.iter().filter(|seen| seen.used == mib(122_316)).count(), 2);
    assert!(dump.observations.iter().any(|seen| seen.device.is_none()));
    let dump = read(&lines[..10].join("\n"));
    assert_eq!(figures(&dump), [(Some(0), mib(122_316), mib(143_771))]);
    assert!(!dump.observations[0].processes_listed, "no list is not an empty list");
    let only_processes = read(&lines[lines.len() - 3..].join("\n"));
    assert_eq!(only_processes.observations.len(), 2);
    assert_eq!(only_processes.observations[1].processes[0].pid, Some(2136));
    assert_eq!(only_processes.observations[1].used, None);
    // Cut in the middle of the list's heading: nothing is known of processes.
    let dump = read(&lines[..19].join("\n"));
    assert!(!dump.observations[0].processes_listed);
}

#[test]
fn surprise_21_a_process_box_before_its_device_box_belongs_to_it() {
    let (devices, list) = BOX.split_at(BOX.rfind("\n\n").unwrap());
    let dump = read(&format!("{list}\n{devices}\n"));
    assert_eq!(figures(&dump), figures(&read(BOX)));
    assert_eq!(dump.observations[0].processes[0].pid, Some(2135));
}

#[test]
fn surprise_21_samples_of_a_loop_stay_apart() {
    let later = BOX.replace("13:47:36", "13:47:37").replace("122316MiB", "122320MiB");
    let dump = read(&format!("{BOX}{later}"));
    assert_eq!(dump.observations.len(), 4);
    assert_eq!(dump.observations[2].used, mib(122_320));
    assert_eq!(dump.observations[2].taken_at.unwrap().to_string(), "2026-11-29T13:47:37");
    assert!(dump.observations.iter().all(|seen| seen.processes.len() == 1));
    // The top of a loop cut: its first list is of a sample whose devices are gone.
    let list = &BOX[BOX.rfind("\n\n").unwrap()..];
    let dump = read(&format!("{list}{later}"));
    assert_eq!(dump.observations.len(), 4);
    assert_eq!((dump.observations[0].used, dump.observations[2].used), (None, mib(122_320)));
    // The same figures a second later, without clocks.
    let timeless: String = BOX.lines().skip(1).map(|line| format!("{line}\n")).collect();
    assert_eq!(read(&format!("{timeless}{timeless}")).observations.len(), 4);
}

#[test]
fn surprise_21_watch_prints_a_clock_of_its_own() {
    let body: String = BOX.lines().skip(1).map(|line| format!("{line}\n")).collect();
    let dump = read(&format!("Every 1.0s: nvidia-smi          node7: Sun Nov 29 13:52:06 2026\n\n{body}"));
    assert_eq!(dump.observations[0].taken_at.unwrap().to_string(), "2026-11-29T13:52:06");
}

#[test]
fn a_rule_keeps_the_figures_of_one_device_from_another() {
    // The figures of device 0 and the name of device 1 are missing.
    let torn: Vec<&str> =
        BOX.lines().enumerate().filter(|(at, _)| ![9, 12].contains(at)).map(|(_, line)| line).collect();
    let dump = read(&torn.join("\n"));
    let of = |device| dump.observations.iter().find(|seen| seen.device == device).unwrap();
    assert_eq!((of(Some(0)).used, of(None).used), (None, mib(122_316)));
}

#[test]
fn a_time_far_above_a_box_is_not_its_own() {
    let body: String = BOX.lines().skip(1).map(|line| format!("{line}\n")).collect();
    let far = format!("Sun Nov 29 09:00:00 2026\n{}{body}", "some other line\n".repeat(5));
    assert_eq!(read(&far).observations[0].taken_at, None);
}

#[test]
fn surprise_22_unified_memory_has_unknown_figures() {
    let dump = read(BOX_GB10);
    assert_eq!(figures(&dump), [(Some(0), None, None)]);
    assert_eq!(dump.observations[0].processes.len(), 2);
    assert_eq!(dump.observations[0].processes[1].used, mib(81_992));
    let dump = read(BOX_ORIN_AND_GH200);
    assert_eq!(figures(&dump), [(Some(0), None, None), (Some(1), mib(70_000), mib(97_871))]);
}

#[test]
fn surprise_22_errors_in_a_row_are_unknown_and_never_zero() {
    let broken = BOX
        .replace(" 122316MiB / 143771MiB", "      ERR! / 143771MiB")
        .replace("125W /  700W", "ERR! /  700W");
    assert_eq!(figures(&read(&broken))[0], (Some(0), None, mib(143_771)));
    let lost = BOX.replace(" 122316MiB / 143771MiB", "         Unknown Error");
    assert_eq!(figures(&read(&lost))[0], (Some(0), None, None));
}

#[test]
fn surprise_23_a_cut_figure_is_an_interval_until_another_form_tells_it_whole() {
    let dump = read(BOX);
    let cut = problems(&dump);
    assert_eq!(cut.len(), 2);
    assert!(matches!(cut[0], DumpProblem::FigureCut { pid: Some(2135), .. }));
    let all = format!(
        "{BOX}GPU 0: NVIDIA H200 (UUID: GPU-00000000-0000-4000-8000-000000000000)\nGPU 1: NVIDIA H200 (UUID: GPU-00000000-0000-4000-8000-000000000001)\n{PROCESS_CSV}"
    );
    let dump = read(&all);
    assert_eq!(dump.observations.len(), 2);
    assert_eq!(processes(&dump.observations[0]), [(Some(2135), "sglang::scheduler_TP0", mib(122_306))]);
    assert!(dump.notes.is_empty());
}

#[test]
fn surprise_24_an_empty_list_with_memory_in_use_is_no_attribution() {
    let lines: Vec<&str> = BOX.lines().filter(|line| !line.contains("sglang")).collect();
    for list in [lines.join("\n"), lines.join("\n").replacen(
        "|=========================================================================================|",
        "|=========================================================================================|\n|  No running processes found                                                             |",
        1,
    )] {
        let dump = read(&list);
        assert_eq!(dump.observations.len(), 2);
        assert!(dump.observations[0].processes_listed && dump.observations[0].processes.is_empty());
        let notes = problems(&dump);
        assert_eq!(notes.len(), 2);
        assert!(matches!(notes[0], DumpProblem::NoAttribution { used, .. } if used.contains(122_316 * MIB)));
        assert!(dump.notes[0].to_string().contains("122,316 MiB are in use"), "{}", dump.notes[0]);
    }
    let idle = read(IDLE_BOX);
    assert_eq!(idle.observations.len(), 2);
    assert!(idle.observations[0].processes_listed && idle.notes.is_empty(), "{:?}", idle.notes);
}

#[test]
fn processes_that_may_not_be_listed_are_said() {
    let refused = BOX_418.replace(
        "|    0     21467      C   /opt/conda/bin/python                      11335MiB |",
        "|    0                  Not Supported                                         |",
    );
    let dump = read(&refused);
    assert_eq!(problems(&dump), [&DumpProblem::ProcessesRefused { words: "Not Supported".to_owned() }]);
    assert!(!dump.observations[0].processes_listed);
}

#[test]
fn pasting_may_change_blanks_and_log_lines_may_stand_between() {
    let squeezed: String = BOX
        .lines()
        .map(|line| format!("{}\n", line.split_whitespace().collect::<Vec<_>>().join(" ")))
        .collect();
    assert_eq!(figures(&read(&squeezed)), figures(&read(BOX)));
    assert_eq!(read(&squeezed).observations[0].processes.len(), 1);
    let log = "[2026-11-29 13:47:36 TP0] Load weight begin. avail mem=139.13 GB";
    let mixed: String = BOX.lines().map(|line| format!("{line}\n{log}\n")).collect();
    assert_eq!(figures(&read(&mixed)), figures(&read(BOX)));
    let doubled: String = BOX.lines().map(|line| format!("{line}\n{line}\n")).collect();
    assert_eq!(figures(&read(&doubled)), figures(&read(BOX)), "a second handler");
    assert_eq!(read(&doubled).observations[0].processes.len(), 1);
    assert_eq!(read(&doubled).observations[0].taken_at, read(BOX).observations[0].taken_at);
    assert_eq!(read(&doubled).notes.len(), read(BOX).notes.len());
}

#[test]
fn an_instrument_that_fails_is_quoted() {
    let dump = read(
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that ...",
    );
    assert!(matches!(problems(&dump)[..], [DumpProblem::InstrumentFailed { .. }]));
    assert!(dump.observations.is_empty());
}
