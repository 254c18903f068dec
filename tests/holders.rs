//! Holders against the truth: recorded servers, their snapshots, and the bytes that a recorder read in the process.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use assert_cmd::Command;
use serde_json::Value;
use std::path::{Path, PathBuf};

const MIB: f64 = 1_048_576.0;

fn tree(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn snapshot(name: &str) -> PathBuf {
    tree("tests/data/snapshots").join(name)
}

/// Exit code, standard output and standard error.
fn run(arguments: &[&Path]) -> (i32, String, String) {
    let mut command = Command::cargo_bin("vramledger").unwrap();
    let output = command.args(arguments).env("COLUMNS", "100").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(arguments: &[&Path]) -> Value {
    let with_format = [arguments, &[Path::new("--format"), Path::new("json")]].concat();
    let (_, report, errors) = run(&with_format);
    serde_json::from_str(&report).unwrap_or_else(|_| panic!("{errors}"))
}

/// The report on a fixture with all of its snapshots and, where it has one, its dump.
fn report(folder: &str, snapshots: &[String]) -> Value {
    let folder = tree("fixtures").join(folder);
    let mut arguments = vec![folder.join("server.log")];
    for dump in ["nvidia-smi.txt", "query-compute-apps.csv"] {
        arguments.extend(folder.join(dump).exists().then(|| folder.join(dump)));
    }
    for name in snapshots {
        arguments.extend([PathBuf::from("--snapshot"), snapshot(name)]);
    }
    json(&arguments.iter().map(PathBuf::as_path).collect::<Vec<_>>())
}

fn truth() -> Vec<Value> {
    let text = std::fs::read(snapshot("truth.json")).unwrap();
    serde_json::from_slice::<Value>(&text).unwrap().as_array().unwrap().clone()
}

fn share<'v>(breakdown: &'v Value, holder: &str) -> Option<&'v Value> {
    breakdown["shares"]
        .as_array()
        .unwrap()
        .iter()
        .find(|share| share["holder"] == holder)
        .map(|it| &it["amount"])
}

/// Whether an amount's bounds hold these bytes. Bounds are MiB in JSON: a byte of rounding is allowed.
fn holds(amount: &Value, bytes: i64) -> bool {
    let mib = bytes as f64 / MIB;
    amount["low_mib"].as_f64().unwrap() - 1e-6 <= mib && mib <= amount["high_mib"].as_f64().unwrap() + 1e-6
}

#[test]
fn holders_and_outside_are_what_the_device_has_in_use() {
    let truth = truth();
    let folders: std::collections::BTreeSet<&str> =
        truth.iter().map(|case| case["file"].as_str().unwrap().rsplitn(4, '.').nth(3).unwrap()).collect();
    let (mut checked, mut whole_devices) = (0, 0);
    for folder in folders {
        let cases: Vec<&Value> =
            truth.iter().filter(|case| case["file"].as_str().unwrap().starts_with(folder)).collect();
        let names: Vec<String> =
            cases.iter().map(|case| case["file"].as_str().unwrap().to_string()).collect();
        let report = report(folder, &names);
        for (case, name) in cases.iter().zip(&names) {
            let bytes = |key: &str| case[key].as_i64().unwrap();
            let ranks = report["launches"][0]["ranks"].as_array().unwrap();
            let path = snapshot(name).display().to_string();
            let of_snapshot = |one: &&Value| one["sources"].as_array().unwrap().iter().any(|it| *it == path);
            let breakdown =
                ranks.iter().flat_map(|rank| rank["holders"].as_array().unwrap()).find(of_snapshot);
            let breakdown = breakdown.unwrap_or_else(|| panic!("{name} belongs to a rank"));
            let private: i64 = case["pools"]
                .as_object()
                .unwrap()
                .iter()
                .filter(|(key, _)| !key.ends_with("|0,0"))
                .map(|(_, pool)| pool[0].as_i64().unwrap())
                .sum();
            let amount =
                |holder: &str| share(breakdown, holder).unwrap_or_else(|| panic!("{name}: {breakdown}"));
            if breakdown["moment"] == "snapshot" {
                assert!(holds(amount("torch_ordinary_pools"), bytes("reserved") - private), "{name}");
            }
            assert!(holds(amount("torch_private_pools"), private), "{name}: {breakdown}");
            if breakdown["scope"] == "device" {
                whole_devices += 1;
                assert!(holds(&breakdown["total"], bytes("total") - bytes("free")), "{name}: {breakdown}");
                let outside = bytes("own_process") - bytes("reserved");
                assert!(holds(amount("outside_torch"), outside), "{name}: {outside} in {breakdown}");
                let others = bytes("device_used") - bytes("own_process");
                assert!(holds(amount("others"), others), "{name}: {others} in {breakdown}");
            }
            let sum = |bound: &str| -> f64 {
                let shares = breakdown["shares"].as_array().unwrap();
                shares.iter().map(|share| share["amount"][bound].as_f64().unwrap()).sum()
            };
            let total = breakdown["total"]["mib"].as_f64().unwrap();
            assert!(sum("low_mib") <= total && total <= sum("high_mib"), "{name}: {breakdown}");
            checked += 1;
        }
    }
    assert_eq!(
        (checked, whole_devices),
        (truth.len(), truth.len() - 1),
        "all but the start refused without a dump"
    );
}

