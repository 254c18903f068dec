//! With the model's config: expected weights and bytes a token, and plans for a launch that never sized a pool.

use super::support::{altered, analysed, facts, finding};
use serde_json::{Value, json};
use vramledger::analysis::Settings;
use vramledger::budget::audit::ModelFacts;
use vramledger::budget::model::Model;
use vramledger::budget::plan::{Change, Goal, answer};
use vramledger::quantity::{GIB, Quantity};

/// The config of the recorded Llama.
fn llama() -> Value {
    json!({
        "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "vocab_size": 128256, "tie_word_embeddings": false, "torch_dtype": "bfloat16"
    })
}

fn settings(config: &Value, checkpoint_bytes: Option<i128>) -> Settings {
    let model = Model::from_config(config).unwrap();
    Settings { model: Some(ModelFacts { model, checkpoint_bytes }), ..Settings::default() }
}

#[test]
fn the_served_model_fits_its_config() {
    for name in ["pair-base-0.5.12", "pair-fp8-0.5.12", "tp2-normal-0.5.15", "pp2-0.5.12"] {
        let analysis = analysed(&altered(name, &[]), &settings(&llama(), None));
        let launch = &analysis.launches[0];
        let expected = launch.audit.as_ref().unwrap().worlds[0].expected.clone().unwrap();
        let (wanted, measured) = (expected.weights.unwrap(), expected.measured_weights.unwrap());
        let allowed = wanted.low() / 200;
        let near = Quantity::between(wanted.low() - allowed, wanted.high() + allowed);
        assert!(near.meets(measured), "{name}: {measured:?} is more than 0.5 % from {wanted:?}");
        let cell = expected.measured_cell.unwrap();
        let (low, high) = expected.cell.unwrap();
        assert!(cell.low <= high && low <= cell.high, "{name}");
        assert!(
            finding(launch, "cell-mismatch").is_none() && finding(launch, "stage-oversized").is_none(),
            "{name}"
        );
    }
}

#[test]
fn another_model_does_not() {
    let mut config = llama();
    config["num_hidden_layers"] = json!(16);
    let analysis = analysed(&altered("pair-base-0.5.12", &[]), &settings(&config, None));
    let launch = &analysis.launches[0];
    assert!(
        finding(launch, "cell-mismatch")
            .unwrap()
            .title
            .contains("131,072 bytes of KV, the config says 65,536")
    );
    assert!(finding(launch, "stage-oversized").unwrap().title.contains("than the config says"));
}

#[test]
fn a_checkpoint_is_taken_at_its_word() {
    let analysis = analysed(&altered("pair-base-0.5.12", &[]), &settings(&llama(), Some(30 * GIB)));
    let odd = finding(&analysis.launches[0], "stage-oversized").unwrap();
    assert!(odd.title.contains("less than the checkpoint says"), "{}", odd.title);
}

#[test]
fn a_launch_that_never_sized_its_pool_can_be_planned_with() {
    let log = altered("fraction-too-low-0.5.12", &[]);
    let blind = analysed(&log, &Settings::default());
    assert!(blind.launches[0].facts[0].is_err());
    let analysis = analysed(&log, &settings(&llama(), None));
    let facts = facts(&analysis.launches[0]);
    let answer = answer(facts, &Change::default(), Some(Goal::Tokens(845_985))).unwrap();
    let fraction = answer.after.fraction.to_f64();
    assert!((0.849..=0.852).contains(&fraction), "the recorded server holds as many at 0.85: {fraction}");
}
