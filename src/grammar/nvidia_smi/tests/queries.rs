//! `-q` text and XML, CSV, the monitors, and their joining.

use super::samples::{BOX, DEVICE_CSV, DEVICE_CSV_BARE, MEMORY_TEXT, PMON, PROCESS_CSV, XML};
use super::{figures, mib, problems, processes, read};
use crate::grammar::nvidia_smi::DumpProblem;
use crate::quantity::{MIB, Quantity};

const UUIDS: [&str; 2] =
    ["GPU-00000000-0000-4000-8000-000000000000", "GPU-00000000-0000-4000-8000-000000000001"];

#[test]
fn surprise_26_memory_text_is_of_the_frame_buffer_only() {
    let dump = read(MEMORY_TEXT);
    assert_eq!(
        figures(&dump),
        [(Some(0), mib(122_316), mib(143_771)), (Some(1), mib(122_316), mib(143_771))]
    );
    let first = &dump.observations[0];
    assert_eq!((first.reserved, first.free), (mib(616), mib(20_841)));
    assert_eq!(first.taken_at.unwrap().to_string(), "2026-11-29T13:47:36");
    assert_eq!(first.place.line, 13);
    assert!(!first.processes_listed);
    let flat: String = MEMORY_TEXT.lines().map(|line| format!("{}\n", line.trim())).collect();
    assert_eq!(figures(&read(&flat)), figures(&dump), "indentation may be lost");
}

#[test]
fn a_listing_of_some_devices_does_not_number_them() {
    let one: String = MEMORY_TEXT.split("\n\nGPU 00000000:00:07.0").next().unwrap().to_owned();
    let dump = read(&one);
    assert_eq!(figures(&dump), [(None, mib(122_316), mib(143_771))]);
    assert_eq!(problems(&dump), [&DumpProblem::SomeDevices { shown: 1, attached: 2 }]);
}

const WHOLE_TEXT: &str = "
==============NVSMI LOG==============

Timestamp                                 : Thu Feb  3 10:00:01 2022
Driver Version                            : 535.54.03
Attached GPUs                             : 1
GPU 00000000:07:00.0
    Product Name                          : NVIDIA A100-SXM4-40GB
    MIG Mode
        Current                           : Enabled
        Pending                           : Enabled
    MIG Device
        Index                             : 0
        GPU Instance ID                   : 7
        Compute Instance ID               : 0
        FB Memory Usage
            Total                         : 9856 MiB
            Reserved                      : 0 MiB
            Used                          : 9826 MiB
            Free                          : 30 MiB
        BAR1 Memory Usage
            Total                         : 16383 MiB
            Used                          : 2 MiB
            Free                          : 16381 MiB
    Serial Number                         : 0000000000000
    GPU UUID                              : GPU-00000000-0000-4000-8000-000000000000
    FB Memory Usage
        Total                             : 40960 MiB
        Reserved                          : 423 MiB
        Used                              : 9837 MiB
        Free                              : 30700 MiB
    BAR1 Memory Usage
        Total                             : 65536 MiB
        Used                              : 2 MiB
        Free                              : 65534 MiB
    Processes
        GPU instance ID                   : 7
        Compute instance ID               : 0
        Process ID                        : 31337
            Type                          : C
            Name                          : /usr/bin/python3 -m sglang
            Used GPU Memory               : 9816 MiB
        GPU instance ID                   : N/A
        Compute instance ID               : N/A
        Process ID                        : 4000
            Type                          : G
            Name                          : Xorg
            Used GPU Memory               : Not available in WDDM driver model
";

#[test]
fn surprise_26_whole_text_with_instances_and_processes() {
    let dump = read(WHOLE_TEXT);
    assert_eq!(figures(&dump), [(Some(0), mib(9837), mib(40_960)), (Some(0), mib(9826), mib(9856))]);
    let [parent, instance] = &dump.observations[..] else { panic!() };
    assert_eq!(parent.uuid.as_deref(), Some(UUIDS[0]));
    assert_eq!(parent.driver.as_deref(), Some("535.54.03"));
    assert_eq!(instance.mig.unwrap().gpu_instance, Some(7));
    assert_eq!(processes(instance), [(Some(31_337), "/usr/bin/python3 -m sglang", mib(9816))]);
    assert_eq!(processes(parent), [(Some(4000), "Xorg", None)]);
    let none = WHOLE_TEXT.split("    Processes\n").next().unwrap().to_owned() + "    Processes      : None\n";
    assert!(read(&none).observations[0].processes_listed);
}

