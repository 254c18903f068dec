//! What is planted does not survive: secrets, names and addresses in every place that input can carry them, through every
//! output; and redaction changes nothing else.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Everything that is planted below.
const PLANTED: [&str; 46] = [
    "hunter2-plain",
    "admin words with blanks",
    "keyfile-pass",
    "/etc/acme/tls.key",
    "/etc/acme/tls.crt",
    "/etc/acme/ca.pem",
    "minio-secret-1",
    "loader-secret-2",
    "override-secret-3",
    "kafka-topic-4",
    "mark-5",
    "mark-6",
    "/etc/acme/plain.json",
    "gpu17.corp.example",
    "node23",
    "pdlb-host-8",
    "enc-host-9",
    "10.20.30.40",
    "10.20.30.41",
    "fd12:3456::9",
    "/data/acme-team",
    "/mnt/draft-team",
    "lora-team",
    "hf_QwErTyUiOpAsDfGhJkLzXcVbNm12345678",
    "sk-proj-Zx9Yw8Vu7Ts6",
    "AKIAIOSFODNN7EXAMPLE",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "AIzaSyD-0123456789abcdefghijklmnopqrstu",
    "QUNDT1VOVEtFWQ",
    "eyJhbGciOiJIUzI1NiJ9",
    "bearer-5f4dcc3b5aa7",
    "YWxhZGRpbjpvcGVuc2VzYW1l",
    "dbuser",
    "dbpass",
    "ann.lee@corp.example",
    "annlee",
    "bobray",
    "Eve Smith",
    "aa:bb:cc:dd:ee:0f",
    "8932f937-d72c-4106-c12f-20bd9faed9f6",
    "1bcd5e6f-d72c-4106-c12f-20bd9faed9f7",
    "loghost5",
    "unrec-acme-42",
    "projecthush",
    "sk-longenoughtobecutsomewhere",
    "ssh-host-3",
];

const HEAD: &str = "[2026-11-29 13:51:19] Started by annlee, see /home/annlee/run.sh\n";

/// Arguments with something planted under every key that may hold it.
fn arguments() -> String {
    "[2026-11-29 13:51:21] server_args=ServerArgs(model_path='/data/acme-team/llama-8b-geometry', \
     tokenizer_path='/data/acme-team/llama-8b-geometry', speculative_draft_model_path='/mnt/draft-team/eagle-1b', \
     lora_paths=[LoRARef(lora_name='a', lora_path='/mnt/lora-team/a')], \
     host='gpu17.corp.example', port=30020, dist_init_addr='node23:5000', nccl_init_addr='10.20.30.40:6000', \
     pdlb_url='http://pdlb-host-8:8000', encoder_urls=['http://enc-host-9:1', 'http://[fd12:3456::9]:2'], \
     remote_instance_weight_loader_seed_instance_ip='10.20.30.41', \
     api_key='hunter2-plain', admin_api_key=\"admin words with blanks\", ssl_keyfile='/etc/acme/tls.key', \
     ssl_keyfile_password='keyfile-pass', ssl_certfile='/etc/acme/tls.crt', ssl_ca_certs='/etc/acme/ca.pem', \
     hicache_storage_backend_extra_config='{\"access\": \"minio-secret-1\"}', \
     model_loader_extra_config='{\"a\": \"loader-secret-2\"}', json_model_override_args='{\"a\": \"override-secret-3\"}', \
     kv_events_config='{\"topic\": \"kafka-topic-4\"}', watermark_key='mark-5', watermark_config={'k': 'mark-6', 'n': 3}, \
     decrypted_config_file='/etc/acme/plain.json', file_storage_path='sglang_storage', mem_fraction_static=0.85, \
     tp_size=1, page_size=1, disable_cuda_graph=False, chunked_prefill_size=8192, log_level='info')\n"
        .to_string()
}

