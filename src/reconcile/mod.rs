//! The ledger against observations: the bridge from the log's GiB to the instrument's MiB.
//!
//! The log says how much of a device was free when start-up was done; an instrument says how much of the same device is
//! used. Between the two stand the card's total, what the driver keeps for itself, and what moved since. Everything here
//! is arithmetic on one rank and one sample; choosing which sample belongs to which rank is [`choose_devices`]'s part.

mod device;
mod processes;
mod reserve;

pub(crate) use device::device_by_arguments;
pub use device::{DeviceBasis, DeviceChoice, Tie, choose_devices};
pub use processes::{Owner, owners, with_processes};
pub use reserve::{Reserve, known_reserve};

use crate::launch::{Launch, Outcome, Rank};
use crate::ledger::Ledger;
use crate::observe::Observation;
use crate::quantity::{MIB, Quantity};

/// What the bridge may leave unexplained before it is said to fail: kernels loaded lazily, communication channels and
/// library workspaces of the first requests stay below this on the recorded servers (the first request of a 1,024-token
/// prompt took 56 MiB on an H200).
pub const UNEXPLAINED_LIMIT: i128 = 64 * MIB;

/// Where a figure of the bridge comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Basis {
    /// An instrument printed it.
    Measured,
    /// The log printed it.
    Logged,
    /// Computed from the others, or known for this card.
    Derived,
}

impl Basis {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Basis::Measured => "measured",
            Basis::Logged => "logged",
            Basis::Derived => "derived",
        }
    }
}

/// What a row of the bridge stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BridgeTerm {
    /// Memory of the whole card.
    Total,
    /// Memory that the driver keeps: part of the total, of neither used nor free.
    Reserve,
    /// In use before the first figure of the log: contexts, communicators, other processes.
    HeldBefore,
    /// Everything the ledger posted.
    LedgerTotal,
    /// Between the last stage line and the ready line: allocator cache not returned, or unlogged.
    KeptAtReady,
    /// The sum of the three above: used, by the log.
    UsedByLog,
    /// Used, by the instrument.
    UsedByInstrument,
    /// What a live probe's own CUDA context took of that.
    OwnContext,
    /// Of a live sample: what the device has in use beyond what the log says, the probe's own context aside.
    Drift,
    /// What other processes may have taken since the ready line, at most what they hold. Only for live samples, and only
    /// where something has to be explained: what they held before is in the log's figures.
    OthersSince,
}

/// One row of the bridge. Amounts are MiB in use, or the card's sizes; nothing is signed but what was given back.
#[derive(Debug, Clone, PartialEq)]
pub struct BridgeItem {
    /// What it stands for.
    pub term: BridgeTerm,
    /// The row in words.
    pub label: String,
    /// How much.
    pub amount: Quantity,
    /// Where the figure comes from.
    pub basis: Basis,
}

/// Whether the bridge closes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// What is left can be nothing, or is below [`UNEXPLAINED_LIMIT`].
    Holds,
    /// More than that is left.
    Fails,
    /// The sample does not carry what a verdict needs; the text says what.
    CannotTell(String),
}

/// One rank's books against one sample of its device.
#[derive(Debug, Clone, PartialEq)]
pub struct Reconciliation {
    /// Index of the launch.
    pub launch: usize,
    /// Index of the rank in it.
    pub rank: usize,
    /// Index of the observation.
    pub observation: usize,
    /// The rows, from the card's total to the instrument's used.
    pub bridge: Vec<BridgeItem>,
    /// Used by the instrument − the probe's own context − used by the log − what others may have taken since.
    pub unexplained: Quantity,
    /// Whether it closes.
    pub verdict: Verdict,
    /// Seconds from the ready line (or the last line) to the sample. `None` where either has no clock.
    pub seconds_apart: Option<f64>,
    /// Whose memory the listed processes hold.
    pub owners: Vec<Owner>,
    /// Whether the sample was taken by this run of the program.
    pub live: bool,
}

impl Reconciliation {
    /// The amount of one row.
    pub fn amount(&self, term: BridgeTerm) -> Option<Quantity> {
        self.bridge.iter().find(|item| item.term == term).map(|item| item.amount)
    }

    /// Memory of processes that are not this rank's, as listed. `None` where nobody was listed.
    pub fn foreign_total(&self) -> Option<Quantity> {
        let listed: Vec<Quantity> =
            self.owners.iter().filter(|owner| !owner.own).filter_map(|owner| owner.process.used).collect();
        (!self.owners.is_empty()).then(|| listed.into_iter().sum())
    }
}

