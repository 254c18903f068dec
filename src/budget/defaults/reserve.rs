//! The default fraction: a rule applied to the settings, with every part of the reservation named.

use super::rules::{self, Formula, Multimodal, PrefillGraphs, Rule};
use super::{DefaultFraction, Disaggregation, Factor, Settings, Speculation, Term, vision_factor};
use super::{default_chunked_prefill_size, default_graph_max_batch, prefill_graph_sizes};
use crate::budget::python::round_to_3;
use crate::quantity::{MIB, Quantity};
use crate::version::Version;

/// AITER with contexts above 8192 multiplies the fraction by this from 0.4.8 on, whoever chose the fraction.
const AITER_FACTOR: f64 = 0.85;
/// The first release that applies it before the `server_args=` line is printed.
const AITER_IN_ARGUMENTS: Version = Version::new(5, 6);

/// The fraction that SGLang chooses when `--mem-fraction-static` is not given (`ServerArgs.__post_init__` up to 0.5.1,
/// `_handle_gpu_memory_settings` later, `arg_groups/memory_hook.py` from 0.5.20).
pub fn default_fraction(settings: &Settings) -> DefaultFraction {
    let era = rules::of(settings.version);
    let mut reservation = Reservation::default();
    let rounded = match &era.rule {
        Rule::Table(steps) => rules::step(steps, settings.tp),
        Rule::TableThenLargeCards(steps) => large_cards(settings, steps),
        Rule::SizeClasses => size_classes(settings, &mut reservation),
        Rule::Formula(formula) => from_formula(settings, formula, &mut reservation),
    };
    let capacity = settings.capacity_mib.map(f64::from);
    if reservation.terms.is_empty()
        && let Some(capacity) = capacity
    {
        reservation.add("everything but weights and KV cache", capacity * (1.0 - rounded));
    }
    let mut fraction = Adjusted { fraction: rounded, printed: rounded, factors: Vec::new() };
    multimodal(settings, era.multimodal, &mut fraction, &mut reservation);
    aiter(settings, &mut fraction, &mut reservation);
    DefaultFraction {
        fraction: fraction.fraction,
        printed: fraction.printed,
        reserved: capacity.map(|_| reservation.terms.iter().map(|term| term.amount).sum()),
        terms: if capacity.is_some() { reservation.terms } else { Vec::new() },
        factors: fraction.factors,
        rule: era.words,
    }
}

/// MiB kept out of the budget, and what for. SGLang adds them as Python numbers; all are multiples of 0.1 MiB.
#[derive(Default)]
struct Reservation {
    mib: f64,
    terms: Vec<Term>,
}

impl Reservation {
    fn add(&mut self, label: &'static str, mib: f64) {
        if mib != 0.0 {
            let bytes = mib * MIB as f64;
            let amount = Quantity::between(bytes.floor() as i128, bytes.ceil() as i128);
            self.mib += mib;
            self.terms.push(Term { label, amount });
        }
    }

    fn fraction_of(&self, capacity: f64) -> f64 {
        round_to_3((capacity - self.mib) / capacity)
    }
}

/// A fraction on its way through the factors.
struct Adjusted {
    fraction: f64,
    printed: f64,
    factors: Vec<Factor>,
}

impl Adjusted {
    fn multiply(&mut self, label: &'static str, factor: f64, in_arguments: bool) {
        self.fraction *= factor;
        if in_arguments {
            self.printed *= factor;
        }
        self.factors.push(Factor { label, factor });
    }
}

/// 0.4.6: a table up to 80 GiB; above 96 GiB the slack of a 48 GiB smaller card, but at least 18 GiB. Not rounded.
fn large_cards(settings: &Settings, steps: rules::Steps) -> f64 {
    let Some(capacity) = settings.capacity_mib.map(f64::from) else { return rules::SINGLE_CARD };
    let fraction = if capacity <= 81920.0 {
        rules::step(steps, settings.tp.saturating_mul(settings.pp))
    } else {
        rules::SINGLE_CARD
    };
    if capacity > 98304.0 {
        (fraction + 49152.0 * (1.0 - fraction) / capacity).min((capacity - 18432.0) / capacity)
    } else {
        fraction
    }
}

