//! The live probe against a driver that is none: every answer and every way not to answer.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "driver_support/mod.rs"]
mod support;

use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};
use support::{fake_driver, run, with_driver};

const MIB: f64 = 1_048_576.0;
const TOTAL: f64 = 150_754_820_096.0 / MIB;
const RESERVED: f64 = 644_939_776.0 / MIB;
const CONTEXT: f64 = 552_402_944.0 / MIB;

fn probe() -> Command {
    let driver = fake_driver(None);
    let mut command = with_driver(driver, driver);
    command.arg("probe");
    command
}

/// The JSON of a probe that must succeed.
fn answered(command: &mut Command) -> Value {
    let (code, json, errors) = run(command.args(["--format", "json"]));
    assert_eq!(code, 0, "{errors}");
    serde_json::from_str(&json).unwrap()
}

fn remarks(observation: &Value) -> String {
    let remarks = observation["remarks"].as_array().unwrap();
    remarks.iter().map(|remark| remark.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

fn mib(observation: &Value, figure: &str) -> f64 {
    let amount = &observation[figure];
    assert_eq!(amount["low_mib"], amount["high_mib"], "the driver's figures are exact");
    amount["mib"].as_f64().unwrap()
}

#[test]
fn nvml_alone_tells_memory_and_processes_and_makes_no_context() {
    let json = answered(
        probe()
            .env("FAKE_USED_MIB", "10750")
            .env("FAKE_PROCESSES", "4711:10240:python3,12:500:?")
            .env("FAKE_FAIL", "cuInit=999"),
    );
    assert_eq!(json["schema"], "vramledger.probe/1");
    let [nvml] = json["observations"].as_array().unwrap().as_slice() else { panic!("{json}") };
    assert_eq!(nvml["instrument"], "nvml");
    assert_eq!(nvml["device"], 0);
    assert_eq!(nvml["name"], "NVIDIA H200");
    assert_eq!(nvml["driver"], "580.159.04");
    assert_eq!(nvml["cuda_version"], "13.0");
    assert_eq!(nvml["pci"], "00000000:01:00.0");
    assert_eq!(nvml["cuda_device"], 0);
    assert_eq!(nvml["uuid"], "GPU-00000000-0000-4000-8000-000000000000");
    assert_eq!(mib(nvml, "total"), TOTAL);
    assert_eq!(mib(nvml, "reserved"), RESERVED);
    assert_eq!(mib(nvml, "used"), 10_750.0);
    assert_eq!(mib(nvml, "free"), TOTAL - RESERVED - 10_750.0);
    assert_eq!(nvml["own_context"], Value::Null);
    assert_eq!(nvml["processes"][0]["used"]["mib"], 10_240.0);
    assert_eq!(nvml["processes"][0]["name"], "python3");
    assert_eq!(nvml["processes"][1]["name"], "[Not Found]", "as nvidia-smi prints it");
}

#[test]
fn cuda_is_asked_on_demand_and_its_context_is_left_out() {
    let json = answered(probe().arg("--cuda").env("FAKE_USED_MIB", "1000"));
    let [nvml, cuda] = json["observations"].as_array().unwrap().as_slice() else { panic!("{json}") };
    assert_eq!(cuda["instrument"], "cuda");
    assert_eq!(cuda["device"], 0);
    assert_eq!(mib(cuda, "own_context"), CONTEXT);
    assert_eq!(mib(cuda, "total"), TOTAL - RESERVED, "cudaMemGetInfo's total leaves the reserve out");
    assert_eq!(mib(cuda, "free"), mib(nvml, "free"), "without the probe's context both agree to the byte");
    assert_eq!(mib(cuda, "used"), 1000.0);
    assert_eq!(remarks(cuda), "");
}

#[test]
fn memory_that_moves_meanwhile_makes_the_context_an_interval() {
    let json = answered(probe().arg("--cuda").env("FAKE_MOVES", "200"));
    let cuda = &json["observations"][1];
    assert_eq!(cuda["own_context"]["high_mib"].as_f64().unwrap(), CONTEXT + 200.0);
    assert!(cuda["own_context"]["low_mib"].as_f64().unwrap() < CONTEXT);
    assert!(remarks(cuda).contains("moved while the probe asked"));
}

#[test]
fn the_table_says_all_of_it() {
    let (code, table, errors) = run(probe()
        .arg("--cuda")
        .env("FAKE_PROCESSES", "4711:10240:sglang::scheduler_TP0")
        .env("FAKE_USED_MIB", "10240"));
    assert_eq!((code, errors.as_str()), (0, ""));
    for words in [
        "driver 580.159.04 · CUDA 13.0",
        "GPU 0 by nvml · NVIDIA H200",
        "GPU 0 by cudaMemGetInfo",
        "sglang::scheduler_TP0, pid 4711 (C)",
        "10,240",
        "the probe's own context",
        "527",
        "143,771",
        "00000000:01:00.0",
    ] {
        assert!(table.contains(words), "{words} is missing:\n{table}");
    }
    assert!(!table.contains('\u{1b}'));
}

#[test]
fn csv_has_a_heading_and_a_row_a_device() {
    let (code, csv, _) =
        run(probe().args(["--format", "csv"]).env("FAKE_DEVICES", "2").env("FAKE_USED_MIB", "5"));
    assert_eq!(code, 0);
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let used = reader.headers().unwrap().iter().position(|column| column == "used_mib").unwrap();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| &row[used] == "5"));
}

