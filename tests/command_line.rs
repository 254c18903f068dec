//! The program as its users call it: files and pipes, formats, exit codes, and what it says when things go wrong.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(path)
}

fn vramledger() -> Command {
    let mut command = Command::cargo_bin("vramledger").unwrap();
    command.env("COLUMNS", "100").env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    command
}

/// Exit code, standard output and standard error.
fn run(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_log_and_a_dump_print_the_full_report() {
    let (code, report, errors) = run(vramledger()
        .arg(fixture("tp1-normal-0.5.12/server.log"))
        .arg("--smi")
        .arg(fixture("tp1-normal-0.5.12/nvidia-smi.txt")));
    assert_eq!((code, errors.as_str()), (0, ""));
    for words in ["✔ books balance", "✔ proved", "✔ bridge holds", "845,985 tokens", "headroom-generous"]
    {
        assert!(report.contains(words), "{words} is missing:\n{report}");
    }
    assert!(!report.contains('\u{1b}'), "no colour in a pipe");
}

#[test]
fn a_pipe_of_both_gives_the_same_books() {
    let log = fs::read(fixture("tp1-normal-0.5.12/server.log")).unwrap();
    let dump = fs::read(fixture("tp1-normal-0.5.12/nvidia-smi.txt")).unwrap();
    let (code, piped, _) = run(vramledger().args(["--format", "json"]).write_stdin([log, dump].concat()));
    let (_, named, _) = run(vramledger()
        .args(["--format", "json"])
        .arg(fixture("tp1-normal-0.5.12/server.log"))
        .arg(fixture("tp1-normal-0.5.12/nvidia-smi.txt")));
    let (piped, named) = (json(&piped), json(&named));
    assert_eq!(code, 0);
    assert_eq!(piped["sources"][0]["kind"], "mixed");
    let books = |report: &Value| {
        let rank = &report["launches"][0]["ranks"][0];
        let amounts: Vec<Value> =
            rank["postings"].as_array().unwrap().iter().map(|posting| posting["used"].clone()).collect();
        (
            rank["opening"].clone(),
            rank["closing"].clone(),
            amounts,
            report["reconciliations"][0]["unexplained"].clone(),
        )
    };
    assert_eq!(books(&piped), books(&named));
}

#[test]
fn a_dash_is_standard_input_and_only_once() {
    let log = fs::read(fixture("tp1-normal-0.5.12/server.log")).unwrap();
    let (code, report, _) = run(vramledger().arg("-").write_stdin(log));
    assert_eq!(code, 0);
    assert!(report.contains("standard input"), "{report}");
    let (code, _, errors) = run(vramledger().args(["-", "--smi", "-"]).write_stdin(""));
    assert_eq!(code, 2);
    assert!(errors.contains("only once"), "{errors}");
}

#[test]
fn exit_codes_follow_fail_on() {
    let failed = || fixture("capture-oom-0.5.12/server.log");
    assert_eq!(run(vramledger().arg(failed())).0, 1);
    assert_eq!(run(vramledger().args(["--fail-on", "never"]).arg(failed())).0, 0);
    let fine = || fixture("tp1-normal-0.5.12/server.log");
    assert_eq!(run(vramledger().arg(fine())).0, 0);
    assert_eq!(run(vramledger().args(["--fail-on", "info"]).arg(fine())).0, 1);
}

#[test]
fn a_bad_file_stops_nothing_and_shows_in_the_exit_code() {
    let (code, report, errors) =
        run(vramledger().arg("no-such.log").arg(fixture("tp1-normal-0.5.12/server.log")));
    assert_eq!(code, 2);
    assert!(report.contains("books balance"), "{report}");
    assert!(errors.contains("no-such.log: no such file"), "{errors}");
}

#[test]
fn unusable_input_is_named_for_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let serving =
        "[2026-11-29 13:52:07] Decode batch, #running-req: 1, #token: 7, token usage: 0.00, #queue-req: 0\n";
    let cases = [
        (write("empty", b""), "is empty"),
        (write("page.html", b"<!DOCTYPE html><html><body>log</body></html>"), "an HTML page"),
        (
            write(
                "vllm.log",
                b"INFO 11-29 13:51:19 [core.py:58] Initializing a V1 LLM engine (v0.9.0) vllm\n",
            ),
            "a vLLM log",
        ),
        (write("late.log", serving.repeat(50).as_bytes()), "a serving log without its start"),
        (write("server.log.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03rest"), "is compressed (gzip)"),
        (
            write(
                "core",
                &[0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 62, 0, 1, 0, 0, 0],
            ),
            "binary",
        ),
        (folder.path().to_path_buf(), "is a directory"),
    ];
    for (path, words) in cases {
        let (code, report, errors) = run(vramledger().arg(&path));
        assert_eq!((code, report.as_str()), (2, ""), "{}", path.display());
        assert!(errors.contains(words), "{} should be named as {words}: {errors}", path.display());
    }
}