/// 0.4.8 to 0.5.1: a reservation by the size of the card.
fn size_classes(settings: &Settings, reservation: &mut Reservation) -> f64 {
    let Some(capacity) = settings.capacity_mib.map(f64::from) else { return rules::SINGLE_CARD };
    let parallel = settings.parallel_size();
    let base = if capacity < 35.0 * 1024.0 {
        (2.8 + parallel / 10.0) * 1024.0
    } else if capacity < 90.0 * 1024.0 {
        (9.5 + parallel / 2.0) * 1024.0
    } else if capacity < 160.0 * 1024.0 {
        (12.0 + parallel / 2.0) * 1024.0
    } else {
        32.0 * 1024.0
    };
    reservation.add("activations and graphs, by size class", base);
    if settings.speculation != Speculation::None {
        reservation.add("draft model and its graphs", 2048.0);
    }
    if settings.dp_attention {
        reservation.add("DP attention", 4096.0);
    }
    reservation.fraction_of(capacity)
}

/// 0.5.3 and later: a reservation from what will be computed and captured.
fn from_formula(settings: &Settings, formula: &Formula, reservation: &mut Reservation) -> f64 {
    if formula.breakable_and_post_capture && settings.post_capture {
        reservation.add("floor under post-capture sizing", 1536.0);
        reservation.add("parallel size", settings.parallel_size() / 8.0 * 1024.0);
    } else {
        computed_terms(settings, formula, reservation);
    }
    match settings.capacity_mib.map(f64::from) {
        Some(capacity) => reservation.fraction_of(capacity),
        None => formula.unknown_capacity,
    }
}

fn computed_terms(settings: &Settings, formula: &Formula, reservation: &mut Reservation) {
    reservation.add("fixed data, such as attention workspaces", 512.0);
    reservation.add("activations", 1.5 * activation_tokens(settings, formula.by_role) as f64);
    reservation.add("parallel size", settings.parallel_size() / 8.0 * 1024.0);
    decode_graph_terms(settings, formula, reservation);
    prefill_graph_terms(settings, formula, reservation);
    let large = settings.capacity_mib.is_some_and(|capacity| capacity > 60 * 1024);
    if large && reservation.mib < 10240.0 {
        reservation.add("floor of 10 GiB on cards above 60 GiB", 10240.0 - reservation.mib);
    }
    match settings.speculation {
        Speculation::None | Speculation::Ngram => {}
        Speculation::Standalone => reservation.add("draft model and its graphs", formula.standalone_mib),
        Speculation::Eagle => reservation.add("draft model and its graphs", formula.draft_head_mib),
    }
    if formula.prefill_graphs == PrefillGraphs::QuarterMibPerToken && settings.prefill_graphs {
        reservation.add("prefill graphs", prefill_graph_tokens(settings).div_euclid(4) as f64);
    }
    if formula.by_role && settings.deepep && decodes_with_graphs(settings) {
        reservation.add("DeepEP buffers", 2048.0);
    }
    if formula.xpu && settings.xpu {
        reservation.add("oneDNN scratch space", 2048.0);
    }
}

/// The tokens that activations are sized by: a decode node's batch, or the chunk.
pub(in crate::budget) fn activation_tokens(settings: &Settings, by_role: bool) -> i64 {
    if by_role && settings.disaggregation == Disaggregation::Decode {
        let requests = settings.max_running_requests.or(graph_max_batch(settings)).unwrap_or(1);
        let draft_tokens = settings.draft_tokens.unwrap_or(1).max(1);
        return i64::from(requests.max(1)).saturating_mul(i64::from(draft_tokens)).max(2048);
    }
    match chunk(settings) {
        chunk if chunk > 0 => chunk.max(2048),
        _ => settings.max_prefill_tokens.max(2048),
    }
}

fn chunk(settings: &Settings) -> i64 {
    settings.chunked_prefill_size.or_else(|| default_chunked_prefill_size(settings)).unwrap_or(0)
}

fn graph_max_batch(settings: &Settings) -> Option<u32> {
    settings.graph_max_batch.or_else(|| default_graph_max_batch(settings))
}

fn decodes_with_graphs(settings: &Settings) -> bool {
    settings.disaggregation != Disaggregation::Prefill && settings.decode_graphs
}

