//! The prefix of a log line: time and rank tags, in every form that SGLang and its neighbours print.
//!
//! Forms differ by release, by logger and by what a log viewer made of them; all become one [`Prefix`]. Nothing
//! here looks at the message.

use crate::stage::{Coordinates, RankTag};
use crate::time::Stamp;
use nom::branch::alt;
use nom::bytes::complete::{is_not, tag, take_while, take_while1};
use nom::character::complete::{char, digit1, space0, space1};
use nom::combinator::{all_consuming, map_opt, opt, recognize};
use nom::multi::fold_many0;
use nom::sequence::{delimited, preceded, terminated};
use nom::{IResult, Parser};

/// A bracket longer than this is no prefix.
const LONGEST: usize = 120;
/// How many prefixes of different loggers one line can carry.
const MOST_PREFIXES: usize = 4;

/// What stands before a message.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prefix {
    /// The innermost time.
    pub stamp: Option<Stamp>,
    /// The rank tags.
    pub rank: RankTag,
    /// Where the message begins in the text.
    pub length: usize,
    /// Whether there was any prefix: a line without one may be the rest of another.
    pub found: bool,
}

impl Prefix {
    /// Reads the prefix of a line.
    pub fn of(text: &str) -> Prefix {
        let mut prefix = Prefix { length: text.len() - text.trim_start().len(), ..Prefix::default() };
        for _ in 0..MOST_PREFIXES {
            let rest = text.get(prefix.length..).unwrap_or_default();
            let Some((mark, behind)) = one_prefix(rest) else { break };
            prefix.stamp = mark.stamp.or(prefix.stamp);
            if !mark.rank.text.is_empty() {
                prefix.rank = mark.rank;
            }
            prefix.length = text.len() - behind.trim_start().len();
            prefix.found = true;
        }
        prefix
    }
}

/// One prefix of one logger.
#[derive(Debug, Clone, PartialEq, Default)]
struct Mark {
    stamp: Option<Stamp>,
    rank: RankTag,
}

/// The prefix at the beginning of `text`, and what stands behind it.
fn one_prefix(text: &str) -> Option<(Mark, &str)> {
    let (rest, mark) = alt((bracketed, kernel, rank_colon, levelled, dated, named_logger, beheaded_bracket))
        .parse(text)
        .ok()?;
    Some((mark, rest))
}

/// `[…]` with brackets balanced inside: `encode_dp_worker[1]` holds a pair.
fn bracket(input: &str) -> IResult<&str, &str> {
    let inside = |input| {
        recognize(fold_many0(
            alt((
                is_not("[]"),
                recognize(delimited(char('['), take_while(|c| c != '[' && c != ']'), char(']'))),
            )),
            || (),
            |(), _| (),
        ))
        .parse(input)
    };
    delimited(char('['), inside, char(']')).parse(input)
}

/// `[2026-05-07 15:39:13 DP3 TP3]`, `[18:43:27 TP1]`, `[DP0 PP0]`, `[gpu_id=0]`, `[t]`.
fn bracketed(input: &str) -> IResult<&str, Mark> {
    map_opt(bracket, |body: &str| (body.len() <= LONGEST).then(|| body_mark(body)).flatten()).parse(input)
}

/// What the inside of a bracket says; `None` where it is no prefix (`[BCG]`, `[unified-memory-pool]`).
fn body_mark(body: &str) -> Option<Mark> {
    let words: Vec<&str> = body.split_whitespace().collect();
    let (stamp, taken) = leading_stamp(&words);
    let placeholder = stamp.is_none() && matches!(words.first(), Some(&("t" | "timestamp")));
    let tags = words.get(taken + usize::from(placeholder)..)?;
    let mut mark = Mark { stamp, rank: RankTag { text: tags.join(" "), ..RankTag::default() } };
    let mut known = 0;
    for word in tags {
        known += usize::from(apply_tag(word, &mut mark.rank));
    }
    let all_known = known == tags.len() && known > 0;
    (stamp.is_some() || placeholder || all_known).then_some(mark)
}

/// The time that the words begin with, and how many words it takes: date and time, time alone, either with
/// milliseconds behind a point or a comma, also with a blank after the comma.
fn leading_stamp(words: &[&str]) -> (Option<Stamp>, usize) {
    for taken in (1..=words.len().min(3)).rev() {
        let Some(parts) = words.get(..taken) else { continue };
        let text = parts.iter().fold(String::new(), |text, part| {
            let glue = if text.is_empty() || text.ends_with(',') { "" } else { " " };
            text + glue + part
        });
        if let Some(stamp) = Stamp::parse(text.trim_end_matches(',')) {
            return (Some(stamp), taken);
        }
    }
    (None, 0)
}

/// The name and number of a tag such as `TP1`, `MOE_DP0`, `TP0..3`, `gpu_id=2`.
fn numbered_tag(input: &str) -> IResult<&str, (&str, u32, Option<u32>)> {
    let name =
        alt((tag("gpu_id="), tag("ATTN_CP"), tag("MOE_DP"), tag("DP"), tag("PP"), tag("TP"), tag("EP")));
    let index = |input| map_opt(digit1, |digits: &str| digits.parse::<u32>().ok()).parse(input);
    all_consuming((name, index, opt(preceded(tag(".."), index)))).parse(input)
}

