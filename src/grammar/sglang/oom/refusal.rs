//! An out-of-memory line, typed: who refused, on which device, and the arithmetic that the sentence prints.
//!
//! Events keep figures as fields in printed order; who reasons about them wants them by name, and unknown ones as such.

use crate::event::{Event, FailureKind, Role, Value};
use crate::quantity::Quantity;

/// The kind of device that ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Accelerator {
    /// NVIDIA, through CUDA.
    Cuda,
    /// AMD, through HIP.
    Hip,
    /// Ascend.
    Npu,
    /// Intel.
    Xpu,
    /// Moore Threads.
    Musa,
}

/// Which allocator refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refuser {
    /// torch's caching allocator: tensors, KV pools, weights, private pools of graphs.
    Torch,
    /// A CUDA runtime call (`CUDA error: out of memory`): modules, streams, graphs, libraries.
    Runtime,
    /// A driver call: `CUDA driver error: 2`, `cuMemCreate`.
    Driver,
    /// torch_memory_saver, which maps physical memory through the driver.
    MemorySaver,
    /// NCCL, RCCL or HCCL.
    Collectives,
    /// NVSHMEM, under DeepEP.
    Nvshmem,
    /// cuBLAS and its siblings: handles and workspaces.
    MathLibrary,
    /// Triton, when it loads a kernel.
    Triton,
}

impl Refuser {
    /// The allocator in words.
    pub const fn words(self) -> &'static str {
        match self {
            Refuser::Torch => "PyTorch's allocator",
            Refuser::Runtime => "the CUDA runtime",
            Refuser::Driver => "the driver",
            Refuser::MemorySaver => "torch_memory_saver (cuMemCreate)",
            Refuser::Collectives => "the communication library (NCCL)",
            Refuser::Nvshmem => "NVSHMEM",
            Refuser::MathLibrary => "a CUDA math library (cuBLAS)",
            Refuser::Triton => "Triton, loading a kernel",
        }
    }
}

/// Words that tell who refused, the more telling first.
const REFUSERS: [(&str, Refuser); 19] = [
    ("torch_memory_saver", Refuser::MemorySaver),
    ("cu_mem_create", Refuser::MemorySaver),
    ("tried to allocate", Refuser::Torch),
    ("by pytorch", Refuser::Torch),
    ("nvshmem", Refuser::Nvshmem),
    ("nccl", Refuser::Collectives),
    ("rccl", Refuser::Collectives),
    ("hccl", Refuser::Collectives),
    ("cublas", Refuser::MathLibrary),
    ("cudnn", Refuser::MathLibrary),
    ("cusolver", Refuser::MathLibrary),
    ("_alloc_failed", Refuser::MathLibrary),
    ("triton", Refuser::Triton),
    ("cumemcreate", Refuser::Driver),
    ("curesult", Refuser::Driver),
    ("driver error", Refuser::Driver),
    ("cuda error", Refuser::Runtime),
    ("hip error", Refuser::Runtime),
    ("cuda_error_out_of_memory", Refuser::Driver),
];

/// Words that tell the device's kind.
const ACCELERATORS: [(&str, Accelerator); 7] = [
    ("hip out of memory", Accelerator::Hip),
    ("hip error", Accelerator::Hip),
    ("npu", Accelerator::Npu),
    ("hccl", Accelerator::Npu),
    ("xpu", Accelerator::Xpu),
    ("musa", Accelerator::Musa),
    ("level_zero", Accelerator::Xpu),
];

/// The generation of torch's wording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Generation {
    /// `(GPU 0; 23.69 GiB total capacity; …)`: up to 2.0, and torch_npu still.
    Bracketed,
    /// `GPU 0 has a total capacity of … of which … is free.`: 2.1 and later.
    Prose,
}

/// Another process on the device, as torch asked the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherProcess {
    /// Its process id, as the host counts them.
    pub id: i128,
    /// Its memory, its context included. `None` where the driver did not tell.
    pub used: Option<Quantity>,
}

/// What an out-of-memory line says. A figure that is not printed, or was cut, is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct OutOfMemory {
    /// Who refused.
    pub refuser: Refuser,
    /// The device's kind; CUDA where nothing else is named.
    pub accelerator: Accelerator,
    /// The wording, where it is torch's and enough of it is there.
    pub generation: Option<Generation>,
    /// The device as the process counts devices.
    pub device: Option<u32>,
    /// What was asked for.
    pub asked: Option<Quantity>,
    /// What the device has for processes (`cudaMemGetInfo`).
    pub total: Option<Quantity>,
    /// What of it is free.
    pub free: Option<Quantity>,
    /// What `set_per_process_memory_fraction` allows.
    pub allowed: Option<Quantity>,
    /// What this process holds, its context and everything outside torch included; where torch lists it as one process
    /// among the others (in containers), the one that holds what torch has reserved.
    pub in_use: Option<Quantity>,
    /// Live tensors of torch's allocator.
    pub allocated: Option<Quantity>,
    /// Of these, in private pools of CUDA graphs.
    pub private_pools: Option<Quantity>,
    /// What torch holds without a tensor in it.
    pub unallocated: Option<Quantity>,
    /// What torch holds altogether: printed up to 2.0, the sum of the two later.
    pub reserved: Option<Quantity>,
    /// Other processes on the device.
    pub others: Vec<OtherProcess>,
}

