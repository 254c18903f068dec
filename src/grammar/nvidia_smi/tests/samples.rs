//! Real dumps of one moment in every form (H200, driver 580; UUIDs are stand-ins), and boxes of other generations.

/// Two ranks of one server, ready.
pub(super) const BOX: &str = r#"Sun Nov 29 13:47:36 2026       
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.159.04             Driver Version: 580.159.04     CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H200                    On  |   00000000:00:06.0 Off |                    0 |
| N/A   38C    P0            125W /  700W |  122316MiB / 143771MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA H200                    On  |   00000000:00:07.0 Off |                    0 |
| N/A   38C    P0            121W /  700W |  122316MiB / 143771MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0   N/A  N/A            2135      C   sglang::scheduler_TP0                 12230... |
|    1   N/A  N/A            2136      C   sglang::scheduler_TP1                 12230... |
+-----------------------------------------------------------------------------------------+
"#;

/// The same moment as `-q -d MEMORY`.
pub(super) const MEMORY_TEXT: &str = r#"
==============NVSMI LOG==============

Timestamp                                              : Sun Nov 29 13:47:36 2026
Driver Version                                         : 580.159.04
CUDA Version                                           : 13.0

Attached GPUs                                          : 2
GPU 00000000:00:06.0
    FB Memory Usage
        Total                                          : 143771 MiB
        Reserved                                       : 616 MiB
        Used                                           : 122316 MiB
        Free                                           : 20841 MiB
    BAR1 Memory Usage
        Total                                          : 262144 MiB
        Used                                           : 122317 MiB
        Free                                           : 139827 MiB
    Conf Compute Protected Memory Usage
        Total                                          : 0 MiB
        Used                                           : 0 MiB
        Free                                           : 0 MiB

GPU 00000000:00:07.0
    FB Memory Usage
        Total                                          : 143771 MiB
        Reserved                                       : 616 MiB
        Used                                           : 122316 MiB
        Free                                           : 20841 MiB
    BAR1 Memory Usage
        Total                                          : 262144 MiB
        Used                                           : 122317 MiB
        Free                                           : 139827 MiB
    Conf Compute Protected Memory Usage
        Total                                          : 0 MiB
        Used                                           : 0 MiB
        Free                                           : 0 MiB

"#;

/// The same moment as GPU CSV.
pub(super) const DEVICE_CSV: &str = r#"index, uuid, name, memory.total [MiB], memory.reserved [MiB], memory.used [MiB], memory.free [MiB]
0, GPU-00000000-0000-4000-8000-000000000000, NVIDIA H200, 143771 MiB, 616 MiB, 122316 MiB, 20841 MiB
1, GPU-00000000-0000-4000-8000-000000000001, NVIDIA H200, 143771 MiB, 616 MiB, 122316 MiB, 20841 MiB
"#;

/// The same without header and units.
pub(super) const DEVICE_CSV_BARE: &str = r#"0, GPU-00000000-0000-4000-8000-000000000000, NVIDIA H200, 143771, 616, 122316, 20841
1, GPU-00000000-0000-4000-8000-000000000001, NVIDIA H200, 143771, 616, 122316, 20841
"#;

/// The same moment as compute-app CSV.
pub(super) const PROCESS_CSV: &str = r#"gpu_uuid, pid, process_name, used_gpu_memory [MiB]
GPU-00000000-0000-4000-8000-000000000000, 2135, sglang::scheduler_TP0, 122306 MiB
GPU-00000000-0000-4000-8000-000000000001, 2136, sglang::scheduler_TP1, 122306 MiB
"#;

/// The same moment as `pmon -s m`.
pub(super) const PMON: &str = r#"# gpu         pid   type     fb   ccpm    command 
# Idx           #    C/G     MB     MB    name 
    0       2135     C 122306      0    sglang::schedul
    1       2136     C 122306      0    sglang::schedul
"#;

