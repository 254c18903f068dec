//! `follow`, with a writer that is slow, rotates, truncates and crashes; in pipes and in a pseudo-terminal.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "driver_support/mod.rs"]
mod support;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use support::{fake_driver, pseudo_terminal, with_driver};

/// A followed start that hangs would block the test run.
const LIMIT: &str = "60";

fn log(case: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(case).join("server.log")).unwrap()
}

fn program() -> Command {
    let driver = fake_driver(None);
    let prepared = with_driver(driver, driver);
    let mut command = Command::new(prepared.get_program());
    command.envs(prepared.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env_remove("CUDA_VISIBLE_DEVICES").env("TERM", "xterm");
    command
}

fn follow(arguments: &[&str]) -> Command {
    let mut command = program();
    command.arg("follow").args(arguments).args(["--timeout", LIMIT]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn start(command: &mut Command) -> Child {
    command.spawn().unwrap()
}

/// Exit code, standard output and standard error, once the program ends by itself.
fn end(mut child: Child) -> (i32, String, String) {
    let read = |pipe: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = String::new();
            if let Some(mut pipe) = pipe {
                pipe.read_to_string(&mut text).unwrap();
            }
            text
        })
    };
    let output = read(child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>));
    let errors = read(child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>));
    let code = child.wait().unwrap().code().unwrap();
    (code, output.join().unwrap(), errors.join().unwrap())
}

/// Writes in pieces that end anywhere, also within a line.
fn write_slowly(to: &mut impl Write, bytes: &[u8]) {
    for piece in bytes.chunks(bytes.len() / 12 + 1) {
        to.write_all(piece).unwrap();
        to.flush().unwrap();
        sleep(Duration::from_millis(60));
    }
}

fn append(path: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(path).unwrap()
}

/// The middle of a log, at the end of a line.
fn middle(bytes: &[u8]) -> usize {
    let weights = b"Load weight end";
    let at = bytes.windows(weights.len()).position(|window| window == weights).unwrap();
    at + bytes[at..].iter().position(|byte| *byte == b'\n').unwrap() + 1
}

/// What every complete start must have shown on the way, in this order.
fn assert_grew(errors: &str) {
    let mut from = 0;
    for words in ["weights  15,3", "KV cache pool  105,9", "decode graphs", "prefill graphs"] {
        let at = errors[from..].find(words);
        from += at.unwrap_or_else(|| panic!("{words} is missing or out of order:\n{errors}"));
    }
}

#[test]
fn a_slow_pipe_shows_its_entries_and_ends_with_the_report_at_ready() {
    let bytes = log("tp1-normal-0.5.12");
    let mut child = start(&mut follow(&["-"]));
    let mut pipe = child.stdin.take().unwrap();
    write_slowly(&mut pipe, &bytes);
    // The pipe stays open: the server is ready and goes on.
    let (code, report, errors) = end(child);
    assert_eq!(code, 0, "{errors}");
    assert_grew(&errors);
    assert!(!errors.contains('\u{1b}'), "plain lines outside a terminal");
    drop(pipe);

    let mut plain = program();
    plain.arg("-").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut plain = start(&mut plain);
    plain.stdin.take().unwrap().write_all(&bytes).unwrap();
    assert_eq!(report, end(plain).1, "the same report as of the whole log");
}

#[test]
fn a_file_that_comes_late_and_is_rotated_is_followed_on() {
    let bytes = log("tp1-normal-0.5.12");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.log");
    let child = start(&mut follow(&[path.to_str().unwrap()]));
    sleep(Duration::from_millis(200));
    let at = middle(&bytes);
    write_slowly(&mut append(&path), &bytes[..at]);
    fs::rename(&path, folder.path().join("server.log.1")).unwrap();
    sleep(Duration::from_millis(120));
    write_slowly(&mut append(&path), &bytes[at..]);
    let (code, report, errors) = end(child);
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("waiting for the file to appear"), "{errors}");
    assert!(errors.contains("rotated"), "{errors}");
    assert_grew(&errors);
    assert!(report.contains("✔ proved"), "{report}");
}