#[test]
fn surprise_26_xml_reads_frame_buffer_processes_and_identity() {
    let dump = read(XML);
    assert_eq!(
        figures(&dump),
        [(Some(0), mib(122_316), mib(143_771)), (Some(1), mib(122_316), mib(143_771))]
    );
    let second = &dump.observations[1];
    assert_eq!((second.reserved, second.free), (mib(616), mib(20_841)));
    assert_eq!(second.uuid.as_deref(), Some(UUIDS[1]));
    assert_eq!(second.name.as_deref(), Some("NVIDIA H200"));
    assert_eq!(second.driver.as_deref(), Some("580.159.04"));
    assert_eq!(second.taken_at.unwrap().to_string(), "2026-11-29T13:47:36");
    assert_eq!(processes(second), [(Some(2136), "sglang::scheduler_TP1", mib(122_306))]);
    assert!(dump.notes.is_empty(), "{:?}", dump.notes);
    let one_line: String = XML.lines().map(str::trim).collect();
    assert_eq!(figures(&read(&one_line)), figures(&dump));
}

#[test]
fn surprise_26_xml_comments_entities_and_damage() {
    let commented = XML.replace(
        "<fb_memory_usage>",
        "<!-- a comment\n<total>1 MiB</total>\n-->\n<!-- <used>1 MiB</used> -->\n<fb_memory_usage>",
    );
    assert_eq!(figures(&read(&commented)), figures(&read(XML)));
    let named = XML.replace("sglang::scheduler_TP0", "a &amp; b &lt;c&gt; &#100;");
    assert_eq!(read(&named).observations[0].processes[0].name, "a & b <c> d");
    let unknown = XML.replace("<used>122316 MiB</used>", "<used>N/A</used>");
    assert_eq!(figures(&read(&unknown))[0].1, None);
    let cut: String = XML.lines().take(25).map(|line| format!("{line}\n")).collect();
    assert_eq!(read(&cut).observations.len(), 1);
    let damaged = XML.replacen("<reserved>616 MiB</reserved>", "<reserved 616 MiB <", 1);
    let dump = read(&damaged);
    assert_eq!(figures(&dump), figures(&read(XML)), "the rest is read");
    assert!(matches!(problems(&dump)[..], [DumpProblem::DamagedXml { .. }]));
}

#[test]
fn surprise_26_xml_mig_devices() {
    let instance = "<mig_device>\n<index>0</index>\n<gpu_instance_id>7</gpu_instance_id>\n\
        <compute_instance_id>0</compute_instance_id>\n<fb_memory_usage>\n<total>9856 MiB</total>\n<used>9826 MiB</used>\n\
        </fb_memory_usage>\n<bar1_memory_usage>\n<total>16383 MiB</total>\n</bar1_memory_usage>\n</mig_device>";
    let dump = read(&XML.replacen("\t\t\tNone\n", instance, 1).replacen(
        "<gpu_instance_id>N/A</gpu_instance_id>",
        "<gpu_instance_id>7</gpu_instance_id>",
        1,
    ));
    assert_eq!(
        figures(&dump),
        [
            (Some(0), mib(122_316), mib(143_771)),
            (Some(0), mib(9826), mib(9856)),
            (Some(1), mib(122_316), mib(143_771))
        ]
    );
    assert_eq!(dump.observations[1].mig.unwrap().gpu_instance, Some(7));
    assert_eq!(dump.observations[1].processes.len(), 1);
}

