//! A driver that is none: exports the functions of NVML and libcuda that vramledger calls, and answers as the environment
//! says. The tests compile it to a dynamic library and name it in `VRAMLEDGER_NVML` and `VRAMLEDGER_CUDA`.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `FAKE_DEVICES` | how many devices (1) |
//! | `FAKE_USED_MIB` | in use on every device before anyone asks (0) |
//! | `FAKE_GROWTH_MIB` | what each reading of NVML's memory finds more than the last (0) |
//! | `FAKE_PROCESSES` | `pid:MiB:name`, comma between; a name of `?` can't be looked up. `FAKE_PROCESSES_1` is device 1's |
//! | `FAKE_FAIL` | `function=code`, comma between; `function@device=code` for one device |
//! | `FAKE_HANG` | this function never returns |
//! | `FAKE_LOST_AFTER` | the last device is lost after so many readings |
//! | `FAKE_MIG` | device 0 has this many MIG instances |
//! | `FAKE_INTEGRATED` | CUDA calls the devices integrated |
//! | `FAKE_MOVES` | somebody else's MiB that come while a context stands, and stay |
//!
//! Sizes are those measured on an H200 with driver 580.159.04.

use std::env;
use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void, CStr};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};

const MIB: u64 = 1 << 20;
const TOTAL: u64 = 150_754_820_096;
const RESERVED: u64 = 644_939_776;
/// What a context takes beyond cuInit, and what cuInit takes.
const CONTEXT: u64 = 552_402_944 - INIT;
const INIT: u64 = 3_407_872;
/// A process's own share of it, as the process list counts.
const INSTANCE: u64 = 18_000 * MIB;

static READINGS: AtomicU64 = AtomicU64::new(0);
static STARTED: AtomicU64 = AtomicU64::new(0);
static CONTEXTS: AtomicU64 = AtomicU64::new(0);
static EVER: AtomicU64 = AtomicU64::new(0);
static PUSHED: AtomicI64 = AtomicI64::new(0);

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

fn number(name: &str, default: u64) -> u64 {
    variable(name).parse().unwrap_or(default)
}

/// Code to answer with, or never.
fn ordered(function: &str, device: Option<u64>) -> c_int {
    if variable("FAKE_HANG") == function {
        loop {
            std::thread::sleep(std::time::Duration::from_secs(3600));
        }
    }
    let here = device.map(|device| format!("{function}@{device}"));
    for order in variable("FAKE_FAIL").split(',') {
        if let Some((name, code)) = order.split_once('=') {
            if name == function || Some(name) == here.as_deref() {
                return code.parse().unwrap();
            }
        }
    }
    0
}

macro_rules! answer {
    ($function:literal, $device:expr, $body:block) => {{
        match ordered($function, $device) {
            0 => {
                $body;
                0
            }
            code => code as _,
        }
    }};
}

unsafe fn put(text: &str, buffer: *mut c_char, length: usize) {
    let bytes = text.as_bytes();
    let length = bytes.len().min(length - 1);
    std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), length);
    *buffer.add(length) = 0;
}

fn devices() -> u64 {
    number("FAKE_DEVICES", 1)
}

/// A handle is the device's number and one; of a MIG instance, a hundred more and its number.
fn device_of(handle: *mut c_void) -> u64 {
    (handle as u64 - 1) % 100
}

fn instance_of(handle: *mut c_void) -> Option<u64> {
    (handle as u64 > 100).then(|| (handle as u64 - 1) / 100 - 1)
}

fn used(device: u64) -> u64 {
    let mib = number("FAKE_USED_MIB", 0) + READINGS.load(SeqCst) * number("FAKE_GROWTH_MIB", 0);
    let moved = if EVER.load(SeqCst) > 0 && device == 0 { number("FAKE_MOVES", 0) } else { 0 };
    (mib + moved) * MIB + STARTED.load(SeqCst) * INIT + CONTEXTS.load(SeqCst) * CONTEXT
}

fn lost(device: u64) -> bool {
    let after = number("FAKE_LOST_AFTER", u64::MAX);
    device + 1 == devices() && READINGS.load(SeqCst) >= after
}

