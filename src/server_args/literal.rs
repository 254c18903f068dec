//! The grammar of Python values as `repr` prints them: literals, nested records, and things that are no literal.
//!
//! Each rule is chosen by the first character, so no text is read twice for want of a decision; only what follows an
//! opening bracket of something unknown may be read again; how far and how deep that goes is limited.

use super::Argument;
use super::string::string;
use nom::bytes::complete::{take, take_while, take_while1};
use nom::character::complete::{anychar, char, multispace0};
use nom::combinator::{consumed, fail, map, opt, peek, recognize, verify};
use nom::multi::separated_list0;
use nom::sequence::{delimited, pair, preceded, terminated};
use nom::{IResult, Parser, branch::alt};

/// How deep brackets may nest. SGLang prints three levels; the limit protects the stack.
pub(super) const DEEPEST: usize = 64;

/// How many bytes something that is no literal may take: what bounds the cost of reading it again.
const LONGEST_OPAQUE: usize = 512;

/// Any value, with at most `depth` levels of brackets in it.
pub(super) fn value(depth: usize, input: &str) -> IResult<&str, Argument> {
    let Some(depth) = depth.checked_sub(1) else { return fail().parse(input) };
    let (_, first) = peek(anychar).parse(input)?;
    match first {
        '\'' | '"' => map(string, Argument::Text).parse(input),
        '[' => map(|rest| items('[', ']', depth, rest), Argument::List).parse(input),
        '(' => map(|rest| items('(', ')', depth, rest), Argument::List).parse(input),
        '{' => braces(depth, input),
        '<' => map(|rest| balanced('<', '>', rest), opaque).parse(input),
        _ => alt((map(string, Argument::Text), |rest| word_or_call(depth, rest))).parse(input),
    }
}

fn opaque(text: &str) -> Argument {
    Argument::Opaque(text.to_owned())
}

/// The comma between items, with the blanks around it.
fn comma(input: &str) -> IResult<&str, char> {
    delimited(multispace0, char(','), multispace0).parse(input)
}

/// Items between brackets, separated by commas; Python leaves a comma behind a lone item of a tuple.
fn items(open: char, close: char, depth: usize, input: &str) -> IResult<&str, Vec<Argument>> {
    delimited(
        (char(open), multispace0),
        separated_list0(comma, |rest| value(depth, rest)),
        (opt(comma), multispace0, char(close)),
    )
    .parse(input)
}

/// A dict, whose keys become text, or a set, which becomes a list.
fn braces(depth: usize, input: &str) -> IResult<&str, Argument> {
    let colon = delimited(multispace0, char(':'), multispace0);
    let member = pair(consumed(|rest| value(depth, rest)), opt(preceded(colon, |rest| value(depth, rest))));
    let (rest, members) = delimited(
        (char('{'), multispace0),
        separated_list0(comma, member),
        (opt(comma), multispace0, char('}')),
    )
    .parse(input)?;
    let mut record = Vec::new();
    let mut list = Vec::new();
    for ((printed, key), member) in members {
        match (member, key) {
            (Some(member), Argument::Text(name)) => record.push((name, member)),
            (Some(member), _) => record.push((printed.to_owned(), member)),
            (None, item) => list.push(item),
        }
    }
    match (record.is_empty(), list.is_empty()) {
        (_, true) => Ok((rest, Argument::Record(record))),
        (true, false) => Ok((rest, Argument::List(list))),
        (false, false) => fail().parse(input),
    }
}

/// A name as Python allows it: `mem_fraction_static`.
pub(super) fn identifier(input: &str) -> IResult<&str, &str> {
    recognize(pair(
        verify(anychar, |first| first.is_alphabetic() || *first == '_'),
        take_while(|c: char| c.is_alphanumeric() || c == '_'),
    ))
    .parse(input)
}

/// A name and the equals sign behind it.
pub(super) fn keyword(input: &str) -> IResult<&str, &str> {
    terminated(identifier, delimited(multispace0, char('='), multispace0)).parse(input)
}

