//! Blocks: what one form of output says of one moment, before it is joined with the other forms of its sample.
//!
//! Separate from the forms because each of them fills the same block, and from [`super::join`] because no form may
//! need to know of another.

use super::notes::{DumpNote, DumpProblem};
use crate::input::LogicalLine;
use crate::observe::{BusId, Instrument, MigInstance, ProcessUse};
use crate::place::Place;
use crate::quantity::Quantity;
use crate::time::Stamp;

/// More devices than this are no machine (sixteen cards of seven MIG instances are fewer): a longer run of rows is cut
/// into several blocks, which bounds every search within one.
pub(super) const MOST_DEVICES: usize = 160;

/// The forms of output. A sample holds each at most once: a second one is the next sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The default box, with its MIG devices.
    DeviceBox,
    /// The box of processes.
    ProcessBox,
    /// `-q`.
    QueryText,
    /// `-q -x`.
    Xml,
    /// `--query-gpu`.
    DeviceCsv,
    /// `--query-compute-apps`.
    ProcessCsv,
    /// `pmon`.
    ProcessMonitor,
    /// `dmon`.
    DeviceMonitor,
    /// `-L` and its like: which devices there are, without their use.
    DeviceList,
    /// A relative's listing of devices, processes with them or apart.
    Relative,
}

/// By what a form names a device. Forms differ in what they print; any agreeing part identifies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DeviceId {
    /// The instrument's number.
    pub index: Option<u32>,
    /// UUID as printed.
    pub uuid: Option<String>,
    /// PCI address.
    pub bus: Option<BusId>,
    /// The instance on the device, where the figures are an instance's.
    pub mig: Option<MigInstance>,
}

impl DeviceId {
    /// A device known by its number.
    pub fn numbered(index: u32) -> Self {
        DeviceId { index: Some(index), ..DeviceId::default() }
    }

    /// Whether anything names the device at all.
    pub fn is_known(&self) -> bool {
        self.index.is_some() || self.uuid.is_some() || self.bus.is_some()
    }

    /// Whether both name one device: some part agrees, and none differs.
    pub fn same_as(&self, other: &DeviceId) -> bool {
        fn compare<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> Option<bool> {
            Some(one? == other?)
        }
        let answers = [
            compare(self.index.as_ref(), other.index.as_ref()),
            compare(self.uuid.as_ref(), other.uuid.as_ref()),
            compare(self.bus.as_ref(), other.bus.as_ref()),
        ];
        answers.contains(&Some(true)) && !answers.contains(&Some(false)) && same_instance(self.mig, other.mig)
    }

    /// Takes over the parts that the other one knows and this one doesn't.
    pub fn complete(&mut self, other: DeviceId) {
        self.index = self.index.or(other.index);
        self.bus = self.bus.or(other.bus);
        self.uuid = self.uuid.take().or(other.uuid);
        self.mig = self.mig.or(other.mig);
    }
}

/// Whether two MIG coordinates can be one instance's: forms print two or all three of the numbers.
fn same_instance(one: Option<MigInstance>, other: Option<MigInstance>) -> bool {
    let agree = |one: Option<u32>, other: Option<u32>| one.is_none() || other.is_none() || one == other;
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => {
            agree(one.gpu_instance, other.gpu_instance)
                && agree(one.compute_instance, other.compute_instance)
                && agree(one.device, other.device)
        }
        _ => false,
    }
}

/// A device's figures in one form.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DeviceFacts {
    pub place: Place,
    pub id: DeviceId,
    pub name: Option<String>,
    pub total: Option<Quantity>,
    pub used: Option<Quantity>,
    pub free: Option<Quantity>,
    pub reserved: Option<Quantity>,
    /// Whether the form lists this device's processes.
    pub processes_listed: bool,
}

impl DeviceFacts {
    /// A device with every figure still unknown.
    pub fn new(place: Place, id: DeviceId) -> Self {
        DeviceFacts {
            place,
            id,
            name: None,
            total: None,
            used: None,
            free: None,
            reserved: None,
            processes_listed: false,
        }
    }

    /// Whether the form has told a figure of memory.
    pub fn has_figures(&self) -> bool {
        [self.total, self.used, self.free, self.reserved].iter().any(Option::is_some)
    }
}

/// A process in one form's list.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ProcessFacts {
    pub place: Place,
    pub device: DeviceId,
    /// The product name of its device, where only that is printed.
    pub device_name: Option<String>,
    /// What is listed of it.
    pub listed: ProcessUse,
    /// Whether nvidia-smi cut its figure.
    pub cut: bool,
}

/// One form's account of one moment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Block {
    pub place: Place,
    pub form: Form,
    pub instrument: Instrument,
    pub taken_at: Option<Stamp>,
    pub driver: Option<String>,
    pub devices: Vec<DeviceFacts>,
    pub processes: Vec<ProcessFacts>,
    /// Whether the block lists the processes of every device of the machine.
    pub lists_all_processes: bool,
}

impl Block {
    /// An empty block that begins at `place`.
    pub fn new(place: Place, form: Form, instrument: Instrument) -> Self {
        Block {
            place,
            form,
            instrument,
            taken_at: None,
            driver: None,
            devices: Vec::new(),
            processes: Vec::new(),
            lists_all_processes: false,
        }
    }

    /// Whether it says nothing that an observation could hold.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty() && self.processes.is_empty() && !self.lists_all_processes
    }

    /// Whether the block is as long as a block may be.
    pub fn is_full(&self) -> bool {
        self.devices.len() >= MOST_DEVICES
    }

    /// Whether a device of this identity has been told already, or the block is as long as a block may be: the
    /// next row then belongs to a new block.
    pub fn is_done_for(&self, id: &DeviceId) -> bool {
        self.is_full() || self.devices.iter().any(|device| device.id.same_as(id))
    }
}

/// What the forms have found so far.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Blocks in the order of the source.
    pub blocks: Vec<Block>,
    /// Remarks.
    pub notes: Vec<DumpNote>,
    /// A line of its own with the time, which the next block takes.
    pub clock: Option<Stamp>,
}

impl Found {
    /// Opens a block, with the time that stood above it.
    pub fn open(&mut self, place: &Place, form: Form, instrument: Instrument) -> Block {
        Block { taken_at: self.clock.take(), ..Block::new(place.clone(), form, instrument) }
    }

    /// Keeps a block that has come to its end, if it says anything.
    pub fn keep(&mut self, block: Option<Block>) {
        self.blocks.extend(block.filter(|block| !block.is_empty()));
    }

    /// Remarks on `place`.
    pub fn note(&mut self, place: &Place, problem: DumpProblem) {
        self.notes.push(DumpNote { place: place.clone(), problem });
    }
}

/// One form of output, fed line by line. Lines that are not its own it leaves alone: log lines may stand between.
pub(super) trait FormReader {
    /// Takes the line if it is one of this form's.
    fn take(&mut self, line: &LogicalLine, found: &mut Found) -> bool;

    /// Ends what is open: another form has begun, or the source has ended.
    fn close(&mut self, found: &mut Found);
}
