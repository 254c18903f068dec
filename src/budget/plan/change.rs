//! What is changed in a what-if.

use crate::budget::cell::KvType;
use crate::quantity::Decimal;

/// `mem_fraction_static` in a what-if.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FractionChoice {
    /// As it was; where it was the default, the default of the changed arguments.
    #[default]
    Keep,
    /// This one.
    Set(Decimal),
    /// Left to SGLang.
    Default,
}

/// Graphs in a what-if.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GraphChoice {
    /// As they were.
    #[default]
    Keep,
    /// Decode graphs up to this batch size.
    MaxBatch(u32),
    /// No graphs (`--disable-cuda-graph`).
    Off,
}

/// How KV is stored in a what-if.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvChoice {
    /// As the flag names it.
    pub name: String,
    /// The type, where it is one that scales.
    pub kv_type: KvType,
}

/// Flags that differ from the launch's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Change {
    /// `--mem-fraction-static`.
    pub fraction: FractionChoice,
    /// `--max-total-tokens`: `Some(None)` drops it.
    pub max_total_tokens: Option<Option<i128>>,
    /// `--cuda-graph-max-bs`, `--disable-cuda-graph`.
    pub graphs: GraphChoice,
    /// `--chunked-prefill-size`.
    pub chunk: Option<i64>,
    /// `--kv-cache-dtype`.
    pub kv: Option<KvChoice>,
    /// `--page-size`.
    pub page_size: Option<i128>,
    /// `--tp`.
    pub tp: Option<u32>,
}

impl Change {
    /// Only another fraction.
    pub fn fraction(fraction: Decimal) -> Change {
        Change { fraction: FractionChoice::Set(fraction), ..Change::default() }
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Change::default()
    }

    /// The flags to paste, one each. `new_graph_flags` for releases from 0.5.15.
    pub fn flags(&self, new_graph_flags: bool) -> Vec<String> {
        let mut flags = Vec::new();
        match self.fraction {
            FractionChoice::Set(fraction) => {
                flags.push(format!("--mem-fraction-static {}", fraction.to_f64()))
            }
            FractionChoice::Default => flags.push("(without --mem-fraction-static)".to_string()),
            FractionChoice::Keep => {}
        }
        match self.max_total_tokens {
            Some(Some(tokens)) => flags.push(format!("--max-total-tokens {tokens}")),
            Some(None) => flags.push("(without --max-total-tokens)".to_string()),
            None => {}
        }
        match (self.graphs, new_graph_flags) {
            (GraphChoice::MaxBatch(batch), true) => flags.push(format!("--cuda-graph-max-bs-decode {batch}")),
            (GraphChoice::MaxBatch(batch), false) => flags.push(format!("--cuda-graph-max-bs {batch}")),
            (GraphChoice::Off, _) => flags.push("--disable-cuda-graph".to_string()),
            (GraphChoice::Keep, _) => {}
        }
        flags.extend(self.chunk.map(|chunk| format!("--chunked-prefill-size {chunk}")));
        flags.extend(self.kv.as_ref().map(|kv| format!("--kv-cache-dtype {}", kv.name)));
        flags.extend(self.page_size.map(|page| format!("--page-size {page}")));
        flags.extend(self.tp.map(|tp| format!("--tp {tp}")));
        flags
    }
}