/// Sets the coordinate that the tag names. `false` for words that are no tag.
fn apply_tag(word: &str, rank: &mut RankTag) -> bool {
    let Ok((_, (name, index, through))) = numbered_tag(word) else {
        return word == "encode_server" || word.starts_with("encode_dp_worker[");
    };
    let Coordinates { dp, pp, tp, ep, attn_cp, moe_dp, gpu } = &mut rank.coordinates;
    let slot = match name {
        "DP" => dp,
        "PP" => pp,
        "TP" => tp,
        "EP" => ep,
        "ATTN_CP" => attn_cp,
        "MOE_DP" => moe_dp,
        _ => gpu,
    };
    *slot = Some(index);
    rank.through = rank.through.or(through);
    true
}

/// `[12345.678901] ` and `[Mon Nov 29 12:00:00 2026] `: the kernel's, in dmesg. The first counts from boot, the second is
/// computed from it and drifts: neither is the log's clock.
fn kernel(input: &str) -> IResult<&str, Mark> {
    let since_boot = recognize((space0, digit1, char('.'), digit1));
    let weekday = alt((tag("Mon"), tag("Tue"), tag("Wed"), tag("Thu"), tag("Fri"), tag("Sat"), tag("Sun")));
    let date = recognize((weekday, take_while1(|c: char| c.is_ascii_alphanumeric() || c == ' ' || c == ':')));
    let (rest, _) = delimited(char('['), alt((since_boot, date)), char(']')).parse(input)?;
    Ok((rest, Mark::default()))
}

/// `[rank3]:`, which torchrun puts before each line.
fn rank_colon(input: &str) -> IResult<&str, Mark> {
    let (rest, _) = (tag("[rank"), digit1, tag("]:")).parse(input)?;
    Ok((rest, Mark::default()))
}

/// A level's name.
fn level(input: &str) -> IResult<&str, &str> {
    alt((tag("INFO"), tag("WARNING"), tag("ERROR"), tag("DEBUG"), tag("CRITICAL"))).parse(input)
}

/// The name of a source file with a line number: `model_runner.py:123`.
fn source_line(input: &str) -> IResult<&str, &str> {
    recognize((take_while1(|c: char| c.is_alphanumeric() || "_./".contains(c)), char(':'), digit1))
        .parse(input)
}

/// `INFO 11-29 13:51:19 model_runner.py:123]`: vLLM's logger, in whose code SGLang began. The date has no year,
/// so only the time of day is kept.
fn levelled(input: &str) -> IResult<&str, Mark> {
    let date = recognize((digit1, char('-'), digit1));
    let source = (opt(char('[')), source_line, char(']'));
    let (rest, (_, _, _, _, time, _, _)) =
        (level, space1, date, space1, is_not(" "), space1, source).parse(input)?;
    Ok((rest, Mark { stamp: Stamp::parse(time), rank: RankTag::default() }))
}

/// `2025-02-04 21:21:33,123 - INFO -`, with or without the logger's name; or the time of another clock before
/// the line's own bracket.
fn dated(input: &str) -> IResult<&str, Mark> {
    let moment = recognize((
        digit1,
        char('-'),
        digit1,
        char('-'),
        digit1,
        char(' '),
        take_while1(|c: char| c.is_ascii_digit() || ":.,".contains(c)),
    ));
    let (rest, stamp) = map_opt(moment, Stamp::parse).parse(input)?;
    let mark = Mark { stamp: Some(stamp), rank: RankTag::default() };
    let name = terminated(take_while1(|c: char| c.is_alphanumeric() || "_.".contains(c)), tag(" - "));
    let logger = alt((recognize((level, tag(" - "))), recognize((name, level, tag(" - ")))));
    if let Ok((behind, _)) = preceded(tag(" - "), logger).parse(rest) {
        return Ok((behind, mark));
    }
    let (behind, _) = space1(rest)?;
    let (_, _) = bracketed(behind)?;
    Ok((behind, mark))
}

/// `INFO:sglang.srt.server:`: Python's basic format. `INFO:     127.0.0.1 …` is the web server's own form.
fn named_logger(input: &str) -> IResult<&str, Mark> {
    let name = take_while1(|c: char| c.is_alphanumeric() || "_.".contains(c));
    let (rest, _) = (level, char(':'), name, char(':')).parse(input)?;
    Ok((rest, Mark::default()))
}

