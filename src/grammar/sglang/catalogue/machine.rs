//! What the machine around the server says: the kernel, the container runtime, the batch system.
//!
//! Its words matter because a process that the host's out-of-memory killer ended says nothing itself. All of them speak of
//! host memory; a device's exhaustion is an exception, never a kill.

use super::releases::ANY;
use super::{Printers, Template, row};
use crate::event::{FailureKind, Role};

/// The row of a communicator's rank, also the beginning of its older forms' names.
pub(crate) const RANK_OF_COMMUNICATOR: &str = "machine.nccl_rank";

const HOST: Role = Role::Failure(FailureKind::HostMemory);

pub(super) static ROWS: &[Template] = &[
    row(
        "machine.oom_killed",
        "{Out of memory|Memory cgroup out of memory}: Killed process {pid=n} ({process=text}){figures=rest}",
        HOST,
        ANY,
        Printers::Launcher,
    ),
    row(
        "machine.oom_invoked",
        "{process=word} invoked oom-killer:{figures=rest}",
        HOST,
        ANY,
        Printers::Launcher,
    ),
    row("machine.oom_task", "oom-kill:{figures=rest}", HOST, ANY, Printers::Launcher),
    row("machine.kubernetes", "Reason: OOMKilled", HOST, ANY, Printers::Launcher),
    row(
        "machine.exit_code",
        "Exit Code: {exit code=n}",
        Role::Failure(FailureKind::ProcessDied),
        ANY,
        Printers::Launcher,
    ),
    row("machine.pods", "{pod=word} {ready=word} OOMKilled {rest}", HOST, ANY, Printers::Launcher),
    row("machine.docker", "\"OOMKilled\": true[,]", HOST, ANY, Printers::Launcher),
    row(
        "machine.slurm",
        "slurmstepd: error: Detected {events=n} {oom_kill|oom-kill} event{rest}",
        HOST,
        ANY,
        Printers::Launcher,
    ),
    row(
        "machine.systemd",
        "{unit=word} A process of this unit has been killed by the OOM killer.",
        HOST,
        ANY,
        Printers::Launcher,
    ),
    row(
        "machine.host_allocator",
        "\\[enforce fail at {where=text}\\] {check=text} DefaultCPUAllocator: {can't allocate|not enough} memory: you tried \
         to allocate {requested=b} bytes.{rest}",
        HOST,
        ANY,
        Printers::EveryRank,
    ),
    // NCCL's own line, behind its own prefix (see `read::nccl`): which process and which card a rank is.
    row(
        RANK_OF_COMMUNICATOR,
        "{call=ncclCommInitRank|ncclCommInitRankConfig|ncclCommInitRankScalable|ncclCommInitAll} comm {comm=word} rank {rank=n} \
         nranks {nranks=n} cudaDev {cudaDev=n}[ nvmlDev {nvmlDev=n}] busId {busId=word}{rest}",
        Role::Note,
        ANY,
        Printers::EveryRank,
    ),
    row(
        "machine.nccl_rank.v1",
        "comm {comm=word} rank {rank=n} nranks {nranks=n} cudaDev {cudaDev=n}[ nvmlDev {nvmlDev=n}] busId {busId=word}{rest}",
        Role::Note,
        ANY,
        Printers::EveryRank,
    ),
    // Context only: a fault that the driver reports says nothing of how much memory was free.
    row("machine.xid", "NVRM: Xid ({device=text}): {code=n},{rest}", Role::Note, ANY, Printers::Launcher),
];
