//! The balance, spelt out: the opening less everything that was posted, against the last figure printed.

use super::names::posting_name;
use super::page::{Page, Tone};
use crate::ledger::Ledger;
use crate::quantity::{mib_text, mib_whole};

/// What stands before the sum; further lines are indented by as much.
const MARK: &str = "  balance  ";

/// What every format says where no balance is possible.
pub(super) const TOO_FEW: &str = "too few figures to balance";

/// A balance in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    /// The sum, term by term, its result last.
    pub(super) sum: Vec<String>,
    /// Where it breaks; `None` where it holds.
    pub(super) broken: Option<String>,
}

impl Told {
    /// The outcome, with its sign.
    pub(super) fn outcome(&self) -> &'static str {
        if self.broken.is_none() { "✔ proved" } else { "✘ does not balance" }
    }
}

/// Writes the balance of one ledger.
pub(super) fn write(page: &mut Page, ledger: &Ledger) {
    let Some(told) = told(ledger) else {
        return page.line([(Tone::Dim, format!("  {TOO_FEW}"))]);
    };
    page.flow_behind((Tone::Dim, MARK), Tone::Plain, &told.sum, " ");
    let tone = if told.broken.is_none() { Tone::Good } else { Tone::Error };
    page.append(tone, told.outcome(), MARK.len());
    if let Some(broken) = &told.broken {
        page.prose_behind((Tone::Plain, &" ".repeat(MARK.len())), Tone::Plain, broken);
    }
}

/// The balance of a ledger. `None` where it has too few figures.
pub(super) fn told(ledger: &Ledger) -> Option<Told> {
    let (opening, closing, holds) = (ledger.opening?, ledger.closing?, ledger.balance.holds?);
    let mut pieces = vec![mib_whole(opening)];
    let mut expected = opening;
    for posting in ledger.postings.iter().filter(|posting| posting.in_chain) {
        let Some(used) = posting.used else { continue };
        expected = expected - used;
        let sign = if used.midpoint() < 0 { '+' } else { '−' };
        pieces.push(format!("{sign} {}", mib_whole(if used.midpoint() < 0 { -used } else { used })));
    }
    pieces.push(format!("= {}", mib_text(expected)));
    let printed = mib_whole(closing);
    // Rounding of the terms may move the sum by a few MiB: then both are shown.
    pieces.extend((printed != mib_whole(expected)).then(|| format!("(printed {printed})")));
    Some(Told { sum: pieces, broken: (!holds).then(|| broken(ledger)) })
}

/// Where no true values are left, and by how much.
fn broken(ledger: &Ledger) -> String {
    let posting = ledger.balance.broken_at.and_then(|index| ledger.postings.get(index));
    let Some(posting) = posting else {
        let residual = ledger.balance.residual.map(mib_text).unwrap_or_default();
        return format!("{residual} MiB are left over");
    };
    let apart = posting.difference().zip(posting.claimed).map(|(difference, claimed)| {
        format!(
            ": free memory fell by {}, the log claims {}, {} MiB apart",
            mib_text(difference),
            mib_text(claimed),
            mib_text((difference - claimed).magnitude())
        )
    });
    let name = posting_name(posting);
    format!("at {name}{}", apart.unwrap_or_else(|| ": its first level is not what was left before".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing;

    fn written(ledger: &Ledger) -> String {
        let mut page = Page::new(80, false);
        write(&mut page, ledger);
        page.finish(false)
    }

    #[test]
    fn a_wrong_claim_is_named_with_its_sum() {
        let launch = testing::launch(&[(
            "",
            &[
                "Load weight begin. avail mem=100.00 GB",
                "Load weight end. avail mem=90.00 GB, mem usage=11.00 GB",
            ],
        )]);
        let text = written(&Ledger::of(&launch.ranks[0]));
        assert!(text.starts_with("  balance  102,400 − 10,240 = 92,160 ± 15  ✘ does not balance"), "{text}");
        assert!(
            text.contains("at weights: free memory fell by 10,240 ± 10, the log claims 11,264"),
            "{text}"
        );
    }

    #[test]
    fn one_figure_is_too_few() {
        let launch = testing::launch(&[("", &["Init torch distributed ends. mem usage=0.09 GB"])]);
        assert_eq!(written(&Ledger::of(&launch.ranks[0])), "  too few figures to balance\n");
    }

    #[test]
    fn memory_given_back_is_added() {
        let launch = testing::launch(&[(
            "",
            &[
                "Load weight begin. avail mem=100.00 GB",
                "Load weight end. avail mem=90.00 GB, mem usage=10.00 GB",
                "Capture cuda graph begin. avail mem=92.00 GB",
            ],
        )]);
        let text = written(&Ledger::of(&launch.ranks[0]));
        assert!(text.contains("102,400 − 10,240 + 2,048 = 94,208"), "{text}");
    }
}
