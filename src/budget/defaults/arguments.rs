//! Settings from a launch's arguments.

use super::{Disaggregation, Settings, Speculation};
use crate::server_args::{Argument, ServerArgs};
use crate::version::Version;

impl Settings {
    /// The settings that a `server_args=` line tells, for a card of `capacity_mib`.
    ///
    /// The line holds values after resolution, so a default that SGLang chose looks like a choice of the user's: the
    /// fraction comes out the same. What the model decides (`mla`, `multimodal`, `vision`, `aiter_long_context`) and the
    /// environment (`post_capture`) is no argument and stays as [`Settings::new`] sets it, as does every absent key.
    pub fn from_arguments(arguments: &ServerArgs, version: Version, capacity_mib: Option<u32>) -> Settings {
        let default = Settings::new(version, capacity_mib);
        let count = |key: &str| arguments.integer(key).and_then(|number| u32::try_from(number).ok());
        let signed = |key: &str| arguments.integer(key).and_then(|number| i64::try_from(number).ok());
        let decode = Phase::of(arguments, "decode");
        let prefill = Phase::of(arguments, "prefill");
        let dp_key = if version >= Version::new(5, 23) { "attn_dp_size" } else { "dp_size" };
        Settings {
            tp: count("tp_size").unwrap_or(default.tp),
            pp: count("pp_size").unwrap_or(default.pp),
            dp: count(dp_key).unwrap_or(default.dp),
            dp_attention: arguments.flag("enable_dp_attention").unwrap_or(false),
            chunked_prefill_size: signed("chunked_prefill_size"),
            max_prefill_tokens: signed("max_prefill_tokens").unwrap_or(default.max_prefill_tokens),
            max_total_tokens: signed("max_total_tokens"),
            max_running_requests: count("max_running_requests"),
            graph_max_batch: decode
                .most
                .and_then(|most| u32::try_from(most).ok())
                .or(count("cuda_graph_max_bs")),
            decode_graphs: decode.enabled.unwrap_or(!disabled(arguments, "disable_decode_cuda_graph")),
            prefill_graphs: prefill_graphs(arguments, &prefill).unwrap_or(default.prefill_graphs),
            prefill_graph_max_tokens: prefill.most.or(signed("piecewise_cuda_graph_max_tokens")),
            prefill_graph_sizes: prefill.sizes.or(sizes(arguments.get("piecewise_cuda_graph_tokens"))),
            breakable_prefill: prefill.breakable,
            speculation: Speculation::named(arguments.text("speculative_algorithm")),
            draft_tokens: count("speculative_num_draft_tokens"),
            deepep: arguments.text("moe_a2a_backend") == Some("deepep"),
            disaggregation: match arguments.text("disaggregation_mode") {
                Some("prefill") => Disaggregation::Prefill,
                Some("decode") => Disaggregation::Decode,
                _ => Disaggregation::None,
            },
            language_only: arguments.flag("language_only").unwrap_or(false),
            xpu: arguments.text("device") == Some("xpu"),
            ..default
        }
    }
}

/// One phase of `cuda_graph_config` (0.5.15 and later).
#[derive(Default)]
struct Phase {
    enabled: Option<bool>,
    breakable: bool,
    most: Option<i64>,
    sizes: Option<usize>,
}

impl Phase {
    fn of(arguments: &ServerArgs, name: &str) -> Phase {
        let record = |argument: Option<&Argument>| match argument {
            Some(Argument::Record(fields)) => fields.clone(),
            _ => Vec::new(),
        };
        let config = ServerArgs::new(record(arguments.get("cuda_graph_config")), false);
        let phase = ServerArgs::new(record(config.get(name)), false);
        let backend = phase.text("backend");
        Phase {
            enabled: backend.map(|backend| backend != "disabled"),
            breakable: backend == Some("breakable"),
            most: phase.integer("max_bs").and_then(|most| i64::try_from(most).ok()),
            sizes: sizes(phase.get("bs")),
        }
    }
}

fn sizes(list: Option<&Argument>) -> Option<usize> {
    match list {
        Some(Argument::List(items)) => Some(items.len()),
        _ => None,
    }
}

/// Whether graphs are off, by the switch of the phase or the common one.
fn disabled(arguments: &ServerArgs, switch: &str) -> bool {
    [switch, "disable_cuda_graph"].into_iter().any(|key| arguments.flag(key) == Some(true))
}

