//! The rows of process boxes: nvidia-smi's of both generations, with and without GI and CI columns.
//!
//! Separate from the device box because rows are read by their words: names hold blanks, are cut with `...`, and
//! stand in a column whose width changed with nearly every driver.

use super::block::{DeviceId, ProcessFacts};
use super::cells::{amount_cell, amount_or_unknown, cut_figure, is_unknown, number_cell, whole};
use crate::observe::{MigInstance, ProcessUse};
use crate::place::Place;
use crate::quantity::Quantity;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_till1};
use nom::character::complete::{space1, u32 as number};
use nom::combinator::{map, map_opt, opt, rest, value, verify};
use nom::sequence::{preceded, terminated};
use nom::{IResult, Parser};

/// A word: anything up to a blank.
pub(super) fn word(input: &str) -> IResult<&str, &str> {
    take_till1(char::is_whitespace).parse(input)
}

/// A process id, or `N/A`.
fn pid(input: &str) -> IResult<&str, Option<u64>> {
    map_opt(word, number_cell::<u64>).parse(input)
}

/// An instance number, or `N/A`.
fn instance(input: &str) -> IResult<&str, Option<u32>> {
    map_opt(word, number_cell::<u32>).parse(input)
}

/// `C`, `G`, `C+G`, `M+C`: kinds of use joined by plus signs.
fn kind(input: &str) -> IResult<&str, &str> {
    verify(word, |word: &str| {
        is_unknown(word) || word.split('+').all(|part| matches!(part, "C" | "G" | "M" | "E" | "D"))
    })
    .parse(input)
}

/// The columns in front of the name: GPU, GI and CI (newer drivers), pid, kind.
type Front<'a> = (u32, Option<(Option<u32>, Option<u32>)>, Option<u64>, &'a str);

fn front(input: &str) -> IResult<&str, Front<'_>> {
    let with_instances = map(
        (
            terminated(number, space1),
            terminated(instance, space1),
            terminated(instance, space1),
            terminated(pid, space1),
            kind,
        ),
        |(device, gpu, compute, pid, kind)| (device, Some((gpu, compute)), pid, kind),
    );
    let without = map((terminated(number, space1), terminated(pid, space1), kind), |(device, pid, kind)| {
        (device, None, pid, kind)
    });
    alt((with_instances, without)).parse(input)
}

/// The figure that ends a row.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Figure {
    /// As printed, or unknown.
    Told(Option<Quantity>),
    /// Cut by nvidia-smi to its leading digits.
    Cut(Quantity),
    /// The row ends before it.
    Missing,
}

/// Splits what follows the kind into name and figure. The figure is the last word, or the last two (`122 MiB`).
fn name_and_figure(text: &str) -> (&str, Figure) {
    let text = text.trim();
    let without_last_word = |text: &str| text.trim_end_matches(|letter: char| !letter.is_whitespace()).len();
    let one = without_last_word(text);
    let two = text.get(..one).map_or(0, |head| without_last_word(head.trim_end()));
    for (name, tail) in [two, one].into_iter().filter_map(|at| text.split_at_checked(at)) {
        if let Some(figure) = amount_cell(tail) {
            return (name.trim(), Figure::Told(figure));
        }
        if let Some(figure) = cut_figure(tail) {
            return (name.trim(), Figure::Cut(figure));
        }
    }
    (text, Figure::Missing)
}

/// A row of a process box, from what stands between its outer bars. `strict` asks for a figure at its end and for
/// instance columns: without a heading above, nothing else tells a row from any other text.
pub(super) fn process_row(inside: &str, place: Place, strict: bool) -> Option<ProcessFacts> {
    let (tail, (device, instances, pid, kind)) = front(inside.trim()).ok()?;
    let (name, figure) = name_and_figure(tail);
    if strict && (figure == Figure::Missing || instances.is_none()) {
        return None;
    }
    let mig = instances.filter(|(gpu, _)| gpu.is_some()).map(|(gpu, compute)| MigInstance {
        gpu_instance: gpu,
        compute_instance: compute,
        device: None,
    });
    let used = match figure {
        Figure::Told(used) => used,
        Figure::Cut(used) => Some(used),
        Figure::Missing => None,
    };
    Some(ProcessFacts {
        place,
        device: DeviceId { mig, ..DeviceId::numbered(device) },
        device_name: None,
        listed: ProcessUse {
            pid,
            name: name.to_owned(),
            kind: (!is_unknown(kind)).then(|| kind.to_owned()),
            used,
        },
        cut: matches!(figure, Figure::Cut(_)),
    })
}

/// `0   Not Supported`: a device whose processes the instrument may not or cannot list. Its number and the words.
pub(super) fn refused_row(inside: &str) -> Option<(u32, &str)> {
    let words = verify(rest, |words: &str| is_unknown(words));
    whole((terminated(number, space1), words), inside)
}

/// `No running processes found`.
pub(super) fn says_none(inside: &str) -> bool {
    let none: IResult<&str, ()> = value((), tag("No running processes found")).parse(inside.trim_start());
    none.is_ok()
}

