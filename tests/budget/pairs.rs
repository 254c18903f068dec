//! What `plan` says of one recording, held against recordings that differ from it in one flag. The table of errors stands
//! beside the base recording.

use super::support::{facts, folder, recorded};
use vramledger::budget::cell::KvType;
use vramledger::budget::plan::{Change, FractionChoice, GraphChoice, KvChoice, Projection, project};
use vramledger::quantity::{Decimal, MIB, Quantity, group_digits};

fn pairs() -> Vec<(&'static str, Change)> {
    let none = Change::default();
    let fp8 = KvChoice { name: "fp8_e5m2".into(), kv_type: KvType::Fp8 };
    vec![
        ("pair-f070-0.5.12", Change::fraction(Decimal::new(7, 1))),
        ("pair-cap300k-0.5.12", Change { max_total_tokens: Some(Some(300_000)), ..none.clone() }),
        ("pair-fp8-0.5.12", Change { kv: Some(fp8), ..none.clone() }),
        ("pair-nograph-0.5.12", Change { graphs: GraphChoice::Off, ..none.clone() }),
        (
            "pair-chunk2048-default-f-0.5.12",
            Change { fraction: FractionChoice::Default, chunk: Some(2048), ..none },
        ),
    ]
}

/// One compared term, in its own unit.
struct Term {
    name: &'static str,
    before: i128,
    predicted: (i128, i128),
    measured: (i128, i128),
    /// What the prints of the term leave open.
    resolution: i128,
}

impl Term {
    fn of(name: &'static str, before: Quantity, predicted: Quantity, measured: Quantity) -> Term {
        let mib =
            |amount: Quantity| (amount.low().div_euclid(MIB), (amount.high() + MIB - 1).div_euclid(MIB));
        Term {
            name,
            before: (before.midpoint() + MIB / 2) / MIB,
            predicted: mib(predicted),
            measured: mib(measured),
            resolution: 11,
        }
    }

    fn middle((low, high): (i128, i128)) -> i128 {
        low + (high - low) / 2
    }

    fn error(&self) -> i128 {
        Term::middle(self.predicted) - Term::middle(self.measured)
    }

    fn change(&self) -> i128 {
        Term::middle(self.measured) - self.before
    }

    fn row(&self, pair: &str, flags: &str) -> String {
        let range = |(low, high): (i128, i128)| match low == high {
            true => group_digits(low),
            false => format!("{} to {}", group_digits(low), group_digits(high)),
        };
        let share = match self.change() {
            change if change.abs() <= self.resolution => "no change beyond the print".to_string(),
            change => format!("{:.2} %", 100.0 * self.error() as f64 / change.abs() as f64),
        };
        format!(
            "| {pair} | `{flags}` | {} | {} | {} | {} | {} | {share} |\n",
            self.name,
            group_digits(self.before),
            range(self.predicted),
            range(self.measured),
            group_digits(self.error())
        )
    }
}

fn terms(before: &Projection, predicted: &Projection, measured: &Projection) -> Vec<Term> {
    let mut terms = vec![
        Term {
            name: "tokens",
            before: before.tokens.0,
            predicted: predicted.tokens,
            measured: measured.tokens,
            resolution: 1,
        },
        Term::of("KV cache, MiB", before.kv, predicted.kv, measured.kv),
        Term::of(
            "remaining, MiB",
            before.remaining.unwrap(),
            predicted.remaining.unwrap(),
            measured.remaining.unwrap(),
        ),
    ];
    let graphs = |one: &Projection| one.decode_graphs.unwrap_or(Quantity::ZERO);
    terms.push(Term::of("decode graphs, MiB", graphs(before), graphs(predicted), graphs(measured)));
    terms
}

const HEAD: &str = "# What `vramledger plan` says of this recording, and what came\n\n\
Each row projects this launch under one other flag and compares with the recording that was started with it, on the same\n\
machine, one after another. The error is the middle of the prediction less the middle of the measurement; the last column\n\
holds it against the measured change of the term. Two decimals of GB leave 5 MiB open on either side of each figure. What\n\
remains is less certain than the tokens, because the unused ends of the pool's blocks, up to 2 MiB a buffer, change with\n\
the buffers' size: that is the 100 MiB of `pair-cap300k`.\n\n\
| recording | change | term | here | predicted | measured | error | of the change |\n\
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |\n";

#[test]
fn plans_come_true() {
    let base = recorded("pair-base-0.5.12");
    let base = facts(&base.launches[0]);
    let before = project(base, &Change::default()).unwrap();
    let mut table = HEAD.to_string();
    for (name, change) in pairs() {
        let other = recorded(name);
        let measured = project(facts(&other.launches[0]), &Change::default()).unwrap();
        let predicted = project(base, &change).unwrap();
        assert_eq!(predicted.fraction.to_f64(), measured.fraction.to_f64(), "{name}");
        assert!(
            predicted.tokens.0 <= measured.tokens.0 && measured.tokens.1 <= predicted.tokens.1,
            "{name}: {:?} is not within {:?}",
            measured.tokens,
            predicted.tokens
        );
        for term in terms(&before, &predicted, &measured) {
            let allowed = (term.change().abs() / 20).max(term.resolution);
            assert!(term.error().abs() <= allowed, "{name}, {}: {}", term.name, term.error());
            assert!(
                term.predicted.0 <= term.measured.1 && term.measured.0 <= term.predicted.1,
                "{name}, {}: {:?} and {:?} do not meet",
                term.name,
                term.predicted,
                term.measured
            );
            table.push_str(&term.row(name, &change.flags(false).join(" ")));
        }
    }
    let path = folder("pair-base-0.5.12").join("PLAN.md");
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(kept, table, "the table beside the recording is out of date; it should read:\n{table}");
}