#[test]
fn surprise_26_csv_in_any_order_and_with_units_anywhere() {
    let expected = [(Some(0), mib(122_316), mib(143_771)), (Some(1), mib(122_316), mib(143_771))];
    let dump = read(DEVICE_CSV);
    assert_eq!(figures(&dump), expected);
    assert_eq!(dump.observations[0].reserved, mib(616));
    assert_eq!(dump.observations[1].uuid.as_deref(), Some(UUIDS[1]));
    assert_eq!((dump.observations[1].place.line, dump.observations[1].place.column), (3, 80));
    let header = DEVICE_CSV.lines().next().unwrap();
    assert_eq!(figures(&read(&format!("{header}\n{DEVICE_CSV_BARE}"))), expected, "nounits");
    assert_eq!(figures(&read(&DEVICE_CSV.replace(" [MiB]", ""))), expected);
    let other = "memory.used [MiB], temperature.gpu, timestamp, pci.bus_id, memory.total [MiB], index\n\
        122316 MiB, 38, 2026/11/29 13:52:06.123, 00000000:00:06.0, 143771 MiB, 0\n\
        122316 MiB, 39, 2026/11/29 13:52:06.125, 00000000:00:07.0, 143771 MiB, 1\n";
    let dump = read(other);
    assert_eq!(figures(&dump), expected);
    assert_eq!(dump.observations[1].taken_at.unwrap().to_string(), "2026-11-29T13:52:06.123");
    // A loop repeats the rows without a second header.
    let looped =
        read(&format!("{other}{}", other.split_once('\n').unwrap().1.replace("122316 MiB", "9 MiB")));
    assert_eq!(looped.observations.len(), 4);
    assert_eq!(looped.observations[3].used, mib(9));
}

#[test]
fn surprise_22_unknown_csv_cells() {
    let header = "index, memory.total [MiB], memory.used [MiB]\n";
    for cell in
        ["[N/A]", "[Not Supported]", "N/A", "[Insufficient Permissions]", "[Unknown Error]", "[GPU is lost]"]
    {
        let dump = read(&format!("{header}0, 143771 MiB, {cell}\n"));
        assert_eq!(figures(&dump), [(Some(0), None, mib(143_771))], "{cell}");
    }
}

#[test]
fn surprise_26_rows_without_a_header_are_read_only_where_unambiguous() {
    let rows: String = PROCESS_CSV.lines().skip(1).map(|line| format!("{line}\n")).collect();
    let dump = read(&rows);
    assert_eq!(dump.observations.len(), 2);
    assert_eq!(dump.observations[1].uuid.as_deref(), Some(UUIDS[1]));
    assert_eq!(processes(&dump.observations[1]), [(Some(2136), "sglang::scheduler_TP1", mib(122_306))]);
    let dump = read(DEVICE_CSV_BARE);
    assert!(dump.observations.is_empty());
    assert_eq!(problems(&dump), [&DumpProblem::HeaderMissing]);
}

#[test]
fn csv_that_names_no_device() {
    let dump = read("memory.used [MiB]\n122316 MiB\n122000 MiB\n");
    assert_eq!(figures(&dump), [(None, mib(122_316), None), (None, mib(122_000), None)]);
    assert_eq!(problems(&dump), [&DumpProblem::DeviceNotNamed]);
}

#[test]
fn process_csv_finds_its_devices_by_what_the_dump_gives() {
    for dump in [
        format!("{DEVICE_CSV}{PROCESS_CSV}"),
        format!("{PROCESS_CSV}\n{DEVICE_CSV}"),
        format!("{XML}{PROCESS_CSV}"),
    ] {
        let dump = read(&dump);
        assert_eq!(dump.observations.len(), 2);
        assert_eq!(dump.observations[0].used, mib(122_316));
        assert_eq!(processes(&dump.observations[0]), [(Some(2135), "sglang::scheduler_TP0", mib(122_306))]);
    }
    let by_bus = PROCESS_CSV
        .replace("gpu_uuid", "gpu_bus_id")
        .replace(UUIDS[0], "00000000:00:06.0")
        .replace(UUIDS[1], "00000000:00:07.0");
    let dump = read(&format!("{BOX}{by_bus}"));
    assert_eq!(dump.observations.len(), 2);
    assert_eq!(dump.observations[1].processes[0].used, mib(122_306));
    let by_name =
        "gpu_name, pid, process_name, used_gpu_memory [MiB]\nNVIDIA H200, 2135, python, a -c b, 122306 MiB\n";
    let one_device: String = DEVICE_CSV.lines().take(2).map(|line| format!("{line}\n")).collect();
    let dump = read(&format!("{one_device}{by_name}"));
    assert_eq!(
        processes(&dump.observations[0]),
        [(Some(2135), "python, a -c b", mib(122_306))],
        "a name with a comma"
    );
    // By UUID alone where nothing tells of the devices.
    let alone = read(PROCESS_CSV);
    assert_eq!(alone.observations.len(), 2);
    assert_eq!((alone.observations[0].device, alone.observations[0].used), (None, None));
    assert_eq!(alone.observations[0].uuid.as_deref(), Some(UUIDS[0]));
}