#[test]
fn without_the_second_memory_call_the_first_answers_and_says_so() {
    let old = fake_driver(Some("without_v2"));
    for mut command in [with_driver(old, old), {
        let mut command = with_driver(fake_driver(None), old);
        command.env("FAKE_FAIL", "nvmlDeviceGetMemoryInfo_v2=13");
        command
    }] {
        let json = answered(command.arg("probe").env("FAKE_USED_MIB", "100"));
        let nvml = &json["observations"][0];
        assert_eq!(nvml["reserved"], Value::Null);
        assert_eq!(mib(nvml, "used"), 100.0 + RESERVED, "the reserve is counted in");
        assert!(remarks(nvml).contains("NVML's first call"));
    }
}

#[test]
fn without_any_library_the_reasons_are_told() {
    let nowhere = Path::new("/nowhere/libnothing.so");
    let (code, output, errors) = run(with_driver(nowhere, nowhere).arg("probe"));
    assert_eq!((code, output.as_str()), (2, ""));
    for words in ["no GPU can be asked", "NVML can't be loaded", "libcuda can't be loaded", "amd-smi"] {
        assert!(errors.contains(words), "{words} is missing: {errors}");
    }
}

#[cfg(unix)]
#[test]
fn other_makers_tools_are_run_and_named_as_the_source() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let tool = |name: &str, script: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    tool("amd-smi", "echo 'no driver' >&2; exit 1");
    tool(
        "rocm-smi",
        "echo 'GPU[0]\t\t: VRAM Total Memory (B): 206141652992'; echo 'GPU[0]\t\t: VRAM Total Used Memory (B): 297521152'",
    );
    let nowhere = Path::new("/nowhere/libnothing.so");
    let json = answered(with_driver(nowhere, nowhere).arg("probe").env("PATH", folder.path()));
    let rocm = &json["observations"][0];
    assert_eq!(rocm["instrument"], "rocm-smi");
    assert_eq!(rocm["source"], "rocm-smi --showmeminfo vram");
    assert_eq!(mib(rocm, "used"), 297_521_152.0 / MIB);
    let notes = json["notes"].to_string();
    assert!(
        notes.contains("`amd-smi metric --mem-usage`") || notes.contains("amd-smi metric --mem-usage"),
        "{notes}"
    );
}

#[test]
fn a_library_that_lacks_functions_is_no_driver() {
    let nowhere = Path::new("/nowhere/libnothing.so");
    let libc = Path::new("libm.so.6");
    let (code, _, errors) = run(with_driver(nowhere, libc).arg("probe"));
    assert_eq!(code, 2);
    assert!(errors.contains("cuInit"), "{errors}");
}

