//! Redaction of single texts; whole reports are in `tests/redaction.rs`.

use super::*;
use proptest::prelude::*;

fn redacted(text: &str) -> String {
    Redactor::new(Vec::new()).unwrap().text(text).into_owned()
}

#[test]
fn tokens_give_themselves_away() {
    for token in [
        "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
        "sk-proj-4f9d8a7c6b5e",
        "sk-123456",
        "ghp_0123456789abcdefghijABCDEFGHIJ",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyA-0123456789abcdefghijklmnopqrstu",
        "nvapi-0123456789abcdefghij",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    ] {
        assert_eq!(redacted(&format!("with {token}, and")), "with secret-1, and", "{token}");
    }
    assert_eq!(redacted("Bearer abcdef123456"), "Bearer secret-1");
    assert_eq!(redacted("Authorization: Basic dXNlcjpwYXNz"), "Authorization: secret-1");
    assert_eq!(redacted("-----BEGIN RSA PRIVATE KEY-----\\nMIIE"), "secret-1");
}

#[test]
fn keys_tell_in_every_form() {
    for (text, expected) in [
        ("api_key='it\\'s', tp_size=2", "api_key='secret-1', tp_size=2"),
        ("{'api_key': \"x y\", 'tp': 2}", "{'api_key': \"secret-1\", 'tp': 2}"),
        ("--api-key hunter2 --tp 2", "--api-key secret-1 --tp 2"),
        ("--admin-api-key=hunter2", "--admin-api-key=secret-1"),
        ("HF_TOKEN=abc OTHER=1", "HF_TOKEN=secret-1 OTHER=1"),
        (r#"cfg='{\"password\": \"p w\"}'"#, r#"cfg='{\"password\": \"secret-1\"}'"#),
        ("api_key=None, admin_api_key='', x", "api_key=None, admin_api_key='', x"),
        ("extra_headers={'X': 'y'}, z", "extra_headers=secret-1, z"),
        ("ssl_keyfile_password='cut off", "ssl_keyfile_password='secret-1"),
        ("host='gpu7', port=1", "host='host-1', port=1"),
        ("dist_init_addr='gpu7:5000'", "dist_init_addr='host-1:5000'"),
        ("model_path='/data/acme/llama'", "model_path='…/llama'"),
        ("Serial Number    : 1560921000123", "Serial Number    : gpu-1"),
        ("serial: 1560921000123", "serial: gpu-1"),
    ] {
        assert_eq!(redacted(text), expected);
    }
}

#[test]
fn machines_and_people_are_renamed() {
    for (text, expected) in [
        ("at 10.1.2.3:80, 10.1.2.4 and 10.1.2.3.", "at ip-1:80, ip-2 and ip-1."),
        ("[fe80::1]:80 and 2001:db8::5", "[ip-1]:80 and ip-2"),
        ("mac 0a:1b:2c:3d:4e:5f", "mac mac-1"),
        ("gpu7.corp.example", "host-1"),
        ("http://user:pw@gpu7:80/x?api_key=abc&n=1", "http://secret-1@host-1:80/x?api_key=secret-2&n=1"),
        ("mail bob@corp.example", "mail email-1"),
        ("bob@gpu7:~$ x", "user-1@host-1:~$ x"),
        ("/home/bob/x /Users/eve/y /root/z", "/home/user-1/x /Users/user-2/y /root/z"),
        (r"C:\Users\Bob Ray\x C:\\Users\\eve", r"C:\Users\user-1\x C:\\Users\\user-2"),
        ("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "gpu-1"),
        ("ip-10-0-0-1", "host-1"),
    ] {
        assert_eq!(redacted(text), expected);
    }
}

#[test]
fn what_tells_nothing_stays() {
    for text in [
        "127.0.0.1 0.0.0.0 ::1 localhost https://huggingface.co/meta-llama/Llama-3.1-8B",
        "[2026-11-29 13:51:19 TP0] Load weight begin. avail mem=139.13 GB",
        "max_total_num_tokens=845985, chunked_prefill_size=8192, available_gpu_mem=19.31 GB",
        "torch.OutOfMemoryError: see https://pytorch.org/docs/stable/notes/cuda.html#environment-variables",
        "File \"/usr/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py\", line 3",
        "Decode batch, #running-req: 1, #token: 7, token usage: 0.00, #queue-req: 0",
        "sglang::scheduler_TP0 00000000:1B:00.0 580.95.05 MIG-1g.10gb task-abcdefghij",
        "skip_tokenizer_init=True, tokenizer_path='meta-llama/Llama-3', eos_token='</s>'",
    ] {
        assert_eq!(redacted(text), text);
    }
}

#[test]
fn pseudonyms_are_stable_and_final() {
    let mut redactor = Redactor::new(Vec::new()).unwrap();
    let first = redactor.text("api_key='one' host='gpu7' api_key='two'").into_owned();
    assert_eq!(first, "api_key='secret-1' host='host-1' api_key='secret-2'");
    assert_eq!(redactor.text(&first), first, "what is redacted stays");
    assert_eq!(redactor.text("--api-key two"), "--api-key secret-2");
}

#[test]
fn own_patterns_count_most() {
    let own = vec![Regex::new("acme-(\\w+)").unwrap(), Regex::new("x*").unwrap()];
    let mut redactor = Redactor::new(own).unwrap();
    assert_eq!(redactor.text("acme-rocket at 10.0.0.1"), "acme-redacted-1 at ip-1");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic_and_twice_is_once(text in any::<String>()) {
        let mut redactor = Redactor::new(Vec::new()).unwrap();
        let once = redactor.text(&text).into_owned();
        let twice = redactor.text(&once).into_owned();
        prop_assert_eq!(&twice, &once);
    }

    #[test]
    fn hostile_signs_make_no_panic(text in "(api_key|host|://|@|[='\"\\\\{}\\[\\]: .,]|é|1.2.3.4|fe80::|/home/|\\\\users\\\\|a){0,40}") {
        let mut redactor = Redactor::new(Vec::new()).unwrap();
        let _ = redactor.text(&text);
    }

    #[test]
    fn figures_with_units_stay(
        before in "[a-zA-Z0-9_.:/ -]{0,30}",
        whole in 0u32..1_000_000,
        cents in 0u32..100,
        unit in "GB|GiB|MB|MiB|KiB",
    ) {
        let figure = format!("mem={whole}.{cents:02} {unit}, usage={cents} {unit}");
        let redacted = redacted(&format!("{before} avail {figure}"));
        prop_assert!(redacted.ends_with(&figure), "{}", redacted);
    }
}