#[test]
fn nothing_piped_is_said_to_be_empty() {
    let (code, _, errors) = run(vramledger().write_stdin(""));
    assert_eq!(code, 2);
    assert!(errors.contains("is empty"), "{errors}");
}

#[test]
fn a_file_name_cannot_drive_the_terminal() {
    let (code, _, errors) = run(vramledger().arg("evil\u{1b}]0;owned\u{7}.log"));
    assert_eq!(code, 2);
    assert!(!errors.contains('\u{1b}') && !errors.contains('\u{7}'), "{errors:?}");
}

#[test]
fn the_report_goes_to_a_file_without_colour() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.txt");
    let (code, report, _) = run(vramledger()
        .args(["--color", "always", "-o"])
        .arg(&path)
        .arg(fixture("tp1-normal-0.5.12/server.log")));
    assert_eq!((code, report.as_str()), (0, ""));
    let written = fs::read_to_string(&path).unwrap();
    assert!(written.contains("books balance") && !written.contains('\u{1b}'));
    let (code, _, errors) =
        run(vramledger().arg("-o").arg(folder.path()).arg(fixture("tp1-normal-0.5.12/server.log")));
    assert_eq!(code, 2);
    assert!(errors.contains("can't write to"), "{errors}");
}

#[test]
fn colour_is_forced_or_left_out() {
    let log = || fixture("tp1-normal-0.5.12/server.log");
    assert!(run(vramledger().args(["--color", "always"]).arg(log())).1.contains("\u{1b}["));
    assert!(run(vramledger().env("CLICOLOR_FORCE", "1").arg(log())).1.contains("\u{1b}["));
    assert!(
        !run(vramledger().env("CLICOLOR_FORCE", "1").args(["--color", "never"]).arg(log()))
            .1
            .contains("\u{1b}[")
    );
}

#[test]
fn every_format_is_printed_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let beginnings = [
        ("markdown", "**✔ books balance"),
        ("html", "<!DOCTYPE html>"),
        ("svg", "<svg xmlns="),
        ("csv", "launch,source,"),
    ];
    for (format, beginning) in beginnings {
        let log = || fixture("tp1-normal-0.5.12/server.log");
        let (code, report, errors) = run(vramledger().args(["--format", format]).arg(log()));
        assert_eq!((code, errors.as_str()), (0, ""));
        assert!(report.starts_with(beginning), "{report}");
        let path = folder.path().join(format);
        run(vramledger().args(["--format", format, "-o"]).arg(&path).arg(log()));
        assert_eq!(fs::read_to_string(&path).unwrap(), report);
    }
}

#[test]
fn a_limit_is_for_markdown_and_a_picture_needs_figures() {
    let log = fixture("tp1-normal-0.5.12/server.log");
    let (code, report, _) = run(vramledger().args(["--format", "markdown", "--max-chars", "1000"]).arg(&log));
    assert!(code == 0 && report.chars().count() <= 1000 && report.contains("Left out"), "{report}");
    let (code, _, errors) = run(vramledger().args(["--max-chars", "1000"]).arg(&log));
    assert!(code == 2 && errors.contains("--format markdown"), "{errors}");
    let (code, _, errors) =
        run(vramledger().args(["--format", "svg"]).arg(fixture("tp2-unbalanced-fails-0.5.12/server.log")));
    assert!(code == 2 && errors.contains("nothing to draw"), "{errors}");
}

