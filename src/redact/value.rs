//! Values: where they end in a text, what they give away, and what is left of a model's path.

use std::ops::Range;

/// A value behind a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Its bytes, without quotes.
    pub(super) range: Range<usize>,
    /// Whether it was quoted or bracketed.
    pub(super) enclosed: bool,
}

/// The value that begins at a byte: quoted as Python, JSON or a shell quote, bracketed, or a bare word. What has no end
/// reaches to the end of the text.
pub(super) fn value_at(text: &str, at: usize) -> Found {
    let bytes = text.as_bytes();
    let from = |at: usize| bytes.get(at..).unwrap_or_default();
    let slashes = from(at).iter().take_while(|byte| **byte == b'\\').count();
    let first = at + slashes;
    match bytes.get(first) {
        Some(quote @ (b'"' | b'\'')) => {
            let start = first + 1;
            let end = if slashes == 0 {
                end_of_quoted(bytes, start, *quote)
            } else {
                end_of_escaped(bytes, start, at)
            };
            Found { range: start..end, enclosed: true }
        }
        bracket => {
            let enclosed = matches!(bracket, Some(b'{' | b'[' | b'('));
            Found { range: at..end_of_bare(bytes, at), enclosed }
        }
    }
}

/// The closing quote; a backslash takes the next byte with it.
fn end_of_quoted(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        match *byte {
            b'\\' => at += 2,
            byte if byte == quote => return at,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The next place where the same backslashes and quote stand as between `opening` and `start`.
fn end_of_escaped(bytes: &[u8], start: usize, opening: usize) -> usize {
    let mark = bytes.get(opening..start).unwrap_or_default();
    let rest = bytes.get(start..).unwrap_or_default();
    memchr::memmem::find(rest, mark).map_or(bytes.len(), |found| start + found)
}

/// The end of a word; brackets and quotes in it are taken whole.
fn end_of_bare(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match *byte {
            quote @ (b'"' | b'\'') => {
                if depth == 0 && at == start {
                    return at;
                }
                at = end_of_quoted(bytes, at + 1, quote);
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth == 0 => return at,
            b')' | b']' | b'}' if depth == 1 => return at + 1,
            b')' | b']' | b'}' => depth -= 1,
            b',' | b';' | b'&' if depth == 0 => return at,
            byte if depth == 0 && byte.is_ascii_whitespace() => return at,
            b'<' | b'>' | b'|' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// Whether a value says that there is none.
pub(super) fn is_nothing(value: &str) -> bool {
    let plain = value.trim();
    const NOTHING: [&str; 9] = ["none", "null", "true", "false", "{}", "[]", "()", "-", "..."];
    NOTHING.contains(&plain.to_ascii_lowercase().as_str())
        || plain.bytes().all(|byte| matches!(byte, b'*' | b'.'))
}

/// Whether a value is a figure: numbers stay, but for long ones that may be a key.
pub(super) fn is_figure(value: &str) -> bool {
    value.len() < 6 && value.bytes().all(|byte| byte.is_ascii_digit())
        || value.contains('.') && value.parse::<f64>().is_ok()
}

/// Whether a secret is so much its own that it may be replaced in every text: a word or a number is not.
pub(super) fn is_telling(secret: &str) -> bool {
    let letters = secret.bytes().any(|byte| byte.is_ascii_alphabetic());
    let mixed = secret.bytes().any(|byte| !byte.is_ascii_alphabetic());
    !is_nothing(secret) && letters && secret.len() >= if mixed { 6 } else { 12 }
}

/// Whether found bytes are a word of their own: no letter or digit touches them.
pub(super) fn stands_alone(text: &str, range: &Range<usize>) -> bool {
    let touches = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let bytes = text.as_bytes();
    let before = range.start.checked_sub(1).and_then(|at| bytes.get(at));
    !touches(before) && !touches(bytes.get(range.end))
}

/// Whether a model's path names folders of somebody's: `org/model` is a public repository's form and stays.
pub(super) fn is_private_path(path: &str) -> bool {
    let path = path.trim_end_matches(['/', '\\']);
    let separators = path.bytes().filter(|byte| matches!(byte, b'/' | b'\\')).count();
    let rooted = path.starts_with(['/', '\\', '~', '.']) || path.get(1..2) == Some(":");
    let above = path.rfind(['/', '\\']).and_then(|at| path.get(..at)).unwrap_or_default();
    (separators > 1 || rooted) && !matches!(above, "" | "." | "~" | "…")
}

/// A path without the folders above its last part. A folder of the Hugging Face cache keeps its model's name, since its
/// last part is only a revision.
pub(super) fn shortened(path: &str) -> String {
    let path = path.trim_end_matches(['/', '\\']);
    let cached = path
        .find("models--")
        .filter(|at| path.get(..*at).is_some_and(|before| before.ends_with(['/', '\\'])));
    let at = cached.or_else(|| path.rfind(['/', '\\']).map(|at| at + 1)).unwrap_or(0);
    format!("…/{}", path.get(at..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (&str, bool) {
        let at = text.find('=').unwrap() + 1;
        let found = value_at(text, at);
        (&text[found.range], found.enclosed)
    }

    #[test]
    fn values_end_where_their_form_ends() {
        assert_eq!(read("k='it\\'s', b=1"), ("it\\'s", true));
        assert_eq!(read("k=\"a'b\" c"), ("a'b", true));
        assert_eq!(read(r#"k=\"a'b\", \"c\""#), ("a'b", true));
        assert_eq!(read("k=plain, b"), ("plain", false));
        assert_eq!(read("k=b'x y', b"), ("b'x y'", false));
        assert_eq!(read("k={'a': [1, '}']}, b"), ("{'a': [1, '}']}", true));
        assert_eq!(read("k='cut here, b=1"), ("cut here, b=1", true));
        assert_eq!(read("k=x)"), ("x", false));
        assert_eq!(read("k="), ("", false));
    }

    #[test]
    fn model_paths_keep_their_own_name() {
        for (path, short) in [
            ("/models/acme/llama-8b/", "…/llama-8b"),
            ("C:\\models\\llama", "…/llama"),
            ("s3://bucket/team/llama", "…/llama"),
            ("/c/hub/models--meta--L/snapshots/ab12", "…/models--meta--L/snapshots/ab12"),
        ] {
            assert!(is_private_path(path), "{path}");
            assert_eq!(shortened(path), short);
        }
        for path in ["meta-llama/Llama-3.1-8B", "llama", "/llama", "./llama", "", "…/llama"] {
            assert!(!is_private_path(path), "{path}");
        }
    }

    #[test]
    fn common_words_and_numbers_are_not_looked_for_elsewhere() {
        assert!(is_telling("hunter2x") && is_telling("correcthorsebattery"));
        for secret in ["sglang", "EMPTY", "123456789", "None", "{}", ""] {
            assert!(!is_telling(secret), "{secret}");
        }
    }
}
