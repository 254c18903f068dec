//! Wrapped and torn lines.

use super::{assemble, gib, read_line};
use crate::event::{FailureKind, Role, Value};
use crate::quantity::{Decimal, Quantity, Unit};

#[test]
fn wrapped_lines_are_joined_wherever_they_were_cut() {
    let text = "[2026-11-29 13:52:37 TP0] Load weight end. elapsed=0.13 s, type=LlamaForCausalLM, avail mem=124.15 GB, mem usage=14.98 GB.";
    let whole = read_line(text).unwrap();
    for at in 40..text.len() - 4 {
        let (front, back) = text.split_at(at);
        let events = assemble(&[front, back]);
        assert_eq!(events.len(), 1, "{front}⏎{back}");
        assert_eq!(events[0].template, whole.template, "{front}⏎{back}");
        assert_eq!(events[0].memory("mem usage"), whole.memory("mem usage"), "{front}⏎{back}");
        assert_eq!(events[0].memory("avail mem"), whole.memory("avail mem"), "{front}⏎{back}");
        if text.as_bytes()[at] == b' ' {
            let mail = assemble(&[front, back.trim_start()]);
            assert_eq!(mail[0].text, whole.text);
        }
    }
}

#[test]
fn labels_and_summaries_are_joined_too() {
    for text in [
        "[TP0] Capture target verify CUDA graph end. elapsed=4.12 s, mem usage=0.08 GB, avail mem=36.46 GB.",
        "[TP0] max_total_num_tokens=731957, chunked_prefill_size=8192, max_prefill_tokens=16384, \
         max_running_requests=48, context_len=8192, available_gpu_mem=31.18 GB",
        "[TP0] Memory pool end. avail mem=37.35 GB",
    ] {
        let whole = read_line(text).unwrap();
        for at in 10..text.len() - 1 {
            let (front, back) = text.split_at(at);
            let events = assemble(&[front, back]);
            let read: Vec<_> = events.iter().map(|event| (event.template, event.fields.len())).collect();
            assert_eq!(read, [(whole.template, whole.fields.len())], "{front}⏎{back}");
        }
    }
}

#[test]
fn a_line_wrapped_twice_is_joined_and_keeps_its_places() {
    let events = assemble(&[
        "[2026-11-29 13:52:37 TP0] Load weight end. elapsed=0.13 s, ty",
        "pe=LlamaForCausalLM, avail mem=124.1",
        "5 GB, mem usage=14.98 GB.",
    ]);
    assert_eq!(events.len(), 1);
    let field = events[0].field("mem usage").unwrap();
    assert_eq!(field.memory(), Some(gib("14.98")));
    assert_eq!((field.place.line, field.place.column), (3, 17));
    assert_eq!(events[0].place.line, 1);
}

#[test]
fn torn_lines_are_joined_around_another_rank_s_line() {
    let events = assemble(&[
        "[2026-11-29 13:52:37 TP0] Memory pool end. avail m",
        "[2026-11-29 13:52:37 TP1] Memory pool end. avail mem=34.77 GB",
        "em=33.10 GB",
        "[2026-11-29 13:52:37 TP1] Load weight begin. avail mem=1.00 GB",
    ]);
    let tp: Vec<_> = events.iter().map(|event| event.rank.coordinates.tp).collect();
    assert_eq!(tp, [Some(0), Some(1), Some(1)]);
    assert_eq!(events[0].memory("avail mem"), Some(gib("33.10")));
}

#[test]
fn what_never_goes_on_is_handed_on_cut_and_complete_lines_are_not_swallowed() {
    let events = assemble(&[
        "[TP0] Memory pool end. avail mem=33",
        "Load weight begin. avail mem=1.00 GB",
        "warnings.warn(",
        "Some text",
        "More text",
        "More text",
        ".10 GB",
    ]);
    assert_eq!(events.len(), 2);
    assert_eq!(events[0].field("avail mem").unwrap().value, Value::Cut);
    assert_eq!(events[1].memory("avail mem"), Some(gib("1.00")));
}

#[test]
fn a_list_over_several_lines_loses_no_item() {
    for (prefix, first) in [
        ("[TP0] ", "target decode CUDA graph begin. backend=full, num_tokens_per_bs=1, bs="),
        ("", "cuda graph bs "),
    ] {
        let whole = format!("{prefix}Capture {first}[1, 2, 4, 12, 16, 24, 32, 40, 48]");
        let whole = if prefix.is_empty() { whole } else { format!("{whole}, avail mem=0.38 GB") };
        let expected = read_line(&whole).unwrap();
        for width in 12..40 {
            let pieces: Vec<&str> =
                whole.as_bytes().chunks(width).map(|piece| std::str::from_utf8(piece).unwrap()).collect();
            let events = assemble(&pieces);
            assert_eq!(events.len(), 1, "{pieces:?}");
            assert_eq!(
                events[0].field("bs").unwrap().value,
                expected.field("bs").unwrap().value,
                "{pieces:?}"
            );
            assert_eq!(events[0].memory("avail mem"), expected.memory("avail mem"), "{pieces:?}");
        }
    }
}

