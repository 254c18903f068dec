//! The relatives of nvidia-smi.

use super::{figures, mib, problems, processes, read};
use crate::grammar::nvidia_smi::DumpProblem;
use crate::observe::Instrument;
use crate::quantity::{MIB, Quantity};

#[test]
fn surprise_26_nvitop() {
    let dump = read(
        "Sun Nov 29 13:52:06 2026
╒═════════════════════════════════════════════════════════════════════════════╕
│ NVITOP 1.3.2      Driver Version: 535.54.03      CUDA Driver Version: 12.2 │
├───────────────────────────────┬──────────────────────┬──────────────────────┤
│ GPU  Name        Persistence-M│ Bus-Id        Disp.A │ Volatile Uncorr. ECC │
│ Fan  Temp  Perf  Pwr:Usage/Cap│         Memory-Usage │ GPU-Util  Compute M. │
╞═══════════════════════════════╪══════════════════════╪══════════════════════╡
│   0  GeForce RTX 2080 Ti  Off │ 00000000:05:00.0 Off │                  N/A │
│ 41%   65C    P2   242W / 250W │  10.20GiB / 11.00GiB │     98%      Default │
╘═══════════════════════════════╧══════════════════════╧══════════════════════╛

╒═════════════════════════════════════════════════════════════════════════════╕
│ Processes:                                                       user@host │
│ GPU     PID      USER  GPU-MEM %SM  %CPU  %MEM     TIME  COMMAND            │
╞═════════════════════════════════════════════════════════════════════════════╡
│   0  123456 C    root  9.80GiB  98  101.2   1.5  1:23:45  python main.py    │
╘═════════════════════════════════════════════════════════════════════════════╛
",
    );
    let [seen] = &dump.observations[..] else { panic!("{dump:?}") };
    assert_eq!((seen.instrument, seen.device), (Instrument::Nvitop, Some(0)));
    assert!(seen.used.unwrap().contains(10_445 * MIB) && seen.total.unwrap().contains(11 * 1024 * MIB));
    assert_eq!((seen.processes[0].pid, seen.processes[0].name.as_str()), (Some(123_456), "python main.py"));
    assert_eq!(seen.taken_at.unwrap().to_string(), "2026-11-29T13:52:06");
}

#[test]
fn surprise_26_gpustat() {
    let dump = read(
        "node7                     Sun Nov 29 13:52:06 2026  580.159.04
[0] NVIDIA H200         | 38°C,   0 % | 122316 / 143771 MB | root:sglang::scheduler/2135(122306M)
[1] NVIDIA H200         | 38°C,   0 % |      4 / 143771 MB |
",
    );
    assert_eq!(figures(&dump), [(Some(0), mib(122_316), mib(143_771)), (Some(1), mib(4), mib(143_771))]);
    assert_eq!(dump.observations[0].name.as_deref(), Some("NVIDIA H200"));
    assert_eq!(processes(&dump.observations[0])[0].0, Some(2135));
    assert_eq!(dump.observations[0].taken_at.unwrap().to_string(), "2026-11-29T13:52:06");
}

#[test]
fn surprise_26_rocm_smi_bytes_are_exact() {
    let dump = read(
        "============================ ROCm System Management Interface ============================
================================== Memory Usage (Bytes) ==================================
GPU[0]\t\t: VRAM Total Memory (B): 206141652992
GPU[0]\t\t: VRAM Total Used Memory (B): 297521152
GPU[1]\t\t: VRAM Total Memory (B): 206141652992
GPU[1]\t\t: VRAM Total Used Memory (B): 110729625600
==========================================================================================
",
    );
    let exact = |bytes| Some(Quantity::exact(bytes));
    let expected = [
        (Some(0), exact(297_521_152), exact(206_141_652_992)),
        (Some(1), exact(110_729_625_600), exact(206_141_652_992)),
    ];
    assert_eq!(figures(&dump), expected);
    let csv = "device,VRAM Total Memory (B),VRAM Total Used Memory (B)\ncard0,206141652992,297521152\ncard1,206141652992,110729625600\n";
    assert_eq!(figures(&read(csv)), expected);
}

#[test]
fn surprise_26_rocm_smi_with_percent_only_is_named() {
    let dump = read(
        "======================= ROCm System Management Interface =======================
================================= Concise Info =================================
GPU  Temp (DieEdge)  AvgPwr  SCLK    MCLK     Fan  Perf  PwrCap  VRAM%  GPU%
0    36.0c           138.0W  132Mhz  900Mhz   0%   auto  750.0W   85%   0%
",
    );
    assert!(dump.observations.is_empty());
    assert!(matches!(
        problems(&dump)[..],
        [DumpProblem::PercentOnly { instrument: Instrument::RocmSmi, .. }]
    ));
}

