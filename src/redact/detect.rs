//! What gives itself away by its form: tokens, addresses, names in URLs and paths.
//!
//! One table of patterns. The regex crate searches in linear time; a repetition is bounded only where many matches could
//! each look far ahead. One search with all of them tells which are worth running.

use super::edit::Span;
use super::keyed::Keys;
use super::{Kind, hosts};
use regex::{Regex, RegexSet};
use std::ops::Range;

/// Narrows what a pattern found, or turns it down. Gets the text and the bytes of a group.
type Check = fn(&str, Range<usize>) -> Option<Range<usize>>;

/// One form.
struct Form {
    pattern: &'static str,
    /// What each group is; without groups, what the whole match is.
    groups: &'static [Kind],
    check: Check,
}

const fn form(pattern: &'static str, groups: &'static [Kind], check: Check) -> Form {
    Form { pattern, groups, check }
}

static FORMS: &[Form] = &[
    // Private keys, with line ends as such or escaped; one without its end reaches to the end.
    form(
        r"(?s)-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY-----(?:.*?-----END [A-Z0-9 ]{0,32}PRIVATE KEY-----|.*)",
        &[Kind::Secret],
        |_, found| Some(found),
    ),
    // Tokens with a maker's mark: Hugging Face, OpenAI and its relatives, GitHub, GitLab, Slack, NVIDIA, Groq, Replicate,
    // npm, Docker, Stripe, PyPI, AWS, Google.
    form(
        r"(?-u:\b)(?:hf_[A-Za-z0-9]{16,}|api_org_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{6,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{12,}|xox[abeprs]-[A-Za-z0-9-]{8,}|nvapi-[A-Za-z0-9_-]{16,}|gsk_[A-Za-z0-9]{16,}|r8_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{16,}|dckr_pat_[A-Za-z0-9_-]{12,}|[rsp]k_(?:live|test)_[A-Za-z0-9]{8,}|pypi-[A-Za-z0-9_-]{32,}|(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{16,}|GOCSPX-[A-Za-z0-9_-]{16,})",
        &[Kind::Secret],
        own_word,
    ),
    // JSON web tokens.
    form(
        r"(?-u:\b)eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?",
        &[Kind::Secret],
        |_, found| Some(found),
    ),
    form(r"(?i:bearer)\s{1,4}([A-Za-z0-9._~+/=-]{6,})", &[Kind::Secret], |_, found| Some(found)),
    form(r"(?i:basic)\s{1,4}([A-Za-z0-9+/]{8,}={0,2})", &[Kind::Secret], base64),
    // Shared keys of Azure storage and of anything else that has 64 bytes of Base64.
    form(r"[A-Za-z0-9+/]{86}==", &[Kind::Secret], |_, found| Some(found)),
    form(r"://([^\s/?#'\x22<>]+)@", &[Kind::Secret], |_, found| Some(found)),
    form(
        r"[?&][A-Za-z0-9_-]{0,32}(?i:token|secret|signature|credential|password|sig|key|auth|code)=([^\s&'\x22<>#]+)",
        &[Kind::Secret],
        |_, found| Some(found),
    ),
    form(
        r"[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,24}",
        &[Kind::Email],
        |_, found| Some(found),
    ),
    // `name@machine:~$`, `name@machine:/path`.
    form(
        r"(?-u:\b)([A-Za-z_][A-Za-z0-9_-]{0,31})@([A-Za-z][A-Za-z0-9.-]*):[~/]",
        &[Kind::User, Kind::Host],
        |_, found| Some(found),
    ),
    form(r"://(?:[^\s/?#'\x22<>]+@)?([A-Za-z0-9][A-Za-z0-9._-]*)", &[Kind::Host], |text, found| {
        let host = text.get(found.clone())?.trim_end_matches(['.', '-', '_']);
        hosts::is_name(host).then(|| found.start..found.start + host.len())
    }),
    form(r"(?:[A-Za-z0-9_-]+\.)+[A-Za-z]{2,24}", &[Kind::Host], |text, found| {
        let words = text.get(found.clone())?;
        // A call or a longer word: code, no machine.
        let after = text.as_bytes().get(found.end);
        if after.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'(' | b'_')) {
            return None;
        }
        let name = hosts::dotted(words)?;
        let at = found.start + words.find(name)?;
        Some(at..at + name.len())
    }),
    form(r"(?-u:\b)ip-[0-9]{1,3}-[0-9]{1,3}-[0-9]{1,3}-[0-9]{1,3}(?-u:\b)", &[Kind::Host], |_, found| {
        Some(found)
    }),
    form(r"[0-9][0-9.]{5,}[0-9]", &[Kind::Ip], |text, found| {
        let before = found.start.checked_sub(1).and_then(|at| text.as_bytes().get(at));
        let version = matches!(before, Some(b'v' | b'V'));
        (!version && hosts::is_private_v4(text.get(found.clone())?)).then_some(found)
    }),
    form(r"[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:.]{1,60}", &[Kind::Ip], |text, found| {
        let address = text.get(found.clone())?;
        let address = address.strip_suffix('.').unwrap_or(address);
        let address = if address.ends_with("::") { address } else { address.trim_end_matches(':') };
        let range = found.start..found.start + address.len();
        (apart(text, &range, b":_.") && hosts::is_private_v6(address)).then_some(range)
    }),
    form(r"(?-u:\b)[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}(?-u:\b)", &[Kind::Mac], |text, found| {
        let address = text.get(found.clone())?;
        // Dashes between digits only are a date and a time.
        let marked = address.contains(':') || address.bytes().any(|byte| byte.is_ascii_alphabetic());
        (marked && apart(text, &found, b":-")).then_some(found)
    }),
    form(r"/(?:home|Users)/([^\s/\\'\x22`,:;()<>\[\]{}|=&?#]+)", &[Kind::User], |_, found| Some(found)),
    form(r"(?i:\\users)\\{1,4}([^\\/:*?\x22<>|'\r\n]+)\\", &[Kind::User], |_, found| Some(found)),
    form(r"(?i:\\users)\\{1,4}([^\\/:*?\x22<>|'\s]+)", &[Kind::User], |_, found| Some(found)),
    form(r"(?-u:\b)(?:GPU|MIG)-[0-9A-Fa-f]{6}[0-9A-Fa-f-]*", &[Kind::Gpu], |_, found| Some(found)),
    form(r"(?i:serial[ _]?number)\s{0,64}[:=]\s{0,4}([A-Za-z0-9]{6,32})", &[Kind::Gpu], |_, found| {
        Some(found)
    }),
];