impl OutOfMemory {
    /// What the line says, where it is a failure that device memory caused. `None` for any other line.
    pub fn of(event: &Event) -> Option<OutOfMemory> {
        let text = event.text.to_ascii_lowercase();
        let caused = match event.role {
            Role::Failure(FailureKind::OutOfMemory) => true,
            Role::Failure(_) => super::is_out_of_memory(&text),
            _ => false,
        };
        caused.then(|| OutOfMemory::read(event))
    }

    /// What the line says, taken for exhaustion whatever its words are.
    pub fn read(event: &Event) -> OutOfMemory {
        let text = event.text.to_ascii_lowercase();
        let allocated = event.memory("allocated");
        let printed = event.memory("reserved");
        let unallocated = event.memory("reserved unallocated");
        let bracketed = text.contains("; ") && (printed.is_some() || text.contains(" already allocated"));
        let prose = text.contains("has a total capa") || unallocated.is_some();
        let reserved = printed.or_else(|| Some(allocated? + unallocated?));
        let mut others = others(event);
        let in_use = event.memory("in use").or_else(|| own_among(&mut others, reserved));
        OutOfMemory {
            refuser: first_named(&text, &REFUSERS).unwrap_or(Refuser::Torch),
            accelerator: first_named(&text, &ACCELERATORS).unwrap_or(Accelerator::Cuda),
            generation: match (bracketed, prose) {
                (true, _) => Some(Generation::Bracketed),
                (false, true) => Some(Generation::Prose),
                (false, false) => None,
            },
            device: event.count("gpu").and_then(|device| u32::try_from(device).ok()),
            asked: event.memory("asked"),
            total: event.memory("total"),
            free: event.memory("free"),
            allowed: event.memory("allowed"),
            in_use,
            allocated,
            private_pools: event.memory("private pools"),
            // What torch 1.x does not print follows from what it does; rounding can make it a little less than nothing.
            unallocated: unallocated.or_else(|| Some(printed? - allocated?)),
            reserved,
            others,
        }
    }

    /// How much more than was free was asked for. Negative where the free memory would have sufficed, had it been in one
    /// piece.
    pub fn missing(&self) -> Option<Quantity> {
        Some(self.asked? - self.free?)
    }

    /// Whether what torch holds without using it would have been enough: fragmentation. Only where that is sure but for
    /// the rounding of the prints.
    pub fn is_fragmented(&self) -> bool {
        let pair = self.unallocated.zip(self.asked);
        pair.is_some_and(|(unallocated, asked)| unallocated.midpoint() >= asked.midpoint() && asked.low() > 0)
    }

    /// What this process holds outside torch: context, NCCL, libraries, driver mappings. `None` where the sentence does
    /// not tell, as none of the first generation does.
    pub fn outside_torch(&self) -> Option<Quantity> {
        Some(self.in_use? - self.reserved?)
    }

    /// What other processes hold together, where the sentence lists any whose memory is known.
    pub fn held_by_others(&self) -> Option<Quantity> {
        self.others.iter().filter_map(|other| other.used).reduce(|one, other| one + other)
    }

    /// What is neither free, nor this process's, nor a listed process's: processes that the container hides, and what the
    /// driver keeps. `None` where the sentence does not tell.
    pub fn unaccounted(&self) -> Option<Quantity> {
        let listed = self.held_by_others().unwrap_or(Quantity::ZERO);
        Some(self.total? - self.free? - self.in_use? - listed)
    }
}

fn first_named<T: Copy>(text: &str, table: &[(&str, T)]) -> Option<T> {
    table.iter().find(|(words, _)| text.contains(words)).map(|(_, named)| *named)
}

/// This process among those that are listed, taken out of them. In a container torch knows itself by another id than the
/// driver does, so it lists itself as one more process: the smallest that holds what torch has reserved is it.
fn own_among(listed: &mut Vec<OtherProcess>, reserved: Option<Quantity>) -> Option<Quantity> {
    let reserved = reserved?;
    let (index, used) = listed
        .iter()
        .enumerate()
        .filter_map(|(index, process)| Some((index, process.used?)))
        .filter(|(_, used)| used.high() >= reserved.low())
        .min_by_key(|(_, used)| used.midpoint())?;
    listed.remove(index);
    Some(used)
}

