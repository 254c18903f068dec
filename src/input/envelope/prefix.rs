//! The envelopes that stand before a line: one parser each, named for the program that writes it.
//!
//! A parser takes its envelope off and leaves the payload. It must not take what belongs to the payload: a log prefix
//! such as `[2026-11-29 13:51:19 TP0]` or `[gpu_id=0]`, or a row of nvidia-smi's table.

use super::Names;
use crate::time::Stamp;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_until, take_while, take_while_m_n, take_while1};
use nom::character::complete::{char, digit1, one_of, satisfy, space0, space1};
use nom::combinator::{consumed, eof, map, opt, peek, recognize, value, verify};
use nom::sequence::{delimited, preceded, terminated};
use nom::{IResult, Parser};

/// What an envelope says of its line.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Mark {
    /// Whose line it is.
    pub identity: Option<String>,
    /// When the envelope's writer took it.
    pub time: Option<Stamp>,
    /// Whether the line goes on in the next envelope of the same writer.
    pub goes_on: bool,
    /// Whether it came by standard error, where the writer's two outputs come as one.
    pub by_stderr: bool,
}

impl Mark {
    fn of(identity: impl Into<String>) -> Mark {
        Mark { identity: Some(identity.into()), ..Mark::default() }
    }

    fn at(time: &str) -> Mark {
        Mark { time: Stamp::parse(time), ..Mark::default() }
    }

    fn by(self, identity: impl Into<String>) -> Mark {
        Mark { identity: Some(identity.into()), ..self }
    }
}

/// Any one envelope at the beginning of a line. `names` are those that have proved to be envelopes already.
pub(super) fn envelope<'a>(input: &'a str, names: &mut Names) -> Option<(&'a str, Mark)> {
    let sure = alt((
        container_runtime,
        platform,
        system_log,
        pipeline_step,
        time_stamp,
        kubectl_prefix,
        ray_actor,
        torch_rank,
        mpi_rank,
        second_clock,
        markdown_quote,
        shell_prompt,
    ))
    .parse(input);
    if let Ok((rest, mark)) = sure {
        return Some((rest, mark));
    }
    // These look like much else: they must prove themselves once by what stands behind them.
    let (rest, mark) = alt((docker_compose, stern, slurm_task)).parse(input).ok()?;
    let identity = mark.identity.as_deref()?;
    if names.contains(identity) {
        return Some((rest, mark));
    }
    if is_replica(identity) || payload(rest).is_ok() {
        names.learn(identity);
        return Some((rest, mark));
    }
    None
}

/// Whether a compose name ends in a replica's number, as compose makes them.
fn is_replica(name: &str) -> bool {
    let digits = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let device = name
        .get(..3)
        .is_some_and(|start| start.eq_ignore_ascii_case("gpu") || start.eq_ignore_ascii_case("mig"));
    !name.contains(' ') && digits.len() < name.len() && digits.ends_with(['-', '_']) && !device
}

/// What makes an unsure envelope sure: the beginning of a line that a server or nvidia-smi prints.
fn payload(input: &str) -> IResult<&str, ()> {
    let words = alt((
        tag("INFO"),
        tag("WARNING"),
        tag("ERROR"),
        tag("Traceback (most"),
        tag("server_args="),
        tag("Capturing "),
        tag("Load weight "),
        tag("NVIDIA-SMI"),
        tag("+---"),
        tag("[gpu_id="),
        tag("[TP"),
        tag("[DP"),
        tag("[rank"),
    ));
    preceded(space0, alt((value((), words), value((), log_stamp), value((), rfc3339), value((), ray_actor))))
        .parse(input)
}

/// `name-1  | `: docker compose; `name.1.abc@host  | `: docker swarm.
fn docker_compose(input: &str) -> IResult<&str, Mark> {
    let (input, name) = word(|c| is_name(c) || c == '@').parse(input)?;
    let (input, _) = (space1, char('|'), alt((tag(" "), eof))).parse(input)?;
    Ok((input, Mark::of(name)))
}

/// `pod container `: stern.
fn stern(input: &str) -> IResult<&str, Mark> {
    let label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let pod = verify(word(label), |pod: &str| pod.contains('-'));
    let (input, names) = recognize((pod, char(' '), word(label))).parse(input)?;
    let (input, _) = char(' ').parse(input)?;
    Ok((input, Mark::of(names)))
}

/// `0: `: Slurm's `srun --label`.
fn slurm_task(input: &str) -> IResult<&str, Mark> {
    let (input, task) = preceded(space0, terminated(short_number, tag(": "))).parse(input)?;
    Ok((input, Mark::of(task)))
}