fn uuid(handle: *mut c_void) -> String {
    match instance_of(handle) {
        None => format!("GPU-00000000-0000-4000-8000-{:012x}", device_of(handle)),
        Some(instance) => format!("MIG-00000000-0000-4000-9000-{instance:012x}"),
    }
}

// ---- NVML ----

#[no_mangle]
pub extern "C" fn nvmlInit_v2() -> c_uint {
    answer!("nvmlInit_v2", None, {})
}

#[no_mangle]
pub extern "C" fn nvmlShutdown() -> c_uint {
    0
}

#[no_mangle]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(buffer: *mut c_char, length: c_uint) -> c_uint {
    put("580.159.04", buffer, length as usize);
    0
}

#[no_mangle]
pub unsafe extern "C" fn nvmlSystemGetCudaDriverVersion_v2(version: *mut c_int) -> c_uint {
    *version = 13000;
    0
}

#[no_mangle]
pub unsafe extern "C" fn nvmlSystemGetProcessName(pid: c_uint, buffer: *mut c_char, length: c_uint) -> c_uint {
    let lists = ["FAKE_PROCESSES", "FAKE_PROCESSES_0", "FAKE_PROCESSES_1"].map(variable).join(",");
    for process in lists.split(',') {
        let mut parts = process.splitn(3, ':');
        if parts.next() == Some(&pid.to_string()) {
            let name = parts.nth(1).unwrap();
            if name == "?" {
                return 6;
            }
            put(name, buffer, length as usize);
            return 0;
        }
    }
    6
}

#[no_mangle]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> c_uint {
    answer!("nvmlDeviceGetCount_v2", None, { *count = devices() as c_uint })
}

#[no_mangle]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, handle: *mut *mut c_void) -> c_uint {
    if lost(u64::from(index)) {
        return 15;
    }
    answer!("nvmlDeviceGetHandleByIndex_v2", Some(u64::from(index)), {
        *handle = (u64::from(index) + 1) as *mut c_void
    })
}

#[no_mangle]
pub unsafe extern "C" fn nvmlDeviceGetHandleByUUID(wanted: *const c_char, handle: *mut *mut c_void) -> c_uint {
    let wanted = CStr::from_ptr(wanted).to_str().unwrap();
    let whole = (1..=devices()).map(|handle| handle as *mut c_void);
    let instances = (0..number("FAKE_MIG", 0)).map(|number| (number * 100 + 101) as *mut c_void);
    match whole.chain(instances).find(|handle| uuid(*handle) == wanted) {
        Some(found) => {
            *handle = found;
            0
        }
        None => 6,
    }
}

#[no_mangle]
pub unsafe extern "C" fn nvmlDeviceGetUUID(device: *mut c_void, buffer: *mut c_char, length: c_uint) -> c_uint {
    put(&uuid(device), buffer, length as usize);
    0
}

#[no_mangle]
pub unsafe extern "C" fn nvmlDeviceGetName(device: *mut c_void, buffer: *mut c_char, length: c_uint) -> c_uint {
    let name = if instance_of(device).is_some() { "NVIDIA H200 MIG 1g.18gb" } else { "NVIDIA H200" };
    put(name, buffer, length as usize);
    0
}

#[repr(C)]
pub struct Pci {
    legacy: [c_char; 16],
    numbers: [c_uint; 5],
    bus_id: [c_char; 32],
}

#[no_mangle]
pub unsafe extern "C" fn nvmlDeviceGetPciInfo_v3(device: *mut c_void, pci: *mut Pci) -> c_uint {
    put(&format!("00000000:{:02X}:00.0", device_of(device) + 1), (*pci).bus_id.as_mut_ptr(), 32);
    0
}

