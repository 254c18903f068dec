//! What an input is, when it is neither a log of SGLang nor a dump: so that the message can say what was found.

/// What is looked for in a source's first bytes: a sign, and what it tells.
const SIGNS: [(&[&str], &str); 14] = [
    (&["<!doctype html", "<html"], "an HTML page (was it saved from a browser? give the raw text)"),
    (&["vllm", "VLLM"], "a vLLM log: vramledger reads SGLang's"),
    (&["TensorRT-LLM", "[TRT-LLM]"], "a TensorRT-LLM log: vramledger reads SGLang's"),
    (&["llama_model_loader", "llm_load_tensors", "ggml_"], "a llama.cpp log: vramledger reads SGLang's"),
    (
        &["text-generation-launcher", "text_generation_launcher"],
        "a text-generation-inference log: vramledger reads SGLang's",
    ),
    (&["lmdeploy"], "an LMDeploy log: vramledger reads SGLang's"),
    (
        &["sglang", "SGLang"],
        "SGLang's words, but no memory line: it may begin after start-up, end before it, or run with --log-level warning",
    ),
    (
        &["Decode batch", "Prefill batch", "HTTP/1.1\" 200"],
        "a serving log without its start: memory lines stand where the server starts",
    ),
    (&["Traceback (most recent call last)"], "a Python traceback without any memory line"),
    (&["torch.save", "PK\u{3}\u{4}"], "an archive, not a log"),
    (&["apiVersion:", "kind: Pod"], "a Kubernetes manifest: give the pod's log (`kubectl logs`)"),
    (&["# HELP", "# TYPE"], "Prometheus metrics: give the server's log"),
    (&["INFO:     Started server process", "Uvicorn running"], "a web server's log without memory lines"),
    (&["{\"", "[{"], "JSON without log lines that SGLang prints"),
];

/// Names what a source's head looks like, for the message that nothing was found in it.
pub(super) fn found_instead(head: &[u8]) -> String {
    let text = String::from_utf8_lossy(head);
    let lower_start: String = text.chars().take(400).collect::<String>().to_lowercase();
    let shows = |sign: &&str| text.contains(*sign) || lower_start.contains(*sign);
    match SIGNS.iter().find(|(signs, _)| signs.iter().any(shows)) {
        Some((_, what)) => (*what).to_string(),
        None => "no line of a start-up and no nvidia-smi output".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_mistakes_are_named() {
        for (head, word) in [
            ("<!DOCTYPE html><html><body>", "HTML"),
            ("INFO 11-29 13:51:19 [core.py:58] Initializing a V1 LLM engine (v0.9.0) vllm", "vLLM"),
            ("[2026-11-29 13:52:07] Decode batch, #running-req: 1", "serving log"),
            ("hello", "no line of a start-up"),
        ] {
            assert!(found_instead(head.as_bytes()).contains(word), "{head}");
        }
    }
}
