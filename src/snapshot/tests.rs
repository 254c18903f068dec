use super::*;
use crate::quantity::{MIB, Quantity};
use std::io::Write;
use std::path::PathBuf;

fn data(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/snapshots").join(name);
    std::fs::read(path).unwrap()
}

fn summary(name: &str) -> Vec<DeviceSummary> {
    summarise(&read(data(name)).unwrap())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn totals_of_the_recorded_servers_are_torchs_own_to_the_byte() {
    let truth: serde_json::Value = serde_json::from_slice(&data("truth.json")).unwrap();
    let truth = truth.as_array().unwrap();
    assert!(truth.len() >= 14);
    for case in truth {
        let file = case["file"].as_str().unwrap();
        let [device] = &summary(file)[..] else { panic!("{file}: one device") };
        let bytes = |key: &str| Quantity::exact(case[key].as_i64().unwrap().into());
        assert_eq!(u64::from(device.device), case["device"].as_u64().unwrap(), "{file}");
        assert_eq!(device.totals.reserved, bytes("reserved"), "{file}");
        assert_eq!(device.totals.allocated, bytes("allocated"), "{file}");
        assert_eq!(device.totals.active, bytes("active"), "{file}");
        assert_eq!(device.totals.inactive_split, bytes("inactive_split"), "{file}");
        assert_eq!(device.inconsistent, 0, "{file}");
        let mut private = Quantity::ZERO;
        for (key, pool) in case["pools"].as_object().unwrap() {
            let reserved = Quantity::exact(pool[0].as_i64().unwrap().into());
            if key.ends_with("|0,0") {
                assert_eq!(device.ordinary(), Some(reserved), "{file}");
            } else {
                private = private + reserved;
            }
        }
        assert_eq!(device.private(), Some(private), "{file}");
        let of_pools: Quantity = device.pools.iter().map(|pool| pool.totals.reserved).sum();
        assert_eq!(of_pools, device.totals.reserved, "{file}");
    }
}

#[test]
fn totals_with_and_without_expandable_segments_are_torchs_own_to_the_byte() {
    for (name, expandable) in [("h200-default", false), ("h200-expandable", true)] {
        let stats: serde_json::Value = serde_json::from_slice(&data(&format!("{name}.stats.json"))).unwrap();
        let [device] = &summary(&format!("{name}.protocol-4.pickle"))[..] else { panic!("one device") };
        let bytes = |key: &str| Quantity::exact(stats[key].as_i64().unwrap().into());
        assert_eq!(device.totals.reserved, bytes("reserved_bytes.all.current"));
        assert_eq!(device.totals.allocated, bytes("allocated_bytes.all.current"));
        assert_eq!(device.totals.active, bytes("active_bytes.all.current"));
        assert_eq!(device.totals.requested, Some(bytes("requested_bytes.all.current")));
        assert_eq!(device.totals.inactive_split, bytes("inactive_split_bytes.all.current"));
        let reserved = |pool| device.pools.iter().find(|one| one.pool == pool).unwrap().totals.reserved;
        let small = Pool::Ordinary { class: SizeClass::Small, expandable };
        assert_eq!(reserved(small), bytes("reserved_bytes.small_pool.current"));
        // The graphs' pools and the MemPool, by the ids that the program printed.
        for id in [PoolId(1, 0), PoolId(2, 0), PoolId(0, 1)] {
            assert_eq!(reserved(Pool::Private(id)), Quantity::exact(20 * MIB));
        }
        assert_eq!(device.private(), Some(Quantity::exact(60 * MIB)));
    }
}

#[test]
fn all_protocols_and_json_hold_the_same() {
    let of = |name: &str| {
        let snapshot = read(data(name)).unwrap();
        (snapshot.form, Snapshot { form: Form::Json, ..snapshot })
    };
    let (form, json) = of("h200-default.json");
    assert_eq!(form, Form::Json);
    for protocol in 2..=5 {
        let (form, pickle) = of(&format!("h200-default.protocol-{protocol}.pickle"));
        assert_eq!(form, Form::Pickle(protocol));
        assert_eq!(summarise(&pickle), summarise(&json), "protocol {protocol}");
    }
    let packed = read(gzip(&data("h200-default.json"))).unwrap();
    assert_eq!(summarise(&packed), summarise(&json));
}

#[test]
fn sites_are_the_programs_own_lines() {
    let [device] = &summary("h200-default.protocol-4.pickle")[..] else { panic!("one device") };
    let named: Vec<(String, usize, i128)> = device
        .sites
        .iter()
        .map(|one| {
            let site = one.site.as_ref().unwrap();
            (format!("{} {}:{}", site.function, site.file, site.line.unwrap()), one.blocks, one.held.low())
        })
        .collect();
    assert_eq!(named[0], ("kv_pool /srv/record.py:7".to_string(), 1, 100 * MIB));
    assert!(named.contains(&("weights /srv/record.py:6".to_string(), 3, 9 * MIB)), "{named:?}");
    assert!(!named.iter().any(|(name, ..)| name.contains("graphs.py")), "not PyTorch's own: {named:?}");
    let total: Quantity = device.sites.iter().map(|site| site.held).sum();
    assert_eq!(total, device.totals.allocated);
}

#[test]
fn free_memory_is_told_apart() {
    let [device] = &summary("piecewise-oom-0.5.12.8994.pickle.gz")[..] else { panic!("one device") };
    // The 448 MiB that the failed step gave back are a whole segment: empty_cache() would return them.
    assert!(device.totals.releasable.low() >= 448 * MIB);
    assert_eq!(device.totals.releasable + device.totals.inactive_split, device.totals.inactive);
    assert_eq!(device.totals.largest_free, Some(Quantity::exact(448 * MIB)));
    // The sentence of this failure said '22.00 MiB allocated in private pools': they are free, and nothing is allocated.
    let private = device.pools.iter().find(|pool| pool.pool.is_private()).unwrap();
    assert_eq!(private.totals.inactive, Quantity::exact(22 * MIB));
    assert_eq!(private.totals.allocated, Quantity::ZERO);
    let share = device.totals.fragmentation().unwrap();
    assert!(share > 0.1 && share < 0.3, "{share}");
}

#[test]
fn a_bare_list_of_an_old_release_is_read() {
    let old = br#"[{"device": 1, "address": 1, "total_size": 2097152, "allocated_size": 512, "active_size": 1024,
        "segment_type": "small", "blocks": [
          {"size": 512, "state": "active_allocated", "history": [{"addr": 1, "frames": [
              {"name": "c10::alloc", "filename": "??", "line": 0},
              {"name": "load", "filename": "/usr/lib/python3.9/dist-packages/sglang/loader.py", "line": 7}]}]},
          {"size": 512, "state": "active_pending_free"}, {"size": 2096128, "state": "inactive"}]}]"#;
    let snapshot = read(old.to_vec()).unwrap();
    let [device] = &summarise(&snapshot)[..] else { panic!("one device") };
    assert_eq!((device.device, device.inconsistent), (1, 0));
    assert_eq!((device.ordinary(), device.private(), device.totals.requested), (None, None, None));
    assert_eq!(snapshot.sites[0].file, "sglang/loader.py");
    let mut broken = snapshot;
    broken.segments[0].blocks.pop();
    assert_eq!(summarise(&broken)[0].inconsistent, 1);
}