#[test]
fn without_nvml_cuda_is_asked_and_says_what_it_cannot_know() {
    let nowhere = Path::new("/nowhere/libnothing.so");
    let json = answered(with_driver(nowhere, fake_driver(None)).arg("probe").env("FAKE_USED_MIB", "1000"));
    let [cuda] = json["observations"].as_array().unwrap().as_slice() else { panic!("{json}") };
    assert_eq!(cuda["instrument"], "cuda");
    assert_eq!(mib(cuda, "used"), 1000.0 + CONTEXT);
    assert_eq!(cuda["own_context"], Value::Null);
    assert!(remarks(cuda).contains("can't be measured"));
    assert!(json["notes"][0].as_str().unwrap().contains("NVML can't be loaded"));
}

#[test]
fn every_error_of_nvml_has_its_name() {
    for (function, code, name) in [
        ("nvmlInit_v2", 9, "NVML_ERROR_DRIVER_NOT_LOADED"),
        ("nvmlInit_v2", 4, "NVML_ERROR_NO_PERMISSION"),
        ("nvmlInit_v2", 18, "NVML_ERROR_LIB_RM_VERSION_MISMATCH"),
        ("nvmlDeviceGetCount_v2", 999, "NVML_ERROR_UNKNOWN"),
    ] {
        let nowhere = Path::new("/nowhere/libnothing.so");
        let (exit, _, errors) = run(with_driver(fake_driver(None), nowhere)
            .arg("probe")
            .env("FAKE_FAIL", format!("{function}={code}")));
        assert_eq!(exit, 2, "{errors}");
        assert!(errors.contains(name), "{name} is missing: {errors}");
    }
    for (function, code, name) in [
        ("nvmlDeviceGetHandleByIndex_v2", 15, "NVML_ERROR_GPU_IS_LOST"),
        ("nvmlDeviceGetMemoryInfo_v2", 16, "NVML_ERROR_RESET_REQUIRED"),
        ("nvmlDeviceGetMemoryInfo_v2", 3, "NVML_ERROR_NOT_SUPPORTED"),
    ] {
        let (exit, table, errors) = run(probe().env("FAKE_FAIL", format!("{function}={code}")));
        assert_eq!(exit, 2, "no figure at all is no answer");
        assert!(table.contains(name), "{name} is missing:\n{table}{errors}");
        assert!(errors.contains("no device told its memory"), "{errors}");
    }
    let json = answered(probe().env("FAKE_FAIL", "nvmlDeviceGetComputeRunningProcesses_v3=4"));
    assert!(remarks(&json["observations"][0]).contains("NVML_ERROR_NO_PERMISSION"));
    assert_eq!(json["observations"][0]["processes_listed"], false);
}

