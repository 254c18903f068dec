//! The answer to a what-if: before, after, how many requests fit, and what to mind.

use super::solve::guide_limit;
use super::{Change, Facts, Goal, GraphChoice, PlanError, Projection, project, solve};
use crate::budget::cell::KvType;
use crate::quantity::{GIB, MIB, Quantity, group_digits, mib_text, mib_whole};
use crate::version::Version;

/// Context lengths that people ask for.
const COMMON_LENGTHS: [i128; 4] = [2048, 8192, 32_768, 131_072];
/// The lower end of what SGLang's tuning guide wants free after start-up.
const GUIDE_LOW: i128 = 5 * GIB;
/// The first release that names graph flags by phase.
const PHASE_FLAGS: Version = Version::new(5, 15);

/// A what-if, answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What to change, the goal's solution included.
    pub change: Change,
    /// As it was.
    pub before: Projection,
    /// As it would be.
    pub after: Projection,
    /// Requests at common context lengths.
    pub concurrency: Vec<Concurrency>,
    /// What to mind.
    pub risks: Vec<String>,
    /// The flags to paste.
    pub flags: Vec<String>,
}

/// How many requests of one length run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency {
    /// Tokens of a request, prompt and output.
    pub length: i128,
    /// As it was.
    pub before: i128,
    /// As it would be, at least.
    pub after: i128,
}

/// Answers: the change as it is, or completed so that it meets a goal.
pub fn answer(facts: &Facts, change: &Change, goal: Option<Goal>) -> Result<Answer, PlanError> {
    let before = project(facts, &Change::default())?;
    let (change, after) = match goal {
        Some(goal) => solve(facts, change, goal)?,
        None => (change.clone(), project(facts, change)?),
    };
    let page_after = change.page_size.unwrap_or(facts.page_size);
    let mut lengths: Vec<i128> = COMMON_LENGTHS.to_vec();
    lengths.extend(facts.context_length.map(i128::from));
    lengths.sort_unstable();
    lengths.dedup();
    lengths.retain(|length| facts.context_length.is_none_or(|longest| *length <= i128::from(longest)));
    let concurrency = lengths.into_iter().map(|length| Concurrency {
        length,
        before: requests(before.tokens.0, length, facts.page_size, facts.running),
        after: requests(after.tokens.0, length, page_after, facts.running),
    });
    Ok(Answer {
        concurrency: concurrency.collect(),
        risks: risks(facts, &change, &after),
        flags: change.flags(facts.version >= PHASE_FLAGS),
        change,
        before,
        after,
    })
}

/// Requests of `length` that the pool holds, each in whole pages, and no more than may run.
pub fn requests(tokens: i128, length: i128, page_size: i128, running: Option<i128>) -> i128 {
    let page = page_size.max(1);
    let pages = (length.max(1) + page - 1) / page;
    let held = tokens.max(0) / page / pages;
    running.map_or(held, |running| held.min(running))
}

fn risks(facts: &Facts, change: &Change, after: &Projection) -> Vec<String> {
    let mut risks = Vec::new();
    if after.tokens.1 <= 0 {
        risks.push("SGLang refuses to start: nothing is left for KV".to_string());
    } else if after.tokens.0 <= 0 {
        risks.push("SGLang may refuse to start: hardly anything is left for KV".to_string());
    }
    risks.extend(room_risk(facts, after));
    if let Some(length) = facts.context_length.map(i128::from).filter(|length| after.tokens.0 < *length) {
        risks.push(format!(
            "the pool holds fewer tokens than one request of full length ({})",
            group_digits(length)
        ));
    }
    if let Some(kv) = &change.kv
        && matches!(kv.kv_type, KvType::Fp8 | KvType::Fp4 | KvType::Mxfp8)
        && kv.kv_type != facts.kv_type
    {
        risks.push("a smaller KV type changes the model's answers: check their quality".to_string());
    }
    if change.graphs == GraphChoice::Off {
        risks.push("decoding without graphs is slower".to_string());
    }
    risks
}

fn room_risk(facts: &Facts, after: &Projection) -> Option<String> {
    let left = after.remaining?;
    let card = facts.settings.capacity_mib.map(|mib| i128::from(mib) * MIB);
    let wanted = guide_limit(GUIDE_LOW, card, true);
    if left.high() < 0 {
        Some(format!("start-up runs out of memory: {} MiB are missing", mib_text(-left)))
    } else if left.low() < 0 {
        Some(format!("start-up may run out of memory: {} MiB remain", mib_text(left)))
    } else if left.low() < wanted {
        Some(format!(
            "{} MiB remain for activations under load; SGLang's guide wants {} or more",
            mib_text(left),
            mib_whole(Quantity::exact(wanted))
        ))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_take_whole_pages() {
        assert_eq!(requests(845_985, 8192, 1, Some(4096)), 103);
        assert_eq!(requests(1000, 17, 16, None), 31, "62 pages, two a request");
        assert_eq!(requests(100_000, 10, 1, Some(48)), 48);
        assert_eq!(requests(-5, 10, 0, None), 0);
    }
}
