//! The glossary of memory figures: what each one sees, and what it doesn't.
//!
//! Two figures of the same moment differ by gigabytes and are both right, because they look at different things. The table
//! is data, so that the page of a figure and the list of all come from one place. What each figure counts was read in the
//! sources of SGLang (`utils/common.py` `get_available_gpu_memory`, 0.5.12), PyTorch and NVML, and checked on recorded servers.

/// A figure and what stands behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figure {
    /// Its names as printed; the first is the usual one.
    pub names: &'static [&'static str],
    /// Who prints it, and where.
    pub printed_by: &'static str,
    /// What it counts.
    pub sees: &'static str,
    /// What it leaves out.
    pub misses: &'static str,
    /// Whole card or one process; one rank or the least of several.
    pub scope: &'static str,
    /// Whether PyTorch's cache was emptied before.
    pub cache: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// What it is easily mistaken for.
    pub mind: &'static str,
}

impl Figure {
    /// The usual name.
    pub fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }
}

/// All figures.
pub const FIGURES: [Figure; 11] = [
    Figure {
        names: &["avail-mem", "avail mem", "Load weight begin", "Memory pool end"],
        printed_by: "SGLang, in the lines at which stages begin and end",
        sees: "what the driver would still hand out on the whole card",
        misses: "who holds the rest, and for what",
        scope: "the whole card with all its processes; the rank that prints the line, not the least of all ranks",
        cache: "emptied before: memory that PyTorch only keeps counts as free",
        unit: "GiB, printed as GB with two decimals: true to 5 MiB either way",
        mind: "On integrated GPUs (Jetson, GB10 and the like) it is the host's available memory, page cache included, and moves by \
               itself. Another process that starts or stops in between shows up as the server's use.",
    },
    Figure {
        names: &["mem-usage", "mem usage"],
        printed_by: "SGLang, in the lines at which stages end",
        sees: "by how much the card's free memory fell from before a stage to after it",
        misses: "which holder took it: PyTorch, a communication library, the driver, or another process",
        scope: "the whole card; the rank that prints the line",
        cache: "emptied at both ends",
        unit: "GiB, printed as GB with two decimals",
        mind: "It may be negative where a stage gives memory back. The usage of a graph capture is not the size of its graphs: \
               of 1,188 MiB that a recorded capture took, 900 lay in graph pools.",
    },
    Figure {
        names: &["available_gpu_mem", "available-gpu-mem"],
        printed_by: "SGLang, in the summary line of a rank (max_total_num_tokens=…)",
        sees: "what the driver would still hand out when start-up is done: the room for activations at peak",
        misses: "what PyTorch keeps free in its own pools, which activations can use too",
        scope: "the whole card; the rank that prints the line, as a rule rank 0 of each group",
        cache: "not emptied: it may be lower than the avail mem before it though nothing was allocated for good",
        unit: "GiB, printed as GB with two decimals",
        mind: "It is what start-up left, not the least that it went through: a capture's peak may have been a gigabyte higher.",
    },
    Figure {
        names: &["avail_mem", "capture avail_mem"],
        printed_by: "SGLang, in the progress bars of graph captures",
        sees: "what the driver would still hand out before the named size is captured",
        misses: "what PyTorch keeps free in its own pools",
        scope: "the whole card; rank 0 shows the bar",
        cache: "not emptied",
        unit: "GiB, printed as GB with two decimals",
        mind: "The first size pays for buffers and kernels that are made on first use; the steps after it tell the cost of a size.",
    },
    Figure {
        names: &["pre_model_load_memory", "pre-model-load-memory"],
        printed_by: "SGLang, in the line on unbalanced memory; else only used inside",
        sees: "what the driver would hand out after the process groups were made, before weights",
        misses: "CUDA contexts and communicators: they were taken before it",
        scope: "the least of all ranks of a group: one occupied card shrinks every rank's KV cache",
        cache: "emptied before",
        unit: "GiB",
        mind: "mem_fraction_static is a share of this figure, not of the card.",
    },
    Figure {
        names: &[
            "memory_allocated",
            "memory-allocated",
            "torch.cuda.memory_allocated",
            "allocated by PyTorch",
        ],
        printed_by: "PyTorch: torch.cuda.memory_allocated(), and the sentence of an out-of-memory error",
        sees: "blocks that PyTorch handed out to live tensors",
        misses: "what its pools hold beyond them, and everything outside PyTorch",
        scope: "one process, one device",
        cache: "does not matter: kept memory is not in it",
        unit: "bytes; GiB or MiB in sentences",
        mind: "A part of memory_reserved, which is a part of what the device has in use.",
    },
    Figure {
        names: &[
            "memory_reserved",
            "memory-reserved",
            "torch.cuda.memory_reserved",
            "memory_cached",
            "reserved by PyTorch",
        ],
        printed_by: "PyTorch: torch.cuda.memory_reserved(), and memory snapshots",
        sees: "every segment that PyTorch got from the driver: ordinary pools and private pools of CUDA graphs, used or free",
        misses: "the CUDA context, NCCL, NVSHMEM and DeepEP buffers, cudaMalloc of other libraries, memory mapped through VMM",
        scope: "one process, one device",
        cache: "counted in; empty_cache() lowers it by the segments that are free as a whole",
        unit: "bytes",
        mind: "Graph pools are inside it, so they must not be added to it. 'Allocated in private pools' of the out-of-memory \
               sentence is what these pools keep free: a lower bound of their size.",
    },
    Figure {
        names: &["nvidia-smi", "memory.used", "FB Memory Usage", "NVML", "nvml"],
        printed_by: "nvidia-smi and everything that asks NVML (nvitop, gpustat, DCGM)",
        sees: "what is in use on the whole card; and for each process its own memory, context included",
        misses: "what it is for; inside containers often the processes too",
        scope: "the whole card; the numbering of CUDA_VISIBLE_DEVICES does not apply",
        cache: "counted as used: the driver does not know which part PyTorch keeps free",
        unit: "MiB, whole",
        mind: "Older drivers count their own reserve as used, newer ones print it as Reserved (615 MiB on an H200). The list of \
               processes adds up to less than used: each context has a part that no process is charged for (about 9 MiB).",
    },
    Figure {
        names: &[
            "cudaMemGetInfo",
            "mem_get_info",
            "torch.cuda.mem_get_info",
            "total capacity",
            "cuda-mem-get-info",
        ],
        printed_by: "the CUDA runtime; every avail mem rests on it, and 'total capacity' and 'is free' of PyTorch's sentence",
        sees: "free: what the driver would still hand out; total: the most that all processes can have together",
        misses: "who holds the rest",
        scope: "the whole card (a MIG instance where one is visible)",
        cache: "counted as used, unless it is emptied before",
        unit: "bytes",
        mind: "Its total is smaller than nvidia-smi's by what the driver keeps for itself. Asking costs a CUDA context: some 520 \
               MiB that the next figure has less.",
    },
    Figure {
        names: &["psutil", "host memory", "integrated GPU", "integrated-gpu"],
        printed_by: "SGLang on integrated GPUs, in place of the driver's figure",
        sees: "the host's available memory, which such a GPU shares",
        misses: "any border between the server and everything else on the host",
        scope: "the whole host",
        cache: "PyTorch's cache is part of what the host has in use",
        unit: "GiB, printed as GB",
        mind: "The kernel's page cache makes the figure move although nothing was allocated on the device.",
    },
    Figure {
        names: &["private pools", "private-pools", "allocated in private pools", "graph pool"],
        printed_by: "PyTorch: snapshots by segment_pool_id, and the sentence of an out-of-memory error",
        sees: "memory set apart for CUDA graphs (or a torch.cuda.MemPool), so that replays find it unchanged",
        misses: "what the driver itself takes for each graph, and buffers registered with communication libraries",
        scope: "one process, one device",
        cache: "never returned while a graph lives",
        unit: "bytes; MiB in sentences",
        mind: "Inside memory_reserved, never on top. The sentence's figure is only the part that is free in them.",
    },
];

