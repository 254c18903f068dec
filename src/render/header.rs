//! Who and what: source, release, model, layout, and the devices that the ranks ran on.

use super::names::{counted, duration, outcome, rank_names};
use super::page::{Page, Tone};
use super::verdict::origin;
use super::{View, names};
use crate::launch::Launch;
use crate::quantity::mib_whole;
use crate::reconcile::{BridgeTerm, DeviceBasis};
use crate::server_args::Argument;
use crate::version::VersionRange;

/// Rank sizes of the arguments: key and the name that SGLang gives it.
const SIZES: [(&str, &str); 4] = [("tp_size", "TP"), ("pp_size", "PP"), ("dp_size", "DP"), ("ep_size", "EP")];

/// Writes the header of one launch.
pub(super) fn write(page: &mut Page, view: &View<'_>) {
    write_name(page, view);
    page.pieces_behind((Tone::Plain, ""), Tone::Plain, &layout(view));
    for line in devices(view) {
        page.pieces_behind((Tone::Dim, ""), Tone::Dim, &line);
    }
}

/// Parallelism, fraction, how it ended.
pub(super) fn layout(view: &View<'_>) -> Vec<String> {
    let launch = &view.launch.launch;
    let mut layout = sizes(launch);
    layout.extend(fraction(launch));
    layout.push(outcome(launch));
    layout.extend((launch.retractions > 0).then(|| {
        counted(usize::try_from(launch.retractions).unwrap_or(usize::MAX), "retraction", "retractions")
    }));
    layout
}

/// Writes the header's first line: which launch this is.
pub(super) fn write_name(page: &mut Page, view: &View<'_>) {
    page.pieces_behind((Tone::Plain, ""), Tone::Strong, &name(view));
}

/// Source, release and model.
pub(super) fn name(view: &View<'_>) -> Vec<String> {
    let launch = &view.launch.launch;
    let source = if view.analysis.launches.len() > 1 {
        origin(view.launch)
    } else if &*launch.source == "-" {
        "standard input".to_string()
    } else {
        launch.source.to_string()
    };
    let mut pieces = vec![source, release(launch)];
    pieces.extend(model(launch));
    pieces
}

/// The release, and what it was read from.
fn release(launch: &Launch) -> String {
    if launch.versions == VersionRange::ALL {
        return "SGLang, release unknown".into();
    }
    let from = if launch.arguments.is_some() { "wording and arguments" } else { "wording" };
    format!("SGLang {} (by {from})", launch.versions)
}

/// The model: the last part of its path, and the classes that were loaded.
pub(super) fn model(launch: &Launch) -> Option<String> {
    let path = launch.args().and_then(|arguments| arguments.text("model_path"));
    let name = path.and_then(|path| path.rsplit(['/', '\\']).find(|part| !part.is_empty()));
    let classes = launch.model_classes().join(" + ");
    match (name, classes.is_empty()) {
        (Some(name), true) => Some(name.to_string()),
        (Some(name), false) => Some(format!("{name} ({classes})")),
        (None, false) => Some(classes),
        (None, true) => None,
    }
}

/// Parallelism by the arguments, else by the tags. Sizes of one say nothing, but TP 1 says that there is no other.
fn sizes(launch: &Launch) -> Vec<String> {
    let size = |key: &str| launch.args().and_then(|arguments| arguments.integer(key));
    let known: Vec<String> = SIZES
        .iter()
        .filter_map(|(key, name)| Some((*key, *name, size(key)?)))
        .filter(|(key, _, size)| *size > 1 || *key == "tp_size")
        .map(|(_, name, size)| format!("{name} {size}"))
        .collect();
    if !known.is_empty() {
        return known;
    }
    let seen = launch.ranks.len();
    let tagged = launch.ranks.iter().any(|rank| !rank.tag.text.is_empty());
    tagged.then(|| format!("{} seen", counted(seen, "rank", "ranks"))).into_iter().collect()
}

fn fraction(launch: &Launch) -> Option<String> {
    match launch.args()?.get("mem_fraction_static")? {
        Argument::Float(fraction) => Some(format!("mem_fraction_static {fraction}")),
        Argument::Integer(fraction) => Some(format!("mem_fraction_static {fraction}")),
        _ => Some("mem_fraction_static by default".into()),
    }
}

