//! What the findings about a death share: the arithmetic at death, and advice with values.

use super::{Context, budget_dead_zone};
use crate::finding::Finding;
use crate::grammar::sglang::oom::OutOfMemory;
use crate::launch::Launch;
use crate::ledger::Ledger;
use crate::quantity::{MIB, Quantity, mib_text, mib_whole};
use crate::stage::Stage;
use crate::triage::{Diagnosis, Period, Phase, Remedy, Room, Setting};
use crate::version::Version;

/// The last release with the old names of the graph flags, and the first with the new.
const OLD_GRAPH_FLAGS: Version = Version::new(5, 12);
const NEW_GRAPH_FLAGS: Version = Version::new(5, 15);

/// The diagnosis of a launch that device memory ended, where torch's allocator refused, in one of these periods.
pub(super) fn of_torch<'a>(
    context: &Context<'a>,
    periods: &[Period],
) -> Option<(&'a Diagnosis<'a>, &'a OutOfMemory)> {
    let diagnosis = context.diagnosis.filter(|diagnosis| !diagnosis.is_outside_torch())?;
    let sentence = diagnosis.out_of_memory()?;
    periods.contains(&diagnosis.period).then_some((diagnosis, sentence))
}

/// ` of 14 MiB` for a title, where the sentence tells what was missing.
pub(super) fn missing_words(sentence: &OutOfMemory) -> String {
    match sentence.missing().filter(|missing| missing.high() > 0) {
        Some(missing) => format!(": {} MiB missing", mib_text(missing)),
        None => String::new(),
    }
}

/// The arithmetic at death: asked, free, missing, and who held the rest of the card; with the places of the figures.
pub(super) fn at_death(mut finding: Finding, diagnosis: &Diagnosis<'_>, sentence: &OutOfMemory) -> Finding {
    if let Some(tag) = diagnosis.tag.as_ref().filter(|tag| !tag.text.is_empty()) {
        finding = finding.rank(&tag.text);
    }
    let stage = diagnosis.phase.stage();
    if stage != Stage::Other {
        finding = finding.stage(stage);
    }
    finding = finding.at(evidence(diagnosis));
    finding = match (sentence.asked, sentence.free, sentence.missing()) {
        (Some(asked), Some(free), Some(missing)) if missing.high() > 0 => finding
            .sum(format!(
                "asked for {} MiB, {} free: {} MiB missing",
                mib_text(asked),
                mib_text(free),
                mib_text(missing)
            ))
            .amount(missing),
        (Some(asked), Some(free), _) => finding.sum(format!(
            "asked for {} MiB, {} free: enough, but not for this process (a limit, or pieces)",
            mib_text(asked),
            mib_text(free)
        )),
        (Some(asked), None, _) => {
            finding.sum(format!("asked for {} MiB; what was free is not printed", mib_text(asked)))
        }
        _ => last_free(finding, diagnosis),
    };
    if let Some(allowed) = sentence.allowed {
        finding = finding.sum(format!("this process is allowed {} MiB in all", mib_text(allowed)));
    }
    if let Some(line) = holders(sentence) {
        finding = finding.sum(line);
    }
    let others: Vec<String> = sentence
        .others
        .iter()
        .map(|other| match other.used {
            Some(used) => format!("process {} holds {} MiB", other.id, mib_text(used)),
            None => format!("process {} holds memory, how much the driver did not tell", other.id),
        })
        .collect();
    if !others.is_empty() {
        finding = finding.sum(others.join(", "));
    }
    if let Some(frame) = diagnosis.frame {
        let file = frame.file.rsplit(['/', '\\']).next().unwrap_or(frame.file);
        finding = finding.sum(format!(
            "innermost frame of SGLang: {} in {file}, line {} of the input",
            frame.function, frame.line
        ));
    }
    if diagnosis.others_died > 0 {
        finding = finding.sum(format!(
            "{} died too",
            if diagnosis.others_died == 1 {
                "another rank".to_string()
            } else {
                format!("{} other ranks", diagnosis.others_died)
            }
        ));
    }
    finding
}

/// The place of the free figure, else of the asked one: launch-failed quotes the line's beginning.
fn evidence(diagnosis: &Diagnosis<'_>) -> Option<crate::place::Place> {
    let field = ["free", "asked"].into_iter().find_map(|name| diagnosis.cause.field(name));
    field.map(|field| field.place.clone()).or_else(|| diagnosis.last_free.as_ref()?.place.clone())
}

/// What the log said last of the device's free memory.
pub(super) fn last_free(finding: Finding, diagnosis: &Diagnosis<'_>) -> Finding {
    match &diagnosis.last_free {
        Some(free) => finding.sum(format!(
            "{} MiB of the device were free when last printed, by {}",
            mib_text(free.amount),
            free.said_by
        )),
        None => finding,
    }
}

