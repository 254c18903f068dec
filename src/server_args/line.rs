//! The three forms of a `server_args=` line.

use super::literal::{DEEPEST, keyword, value};
use super::string::string;
use super::{Argument, Form, ServerArgs};
use nom::character::complete::{char, multispace0};
use nom::combinator::{opt, peek};
use nom::multi::{many0, many1};
use nom::sequence::{delimited, pair, terminated};
use nom::{IResult, Parser, branch::alt};

/// A key and its value.
type Entry = (String, Argument);

/// Reads the text behind `server_args=` (or, in 0.1.20, `server_args: `).
///
/// A value counts only with the delimiter behind it: a line cut inside `mem_fraction_static=0.85` must not yield 0.8.
/// What was read before the cut is kept and [`ServerArgs::cut`] set; a value that no Python prints ends the reading
/// the same way. Text behind the closing bracket is ignored. `None` where nothing was read.
pub fn parse(text: &str) -> Option<ServerArgs> {
    let forms = alt((dict_form, repr_form, flags_form));
    let (_, arguments) = delimited(multispace0, forms, multispace0).parse(text).ok()?;
    (!arguments.entries.is_empty() || !arguments.cut).then_some(arguments)
}

/// `{'key': value, …}`.
fn dict_form(input: &str) -> IResult<&str, ServerArgs> {
    let key = terminated(string, delimited(multispace0, char(':'), multispace0));
    let (rest, _) = pair(char('{'), multispace0).parse(input)?;
    bracketed_entries(Form::Dict, '}', key, rest)
}

/// `ServerArgs(key=value, …)`.
fn repr_form(input: &str) -> IResult<&str, ServerArgs> {
    let (rest, _) = (super::literal::identifier, char('('), multispace0).parse(input)?;
    bracketed_entries(Form::Repr, ')', keyword.map(str::to_owned), rest)
}

/// `key=value, key=value, `: every value has a comma behind it, the last too.
fn flags_form(input: &str) -> IResult<&str, ServerArgs> {
    let (rest, entries) = many1(terminated(entry(keyword.map(str::to_owned)), comma)).parse(input)?;
    let cut = !rest.trim().is_empty();
    Ok((rest, ServerArgs { entries, form: Some(Form::Flags), cut }))
}

/// Entries up to the closing bracket, or up to where the line no longer makes sense.
fn bracketed_entries<'a>(
    form: Form,
    close: char,
    key: impl Parser<&'a str, Output = String, Error = nom::error::Error<&'a str>>,
    input: &'a str,
) -> IResult<&'a str, ServerArgs> {
    let delimiter = alt((comma, delimited(multispace0, peek(char(close)), multispace0)));
    let (rest, entries) = many0(terminated(entry(key), delimiter)).parse(input)?;
    let (rest, closed) = opt(char(close)).parse(rest)?;
    Ok((rest, ServerArgs { entries, form: Some(form), cut: closed.is_none() }))
}

fn entry<'a>(
    key: impl Parser<&'a str, Output = String, Error = nom::error::Error<&'a str>>,
) -> impl Parser<&'a str, Output = Entry, Error = nom::error::Error<&'a str>> {
    pair(key, |rest| value(DEEPEST, rest))
}

fn comma(input: &str) -> IResult<&str, char> {
    delimited(multispace0, char(','), multispace0).parse(input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_dataclass_repr_is_read() {
        let arguments = parse(
            "ServerArgs(model_path='/models/a, b=c)', tp_size=2, mem_fraction_static=0.85, revision=None, \
             lora_paths=[LoRARef(lora_id='1', lora_name=\"it's\", pinned=False)], custom_sigquit_handler=<function f at 0x7f>, \
             cuda_graph_config=CudaGraphConfig(decode=PhaseConfig(backend='full', bs=[1, 2]), prefill=PhaseConfig(bs=None)))",
        )
        .unwrap();
        assert_eq!(arguments.form, Some(Form::Repr));
        assert!(!arguments.cut);
        assert_eq!(arguments.entries().len(), 7);
        assert_eq!(arguments.text("model_path"), Some("/models/a, b=c)"));
        assert_eq!(arguments.integer("tp_size"), Some(2));
        assert_eq!(arguments.float("mem_fraction_static"), Some(0.85));
        assert_eq!(arguments.get("revision"), Some(&Argument::None));
        assert_eq!(arguments.get("page_size"), None);
        let Some(Argument::Record(graphs)) = arguments.get("cuda_graph_config") else { panic!("no record") };
        assert_eq!(graphs[1].0, "prefill");
    }

    #[test]
    fn a_dict_repr_is_read() {
        let arguments =
            parse(r#"{'model_path': 'a', "json_model_override_args": '{"a": 1}', 'tp_size': 8}"#).unwrap();
        assert_eq!(arguments.form, Some(Form::Dict));
        assert!(!arguments.cut);
        assert_eq!(arguments.text("json_model_override_args"), Some(r#"{"a": 1}"#));
        assert_eq!(arguments.integer("tp_size"), Some(8));
    }

    #[test]
    fn the_five_flags_of_the_oldest_release_are_read() {
        let line = "disable_flashinfer=False, attention_reduce_in_fp32=False, disable_radix_cache=True, \
                    disable_regex_jump_forward=False, disable_disk_cache=False, ";
        let arguments = parse(line).unwrap();
        assert_eq!(arguments.form, Some(Form::Flags));
        assert!(!arguments.cut);
        assert_eq!(arguments.entries().len(), 5);
        assert_eq!(arguments.flag("disable_radix_cache"), Some(true));
        let cut = parse("disable_flashinfer=False, attention_reduce_in").unwrap();
        assert!(cut.cut);
        assert_eq!(cut.entries().len(), 1);
    }

    #[test]
    fn a_cut_line_yields_what_was_whole() {
        for (line, whole) in [
            ("ServerArgs(tp_size=2, mem_fraction_static=0.8", 1),
            ("ServerArgs(tp_size=2, bs=[1, 2", 1),
            ("ServerArgs(tp_size=2, name='abc, x=1)", 1),
            ("ServerArgs(tp_size=2,", 1),
            ("{'tp_size': 2, 'page_size': 1, 'x': {'y': 1}", 2),
        ] {
            let arguments = parse(line).unwrap();
            assert!(arguments.cut, "{line}");
            assert_eq!(arguments.entries().len(), whole, "{line}");
        }
    }

    #[test]
    fn text_that_holds_no_arguments_is_refused() {
        for text in ["", "ServerArgs(", "{", "hello", "hello world=1", "(a=1)"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert!(parse("ServerArgs()").is_some_and(|arguments| arguments.entries().is_empty()));
    }

    #[test]
    fn every_cut_of_a_line_is_noticed() {
        let line =
            "ServerArgs(a='x, y=1)', b=[1, 2], c={'k': (1, 2)}, d=PhaseConfig(e=0.85), f=<f at 0x1>, g=None)";
        let whole = parse(line).unwrap();
        assert!(!whole.cut);
        for arguments in (0..line.len()).filter_map(|end| parse(&line[..end])) {
            assert!(arguments.cut);
            assert_eq!(arguments.entries(), &whole.entries()[..arguments.entries().len()]);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "\\PC*") {
            let _ = parse(&text);
        }
    }
}