fn decode_graph_terms(settings: &Settings, formula: &Formula, reservation: &mut Reservation) {
    let batch = f64::from(graph_max_batch(settings).unwrap_or(0));
    if !formula.by_role || decodes_with_graphs(settings) {
        reservation.add("decode graphs", 2.0 * batch);
    }
    if settings.dp_attention && !(formula.by_role && settings.disaggregation == Disaggregation::Prefill) {
        let per_batch = if batch > 300.0 { 4.5 } else { 3.0 };
        reservation.add("DP attention", per_batch * batch * f64::from(settings.dp));
    }
}

fn prefill_graph_terms(settings: &Settings, formula: &Formula, reservation: &mut Reservation) {
    let captured =
        settings.prefill_graphs && !(formula.by_role && settings.disaggregation == Disaggregation::Decode);
    let derived = || prefill_graph_sizes(settings.version, prefill_graph_tokens(settings));
    let per_size = 8.0 * settings.prefill_graph_sizes.unwrap_or_else(derived) as f64;
    match formula.prefill_graphs {
        _ if !captured => return,
        PrefillGraphs::None | PrefillGraphs::QuarterMibPerToken => return,
        PrefillGraphs::EightMibPerSizeOrMla if settings.mla => {
            reservation.add("prefill graphs (MLA)", 1536.0)
        }
        PrefillGraphs::EightMibPerSize | PrefillGraphs::EightMibPerSizeOrMla => {
            reservation.add("prefill graphs", per_size);
        }
    }
    if formula.breakable_and_post_capture && settings.breakable_prefill && settings.deepep {
        reservation.add("breakable prefill graphs with DeepEP", 1024.0);
    }
}

/// The most tokens that a prefill graph is captured for: 4096 in 0.5.6; later the chunk, capped for MLA and by
/// `max_total_tokens`.
fn prefill_graph_tokens(settings: &Settings) -> i64 {
    if let Some(tokens) = settings.prefill_graph_max_tokens {
        return tokens;
    }
    if settings.version < Version::new(5, 8) {
        return 4096;
    }
    let tokens = match (settings.mla, settings.version < Version::new(5, 15)) {
        (false, _) => chunk(settings),
        (true, true) => 2048,
        (true, false) => chunk(settings).min(8192),
    };
    settings.max_total_tokens.map_or(tokens, |cap| tokens.min(cap))
}

fn multimodal(settings: &Settings, rule: Multimodal, adjusted: &mut Adjusted, reservation: &mut Reservation) {
    const LABEL: &str = "image encoder";
    let before = adjusted.fraction;
    let text_only = settings.language_only && settings.version >= Version::new(5, 9);
    let decode_only =
        settings.disaggregation == Disaggregation::Decode && settings.version >= Version::new(5, 18);
    if !settings.multimodal || text_only || decode_only {
        return;
    }
    let capacity = settings.capacity_mib.map(f64::from);
    match (rule, settings.vision) {
        (Multimodal::None, _) => {}
        (Multimodal::Runner(factor), _) => adjusted.multiply(LABEL, factor, false),
        (Multimodal::Tower, _) if settings.post_capture && settings.version >= Version::new(5, 20) => {
            let share = capacity.map_or(0.0, |capacity| 8192.0 / capacity);
            adjusted.fraction -= share;
            adjusted.printed -= share;
        }
        (Multimodal::Tower, Some(vision)) => adjusted.multiply(LABEL, vision_factor(vision), true),
        (Multimodal::Tower, None) => {}
    }
    reservation.add(LABEL, capacity.unwrap_or(0.0) * (before - adjusted.fraction));
}

fn aiter(settings: &Settings, adjusted: &mut Adjusted, reservation: &mut Reservation) {
    let before = adjusted.fraction;
    if settings.aiter_long_context && settings.version >= Version::new(4, 8) {
        adjusted.multiply("AITER with long contexts", AITER_FACTOR, settings.version >= AITER_IN_ARGUMENTS);
        let capacity = settings.capacity_mib.map_or(0.0, f64::from);
        reservation.add("AITER with long contexts", capacity * (before - adjusted.fraction));
    }
}