/// `2026-11-29T13:51:19.123456789Z stdout F `: containerd and CRI-O. `P` marks a part, `F` the last one.
fn container_runtime(input: &str) -> IResult<&str, Mark> {
    let (input, time) = terminated(rfc3339, char(' ')).parse(input)?;
    let (input, output) = terminated(alt((tag("stdout"), tag("stderr"))), char(' ')).parse(input)?;
    let (input, part) = one_of("PF").parse(input)?;
    let (input, _) =
        (take_while(|c: char| c == ':' || c.is_ascii_alphanumeric()), alt((tag(" "), eof))).parse(input)?;
    Ok((input, Mark { goes_on: part == 'P', by_stderr: output == "stderr", ..Mark::at(time) }))
}

/// `2026-11-29T13:51:19Z app[148e] ams [info]`, the payload glued behind: hosting platforms.
fn platform(input: &str) -> IResult<&str, Mark> {
    let (input, time) = terminated(rfc3339, char(' ')).parse(input)?;
    let (input, app) = recognize((word(is_name), char('['), word(is_name), char(']'))).parse(input)?;
    let (input, _) = (char(' '), word(is_name), char(' ')).parse(input)?;
    let level = alt((tag("info"), tag("warn"), tag("error"), tag("debug")));
    let (input, _) =
        (char('['), level, take_while(|c: char| c.is_ascii_lowercase()), char(']')).parse(input)?;
    Ok((input, Mark::at(time).by(app)))
}

/// `Nov 29 12:00:00 host unit[pid]: `: journald and syslog, with the C locale's or an ISO time. The kernel has no pid.
fn system_log(input: &str) -> IResult<&str, Mark> {
    let (input, time) =
        terminated(alt((map(month_day_time, |time| time), rfc3339)), char(' ')).parse(input)?;
    let (input, host) = terminated(word(is_name), char(' ')).parse(input)?;
    let in_unit = |c: char| is_name(c) || matches!(c, '@' | ':' | '/' | '\\');
    let process = recognize((take_while1(in_unit), char('['), digit1, char(']')));
    let (input, unit) = alt((process, terminated(tag("kernel"), peek(char(':'))))).parse(input)?;
    let (input, _) = (char(':'), alt((tag(" "), eof))).parse(input)?;
    Ok((input, Mark::at(time).by(format!("{host} {unit}"))))
}

/// `Nov 29 12:00:00`; gives the time of day, for the year is not there.
fn month_day_time(input: &str) -> IResult<&str, &str> {
    let (input, _) = verify(take_while_m_n(3, 3, |c: char| c.is_ascii_alphabetic()), |month: &str| {
        "JanFebMarAprMayJunJulAugSepOctNovDec".contains(month)
    })
    .parse(input)?;
    let (input, _) = (space1, digits(1, 2), char(' ')).parse(input)?;
    let (input, (time, ())) = consumed(time_of_day).parse(input)?;
    let (input, _) = fraction(input)?;
    Ok((input, time))
}

/// `job<TAB>step<TAB>2026-01-01T00:00:00.0000000Z `: the log of a CI run as its command line tool prints it.
fn pipeline_step(input: &str) -> IResult<&str, Mark> {
    let cell = |input| terminated(take_while_m_n(1, 200, |c| c != '\t'), char('\t')).parse(input);
    let (input, (job, _)) = (cell, cell).parse(input)?;
    let (input, mark) = time_stamp(input)?;
    Ok((input, mark.by(job)))
}

/// `2026-11-29T13:51:19.123456789Z `: `docker logs --timestamps`, `kubectl logs --timestamps`, CI runners; GitLab's
/// add `00O ` for the stream.
fn time_stamp(input: &str) -> IResult<&str, Mark> {
    let (input, time) = terminated(rfc3339, alt((tag(" "), eof))).parse(input)?;
    let (input, _) = opt((digits(2, 2), one_of("OE"), one_of(" +"))).parse(input)?;
    Ok((input, Mark::at(time)))
}

/// `[pod/name/container] `: `kubectl logs --prefix`.
fn kubectl_prefix(input: &str) -> IResult<&str, Mark> {
    let in_path = |c: char| is_name(c) || c == '/';
    let path = recognize((tag("pod/"), take_while1(in_path)));
    let (input, path) = delimited(char('['), path, char(']')).parse(input)?;
    let (input, _) = alt((tag(" "), eof)).parse(input)?;
    Ok((input, Mark::of(path)))
}

/// `(Actor pid=1, ip=10.0.0.1) `: Ray.
fn ray_actor(input: &str) -> IResult<&str, Mark> {
    let in_name = |c: char| !c.is_control() && !matches!(c, '(' | ')' | '=');
    let inside = recognize((
        verify(take_until(" pid="), |name: &str| {
            !name.is_empty() && name.len() < 200 && name.chars().all(in_name)
        }),
        tag(" pid="),
        digit1,
        opt((tag(", ip="), take_while1(|c: char| c.is_ascii_hexdigit() || matches!(c, '.' | ':')))),
    ));
    let (input, inside) = delimited(char('('), inside, char(')')).parse(input)?;
    let (input, _) = alt((tag(" "), eof)).parse(input)?;
    Ok((input, Mark::of(inside)))
}