/// Who held the card: free + this process + others + the rest, as far as the sentence tells.
fn holders(sentence: &OutOfMemory) -> Option<String> {
    let (total, free) = (sentence.total?, sentence.free?);
    let torch = sentence.reserved.map(|reserved| {
        let pools = sentence
            .private_pools
            .map(|pools| format!(", {} of it in graphs' private pools", mib_text(pools)))
            .unwrap_or_default();
        format!("PyTorch {}{pools}", mib_text(reserved))
    });
    let Some(process) = sentence.in_use else {
        let torch = torch?;
        return Some(format!(
            "card {} = free {} + {torch} + everything else {} MiB",
            mib_text(total),
            mib_text(free),
            mib_text(total - free - sentence.reserved?)
        ));
    };
    let inside = match (torch, sentence.outside_torch()) {
        (Some(torch), Some(outside)) => format!(" ({torch}; outside it {})", mib_text(outside)),
        _ => String::new(),
    };
    let others = sentence
        .held_by_others()
        .map(|others| format!(" + other processes {}", mib_text(others)))
        .unwrap_or_default();
    let rest = sentence.unaccounted().filter(|rest| rest.magnitude().surely_above(64 * MIB));
    let rest = rest.map(|rest| format!(" + not accounted for {}", mib_text(rest))).unwrap_or_default();
    Some(format!(
        "card {} = free {} + this process {}{inside}{others}{rest} MiB",
        mib_text(total),
        mib_text(free),
        mib_text(process)
    ))
}

/// The room of the dying rank, for what was missing; where nothing tells what was, for anything more than there was.
pub(super) fn room<'a>(context: &Context<'a>, diagnosis: &Diagnosis<'_>, sentence: &OutOfMemory) -> Room<'a> {
    let known = [sentence.missing(), sentence.asked].into_iter().flatten().find(|missing| missing.high() > 0);
    let ledger = diagnosis.rank.and_then(|rank| context.ledgers.get(rank));
    let last = ledger.and_then(Ledger::final_free).or(sentence.free);
    let world = match diagnosis.rank {
        Some(rank) => context.worlds().iter().find(|world| world.ranks.contains(&rank)),
        None => context.worlds().first(),
    };
    let fraction = context.audit.and_then(|audit| audit.fraction.as_ref());
    let budget = world.zip(fraction).and_then(|(world, fraction)| world.budget(fraction));
    Room::new(context.launch, ledger, budget, known.unwrap_or(Quantity::exact(1)), last)
}

/// Advice for what ran out behind the KV pool, ranked by effect: the fraction goes down. Where no fraction works, that.
pub(super) fn more_slack(
    mut finding: Finding,
    context: &Context<'_>,
    diagnosis: &Diagnosis<'_>,
    sentence: &OutOfMemory,
) -> Finding {
    let room = room(context, diagnosis, sentence);
    if budget_dead_zone::death(context).is_some_and(|death| death.shortfall().is_some()) {
        let finding =
            finding.advise("no --mem-fraction-static works, up or down: see budget-dead-zone for what does");
        return ending_others(finding, sentence);
    }
    finding = match room.lower_fraction() {
        Some(remedy) => finding.advise(fraction_words(&room, &remedy)),
        None => finding
            .advise("lower --mem-fraction-static: down, not up; graphs and activations share pre × (1 − f)"),
    };
    for line in other_settings(context.launch, diagnosis.phase, &room) {
        finding = finding.advise(line);
    }
    ending_others(finding, sentence)
}

/// Settings other than the fraction that fit the phase: those with a known effect first, the largest first.
fn other_settings(launch: &Launch, phase: Phase, room: &Room<'_>) -> Vec<String> {
    let mut remedies: Vec<Remedy> = Vec::new();
    let mut unvalued = Vec::new();
    let mut offer = |remedy: Option<Remedy>, otherwise: String| match remedy {
        Some(remedy) => remedies.push(remedy),
        None => unvalued.push(otherwise),
    };
    match phase {
        Phase::Startup(Stage::GraphPrefill, _) => {
            offer(room.prefill_graph_tokens(), format!("or lower {}", prefill_graph_flag(launch)));
        }
        Phase::Startup(stage, _) if stage.is_capture() => {
            offer(room.graph_max_batch(), format!("or lower {}", decode_graph_flag(launch)));
        }
        Phase::Prefill | Phase::Serving => {
            offer(room.chunked_prefill(), "or lower --chunked-prefill-size: it sets the size of the largest activations".into());
        }
        Phase::Decode | Phase::Sampler | Phase::Speculation => {
            offer(
                room.max_running_requests(),
                format!("or lower --max-running-requests to what {} captures: larger batches run eagerly", decode_graph_flag(launch)),
            );
        }
        Phase::Encoder => unvalued.push("or send fewer or smaller images at once: the encoder's memory grows with their size, not with the fraction".into()),
        _ => {}
    }
    if let Some(cap) = room.max_total_tokens() {
        remedies.push(cap);
    }
    remedies.sort_by_key(|remedy| std::cmp::Reverse(remedy.gains.map(Quantity::midpoint)));
    remedies.iter().map(|remedy| words(remedy, launch)).chain(unvalued).collect()
}

