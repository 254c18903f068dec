//! `out-of-memory-host`: the machine's memory ran out, not the device's.

use super::death::last_free;
use super::{Context, Rule};
use crate::event::Event;
use crate::finding::{Finding, Severity};
use crate::launch::Launch;
use crate::quantity::{Quantity, mib_text};
use crate::triage::Resource;

pub(super) static RULE: Rule = Rule {
    code: "VL035",
    name: "out-of-memory-host",
    severity: Severity::Error,
    summary: "host memory ran out: a process was killed, or the hierarchical cache does not fit",
    explanation: "Exit codes -9 and 137, `Killed`, `OOMKilled`, `oom-kill` and `Out of memory: Killed process` are the work of the kernel: the machine, or the \
container's limit, ran out of host memory. A device's exhaustion is an exception with a sentence, never a kill. No --mem-fraction-static helps.\n\n\
What takes host memory: loading weights (every rank reads its own copy before it goes to the device, and page cache counts against some containers' \
limits), the hierarchical cache (--hicache-ratio times the device's KV pool, for every rank, pinned), --cpu-offload-gb, shared memory of many ranks.\n\n\
`Not enough host memory available. Requesting … but only have …`: the hierarchical cache asks before it takes. SGLang keeps 10 GiB of the host back \
(not up to 0.4.3), so `free` is less than `free -h` says. Its GB are decimal.\n\n\
Remedies: a larger memory limit for the container, a smaller --hicache-size or --hicache-ratio, less offloading, loading fewer ranks at once.",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let Some(diagnosis) = context.diagnosis.filter(|diagnosis| diagnosis.resource == Resource::Host) else {
        return Vec::new();
    };
    let event = diagnosis.cause;
    let requested = event.memory("requested");
    let title = match (requested, event.count("pid")) {
        (Some(requested), _) => format!("host memory ran out: {} MiB were asked for", mib_text(requested)),
        (None, Some(pid)) => format!("host memory ran out: the kernel killed process {pid}"),
        (None, None) => "host memory ran out, not the device's".to_string(),
    };
    let mut finding = Finding::new(&RULE, title).stage(diagnosis.phase.stage()).explain(if requested.is_some() {
        "Memory of the machine, not of the device."
    } else {
        "A process was ended from outside, which is what the kernel does when the machine or the container's limit runs out of memory. Device memory ends in an exception, never in a kill."
    });
    finding = last_free(finding, diagnosis);
    if let (Some(requested), Some(free)) = (requested, event.memory("free")) {
        finding = finding
            .sum(format!(
                "requested {} − free {} = {} MiB missing, of this rank alone",
                mib_text(requested),
                mib_text(free),
                mib_text(requested - free)
            ))
            .amount(requested - free);
        for line in hierarchical_cache(context.launch, requested, free) {
            finding = finding.advise(line);
        }
        return vec![finding];
    }
    if exit_code(event).is_some() {
        finding = finding.sum("exit code -9 (137 in a shell or container) is SIGKILL".to_string());
    }
    vec![finding.advise("see dmesg for `Killed process`, and raise the machine's or the container's memory limit; no --mem-fraction-static changes it").advise(
        "take less host memory: --hicache-size, --cpu-offload-gb; load fewer ranks at a time",
    )]
}

fn exit_code(event: &Event) -> Option<i128> {
    event.count("exit code")
}

/// What the hierarchical cache may ask for: the size in whole decimal gigabytes that fits, or the ratio in tenths.
fn hierarchical_cache(launch: &Launch, requested: Quantity, free: Quantity) -> Vec<String> {
    const GB: i128 = 1_000_000_000;
    let arguments = launch.args();
    let size = arguments.and_then(|arguments| arguments.integer("hicache_size")).filter(|size| *size > 0);
    let fits = free.low().div_euclid(GB);
    if size.is_some() && fits > 0 {
        return vec![format!(
            "--hicache-size {fits} fits this rank; every rank of the machine takes as much"
        )];
    }
    let ratio = arguments.and_then(|arguments| arguments.float("hicache_ratio")).filter(|ratio| *ratio > 0.0);
    let tenths = ratio
        .filter(|_| requested.high() > 0 && free.low() > 0)
        .map(|ratio| (ratio * 10.0 * free.low() as f64 / requested.high() as f64).floor() / 10.0);
    match tenths {
        Some(tenths) if tenths > 1.0 => {
            vec![format!("--hicache-ratio {tenths:.1} fits this rank; every rank of the machine takes as much")]
        }
        Some(_) => vec!["the host holds no more than the device's own pool: a hierarchical cache gains nothing here; drop --enable-hierarchical-cache, or add memory".into()],
        None => vec!["shrink the hierarchical cache (--hicache-size, --hicache-ratio), or give the machine more memory".into()],
    }
}
