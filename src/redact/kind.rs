//! The kinds of things that are redacted, and their names.

use crate::quantity::group_digits;

/// What a redacted value was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Keys, tokens, passwords, certificates, and configuration that may hold any.
    Secret,
    /// An e-mail address.
    Email,
    /// The name of a machine or a pod.
    Host,
    /// An IPv4 or IPv6 address.
    Ip,
    /// A hardware address of a network card.
    Mac,
    /// A user's name in a path or a prompt.
    User,
    /// UUID or serial number of a GPU.
    Gpu,
    /// The folders above a model; its own name stays.
    Path,
    /// What a pattern of the user's matched.
    Own,
}

impl Kind {
    /// All kinds, in the order of reports.
    pub const ALL: [Kind; 9] = [
        Kind::Secret,
        Kind::Email,
        Kind::Host,
        Kind::Ip,
        Kind::Mac,
        Kind::User,
        Kind::Gpu,
        Kind::Path,
        Kind::Own,
    ];

    /// The name in JSON, and the beginning of pseudonyms (`host-1`).
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Secret => "secret",
            Kind::Email => "email",
            Kind::Host => "host",
            Kind::Ip => "ip",
            Kind::Mac => "mac",
            Kind::User => "user",
            Kind::Gpu => "gpu",
            Kind::Path => "path",
            Kind::Own => "redacted",
        }
    }

    /// So many of them, in words.
    pub(super) fn counted(self, count: usize) -> String {
        let (one, many) = match self {
            Kind::Secret => ("secret", "secrets"),
            Kind::Email => ("e-mail address", "e-mail addresses"),
            Kind::Host => ("host name", "host names"),
            Kind::Ip => ("IP address", "IP addresses"),
            Kind::Mac => ("MAC address", "MAC addresses"),
            Kind::User => ("user name", "user names"),
            Kind::Gpu => ("GPU id", "GPU ids"),
            Kind::Path => ("model path", "model paths"),
            Kind::Own => ("match of own patterns", "matches of own patterns"),
        };
        format!("{} {}", group_digits(count as i128), if count == 1 { one } else { many })
    }

    /// The value as it is compared: names of machines and identifiers are the same in any case.
    pub(super) fn canonical(self, value: &str) -> String {
        match self {
            Kind::Email | Kind::Host | Kind::Mac | Kind::Gpu | Kind::Ip => value.to_ascii_lowercase(),
            Kind::Secret | Kind::User | Kind::Path | Kind::Own => value.to_string(),
        }
    }
}
