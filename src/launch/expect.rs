//! Which stages a launch should have printed: by release and arguments, so that *missing*, *disabled*, *not printed by
//! this rank* and *not printed by this release* are told apart.
//!
//! Sources: SGLang 0.1.20 to 0.5.23, `model_runner` and `server_args` (the table of stages that are absent because they
//! are disabled). What arguments leave open is [`Expectation::Unknown`], never a guess.

use super::Launch;
use crate::server_args::{Argument, ServerArgs};
use crate::stage::{RankTag, Stage, Worker};
use crate::version::{Version, VersionRange};

/// Whether a rank should have printed a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expectation {
    /// It should have.
    Printed,
    /// The stage does not happen; the text says why.
    Disabled(String),
    /// The stage happens, but in these releases another rank prints it.
    OtherRankPrints,
    /// No release in the range prints it.
    NotInRelease,
    /// Release or arguments leave it open.
    Unknown,
}

const FIRST_CLAIMED_INIT: Version = Version::post(4, 3, 4);
const FIRST_CAPTURE_LEVELS: Version = Version::post(4, 3, 4);
const FILTERED_FROM: Version = Version::post(4, 6, 5);
const FILTERED_UNTIL: Version = Version::new(5, 3);
const FIRST_PIECEWISE: Version = Version::post(5, 6, 2);
const PIECEWISE_DEFAULT: Version = Version::new(5, 10);
const FIRST_PREFILL_BACKEND: Version = Version::new(5, 15);

/// What to expect of `stage` of `worker` from the rank with this tag.
pub fn expectation(launch: &Launch, tag: &RankTag, stage: Stage, worker: Worker) -> Expectation {
    if worker == Worker::Draft {
        return draft(launch, stage);
    }
    let versions = launch.versions;
    let happens = match stage {
        Stage::Weights | Stage::KvCache => Expectation::Printed,
        Stage::DistributedInit if versions.surely_from(FIRST_CLAIMED_INIT) => Expectation::Printed,
        Stage::DistributedInit if versions.last < FIRST_CLAIMED_INIT => Expectation::NotInRelease,
        Stage::GraphDecode => decode_graphs(launch),
        Stage::GraphPrefill => prefill_graphs(launch),
        _ => Expectation::Unknown,
    };
    match (happens, prints(versions, tag)) {
        (Expectation::Printed, Some(false)) => Expectation::OtherRankPrints,
        (Expectation::Printed, None) => Expectation::Unknown,
        (happens, _) => happens,
    }
}

/// Whether this rank prints the model runner's lines: from 0.4.6 to 0.5.3 a logging filter lets only TP rank 0 do so.
/// `None` where only some of the possible releases filter.
fn prints(versions: VersionRange, tag: &RankTag) -> Option<bool> {
    let filtered = VersionRange { first: FILTERED_FROM, last: FILTERED_UNTIL };
    if tag.coordinates.tp.is_none_or(|tp| tp == 0) || versions.intersect(filtered).is_none() {
        return Some(true);
    }
    (versions.surely_from(FILTERED_FROM) && versions.surely_until(FILTERED_UNTIL)).then_some(false)
}

fn decode_graphs(launch: &Launch) -> Expectation {
    let Some(arguments) = launch.args() else {
        return Expectation::Unknown;
    };
    if let Some(reason) = graphs_off(arguments, "decode") {
        return Expectation::Disabled(reason);
    }
    if arguments.flag("is_embedding") == Some(true) {
        return Expectation::Disabled("is_embedding=True: no generation, no decode graphs".into());
    }
    let speculative = speculative(arguments);
    if arguments.flag("disable_cuda_graph").is_none()
        || speculative != Some(false) && launch.versions.surely_from(FIRST_PREFILL_BACKEND)
    {
        // Speculative targets capture `target verify` there instead.
        return Expectation::Unknown;
    }
    match arguments.text("device") {
        Some("cuda") | None if launch.versions.surely_from(FIRST_CAPTURE_LEVELS) => Expectation::Printed,
        _ => Expectation::Unknown,
    }
}

fn prefill_graphs(launch: &Launch) -> Expectation {
    let versions = launch.versions;
    if versions.last < FIRST_PIECEWISE {
        return Expectation::NotInRelease;
    }
    let off = launch
        .notes
        .iter()
        .chain(launch.ranks.iter().flat_map(|rank| rank.events.iter().map(|event| &event.event)));
    let note = off.into_iter().find(|event| {
        event.template.is_some_and(|row| matches!(row.id, "graph.pcg.off" | "graph.prefill.off"))
    });
    if let Some(note) = note {
        return Expectation::Disabled(note.text.to_string());
    }
    let Some(arguments) = launch.args() else {
        return Expectation::Unknown;
    };
    if let Some(reason) = graphs_off(arguments, "prefill") {
        return Expectation::Disabled(reason);
    }
    if arguments.flag("disable_piecewise_cuda_graph") == Some(true) {
        return Expectation::Disabled("disable_piecewise_cuda_graph=True".into());
    }
    if versions.last < PIECEWISE_DEFAULT && arguments.flag("enable_piecewise_cuda_graph") == Some(false) {
        return Expectation::Disabled("enable_piecewise_cuda_graph=False".into());
    }
    // Layer types, LoRA and multimodal models switch it off too, and not always in words.
    Expectation::Unknown
}

/// Why graphs of a phase are off by the arguments, if they are.
fn graphs_off(arguments: &ServerArgs, phase: &str) -> Option<String> {
    if arguments.flag("disable_cuda_graph") == Some(true) {
        return Some("disable_cuda_graph=True".into());
    }
    let flag = format!("disable_{phase}_cuda_graph");
    if arguments.flag(&flag) == Some(true) {
        return Some(format!("{flag}=True"));
    }
    let backend = format!("cuda_graph_backend_{phase}");
    if arguments.text(&backend) == Some("disabled") {
        return Some(format!("{backend}='disabled'"));
    }
    let Some(Argument::Record(config)) = arguments.get("cuda_graph_config") else {
        return None;
    };
    let phases = config.iter().find(|(name, _)| name == phase).map(|(_, settings)| settings);
    let Some(Argument::Record(settings)) = phases else {
        return None;
    };
    let disabled =
        settings.iter().any(|(name, value)| name == "backend" && *value == Argument::Text("disabled".into()));
    disabled.then(|| format!("cuda_graph_config.{phase}.backend='disabled'"))
}

fn draft(launch: &Launch, stage: Stage) -> Expectation {
    match launch.args().and_then(speculative) {
        Some(false) => Expectation::Disabled("no draft model (speculative_algorithm)".into()),
        Some(true) if matches!(stage, Stage::Weights | Stage::KvCache) => Expectation::Printed,
        _ => Expectation::Unknown,
    }
}

/// Whether a draft model is loaded. `None` where the arguments don't hold the key.
fn speculative(arguments: &ServerArgs) -> Option<bool> {
    match arguments.get("speculative_algorithm")? {
        Argument::None => Some(false),
        Argument::Text(algorithm) => Some(!algorithm.eq_ignore_ascii_case("NGRAM")),
        _ => None,
    }
}