/// Lines of a start with something planted in each; the last three are no line that the grammar knows.
const LINES: &str = "\
[2026-11-29 13:51:22] Launched as: python -m sglang.launch_server --api-key hunter2-plain --host gpu17.corp.example
[2026-11-29 13:51:41] Init torch distributed ends. elapsed=0.23 s, mem usage=0.09 GB
[2026-11-29 13:51:42] Load weight begin. avail mem=139.13 GB
[2026-11-29 13:51:43] Load weight end. elapsed=0.13 s, type=LlamaForCausalLM, avail mem=124.15 GB, mem usage=14.98 GB.
[2026-11-29 13:51:43] KV Cache is allocated. #tokens: 845985, K size: 51.63 GB, V size: 51.63 GB
[2026-11-29 13:51:43] Memory pool end. host=gpu17.corp.example, avail mem=20.65 GB
[2026-11-29 13:51:43] Capture cuda graph begin. This can take up to several minutes. avail mem=20.55 GB
[2026-11-29 13:51:45] Capture cuda graph end. Time elapsed: 2.25 s. mem usage=0.08 GB. avail mem=20.47 GB.
[2026-11-29 13:51:45] Cache of hf_QwErTyUiOpAsDfGhJkLzXcVbNm12345678 sk-proj-Zx9Yw8Vu7Ts6 begin. avail mem=20.47 GB
[2026-11-29 13:51:45] buffer of AKIAIOSFODNN7EXAMPLE aws_secret_access_key=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY is 3.5 GB big
[2026-11-29 13:51:45] buffer AIzaSyD-0123456789abcdefghijklmnopqrstu AccountKey=QUNDT1VOVEtFWQ==;x eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln is 3.5 GB big
[2026-11-29 13:51:45] buffer for Authorization: Bearer bearer-5f4dcc3b5aa7 then Basic YWxhZGRpbjpvcGVuc2VzYW1l is 3.5 GB big
[2026-11-29 13:51:46] buffer postgres://dbuser:dbpass@10.20.30.41/x ann.lee@corp.example aa:bb:cc:dd:ee:0f is 3.5 GB big
[2026-11-29 13:51:46] buffer annlee@ssh-host-3:~$ unrec-acme-42 projecthush is 3.5 GB big
[2026-11-29 13:51:46] buffer of C:\\Users\\Eve Smith\\run.bat is 3.5 GB big
[2026-11-29 13:52:05] max_total_num_tokens=845985, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=4096, context_len=8192, available_gpu_mem=19.31 GB
[2026-11-29 13:52:05] The server is fired up and ready to roll!
";

/// A start that ends in an exception; its words are cut for the title.
const FAILED: &str = "\
Nov 29 13:50:00 loghost5 sglang[77]: [2026-11-29 13:50:00] Load weight begin. avail mem=139.13 GB
Nov 29 13:50:01 loghost5 sglang[77]: [2026-11-29 13:50:01] Scheduler hit an exception: Traceback (most recent call last):
Nov 29 13:50:01 loghost5 sglang[77]:   File \"/home/bobray/sglang/scheduler.py\", line 3, in run
Nov 29 13:50:01 loghost5 sglang[77]: RuntimeError: the remote store at this place refused the words that it was given by us: sk-longenoughtobecutsomewhere
";

const DUMP: &str = "\
index, uuid, name, memory.total [MiB], memory.used [MiB], memory.free [MiB]
0, GPU-8932f937-d72c-4106-c12f-20bd9faed9f6, NVIDIA H200, 143771 MiB, 123384 MiB, 19772 MiB

gpu_uuid, pid, process_name, used_gpu_memory [MiB]
GPU-8932f937-d72c-4106-c12f-20bd9faed9f6, 4711, /home/annlee/venv/bin/python3, 120000 MiB
GPU-8932f937-d72c-4106-c12f-20bd9faed9f6, 4712, /home/bobray/bin/train --token=hf_QwErTyUiOpAsDfGhJkLzXcVbNm12345678, 3374 MiB
";