/// `[rank3]: ` of torch's own logging, `[default3]:` of its launcher.
fn torch_rank(input: &str) -> IResult<&str, Mark> {
    let rank = recognize((alt((tag("rank"), tag("default"))), digit1));
    let (input, rank) = delimited(char('['), rank, tag("]:")).parse(input)?;
    let (input, _) = opt(char(' ')).parse(input)?;
    Ok((input, Mark::of(rank)))
}

/// `[1,0]<stdout>:`: Open MPI's `--tag-output`.
fn mpi_rank(input: &str) -> IResult<&str, Mark> {
    let (input, rank) =
        delimited(char('['), recognize((digit1, char(','), digit1)), char(']')).parse(input)?;
    let (input, _) = (alt((tag("<stdout>:"), tag("<stderr>:"))), opt(char(' '))).parse(input)?;
    Ok((input, Mark::of(rank)))
}

/// `2025-02-04 21:21:33 ` or `[2025-02-04 21:21:33] ` before a log prefix: a second clock.
fn second_clock(input: &str) -> IResult<&str, Mark> {
    let stamp = || recognize((date, char(' '), time_of_day, fraction));
    let (input, time) = alt((delimited(char('['), stamp(), char(']')), stamp())).parse(input)?;
    let (input, _) = (char(' '), space0, peek(log_stamp)).parse(input)?;
    Ok((input, Mark::at(time)))
}

/// `> `: a quotation in Markdown or mail.
fn markdown_quote(input: &str) -> IResult<&str, Mark> {
    value(Mark::default(), (char('>'), alt((tag(" "), eof, peek(tag(">")), peek(tag("[")))))).parse(input)
}

/// `user@host:~/path$ `, `(venv) user@host:~# `, `PS C:\logs> `, `$ `: the prompt of a shell.
fn shell_prompt(input: &str) -> IResult<&str, Mark> {
    let environment = opt((char('('), word(is_name), tag(") ")));
    let login = (word(is_name), char('@'), word(is_name), char(':'));
    let folder = take_while(|c: char| !c.is_whitespace() && !matches!(c, '$' | '#'));
    let unix = (environment, login, folder, one_of("$#"), char(' '));
    let windows =
        (tag("PS "), satisfy(|c| c.is_ascii_uppercase()), tag(":\\"), take_while(|c| c != '>'), tag("> "));
    alt((value(Mark::default(), unix), value(Mark::default(), windows), value(Mark::default(), tag("$ "))))
        .parse(input)
}

/// `[2026-11-29 13:51:19`, `[18:43:27]` or `[18:43:27 TP`: how a log prefix begins. Leaves what follows.
pub(in crate::input) fn log_stamp(input: &str) -> IResult<&str, ()> {
    let end = |input| value((), peek(one_of("] ,."))).parse(input);
    let tagged = |input| {
        value((), peek(alt((tag("]"), tag(" TP"), tag(" DP"), tag(" PP"), tag(" EP"), tag(" ATTN")))))
            .parse(input)
    };
    let dated = value((), (date, one_of(" T"), time_of_day, end));
    preceded(char('['), alt((dated, value((), (time_of_day, tagged))))).parse(input)
}

/// `2026-11-29T13:51:19.123456789Z`, or with an offset.
fn rfc3339(input: &str) -> IResult<&str, &str> {
    let offset = recognize((one_of("+-"), digits(2, 2), opt(char(':')), digits(2, 2)));
    recognize((date, char('T'), time_of_day, fraction, alt((tag("Z"), offset)))).parse(input)
}

fn date(input: &str) -> IResult<&str, ()> {
    value((), (digits(4, 4), char('-'), digits(2, 2), char('-'), digits(2, 2))).parse(input)
}

fn time_of_day(input: &str) -> IResult<&str, ()> {
    value((), (digits(2, 2), char(':'), digits(2, 2), char(':'), digits(2, 2))).parse(input)
}

fn fraction(input: &str) -> IResult<&str, ()> {
    value((), opt((one_of(".,"), digit1))).parse(input)
}

fn short_number(input: &str) -> IResult<&str, &str> {
    digits(1, 5).parse(input)
}

fn digits<'a>(
    least: usize,
    most: usize,
) -> impl Parser<&'a str, Output = &'a str, Error = nom::error::Error<&'a str>> {
    take_while_m_n(least, most, |c: char| c.is_ascii_digit())
}

/// A word of at most 253 characters, the longest name Kubernetes knows, that begins with a letter or a digit.
fn word<'a>(
    inside: impl Fn(char) -> bool,
) -> impl Parser<&'a str, Output = &'a str, Error = nom::error::Error<&'a str>> {
    verify(take_while_m_n(1, 253, inside), |word: &str| word.starts_with(|c: char| c.is_ascii_alphanumeric()))
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}