#[test]
fn every_error_of_cuda_has_its_name() {
    for (function, code, words) in [
        ("cuInit", 100, "cuInit failed with CUDA_ERROR_NO_DEVICE (100)"),
        ("cuInit", 803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
        ("cuDeviceGetCount", 999, "cuDeviceGetCount failed with CUDA_ERROR_UNKNOWN"),
    ] {
        let json = answered(probe().arg("--cuda").env("FAKE_FAIL", format!("{function}={code}")));
        assert_eq!(json["observations"].as_array().unwrap().len(), 1, "NVML's figures stay");
        assert!(json["notes"][0].as_str().unwrap().contains(words), "{json}");
    }
    for (function, code, words) in [
        ("cuDeviceGet", 101, "CUDA_ERROR_INVALID_DEVICE"),
        ("cuDeviceGetName", 999, "cuDeviceGetName failed with CUDA_ERROR_UNKNOWN (999)"),
        ("cuDeviceGetAttribute", 777, "an error without a name (777)"),
        ("cuDevicePrimaryCtxRetain", 46, "CUDA_ERROR_DEVICE_UNAVAILABLE"),
        ("cuCtxPushCurrent_v2", 201, "CUDA_ERROR_INVALID_CONTEXT"),
        ("cuMemGetInfo_v2", 999, "cuMemGetInfo failed with CUDA_ERROR_UNKNOWN"),
        ("cuCtxPopCurrent_v2", 201, "cuCtxPopCurrent"),
        ("cuDevicePrimaryCtxRelease_v2", 999, "cuDevicePrimaryCtxRelease"),
    ] {
        let json = answered(probe().arg("--cuda").env("FAKE_FAIL", format!("{function}={code}")));
        let cuda = &json["observations"][1];
        assert_eq!(cuda["free"], Value::Null, "unknown, not 0");
        assert!(remarks(cuda).contains(words), "{words} is missing: {cuda}");
    }
}

#[test]
fn a_device_too_full_for_a_context_is_reported_and_no_error() {
    let json = answered(
        probe().arg("--cuda").env("FAKE_USED_MIB", "143000").env("FAKE_FAIL", "cuDevicePrimaryCtxRetain=2"),
    );
    let cuda = &json["observations"][1];
    assert!(remarks(cuda).contains("too full for a context"));
    assert!(remarks(cuda).contains("CUDA_ERROR_OUT_OF_MEMORY (2)"));
    assert_eq!(mib(&json["observations"][0], "used"), 143_000.0);
}

#[test]
fn a_driver_that_hangs_is_given_up() {
    for function in ["nvmlInit_v2", "nvmlDeviceGetMemoryInfo_v2", "cuInit", "cuMemGetInfo_v2"] {
        let began = Instant::now();
        let (code, output, errors) =
            run(probe().args(["--cuda", "--timeout", "1"]).env("FAKE_HANG", function));
        assert_eq!((code, output.as_str()), (2, ""));
        assert!(errors.contains("did not answer within 1 s"), "{errors}");
        assert!(began.elapsed() < Duration::from_secs(20));
    }
}

#[test]
fn mig_instances_stand_beside_their_device() {
    let json = answered(probe().arg("--cuda").env("FAKE_MIG", "2").env("FAKE_USED_MIB", "100"));
    let observations = json["observations"].as_array().unwrap();
    assert_eq!(observations.len(), 4, "the device, two instances by NVML, one by CUDA: {json}");
    assert_eq!(observations[0]["mig"], Value::Null);
    assert_eq!(observations[1]["mig"], serde_json::json!({"gi": 9, "ci": 0, "dev": 0}));
    assert_eq!(observations[2]["mig"]["gi"], 10);
    assert!(observations[2]["uuid"].as_str().unwrap().starts_with("MIG-"));
    assert_eq!(mib(&observations[1], "total"), 18_000.0);
    assert_eq!(observations[3]["instrument"], "cuda");
    assert_eq!(observations[3]["mig"]["dev"], 0, "CUDA sees the first instance only");
}

#[test]
fn visible_devices_are_respected_and_shown() {
    let json = answered(probe().arg("--cuda").env("FAKE_DEVICES", "3").env("CUDA_VISIBLE_DEVICES", "2,0"));
    let numbers: Vec<(u64, u64)> = json["observations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|sample| (sample["device"].as_u64().unwrap(), sample["cuda_device"].as_u64().unwrap()))
        .collect();
    assert_eq!(numbers, [(0, 1), (2, 0), (2, 0), (0, 1)], "nvidia-smi's number, then CUDA's; NVML first");
    assert_eq!(json["cuda_visible_devices"], "2,0");
    assert!(json["notes"][0].as_str().unwrap().contains("GPU 1 hidden by CUDA_VISIBLE_DEVICES"));

    let json =
        answered(probe().args(["--device", "1"]).env("FAKE_DEVICES", "3").env("CUDA_VISIBLE_DEVICES", "2,0"));
    assert_eq!(json["observations"][0]["device"], 1, "asked for by number: shown all the same");

    let (code, _, errors) = run(probe().args(["--device", "7"]).env("FAKE_DEVICES", "2"));
    assert_eq!(code, 2);
    assert!(errors.contains("there is no GPU 7: the driver numbers 0, 1"), "{errors}");

    let (code, _, errors) =
        run(probe().env("CUDA_VISIBLE_DEVICES", "").env("NVIDIA_VISIBLE_DEVICES", "void"));
    assert_eq!(code, 2);
    assert!(
        errors.contains("CUDA_VISIBLE_DEVICES=") && errors.contains("NVIDIA_VISIBLE_DEVICES=void"),
        "{errors}"
    );
}

#[test]
fn no_device_at_all_is_said() {
    let (code, _, errors) = run(probe().env("FAKE_DEVICES", "0"));
    assert_eq!(code, 2);
    assert!(errors.contains("the driver shows no device"), "{errors}");
}

#[test]
fn an_integrated_device_has_the_hosts_memory() {
    let json = answered(
        probe().arg("--cuda").env("FAKE_INTEGRATED", "1").env("FAKE_FAIL", "nvmlDeviceGetMemoryInfo_v2=3"),
    );
    let [nvml, cuda] = json["observations"].as_array().unwrap().as_slice() else { panic!("{json}") };
    assert_eq!(nvml["total"], Value::Null);
    assert!(remarks(nvml).contains("NVML_ERROR_NOT_SUPPORTED"));
    assert!(remarks(cuda).contains("shares the host's memory"));
    assert!(mib(cuda, "total") > mib(cuda, "free"));
}

#[test]
fn memory_taken_out_of_use_and_hidden_processes_are_remarked() {
    let json = answered(
        probe().env("FAKE_REMAPPED", "3").env("FAKE_USED_MIB", "2000").env("FAKE_PROCESSES", "1:500:init"),
    );
    let words = remarks(&json["observations"][0]);
    assert!(words.contains("3 rows of its memory are remapped"), "{words}");
    assert!(words.contains("1,500 MiB in use belong to no listed process"), "{words}");
}

#[test]
fn a_watch_shows_the_change_and_survives_a_lost_device() {
    let (code, output, errors) = run(probe()
        .args(["--watch", "0.05", "--count", "3"])
        .env("FAKE_DEVICES", "2")
        .env("FAKE_GROWTH_MIB", "10")
        .env("FAKE_LOST_AFTER", "4"));
    assert_eq!((code, errors.as_str()), (0, ""));
    assert_eq!(output.matches("GPU 0 by nvml").count(), 3, "plain tables, one below the other:\n{output}");
    assert!(output.contains("+20") && output.contains("+40"), "{output}");
    assert!(output.contains("NVML_ERROR_GPU_IS_LOST"), "{output}");
}

#[cfg(unix)]
#[test]
fn on_a_terminal_a_watch_prints_over_itself() {
    let (side, shown) = support::pseudo_terminal();
    let prepared = probe();
    let mut command = std::process::Command::new(prepared.get_program());
    command.args(prepared.get_args()).args(["--watch", "0.05", "--count", "3"]);
    command.envs(prepared.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env_remove("CUDA_VISIBLE_DEVICES").env("TERM", "xterm").stdout(side);
    let status = command.status().unwrap();
    drop(command);
    let shown = shown.join().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(shown.matches("A\u{1b}[J").count(), 2, "the second and the third table:\n{shown:?}");
}

#[test]
fn recorded_samples_are_read_back_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("samples.ndjson");
    for _ in 0..2 {
        let (code, _, errors) = run(probe()
            .args(["--cuda", "--watch", "0.05", "--count", "2", "--record"])
            .arg(&file)
            .env("FAKE_USED_MIB", "123456")
            .env("FAKE_PROCESSES", "4711:123400:sglang::scheduler"));
        assert_eq!(code, 0, "{errors}");
    }
    let (code, json, errors) =
        run(Command::cargo_bin("vramledger").unwrap().args(["--format", "json", "--smi"]).arg(&file));
    assert_eq!((code, errors.as_str()), (0, ""));
    let report: Value = serde_json::from_str(&json).unwrap();
    let observations = report["observations"].as_array().unwrap();
    assert_eq!(observations.len(), 8, "two runs of two samples by two instruments, appended");
    assert_eq!(report["sources"][0]["kind"], "smi");
    assert_eq!(observations[7]["place"]["line"], 8);
    assert_eq!(mib(&observations[0], "used"), 123_456.0);
    assert_eq!(mib(&observations[1], "own_context"), CONTEXT);
    assert_eq!(observations[1]["instrument"], "cuda");
    assert_eq!(observations[0]["processes"][0]["pid"], 4711);
    let (_, table, _) = run(Command::cargo_bin("vramledger").unwrap().arg(&file));
    assert!(table.contains("123,456"), "{table}");
}