/// All searches, ready to run.
pub(super) struct Detectors {
    which: RegexSet,
    forms: Vec<Regex>,
    keys: Keys,
}

impl Detectors {
    pub(super) fn new() -> Result<Detectors, regex::Error> {
        Ok(Detectors {
            which: RegexSet::new(FORMS.iter().map(|form| form.pattern))?,
            forms: FORMS.iter().map(|form| Regex::new(form.pattern)).collect::<Result<_, _>>()?,
            keys: Keys::new()?,
        })
    }

    /// Adds everything in a text that has to go.
    pub(super) fn find(&self, text: &str, spans: &mut Vec<Span>) {
        self.keys.find(text, spans);
        for index in self.which.matches(text) {
            let (Some(form), Some(regex)) = (FORMS.get(index), self.forms.get(index)) else { continue };
            for captures in regex.captures_iter(text) {
                let whole = usize::from(captures.len() > 1);
                for (group, kind) in form.groups.iter().enumerate() {
                    let found =
                        captures.get(group + whole).and_then(|found| (form.check)(text, found.range()));
                    spans.extend(found.map(|range| Span::new(range, *kind)));
                }
            }
        }
    }
}

/// Nothing of a word touches the range, nor any of these signs.
fn apart(text: &str, range: &Range<usize>, signs: &[u8]) -> bool {
    let bytes = text.as_bytes();
    let touches = |byte: &u8, signs: &[u8]| byte.is_ascii_alphanumeric() || signs.contains(byte);
    let before = range.start.checked_sub(1).and_then(|at| bytes.get(at));
    let after = bytes.get(range.end);
    !before.is_some_and(|byte| touches(byte, signs)) && !after.is_some_and(|byte| touches(byte, b"_"))
}

/// A token begins a word: `mask-…` holds no `sk-…`.
fn own_word(text: &str, found: Range<usize>) -> Option<Range<usize>> {
    let before = found.start.checked_sub(1).and_then(|at| text.as_bytes().get(at));
    (!before.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))).then_some(found)
}

/// Base64 of a name and a password, and no word: its length is right, and digits or padding are in it.
fn base64(text: &str, found: Range<usize>) -> Option<Range<usize>> {
    let value = text.get(found.clone())?;
    let marked = value.bytes().any(|byte| byte.is_ascii_digit() || byte == b'=');
    (value.len() % 4 == 0 && marked && value.bytes().any(|byte| byte.is_ascii_uppercase())).then_some(found)
}
