//! Looking up numbers in a config by any of the names that models use.

use super::ConfigError;
use serde_json::{Map, Value};

/// Larger than any dimension of a model; keeps products of five of them inside an `i128`.
const LARGEST: u64 = 1 << 24;

/// A config and, where it nests one (`text_config` and relatives), its text model's.
pub(super) struct Fields<'a> {
    pub(super) root: &'a Map<String, Value>,
    pub(super) text: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// The fields of a config. A nested text config counts only where it describes layers.
    pub(super) fn of(config: &'a Value) -> Result<Fields<'a>, ConfigError> {
        let root = config.as_object().ok_or(ConfigError::NotAnObject)?;
        let nested = ["text_config", "llm_config", "language_config", "thinker_config"]
            .iter()
            .filter_map(|name| root.get(*name).and_then(Value::as_object))
            .map(|nested| nested.get("text_config").and_then(Value::as_object).unwrap_or(nested))
            .find(|nested| nested.contains_key("hidden_size") || nested.contains_key("num_hidden_layers"));
        Ok(Fields { root, text: nested.unwrap_or(root) })
    }

    /// The first value under any of the names, in the text model's config first. `null` counts as absent.
    pub(super) fn get(&self, names: &[&str]) -> Option<&'a Value> {
        [self.text, self.root].into_iter().find_map(|fields| {
            names.iter().find_map(|name| fields.get(*name).filter(|value| !value.is_null()))
        })
    }

    /// A dimension under any of the names; the first is named in errors.
    pub(super) fn number(&self, names: &[&'static str]) -> Result<Option<u32>, ConfigError> {
        let Some(value) = self.get(names) else { return Ok(None) };
        let number = value.as_u64().filter(|number| *number <= LARGEST);
        match number.and_then(|number| u32::try_from(number).ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(ConfigError::OutOfRange(names.first().copied().unwrap_or("a dimension"))),
        }
    }

    /// A dimension that must be there and not zero.
    pub(super) fn required(&self, names: &[&'static str]) -> Result<u32, ConfigError> {
        let name = names.first().copied().unwrap_or("a dimension");
        match self.number(names)? {
            Some(0) => Err(ConfigError::OutOfRange(name)),
            Some(number) => Ok(number),
            None => Err(ConfigError::Missing(name)),
        }
    }

    /// A dimension with its default.
    pub(super) fn or(&self, names: &[&'static str], default: u32) -> Result<u32, ConfigError> {
        Ok(self.number(names)?.unwrap_or(default))
    }

    /// A flag.
    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        self.get(&[name]).and_then(Value::as_bool)
    }

    /// A string.
    pub(super) fn string(&self, names: &[&str]) -> Option<&'a str> {
        self.get(names).and_then(Value::as_str)
    }
}
