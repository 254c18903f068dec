use super::*;
use crate::snapshot::tree::Value;
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// A pickle of protocol 4 with this body.
fn pickle(body: &[u8]) -> Vec<u8> {
    [b"\x80\x04", body].concat()
}

fn problem(body: &[u8]) -> PickleProblem {
    read(pickle(body)).unwrap_err().problem
}

#[test]
fn plain_data_is_read() {
    // pickle.dumps({"a": [1, 300, -2, 70000, 1 << 40, 1.5, None, True, (1, 2)]}, protocol=4)
    let body = b"\x95\x2f\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01a\x94]\x94(K\x01M\x2c\x01J\xfe\xff\xff\xffJ\x70\x11\x01\x00\
                 \x8a\x06\x00\x00\x00\x00\x00\x01G\x3f\xf8\x00\x00\x00\x00\x00\x00N\x88K\x01K\x02\x86\x94es.";
    let (tree, protocol) = read(pickle(body)).unwrap();
    assert_eq!(protocol, 4);
    let list = tree.get(tree.root, "a").unwrap();
    let items = tree.items(list).unwrap();
    assert_eq!(
        items[..8],
        [
            Value::Integer(1),
            Value::Integer(300),
            Value::Integer(-2),
            Value::Integer(70_000),
            Value::Integer(1 << 40),
            Value::Float(1.5),
            Value::Nothing,
            Value::Truth(true)
        ]
    );
    assert_eq!(tree.items(items[8]), Some(&[Value::Integer(1), Value::Integer(2)][..]));
}

