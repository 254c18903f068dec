//! Launch, watchdog and crash lines, and request pressure after ready.

use super::releases::*;
use super::{Printers, Template, row};
use crate::event::{FailureKind, Role};

pub(super) static ROWS: &[Template] = &[
    row(
        "ready",
        "The server is fired up and ready to roll!",
        Role::Ready,
        (V0_1_20, V0_5_23),
        Printers::Launcher,
    ),
    // What a node of rank 1 and up prints where node 0 prints `ready`: its schedulers have reported ready by then.
    row(
        "launcher.dummy_health",
        "Dummy health check server started in background thread at {address=rest}",
        Role::Ready,
        (V0_4_6, V0_5_23),
        Printers::Launcher,
    ),
    // Says on which device a replica begins: the reconciliation maps ranks by it.
    row("launcher.dp_gpu", "Launch DP{dp=n} starting at GPU #{gpu=n}.", Role::Note, ANY, Printers::Launcher),
    row(
        "watchdog.v1",
        "Watchdog timeout (self.watchdog_timeout={n})",
        Role::Failure(FailureKind::Watchdog),
        (V0_3_6, V0_5_6),
        Printers::EveryRank,
    ),
    row(
        "watchdog.v2",
        "{name=text} watchdog timeout (self.watchdog_timeout={watchdog_timeout=f}, self.soft={soft=word})",
        Role::Failure(FailureKind::Watchdog),
        (V0_5_8, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "crash.sched",
        "Scheduler hit an exception: {cause=rest}",
        Role::Failure(FailureKind::SchedulerException),
        (V0_3_6, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "crash.died",
        "Rank {rank=n} scheduler died during initialization (exit code: {exit code=n}).{rest}",
        Role::Failure(FailureKind::ProcessDied),
        (V0_5_10, V0_5_23),
        Printers::Launcher,
    ),
    row(
        "crash.dead",
        "Rank {rank=n} scheduler is dead. Please check if there are relevant logs.",
        Role::Failure(FailureKind::ProcessDied),
        ANY,
        Printers::Launcher,
    ),
    row(
        "crash.exit_code",
        "Exit code: {exit code=n}",
        Role::Failure(FailureKind::ProcessDied),
        ANY,
        Printers::Launcher,
    ),
    row(
        "crash.sigquit",
        "Received sigquit from a child process. It usually means the child failed.",
        Role::Failure(FailureKind::ProcessDied),
        ANY,
        Printers::Launcher,
    ),
    row(
        "crash.sigquit.v2",
        "SIGQUIT received. signum={word}, frame={text}. It usually means one child failed.",
        Role::Failure(FailureKind::ProcessDied),
        ANY,
        Printers::Launcher,
    ),
    // The shell's word when the host's OOM killer ended the launcher.
    row("crash.killed", "Killed", Role::Failure(FailureKind::ProcessDied), ANY, Printers::Launcher),
    row(
        "retract.v0",
        "decode out of memory happened, #retracted_reqs: {n}, #new_token_ratio: {f:.4f} -> {new ratio=f:.4f}",
        Role::Traffic,
        (V0_1_20, V0_1_20),
        Printers::EveryRank,
    ),
    row(
        "retract.v1",
        "Decode out of memory happened. #retracted_reqs: {n}, #new_token_ratio: {f:.4f} -> {new ratio=f:.4f}",
        Role::Traffic,
        (V0_2_15, V0_4_6),
        Printers::EveryRank,
    ),
    row(
        "retract.v2",
        "KV cache pool is full. Retract requests. #retracted_reqs: {n},[ #aborted_retracted_reqs: {n},] \
         #new_token_ratio: {f:.4f} -> {new ratio=f:.4f}",
        Role::Traffic,
        (V0_4_8, V0_5_6),
        Printers::EveryRank,
    ),
    row(
        "retract.v3",
        "KV cache pool is full. Retract requests. #retracted_reqs: {n}, #new_tokens_gained: {n}\
         [, #mamba_num_gained: {n}], #new_token_ratio: {f:.4f} -> {new ratio=f:.4f}",
        Role::Traffic,
        (V0_5_8, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "retract.test",
        "Testing retraction. #retracted_reqs: {n}{rest}",
        Role::Traffic,
        (V0_5_8, V0_5_23),
        Printers::EveryRank,
    ),
];
