//! Which arguments hold secrets. SGLang prints API keys in clear in every release that has them (only the watermark keys
//! of 0.5.23 are masked), and a report travels further than the log it was made of.

use super::Argument;

/// What stands in place of a secret; SGLang's own word where it masks one.
pub(super) const REDACTED: &str = "<redacted>";

/// Parts of names whose text is a secret.
const SECRET_NAMES: [&str; 7] =
    ["api_key", "apikey", "password", "passwd", "secret", "credential", "watermark_key"];
/// Whole last words of names: `hf_token`, but not `max_total_tokens`.
const SECRET_ENDINGS: [&str; 3] = ["token", "private_key", "access_key"];
/// Names of free-form settings (JSON in a string), in which anything can stand.
const FREE_FORM: [&str; 3] = ["extra_config", "kv_events_config", "watermark_config"];

/// Whether the argument of this name must not be shown as it is. Only text can be a secret: a missing key stays missing.
pub(super) fn is_secret(name: &str, value: &Argument) -> bool {
    let (Argument::Text(text) | Argument::Opaque(text)) = value else { return false };
    let name = name.to_ascii_lowercase();
    let named = SECRET_NAMES.iter().any(|part| name.contains(part))
        || SECRET_ENDINGS.iter().any(|end| name == *end || name.ends_with(&format!("_{end}")));
    let free_form = FREE_FORM.iter().any(|part| name.contains(part));
    !text.is_empty() && (named || free_form && holds_something(text) || has_user_in_address(text))
}

/// Whether free-form settings are more than empty brackets.
fn holds_something(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

/// `scheme://user:password@host`.
fn has_user_in_address(text: &str) -> bool {
    text.split("://")
        .skip(1)
        .any(|rest| rest.split(['/', '?', '#']).next().is_some_and(|host| host.contains('@')))
}

#[cfg(test)]
mod tests {
    use crate::server_args::parse;

    #[test]
    fn secrets_are_not_shown_and_the_rest_is() {
        let line = "ServerArgs(api_key='sk-1', admin_api_key=None, ssl_keyfile_password='p', hf_token='hf_1', \
                    max_total_tokens=5, model_loader_extra_config='{}', hicache_storage_backend_extra_config='{\"k\": \"v\"}', \
                    otlp_traces_endpoint='http://me:pw@host/x', download_dir='/a@b', inner={'api_key': 'sk-2'})";
        assert_eq!(
            parse(line).unwrap().to_json().to_string(),
            r#"{"api_key":"<redacted>","admin_api_key":null,"ssl_keyfile_password":"<redacted>","hf_token":"<redacted>","max_total_tokens":5,"model_loader_extra_config":"{}","hicache_storage_backend_extra_config":"<redacted>","otlp_traces_endpoint":"<redacted>","download_dir":"/a@b","inner":{"api_key":"<redacted>"}}"#
        );
    }
}
