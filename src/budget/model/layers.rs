//! Which layers attend to everything, which to a window, and which keep a state instead.

use super::ConfigError;
use super::fields::Fields;
use serde_json::Value;

/// What a layer keeps between tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LayerKind {
    /// Keys and values of all tokens.
    Full,
    /// Keys and values of a window.
    Window,
    /// A state per request.
    Linear,
    /// Both: attention and state side by side (Falcon-H1).
    FullAndLinear,
    /// Nothing: a feed-forward block that counts as a layer (Nemotron-H).
    None,
}

impl LayerKind {
    /// Whether the layer keeps keys and values of all tokens.
    pub fn is_full(self) -> bool {
        matches!(self, LayerKind::Full | LayerKind::FullAndLinear)
    }

    /// Whether the layer keeps a state.
    pub fn is_linear(self) -> bool {
        matches!(self, LayerKind::Linear | LayerKind::FullAndLinear)
    }
}

/// More layers than any model has.
const MOST_LAYERS: u32 = 4096;

/// The kinds of all layers, in the dialects in which configs tell them.
pub(super) fn kinds(fields: &Fields, architectures: &[String]) -> Result<Vec<LayerKind>, ConfigError> {
    if let Some(pattern) = fields.string(&["hybrid_override_pattern"]) {
        return bounded(pattern.chars().map(nemotron).collect());
    }
    let count = fields.required(&["num_hidden_layers", "n_layer", "num_layers", "n_layers"])?;
    if count > MOST_LAYERS {
        return Err(ConfigError::OutOfRange("num_hidden_layers"));
    }
    let is = |name: &str| architectures.iter().any(|architecture| architecture == name);
    let listed = fields.get(&["layer_types", "layers_block_type"]).and_then(Value::as_array);
    if let Some(listed) = listed.filter(|listed| listed.len() >= count as usize) {
        return Ok(listed.iter().take(count as usize).map(named).collect());
    }
    if let Some(pattern) = fields.get(&["hybrid_layer_pattern"]).and_then(Value::as_array) {
        let windowed =
            |layer: &Value| if layer.as_u64() == Some(1) { LayerKind::Window } else { LayerKind::Full };
        return bounded(pattern.iter().take(count as usize).map(windowed).collect());
    }
    let by_position = |kind: fn(u32, u32) -> LayerKind, period: u32| {
        Ok((0..count).map(|layer| kind(layer + 1, period.max(1))).collect())
    };
    if let Some(ids) = kimi_linear_layers(fields) {
        let kind =
            |layer| if ids.contains(&(u64::from(layer) + 1)) { LayerKind::Linear } else { LayerKind::Full };
        return Ok((0..count).map(kind).collect());
    }
    if is("FalconH1ForCausalLM") {
        return by_position(|_, _| LayerKind::FullAndLinear, 1);
    }
    if is("Llama4ForConditionalGeneration") {
        return by_position(|layer, _| every(layer, 4, LayerKind::Window), 4);
    }
    match fields.number(&["full_attention_interval"])? {
        Some(interval) => by_position(|layer, period| every(layer, period, LayerKind::Linear), interval),
        None => by_position(|_, _| LayerKind::Full, 1),
    }
}

fn every(layer: u32, period: u32, others: LayerKind) -> LayerKind {
    if layer.is_multiple_of(period) { LayerKind::Full } else { others }
}

fn bounded(kinds: Vec<LayerKind>) -> Result<Vec<LayerKind>, ConfigError> {
    if kinds.is_empty() || kinds.len() > MOST_LAYERS as usize {
        return Err(ConfigError::OutOfRange("num_hidden_layers"));
    }
    Ok(kinds)
}

/// Nemotron-H: `M` a state, `*` attention, `-` and `E` feed-forward.
fn nemotron(letter: char) -> LayerKind {
    match letter {
        'M' => LayerKind::Linear,
        '*' => LayerKind::Full,
        _ => LayerKind::None,
    }
}

fn named(name: &Value) -> LayerKind {
    match name.as_str().unwrap_or_default() {
        "sliding_attention" | "chunked_attention" => LayerKind::Window,
        "linear_attention" | "mamba" | "mamba2" | "conv" | "recurrent" => LayerKind::Linear,
        "mlp" | "moe" => LayerKind::None,
        _ => LayerKind::Full,
    }
}

/// Kimi-Linear: the layers with a state, counted from 1.
fn kimi_linear_layers(fields: &Fields) -> Option<std::collections::HashSet<u64>> {
    let ids = fields.get(&["linear_attn_config"])?.get("kda_layers")?.as_array()?;
    Some(ids.iter().filter_map(Value::as_u64).collect())
}
