//! `vramledger plan` and the options about model and card, as users call them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use assert_cmd::Command;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn log(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name).join("server.log")
}

/// Exit code, standard output and standard error of `plan` on a recording.
fn plan(name: &str, options: &[&str]) -> (i32, String, String) {
    let mut command = Command::cargo_bin("vramledger").unwrap();
    command.env("COLUMNS", "100").env("NO_COLOR", "1").arg("plan").arg(log(name)).args(options);
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn another_fraction_shows_before_and_after() {
    let (code, table, errors) = plan("pair-base-0.5.12", &["--mem-fraction-static", "0.7"]);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(table.starts_with("--mem-fraction-static 0.7\ngives 674,892 to 674,976 tokens"), "{table}");
    for row in ["mem_fraction_static", "slack", "left for KV", "remaining", "requests at once, of tokens"] {
        assert!(table.contains(row), "{row} is missing:\n{table}");
    }
    assert!(!table.contains('\u{1b}'));
}

#[test]
fn json_answers_programs() {
    let (code, text, _) = plan("pair-base-0.5.12", &["--tokens", "900000", "--format", "json"]);
    assert_eq!(code, 0);
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["schema"], "vramledger.plan/1");
    assert!(answer["after"]["tokens"]["low"].as_i64().unwrap() >= 900_000);
    assert_eq!(answer["before"]["tokens"]["low"], 845_985);
    assert_eq!(answer["flags"].as_array().unwrap().len(), 1);
    let typed: vramledger::report::PlanReport = serde_json::from_value(answer).unwrap();
    assert_eq!(typed.concurrency.last().unwrap().context, 8192);
}

#[test]
fn a_goal_out_of_reach_fails_with_the_reason() {
    let (code, table, errors) = plan("pair-base-0.5.12", &["--concurrency", "128", "--context", "8192"]);
    assert_eq!((code, table.as_str()), (2, ""));
    assert!(errors.contains("1,048,576 tokens are out of reach"), "{errors}");
}

#[test]
fn fit_keeps_the_headroom_that_is_asked_for() {
    let (_, text, _) = plan("tp1-normal-0.5.12", &["--fit", "--headroom", "6GiB", "--format", "json"]);
    let answer: Value = serde_json::from_str(&text).unwrap();
    let left = answer["after"]["remaining"]["low_mib"].as_f64().unwrap();
    assert!((6144.0..6144.0 + 300.0).contains(&left), "{left}");
}

#[test]
fn a_default_needs_the_card_and_is_derived_from_it() {
    let options = ["--mem-fraction-static", "default", "--chunked-prefill-size", "2048"];
    let (code, _, errors) = plan("pair-base-0.5.12", &options);
    assert_eq!(code, 2);
    assert!(errors.contains("--gpu-mem"), "{errors}");
    let (code, table, _) = plan("pair-base-0.5.12", &[&options[..], &["--gpu-mem", "143771MiB"]].concat());
    assert_eq!(code, 0);
    assert!(table.contains("0.929 (default)"), "{table}");
}

#[test]
fn a_launch_is_chosen_by_number() {
    let tokens = |options: &[&str]| {
        let (_, text, _) = plan("restart-same-log-0.5.12", &[options, &["--format", "json"]].concat());
        serde_json::from_str::<Value>(&text).unwrap()["before"]["tokens"]["low"].as_i64().unwrap()
    };
    assert_eq!(tokens(&["--launch", "1"]), 1_319_593);
    assert_eq!(tokens(&[]), 1_547_648, "the last");
    let (code, _, errors) = plan("restart-same-log-0.5.12", &["--launch", "7"]);
    assert_eq!(code, 2);
    assert!(errors.contains("there is no launch 7"), "{errors}");
}

#[test]
fn usage_errors_are_told_before_anything_is_read() {
    let wrong: [&[&str]; 6] = [
        &["--mem-fraction-static", "1.2"],
        &["--mem-fraction-static", "0.8", "--fit"],
        &["--tokens", "5", "--headroom", "6GiB"],
        &["--context", "8192"],
        &["--headroom", "6"],
        &["--cuda-graph-max-bs", "8", "--disable-cuda-graph"],
    ];
    for options in wrong {
        assert_eq!(plan("pair-base-0.5.12", options).0, 2, "{options:?}");
    }
}

#[test]
fn model_files_are_read_or_complained_of() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.json");
    let index = folder.path().join("model.safetensors.index.json");
    std::fs::write(
        &config,
        r#"{"architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336,
            "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
            "torch_dtype": "bfloat16"}"#,
    )
    .unwrap();
    std::fs::write(&index, r#"{"metadata": {"total_size": 16060522496}}"#).unwrap();
    let config = config.to_str().unwrap();
    let index = index.to_str().unwrap();
    let (code, table, errors) =
        plan("fraction-too-low-0.5.12", &["--model-config", config, "--mem-fraction-static", "0.85"]);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(table.contains("131,072"), "{table}");
    let (code, table, _) =
        plan("pair-base-0.5.12", &["--model-config", config, "--weights-index", index, "--tp", "2"]);
    assert_eq!(code, 0);
    assert!(table.contains("divided as the config says"), "{table}");
    let (code, _, errors) = plan("pair-base-0.5.12", &["--weights-index", index]);
    assert_eq!(code, 2);
    assert!(errors.contains("--model-config"), "{errors}");
    let (code, _, errors) = plan("pair-base-0.5.12", &["--model-config", index]);
    assert_eq!(code, 2);
    assert!(errors.contains("is it the config.json of a language model?"), "{errors}");
}
