//! `vramledger plan`: the same launch with other flags.

use super::Exit;
use super::arguments::{AnswerFormat, ColorWhen};
use super::inputs::{model, read_all, sources, warn_of_useless_sources};
use super::output::{Target, complain};
use super::plan_arguments::PlanArguments;
use crate::analysis::{Analysis, LaunchAnalysis, Settings, analyse};
use crate::budget::cell::KvType;
use crate::budget::plan::{
    Answer, Change, Facts, FractionChoice, Goal, GraphChoice, KvChoice, answer, guide_limit,
};
use crate::quantity::{GIB, MIB};

/// Answers a what-if.
pub(super) fn run(arguments: &PlanArguments, color: ColorWhen) -> anyhow::Result<Exit> {
    let sources = sources(&arguments.files, &arguments.smi, false)?;
    let target = Target::open(arguments.output.as_deref(), color)?;
    let settings = Settings {
        card_mib: arguments.model.gpu_mem,
        model: model(&arguments.model)?,
        ..Settings::default()
    };
    let (readings, unreadable) = read_all(&sources, &mut None);
    let analysis = analyse(readings, &settings);
    warn_of_useless_sources(&analysis);
    let (index, launch, facts) = match chosen(&analysis, arguments.launch) {
        Ok(chosen) => chosen,
        Err(error) => {
            complain(&format!("{error:#}"));
            return Ok(Exit::Unusable);
        }
    };
    let change = change(arguments, facts)?;
    let goal = goal(arguments, facts);
    let answer = answer(facts, &change, goal)?;
    let text = text(arguments, &target, index, launch, &answer)?;
    target.write(&text)?;
    Ok(if unreadable { Exit::Unusable } else { Exit::Clean })
}

fn text(
    arguments: &PlanArguments,
    target: &Target,
    index: usize,
    launch: &LaunchAnalysis,
    answer: &Answer,
) -> anyhow::Result<String> {
    Ok(match arguments.format {
        AnswerFormat::Json => {
            let mut json = serde_json::to_string_pretty(&crate::report::plan(index, launch, answer))?;
            json.push('\n');
            json
        }
        AnswerFormat::Table => crate::render::plan(launch, answer, target.width(), false),
    })
}

/// The launch to plan with: the one of that number, else the last that has figures for it.
fn chosen(analysis: &Analysis, number: Option<usize>) -> anyhow::Result<(usize, &LaunchAnalysis, &Facts)> {
    let wanted = |index: &usize| number.is_none_or(|number| *index + 1 == number);
    let mut candidates: Vec<(usize, &LaunchAnalysis)> =
        analysis.launches.iter().enumerate().filter(|(index, _)| wanted(index)).collect();
    let mut problem = None;
    candidates.reverse();
    for (index, launch) in candidates {
        // Of several replicas, the one with the least left decides.
        let left = |facts: &&Facts| facts.remaining.map_or(i128::MAX, |left| left.midpoint());
        if let Some(facts) = launch.facts.iter().flatten().min_by_key(left) {
            return Ok((index, launch, facts));
        }
        problem = problem.or(launch.facts.iter().find_map(|facts| facts.as_ref().err()).cloned());
    }
    Err(match (problem, number) {
        (Some(problem), _) => problem.into(),
        (None, Some(number)) => anyhow::anyhow!(
            "there is no launch {number} with memory figures; {} were read",
            analysis.launches.len()
        ),
        (None, None) => {
            anyhow::anyhow!("no launch with memory figures: what is wanted is a server's log from its start")
        }
    })
}

fn change(arguments: &PlanArguments, facts: &Facts) -> anyhow::Result<Change> {
    let kv = arguments.kv_cache_dtype.as_ref().map(|name| {
        let unquantised = facts.model.as_ref().map_or(KvType::Half, |(model, _)| model.dtype);
        let kv_type = KvType::named(name, unquantised).ok_or_else(|| {
            anyhow::anyhow!(
                "`{name}` is no KV type known here: auto, bfloat16, fp8_e5m2, fp8_e4m3, fp4_e2m1, …"
            )
        })?;
        Ok::<KvChoice, anyhow::Error>(KvChoice { name: name.clone(), kv_type })
    });
    Ok(Change {
        fraction: arguments.mem_fraction_static.unwrap_or(FractionChoice::Keep),
        max_total_tokens: arguments.max_total_tokens.map(|cap| cap.0),
        graphs: match (arguments.disable_cuda_graph, arguments.cuda_graph_max_bs) {
            (true, _) => GraphChoice::Off,
            (false, Some(batch)) => GraphChoice::MaxBatch(batch),
            (false, None) => GraphChoice::Keep,
        },
        chunk: arguments.chunked_prefill_size,
        kv: kv.transpose()?,
        page_size: arguments.page_size.map(i128::from),
        tp: arguments.tp,
    })
}

/// The upper end of what SGLang's tuning guide wants free after start-up.
const GUIDE_HIGH: i128 = 8 * GIB;

fn goal(arguments: &PlanArguments, facts: &Facts) -> Option<Goal> {
    let goal = &arguments.goal;
    let length = || arguments.context.map(i128::from).or(facts.context_length.map(i128::from)).unwrap_or(1);
    if let Some(tokens) = goal.tokens {
        return Some(Goal::Tokens(i128::from(tokens)));
    }
    if let Some(requests) = goal.concurrency {
        let page = arguments.page_size.map_or(facts.page_size, i128::from).max(1);
        let pages = (length() + page - 1) / page;
        return Some(Goal::Tokens(i128::from(requests).saturating_mul(pages).saturating_mul(page)));
    }
    if let Some(headroom) = goal.headroom {
        return Some(Goal::Headroom(headroom));
    }
    let card = facts.settings.capacity_mib.map(|mib| i128::from(mib) * MIB);
    goal.fit.then(|| Goal::Headroom(guide_limit(GUIDE_HIGH, card, false)))
}