#[test]
fn other_files_are_named() {
    let problem = |bytes: &[u8]| read(bytes.to_vec()).unwrap_err();
    assert_eq!(problem(b""), SnapshotError::Empty);
    assert_eq!(problem(b" \n"), SnapshotError::Empty);
    assert!(matches!(problem(b"[2026-11-29 13:51:41] Load weight begin."), SnapshotError::Json(_)));
    assert_eq!(problem(b"PK\x03\x04"), SnapshotError::NeitherForm);
    assert!(matches!(problem(b"{\"a\": "), SnapshotError::Json(_)));
    assert!(matches!(problem(&b"[".repeat(100_000)), SnapshotError::Json(_)));
    assert!(matches!(problem(b"{\"a\": 1}"), SnapshotError::Shape(_)));
    assert!(matches!(problem(b"\x1f\x8bnothing"), SnapshotError::Gzip(_)));
    let text = |bytes: &[u8]| problem(bytes).to_string();
    assert_eq!(text(b"[{\"blocks\": []}]"), "holds no memory snapshot: segment 0 has no device");
    assert!(text(b"[{\"blocks\": [], \"device\": -1}]").contains("device -1"));
    assert!(text(b"[{\"blocks\": [], \"device\": 0, \"total_size\": -5}]").contains("no size"));
    assert!(text(b"\x80\x04cos\nsystem\n.").contains("GLOBAL would import or run code"));
}

#[test]
fn entries_are_counted_against_the_limit() {
    let mut tree = tree::Tree::new();
    let list = tree.container().unwrap();
    tree.count(tree::MOST_ENTRIES - 3).unwrap();
    tree.extend(list, std::iter::once(tree::Value::Nothing)).unwrap();
    assert_eq!(tree.extend(list, std::iter::once(tree::Value::Nothing)), Err(tree::Excess::Entries));
    assert_eq!(tree.container(), Err(tree::Excess::Entries));
}

#[test]
fn a_gzip_bomb_is_refused() {
    let bomb = gzip(&vec![b' '; 64 << 20]);
    assert!(bomb.len() < 100_000);
    assert!(matches!(read(bomb).unwrap_err(), SnapshotError::PackedTooTightly { .. }));
}

#[test]
fn segments_repeated_by_reference_are_refused_in_linear_time() {
    // One segment with 50,000 references to one block, referred to 50,000 times: 2.5 billion visits for a naive reader.
    let mut body = b"\x80\x04".to_vec();
    body.extend_from_slice(b"}(\x8c\x04sizeK\x01\x8c\x05state\x8c\x08inactiveuq\x000");
    body.extend_from_slice(b"](");
    body.extend(b"h\x00".repeat(50_000));
    body.extend_from_slice(b"eq\x010}(\x8c\x06deviceK\x00\x8c\x0atotal_sizeK\x01\x8c\x0eallocated_sizeK\x00");
    body.extend_from_slice(b"\x8c\x0bactive_sizeK\x00\x8c\x06blocksh\x01uq\x020](");
    body.extend(b"h\x02".repeat(50_000));
    body.extend_from_slice(b"e.");
    let begun = std::time::Instant::now();
    let error = read(body).unwrap_err();
    assert!(error.to_string().contains("over and over"), "{error}");
    assert!(begun.elapsed().as_secs() < 2);
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
        let _ = read(bytes);
    }

    /// A real snapshot with bytes changed or cut off is read or refused, and never worse.
    #[test]
    fn damaged_snapshots_never_panic(changes in proptest::collection::vec((0_usize..3318, proptest::prelude::any::<u8>()), 1..8), cut in 0_usize..3318) {
        let mut bytes = data("h200-default.protocol-4.pickle");
        for (at, byte) in changes {
            if let Some(place) = bytes.get_mut(at) { *place = byte; }
        }
        if let Ok(snapshot) = read(bytes.clone()) { let _ = summarise(&snapshot); }
        bytes.truncate(cut);
        proptest::prop_assert!(read(bytes).is_err());
    }
}