/// A number, a constant or a dotted name, or a call such as `PhaseConfig(backend='full')`.
fn word_or_call(depth: usize, input: &str) -> IResult<&str, Argument> {
    let (rest, word) = take_while1(is_word).parse(input)?;
    if !rest.starts_with('(') {
        return Ok((rest, classify(word)));
    }
    alt((
        |rest| record_call(depth, rest),
        map(recognize(preceded(take_while1(is_word), |rest| balanced('(', ')', rest))), opaque),
    ))
    .parse(input)
}

/// What numbers, names and combinations of flags are made of: `1e-05`, `torch.bfloat16`, `Mode.A|B`.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '+' | '-' | '|')
}

/// A call. With keywords only it is the repr of a record; otherwise it is kept as printed.
fn record_call(depth: usize, input: &str) -> IResult<&str, Argument> {
    let argument = pair(opt(keyword), |rest| value(depth, rest));
    let arguments = delimited(
        (char('('), multispace0),
        separated_list0(comma, argument),
        (opt(comma), multispace0, char(')')),
    );
    let (rest, (printed, arguments)) = consumed(preceded(take_while1(is_word), arguments)).parse(input)?;
    let fields: Option<Vec<_>> =
        arguments.into_iter().map(|(name, value)| Some((name?.to_owned(), value))).collect();
    match fields {
        Some(fields) if !fields.is_empty() => Ok((rest, Argument::Record(fields))),
        _ => Ok((rest, opaque(printed))),
    }
}

/// Everything from an opening bracket to the one that closes it. Brackets inside quotes do not count, unless the
/// quotes themselves do not close (an apostrophe).
fn balanced(open: char, close: char, input: &str) -> IResult<&str, &str> {
    let end = (LONGEST_OPAQUE..input.len()).find(|end| input.is_char_boundary(*end));
    let near = end.and_then(|end| input.get(..end)).unwrap_or(input);
    let mut length =
        alt((|rest| length_to(open, close, true, rest), |rest| length_to(open, close, false, rest)));
    let (_, length) = length.parse(near)?;
    take(length).parse(input)
}

/// How many characters an opening bracket and what it encloses take.
fn length_to(open: char, close: char, quotes: bool, input: &str) -> IResult<&str, usize> {
    let mut level = 0usize;
    let mut rest = input;
    loop {
        let (after, character) = anychar(rest)?;
        rest = after;
        match character {
            _ if character == open => level += 1,
            _ if character == close => level = level.saturating_sub(1),
            '\'' | '"' if quotes => rest = closing_quote(character, after)?.0,
            _ => {}
        }
        if level == 0 {
            let enclosed = input.get(..input.len() - rest.len()).unwrap_or(input);
            return Ok((rest, enclosed.chars().count()));
        }
    }
}

/// Past the closing quote of a string that is already open.
fn closing_quote(quote: char, input: &str) -> IResult<&str, ()> {
    let mut rest = input;
    loop {
        let (after, character) = anychar(rest)?;
        rest = match character {
            '\\' => anychar(after)?.0,
            _ => after,
        };
        if character == quote {
            return Ok((rest, ()));
        }
    }
}

/// A word's meaning. Python's `inf` and `nan`, complex numbers and names are no literals: kept as printed.
fn classify(word: &str) -> Argument {
    match word {
        "None" => return Argument::None,
        "True" => return Argument::Bool(true),
        "False" => return Argument::Bool(false),
        _ => {}
    }
    let number = |text: &str| {
        if !text.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        if let Ok(integer) = text.parse() {
            return Some(Argument::Integer(integer));
        }
        text.parse().ok().filter(|float: &f64| float.is_finite()).map(Argument::Float)
    };
    without_underscores(word).and_then(|digits| number(&digits)).unwrap_or_else(|| opaque(word))
}