#[repr(C)]
pub struct MemoryV1 {
    total: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

#[repr(C)]
pub struct MemoryV2 {
    version: c_uint,
    total: c_ulonglong,
    reserved: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

#[no_mangle]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo(device: *mut c_void, memory: *mut MemoryV1) -> c_uint {
    answer!("nvmlDeviceGetMemoryInfo", Some(device_of(device)), {
        let used = used(device_of(device)) + RESERVED;
        *memory = MemoryV1 { total: TOTAL, free: TOTAL - used, used };
        READINGS.fetch_add(1, SeqCst);
    })
}

#[cfg(not(without_v2))]
#[no_mangle]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: *mut c_void, memory: *mut MemoryV2) -> c_uint {
    assert_eq!((*memory).version, 40 | 2 << 24);
    if lost(device_of(device)) {
        return 15;
    }
    answer!("nvmlDeviceGetMemoryInfo_v2", Some(device_of(device)), {
        let whole = instance_of(device).is_none();
        let (total, reserved) = if whole { (TOTAL, RESERVED) } else { (INSTANCE, 64 * MIB) };
        let used = used(device_of(device));
        (*memory).total = total;
        (*memory).reserved = reserved;
        (*memory).used = used;
        (*memory).free = total - reserved - used;
        READINGS.fetch_add(1, SeqCst);
    })
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Process {
    pid: c_uint,
    used: c_ulonglong,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

#[no_mangle]
pub unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
    device: *mut c_void,
    count: *mut c_uint,
    list: *mut Process,
) -> c_uint {
    let code = ordered("nvmlDeviceGetComputeRunningProcesses_v3", Some(device_of(device)));
    if code != 0 {
        return code as c_uint;
    }
    let own = format!("FAKE_PROCESSES_{}", device_of(device));
    let all = env::var(own).unwrap_or_else(|_| variable("FAKE_PROCESSES"));
    let processes: Vec<Process> = all
        .split(',')
        .filter_map(|process| {
            let mut parts = process.splitn(3, ':');
            let pid = parts.next()?.parse().ok()?;
            let used = parts.next()?.parse::<u64>().map_or(u64::MAX, |mib| mib * MIB);
            Some(Process { pid, used, gpu_instance: u32::MAX, compute_instance: u32::MAX })
        })
        .collect();
    let room = *count as usize;
    *count = processes.len() as c_uint;
    if processes.is_empty() {
        return 0;
    }
    if list.is_null() || room < processes.len() {
        return 7;
    }
    std::ptr::copy_nonoverlapping(processes.as_ptr(), list, processes.len());
    0
}

#[no_mangle]
pub unsafe extern "C" fn nvmlDeviceGetGraphicsRunningProcesses_v3(
    _device: *mut c_void,
    count: *mut c_uint,
    _list: *mut Process,
) -> c_uint {
    *count = 0;
    0
}

#[no_mangle]
pub unsafe extern "C" fn nvmlDeviceGetMigMode(device: *mut c_void, current: *mut c_uint, pending: *mut c_uint) -> c_uint {
    *current = c_uint::from(device_of(device) == 0 && number("FAKE_MIG", 0) > 0);
    *pending = *current;
    0
}

#[no_mangle]
pub unsafe extern "C" fn nvmlDeviceGetMaxMigDeviceCount(_device: *mut c_void, count: *mut c_uint) -> c_uint {
    *count = 7;
    0
}

#[no_mangle]
pub unsafe extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(
    _device: *mut c_void,
    index: c_uint,
    handle: *mut *mut c_void,
) -> c_uint {
    if u64::from(index) >= number("FAKE_MIG", 0) {
        return 6;
    }
    *handle = (u64::from(index) * 100 + 101) as *mut c_void;
    0
}

#[no_mangle]
pub unsafe extern "C" fn nvmlDeviceGetGpuInstanceId(device: *mut c_void, id: *mut c_uint) -> c_uint {
    *id = instance_of(device).unwrap() as c_uint + 9;
    0
}

#[no_mangle]
pub unsafe extern "C" fn nvmlDeviceGetComputeInstanceId(_device: *mut c_void, id: *mut c_uint) -> c_uint {
    *id = 0;
    0
}

#[no_mangle]
pub unsafe extern "C" fn nvmlDeviceGetRemappedRows(
    _device: *mut c_void,
    correctable: *mut c_uint,
    uncorrectable: *mut c_uint,
    pending: *mut c_uint,
    failed: *mut c_uint,
) -> c_uint {
    answer!("nvmlDeviceGetRemappedRows", None, {
        *correctable = number("FAKE_REMAPPED", 0) as c_uint;
        *uncorrectable = 0;
        *pending = 0;
        *failed = 0;
    })
}

// ---- libcuda ----

#[no_mangle]
pub extern "C" fn cuInit(_flags: c_uint) -> c_int {
    answer!("cuInit", None, { STARTED.store(1, SeqCst) })
}

#[no_mangle]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    *version = 13000;
    0
}