/// The same moment as XML, elements that say nothing of memory left out.
pub(super) const XML: &str = r#"<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">
<nvidia_smi_log>
	<timestamp>Sun Nov 29 13:47:36 2026</timestamp>
	<driver_version>580.159.04</driver_version>
	<cuda_version>13.0</cuda_version>
	<attached_gpus>2</attached_gpus>
	<gpu id="00000000:00:06.0">
		<product_name>NVIDIA H200</product_name>
		<mig_mode>
			<current_mig>Disabled</current_mig>
			<pending_mig>Disabled</pending_mig>
		</mig_mode>
		<mig_devices>
			None
		</mig_devices>
		<uuid>GPU-00000000-0000-4000-8000-000000000000</uuid>
		<minor_number>0</minor_number>
		<fb_memory_usage>
			<total>143771 MiB</total>
			<reserved>616 MiB</reserved>
			<used>122316 MiB</used>
			<free>20841 MiB</free>
		</fb_memory_usage>
		<bar1_memory_usage>
			<total>262144 MiB</total>
			<used>122317 MiB</used>
			<free>139827 MiB</free>
		</bar1_memory_usage>
		<cc_protected_memory_usage>
			<total>0 MiB</total>
			<used>0 MiB</used>
			<free>0 MiB</free>
		</cc_protected_memory_usage>
		<processes>
			<process_info>
				<gpu_instance_id>N/A</gpu_instance_id>
				<compute_instance_id>N/A</compute_instance_id>
				<pid>2135</pid>
				<type>C</type>
				<process_name>sglang::scheduler_TP0</process_name>
				<used_memory>122306 MiB</used_memory>
			</process_info>
		</processes>
		<accounted_processes>
		</accounted_processes>
	</gpu>

	<gpu id="00000000:00:07.0">
		<product_name>NVIDIA H200</product_name>
		<mig_mode>
			<current_mig>Disabled</current_mig>
			<pending_mig>Disabled</pending_mig>
		</mig_mode>
		<mig_devices>
			None
		</mig_devices>
		<uuid>GPU-00000000-0000-4000-8000-000000000001</uuid>
		<minor_number>1</minor_number>
		<fb_memory_usage>
			<total>143771 MiB</total>
			<reserved>616 MiB</reserved>
			<used>122316 MiB</used>
			<free>20841 MiB</free>
		</fb_memory_usage>
		<bar1_memory_usage>
			<total>262144 MiB</total>
			<used>122317 MiB</used>
			<free>139827 MiB</free>
		</bar1_memory_usage>
		<cc_protected_memory_usage>
			<total>0 MiB</total>
			<used>0 MiB</used>
			<free>0 MiB</free>
		</cc_protected_memory_usage>
		<processes>
			<process_info>
				<gpu_instance_id>N/A</gpu_instance_id>
				<compute_instance_id>N/A</compute_instance_id>
				<pid>2136</pid>
				<type>C</type>
				<process_name>sglang::scheduler_TP1</process_name>
				<used_memory>122306 MiB</used_memory>
			</process_info>
		</processes>
		<accounted_processes>
		</accounted_processes>
	</gpu>

</nvidia_smi_log>
"#;

/// Two idle devices.
pub(super) const IDLE_BOX: &str = r#"Sun Nov 29 13:46:31 2026       
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.159.04             Driver Version: 580.159.04     CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H200                    On  |   00000000:00:06.0 Off |                    0 |
| N/A   36C    P0             80W /  700W |       0MiB / 143771MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA H200                    On  |   00000000:00:07.0 Off |                    0 |
| N/A   37C    P0             78W /  700W |       0MiB / 143771MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|  No running processes found                                                             |
+-----------------------------------------------------------------------------------------+
"#;

/// Driver 418, narrow columns, no MIG line, no instance columns, names cut.
pub(super) const BOX_418: &str = r#"
Tue Mar  5 09:11:53 2019
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 418.67       Driver Version: 418.67       CUDA Version: 10.1     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  Tesla V100-SXM2...  Off  | 00000000:06:00.0 Off |                    0 |
| N/A   43C    P0    57W / 300W |  11346MiB / 16130MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
|   1  Tesla V100-SXM2...  Off  | 00000000:07:00.0 Off |                    0 |
| N/A   44C    P0    59W / 300W |     11MiB / 16130MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+

