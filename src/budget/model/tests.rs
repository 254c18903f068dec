//! Configs of well-known models against their known sizes.

use super::*;
use crate::budget::cell::{counted, stored};
use crate::version::Version;
use proptest::prelude::*;
use serde_json::{Value, json};

const VERSION: Version = Version::new(5, 12);

fn model(config: Value) -> Model {
    Model::from_config(&config).unwrap()
}

fn llama_8b() -> Value {
    json!({
        "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336,
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 128256,
        "tie_word_embeddings": false, "torch_dtype": "bfloat16", "hidden_act": "silu"
    })
}

fn deepseek_v2_lite() -> Value {
    json!({
        "architectures": ["DeepseekV2ForCausalLM"], "hidden_size": 2048, "intermediate_size": 10944,
        "num_attention_heads": 16, "num_key_value_heads": 16, "num_hidden_layers": 27, "vocab_size": 102400,
        "kv_lora_rank": 512, "q_lora_rank": null, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
        "v_head_dim": 128, "n_routed_experts": 64, "n_shared_experts": 2, "moe_intermediate_size": 1408,
        "first_k_dense_replace": 1, "moe_layer_freq": 1, "torch_dtype": "bfloat16"
    })
}

fn ranks(tp: u32) -> Parallel {
    Parallel { tp, attention_tp: tp, ..Parallel::ONE }
}

#[test]
fn llama_8b_costs_what_it_is_known_to() {
    let model = model(llama_8b());
    let cell = |parallel| counted(VERSION, &model.geometry(parallel, KvType::Half, 0));
    assert_eq!(cell(Parallel::ONE), Some(131_072));
    assert_eq!(cell(ranks(2)), Some(65_536));
    assert_eq!(cell(ranks(16)), Some(16_384), "heads are repeated, not split further");
    let weights = model.weights(Parallel::ONE);
    assert_eq!(
        weights.total(),
        (8_030_261_248 - 4096) * 2,
        "all but the final norm of the published parameters"
    );
    assert!(weights.unknown.is_empty());
    // A recorded server used 16080961536 bytes for them, allocator rounding included.
    assert!((16_080_961_536 - weights.total()) * 500 < weights.total());
    // And 8032092160 bytes on each of two ranks.
    let half = model.weights(ranks(2)).total();
    assert!(half < 8_032_092_160 && (8_032_092_160 - half) * 500 < half);
}

#[test]
fn deepseek_v2_lite_has_latent_attention_and_experts() {
    let model = model(deepseek_v2_lite());
    let geometry = model.geometry(ranks(4), KvType::Half, 0);
    assert_eq!(counted(VERSION, &geometry), Some(31_104), "the same on every rank");
    let weights = model.weights(Parallel::ONE);
    let published = 15_706_484_224i128 * 2;
    let absorbed =
        weights.parts.iter().find(|part| part.label == "absorbed attention matrices").unwrap().bytes;
    assert!((weights.total() - absorbed - published).abs() < published / 10_000, "{weights:?}");
}

#[test]
fn sparse_attention_is_told_by_its_index() {
    let mut config = deepseek_v2_lite();
    config["index_head_dim"] = json!(128);
    assert!(matches!(model(config.clone()).attention, ModelAttention::Latent { index: None, .. }));
    config["index_topk"] = json!(2048);
    config["index_n_heads"] = json!(64);
    config["num_hidden_layers"] = json!(61);
    let geometry = model(config).geometry(Parallel::ONE, KvType::Fp8, 0);
    assert_eq!((counted(VERSION, &geometry), stored(VERSION, &geometry)), (Some(43_188), Some(48_068)));
}

#[test]
fn nested_text_configs_are_found() {
    let mut text = llama_8b();
    text["head_dim"] = json!(64);
    let config = json!({
        "architectures": ["Some4ForConditionalGeneration"], "text_config": text,
        "vision_config": { "num_hidden_layers": 32, "hidden_size": 1280 }
    });
    let model = model(config);
    assert_eq!(counted(VERSION, &model.geometry(Parallel::ONE, KvType::Half, 0)), Some(65_536));
    assert_eq!(model.architectures, ["Some4ForConditionalGeneration"]);
    assert_eq!(model.vision.map(|vision| vision.layers), Some(32));
    assert_eq!(model.weights(Parallel::ONE).unknown, ["the vision tower"]);
}

