//! The envelopes that are JSON: one record a line, an array of records in one line, or an array printed over many.
//!
//! Separate from the prefixes because the payload is not a part of the line: it has to be unescaped, and its columns
//! with it are those of the payload's beginning.

use super::prefix::Mark;
use crate::time::Stamp;
use serde_json::{Map, Value};

/// A record's payload.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Record {
    pub mark: Mark,
    /// The text, unescaped.
    pub payload: String,
    /// Where in the line it begins: the byte behind the opening quote.
    pub start: usize,
}

/// From this length on, a payload of docker's without a line feed is a part: docker cuts lines at 16 KiB.
const DOCKER_PART: usize = 16 * 1000;

/// The records that a line consists of; `None` where it is no JSON envelope.
pub(super) fn records(line: &str) -> Option<Vec<Record>> {
    let trimmed = line.trim_start();
    let start = line.len() - trimmed.len();
    if let Some(record) = member(trimmed, start) {
        return Some(vec![record]);
    }
    let opened = trimmed.strip_prefix('[').unwrap_or(trimmed).trim_start();
    if !opened.starts_with("{\"") && !opened.starts_with("{ \"") {
        return None;
    }
    let mut at = line.len() - opened.len();
    let mut found = Vec::new();
    while let Some(rest) = line.get(at..) {
        let mut objects = serde_json::Deserializer::from_str(rest).into_iter::<Map<String, Value>>();
        let Some(Ok(object)) = objects.next() else { break };
        let end = at + objects.byte_offset();
        found.extend(record(&object, line.get(at..end).unwrap_or_default(), at));
        let behind = line.get(end..).unwrap_or_default();
        let next = behind.trim_start_matches([',', ' ', '\t']);
        at = line.len() - next.len();
        if !next.starts_with('{') {
            break;
        }
    }
    (!found.is_empty()).then_some(found)
}

/// `"text": "…",` alone in its line: a member of a record that was printed over several.
fn member(line: &str, start: usize) -> Option<Record> {
    let line = line.trim_end().trim_end_matches(',');
    let key = ["\"log\"", "\"text\"", "\"message\"", "\"msg\"", "\"line\""]
        .iter()
        .find(|key| line.starts_with(**key))?;
    let value = line.get(key.len()..)?.trim_start().strip_prefix(':')?.trim_start();
    let payload: String = serde_json::from_str(value).ok()?;
    let start = start + line.len() - value.len() + 1;
    Some(Record { mark: Mark::default(), payload: without_line_feed(payload), start })
}

fn record(object: &Map<String, Value>, source: &str, at: usize) -> Option<Record> {
    let (key, payload) = payload(object)?;
    let in_source = source.find(&format!("\"{key}\"")).map(|found| found + key.len() + 2)?;
    let opening = source.get(in_source..)?.find('"')?;
    let goes_on = key == "log" && !payload.ends_with('\n') && payload.len() >= DOCKER_PART;
    let time = ["time", "timestamp", "@timestamp", "ts"].iter().find_map(|key| string(object, key));
    let by_stderr = string(object, "stream") == Some("stderr");
    let mark = Mark { identity: identity(object), time: time.and_then(Stamp::parse), goes_on, by_stderr };
    Some(Record { mark, payload: without_line_feed(payload.to_owned()), start: at + in_source + opening + 1 })
}

/// Which member is the line: docker's `log`, the journal's `MESSAGE`; words that much else has, such as `text` and
/// `message`, only beside what a log record has.
fn payload(object: &Map<String, Value>) -> Option<(&'static str, &str)> {
    let has = |keys: &[&str]| keys.iter().any(|key| object.contains_key(*key));
    for key in ["log", "MESSAGE"] {
        if let Some(text) = string(object, key) {
            return Some((key, text));
        }
    }
    let beside =
        has(&["line", "time", "timestamp", "@timestamp", "ts", "stream", "level", "kubernetes", "pod"]);
    let text =
        ["text", "message", "msg"].into_iter().find_map(|key| string(object, key).map(|text| (key, text)));
    text.filter(|_| beside)
}

/// Whose record it is, by the members that collectors write.
fn identity(object: &Map<String, Value>) -> Option<String> {
    let kubernetes = object.get("kubernetes").and_then(Value::as_object).unwrap_or(object);
    let keys = ["pod_name", "pod", "container_name", "container", "_HOSTNAME", "_SYSTEMD_UNIT", "_PID"];
    let parts: Vec<&str> = keys.iter().filter_map(|key| string(kubernetes, key)).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

fn string<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

fn without_line_feed(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
    }
    text
}