/// The other processes: each id is followed by its memory.
fn others(event: &Event) -> Vec<OtherProcess> {
    let mut found: Vec<OtherProcess> = Vec::new();
    for field in &event.fields {
        match (field.name.as_str(), &field.value) {
            ("process", Value::Number(id)) => {
                found.extend(id.to_integer().map(|id| OtherProcess { id, used: None }));
            }
            ("process memory", value) => {
                if let Some(last) = found.last_mut() {
                    last.used = match value {
                        Value::Memory(used) => Some(*used),
                        _ => None,
                    };
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::sglang::parse_line;
    use crate::grammar::sglang::tests::line;
    use crate::quantity::{MIB, mib_text};

    fn read(text: &str) -> OutOfMemory {
        OutOfMemory::of(&parse_line(&line(text)).unwrap()).unwrap()
    }

    fn mib(quantity: Option<Quantity>) -> String {
        mib_text(quantity.unwrap())
    }

    #[test]
    fn the_prose_of_torch_2_adds_up() {
        let read = read(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.15 GiB \
             of which 1.00 GiB is free. Process 77 has 12.00 GiB memory in use. Process 78 has 0.50 GiB memory in use. \
             Including non-PyTorch memory, this process has 65.00 GiB memory in use. Of the allocated memory 60.00 GiB is \
             allocated by PyTorch, with 1.00 GiB allocated in private pools (e.g., CUDA Graphs), and 3.00 GiB is reserved by \
             PyTorch but unallocated.",
        );
        assert_eq!((read.refuser, read.generation), (Refuser::Torch, Some(Generation::Prose)));
        assert_eq!((read.device, read.others.len()), (Some(1), 2));
        assert!(read.is_fragmented());
        assert!(read.missing().unwrap().contains(1024 * MIB));
        assert!(read.outside_torch().unwrap().contains(2048 * MIB));
        assert!(read.held_by_others().unwrap().contains(12_800 * MIB));
        assert!(read.unaccounted().unwrap().contains((79 * 1024 + 154 - 1024 - 66_560 - 12_800) * MIB));
        assert!(mib(read.private_pools).starts_with("1,024"));
    }

    #[test]
    fn the_brackets_of_torch_1_give_what_is_reserved() {
        let read = read(
            "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; 19.00 GiB already \
             allocated; 0.50 GiB free; 22.00 GiB reserved in total by PyTorch)",
        );
        assert_eq!(read.generation, Some(Generation::Bracketed));
        assert!(read.unallocated.unwrap().contains(3072 * MIB) && read.is_fragmented());
        assert_eq!((read.outside_torch(), read.unaccounted()), (None, None));
    }

    #[test]
    fn a_process_that_lists_itself_is_no_other() {
        let read = read(
            "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.02 GiB is free. \
             Process 123 has 12.00 GiB memory in use. Process 77 has 66.00 GiB memory in use. Of the allocated memory 60.00 GiB \
             is allocated by PyTorch, and 3.00 GiB is reserved by PyTorch but unallocated.",
        );
        assert_eq!(read.others.iter().map(|other| other.id).collect::<Vec<_>>(), [123]);
        assert!(read.in_use.unwrap().contains(66 * 1024 * MIB));
    }

    #[test]
    fn who_refused_is_told_apart() {
        for (text, refuser) in [
            ("torch.AcceleratorError: CUDA error: out of memory", Refuser::Runtime),
            ("RuntimeError: CUDA driver error: 2", Refuser::Driver),
            ("RuntimeError: cuMemCreate failed with CUresult 2", Refuser::Driver),
            (
                "[torch_memory_saver.cpp] CUresult error: 2 (out of memory) func=cu_mem_create",
                Refuser::MemorySaver,
            ),
            (
                "torch.distributed.DistBackendError: NCCL error, unhandled cuda error: Cuda failure 2 'out of memory'",
                Refuser::Collectives,
            ),
            ("nvshmem: out of memory", Refuser::Nvshmem),
            (
                "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
                Refuser::MathLibrary,
            ),
            ("RuntimeError: Triton Error [CUDA]: out of memory", Refuser::Triton),
            ("HIP out of memory. Tried to allocate 2.00 GiB.", Refuser::Torch),
        ] {
            assert_eq!(read(text).refuser, refuser, "{text}");
        }
    }

    #[test]
    fn the_device_s_kind_is_told_apart() {
        for (text, kind) in [
            ("HIP out of memory. Tried to allocate 2.00 GiB.", Accelerator::Hip),
            (
                "RuntimeError: NPU out of memory. Tried to allocate 20.00 MiB (NPU 0; 60.97 GiB total capacity)",
                Accelerator::Npu,
            ),
            ("XPU out of memory. Tried to allocate 2.00 GiB.", Accelerator::Xpu),
            ("CUDA out of memory. Tried to allocate 2.00 GiB.", Accelerator::Cuda),
        ] {
            assert_eq!(read(text).accelerator, kind, "{text}");
        }
    }

    #[test]
    fn what_is_missing_or_cut_is_unknown() {
        let bare = read("CUDA out of memory. Tried to allocate");
        assert_eq!((bare.asked, bare.free, bare.missing(), bare.generation), (None, None, None, None));
        assert!(!bare.is_fragmented());
        let other = parse_line(&line("ValueError: nothing to do with memory")).unwrap();
        assert_eq!(OutOfMemory::of(&other), None);
    }
}