struct Corpus {
    folder: tempfile::TempDir,
    files: Vec<PathBuf>,
}

fn corpus() -> Corpus {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home/annlee");
    fs::create_dir_all(&home).unwrap();
    let write = |name: &str, text: &str| {
        let path = home.join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let files = vec![
        write("gpu17.corp.example.log", &format!("{HEAD}{}{LINES}", arguments())),
        write("failed-10.20.30.40.log", FAILED),
        write("smi-GPU-1bcd5e6f-d72c-4106-c12f-20bd9faed9f7.csv", DUMP),
    ];
    Corpus { folder, files }
}

/// Standard output and standard error of a run over the corpus; 0 and 1 are both fine.
fn run(files: &[PathBuf], arguments: &[&str]) -> (String, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("vramledger"));
    let output = command.args(arguments).args(files).env("COLUMNS", "60").output().unwrap();
    assert!(output.status.code().is_some_and(|code| code <= 2), "{output:?}");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

/// The text without line ends, frames and indents: what was wrapped is found too.
fn unwrapped(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_whitespace() && *letter != '│').collect()
}

/// Words that no form and no key gives away: only the user's own patterns do.
const OWN: [&str; 3] = ["unrec-acme-42", "projecthush", "annlee"];

fn assert_clean(output: &str, what: &str) {
    for secret in PLANTED {
        assert!(!output.contains(secret), "{what} still holds {secret}:\n{output}");
        let squeezed = unwrapped(secret);
        assert!(!unwrapped(output).contains(&squeezed), "{what} still holds {secret}, wrapped:\n{output}");
    }
}

fn patterns() -> Vec<String> {
    OWN.iter().flat_map(|own| ["--redact-pattern".to_string(), (*own).to_string()]).collect()
}

#[test]
fn nothing_planted_survives_in_any_output() {
    let corpus = corpus();
    let own = patterns();
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let file = corpus.folder.path().join("out");
    let to_file = ["-o", file.to_str().unwrap()];
    let json = ["--format", "json"];
    for arguments in [
        &["--redact"][..],
        &["--redact", "--per-rank"],
        &["--redact", "--quiet"],
        &["--redact", "--color", "always"],
        &json,
        &to_file,
        &[json, to_file].concat(),
    ] {
        let _ = fs::remove_file(&file);
        let (output, errors) = run(&corpus.files, &[arguments, &own].concat());
        let written = fs::read_to_string(&file).unwrap_or_default();
        assert!(!output.is_empty() || !written.is_empty(), "{arguments:?} gave nothing: {errors}");
        assert_clean(&output, &format!("{arguments:?} on standard output"));
        assert_clean(&errors, &format!("{arguments:?} on standard error"));
        assert_clean(&written, &format!("{arguments:?} in its file"));
    }
}

/// The corpus is worth something: without redaction, what is planted shows.
#[test]
fn what_is_planted_shows_without_redaction() {
    let corpus = corpus();
    let (output, _) = run(&corpus.files, &["--format", "json", "--no-redact"]);
    let unseen: Vec<&str> = PLANTED.into_iter().filter(|secret| !output.contains(secret)).collect();
    assert!(unseen.is_empty(), "{unseen:?}");
    assert_eq!(serde_json::from_str::<Value>(&output).unwrap()["redaction"], Value::Null);
    let (table, _) = run(&corpus.files, &[]);
    assert!(table.contains("gpu17.corp.example") && !table.contains("redacted:"), "{table}");
}

#[test]
fn without_own_patterns_all_that_has_a_form_goes() {
    let corpus = corpus();
    let (output, _) = run(&corpus.files, &["--format", "json"]);
    for secret in PLANTED.into_iter().filter(|secret| !OWN.contains(secret)) {
        assert!(!output.contains(secret), "{secret}");
    }
    assert!(output.contains("home/user-1/host-1.log"), "{output}");
    assert!(output.contains("…/llama-8b-geometry"), "{output}");
}