#[no_mangle]
pub unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_int {
    answer!("cuDeviceGetCount", None, {
        let visible = env::var("CUDA_VISIBLE_DEVICES").map(|list| list.split(',').count() as u64);
        *count = visible.unwrap_or_else(|_| devices()) as c_int
    })
}

#[no_mangle]
pub unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int {
    answer!("cuDeviceGet", Some(ordinal as u64), {
        let visible = env::var("CUDA_VISIBLE_DEVICES");
        *device = visible.map_or(ordinal, |list| list.split(',').nth(ordinal as usize).unwrap().parse().unwrap());
    })
}

#[no_mangle]
pub unsafe extern "C" fn cuDeviceGetName(buffer: *mut c_char, length: c_int, _device: c_int) -> c_int {
    answer!("cuDeviceGetName", None, { put("NVIDIA H200", buffer, length as usize) })
}

#[no_mangle]
pub unsafe extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> c_int {
    answer!("cuDeviceGetUuid_v2", None, {
        // On a device in MIG mode CUDA shows the first instance instead of the device.
        let (variant, last) = if number("FAKE_MIG", 0) > 0 { (0x90, 0) } else { (0x80, device as u8) };
        *uuid = [0, 0, 0, 0, 0, 0, 0x40, 0, variant, 0, 0, 0, 0, 0, 0, last]
    })
}

#[no_mangle]
pub unsafe extern "C" fn cuDeviceGetPCIBusId(buffer: *mut c_char, length: c_int, device: c_int) -> c_int {
    put(&format!("0000:{:02x}:00.0", device + 1), buffer, length as usize);
    0
}

#[no_mangle]
pub unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, _device: c_int) -> c_int {
    assert_eq!(attribute, 18);
    answer!("cuDeviceGetAttribute", None, { *value = number("FAKE_INTEGRATED", 0) as c_int })
}

#[no_mangle]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int) -> c_int {
    answer!("cuDevicePrimaryCtxRetain", Some(device as u64), {
        CONTEXTS.fetch_add(1, SeqCst);
        EVER.store(1, SeqCst);
        *context = (device + 1) as usize as *mut c_void;
    })
}

#[no_mangle]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(_device: c_int) -> c_int {
    assert_eq!(PUSHED.load(SeqCst), 0, "released while current");
    assert!(CONTEXTS.fetch_sub(1, SeqCst) > 0, "released more often than retained");
    ordered("cuDevicePrimaryCtxRelease_v2", None)
}

#[no_mangle]
pub extern "C" fn cuCtxPushCurrent_v2(context: *mut c_void) -> c_int {
    assert!(!context.is_null());
    answer!("cuCtxPushCurrent_v2", None, { PUSHED.fetch_add(1, SeqCst) })
}

#[no_mangle]
pub unsafe extern "C" fn cuCtxPopCurrent_v2(context: *mut *mut c_void) -> c_int {
    *context = std::ptr::null_mut();
    PUSHED.fetch_sub(1, SeqCst);
    ordered("cuCtxPopCurrent_v2", None)
}

#[no_mangle]
pub unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_int {
    assert_eq!(PUSHED.load(SeqCst), 1, "no context is current");
    answer!("cuMemGetInfo_v2", None, {
        *total = (TOTAL - RESERVED) as usize;
        *free = (TOTAL - RESERVED - used(0)) as usize;
    })
}

#[no_mangle]
pub unsafe extern "C" fn cuGetErrorName(code: c_int, name: *mut *const c_char) -> c_int {
    let known: &CStr = match code {
        2 => c"CUDA_ERROR_OUT_OF_MEMORY",
        46 => c"CUDA_ERROR_DEVICE_UNAVAILABLE",
        100 => c"CUDA_ERROR_NO_DEVICE",
        101 => c"CUDA_ERROR_INVALID_DEVICE",
        201 => c"CUDA_ERROR_INVALID_CONTEXT",
        803 => c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        999 => c"CUDA_ERROR_UNKNOWN",
        _ => return 1,
    };
    *name = known.as_ptr();
    0
}
