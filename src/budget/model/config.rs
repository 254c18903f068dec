//! Reads a `config.json`.

use super::fields::Fields;
use super::{
    Experts, FeedForward, Heads, LayerKind, LinearState, Model, ModelAttention, Quantization, layers,
};
use crate::budget::cell::KvType;
use crate::budget::defaults::Vision;
use serde_json::Value;

/// Why a config does not describe a model's shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// It is JSON, but no object.
    #[error("the model config is not a JSON object")]
    NotAnObject,
    /// A needed field is absent.
    #[error("the model config has no {0}: is it the config.json of a language model?")]
    Missing(&'static str),
    /// A field holds what no model has.
    #[error("the model config's {0} is not a plausible number")]
    OutOfRange(&'static str),
}

impl Model {
    /// The shape that a Hugging Face config describes, a nested text model's where it nests one.
    ///
    /// Defaults are those of SGLang's `ModelConfig` (`configs/model_config.py`, 0.5.12).
    pub fn from_config(config: &Value) -> Result<Model, ConfigError> {
        let fields = Fields::of(config)?;
        let architectures: Vec<String> = fields
            .root
            .get("architectures")
            .or_else(|| fields.text.get("architectures"))
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            .unwrap_or_default();
        let hidden = fields.required(&["hidden_size", "n_embd", "d_model"])?;
        let layers = layers::kinds(&fields, &architectures)?;
        let heads = heads(&fields, hidden)?;
        Ok(Model {
            hidden,
            vocabulary: fields.or(&["vocab_size", "padded_vocab_size"], 0)?,
            nextn_layers: fields.or(&["num_nextn_predict_layers", "mtp_num_hidden_layers"], 0)?,
            attention: attention(&fields, heads)?,
            window: if layers.contains(&LayerKind::Window) { Some(window(&fields, heads)?) } else { None },
            state: if layers.iter().any(|kind| kind.is_linear()) { state(&fields)? } else { None },
            feed_forward: feed_forward(&fields)?,
            tied_embeddings: fields.flag("tie_word_embeddings").unwrap_or(false),
            dtype: dtype(&fields),
            quantization: quantization(&fields),
            vision: vision(&fields),
            architectures,
            layers,
        })
    }
}

fn heads(fields: &Fields, hidden: u32) -> Result<Heads, ConfigError> {
    let heads = fields.required(&["num_attention_heads", "n_head", "num_heads"])?;
    const KV_NAMES: &[&str] = &[
        "n_head_kv",
        "num_kv_heads",
        "num_key_value_heads",
        "multi_query_group_num",
        "num_attention_groups",
    ];
    let kv_heads = if fields.flag("multi_query") == Some(true) { 1 } else { fields.or(KV_NAMES, heads)? };
    let head_dim = fields.or(&["head_dim", "attention_head_dim", "kv_channels"], hidden / heads)?;
    let value_head_dim = fields.or(&["v_head_dim"], head_dim)?;
    Ok(Heads { heads, kv_heads, head_dim, value_head_dim })
}

fn attention(fields: &Fields, heads: Heads) -> Result<ModelAttention, ConfigError> {
    let Some(rank) = fields.number(&["kv_lora_rank"])? else { return Ok(ModelAttention::Heads(heads)) };
    let sparse = fields.get(&["index_topk"]).is_some();
    let index = (fields.number(&["index_head_dim"])?).filter(|_| sparse);
    let index_heads = fields.or(&["index_n_heads"], 0)?;
    Ok(ModelAttention::Latent {
        heads: heads.heads,
        rank,
        query_rank: fields.number(&["q_lora_rank"])?.filter(|rank| *rank > 0),
        rope_dim: fields.required(&["qk_rope_head_dim"])?,
        nope_dim: fields.or(&["qk_nope_head_dim"], heads.head_dim)?,
        value_head_dim: heads.value_head_dim,
        index: index.map(|head_dim| (head_dim, index_heads)),
    })
}

fn window(fields: &Fields, heads: Heads) -> Result<Heads, ConfigError> {
    let head_dim = fields.or(&["swa_head_dim"], heads.head_dim)?;
    Ok(Heads {
        heads: fields.or(&["swa_num_attention_heads"], heads.heads)?,
        kv_heads: fields.or(&["swa_num_key_value_heads"], heads.kv_heads)?,
        head_dim,
        value_head_dim: fields.or(&["swa_v_head_dim"], heads.value_head_dim)?,
    })
}

/// The state of Qwen3-Next, Nemotron-H, Falcon-H1 and Mamba-2 relatives, by their own names. `None` for dialects unknown here.
fn state(fields: &Fields) -> Result<Option<LinearState>, ConfigError> {
    let heads = fields.number(&["linear_num_value_heads", "mamba_num_heads", "mamba_n_heads"])?;
    let head_dim = fields.number(&["linear_value_head_dim", "mamba_head_dim", "mamba_d_head"])?;
    let state_size = fields.number(&["linear_key_head_dim", "ssm_state_size", "mamba_d_state"])?;
    let groups = fields.number(&["linear_num_key_heads", "n_groups", "mamba_n_groups"])?;
    let kernel = fields.number(&["linear_conv_kernel_dim", "conv_kernel", "mamba_d_conv"])?;
    let state_bytes = match fields.string(&["mamba_ssm_dtype"]) {
        Some("bfloat16" | "float16") => 2,
        _ => 4,
    };
    Ok(match (heads, head_dim, state_size, groups, kernel) {
        (Some(heads), Some(head_dim), Some(state_size), Some(groups), Some(kernel)) => {
            Some(LinearState { heads, head_dim, state_size, groups, kernel, state_bytes })
        }
        _ => None,
    })
}

fn feed_forward(fields: &Fields) -> Result<FeedForward, ConfigError> {
    let intermediate = fields.or(&["intermediate_size", "ffn_hidden_size", "n_inner"], 0)?;
    let ungated = ["relu2", "relu", "gelu", "gelu_new", "gelu_fast"];
    let activation = fields.string(&["hidden_act", "mlp_hidden_act", "activation_function"]);
    let matrices = if activation.is_some_and(|name| ungated.contains(&name)) { 2 } else { 3 };
    let count = fields.or(&["n_routed_experts", "num_experts", "num_local_experts"], 0)?;
    let experts = if count > 0 { Some(experts(fields, count, intermediate)?) } else { None };
    Ok(FeedForward { intermediate, matrices, experts })
}

fn experts(fields: &Fields, count: u32, dense: u32) -> Result<Experts, ConfigError> {
    let intermediate = fields.or(&["moe_intermediate_size", "expert_ffn_hidden_size"], dense)?;
    let shared_experts = fields.or(&["n_shared_experts", "num_shared_experts"], 0)?;
    let own = fields.or(&["shared_expert_intermediate_size", "moe_shared_expert_intermediate_size"], 0)?;
    Ok(Experts {
        count,
        intermediate,
        shared: if own > 0 { own } else { intermediate.saturating_mul(shared_experts) },
        dense_first: fields.or(&["first_k_dense_replace"], 0)?,
        every: fields
            .or(&["decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_freq"], 1)
            .unwrap_or(1)
            .max(1),
    })
}

fn dtype(fields: &Fields) -> KvType {
    match fields.string(&["torch_dtype", "dtype"]) {
        Some("float32") => KvType::Float32,
        _ => KvType::Half,
    }
}

/// Bits per weight of the schemes that name them; scales included where the group size is told.
fn quantization(fields: &Fields) -> Option<Quantization> {
    let config = fields.get(&["quantization_config", "compression_config"])?;
    let method = config.get("quant_method").and_then(Value::as_str).unwrap_or_default();
    let algorithm = config.get("quant_algo").and_then(Value::as_str).unwrap_or_default();
    let number = |value: &Value, name: &str| {
        value.get(name).and_then(Value::as_u64).filter(|n| (1..=65536).contains(n))
    };
    let whole = |millibits: u64| {
        u32::try_from(millibits).ok().map(|millibits| Quantization { millibits, experts_only: false })
    };
    match method {
        "fp8" | "fbgemm_fp8" => whole(8000),
        "mxfp4" => Some(Quantization { millibits: 4250, experts_only: true }),
        "gptq" | "awq" | "gptq_marlin" | "awq_marlin" => {
            let bits = number(config, "bits")?;
            let scales = number(config, "group_size").map_or(0, |group| (16 + bits) * 1000 / group);
            whole(bits * 1000 + scales)
        }
        "compressed-tensors" => {
            let groups = config.get("config_groups").and_then(Value::as_object)?;
            let weights = groups.values().find_map(|group| group.get("weights"))?;
            let scales = number(weights, "group_size").map_or(0, |group| 16 * 1000 / group);
            whole(number(weights, "num_bits")? * 1000 + scales)
        }
        "modelopt" | "modelopt_fp8" | "modelopt_fp4" => match (method, algorithm) {
            (_, "NVFP4") | ("modelopt_fp4", _) => whole(4500),
            _ => whole(8000),
        },
        _ => None,
    }
}

fn vision(fields: &Fields) -> Option<Vision> {
    let config = fields.root.get("vision_config")?.as_object()?;
    let number =
        |name: &str, default| config.get(name).and_then(Value::as_u64).map_or(default, |n| n.min(1 << 24));
    Some(Vision { layers: number("num_hidden_layers", 24), hidden_size: number("hidden_size", 1024) })
}
