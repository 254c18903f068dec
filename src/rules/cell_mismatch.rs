//! `cell-mismatch`: a token takes other memory than the model's config says.

use super::{Context, Rule};
use crate::budget::audit::World;
use crate::finding::{Finding, Severity};
use crate::quantity::group_digits;
use crate::stage::Stage;

pub(super) static RULE: Rule = Rule {
    code: "VL027",
    name: "cell-mismatch",
    severity: Severity::Warning,
    summary: "the bytes of KV per token in the log are not those of the model's config",
    explanation: "With --model-config the bytes of KV per token on one rank follow from the config: KV heads (split over attention ranks, at least one) × (key + \
value size) × layers of the pipeline stage × bytes an element; for MLA (kv_lora_rank + rope size) × layers × bytes. The log tells the same from the \
other side: the pool's printed size over its slots.\n\n\
Where the two ranges do not meet, one of the premises is wrong: another model or revision was served than the config describes; KV is stored in \
another type than the arguments say; layers are divided in another way (SGLANG_PP_LAYER_PARTITION); or the pool holds something that is not KV.\n\n\
Remedy: give the config of the model that was served. If it is that, please report the case with the log.",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    context.worlds().iter().filter_map(|world| mismatch(context, world)).collect()
}

fn mismatch(context: &Context<'_>, world: &World) -> Option<Finding> {
    let expected = world.expected.as_ref()?;
    let ((low, high), measured) = (expected.cell?, expected.measured_cell?);
    if measured.low <= high && low <= measured.high {
        return None;
    }
    let wanted = if low == high {
        group_digits(low)
    } else {
        format!("{} to {}", group_digits(low), group_digits(high))
    };
    Some(
        Finding::new(&RULE, format!("a token takes {} bytes of KV, the config says {wanted}", group_digits(measured.best())))
            .rank(context.tag(expected.rank))
            .stage(Stage::KvCache)
            .explain("The served model, its KV type or its division over ranks is not what the config and the arguments say.")
            .sum(format!("pool size over slots: {} to {} bytes; by the config {wanted}", group_digits(measured.low), group_digits(measured.high)))
            .at(world.tokens.as_ref().and_then(|tokens| tokens.place.clone()))
            .advise("give the config of the model that was served"),
    )
}
