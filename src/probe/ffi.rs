//! Every call into NVIDIA's libraries that the compiler cannot check: the only unsafe code of this program.
//!
//! # Contract
//! - The libraries are what the driver installs (or what `VRAMLEDGER_CUDA` and `VRAMLEDGER_NVML` name). Loading a library
//!   runs its initialisers; whoever may name it may run code as this user anyway.
//! - Signatures are those of `cuda.h` (driver API 11.0 to 13.0) and `nvml.h`. Only functions whose signature never changed
//!   are bound; where a name got a suffix (`_v2`), the suffixed name is bound.
//! - libcuda is never unloaded: it starts threads and registers exit handlers. So function pointers stay valid, and the
//!   values made here hold no borrow of the library.
//! - Every pointer that is passed points to a live local of the right type and size, and is not kept by the callee.
//! - A primary context is released exactly once, by [`PrimaryContext`]. Pushing and popping are paired within one call, on
//!   one thread.
//! - Text that a library returns is copied at once and read as at most the buffer that was passed.

#![allow(unsafe_code, reason = "calls into libcuda and NVML; the contract is above, and no other module may")]

use super::error::CudaError;
use libloading::Library;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::ptr;

/// `CU_DEVICE_ATTRIBUTE_INTEGRATED`.
const ATTRIBUTE_INTEGRATED: c_int = 18;
/// Bytes for a device's name; the driver's own tools use as many.
const NAME_BYTES: usize = 256;
/// Bytes for a PCI address, `0000:01:00.0` and its end.
const PCI_BYTES: usize = 32;

type Code = c_int;
type RawDevice = c_int;
type RawContext = *mut c_void;

/// libcuda's functions, looked up once.
pub(super) struct CudaLibrary {
    _library: ManuallyDrop<Library>,
    init: unsafe extern "system" fn(c_uint) -> Code,
    driver_version: unsafe extern "system" fn(*mut c_int) -> Code,
    device_count: unsafe extern "system" fn(*mut c_int) -> Code,
    device: unsafe extern "system" fn(*mut RawDevice, c_int) -> Code,
    device_name: unsafe extern "system" fn(*mut c_char, c_int, RawDevice) -> Code,
    device_uuid: unsafe extern "system" fn(*mut [u8; 16], RawDevice) -> Code,
    device_pci: unsafe extern "system" fn(*mut c_char, c_int, RawDevice) -> Code,
    device_attribute: unsafe extern "system" fn(*mut c_int, c_int, RawDevice) -> Code,
    retain: unsafe extern "system" fn(*mut RawContext, RawDevice) -> Code,
    release: unsafe extern "system" fn(RawDevice) -> Code,
    push: unsafe extern "system" fn(RawContext) -> Code,
    pop: unsafe extern "system" fn(*mut RawContext) -> Code,
    memory: unsafe extern "system" fn(*mut usize, *mut usize) -> Code,
    error_name: unsafe extern "system" fn(Code, *mut *const c_char) -> Code,
}

/// A device of CUDA, in CUDA's numbering.
#[derive(Debug, Clone, Copy)]
pub(super) struct CudaDevice(RawDevice);