#[test]
fn surprise_26_amd_smi_texts_are_one_sample() {
    let dump = read(
        "GPU: 0
    ASIC:
        MARKET_NAME: AMD Instinct MI300X
    VRAM:
        TYPE: HBM3
        SIZE: 196592 MB
GPU: 0
    MEM_USAGE:
        TOTAL_VRAM: 196592 MB
        USED_VRAM: 112840 MB
        FREE_VRAM: 83752 MB
        TOTAL_GTT: 1031837 MB
GPU: 0
    PROCESS_INFO:
        NAME: python3
        PID: 2135
        MEMORY_USAGE:
            GTT_MEM: 2.0 MB
            VRAM_MEM: 110.0 GB
",
    );
    assert_eq!(figures(&dump), [(Some(0), mib(112_840), mib(196_592))]);
    let seen = &dump.observations[0];
    assert_eq!((seen.instrument, seen.free), (Instrument::AmdSmi, mib(83_752)));
    assert_eq!(seen.name.as_deref(), Some("AMD Instinct MI300X"));
    assert_eq!(seen.processes.len(), 1);
    assert!(seen.processes[0].used.unwrap().contains(112_640 * MIB));
}

#[test]
fn surprise_26_amd_smi_monitor() {
    let dump = read(
        "GPU  POWER  GPU_TEMP  MEM_TEMP  VRAM_USED  VRAM_TOTAL
  0  141 W     40 °C     33 °C     283 MB  196592 MB
  1  N/A       40 °C     33 °C     285 MB  196592 MB
",
    );
    assert_eq!(figures(&dump), [(Some(0), mib(283), mib(196_592)), (Some(1), mib(285), mib(196_592))]);
}

#[test]
fn surprise_26_amd_smi_box() {
    let dump = read(
        "+------------------------------------------------------------------------------+
| AMD-SMI 26.0.0+37d158ab      amdgpu version: 6.14.14  ROCm version: 7.0.0    |
| Platform: Linux Baremetal                                                    |
|-------------------------------------+----------------------------------------|
| BDF                        GPU-Name | Mem-Uti   Temp   UEC       Power-Usage |
| GPU  HIP-ID  OAM-ID  Partition-Mode | GFX-Uti    Fan               Mem-Usage |
|=====================================+========================================|
| 0000:05:00.0    AMD Instinct MI300X | 0 %      36 °C   0           138/750 W |
|   0       0       7        SPX/NPS1 | 0 %        N/A        112840/196592 MB |
|-------------------------------------+----------------------------------------|
| 0000:15:00.0    AMD Instinct MI300X | 0 %      36 °C   0           138/750 W |
|   1       1       7        SPX/NPS1 | 0 %        N/A           283/196592 MB |
+-------------------------------------+----------------------------------------+
+------------------------------------------------------------------------------+
| Processes:                                                                   |
|  GPU        PID  Process Name          GTT_MEM  VRAM_MEM  MEM_USAGE     CU % |
|==============================================================================|
|    0       2135  python3                2.0 MB  110.0 GB   110.1 GB    0.0 % |
+------------------------------------------------------------------------------+
",
    );
    assert_eq!(figures(&dump), [(Some(0), mib(112_840), mib(196_592)), (Some(1), mib(283), mib(196_592))]);
    assert_eq!(dump.observations[0].name.as_deref(), Some("AMD Instinct MI300X"));
    assert_eq!(dump.observations[0].processes[0].pid, Some(2135));
    assert!(dump.observations[0].processes[0].used.unwrap().contains(112_640 * MIB));
}

#[test]
fn surprise_26_npu_smi() {
    let dump = read(
        "+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.rc2                 Version: 24.1.rc2                                             |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B3               | OK            | 92.5        39                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          58163/ 65536         |
+===========================+===============+====================================================+
| 1     910B3               | OK            | 92.5        39                0    / 0             |
| 0                         | 0000:C2:00.0  | 0           0    / 0          3163 / 65536         |
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 0       0                 | 12345         | sglang::scheduler        | 55012                   |
+===========================+===============+====================================================+
| No running processes found in NPU 1                                                            |
+===========================+===============+====================================================+
",
    );
    assert_eq!(figures(&dump), [(Some(0), mib(58_163), mib(65_536)), (Some(1), mib(3163), mib(65_536))]);
    assert_eq!(processes(&dump.observations[0]), [(Some(12_345), "sglang::scheduler", mib(55_012))]);
    assert_eq!(dump.observations[0].name.as_deref(), Some("910B3"));
}
