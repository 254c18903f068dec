//! Post-capture sizing: the pool's first lines are addresses, and no finding may take them for memory.

use super::support::{analysed, finding};
use vramledger::analysis::Settings;
use vramledger::budget::plan::PlanError;

/// The worked example: 20.00 GiB free after capture, 78.50 before the weights, f 0.98, 3 GiB backed, 128 KiB a token.
const LOG: &str = "\
[2026-05-07 15:39:10] server_args=ServerArgs(model_path='/models/a', mem_fraction_static=0.98, tp_size=1, pp_size=1, page_size=1, max_total_tokens=None)
[2026-05-07 15:39:12] Init torch distributed ends. elapsed=0.23 s, mem usage=0.09 GB
[2026-05-07 15:39:13] Load weight begin. avail mem=78.50 GB
[2026-05-07 15:39:20] Load weight end. elapsed=7.13 s, type=LlamaForCausalLM, avail mem=63.45 GB, mem usage=15.05 GB.
[2026-05-07 15:39:21] KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 506920, K size: 30.94 GB, V size: 30.94 GB
[2026-05-07 15:39:21] Memory pool end. avail mem=60.45 GB
[2026-05-07 15:39:30] Capture target decode CUDA graph begin. backend=full, num_tokens_per_bs=1, avail mem=60.00 GB
[2026-05-07 15:39:40] Capture target decode CUDA graph end. elapsed=10.00 s, mem usage=40.00 GB, avail mem=20.00 GB.
[2026-05-07 15:39:41] Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 175554, KV size: 21.43 GB, avail mem=1.57 GB
[2026-05-07 15:39:41] max_total_num_tokens=175554, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=8192, available_gpu_mem=1.57 GB
[2026-05-07 15:39:42] The server is fired up and ready to roll!
";

#[test]
fn addresses_are_not_memory() {
    let analysis = analysed(LOG, &Settings::default());
    let launch = &analysis.launches[0];
    let world = &launch.audit.as_ref().unwrap().worlds[0];
    let sized = world.post_capture.as_ref().unwrap();
    assert_eq!((sized.reserved_tokens, sized.tokens), (Some(506_920), 175_554));
    let (low, high) = sized.predicted.unwrap();
    assert!(low <= 175_554 && 175_554 <= high, "{low} to {high}");
    assert_eq!(world.kv, None);
    assert_eq!(world.slack_use, None);
    for name in ["budget-underused", "budget-exceeded", "kv-capped"] {
        assert!(finding(launch, name).is_none(), "{name}");
    }
    assert_eq!(launch.facts[0].as_ref().unwrap_err(), &PlanError::PostCapture);
}