#[test]
fn all_forms_of_one_moment_are_one_observation_a_device() {
    let dump = read(&[BOX, MEMORY_TEXT, XML, DEVICE_CSV, PROCESS_CSV, PMON].join("\n"));
    assert_eq!(dump.observations.len(), 2);
    for (at, seen) in dump.observations.iter().enumerate() {
        assert_eq!(seen.uuid.as_deref(), Some(UUIDS[at]));
        assert_eq!((seen.used, seen.free, seen.reserved), (mib(122_316), mib(20_841), mib(616)));
        assert_eq!(seen.processes.len(), 1);
        assert_eq!(seen.processes[0].name, format!("sglang::scheduler_TP{at}"));
        assert!(seen.processes[0].used.unwrap().contains(122_306 * MIB));
    }
    assert!(dump.notes.is_empty(), "{:?}", dump.notes);
}

#[test]
fn forms_whose_figures_differ_are_samples_apart() {
    let before = DEVICE_CSV.replace("122316", "4").replace("20841", "143152");
    let dump = read(&format!("{before}{BOX}"));
    assert_eq!(dump.observations.len(), 4);
    let late = MEMORY_TEXT.replace("13:47:36", "13:59:00");
    assert_eq!(read(&format!("{BOX}{late}")).observations.len(), 4);
}

#[test]
fn surprise_26_pmon_tells_figures_whole() {
    let dump = read(PMON);
    assert_eq!(dump.observations.len(), 2);
    assert_eq!(processes(&dump.observations[0]), [(Some(2135), "sglang::schedul", mib(122_306))]);
    assert!(dump.observations[0].processes_listed);
    let idle = read(
        "# gpu         pid   type     fb   ccpm    command \n# Idx           #    C/G     MB     MB    name \n    0          -     -      -      -    -              \n",
    );
    assert!(idle.observations[0].processes_listed && idle.observations[0].processes.is_empty());
    let rows = PMON.lines().skip(2).collect::<Vec<_>>().join("\n");
    assert_eq!(read(&format!("{PMON}{rows}\n")).observations.len(), 4, "a loop");
    let dated = "#Date       Time        gpu         pid   type     fb    command \n#YYYYMMDD   HH:MM:SS    Idx           #    C/G     MB    name \n 20261129   13:52:06      0       2135     C   1022    python3 -m x\n";
    assert_eq!(processes(&read(dated).observations[0]), [(Some(2135), "python3 -m x", mib(1022))]);
}

#[test]
fn surprise_26_dmon_tells_the_device() {
    let dump = read(
        "# gpu     fb   bar1   ccpm \n# Idx     MB     MB     MB \n    0 122316      5      0 \n    1      -      5      0 \n    0 122320      5      0 \n",
    );
    assert_eq!(
        figures(&dump),
        [(Some(0), mib(122_316), None), (Some(1), None, None), (Some(0), mib(122_320), None)]
    );
    assert!(!dump.observations[0].processes_listed);
}

#[test]
fn whole_mib_hold_what_the_driver_rounded() {
    let reserved: Quantity = read(DEVICE_CSV).observations[0].reserved.unwrap();
    assert!(reserved.contains(644_939_776), "615.06 MiB print as 616");
}

#[test]
fn a_process_name_may_hold_a_whole_command_line() {
    let rows = "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n\
                GPU-00000000-0000-4000-8000-000000000000, 4712, train --size=7 --x=[1], 3374 MiB\n";
    let dump = read(rows);
    assert_eq!(dump.observations[0].processes[0].name, "train --size=7 --x=[1]");
    assert_eq!(dump.observations[0].processes[0].used, mib(3374));
}