/// Builds the bridge between a rank's ledger and a sample of its device. `None` where the log has no free figure, or the
/// sample neither a total nor a used figure.
pub fn reconcile(
    launch: (usize, &Launch),
    rank: (usize, &Rank),
    ledger: &Ledger,
    observation: (usize, &Observation),
) -> Option<Reconciliation> {
    let sample = observation.1;
    let (total, used) = (sample.total?, sample.used?);
    let (opening, closing) = (ledger.opening?, ledger.closing.or(ledger.headroom)?);
    let free_by_log = ledger.final_free()?;
    let reserve = Reserve::of(sample, launch.1, total - used - free_by_log, total);

    let mut bridge = vec![
        item(BridgeTerm::Total, "card", total, Basis::Measured),
        item(BridgeTerm::Reserve, reserve.label(), reserve.amount, reserve.basis),
        item(
            BridgeTerm::HeldBefore,
            "held before the first figure: contexts, communicators, other processes",
            total - reserve.amount - opening,
            Basis::Derived,
        ),
        item(BridgeTerm::LedgerTotal, "stages and gaps of the ledger", opening - closing, Basis::Logged),
    ];
    // Equal prints say that nothing is known to have moved in between.
    if let Some(kept) = ledger.kept_at_ready().filter(|_| ledger.closing != ledger.headroom) {
        bridge.push(item(
            BridgeTerm::KeptAtReady,
            "kept between the last stage and the ready line",
            kept,
            Basis::Logged,
        ));
    }
    let used_by_log = total - reserve.amount - free_by_log;
    bridge.push(item(BridgeTerm::UsedByLog, "used, by the log", used_by_log, Basis::Derived));
    bridge.push(item(
        BridgeTerm::UsedByInstrument,
        &format!("used, by {}{}", sample.instrument.name(), if sample.is_live() { ", now" } else { "" }),
        used + sample.own_context().unwrap_or(Quantity::ZERO),
        Basis::Measured,
    ));
    if let Some(own) = sample.own_context() {
        bridge.push(item(BridgeTerm::OwnContext, "the probe's own context", own, Basis::Measured));
    }

    // By now a rank's own process may have outgrown what its log says: the sample itself is the bound.
    let bound = if sample.is_live() { used } else { used_by_log };
    let owners = owners(sample, rank.1, bound);
    let drift = used - used_by_log;
    if sample.is_live() {
        bridge.push(item(BridgeTerm::Drift, "drift since ready", drift, Basis::Derived));
    }
    let others = others_since(sample, &owners, drift);
    if let Some(others) = others {
        bridge.push(item(BridgeTerm::OthersSince, "other processes, at most", others, Basis::Measured));
    }
    let unexplained = drift - others.unwrap_or(Quantity::ZERO);
    let verdict = if unexplained.magnitude().low() <= UNEXPLAINED_LIMIT {
        Verdict::Holds
    } else if launch.1.outcome == Outcome::Failed {
        Verdict::CannotTell(
            "the launch failed: its processes may have been gone when the sample was taken".into(),
        )
    } else if unexplained.low() > 0 && ledger.captured_unlogged() {
        Verdict::CannotTell(
            "the log prints no free memory after graph capture: what it took is in use and in no line".into(),
        )
    } else {
        Verdict::Fails
    };
    let moment = launch.1.ready.as_ref().and_then(|ready| ready.stamp).or(launch.1.last_event_at);
    Some(Reconciliation {
        launch: launch.0,
        rank: rank.0,
        observation: observation.0,
        bridge,
        unexplained,
        verdict,
        seconds_apart: sample
            .taken_at
            .zip(moment)
            .and_then(|(taken, moment)| taken.seconds_since(&moment))
            // A log from before now that seems to be from later was written in another time zone.
            .filter(|seconds| !sample.is_live() || *seconds >= 0.0),
        owners,
        live: sample.is_live(),
    })
}

/// What others may have taken since ready: anything from nothing to all that they hold. `None` where nothing has to be
/// explained, or nobody else is listed.
fn others_since(sample: &Observation, owners: &[Owner], drift: Quantity) -> Option<Quantity> {
    if !sample.is_live() || !drift.surely_above(UNEXPLAINED_LIMIT) {
        return None;
    }
    let held: Quantity =
        owners.iter().filter(|owner| !owner.own).filter_map(|owner| owner.process.used).sum();
    (held.high() > 0).then(|| Quantity::between(0, held.high()))
}

fn item(term: BridgeTerm, label: &str, amount: Quantity, basis: Basis) -> BridgeItem {
    BridgeItem { term, label: label.to_string(), amount, basis }
}