#[test]
fn a_file_that_is_cut_short_is_followed_on() {
    let bytes = log("tp1-normal-0.5.12");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.log");
    let at = middle(&bytes);
    fs::write(&path, &bytes[..at]).unwrap();
    let child = start(&mut follow(&[path.to_str().unwrap()]));
    sleep(Duration::from_millis(700));
    // As logrotate's copytruncate does.
    let mut file = append(&path);
    file.set_len(0).unwrap();
    sleep(Duration::from_millis(300));
    write_slowly(&mut file, &bytes[at..]);
    let (code, report, errors) = end(child);
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("cut short"), "{errors}");
    assert_grew(&errors);
    assert!(report.contains("✔ proved"), "{report}");
}

#[test]
fn a_start_that_crashes_ends_with_its_report_and_status_1() {
    let bytes = log("capture-oom-0.5.12");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.log");
    let child = start(&mut follow(&[path.to_str().unwrap()]));
    write_slowly(&mut append(&path), &bytes);
    let (code, report, errors) = end(child);
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("weights  "), "{errors}");
    assert!(report.contains("launch-failed"), "{report}");
}

#[test]
fn a_pipe_that_breaks_off_is_reported_as_far_as_it_came() {
    let bytes = log("tp1-normal-0.5.12");
    let mut child = start(&mut follow(&["--format", "json"]));
    child.stdin.take().unwrap().write_all(&bytes[..middle(&bytes)]).unwrap();
    let (code, report, _) = end(child);
    assert_eq!(code, 1);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["launches"][0]["outcome"], "incomplete");
}

#[test]
fn time_runs_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.log");
    let mut command = program();
    command.arg("follow").arg(&path).args(["--timeout", "1"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let began = Instant::now();
    let (code, output, errors) = end(start(&mut command));
    assert_eq!((code, output.as_str()), (2, ""), "there is nothing to report on");
    assert!(errors.contains("no ready line and no failure within 1 s"), "{errors}");
    assert!(began.elapsed() < Duration::from_secs(20));

    let bytes = log("tp1-normal-0.5.12");
    fs::write(&path, &bytes[..middle(&bytes)]).unwrap();
    let (code, report, _) = end(start(&mut command));
    assert_eq!(code, 1);
    assert!(report.contains("weights"), "{report}");
}

#[test]
fn the_drivers_figure_stands_beside_the_logs() {
    let bytes = log("tp1-normal-0.5.12");
    let mut command = follow(&["--live"]);
    command.env("FAKE_USED_MIB", "123384");
    let mut child = start(&mut command);
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    let (code, report, errors) = end(child);
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("driver: GPU 0 19,772 MiB free"), "{errors}");
    assert!(report.contains("used, by nvml, now"), "{report}");
}

#[test]
fn on_a_terminal_the_last_line_changes_in_place() {
    let bytes = log("tp1-normal-0.5.12");
    let folder = tempfile::tempdir().unwrap();
    let baseline = folder.path().join("good.json");
    fs::write(&baseline, r#"{"launches": [{"ready_after_s": 3000.0}]}"#).unwrap();

    let (side, shown) = pseudo_terminal();
    let mut command = follow(&["-", "--baseline", baseline.to_str().unwrap()]);
    command.stderr(Stdio::from(side));
    let mut child = start(&mut command);
    drop(command);
    let mut pipe = child.stdin.take().unwrap();
    let at = middle(&bytes);
    write_slowly(&mut pipe, &bytes[..at]);
    sleep(Duration::from_millis(700));
    write_slowly(&mut pipe, &bytes[at..]);
    let (code, report, _) = end(child);
    let shown = shown.join().unwrap();
    assert_eq!(code, 0, "{shown}");
    assert_grew(&shown);
    for words in ["to come: ", "decode graphs", "ready", "left", "\u{1b}["] {
        assert!(shown.contains(words), "{words:?} is missing:\n{shown}");
    }
    assert!(report.contains("✔ books balance") && !report.contains('\u{1b}'), "{report}");
}
