//! The README's commands do what the README says.
//!
//! Each ```` ```console ```` block holds commands behind `$ ` and, below them, the beginning of what they print; a line
//! `...` stands for any number of lines. `cargo run … --` is replaced by the binary under test; `cargo test` is this.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use assert_cmd::cargo::cargo_bin;
use std::process::Command;

/// The blocks of a Markdown text that are marked as `console`.
fn console_blocks(markdown: &str) -> Vec<&str> {
    markdown.split("```console\n").skip(1).filter_map(|rest| rest.split("\n```").next()).collect()
}

/// Whether `got` is what `shown` shows: line by line, `...` standing for any number of lines.
fn matches(shown: &[&str], got: &[&str]) -> bool {
    match shown.split_first() {
        None => got.is_empty(),
        Some((&"...", rest)) => {
            (0..=got.len()).any(|skipped| got.get(skipped..).is_some_and(|left| matches(rest, left)))
        }
        Some((line, rest)) => got
            .split_first()
            .is_some_and(|(first, left)| first.trim_end() == line.trim_end() && matches(rest, left)),
    }
}

#[test]
fn the_readme_tells_the_truth() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let binary = cargo_bin("vramledger");
    let mut ran = 0;
    for block in console_blocks(&readme) {
        for part in block.split("$ ").filter(|part| !part.trim().is_empty()) {
            let (command, shown) = part.split_once('\n').unwrap_or((part, ""));
            if command.starts_with("cargo test") || command.starts_with("cargo install") {
                continue;
            }
            let command = command.replace("cargo run --release --", "vramledger");
            let mut path = vec![binary.parent().unwrap().to_path_buf()];
            path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
            let output = Command::new("sh")
                .args(["-c", &command])
                .current_dir(env!("CARGO_MANIFEST_DIR"))
                .env("PATH", std::env::join_paths(path).unwrap())
                .env("NO_COLOR", "1")
                .env("COLUMNS", "100")
                .output()
                .unwrap();
            let got = String::from_utf8(output.stdout).unwrap();
            assert!(
                output.status.code().is_some_and(|code| code < 2),
                "`{command}` failed: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            let shown: Vec<&str> = shown.trim_end().lines().collect();
            let got_lines: Vec<&str> = got.trim_end().lines().collect();
            assert!(
                shown.is_empty() || matches(&shown, &got_lines),
                "`{command}` prints something else:\n{got}"
            );
            ran += 1;
        }
    }
    assert!(ran >= 3, "the README should show commands; {ran} were found");
}

#[test]
fn every_finding_is_in_the_readme() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    for rule in vramledger::rules::RULES.iter() {
        let row =
            format!("| {} | `{}` | {} | {} |", rule.code, rule.name, rule.severity.name(), rule.summary);
        assert!(readme.contains(&row), "the README's table wants this row:\n{row}");
    }
}