impl CudaLibrary {
    /// Loads the library and looks all functions up.
    ///
    /// # Errors
    /// The loader's words, where the library or one of its functions is missing.
    pub(super) fn load(path: &OsStr) -> Result<CudaLibrary, libloading::Error> {
        // SAFETY: see the contract: the driver's own library.
        let library = ManuallyDrop::new(unsafe { Library::new(path)? });
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the field's type is the function's signature in cuda.h.
                *unsafe { library.get($name)? }
            };
        }
        Ok(CudaLibrary {
            init: function!(b"cuInit\0"),
            driver_version: function!(b"cuDriverGetVersion\0"),
            device_count: function!(b"cuDeviceGetCount\0"),
            device: function!(b"cuDeviceGet\0"),
            device_name: function!(b"cuDeviceGetName\0"),
            // The later form tells a MIG instance's own UUID; drivers before 11.4 only have the first one.
            // SAFETY: both have this signature.
            device_uuid: match unsafe { library.get(b"cuDeviceGetUuid_v2\0") } {
                Ok(function) => *function,
                Err(_) => function!(b"cuDeviceGetUuid\0"),
            },
            device_pci: function!(b"cuDeviceGetPCIBusId\0"),
            device_attribute: function!(b"cuDeviceGetAttribute\0"),
            retain: function!(b"cuDevicePrimaryCtxRetain\0"),
            release: function!(b"cuDevicePrimaryCtxRelease_v2\0"),
            push: function!(b"cuCtxPushCurrent_v2\0"),
            pop: function!(b"cuCtxPopCurrent_v2\0"),
            memory: function!(b"cuMemGetInfo_v2\0"),
            error_name: function!(b"cuGetErrorName\0"),
            _library: library,
        })
    }

    fn check(&self, call: &'static str, code: Code) -> Result<(), CudaError> {
        if code == 0 {
            return Ok(());
        }
        let mut name: *const c_char = ptr::null();
        // SAFETY: `name` is a live local. A name that is found is a constant of the library, which stays loaded.
        let name = unsafe {
            let known = (self.error_name)(code, &mut name) == 0 && !name.is_null();
            known.then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
        };
        Err(CudaError { call, code, name: name.unwrap_or_else(|| "an error without a name".to_string()) })
    }

    /// `cuInit`: starts the driver in this process. Needs no context, but some MiB of each device.
    pub(super) fn init(&self) -> Result<(), CudaError> {
        // SAFETY: takes a flag that must be 0.
        self.check("cuInit", unsafe { (self.init)(0) })
    }

    /// `cuDriverGetVersion`: the CUDA version that the driver supports, as 1000 × major + 10 × minor.
    pub(super) fn driver_version(&self) -> Result<i32, CudaError> {
        let mut version = 0;
        // SAFETY: writes one int.
        self.check("cuDriverGetVersion", unsafe { (self.driver_version)(&mut version) })?;
        Ok(version)
    }

    /// `cuDeviceGetCount`: devices that `CUDA_VISIBLE_DEVICES` leaves.
    pub(super) fn device_count(&self) -> Result<i32, CudaError> {
        let mut count = 0;
        // SAFETY: writes one int.
        self.check("cuDeviceGetCount", unsafe { (self.device_count)(&mut count) })?;
        Ok(count)
    }

    /// `cuDeviceGet`: the device of this number.
    pub(super) fn device(&self, ordinal: i32) -> Result<CudaDevice, CudaError> {
        let mut device = 0;
        // SAFETY: writes one CUdevice, which is an int.
        self.check("cuDeviceGet", unsafe { (self.device)(&mut device, ordinal) })?;
        Ok(CudaDevice(device))
    }

    /// `cuDeviceGetName`.
    pub(super) fn name(&self, device: CudaDevice) -> Result<String, CudaError> {
        let mut buffer = [0_u8; NAME_BYTES];
        // SAFETY: writes at most the given number of bytes.
        let code = unsafe { (self.device_name)(buffer.as_mut_ptr().cast(), NAME_BYTES as c_int, device.0) };
        self.check("cuDeviceGetName", code)?;
        Ok(text(&buffer))
    }

    /// `cuDeviceGetUuid_v2`: of a MIG instance its own.
    pub(super) fn uuid(&self, device: CudaDevice) -> Result<[u8; 16], CudaError> {
        let mut uuid = [0_u8; 16];
        // SAFETY: CUuuid is 16 bytes.
        self.check("cuDeviceGetUuid", unsafe { (self.device_uuid)(&mut uuid, device.0) })?;
        Ok(uuid)
    }

    /// `cuDeviceGetPCIBusId`: `0000:01:00.0`.
    pub(super) fn pci(&self, device: CudaDevice) -> Result<String, CudaError> {
        let mut buffer = [0_u8; PCI_BYTES];
        // SAFETY: writes at most the given number of bytes.
        let code = unsafe { (self.device_pci)(buffer.as_mut_ptr().cast(), PCI_BYTES as c_int, device.0) };
        self.check("cuDeviceGetPCIBusId", code)?;
        Ok(text(&buffer))
    }

    /// `cuDeviceGetAttribute`: whether the device has no memory of its own.
    pub(super) fn is_integrated(&self, device: CudaDevice) -> Result<bool, CudaError> {
        let mut value = 0;
        // SAFETY: writes one int.
        let code = unsafe { (self.device_attribute)(&mut value, ATTRIBUTE_INTEGRATED, device.0) };
        self.check("cuDeviceGetAttribute", code)?;
        Ok(value != 0)
    }

    /// `cuDevicePrimaryCtxRetain`: makes a context, which takes hundreds of MiB of the device until it is released.
    pub(super) fn context(&self, device: CudaDevice) -> Result<PrimaryContext<'_>, CudaError> {
        let mut context = ptr::null_mut();
        // SAFETY: writes one pointer.
        self.check("cuDevicePrimaryCtxRetain", unsafe { (self.retain)(&mut context, device.0) })?;
        Ok(PrimaryContext { library: self, device, context, released: false })
    }
}