/// The digits of `1_000`. `None` where an underscore does not stand between two digits.
fn without_underscores(word: &str) -> Option<String> {
    let digit_at = |piece: Option<char>| piece.is_some_and(|c| c.is_ascii_digit());
    let pieces: Vec<&str> = word.split('_').collect();
    let separates = |pair: &[&str]| match pair {
        [left, right] => digit_at(left.chars().next_back()) && digit_at(right.chars().next()),
        _ => false,
    };
    pieces.windows(2).all(separates).then(|| pieces.concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Option<Argument> {
        value(DEEPEST, text).ok().filter(|(rest, _)| rest.is_empty()).map(|(_, value)| value)
    }

    fn text(text: &str) -> Argument {
        Argument::Text(text.to_owned())
    }

    #[test]
    fn constants_and_numbers() {
        assert_eq!(read("None"), Some(Argument::None));
        assert_eq!(read("True"), Some(Argument::Bool(true)));
        assert_eq!(read("-1"), Some(Argument::Integer(-1)));
        assert_eq!(read("1_000"), Some(Argument::Integer(1000)));
        assert_eq!(read("0.8717961207"), Some(Argument::Float(0.871_796_120_7)));
        assert_eq!(read("1e-05"), Some(Argument::Float(1e-5)));
        assert_eq!(read("9223372036854775807"), Some(Argument::Integer(i128::from(i64::MAX))));
    }

    #[test]
    fn what_is_no_literal_is_kept_as_printed() {
        for printed in [
            "inf",
            "-inf",
            "nan",
            "1+2j",
            "1__0",
            "_1",
            "1e999",
            "torch.bfloat16",
            "Mode.A|B",
            "<function handler at 0x7f0a1b2c3d4e>",
            "<function <lambda> at 0x7f>",
            "<Mode.GREATER: '>'>",
            "<the server's handler>",
            "PosixPath('/models/a, b=c')",
            "deque([1, 2], maxlen=3)",
            "Empty()",
            "Odd(1 of 2, ')')",
            "<größer: 'ß>'>",
        ] {
            assert_eq!(read(printed), Some(opaque(printed)), "{printed}");
        }
    }

    #[test]
    fn lists_tuples_and_sets() {
        let numbers = Argument::List(vec![Argument::Integer(1), Argument::Integer(2)]);
        for printed in ["[1, 2]", "(1, 2)", "{1, 2}", "[1,2,]", "[ 1 , 2 ]"] {
            assert_eq!(read(printed), Some(numbers.clone()), "{printed}");
        }
        assert_eq!(read("(1,)"), Some(Argument::List(vec![Argument::Integer(1)])));
        assert_eq!(read("[]"), Some(Argument::List(vec![])));
        assert_eq!(read("{}"), Some(Argument::Record(vec![])));
        assert_eq!(read("[1, 2"), None);
        assert_eq!(read("{'a': 1, 2}"), None);
    }

    #[test]
    fn records_and_dicts_keep_their_order() {
        let expected = Argument::Record(vec![
            ("backend".to_owned(), text("full")),
            ("bs".to_owned(), Argument::List(vec![Argument::Integer(1), Argument::Integer(2)])),
        ]);
        assert_eq!(read("PhaseConfig(backend='full', bs=[1, 2])"), Some(expected.clone()));
        assert_eq!(read("{'backend': 'full', 'bs': [1, 2]}"), Some(expected));
        let by_number = Argument::Record(vec![("1".to_owned(), Argument::None)]);
        assert_eq!(read("{1: None}"), Some(by_number));
    }

    #[test]
    fn nesting_is_limited() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(read(&nested(DEEPEST)).is_some());
        assert_eq!(read(&nested(DEEPEST + 1)), None);
        assert_eq!(read(&"(".repeat(100_000)), None);
    }

    #[test]
    fn hostile_nesting_costs_linear_time() {
        let calls = "a(".repeat(60) + &"1 ".repeat(100_000);
        let dicts = "{1:".repeat(60) + &"[1 ".repeat(100_000);
        let angles = "[<".repeat(100_000);
        let quotes = format!("[{}", "<\"'>, a(1 '), ".repeat(20_000));
        let started = std::time::Instant::now();
        for text in [calls, dicts, angles, quotes] {
            assert_eq!(read(&text), None);
        }
        assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "[-_a'\"\\\\<>(){}\\[\\],:=.0-9 x]{0,200}") {
            let _ = value(DEEPEST, &text);
        }

        #[test]
        fn integers_print_and_read_back(number in any::<i64>()) {
            prop_assert_eq!(read(&number.to_string()), Some(Argument::Integer(number.into())));
        }
    }
}
