//! Runs every case under `fixtures/`: exit status, declared facts, JSON against the schema, and golden output.
//!
//! A case needs no Rust: CONTRIBUTING.md says how to add one. `UPDATE_FIXTURES=1` writes the golden outputs anew.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod support;

use serde_json::Value;
use similar::TextDiff;
use std::path::Path;
use support::{Case, Checks, cases};

#[test]
fn every_case_reads_as_declared() {
    let validator = jsonschema::validator_for(&printed_schema()).expect("the schema is one");
    let mut problems = Vec::new();
    let cases = cases();
    assert!(cases.len() >= 75, "only {} cases were found", cases.len());
    for case in &cases {
        let found = check(case, &validator);
        problems.extend(found.into_iter().map(|problem| format!("{}: {problem}", case.name)));
    }
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn every_case_is_explained_and_small() {
    for case in cases() {
        let readme = std::fs::read_to_string(case.folder.join("README.md")).unwrap_or_default();
        assert!(readme.len() > 200, "{} wants a README that says what a person reads out of it", case.name);
        let bytes: u64 = std::fs::read_dir(&case.folder)
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        assert!(bytes < 120 << 10, "{} holds {bytes} bytes", case.name);
    }
}

#[test]
fn golden_tables_are_unchanged() {
    let update = std::env::var_os("UPDATE_FIXTURES").is_some();
    let mut problems = Vec::new();
    for case in cases() {
        let path = case.folder.join("expected.txt");
        if !update && !path.exists() {
            continue;
        }
        let printed = case.run("table").stdout;
        if update {
            std::fs::write(&path, printed).unwrap();
            continue;
        }
        let expected = std::fs::read_to_string(&path).unwrap();
        if printed != expected {
            let difference = TextDiff::from_lines(&expected, &printed);
            let shown = difference.unified_diff().header("expected.txt", "printed").to_string();
            problems
                .push(format!("{}: the table changed (UPDATE_FIXTURES=1 accepts it)\n{shown}", case.name));
        }
    }
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn the_committed_schema_is_the_printed_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/vramledger.report-1.json");
    let printed = serde_json::to_string_pretty(&printed_schema()).unwrap() + "\n";
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        std::fs::write(&path, &printed).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let difference = TextDiff::from_lines(&committed, &printed);
    assert!(committed == printed, "{}", difference.unified_diff().header("committed", "printed"));
}

fn printed_schema() -> Value {
    let output = assert_cmd::Command::cargo_bin("vramledger").unwrap().arg("schema").output().unwrap();
    serde_json::from_slice(&output.stdout).expect("the schema is JSON")
}

/// Everything about one case that is not as declared.
fn check(case: &Case, validator: &jsonschema::Validator) -> Vec<String> {
    let run = case.run("json");
    let mut problems = Vec::new();
    if run.exit != Some(case.file.exit) {
        problems
            .push(format!("exit is {:?}, not {}; standard error: {}", run.exit, case.file.exit, run.stderr));
    }
    for words in &case.file.checks.stderr {
        if !run.stderr.contains(words) {
            problems.push(format!("standard error lacks {words:?}: {}", run.stderr));
        }
    }
    for words in &case.file.checks.absent {
        if run.stdout.contains(words) {
            problems.push(format!("the report holds {words:?}"));
        }
    }
    if run.stdout.is_empty() {
        return problems;
    }
    let report = Case::json(&run);
    problems.extend(
        validator.iter_errors(&report).map(|error| format!("schema: {error} at {}", error.instance_path())),
    );
    problems.extend(facts(&report, &case.file.checks));
    problems
}

/// The declared facts that the report does not bear out.
fn facts(report: &Value, checks: &Checks) -> Vec<String> {
    let launches = array(&report["launches"]);
    let ranks: Vec<&Value> = launches.iter().flat_map(|launch| array(&launch["ranks"])).collect();
    let findings: Vec<&str> =
        launches.iter().flat_map(|launch| array(&launch["findings"])).map(|one| text(&one["name"])).collect();
    let reconciliations = array(&report["reconciliations"]);
    let texts = |values: &[Value], key: &str| -> Vec<String> {
        values.iter().map(|value| text(&value[key]).to_string()).collect()
    };
    let mut problems = Vec::new();
    let mut same = |what: &str, expected: Option<Value>, found: Value| {
        if let Some(expected) = expected
            && expected != found
        {
            problems.push(format!("{what}: expected {expected}, found {found}"));
        }
    };
    same("launches", checks.launches.map(Value::from), launches.len().into());
    same("outcomes", checks.outcomes.clone().map(Value::from), texts(launches, "outcome").into());
    let failed: Vec<Value> = launches.iter().map(|launch| launch["failed_stage"].clone()).collect();
    same(
        "failed_stages",
        checks.failed_stages.as_ref().map(|stages| serde_json::json!(stages)),
        failed.into(),
    );
    let versions: Vec<String> = launches.iter().map(version).collect();
    same("versions", checks.versions.clone().map(Value::from), versions.into());
    same("ranks", checks.ranks.map(Value::from), ranks.len().into());
    let tags: Vec<Value> =
        launches.iter().map(|launch| texts(array(&launch["ranks"]), "tag").into()).collect();
    same("tags", checks.tags.as_ref().map(|tags| serde_json::json!(tags)), tags.into());
    let devices: Vec<Value> = ranks.iter().map(|rank| rank["device"].clone()).collect();
    same("devices", checks.devices.as_ref().map(|devices| serde_json::json!(devices)), devices.into());
    let models = launches.first().map(|launch| launch["model"]["classes"].clone()).unwrap_or_default();
    same("models", checks.models.clone().map(Value::from), models);
    let stages: Vec<String> = ranks.first().map(|rank| stage_names(rank)).unwrap_or_default();
    same("stages", checks.stages.clone().map(Value::from), stages.into());
    same("unrecognised", checks.unrecognised.map(Value::from), array(&report["unrecognised"]).len().into());
    same("observations", checks.observations.map(Value::from), array(&report["observations"]).len().into());
    same("reconciliations", checks.reconciliations.map(Value::from), reconciliations.len().into());
    same("kinds", checks.kinds.clone().map(Value::from), texts(array(&report["sources"]), "kind").into());

    if let Some(balances) = checks.balances {
        let wanted = if balances { Value::Bool(true) } else { Value::Null };
        for rank in &ranks {
            if rank["balance"]["holds"] != wanted {
                problems.push(format!("balance of rank {:?}: {}", text(&rank["tag"]), rank["balance"]));
            }
        }
    }
    if let Some(limit) = checks.unexplained_below_mib {
        for one in reconciliations {
            let unexplained = one["unexplained"]["mib"].as_f64().unwrap_or(f64::INFINITY);
            if unexplained.abs() >= limit {
                problems.push(format!("{} MiB unexplained for rank {:?}", unexplained, text(&one["rank"])));
            }
        }
    }
    let missing = checks.findings.iter().filter(|name| !findings.contains(&name.as_str()));
    problems.extend(missing.map(|name| format!("finding {name} is missing; found {findings:?}")));
    let unwanted = checks.no_findings.iter().filter(|name| findings.contains(&name.as_str()));
    problems.extend(unwanted.map(|name| format!("finding {name} should not be there")));
    problems
}

/// `stage`, or `stage/draft`, of each stage posting.
fn stage_names(rank: &Value) -> Vec<String> {
    array(&rank["postings"])
        .iter()
        .filter(|posting| posting["kind"] == "stage")
        .map(|posting| match text(&posting["worker"]) {
            "draft" => format!("{}/draft", text(&posting["stage"])),
            _ => text(&posting["stage"]).to_string(),
        })
        .collect()
}

fn version(launch: &Value) -> String {
    match launch["sglang_version"].as_str() {
        Some(version) => version.to_string(),
        None => texts_of_range(launch).join(" - "),
    }
}

fn texts_of_range(launch: &Value) -> Vec<String> {
    array(&launch["sglang_version_range"]).iter().map(|version| text(version).to_string()).collect()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
