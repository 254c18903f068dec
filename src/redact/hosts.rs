//! Names and addresses of machines: which are private, and which everybody knows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// Names that tell nothing about anybody, and hosts of projects that SGLang's own messages point to.
const PUBLIC: [&str; 26] = [
    "localhost",
    "localhost.localdomain",
    "ip6-localhost",
    "host.docker.internal",
    "huggingface.co",
    "hf.co",
    "github.com",
    "github.io",
    "githubusercontent.com",
    "pytorch.org",
    "nvidia.com",
    "nvcr.io",
    "docker.io",
    "docker.com",
    "ghcr.io",
    "quay.io",
    "python.org",
    "pypi.org",
    "sglang.ai",
    "sglang.io",
    "flashinfer.ai",
    "readthedocs.io",
    "kubernetes.io",
    "modelscope.cn",
    "arxiv.org",
    "openai.com",
];

/// Last labels that make dotted words a host name. Endings that are also those of source files and attributes in Python
/// (py, rs, sh, so, to, id, is, …) are not here.
const ENDINGS: [&str; 78] = [
    "com",
    "net",
    "org",
    "io",
    "dev",
    "ai",
    "app",
    "cloud",
    "edu",
    "gov",
    "mil",
    "info",
    "biz",
    "co",
    "tech",
    "xyz",
    "online",
    "systems",
    "internal",
    "local",
    "localdomain",
    "lan",
    "corp",
    "intra",
    "intranet",
    "private",
    "home",
    "cluster",
    "consul",
    "arpa",
    "example",
    "hpc",
    "de",
    "uk",
    "fr",
    "nl",
    "ch",
    "at",
    "be",
    "lu",
    "li",
    "eu",
    "us",
    "ca",
    "cn",
    "jp",
    "kr",
    "tw",
    "hk",
    "sg",
    "in",
    "au",
    "nz",
    "br",
    "mx",
    "ar",
    "cl",
    "ru",
    "ua",
    "se",
    "fi",
    "dk",
    "pl",
    "cz",
    "sk",
    "hu",
    "ro",
    "gr",
    "it",
    "es",
    "pt",
    "ie",
    "tr",
    "il",
    "ae",
    "sa",
    "za",
    "nu",
];

/// Endings of files that may be named after a machine.
const FILES: [&str; 10] = ["log", "txt", "csv", "json", "xml", "out", "err", "gz", "zst", "md"];

/// Whether everybody knows this name.
pub(super) fn is_public(host: &str) -> bool {
    PUBLIC.iter().any(|known| {
        let ends = host.len().checked_sub(known.len()).and_then(|at| host.split_at_checked(at));
        ends.is_some_and(|(before, end)| {
            end.eq_ignore_ascii_case(known) && (before.is_empty() || before.ends_with('.'))
        })
    })
}

/// Whether a text can be a private machine's name: letters in it, and not one that everybody knows.
pub(super) fn is_name(host: &str) -> bool {
    host.bytes().any(|byte| byte.is_ascii_alphabetic())
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
        && !is_public(host)
}

/// Whether a machine's name is so much its own that it may be replaced in every text: a common word is not.
pub(super) fn is_telling(host: &str) -> bool {
    let marked = host.bytes().any(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.'));
    is_name(host) && host.len() >= 4 && marked
}

/// The part of dotted words that is a private host name, without the endings of a file.
pub(super) fn dotted(words: &str) -> Option<&str> {
    let ending = |name: &str| name.rsplit_once('.').map(|(_, ending)| ending.to_string());
    let mut name = words.trim_matches(['-', '.']);
    for _ in 0..2 {
        match name.rsplit_once('.') {
            Some((before, ending)) if FILES.contains(&ending) => name = before,
            _ => break,
        }
    }
    let last = ending(name)?;
    let one_case = last == last.to_ascii_lowercase() || last == last.to_ascii_uppercase();
    (one_case && ENDINGS.contains(&last.to_ascii_lowercase().as_str()) && is_name(name)).then_some(name)
}

/// The machine in a host, a `host:port` or a URL, where it is a name.
pub(super) fn named_in(value: &str) -> Option<Range<usize>> {
    let scheme = value.find("://").map_or(0, |at| at + 3);
    let authority = value.get(scheme..)?;
    let authority = authority.split(['/', '?', '#']).next()?;
    let start = scheme + authority.rfind('@').map_or(0, |at| at + 1);
    let host = value.get(start..)?.split([':', '/', '?', '#', ',']).next()?;
    is_name(host).then(|| start..start + host.len())
}

/// Whether an address means nobody in particular: this machine, or all of them.
fn is_nobody(address: IpAddr) -> bool {
    address.is_loopback() || address.is_unspecified()
}

/// Four numbers with dots between, where they are somebody's address.
pub(super) fn is_private_v4(text: &str) -> bool {
    let numbers: Vec<Option<u8>> = text.split('.').map(|part| part.parse().ok()).collect();
    match numbers.as_slice() {
        [Some(a), Some(b), Some(c), Some(d)] => !is_nobody(Ipv4Addr::new(*a, *b, *c, *d).into()),
        _ => false,
    }
}

/// An IPv6 address, where it is somebody's.
pub(super) fn is_private_v6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok_and(|address| !is_nobody(address.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_told_from_dotted_words() {
        assert_eq!(dotted("gpu7.corp.example"), Some("gpu7.corp.example"));
        assert_eq!(dotted("gpu7.corp.example.log.gz"), Some("gpu7.corp.example"));
        for words in
            ["torch.OutOfMemoryError", "scheduler.py", "huggingface.co", "docs.nvidia.com", "0.5.12", "Com"]
        {
            assert_eq!(dotted(words), None, "{words}");
        }
    }

    #[test]
    fn the_machine_is_found_in_addresses_and_urls() {
        let host = |value: &'static str| named_in(value).map(|range| &value[range]);
        assert_eq!(host("node7:5000"), Some("node7"));
        assert_eq!(host("tcp://node7:5000"), Some("node7"));
        assert_eq!(host("http://u:p@a.corp/x?y"), Some("a.corp"));
        for value in ["10.0.0.1:80", "[fe80::1]:80", "localhost", "http://127.0.0.1:1", "", "://"] {
            assert_eq!(host(value), None, "{value}");
        }
    }

    #[test]
    fn nobodys_addresses_stay() {
        assert!(is_private_v4("10.0.0.1") && is_private_v6("fe80::1") && is_private_v6("2001:db8::5"));
        for address in ["127.0.0.1", "0.0.0.0", "1.2.3", "1.2.3.400", "12.8.4.1.2"] {
            assert!(!is_private_v4(address), "{address}");
        }
        assert!(!is_private_v6("::1") && !is_private_v6("::") && !is_private_v6("13:51:19"));
    }
}