/// One line for each kind of card, or each rank whose card is unclear; ranks with equal lines share one.
pub(super) fn devices(view: &View<'_>) -> Vec<Vec<String>> {
    let mut lines: Vec<(Vec<String>, Vec<u32>, Vec<usize>)> = Vec::new();
    for rank in 0..view.launch.launch.ranks.len() {
        let Some((device, facts)) = device(view, rank) else { continue };
        // Only the newest lines are compared, so that a launch of thousands of odd ranks stays cheap.
        match lines.iter_mut().rev().take(16).find(|(known, ..)| *known == facts) {
            Some((_, devices, ranks)) => {
                devices.extend(device.filter(|device| !devices.contains(device)));
                ranks.push(rank);
            }
            None => lines.push((facts, device.into_iter().collect(), vec![rank])),
        }
    }
    let alone = lines.len() == 1;
    let told = |(facts, devices, ranks): (Vec<String>, Vec<u32>, Vec<usize>)| {
        let ranks = rank_names(&view.launch.launch, &ranks).filter(|_| !alone || devices.is_empty());
        let cards = (!devices.is_empty()).then(|| format!("GPU {}", numbers(&devices)));
        let lead = match (ranks, cards) {
            (Some(ranks), Some(cards)) => format!("{ranks} on {cards}"),
            (ranks, cards) => ranks.or(cards).unwrap_or_default(),
        };
        [lead].into_iter().filter(|lead| !lead.is_empty()).chain(facts).collect()
    };
    lines.into_iter().map(told).collect()
}

/// What is known of a rank's device. `None` where nothing is.
fn device(view: &View<'_>, rank: usize) -> Option<(Option<u32>, Vec<String>)> {
    let choice = view.launch.devices.get(rank)?;
    if let Some(tie) = &choice.tie {
        let words = format!("device unclear: GPU {} fit equally well", numbers(&tie.devices));
        return Some((None, vec![words]));
    }
    let device = choice.device?;
    let Some(sample) = view.sample(rank) else {
        let words = "numbered by the arguments, no sample of it in the input";
        return Some((Some(device), vec![words.into()]));
    };
    let reconciliation = view.analysis.reconciliation(view.index, rank);
    let mut facts: Vec<String> = sample.name.iter().cloned().collect();
    let reserve = reconciliation
        .and_then(|one| one.amount(BridgeTerm::Reserve))
        .filter(|reserve| reserve.high() > 0)
        .map(|reserve| format!(", of which the driver keeps {}", mib_whole(reserve)))
        .unwrap_or_default();
    facts.extend(sample.total.map(|total| format!("{} MiB{reserve}", mib_whole(total))));
    let moment = if view.launch.launch.ready.is_some() { "ready" } else { "the last line" };
    let taken = match reconciliation.and_then(|one| one.seconds_apart) {
        Some(seconds) if seconds >= 0.0 => format!(", taken {} after {moment}", duration(seconds)),
        Some(seconds) => format!(", taken {} before {moment}", duration(seconds)),
        None => String::new(),
    };
    facts.push(format!("{}{taken}", sample.place.source));
    facts.extend(basis(choice.basis).map(str::to_string));
    Some((Some(device), facts))
}

fn basis(basis: Option<DeviceBasis>) -> Option<&'static str> {
    match basis? {
        DeviceBasis::Match => None,
        DeviceBasis::Argument => Some("device by the arguments"),
        DeviceBasis::Option => Some("device by --map"),
        DeviceBasis::Process => Some("device by its process's name"),
        DeviceBasis::Pid => Some("device by the process's id"),
        DeviceBasis::Communicator => Some("device by NCCL's line"),
    }
}

/// Numbers, runs drawn together: `0–7`, `0, 2`.
fn numbers(devices: &[u32]) -> String {
    let mut sorted = devices.to_vec();
    sorted.sort_unstable();
    match sorted.as_slice() {
        [first, .., last] if sorted.len() > 2 && (last - first) as usize == sorted.len() - 1 => {
            format!("{first}–{last}")
        }
        _ => names::listed(sorted.iter().map(u32::to_string)),
    }
}