/// A row of nvitop's process list: `0  2135 C root  119.4GiB  98  101.2  1.5  1:23:45  python main.py`.
pub(super) fn nvitop_row(inside: &str, place: Place) -> Option<ProcessFacts> {
    let user = terminated(word, space1);
    let kind = opt(terminated(kind, space1));
    let columns = (
        terminated(number, space1),
        terminated(pid, space1),
        kind,
        user,
        amount_or_unknown,
        opt(preceded(space1, rest)),
    );
    let (device, pid, kind, _user, used, tail) = whole(columns, inside)?;
    Some(ProcessFacts {
        place,
        device: DeviceId::numbered(device),
        device_name: None,
        listed: ProcessUse {
            pid,
            name: command_after_time(tail.unwrap_or_default()).to_owned(),
            kind: kind.map(str::to_owned),
            used,
        },
        cut: false,
    })
}

/// What follows the column of running time (`1:23:45`, `12:03`, `2.5 days`): the command.
fn command_after_time(columns: &str) -> &str {
    let is_time = |word: &str| {
        word == "days"
            || (word.contains(':') && word.bytes().all(|byte| byte.is_ascii_digit() || b":.".contains(&byte)))
    };
    let mut rest = columns.trim();
    while let Some((word, behind)) = rest.split_once(char::is_whitespace) {
        rest = behind.trim_start();
        if is_time(word) {
            return rest;
        }
    }
    columns.trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::MIB;
    use std::sync::Arc;

    fn place() -> Place {
        Place::new(&Arc::from("smi.txt"), 1, 1)
    }

    fn row(text: &str) -> ProcessFacts {
        process_row(text, place(), false).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn rows_of_both_generations_are_read() {
        let new = row("    1   N/A  N/A            3584      C   /usr/bin/python3          41570MiB ");
        let old = row("    1      3584      C   /usr/bin/python3                             41570MiB ");
        for process in [new, old] {
            assert_eq!(process.device, DeviceId::numbered(1));
            assert_eq!(process.listed.pid, Some(3584));
            assert_eq!(process.listed.name, "/usr/bin/python3");
            assert_eq!(process.listed.kind.as_deref(), Some("C"));
            assert_eq!(process.listed.used, Some(Quantity::whole_mib(41_570)));
        }
    }

    #[test]
    fn surprise_23_six_digit_figures_and_names_with_blanks() {
        let process =
            row("    0   N/A  N/A            2135      C   sglang::scheduler_TP0                 12230... ");
        assert!(process.cut);
        assert!(process.listed.used.unwrap().contains(122_306 * MIB));
        assert_eq!(process.listed.name, "sglang::scheduler_TP0");
        let process = row("    0   N/A  N/A     77    C   ray::RayWorker.execute_method   1842MiB ");
        assert_eq!(process.listed.name, "ray::RayWorker.execute_method");
        let process = row("    0   N/A  N/A     77    C+G   ...64)\\Microsoft Office\\WINWORD.EXE   N/A ");
        assert_eq!(process.listed.name, "...64)\\Microsoft Office\\WINWORD.EXE");
        assert_eq!((process.listed.used, process.listed.kind.as_deref()), (None, Some("C+G")));
        let process = row("    0   N/A  N/A     77    C   ...vs/sglang env/bin/python   12 MiB ");
        assert_eq!(process.listed.name, "...vs/sglang env/bin/python");
        assert_eq!(process.listed.used, Some(Quantity::whole_mib(12)));
    }

    #[test]
    fn a_row_cut_at_the_right_has_an_unknown_figure() {
        assert_eq!(
            row("    0   N/A  N/A            2135      C   sglang::scheduler      538").listed.used,
            None
        );
        assert_eq!(row("    0   N/A  N/A            2135      C   sglang::sched").listed.used, None);
    }

    #[test]
    fn instances_are_kept() {
        let process = row("    0    7    0            2135      C   python      9816MiB ");
        let mig = process.device.mig.unwrap();
        assert_eq!((mig.gpu_instance, mig.compute_instance), (Some(7), Some(0)));
    }

    #[test]
    fn other_rows_are_no_processes() {
        for text in
            ["  GPU   GI   CI   PID   Type   Process name   GPU Memory", "", " ID   ID   Usage", "0 1 2 3"]
        {
            assert_eq!(process_row(text, place(), false), None, "{text}");
        }
        assert_eq!(process_row("0   1234  C  some log text", place(), true), None);
        assert!(says_none("  No running processes found          "));
        assert_eq!(
            refused_row("    0                  Not Supported           "),
            Some((0, "Not Supported"))
        );
    }

    #[test]
    fn nvitop_rows_are_read() {
        let process =
            nvitop_row("   0  123456 C    root  119.4GiB  98  101.2  1.5  1:23:45  python main.py", place())
                .unwrap();
        assert_eq!(process.listed.pid, Some(123_456));
        assert_eq!(process.listed.name, "python main.py");
        assert!(process.listed.used.unwrap().contains(122_306 * MIB));
    }
}