/// Walks two reports side by side: everything but strings is the same.
fn assert_same_but_words(one: &Value, other: &Value, at: &str) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys = |map: &serde_json::Map<String, Value>| map.keys().cloned().collect::<Vec<_>>();
            assert_eq!(keys(one), keys(other), "{at}");
            for (key, value) in one.iter().filter(|(key, _)| *key != "redaction") {
                assert_same_but_words(value, &other[key], &format!("{at}.{key}"));
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            assert_eq!(one.len(), other.len(), "{at}");
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                assert_same_but_words(one, other, &format!("{at}[{index}]"));
            }
        }
        (Value::String(_), Value::String(_)) => {}
        (one, other) => assert_eq!(one, other, "{at}"),
    }
}

#[test]
fn figures_places_and_structure_stay() {
    let corpus = corpus();
    let report = |option: &str| {
        serde_json::from_str::<Value>(&run(&corpus.files, &["--format", "json", option]).0).unwrap()
    };
    let (redacted, whole) = (report("--redact"), report("--no-redact"));
    assert_same_but_words(&redacted, &whole, "report");
    for fixture in ["tp1-normal-0.5.12", "tp2-unbalanced-warns-0.5.12", "capture-oom-0.5.12"] {
        let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(fixture).join("server.log");
        let report = |option: &str| {
            let (json, _) = run(std::slice::from_ref(&log), &["--format", "json", option]);
            serde_json::from_str::<Value>(&json).unwrap()
        };
        assert_same_but_words(&report("--redact"), &report("--no-redact"), fixture);
    }
}

#[test]
fn the_report_says_what_was_done_and_the_same_each_time() {
    let corpus = corpus();
    let report = || run(&corpus.files, &["--format", "json"]).0;
    let first = report();
    assert_eq!(first, report());
    let kinds = serde_json::from_str::<Value>(&first).unwrap()["redaction"]["kinds"].clone();
    for kind in ["secret", "host", "ip", "user", "gpu", "path", "email", "mac"] {
        assert!(kinds[kind].as_u64().is_some_and(|count| count > 0), "{kind}: {kinds}");
    }
    let (table, _) = run(&corpus.files, &["--redact", "--quiet"]);
    assert!(table.lines().any(|line| line.starts_with("redacted: ") && line.contains("secrets")), "{table}");
}

#[test]
fn carets_stay_below_their_figures() {
    let corpus = corpus();
    let (table, _) = run(&corpus.files[..1], &["--redact"]);
    let lines: Vec<&str> = table.lines().collect();
    let quoted = lines.iter().position(|line| line.contains("│ Memory pool end. host=host-1, avail"));
    let quoted = quoted.unwrap_or_else(|| panic!("no such quote:\n{table}"));
    let start = lines[quoted + 1].chars().position(|letter| letter == '^').unwrap();
    let figure: String = lines[quoted].chars().skip(start).take(8).collect();
    assert_eq!(figure, "20.65 GB", "{table}");
}

#[test]
fn error_messages_keep_secrets_too() {
    let corpus = corpus();
    let missing = vec![corpus.folder.path().join("home/annlee/gone-10.20.30.41.log")];
    let (_, errors) = run(&missing, &["--format", "json"]);
    assert!(errors.contains("home/user-1/gone-ip-1.log: no such file"), "{errors}");
    let (_, errors) = run(&corpus.files, &["-o", "/nowhere/home/annlee/report"]);
    assert!(errors.contains("can't write to /nowhere/home/user-1/report"), "{errors}");
    let (_, errors) = run(&missing, &[]);
    assert!(errors.contains("annlee"), "a table on standard output is for its own user: {errors}");
}

#[test]
fn a_pattern_that_is_none_is_a_usage_error() {
    let output = Command::new(assert_cmd::cargo::cargo_bin("vramledger"))
        .args(["--redact-pattern", "a(", "x.log"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("--redact-pattern") && errors.contains("unclosed group"), "{errors}");
}
