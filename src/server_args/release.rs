//! Dates a launch by its arguments: which releases print such a line.

use super::keys::KEYS;
use super::{Form, ServerArgs};
use crate::version::{KNOWN, Version, VersionRange};

/// The first release that prints all its arguments.
const FIRST_FULL: Version = Version::new(2, 15);

/// The known releases that would print these arguments.
///
/// Three kinds of evidence count: the form of the line; each argument present, which only some releases have; and, where
/// the line is whole, each argument absent, which its releases would have printed. A whole line is one with its
/// closing bracket that holds every argument common to all full lines, so an excerpt is never taken for one.
///
/// Of an unmodified release, all evidence agrees and the answer is the intersection. A fork may backport an argument or
/// drop one; then the answer spans the releases that the most evidence agrees with. Arguments that no evidence speaks
/// of (none known here) give [`VersionRange::ALL`].
pub fn version_range(arguments: &ServerArgs) -> VersionRange {
    let evidence = evidence(arguments);
    let agreeing = |version: Version| evidence.iter().filter(|allowed| allowed.contains(version)).count();
    let most = KNOWN.into_iter().map(agreeing).max().unwrap_or(0);
    let best = || KNOWN.into_iter().filter(|version| agreeing(*version) == most);
    match (best().next(), best().next_back()) {
        (Some(first), Some(last)) => VersionRange { first, last },
        _ => VersionRange::ALL,
    }
}

/// The releases that one observation speaks for.
enum Evidence {
    /// Those inside the range.
    Within(VersionRange),
    /// Those outside it.
    Outside(VersionRange),
}

impl Evidence {
    fn contains(&self, version: Version) -> bool {
        let within = |range: &VersionRange| range.first <= version && version <= range.last;
        match self {
            Evidence::Within(range) => within(range),
            Evidence::Outside(range) => !within(range),
        }
    }
}

fn evidence(arguments: &ServerArgs) -> Vec<Evidence> {
    let whole = is_whole(arguments);
    let keys = KEYS.iter().filter_map(|key| match arguments.get(key.name) {
        Some(_) => Some(Evidence::Within(key.range)),
        None => whole.then_some(Evidence::Outside(key.range)),
    });
    arguments.form.map(|form| Evidence::Within(form_range(form))).into_iter().chain(keys).collect()
}

/// The releases that print a form.
fn form_range(form: Form) -> VersionRange {
    match form {
        Form::Flags => VersionRange { first: Version::new(1, 20), last: Version::new(1, 20) },
        Form::Repr => VersionRange { first: FIRST_FULL, last: Version::new(5, 18) },
        Form::Dict => VersionRange { first: Version::new(5, 20), last: VersionRange::ALL.last },
    }
}

/// Whether the line holds all that its release prints.
fn is_whole(arguments: &ServerArgs) -> bool {
    let in_all = |range: VersionRange| range.first <= FIRST_FULL && range.last == VersionRange::ALL.last;
    matches!(arguments.form, Some(Form::Repr | Form::Dict))
        && !arguments.cut
        && KEYS.iter().filter(|key| in_all(key.range)).all(|key| arguments.get(key.name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server_args::{Argument, parse};

    /// Lines of real servers.
    const LINE_0_5_12: &str = include_str!("testdata/0.5.12.txt");
    const LINE_0_5_15: &str = include_str!("testdata/0.5.15.txt");

    fn range(line: &str) -> String {
        version_range(&parse(line).unwrap()).to_string()
    }

    #[test]
    fn real_lines_date_themselves_to_one_release() {
        assert_eq!(range(LINE_0_5_12), "0.5.12");
        assert_eq!(range(LINE_0_5_15), "0.5.15");
    }

    #[test]
    fn real_lines_are_read_whole() {
        for (line, keys) in [(LINE_0_5_12, 381), (LINE_0_5_15, 422)] {
            let arguments = parse(line).unwrap();
            assert!(!arguments.cut);
            assert_eq!(arguments.entries().len(), keys);
            assert_eq!(arguments.float("mem_fraction_static"), Some(0.85));
            assert_eq!(arguments.integer("chunked_prefill_size"), Some(8192));
        }
    }

    #[test]
    fn a_cut_line_narrows_by_presence_only() {
        let at = LINE_0_5_12.find("enable_breakable_cuda_graph").unwrap();
        assert_eq!(range(&LINE_0_5_12[..at]), "0.5.12");
        let at = LINE_0_5_12.find("attn_cp_size").unwrap();
        assert_eq!(
            range(&LINE_0_5_12[..at]),
            "0.5.12 to 0.5.18",
            "prefill_only_disable_kv_cache came in 0.5.12"
        );
        assert_eq!(range("ServerArgs(model_path='a', tp_size=1, mem_"), "0.2.15 to 0.5.18");
    }

    #[test]
    fn an_excerpt_with_its_bracket_is_not_a_whole_line() {
        assert_eq!(range("ServerArgs(model_path='a', cuda_graph_max_bs=8)"), "0.3.6.post3 to 0.5.12");
        assert_eq!(range("{'model_path': 'a', 'tp_size': 8}"), "0.5.20 or later");
        assert_eq!(range("disable_flashinfer=False, disable_radix_cache=False, "), "0.1.20");
    }

    #[test]
    fn a_backported_argument_does_not_move_the_release() {
        let mut entries = parse(LINE_0_5_12).unwrap().entries().to_vec();
        entries.push(("mm_feature_transport".to_owned(), Argument::None));
        let fork = ServerArgs { entries, form: Some(Form::Repr), cut: false };
        assert_eq!(version_range(&fork).to_string(), "0.5.12");
    }

    #[test]
    fn arguments_that_say_nothing_leave_everything_open() {
        assert_eq!(version_range(&ServerArgs::default()), VersionRange::ALL);
        let unknown = ServerArgs::new(vec![("no_such_argument".to_owned(), Argument::None)], false);
        assert_eq!(version_range(&unknown), VersionRange::ALL);
    }
}
