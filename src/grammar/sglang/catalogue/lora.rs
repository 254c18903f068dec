//! LoRA adapters and buffers.

use super::releases::*;
use super::{Printers, Template, begins_for, ends_for, row};
use crate::event::Role;
use crate::stage::Stage::Lora;
use crate::stage::Worker::Target;

pub(super) static ROWS: &[Template] = &[
    row("lora.ready", "LoRA manager ready.", Role::Note, (V0_3_6, V0_4_8), Printers::ModelRunner),
    row(
        "lora.backend",
        "Using {backend=word} as backend of LoRA kernels.",
        Role::Note,
        (V0_4_3, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "lora.load_start",
        "LoRA adapter loading starts: {adapter=text}. avail mem={gib:.2f} GB",
        begins_for(Target, Lora),
        (V0_4_10, V0_5_23),
        Printers::ModelRunner,
    ),
    row(
        "lora.load_end",
        "LoRA adapter loading completes: {adapter=text}. avail mem={gib:.2f} GB",
        ends_for(Target, Lora),
        (V0_4_10, V0_5_23),
        Printers::ModelRunner,
    ),
    row(
        "lora.unload_start",
        "LoRA adapter unloading starts: {adapter=text}. avail mem={gib:.2f} GB",
        begins_for(Target, Lora),
        (V0_4_10, V0_5_23),
        Printers::ModelRunner,
    ),
    row(
        "lora.unload_end",
        "LoRA adapter unloading completes: {adapter=text}. avail mem={gib:.2f} GB",
        ends_for(Target, Lora),
        (V0_4_10, V0_5_23),
        Printers::ModelRunner,
    ),
    row(
        "lora.moebuf",
        "Pre-allocated shared MoE LoRA CUDA graph buffers (max_bs={n}, max_loras={n})",
        Role::Note,
        (V0_5_10, V0_5_23),
        Printers::EveryRank,
    ),
];