/// Prefill graphs: a switch to turn them on (0.5.6 to 0.5.9), then one to turn them off, then a backend.
fn prefill_graphs(arguments: &ServerArgs, phase: &Phase) -> Option<bool> {
    arguments
        .flag("enable_piecewise_cuda_graph")
        .or(arguments.flag("disable_piecewise_cuda_graph").map(|off| !off))
        .or(phase.enabled)
        .or(arguments.flag("disable_prefill_cuda_graph").map(|off| !off))
}

#[cfg(test)]
mod tests {
    use super::super::default_fraction;
    use super::*;
    use crate::server_args::parse;

    const H200: Option<u32> = Some(143_771);

    fn settings(line: &str, version: Version) -> Settings {
        Settings::from_arguments(&parse(line).unwrap(), version, H200)
    }

    #[test]
    fn recorded_defaults_are_derived_again() {
        let line = "ServerArgs(mem_fraction_static=0.907, chunked_prefill_size=8192, max_prefill_tokens=16384, \
                    tp_size=1, pp_size=1, dp_size=1, speculative_algorithm=None, cuda_graph_max_bs=256, \
                    disable_cuda_graph=True, disable_piecewise_cuda_graph=True)";
        assert_eq!(default_fraction(&settings(line, Version::new(5, 12))).printed, 0.907);
        let line = "ServerArgs(mem_fraction_static=0.929, chunked_prefill_size=2048, max_prefill_tokens=16384, \
                    tp_size=1, pp_size=1, dp_size=1, speculative_algorithm=None, cuda_graph_max_bs=32, \
                    disable_cuda_graph=False, disable_piecewise_cuda_graph=True)";
        assert_eq!(default_fraction(&settings(line, Version::new(5, 12))).printed, 0.929);
    }

    #[test]
    fn whole_lines_of_both_wordings_say_the_same() {
        let old = settings(include_str!("../../server_args/testdata/0.5.12.txt"), Version::new(5, 12));
        let new = settings(include_str!("../../server_args/testdata/0.5.15.txt"), Version::new(5, 15));
        for settings in [&old, &new] {
            assert_eq!((settings.graph_max_batch, settings.chunked_prefill_size), (Some(32), Some(8192)));
            assert_eq!(
                (settings.prefill_graph_max_tokens, settings.prefill_graph_sizes),
                (Some(8192), Some(58))
            );
            assert!(settings.decode_graphs && settings.prefill_graphs && !settings.dp_attention);
        }
        assert!(new.breakable_prefill);
        assert_eq!(default_fraction(&old).reserved, default_fraction(&new).reserved);
    }

    #[test]
    fn switches_and_roles_are_read() {
        let line = "ServerArgs(speculative_algorithm='EAGLE3', disaggregation_mode='decode', moe_a2a_backend='deepep', \
                    dp_size=8, enable_dp_attention=True, tp_size=8, cuda_graph_config=CudaGraphConfig(\
                    decode=PhaseConfig(backend='disabled', max_bs=None, bs=None), prefill=PhaseConfig(backend='disabled')))";
        let settings = settings(line, Version::new(5, 15));
        assert_eq!(
            (settings.speculation, settings.disaggregation),
            (Speculation::Eagle, Disaggregation::Decode)
        );
        assert!(
            settings.deepep && settings.dp_attention && !settings.decode_graphs && !settings.prefill_graphs
        );
        assert_eq!((settings.tp, settings.dp), (8, 8));
    }

    #[test]
    fn switches_of_every_release() {
        let prefill = |line: &str, version| settings(line, version).prefill_graphs;
        assert!(prefill("ServerArgs(enable_piecewise_cuda_graph=True)", Version::new(5, 9)));
        assert!(!prefill("ServerArgs(tp_size=1)", Version::new(5, 9)));
        assert!(!prefill("ServerArgs(disable_piecewise_cuda_graph=True)", Version::new(5, 12)));
        assert!(!prefill("ServerArgs(disable_prefill_cuda_graph=True)", Version::new(5, 15)));
        let dp = |version| settings("{'dp_size': 2, 'attn_dp_size': 4}", version).dp;
        assert_eq!((dp(Version::new(5, 20)), dp(Version::new(5, 23))), (2, 4));
    }
}