+-----------------------------------------------------------------------------+
| Processes:                                                       GPU Memory |
|  GPU       PID   Type   Process name                             Usage      |
|=============================================================================|
|    0     21467      C   /opt/conda/bin/python                      11335MiB |
+-----------------------------------------------------------------------------+
"#;

/// Driver 470: MIG line and instance columns, still narrow.
pub(super) const BOX_470: &str = r#"
Thu Feb  3 10:00:01 2022
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 470.82.01    Driver Version: 470.82.01    CUDA Version: 11.4     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  NVIDIA A100-SXM...  On   | 00000000:07:00.0 Off |                    0 |
| N/A   27C    P0    51W / 400W |  35213MiB / 40536MiB |      0%      Default |
|                               |                      |             Disabled |
+-------------------------------+----------------------+----------------------+

+-----------------------------------------------------------------------------+
| Processes:                                                                  |
|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |
|        ID   ID                                                   Usage      |
|=============================================================================|
|    0   N/A  N/A     12345      C   ray::RayWorker.step             35199MiB |
+-----------------------------------------------------------------------------+
"#;

/// Windows: WDDM, display processes without figures.
pub(super) const BOX_WDDM: &str = r#"
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 551.86                 Driver Version: 551.86         CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                     TCC/WDDM  | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA GeForce RTX 4090      WDDM  |   00000000:01:00.0  On |                  Off |
|  0%   45C    P8             23W /  450W |   20481MiB /  24564MiB |      1%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0   N/A  N/A      1480    C+G   ...on\123.0.2420.65\msedgewebview2.exe      N/A      |
|    0   N/A  N/A      7788      C   ...ta\Local\Programs\Python 3\python.exe    N/A      |
+-----------------------------------------------------------------------------------------+
"#;

/// A parent with two MIG instances, one of them in use.
pub(super) const BOX_MIG: &str = r#"
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA A100-SXM4-40GB          On  |   00000000:07:00.0 Off |                   On |
| N/A   27C    P0             44W /  400W |    9837MiB /  40960MiB |     N/A      Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| MIG devices:                                                                            |
+------------------+----------------------------------+-----------+-----------------------+
| GPU  GI  CI  MIG |                     Memory-Usage |        Vol|        Shared         |
|      ID  ID  Dev |                       BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |
|                  |                                  |        ECC|                       |
|==================+==================================+===========+=======================|
|  0    7   0   0  |              10MiB /  9856MiB    | 14      0 |  1   0    0    0    0 |
|                  |               0MiB / 16383MiB    |           |                       |
+------------------+----------------------------------+-----------+-----------------------+
|  0    8   0   1  |            9826MiB /  9856MiB    | 14      0 |  1   0    0    0    0 |
|                  |               2MiB / 16383MiB    |           |                       |
+------------------+----------------------------------+-----------+-----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0    8    0      31337      C   sglang::scheduler                            9816MiB |
+-----------------------------------------------------------------------------------------+
"#;

/// A GB10, whose memory is the host's.
pub(super) const BOX_GB10: &str = r#"
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA GB10                    On  |   0000000F:01:00.0 Off |                  N/A |
| N/A   44C    P8              4W /  N/A  | Not Supported          |      0%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0   N/A  N/A            3021      G   /usr/lib/xorg/Xorg                       43MiB |
|    0   N/A  N/A            9001      C   sglang::scheduler                     81992MiB |
+-----------------------------------------------------------------------------------------+
"#;

/// An Orin, which has no PCI address either, and a GH200, whose name holds another size.
pub(super) const BOX_ORIN_AND_GH200: &str = r#"
|   0  Orin (nvgpu)                  N/A  | N/A              N/A |                  N/A |
| N/A   N/A  N/A               N/A /  N/A | Not Supported        |     N/A                  N/A |
+-----------------------------------------+----------------------+----------------------+
|   1  NVIDIA GH200 480GB             On  | 00000009:01:00.0 Off |                    0 |
| N/A   31C    P0             88W /  900W |  70000MiB /  97871MiB |      0%      Default |
"#;