/// A bracket that lost its beginning, as when a fence is glued to a paste's first line: `51:19 TP1] …`.
fn beheaded_bracket(input: &str) -> IResult<&str, Mark> {
    let fragment = |word: &str| {
        word.contains(':')
            && word.chars().all(|character| character.is_ascii_digit() || ":.,-".contains(character))
    };
    let mark = |body: &str| {
        let mut mark = Mark::default();
        let mut tags = Vec::new();
        for (index, word) in body.split_whitespace().enumerate() {
            if apply_tag(word, &mut mark.rank) {
                tags.push(word);
            } else if !(fragment(word) || index == 0 && word.chars().all(|c| c.is_ascii_digit() || c == '-'))
            {
                return None;
            }
        }
        mark.rank.text = tags.join(" ");
        (!tags.is_empty() || body.contains(':')).then_some(mark)
    };
    terminated(
        map_opt(is_not("[]"), move |body: &str| (body.len() <= 40).then(|| mark(body)).flatten()),
        (char(']'), space1, space0),
    )
    .parse(input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> (Option<String>, String, &str) {
        let prefix = Prefix::of(text);
        (prefix.stamp.map(|stamp| stamp.to_string()), prefix.rank.text, &text[prefix.length..])
    }

    #[test]
    fn the_bracket_is_read_in_all_its_forms() {
        for (text, stamp, tags) in [
            ("[2026-05-07 15:39:13 DP3 TP3 EP3] m", Some("2026-05-07T15:39:13"), "DP3 TP3 EP3"),
            ("[18:43:27 TP1] m", Some("18:43:27"), "TP1"),
            ("[gpu_id=0] m", None, "gpu_id=0"),
            ("[2025-01-01 00:00:00.123 DP0 PP1 TP3] m", Some("2025-01-01T00:00:00.123"), "DP0 PP1 TP3"),
            ("[2025-01-01 00:00:00, 123 TP0] m", Some("2025-01-01T00:00:00.123"), "TP0"),
            ("[2025-01-01 00:00:00,123  TP0] m", Some("2025-01-01T00:00:00.123"), "TP0"),
            ("[DP0 PP0] m", None, "DP0 PP0"),
            ("[TP0..3] m", None, "TP0..3"),
            ("[t] m", None, ""),
            ("[timestamp encode_server] m", None, "encode_server"),
            (
                "[2026-05-07 15:39:13 encode_dp_worker[2]] m",
                Some("2026-05-07T15:39:13"),
                "encode_dp_worker[2]",
            ),
            ("[2026-05-07 15:39:13 ATTN_CP1 MOE_DP2] m", Some("2026-05-07T15:39:13"), "ATTN_CP1 MOE_DP2"),
            ("[2026-05-07 15:39:13] [gpu_id=1] m", Some("2026-05-07T15:39:13"), "gpu_id=1"),
            ("INFO 11-29 13:51:19 model_runner.py:123] m", Some("13:51:19"), ""),
            ("INFO 11-29 13:51:19 [srt/model_runner.py:123] m", Some("13:51:19"), ""),
            ("2025-02-04 21:21:33,123 - INFO - m", Some("2025-02-04T21:21:33.123"), ""),
            ("2025-02-04 21:21:33,123 - sglang.srt - INFO - m", Some("2025-02-04T21:21:33.123"), ""),
            ("2025-02-04 21:21:33 [2025-02-04 05:21:33 TP0] m", Some("2025-02-04T05:21:33"), "TP0"),
            ("INFO:sglang.srt.server:m", None, ""),
            ("[rank3]: m", None, ""),
            ("51:19 TP1] m", None, "TP1"),
            ("  [2026-05-07 15:39:13] m", Some("2026-05-07T15:39:13"), ""),
        ] {
            assert_eq!(read(text), (stamp.map(str::to_owned), tags.to_owned(), "m"), "{text}");
            assert!(Prefix::of(text).found, "{text}");
        }
    }

    #[test]
    fn other_brackets_are_part_of_the_message() {
        for text in [
            "[unified-memory-pool] UnifiedKVPool",
            "[BCG] Capturing",
            "[1, 2, 4] x",
            "4, 8], avail mem=1 GB",
            "INFO:     127.0.0.1:57580 - \"POST /generate HTTP/1.1\" 200 OK",
            "2025-02-04 21:21:33 something",
            "",
        ] {
            assert_eq!(read(text), (None, String::new(), text), "{text}");
            assert!(!Prefix::of(text).found);
        }
    }

    #[test]
    fn coordinates_do_not_depend_on_order_and_tp1_is_not_tp10() {
        let one = Prefix::of("[2026-05-07 15:39:13 DP1 PP0 TP10 EP2] m").rank.coordinates;
        let other = Prefix::of("[2026-05-07 15:39:13 TP10 EP2 DP1 PP0] m").rank.coordinates;
        assert_eq!(one, other);
        assert_eq!((one.tp, one.dp, one.pp, one.ep), (Some(10), Some(1), Some(0), Some(2)));
        assert_eq!(Prefix::of("[TP0..3] m").rank.through, Some(3));
        assert_eq!(Prefix::of("[gpu_id=7] m").rank.coordinates.gpu, Some(7));
    }

    proptest! {
        #[test]
        fn any_text_has_a_prefix_length_inside_it(text in "(\\[|\\]|TP|DP|[0-9]{1,4}|:| |-|,|INFO|é|encode_dp_worker){0,24}") {
            let prefix = Prefix::of(&text);
            prop_assert!(text.get(prefix.length..).is_some());
        }
    }
}