/// The fraction that is advised, and what it leaves.
fn fraction_words(room: &Room<'_>, remedy: &Remedy) -> String {
    let Setting::Fraction(value) = remedy.setting else { return String::new() };
    let gains = remedy
        .gains
        .map(|gains| format!(" it leaves {} MiB more for graphs and activations", mib_whole(gains)));
    let kept = room.kv_under(value).map(|rest| format!(", and {} MiB for KV", mib_whole(rest)));
    format!(
        "--mem-fraction-static {value}: down, not up;{}{}",
        gains.unwrap_or_default(),
        kept.unwrap_or_default()
    )
}

/// A setting in words.
fn words(remedy: &Remedy, launch: &Launch) -> String {
    let gains = remedy.gains.map(mib_whole).unwrap_or_default();
    match remedy.setting {
        Setting::Fraction(value) => format!("--mem-fraction-static {value}"),
        Setting::MaxTotalTokens(tokens) => format!(
            "or cap the pool: --max-total-tokens {tokens} leaves {gains} MiB more; unlike the fraction it does not follow the card's size"
        ),
        Setting::GraphMaxBatch(size) => {
            format!(
                "or capture smaller batches: {} {size}, about {gains} MiB by SGLang's own estimate of 2 MiB each",
                decode_graph_flag(launch)
            )
        }
        Setting::PrefillGraphTokens(tokens) => {
            format!("or capture smaller prefills: {} {tokens}", prefill_graph_flag(launch))
        }
        Setting::ChunkedPrefill(size) => {
            format!(
                "or smaller chunks: --chunked-prefill-size {size}, about {gains} MiB by SGLang's own estimate of 1.5 MiB a token"
            )
        }
        Setting::MaxRunningRequests(requests) => {
            format!(
                "or --max-running-requests {requests}, the largest batch with a graph: larger ones run eagerly and allocate anew"
            )
        }
        Setting::TensorParallel(size) => {
            format!("spread the weights: --tp {size} takes about {gains} MiB of them off each card")
        }
    }
}

/// The flag for the largest decode batch to capture, as the release calls it.
fn decode_graph_flag(launch: &Launch) -> &'static str {
    by_release(
        launch,
        "--cuda-graph-max-bs",
        "--cuda-graph-max-bs-decode",
        "--cuda-graph-max-bs (--cuda-graph-max-bs-decode from 0.5.15)",
    )
}

/// The flag for the largest prefill to capture.
fn prefill_graph_flag(launch: &Launch) -> &'static str {
    by_release(
        launch,
        "--piecewise-cuda-graph-max-tokens",
        "--cuda-graph-max-bs-prefill",
        "--piecewise-cuda-graph-max-tokens (--cuda-graph-max-bs-prefill from 0.5.15)",
    )
}

fn by_release(launch: &Launch, old: &'static str, new: &'static str, both: &'static str) -> &'static str {
    if launch.versions.surely_until(OLD_GRAPH_FLAGS) {
        old
    } else if launch.versions.surely_from(NEW_GRAPH_FLAGS) {
        new
    } else {
        both
    }
}

/// Ending the other processes of the sentence, with what it would give.
pub(super) fn ending_others(finding: Finding, sentence: &OutOfMemory) -> Finding {
    // Where this process is not told from the others, one of them may be this one.
    let told_apart = sentence.in_use.is_some();
    match sentence.held_by_others().filter(|held| held.surely_above(0) && told_apart) {
        Some(held) => {
            let ids: Vec<String> = sentence.others.iter().map(|other| other.id.to_string()).collect();
            finding.advise(format!(
                "end the other {} on the card ({}), or use another card: {} MiB",
                if ids.len() == 1 { "process" } else { "processes" },
                ids.join(", "),
                mib_text(held)
            ))
        }
        None => finding,
    }
}

/// What to fetch, where the input holds no start-up: which figures would turn directions into values.
pub(super) fn fetch(finding: Finding, context: &Context<'_>) -> Finding {
    if context.ledgers.iter().any(|ledger| ledger.opening.is_some()) {
        return finding;
    }
    finding.advise(
        "for values, give the log from its start: the lines `server_args=`, `Load weight begin`, `Load weight end`, `Memory pool end`, and nvidia-smi's output \
         of the card",
    )
}