#[test]
fn without_a_dump_the_ledgers_total_is_split() {
    let log = tree("fixtures/tp1-normal-0.5.12/server.log");
    let file = snapshot("tp1-normal-0.5.12.4711.pickle.gz");
    let report = json(&[&log, Path::new("--snapshot"), &file]);
    let rank = &report["launches"][0]["ranks"][0];
    let breakdown = &rank["holders"][0];
    assert_eq!(breakdown["scope"], "since_first_figure");
    let total = rank["opening"]["mib"].as_f64().unwrap() - rank["headroom"]["mib"].as_f64().unwrap();
    assert!((breakdown["total"]["mib"].as_f64().unwrap() - total).abs() < 1e-6);
    // Truth: 149384658944 free at the first figure, 20732772352 at the ready line, 128305856512 reserved by then.
    let outside = share(breakdown, "outside_torch_and_others").unwrap();
    assert!(holds(outside, 149_384_658_944 - 20_732_772_352 - 128_305_856_512), "{outside}");
}

#[test]
fn the_sentence_of_a_failure_alone_tells_holders() {
    let case = truth()
        .into_iter()
        .find(|case| case["file"].as_str().unwrap().starts_with("one-gpu-machine-c"))
        .unwrap();
    let report = report("one-gpu-machine-capture-oom-0.5.12", &[]);
    let breakdown = &report["launches"][0]["ranks"][0]["holders"][0];
    let bytes = |key: &str| case[key].as_i64().unwrap();
    assert_eq!(breakdown["moment"], "failure");
    assert!(holds(&breakdown["total"], bytes("total") - bytes("free")), "{breakdown}");
    assert!(holds(share(breakdown, "torch_pools").unwrap(), bytes("reserved")), "{breakdown}");
    assert!(
        holds(share(breakdown, "outside_torch").unwrap(), bytes("own_process") - bytes("reserved")),
        "{breakdown}"
    );
    assert!(
        holds(share(breakdown, "others").unwrap(), bytes("device_used") - bytes("own_process")),
        "{breakdown}"
    );
}

#[test]
fn a_process_list_alone_tells_the_process_from_the_others() {
    let report = report("tp1-contended-0.5.12", &[]);
    let breakdown = &report["launches"][0]["ranks"][0]["holders"][0];
    assert_eq!(breakdown["moment"], "dump");
    assert!(share(breakdown, "torch_pools").is_none(), "nothing tells what PyTorch holds");
    // The other process held 20 GiB and its context.
    let others = share(breakdown, "others").unwrap();
    assert!(others["low_mib"].as_f64().unwrap() > 20_480.0, "{others}");
}

#[test]
fn a_snapshot_of_another_process_is_not_forced_in() {
    let log = tree("fixtures/pair-cap300k-0.5.12/server.log");
    let dump = tree("fixtures/pair-cap300k-0.5.12/nvidia-smi.txt");
    let file = snapshot("tp1-normal-0.5.12.4711.pickle.gz");
    let report = json(&[&log, &dump, Path::new("--snapshot"), &file]);
    let breakdown = &report["launches"][0]["ranks"][0]["holders"][0];
    assert!(breakdown["conflict"].as_str().unwrap().contains("larger than the whole"), "{breakdown}");
    assert_eq!(breakdown["shares"], Value::Array(Vec::new()));
    let tp2 = tree("fixtures/tp2-normal-0.5.12/server.log");
    let second = snapshot("dp2-0.5.12.7430.pickle.gz");
    let arguments = [&tp2, Path::new("--snapshot"), &second, Path::new("--snapshot"), &second];
    let (code, _, errors) = run(&arguments);
    assert_eq!(code, 0);
    assert!(errors.contains("another snapshot is of the same rank"), "{errors}");
}