#[test]
fn the_cause_of_a_wrapped_failure_is_found() {
    let events = assemble(&[
        "Exception: Capture cuda graph failed: CUDA out of",
        "memory. Tried to allocate 32.",
        "00 MiB. GPU 0 has a total capacity of 139.80 GiB of which",
        "2.31 MiB is free.",
        "Possible solutions:",
    ]);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].role, Role::Failure(FailureKind::CaptureFailed));
    let mib = |digits: &str| Quantity::from_print(&Decimal::parse(digits).unwrap(), Unit::Mib);
    assert_eq!((events[0].memory("asked"), events[0].memory("free")), (mib("32.00"), mib("2.31")));
    let events = assemble(&[
        "ValueError: Loaded weights leave no GPU mem",
        "ory for the KV cache under --mem-fraction-s",
    ]);
    assert_eq!(events[0].role, Role::Failure(FailureKind::BudgetExhausted));
}

#[test]
fn a_wrapped_bar_does_not_take_the_rest_of_the_line_behind_it() {
    let events = assemble(&[
        "Capturing batches (bs=1 avail_mem=14.39 GB): 100%|██████████| 4/4 [00:04<00:00, ",
        " 1.00it/s]",
        "[2026-03-02 09:00:15] Capture cuda graph end. Time elapsed: 6.02 s. mem usage=0.",
        "18 GB. avail mem=14.34 GB.",
    ]);
    let levels: Vec<_> =
        events.iter().map(|event| event.memory("avail_mem").or(event.memory("avail mem"))).collect();
    assert_eq!(levels, [Some(gib("14.39")), Some(gib("14.34"))]);
}

#[test]
fn wrapped_server_arguments_are_joined() {
    let events = assemble(&[
        "[2026-11-29 13:52:19] server_args=ServerArgs(model_path='/a b', tp_si",
        "ze=2,",
        "bs=[1, 2], x='a)'",
        ")",
        "[2026-11-29 13:52:19] Load weight begin. avail mem=1.00 GB",
    ]);
    assert_eq!(events.len(), 2);
    let expected = "ServerArgs(model_path='/a b', tp_size=2, bs=[1, 2], x='a)')";
    assert_eq!(events[0].field("server_args").unwrap().value, Value::Word(expected.into()));
}

#[test]
fn a_wrapped_allocator_sentence_gains_its_figures() {
    let events = assemble(&[
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 28.00 MiB. GPU 0 h",
        "as a total capacity of 139.80 GiB of which 14.31 MiB is free. Including non-PyTo",
        "rch memory, this process has 139.78 GiB memory in use.",
    ]);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].memory("total"), Some(gib("139.80")));
    assert_eq!(events[0].memory("in use"), Some(gib("139.78")));
}

#[test]
fn the_ready_line_does_not_wait() {
    let mut assembler = super::Assembler::new();
    let events =
        assembler.push(&super::line("[2026-03-02 09:00:17] The server is fired up and ready to roll!"));
    assert_eq!(events.len(), 1, "what is served next must come behind it");
}

/// The figures of the failures that a text, wrapped at `width` columns, is read as.
fn wrapped_figures(text: &str, width: usize) -> Vec<Vec<(String, Value)>> {
    let lines: Vec<&str> =
        text.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect();
    let events = assemble(&lines);
    let failures = events.iter().filter(|event| matches!(event.role, Role::Failure(_)));
    failures
        .map(|event| event.fields.iter().map(|field| (field.name.clone(), field.value.clone())).collect())
        .collect()
}

#[test]
fn an_out_of_memory_sentence_survives_a_terminal_of_any_width() {
    for text in [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.02 GiB is free. \
         Process 4242 has 512.00 MiB memory in use. Including non-PyTorch memory, this process has 77.55 GiB memory in use. Of the allocated memory \
         68.10 GiB is allocated by PyTorch, with 420.00 MiB allocated in private pools (e.g., CUDA Graphs), and 1.40 GiB is reserved by PyTorch but \
         unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; 19.00 GiB already allocated; 512.00 MiB free; \
         22.00 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.",
    ] {
        let whole = wrapped_figures(text, text.len());
        let broken: Vec<usize> = (60..=140).filter(|width| wrapped_figures(text, *width) != whole).collect();
        assert_eq!(broken, Vec::<usize>::new());
    }
}
