//! Postings as CSV: one row a posting or gap, for spreadsheets and data frames.
//!
//! Cells are facts without layout: no thousands separators, an empty cell for what is unknown. Words of the log that a
//! spreadsheet would take for a formula get an apostrophe in front.

use crate::analysis::{Analysis, LaunchAnalysis};
use crate::ledger::{Posting, PostingKind};
use crate::quantity::Quantity;
use crate::text;

/// The columns, in order. The README documents each.
const COLUMNS: [&str; 26] = [
    "launch",
    "source",
    "line",
    "rank",
    "device",
    "worker",
    "kind",
    "stage",
    "label",
    "before_mib",
    "before_low_mib",
    "before_high_mib",
    "after_mib",
    "after_low_mib",
    "after_high_mib",
    "used_mib",
    "used_low_mib",
    "used_high_mib",
    "claimed_mib",
    "claimed_low_mib",
    "claimed_high_mib",
    "state",
    "in_balance",
    "elapsed_s",
    "began_at",
    "ended_at",
];

/// The postings of all launches.
///
/// # Errors
/// Where the writer fails, which memory does not.
pub fn csv(analysis: &Analysis) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS)?;
    for (index, launch) in analysis.launches.iter().enumerate() {
        for (rank, ledger) in launch.ledgers.iter().enumerate() {
            for posting in &ledger.postings {
                writer.write_record(row(index, launch, rank, posting))?;
            }
        }
    }
    let bytes = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn row(index: usize, launch: &LaunchAnalysis, rank: usize, posting: &Posting) -> Vec<String> {
    let shown = |what: Option<String>| what.unwrap_or_default();
    let tag = launch.launch.ranks.get(rank).map(|rank| words(&rank.tag.text));
    let device = launch.devices.get(rank).and_then(|choice| choice.device);
    let mut cells = vec![
        index.to_string(),
        words(&launch.launch.source),
        shown(posting.places.first().map(|place| place.line.to_string())),
        shown(tag),
        shown(device.map(|device| device.to_string())),
        posting.worker.name().to_string(),
        match posting.kind {
            PostingKind::Stage => "stage",
            PostingKind::Gap => "gap",
        }
        .to_string(),
        posting.stage.name().to_string(),
        words(&posting.label),
    ];
    for amount in [posting.before, posting.after, posting.used, posting.claimed] {
        cells.extend(mib(amount));
    }
    cells.extend([
        posting.state.name().to_string(),
        posting.in_chain.to_string(),
        shown(posting.elapsed_seconds.map(|seconds| seconds.to_string())),
        shown(posting.began_at.map(|stamp| stamp.to_string())),
        shown(posting.ended_at.map(|stamp| stamp.to_string())),
    ]);
    cells
}

/// Middle, low and high in MiB; three empty cells for an unknown amount.
fn mib(amount: Option<Quantity>) -> [String; 3] {
    let Some(amount) = amount else { return Default::default() };
    [amount.mib(), amount.low_mib(), amount.high_mib()].map(|mib| format!("{mib:.3}"))
}

/// Words of the input: cleaned, and no formula. Spreadsheets look past leading spaces, and take full-width signs too.
fn words(text: &str) -> String {
    let cleaned = text::clean(text, false);
    let formula = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    if cleaned.trim_start().starts_with(formula) { format!("'{cleaned}") } else { cleaned }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::{self, analysed, arguments, launches};

    #[test]
    fn a_row_is_a_posting() {
        let one = launches("server.log", testing::ONE_RANK, Some(arguments(1, 0.85)));
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!("one_rank_csv", csv(&analysed(one, Vec::new())).unwrap());
        });
    }

    #[test]
    fn words_of_the_log_are_no_formulas() {
        for word in ["=1+1", "+1", "-1", "@SUM(A1)", "  =1", "\u{200B}=1", "＝1"] {
            assert!(words(word).starts_with('\''), "{word}");
        }
        assert_eq!(words("Load weight end"), "Load weight end");
        assert_eq!(words("a=1"), "a=1");
    }

    #[test]
    fn every_row_has_every_column() {
        let one = launches("a,b\".log", testing::UNBALANCED, None);
        let text = csv(&analysed(one, Vec::new())).unwrap();
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        assert_eq!(reader.headers().unwrap().len(), COLUMNS.len());
        let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
        assert!(rows.len() > 8 && rows.iter().all(|row| row.get(1) == Some("a,b\".log")));
    }
}