#[test]
fn long_integers_are_twos_complement() {
    let number = |body: &[u8]| read(pickle(body)).unwrap().0.root;
    assert_eq!(number(b"\x8a\x00."), Value::Integer(0));
    assert_eq!(number(b"\x8a\x01\xff."), Value::Integer(-1));
    assert_eq!(number(b"\x8a\x02\xff\x00."), Value::Integer(255));
    assert_eq!(number(b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f."), Value::Integer(i64::MAX));
    assert_eq!(number(b"\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80."), Value::Integer(i64::MIN));
    assert_eq!(problem(b"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01."), PickleProblem::LargeInteger(9));
}

#[test]
fn whatever_would_run_code_is_refused_by_name() {
    let cases: [(&[u8], &str); 14] = [
        (b"cos\nsystem\n(\x8c\x02idtR.", "GLOBAL"),
        (b"\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R.", "STACK_GLOBAL"),
        (b"NNR.", "REDUCE"),
        (b"}}b.", "BUILD"),
        (b"(ios\nsystem\n.", "INST"),
        (b"(No.", "OBJ"),
        (b"N)\x81.", "NEWOBJ"),
        (b"N)}\x92.", "NEWOBJ_EX"),
        (b"\x82\x01.", "EXT1"),
        (b"\x83\x01\x00.", "EXT2"),
        (b"\x84\x01\x00\x00\x00.", "EXT4"),
        (b"Pid\n.", "PERSID"),
        (b"NQ.", "BINPERSID"),
        (b"\x97.", "NEXT_BUFFER"),
    ];
    for (body, name) in cases {
        assert_eq!(problem(body), PickleProblem::Code(name));
    }
    let error = read(pickle(cases[1].0)).unwrap_err();
    assert_eq!(error.at, 14, "where the opcode stands");
}

#[test]
fn claims_beyond_the_file_are_refused_without_allocating() {
    let four_gigabytes = PickleProblem::Claim { claimed: 0xffff_ffff, left: 2 };
    assert_eq!(problem(b"X\xff\xff\xff\xffa."), four_gigabytes);
    assert_eq!(problem(b"B\xff\xff\xff\xffa."), four_gigabytes);
    assert_eq!(problem(b"T\xff\xff\xff\xffa."), four_gigabytes);
    assert_eq!(problem(b"\x8b\xff\xff\xff\xffa."), four_gigabytes);
    for code in [0x8d, 0x8e] {
        let body = [&[code][..], &u64::MAX.to_le_bytes(), b"a."].concat();
        assert_eq!(problem(&body), PickleProblem::Claim { claimed: u64::MAX, left: 2 });
    }
    // A frame's length is a hint for streams: nothing is made of it.
    assert!(read(pickle(b"\x95\xff\xff\xff\xff\xff\xff\xff\xffN.")).is_ok());
}

#[test]
fn deep_nesting_is_refused_and_never_recursed_into() {
    let deep = 1_000_000;
    assert_eq!(problem(&[b"(".repeat(deep), b".".to_vec()].concat()), PickleProblem::Depth);
    let lists = [b"]".repeat(deep), b"a".repeat(deep), b".".to_vec()].concat();
    assert_eq!(problem(&lists), PickleProblem::Depth);
    let tuples = [b"N".to_vec(), b"\x85".repeat(deep), b".".to_vec()].concat();
    assert_eq!(problem(&tuples), PickleProblem::Depth);
}

#[test]
fn a_container_that_holds_itself_is_only_a_reference() {
    let (tree, _) = read(pickle(b"]\x94h\x00a.")).unwrap();
    assert_eq!(tree.items(tree.root), Some(&[tree.root][..]));
}

#[test]
fn references_do_not_multiply() {
    // Each level holds the one before ten times: 10^60 leaves for a reader that copies.
    let mut body = b"]\x94".to_vec();
    for level in 0..60_u8 {
        body.extend_from_slice(b"](");
        body.extend([b'h', level].repeat(10));
        body.extend_from_slice(b"e\x94");
    }
    body.push(b'.');
    let begun = Instant::now();
    let (tree, _) = read(pickle(&body)).unwrap();
    assert_eq!(tree.containers(), 61);
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[test]
fn memo_numbers_out_of_turn_are_refused() {
    assert_eq!(problem(b"Nr\xff\xff\xff\xff."), PickleProblem::Memo(u32::MAX));
    assert_eq!(problem(b"Nq\x01."), PickleProblem::Memo(1));
    assert_eq!(problem(b"h\x00."), PickleProblem::Memo(0));
    assert!(read(pickle(b"Nq\x000Nq\x00.")).is_ok(), "an entry may be written again");
}

#[test]
fn broken_pickles_are_refused() {
    for body in [
        &b"."[..],
        b"a.",
        b"Na.",
        b"]a.",
        b"(.",
        b"]Ns.",
        b"}(Nu.",
        b"1.",
        b"e.",
        b"t.",
        b"(N\x86.",
        b"2.",
        b"\x94.",
    ] {
        assert_eq!(problem(body), PickleProblem::Operand, "{body:?}");
    }
    for body in [&b""[..], b"N", b"\x8a", b"J\x00", b"G\x00", b"X\x01", b"\x95\x00"] {
        assert_eq!(problem(body), PickleProblem::Ended, "{body:?}");
    }
    assert_eq!(problem(b"I1\n."), PickleProblem::Unsupported("INT (protocol 0)"));
    assert_eq!(problem(b"\x8f."), PickleProblem::Unsupported("EMPTY_SET"));
    assert_eq!(problem(b"\xff"), PickleProblem::Unknown(0xff));
    assert_eq!(read(b"\x80\x06N.".to_vec()).unwrap_err().problem, PickleProblem::Protocol(6));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(body in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(pickle(&body));
    }

    /// Bytes that are all opcodes of plain data get further than arbitrary ones.
    #[test]
    fn arbitrary_programs_never_panic(
        body in proptest::collection::vec(proptest::sample::select(&b"(012N\x88\x89])}ltd\x85\x86\x87aesu\x94\x95K\x8cqh.\x00\x01\x02"[..]), 0..400)
    ) {
        let _ = read(pickle(&body));
    }
}