#[test]
fn the_report_shows_holders_and_uses() {
    let folder = tree("fixtures/tp1-normal-0.5.12");
    let (log, dump, apps) =
        (folder.join("server.log"), folder.join("nvidia-smi.txt"), folder.join("query-compute-apps.csv"));
    let file = snapshot("tp1-normal-0.5.12.4711.pickle.gz");
    // A snapshot needs no option: its content shows what it is.
    let (code, report, errors) = run(&[&log, &dump, &apps, &file]);
    assert_eq!((code, errors.as_str()), (0, ""));
    for words in [
        "holders at the snapshot",
        "PyTorch, ordinary pools",
        "924",
        "this process, outside PyTorch",
        "uses are not",
    ] {
        assert!(report.contains(words), "{words} is missing:\n{report}");
    }
    let (code, _, errors) = run(&[&file]);
    assert_eq!(code, 2);
    assert!(errors.contains("`vramledger snapshot FILE` shows one"), "{errors}");
    let (_, quiet, _) = run(&[&log, Path::new("--quiet"), Path::new("--snapshot"), &file]);
    assert!(!quiet.contains("holders"), "{quiet}");
}

#[test]
fn a_snapshot_is_shown_by_pool_and_site() {
    let (code, table, errors) = run(&[Path::new("snapshot"), &snapshot("h200-expandable.protocol-4.pickle")]);
    assert_eq!((code, errors.as_str()), (0, ""));
    for words in [
        "ordinary, large, expandable",
        "private (2, 0)",
        "all = reserved by PyTorch",
        "kv_pool  /srv/record.py:7",
    ] {
        assert!(table.contains(words), "{words} is missing:\n{table}");
    }
    let report = json(&[Path::new("snapshot"), &snapshot("tp1-normal-0.5.12.4711.pickle.gz")]);
    assert_eq!(report["schema"], "vramledger.snapshot/1");
    let device = &report["files"][0]["devices"][0];
    assert_eq!(device["totals"]["reserved_bytes"], 128_305_856_512_i64);
    let (_, schema, _) = run(&[Path::new("schema"), Path::new("snapshot")]);
    let schema: Value = serde_json::from_str(&schema).unwrap();
    assert!(jsonschema::is_valid(&schema, &report));
    let plain: vramledger::report::SnapshotReport = serde_json::from_value(report.clone()).unwrap();
    assert_eq!(serde_json::to_value(plain).unwrap(), report);
}

#[test]
fn hostile_and_other_files_are_refused_with_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let cases = [
        (write("global.pickle", b"\x80\x04cos\nsystem\n(\x8c\x02idtR."), "GLOBAL would import or run code"),
        (write("claim.pickle", b"\x80\x04X\xff\xff\xff\xffa."), "claims 4294967295 bytes, and 2 are left"),
        (write("deep.pickle", &[b"\x80\x04".to_vec(), b"(".repeat(1 << 20)].concat()), "nested deeper"),
        (write("empty", b""), "is empty"),
        (write("model.pt", b"PK\x03\x04"), "is neither a pickle"),
        (folder.path().join("missing"), "missing"),
    ];
    for (path, words) in cases {
        let (code, report, errors) = run(&[Path::new("snapshot"), &path]);
        assert_eq!((code, report.as_str()), (2, ""), "{}", path.display());
        assert!(errors.contains(words) && errors.contains(path.to_str().unwrap()), "{words}: {errors}");
    }
    // A report is made all the same, and the exit status tells.
    let log = tree("fixtures/tp1-normal-0.5.12/server.log");
    let bad = folder.path().join("global.pickle");
    let (code, report, _) = run(&[&log, Path::new("--snapshot"), &bad]);
    assert_eq!(code, 2);
    assert!(report.contains("books balance"));
}

#[test]
fn figures_are_explained() {
    let page = |name: &str| run(&[Path::new("explain"), Path::new(name)]);
    for name in [
        "avail-mem",
        "mem-usage",
        "available_gpu_mem",
        "avail_mem",
        "memory_allocated",
        "memory_reserved",
        "nvidia-smi",
        "cudaMemGetInfo",
    ] {
        let (code, text, errors) = page(name);
        assert_eq!(code, 0, "{name}: {errors}");
        assert!(text.contains("does not see") && text.contains("allocator cache"), "{name}: {text}");
    }
    assert!(page("avail-mem").1.contains("emptied before") && page("avail_mem").1.contains("not emptied"));
    let (_, list, _) = run(&[Path::new("explain")]);
    for figure in vramledger::glossary::FIGURES {
        assert!(list.contains(figure.name()), "{}", figure.name());
    }
}