#[test]
fn windowed_layers_are_split_where_the_release_does() {
    let kinds: Vec<&str> =
        (0..24).map(|at| if at % 2 == 0 { "sliding_attention" } else { "full_attention" }).collect();
    let config = json!({
        "architectures": ["GptOssForCausalLM"], "hidden_size": 2880, "num_attention_heads": 64, "head_dim": 64,
        "num_key_value_heads": 8, "num_hidden_layers": 24, "layer_types": kinds, "vocab_size": 201088,
        "num_local_experts": 32, "intermediate_size": 2880, "quantization_config": { "quant_method": "mxfp4" }
    });
    let model = model(config);
    let window = model.sliding_window(VERSION, Parallel::ONE, KvType::Half, 0.8, 0).unwrap();
    assert_eq!((window.full_layers, window.window_layers, window.full_bytes), (12, 12, 2048));
    let split = |architecture: &str, version| {
        let renamed = Model { architectures: vec![architecture.to_owned()], ..model.clone() };
        renamed.sliding_window(version, Parallel::ONE, KvType::Half, 0.8, 0).is_some()
    };
    assert!(!split("GptOssForCausalLM", Version::post(4, 8, 1)), "no such pools yet");
    assert!(split("SomeForCausalLM", Version::post(5, 6, 2)), "any model with a window");
    assert!(!split("SomeForCausalLM", Version::new(5, 9)), "named models only");
    assert!(!split("Llama4ForConditionalGeneration", Version::post(5, 6, 2)), "only when asked to");
    assert!(split("Llama4ForConditionalGeneration", Version::new(5, 9)));
    assert_eq!(counted(VERSION, &model.geometry(Parallel::ONE, KvType::Half, 0)), Some(49_152));
    let quantised = model.weights(Parallel::ONE);
    let experts = quantised.parts.iter().find(|part| part.label == "routed experts").unwrap();
    assert_eq!(experts.bytes, 24 * 32 * 2880 * 2880 * 3 * 4250 / 8000);
}

#[test]
fn hybrid_models_keep_a_state_per_request() {
    let config = json!({
        "architectures": ["Qwen3NextForCausalLM"], "hidden_size": 2048, "num_attention_heads": 16,
        "num_key_value_heads": 2, "head_dim": 256, "num_hidden_layers": 48, "full_attention_interval": 4,
        "linear_num_value_heads": 32, "linear_value_head_dim": 128, "linear_key_head_dim": 128,
        "linear_num_key_heads": 16, "linear_conv_kernel_dim": 4, "vocab_size": 151936
    });
    let model = model(config);
    let convolution = (32 * 128 + 2 * 16 * 128) * 3 * 2;
    let per_layer = convolution + 32 * 128 * 128 * 4;
    assert_eq!(model.state_bytes(Parallel::ONE), Some(36 * per_layer));
    assert_eq!(model.state_bytes(ranks(4)), Some(36 * per_layer / 4));
    assert_eq!(model.geometry(Parallel::ONE, KvType::Half, 0).layers, 12);
    assert_eq!(model.weights(Parallel::ONE).unknown, ["linear-attention layers"]);
}

#[test]
fn other_dialects_of_layers() {
    let kinds = |extra: Value| {
        let mut config = llama_8b();
        config["num_hidden_layers"] = json!(4);
        for (name, value) in extra.as_object().unwrap() {
            config[name.as_str()] = value.clone();
        }
        model(config).layers
    };
    use LayerKind::{Full, FullAndLinear, Linear, None, Window};
    assert_eq!(kinds(json!({ "hybrid_override_pattern": "M-*E" })), [Linear, None, Full, None]);
    assert_eq!(kinds(json!({ "hybrid_layer_pattern": [0, 1, 1, 0] })), [Full, Window, Window, Full]);
    assert_eq!(
        kinds(json!({ "linear_attn_config": { "kda_layers": [1, 2, 3] } })),
        [Linear, Linear, Linear, Full]
    );
    assert_eq!(kinds(json!({ "architectures": ["FalconH1ForCausalLM"] })), [FullAndLinear; 4]);
    let llama4 = json!({ "architectures": ["Llama4ForConditionalGeneration"] });
    assert_eq!(kinds(llama4), [Window, Window, Window, Full]);
    assert_eq!(
        kinds(json!({ "layer_types": ["mamba", "attention"] })),
        [Full; 4],
        "a list too short is no list"
    );
}

#[test]
fn pipeline_stages_share_the_layers() {
    let stage = |pp, stage| Parallel { pp, stage, ..Parallel::ONE }.layers(32);
    assert_eq!((stage(2, 0), stage(2, 1)), (0..16, 16..32));
    assert_eq!(
        [0, 1, 2].map(|at| stage(3, at)),
        [0..10, 10..21, 21..32],
        "the last stages take the remainder"
    );
    assert_eq!(stage(3, 7), 21..32, "no stage beyond the last");
    let model = model(llama_8b());
    let weights = |stage| model.weights(Parallel { pp: 2, stage, ..Parallel::ONE }).total();
    assert_eq!(weights(0) + weights(1), model.weights(Parallel::ONE).total());
}