#[test]
fn the_user_names_the_device() {
    let case = |map: &str| {
        let (code, report, errors) = run(vramledger()
            .args(["--format", "json", "--map", map, "--fail-on", "never"])
            .arg(fixture("dp2-0.5.12/server.log"))
            .arg(fixture("dp2-0.5.12/nvidia-smi.txt")));
        assert_eq!(code, 0, "{errors}");
        json(&report)["launches"][0]["ranks"].clone()
    };
    let ranks = case("DP0=1");
    assert_eq!((&ranks[0]["device"], &ranks[0]["device_basis"]), (&1.into(), &"option".into()));
    assert_ne!(ranks[1]["device_basis"], "option");
    let (code, _, errors) = run(vramledger().args(["--map", "DP0"]));
    assert_eq!(code, 2);
    assert!(errors.contains("RANK=DEVICE"), "{errors}");
}

#[test]
fn thresholds_are_settable_and_checked() {
    let log = fixture("tp1-normal-0.5.12/server.log");
    let (_, report, _) = run(vramledger().args(["--threshold", "gap=50MiB"]).arg(&log));
    assert!(report.contains("stage-oversized"), "{report}");
    let (code, _, errors) = run(vramledger().args(["--threshold", "gpa=50MiB"]).arg(&log));
    assert_eq!(code, 2);
    assert!(errors.contains("the names are gap"), "{errors}");
}

#[test]
fn findings_are_explained() {
    let (code, page, _) = run(vramledger().args(["explain", "vl013"]));
    assert_eq!(code, 0);
    assert!(page.contains("headroom-low") && page.contains("Remedies"), "{page}");
    let (code, _, errors) = run(vramledger().args(["explain", "headroom-lwo"]));
    assert_eq!(code, 2);
    assert!(errors.contains("did you mean headroom-low?"), "{errors}");
    let (_, list, _) = run(vramledger().arg("explain"));
    for rule in vramledger::rules::RULES.iter() {
        assert!(list.contains(rule.code) && list.contains(rule.name), "{rule:?}");
    }
}

#[test]
fn completions_man_page_and_schema_are_printed() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(run(vramledger().args(["completions", shell])).1.contains("smi"), "{shell}");
    }
    assert!(run(vramledger().arg("man")).1.contains(".TH vramledger"));
    assert_eq!(json(&run(vramledger().arg("schema")).1)["title"], "Report");
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let report = || {
        run(vramledger()
            .args(["--format", "json"])
            .arg(fixture("tp2-normal-0.5.12/server.log"))
            .arg(fixture("tp2-normal-0.5.12/nvidia-smi.txt")))
        .1
    };
    let first = report();
    assert_eq!(first, report());
    let elsewhere = run(vramledger()
        .env("TZ", "Asia/Tokyo")
        .env("LC_ALL", "de_DE.UTF-8")
        .args(["--format", "json"])
        .arg(fixture("tp2-normal-0.5.12/server.log"))
        .arg(fixture("tp2-normal-0.5.12/nvidia-smi.txt")))
    .1;
    assert_eq!(first, elsewhere);
}

/// A reader that goes away, as `head` does, is no error.
#[test]
#[cfg(unix)]
fn a_broken_pipe_is_quiet() {
    let shell = format!(
        "'{}' --format json '{}' | head -c 10; exit ${{PIPESTATUS[0]}}",
        assert_cmd::cargo::cargo_bin("vramledger").display(),
        fixture("tp1-normal-0.5.12/server.log").display()
    );
    let (code, _, errors) = run(Command::new("bash").args(["-c", &shell]));
    assert_eq!((code, errors.as_str()), (0, ""));
}
