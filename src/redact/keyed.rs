//! Values that are known by their key: `api_key='…'`, `"apiKey": "…"`, `--api-key …`, `Authorization: Bearer …`.

use super::edit::Span;
use super::keys::{Class, class_of};
use super::value::{Found, is_figure, is_nothing, is_private_path, value_at};
use super::{Kind, hosts};
use regex::Regex;
use std::ops::Range;

/// A key and what stands between it and its value.
const KEY: &str = r"(--)?([A-Za-z_][A-Za-z0-9_.-]{1,79})(\\{0,3}['\x22]?\s{0,3}[=:]\s{0,3}|\s{1,3})";
/// Words before a credential that belong to it.
const SCHEMES: [&str; 6] = ["bearer", "basic", "token", "digest", "negotiate", "apikey"];

/// The search for keys.
pub(super) struct Keys(Regex);

impl Keys {
    pub(super) fn new() -> Result<Keys, regex::Error> {
        Regex::new(KEY).map(Keys)
    }

    /// Adds every value whose key says that it has to go.
    pub(super) fn find(&self, text: &str, spans: &mut Vec<Span>) {
        let mut at = 0;
        while let Some(captures) = self.0.captures_at(text, at) {
            let (Some(whole), Some(key), Some(between)) = (captures.get(0), captures.get(2), captures.get(3))
            else {
                return;
            };
            at = whole.end();
            let sign = between.as_str().trim_matches([' ', '\t', '\'', '"', '\\']);
            // A blank separates a key from its value only where the key is an option.
            if sign.is_empty() && captures.get(1).is_none() {
                continue;
            }
            let Some(class) = class_of(key.as_str()) else { continue };
            let Some(view) = within(text, class, at) else { continue };
            let found = value_at(view, at);
            let Some(span) = span(text, class, &found, sign == ":") else { continue };
            // Not beyond a secret: what stands inside it is no key.
            if span.kind == Kind::Secret {
                at = span.end.max(at);
            }
            spans.push(span);
        }
    }
}

/// The text up to where a value is looked for; `None` where it cannot be one. Only a secret may reach to the end, and the
/// search goes on behind it; reading far for each of the others would take quadratic time.
fn within(text: &str, class: Class, at: usize) -> Option<&str> {
    let rest = text.get(at..)?;
    let opening = rest.trim_start_matches('\\').bytes().next();
    let longest = match class {
        Class::Secret => return Some(text),
        Class::SecretIfQuoted => {
            return matches!(opening, Some(b'"' | b'\'' | b'{' | b'[' | b'(')).then_some(text);
        }
        _ if matches!(opening, Some(b'{' | b'[' | b'(')) => return None,
        Class::Model => 4096,
        Class::Host | Class::User | Class::Gpu => 512,
    };
    let end = at.saturating_add(longest).min(text.len());
    (at..=end).rev().find_map(|end| text.get(..end))
}

fn span(text: &str, class: Class, found: &Found, colon: bool) -> Option<Span> {
    let value = text.get(found.range.clone())?;
    if value.is_empty() || is_nothing(value) {
        return None;
    }
    let whole = |kind: Kind| Some(Span::new(found.range.clone(), kind));
    match class {
        Class::SecretIfQuoted if !found.enclosed => None,
        Class::Secret | Class::SecretIfQuoted if is_figure(value) => None,
        Class::Secret | Class::SecretIfQuoted => Some(Span::new(with_scheme(text, found), Kind::Secret)),
        // `host: …` is prose as often as not.
        Class::Host | Class::User if colon && !found.enclosed => None,
        Class::Host => {
            let host = hosts::named_in(value)?;
            Some(Span::new(found.range.start + host.start..found.range.start + host.end, Kind::Host))
        }
        Class::User => {
            (value.len() <= 64 && !value.contains([' ', '/', '('])).then(|| whole(Kind::User)).flatten()
        }
        Class::Model => is_private_path(value).then(|| whole(Kind::Path)).flatten(),
        Class::Gpu => {
            let identifier = value.len() >= 6 && value.bytes().any(|byte| byte.is_ascii_digit());
            let plain = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            (identifier && plain).then(|| whole(Kind::Gpu)).flatten()
        }
    }
}

/// The value, and where it is only the scheme of a credential, the credential too.
fn with_scheme(text: &str, found: &Found) -> Range<usize> {
    let range = found.range.clone();
    let value = text.get(range.clone()).unwrap_or_default();
    if found.enclosed || !SCHEMES.contains(&value.to_ascii_lowercase().as_str()) {
        return range;
    }
    let rest = text.get(range.end..).unwrap_or_default();
    let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    range.start..value_at(text, range.end + blanks).range.end
}