/// The figure of a name, letter case and separators aside.
pub fn find(name: &str) -> Option<&'static Figure> {
    let plain = |name: &str| -> String {
        name.chars()
            .map(|character| match character.to_ascii_lowercase() {
                '_' | ' ' => '-',
                other => other,
            })
            .collect()
    };
    // `avail_mem` of the bars and `avail mem` of the lines differ only there: the exact name goes first.
    let exact = FIGURES.iter().find(|figure| figure.names.contains(&name));
    exact.or_else(|| {
        let wanted = plain(name.trim_end_matches("()"));
        FIGURES.iter().find(|figure| figure.names.iter().any(|known| plain(known) == wanted))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn figures_are_found_by_the_names_that_logs_print() {
        for (name, usual) in [
            ("avail mem", "avail-mem"),
            ("avail_mem", "avail_mem"),
            ("avail-mem", "avail-mem"),
            ("MEM-USAGE", "mem-usage"),
            ("available_gpu_mem", "available_gpu_mem"),
            ("torch.cuda.memory_reserved()", "memory_reserved"),
            ("memory-allocated", "memory_allocated"),
            ("cudamemgetinfo", "cudaMemGetInfo"),
            ("nvidia-smi", "nvidia-smi"),
        ] {
            assert_eq!(find(name).map(Figure::name), Some(usual), "{name}");
        }
        assert_eq!(find("headroom-low"), None);
    }

    #[test]
    fn names_are_unique_and_everything_is_told() {
        let mut seen = HashSet::new();
        for figure in &FIGURES {
            assert!(figure.names.iter().all(|name| seen.insert(*name)), "{figure:?}");
            let words = [
                figure.printed_by,
                figure.sees,
                figure.misses,
                figure.scope,
                figure.cache,
                figure.unit,
                figure.mind,
            ];
            assert!(words.iter().all(|words| !words.is_empty()), "{figure:?}");
        }
    }
}