/// A device's primary context, held.
pub(super) struct PrimaryContext<'a> {
    library: &'a CudaLibrary,
    device: CudaDevice,
    context: RawContext,
    released: bool,
}

impl PrimaryContext<'_> {
    /// `cuMemGetInfo_v2`: free and total bytes of the device, as cudaMemGetInfo and `torch.cuda.mem_get_info()` give them.
    pub(super) fn memory(&self) -> Result<(u64, u64), CudaError> {
        let (mut free, mut total) = (0_usize, 0_usize);
        // SAFETY: the context is held by `self`; push and pop are paired on this thread, whatever the call says.
        let (asked, popped) = unsafe {
            self.library.check("cuCtxPushCurrent", (self.library.push)(self.context))?;
            let asked = (self.library.memory)(&mut free, &mut total);
            let mut popped = ptr::null_mut();
            (asked, (self.library.pop)(&mut popped))
        };
        self.library.check("cuMemGetInfo", asked)?;
        self.library.check("cuCtxPopCurrent", popped)?;
        Ok((free as u64, total as u64))
    }

    /// `cuDevicePrimaryCtxRelease_v2`: gives the context back; nobody else in this process holds it, so it goes.
    pub(super) fn release(mut self) -> Result<(), CudaError> {
        self.give_back()
    }

    fn give_back(&mut self) -> Result<(), CudaError> {
        if std::mem::replace(&mut self.released, true) {
            return Ok(());
        }
        // SAFETY: retained once in `context`, released once here.
        self.library.check("cuDevicePrimaryCtxRelease", unsafe { (self.library.release)(self.device.0) })
    }
}

impl Drop for PrimaryContext<'_> {
    fn drop(&mut self) {
        // On the way out of an error there is nobody to tell; the process's end frees the context anyway.
        let _ = self.give_back();
    }
}

fn text(buffer: &[u8]) -> String {
    let end = buffer.iter().position(|byte| *byte == 0).unwrap_or(buffer.len());
    String::from_utf8_lossy(buffer.get(..end).unwrap_or_default()).into_owned()
}

/// NVML's first memory call: total, used (the driver's reserve counted in) and free.
pub(super) fn nvml_memory_v1(nvml: &Nvml, device: &Device<'_>) -> Result<(u64, u64, u64), NvmlError> {
    let call = symbol(nvml.lib().nvmlDeviceGetMemoryInfo.as_ref())?;
    // SAFETY: the handle is NVML's own and NVML is open; a struct of three numbers may be zero and is written whole.
    unsafe {
        let mut memory = std::mem::zeroed();
        returned(call(device.handle(), &mut memory))?;
        Ok((memory.total, memory.used, memory.free))
    }
}

/// The GPU instance and the compute instance of a MIG device.
pub(super) fn nvml_instances(nvml: &Nvml, device: &Device<'_>) -> Result<(u32, u32), NvmlError> {
    let gpu = symbol(nvml.lib().nvmlDeviceGetGpuInstanceId.as_ref())?;
    let compute = symbol(nvml.lib().nvmlDeviceGetComputeInstanceId.as_ref())?;
    let (mut gpu_instance, mut compute_instance) = (0, 0);
    // SAFETY: the handle is NVML's own and NVML is open; each call writes one number.
    unsafe {
        returned(gpu(device.handle(), &mut gpu_instance))?;
        returned(compute(device.handle(), &mut compute_instance))?;
    }
    Ok((gpu_instance, compute_instance))
}

/// Memory rows that were remapped to spare ones, after correctable and after uncorrectable errors, and whether more wait
/// for a reset.
pub(super) fn nvml_remapped_rows(nvml: &Nvml, device: &Device<'_>) -> Result<(u32, u32, bool), NvmlError> {
    let call = symbol(nvml.lib().nvmlDeviceGetRemappedRows.as_ref())?;
    let (mut correctable, mut uncorrectable, mut pending, mut failed): (c_uint, c_uint, c_uint, c_uint) =
        (0, 0, 0, 0);
    // SAFETY: the handle is NVML's own and NVML is open; the call writes four numbers.
    unsafe {
        let handle = device.handle();
        returned(call(handle, &mut correctable, &mut uncorrectable, &mut pending, &mut failed))?;
    }
    Ok((correctable, uncorrectable, pending != 0))
}

fn symbol<T>(found: Result<&T, impl std::fmt::Display>) -> Result<&T, NvmlError> {
    found.map_err(|error| NvmlError::FailedToLoadSymbol(error.to_string()))
}

fn returned(code: c_uint) -> Result<(), NvmlError> {
    if code == 0 { Ok(()) } else { Err(NvmlError::from(code)) }
}
