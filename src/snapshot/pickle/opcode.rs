//! The grammar of pickles: one opcode with its argument.

use super::PickleProblem;
use nom::IResult;
use nom::Parser;
use nom::number::complete::{be_f64, le_i32, le_u8, le_u16, le_u32, le_u64};

/// An opcode of plain data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Opcode<'a> {
    /// `PROTO`.
    Protocol(u8),
    /// `FRAME`: a hint for readers of streams.
    Frame,
    /// `STOP`.
    Stop,
    /// `MARK`.
    Mark,
    /// `POP`.
    Pop,
    /// `POP_MARK`.
    PopMark,
    /// `DUP`.
    Duplicate,
    /// `NONE`.
    Nothing,
    /// `NEWTRUE`, `NEWFALSE`.
    Truth(bool),
    /// `BININT`, `BININT1`, `BININT2`, `LONG1`, `LONG4`.
    Integer(i64),
    /// `BINFLOAT`.
    Float(f64),
    /// `BINUNICODE` and the like; bytes and the strings of Python 2 too.
    Text(&'a [u8]),
    /// `EMPTY_LIST`, `EMPTY_TUPLE`.
    EmptySequence,
    /// `EMPTY_DICT`.
    EmptyRecord,
    /// `LIST`, `TUPLE`: of everything since the mark.
    Sequence,
    /// `DICT`: of everything since the mark.
    Record,
    /// `TUPLE1`, `TUPLE2`, `TUPLE3`: of the last values.
    Tuple(usize),
    /// `APPEND`.
    Append,
    /// `APPENDS`.
    Appends,
    /// `SETITEM`.
    SetItem,
    /// `SETITEMS`.
    SetItems,
    /// `MEMOIZE`.
    Memoize,
    /// `BINPUT`, `LONG_BINPUT`.
    Put(u32),
    /// `BINGET`, `LONG_BINGET`.
    Get(u32),
}

/// Reads one opcode. Nothing is allocated: texts are borrowed.
pub(super) fn opcode(input: &[u8]) -> Result<(&[u8], Opcode<'_>), PickleProblem> {
    let (rest, code) = number(le_u8, input)?;
    let simple = |opcode| Ok((rest, opcode));
    match code {
        super::PROTOCOL => number(le_u8, rest).map(|(rest, protocol)| (rest, Opcode::Protocol(protocol))),
        0x95 => number(le_u64, rest).map(|(rest, _)| (rest, Opcode::Frame)),
        b'.' => simple(Opcode::Stop),
        b'(' => simple(Opcode::Mark),
        b'0' => simple(Opcode::Pop),
        b'1' => simple(Opcode::PopMark),
        b'2' => simple(Opcode::Duplicate),
        b'N' => simple(Opcode::Nothing),
        0x88 => simple(Opcode::Truth(true)),
        0x89 => simple(Opcode::Truth(false)),
        b'J' => number(le_i32, rest).map(|(rest, value)| (rest, Opcode::Integer(value.into()))),
        b'K' => number(le_u8, rest).map(|(rest, value)| (rest, Opcode::Integer(value.into()))),
        b'M' => number(le_u16, rest).map(|(rest, value)| (rest, Opcode::Integer(value.into()))),
        0x8a => number(le_u8, rest).and_then(|(rest, length)| long(rest, length.into())),
        0x8b => number(le_u32, rest).and_then(|(rest, length)| long(rest, length.into())),
        b'G' => number(be_f64, rest).map(|(rest, value)| (rest, Opcode::Float(value))),
        0x8c | b'U' | b'C' => number(le_u8, rest).and_then(|(rest, length)| text(rest, length.into())),
        b'X' | b'T' | b'B' => number(le_u32, rest).and_then(|(rest, length)| text(rest, length.into())),
        0x8d | 0x8e => number(le_u64, rest).and_then(|(rest, length)| text(rest, length)),
        b']' | b')' => simple(Opcode::EmptySequence),
        b'}' => simple(Opcode::EmptyRecord),
        b'l' | b't' => simple(Opcode::Sequence),
        b'd' => simple(Opcode::Record),
        0x85..=0x87 => simple(Opcode::Tuple(usize::from(code - 0x84))),
        b'a' => simple(Opcode::Append),
        b'e' => simple(Opcode::Appends),
        b's' => simple(Opcode::SetItem),
        b'u' => simple(Opcode::SetItems),
        0x94 => simple(Opcode::Memoize),
        b'q' => number(le_u8, rest).map(|(rest, entry)| (rest, Opcode::Put(entry.into()))),
        b'r' => number(le_u32, rest).map(|(rest, entry)| (rest, Opcode::Put(entry))),
        b'h' => number(le_u8, rest).map(|(rest, entry)| (rest, Opcode::Get(entry.into()))),
        b'j' => number(le_u32, rest).map(|(rest, entry)| (rest, Opcode::Get(entry))),
        _ => Err(refused(code)),
    }
}

fn number<'a, T>(
    mut parser: impl Parser<&'a [u8], Output = T, Error = nom::error::Error<&'a [u8]>>,
    input: &'a [u8],
) -> Result<(&'a [u8], T), PickleProblem> {
    let result: IResult<&'a [u8], T> = parser.parse(input);
    result.map_err(|_| PickleProblem::Ended)
}

/// A text of a length that the file claims.
fn text(input: &[u8], claimed: u64) -> Result<(&[u8], Opcode<'_>), PickleProblem> {
    let short = PickleProblem::Claim { claimed, left: input.len() };
    let length = usize::try_from(claimed).map_err(|_| short)?;
    let (text, rest) = input.split_at_checked(length).ok_or(short)?;
    Ok((rest, Opcode::Text(text)))
}

/// An integer in two's complement, lowest byte first.
fn long(input: &[u8], length: u64) -> Result<(&[u8], Opcode<'_>), PickleProblem> {
    let (rest, Opcode::Text(bytes)) = text(input, length)? else { return Err(PickleProblem::Ended) };
    if bytes.len() > 8 {
        return Err(PickleProblem::LargeInteger(length));
    }
    let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let start = if negative { -1_i64 } else { 0 };
    let value = bytes.iter().rev().fold(start, |value, byte| (value << 8) | i64::from(*byte));
    Ok((rest, Opcode::Integer(value)))
}

/// Why an opcode is not executed. The names are CPython's.
fn refused(code: u8) -> PickleProblem {
    let runs = match code {
        b'c' => "GLOBAL",
        0x93 => "STACK_GLOBAL",
        b'R' => "REDUCE",
        b'b' => "BUILD",
        b'i' => "INST",
        b'o' => "OBJ",
        0x81 => "NEWOBJ",
        0x92 => "NEWOBJ_EX",
        0x82 => "EXT1",
        0x83 => "EXT2",
        0x84 => "EXT4",
        b'P' => "PERSID",
        b'Q' => "BINPERSID",
        0x97 => "NEXT_BUFFER",
        _ => "",
    };
    if !runs.is_empty() {
        return PickleProblem::Code(runs);
    }
    PickleProblem::Unsupported(match code {
        0x8f => "EMPTY_SET",
        0x90 => "ADDITEMS",
        0x91 => "FROZENSET",
        0x96 => "BYTEARRAY8",
        0x98 => "READONLY_BUFFER",
        b'I' => "INT (protocol 0)",
        b'L' => "LONG (protocol 0)",
        b'S' => "STRING (protocol 0)",
        b'V' => "UNICODE (protocol 0)",
        b'F' => "FLOAT (protocol 0)",
        b'g' => "GET (protocol 0)",
        b'p' => "PUT (protocol 0)",
        _ => return PickleProblem::Unknown(code),
    })
}
