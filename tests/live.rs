//! `report --live`: a recorded start held against a driver that is none.

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
use std::path::{Path, PathBuf};
use support::{fake_driver, run, with_driver};

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(path)
}

/// A report of one recorded start, whose server had 123,383 MiB in use when it was ready.
fn report() -> Command {
    let driver = fake_driver(None);
    let mut command = with_driver(driver, driver);
    command.arg("report").arg(fixture("tp1-normal-0.5.12/server.log"));
    command
}

fn json(command: &mut Command) -> Value {
    let (_, json, errors) = run(command.args(["--format", "json"]));
    assert_eq!(errors, "");
    serde_json::from_str(&json).unwrap()
}

#[test]
fn the_driver_now_closes_the_bridge() {
    let (code, table, errors) = run(report()
        .arg("--live")
        .env("FAKE_USED_MIB", "123384")
        .env("FAKE_PROCESSES", "4711:123374:sglang::scheduler"));
    assert_eq!((code, errors.as_str()), (0, ""));
    for words in [
        "log ↔ nvml",
        "used, by nvml, now",
        "123,384",
        "drift since ready, ",
        " ago",
        "✔ bridge holds",
        "(this rank)",
    ] {
        assert!(table.contains(words), "{words} is missing:\n{table}");
    }
    assert!(!table.contains("own context"), "NVML needs none");
}

#[test]
fn cuda_is_compared_without_the_probes_own_context() {
    let report = json(report().arg("--live=cuda").env("FAKE_USED_MIB", "123384"));
    let [reconciliation] = report["reconciliations"].as_array().unwrap().as_slice() else {
        panic!("{report}")
    };
    let observation = reconciliation["observation"].as_u64().unwrap() as usize;
    assert_eq!(report["observations"][observation]["instrument"], "cuda");
    let bridge = reconciliation["bridge"].as_array().unwrap();
    let amount = |label: &str| {
        let item = bridge.iter().find(|item| item["label"].as_str().unwrap().contains(label));
        item.unwrap_or_else(|| panic!("{label}: {bridge:?}"))["amount"]["mib"].as_f64().unwrap()
    };
    let own = amount("the probe's own context");
    assert!((526.0..527.0).contains(&own));
    assert_eq!(amount("used, by cuda, now"), 123_384.0 + own);
    assert_eq!(amount("kept by the driver"), 0.0, "cudaMemGetInfo's total leaves it out");
    assert_eq!(reconciliation["holds"], true);
    assert!(reconciliation["unexplained"]["mib"].as_f64().unwrap().abs() < 8.0);
}

#[test]
fn what_came_since_is_other_processes_where_they_are_listed() {
    let (code, table, _) = run(report()
        .arg("--live")
        .env("FAKE_USED_MIB", "134142")
        .env("FAKE_PROCESSES", "4711:123374:sglang::scheduler,99:10758:python3"));
    assert_eq!(code, 0, "{table}");
    for words in
        ["− other processes, at most", "10,758", "unexplained, at least", "what came since ready", "(other)"]
    {
        assert!(table.contains(words), "{words} is missing:\n{table}");
    }
}

#[test]
fn growth_that_nobody_owns_is_a_finding() {
    // Long after ready growth is a warning: a server that serves may have taken what it needs.
    let (code, table, _) = run(report()
        .args(["--live", "--fail-on", "warning"])
        .env("FAKE_USED_MIB", "123984")
        .env("FAKE_REMAPPED", "3")
        .env("FAKE_PROCESSES", "4711:123974:sglang::scheduler"));
    assert_eq!(code, 1, "{table}");
    for words in ["✘ bridge fails", "growth at run time", "reconciliation-failed", "3 rows of its memory"] {
        assert!(table.contains(words), "{words} is missing:\n{table}");
    }
}

#[test]
fn a_dump_near_ready_and_the_driver_now_are_both_held_against_the_log() {
    let report = json(
        report()
            .arg("--live")
            .arg("--smi")
            .arg(fixture("tp1-normal-0.5.12/nvidia-smi.txt"))
            .env("FAKE_USED_MIB", "123440"),
    );
    let bridges = report["reconciliations"].as_array().unwrap();
    assert_eq!(bridges.len(), 2);
    let instrument = |bridge: &Value| {
        report["observations"][bridge["observation"].as_u64().unwrap() as usize]["instrument"].clone()
    };
    assert_eq!([instrument(&bridges[0]), instrument(&bridges[1])], ["nvidia-smi", "nvml"]);
    assert!(bridges[1]["seconds_apart"].as_f64().unwrap() > bridges[0]["seconds_apart"].as_f64().unwrap());
}

#[test]
fn ranks_find_their_devices_by_the_names_of_their_processes() {
    let driver = fake_driver(None);
    let report = json(
        with_driver(driver, driver)
            .arg("--live")
            .arg(fixture("tp2-normal-0.5.12/server.log"))
            .env("FAKE_DEVICES", "2")
            // Far from what the log says: size alone would match nothing.
            .env("FAKE_USED_MIB", "130000")
            .env("FAKE_PROCESSES_0", "2:129000:sglang::scheduler_TP1")
            .env("FAKE_PROCESSES_1", "1:129000:sglang::scheduler_TP0"),
    );
    let ranks = report["launches"][0]["ranks"].as_array().unwrap();
    let devices: Vec<_> = ranks.iter().map(|rank| (rank["tag"].clone(), rank["device"].clone())).collect();
    assert_eq!(devices, [("TP0".into(), 1.into()), ("TP1".into(), 0.into())]);
    assert_eq!(ranks[0]["device_basis"], "process-name");
}

#[test]
fn without_a_gpu_the_report_goes_on_and_says_so() {
    let nowhere = Path::new("/nowhere/libnothing.so");
    let (code, table, errors) =
        run(with_driver(nowhere, nowhere).arg("--live").arg(fixture("tp1-normal-0.5.12/server.log")));
    assert_eq!(code, 0);
    assert!(table.contains("✔ books balance"), "{table}");
    assert!(errors.contains("--live: no GPU can be asked"), "{errors}");
    assert!(errors.contains("the report goes on without"), "{errors}");
}

#[test]
fn growth_beyond_any_match_is_still_held_against_the_only_device() {
    // Without arguments nothing numbers the device, and 10 GiB more match none.
    let log = std::fs::read_to_string(fixture("tp1-normal-0.5.12/server.log")).unwrap();
    let log: Vec<&str> = log.lines().filter(|line| !line.contains("server_args=")).collect();
    let driver = fake_driver(None);
    let (code, table, _) = run(with_driver(driver, driver)
        .args(["report", "-", "--live", "--fail-on", "warning"])
        .env("FAKE_DEVICES", "1")
        .env("FAKE_USED_MIB", "133384")
        .env("FAKE_PROCESSES", "4711:133374:sglang::scheduler")
        .write_stdin(log.join("\n")));
    assert_eq!(code, 1, "{table}");
    assert!(table.contains("✘ bridge fails") && table.contains("+10,0"), "{table}");
}
