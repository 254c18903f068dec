//! What the name of a value says about it: one table for `server_args` and for `key=value` in any text.

/// What a key's value holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Credentials, or configuration that may hold any.
    Secret,
    /// The same, but the word is so common that only a quoted or bracketed value counts in free text.
    SecretIfQuoted,
    /// A machine, a `host:port` or a URL.
    Host,
    /// A model's folder or repository.
    Model,
    /// A user's name.
    User,
    /// UUID or serial number of a card.
    Gpu,
}

/// Arguments of SGLang (0.1.20 to 0.5.23) that may hold secrets, beside those that [`SECRET_PARTS`] covers.
const SECRET_ARGUMENTS: [&str; 8] = [
    "hicachestoragebackendextraconfig",
    "modelloaderextraconfig",
    "jsonmodeloverrideargs",
    "kveventsconfig",
    "decryptedconfigfile",
    "decryptedloraconfigfile",
    "filestoragepath",
    "filestoragepth",
];
/// Beginnings of such arguments.
const SECRET_BEGINNINGS: [&str; 4] = ["sslkey", "sslcert", "sslca", "watermark"];
/// What makes any key a secret's.
const SECRET_PARTS: [&str; 14] = [
    "apikey",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "privatekey",
    "accesskey",
    "accountkey",
    "subscriptionkey",
    "sharedaccess",
    "credential",
    "authorization",
    "connectionstring",
    "webhook",
];
/// What stands before `token` where it is no token of a text.
const TOKENS: [&str; 17] = [
    "hf", "hub", "auth", "access", "api", "bearer", "refresh", "session", "security", "sas", "github",
    "gitlab", "bot", "ngc", "vault", "jwt", "registry",
];
const QUOTED_SECRETS: [&str; 6] = ["token", "auth", "cookie", "setcookie", "jwt", "pin"];
const HOSTS: [&str; 10] = [
    "host",
    "hostname",
    "nodename",
    "distinitaddr",
    "ncclinitaddr",
    "masteraddr",
    "endpoint",
    "remoteinstanceweightloaderseedinstanceip",
    "node",
    "server",
];
const HOST_ENDINGS: [&str; 8] = ["url", "urls", "addr", "addrs", "host", "hosts", "endpoint", "hostname"];
const MODELS: [&str; 8] = [
    "modelpath",
    "tokenizerpath",
    "speculativedraftmodelpath",
    "speculativedraftmodel",
    "servedmodelname",
    "modelid",
    "lorapaths",
    "lorapath",
];
const USERS: [&str; 3] = ["user", "username", "logname"];
const GPUS: [&str; 5] = ["uuid", "gpuuuid", "serial", "serialnumber", "gpuserial"];

/// What a key says about its value. Case, `_`, `-` and `.` don't matter: `--api-key`, `API_KEY` and `api_key` are one.
pub(super) fn class_of(key: &str) -> Option<Class> {
    let name: String = key
        .chars()
        .filter(|letter| !matches!(letter, '_' | '-' | '.'))
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    let is = |table: &[&str]| table.contains(&name.as_str());
    let token =
        name.strip_suffix("token").is_some_and(|before| TOKENS.iter().any(|word| before.ends_with(word)));
    if is(&SECRET_ARGUMENTS)
        || SECRET_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || SECRET_PARTS.iter().any(|part| name.contains(part))
        || token
    {
        return Some(Class::Secret);
    }
    if is(&QUOTED_SECRETS) || name.ends_with("headers") || name.ends_with("header") {
        return Some(Class::SecretIfQuoted);
    }
    if is(&MODELS) {
        return Some(Class::Model);
    }
    if is(&HOSTS) || HOST_ENDINGS.iter().any(|ending| name.ends_with(ending)) {
        return Some(Class::Host);
    }
    if is(&USERS) {
        return Some(Class::User);
    }
    is(&GPUS).then_some(Class::Gpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_that_may_hold_a_secret_is_known() {
        for key in [
            "api_key",
            "admin_api_key",
            "ssl_keyfile",
            "ssl_keyfile_password",
            "ssl_certfile",
            "ssl_ca_certs",
            "hicache_storage_backend_extra_config",
            "model_loader_extra_config",
            "json_model_override_args",
            "kv_events_config",
            "file_storage_path",
            "file_storage_pth",
            "watermark_key",
            "watermark_key_b",
            "watermark_config",
            "decrypted_config_file",
            "HF_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "AccountKey",
            "x-api-key",
        ] {
            assert_eq!(class_of(key), Some(Class::Secret), "{key}");
        }
        for key in ["host", "dist_init_addr", "nccl_init_addr", "pdlb_url", "encoder_urls"] {
            assert_eq!(class_of(key), Some(Class::Host), "{key}");
        }
    }

    #[test]
    fn figures_of_logs_are_no_secrets() {
        for key in [
            "max_total_num_tokens",
            "avail mem",
            "tokenizer_mode",
            "num_tokens",
            "page_size",
            "bos_token",
            "mem usage",
        ] {
            assert_eq!(class_of(key), None, "{key}");
        }
    }
}