#[test]
fn tied_embeddings_and_quantisation() {
    let mut config = llama_8b();
    config["tie_word_embeddings"] = json!(true);
    let embedding = 128_256 * 4096 * 2;
    let plain = model(llama_8b()).weights(Parallel::ONE).total();
    assert_eq!(model(config).weights(Parallel::ONE).total(), plain - embedding);
    let quantised = |scheme: Value| {
        let mut config = llama_8b();
        config["quantization_config"] = scheme;
        model(config).quantization.map(|quantization| quantization.millibits)
    };
    assert_eq!(quantised(json!({ "quant_method": "fp8" })), Some(8000));
    assert_eq!(quantised(json!({ "quant_method": "awq", "bits": 4, "group_size": 128 })), Some(4156));
    assert_eq!(quantised(json!({ "quant_method": "gptq", "bits": 8, "group_size": -1 })), Some(8000));
    assert_eq!(quantised(json!({ "quant_method": "modelopt", "quant_algo": "NVFP4" })), Some(4500));
    let groups = json!({ "group_0": { "weights": { "num_bits": 4, "group_size": 32 } } });
    assert_eq!(
        quantised(json!({ "quant_method": "compressed-tensors", "config_groups": groups })),
        Some(4500)
    );
    assert_eq!(quantised(json!({ "quant_method": "of tomorrow" })), None);
}

#[test]
fn data_parallel_attention_repeats_attention() {
    let model = model(deepseek_v2_lite());
    let split = model.weights(ranks(4)).total();
    let repeated = model.weights(Parallel { tp: 4, attention_tp: 1, ..Parallel::ONE }).total();
    assert!(repeated > split);
}

#[test]
fn checkpoints_tell_their_size() {
    let index = json!({ "metadata": { "total_size": 16_060_522_496u64 }, "weight_map": {} });
    let size = index_total_size(&index).unwrap();
    let model = model(llama_8b());
    assert_eq!(model.weights_from_total(size, Parallel::ONE).unwrap().low(), 16_060_522_496);
    let half = model.weights_from_total(size, ranks(2)).unwrap();
    assert!(half.contains(8_030_404_608) || (half.midpoint() - 8_030_261_248).abs() < 1_000_000, "{half:?}");
    assert_eq!(index_total_size(&json!({ "metadata": {} })), None);
    assert_eq!(index_total_size(&json!({ "metadata": { "total_size": -1 } })), None);
}

#[test]
fn configs_that_describe_no_model_are_refused() {
    let error = |config: Value| Model::from_config(&config).unwrap_err();
    assert_eq!(error(json!([])), ConfigError::NotAnObject);
    assert_eq!(error(json!({})), ConfigError::Missing("hidden_size"));
    assert_eq!(error(json!({ "hidden_size": 1e30 })), ConfigError::OutOfRange("hidden_size"));
    assert_eq!(
        error(json!({ "hidden_size": 8, "num_hidden_layers": 5000 })),
        ConfigError::OutOfRange("num_hidden_layers")
    );
    assert_eq!(
        error(json!({ "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 0 })),
        ConfigError::OutOfRange("num_attention_heads")
    );
}

proptest! {
    #[test]
    fn no_number_in_a_config_panics(values in prop::collection::vec(prop_oneof![Just(0u64), Just(1 << 24), any::<u64>(), 1..4096u64], 24), tp in 0u32..9, stage in 0u32..4) {
        let names = [
            "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers",
            "vocab_size", "head_dim", "v_head_dim", "kv_lora_rank", "q_lora_rank", "qk_rope_head_dim",
            "qk_nope_head_dim", "n_routed_experts", "n_shared_experts", "moe_intermediate_size",
            "first_k_dense_replace", "moe_layer_freq", "full_attention_interval", "linear_num_value_heads",
            "linear_value_head_dim", "linear_key_head_dim", "linear_num_key_heads", "linear_conv_kernel_dim",
            "index_head_dim",
        ];
        for skipped in [0, 2, 4] {
            let config: serde_json::Map<String, Value> = names
                .iter()
                .zip(&values)
                .enumerate()
                .filter(|(at, _)| skipped == 0 || at % 5 != skipped)
                .map(|(_, (name, value))| ((*name).to_owned(), json!(if *name == "num_hidden_layers" { value % 4097 } else { *value })))
                .collect();
            let Ok(model) = Model::from_config(&Value::Object(config)) else { continue };
            let parallel = Parallel { tp, attention_tp: tp, pp: 3, stage };
            for kv_type in [KvType::Float32, KvType::Fp8, KvType::Fp4] {
                let _ = counted(VERSION, &model.geometry(parallel, kv_type, 1));
                let _ = model.sliding_window(VERSION, parallel, kv_type, 0.8, 0);
            }
            let _ = (model.state_bytes(parallel), model.weights(parallel).total());
            let _ = model.weights_from_total(1 << 40, parallel);
        }
    }
}
