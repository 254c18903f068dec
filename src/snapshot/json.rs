//! JSON exports of a snapshot, into the same store that pickles are read into.

use super::SnapshotError;
use super::tree::{Excess, Tree, Value};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Reads JSON text. serde_json refuses what is nested deeper than 128; no text or list is allocated by its claim.
pub(super) fn read(bytes: &[u8]) -> Result<Tree, SnapshotError> {
    let mut tree = Tree::new();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let broken = |error: serde_json::Error| SnapshotError::Json(error.to_string());
    tree.root = Store(&mut tree).deserialize(&mut deserializer).map_err(broken)?;
    deserializer.end().map_err(broken)?;
    Ok(tree)
}

/// Stores whatever comes.
struct Store<'t>(&'t mut Tree);

impl Store<'_> {
    fn keep(&mut self, text: &str) -> Option<Value> {
        let start = u32::try_from(self.0.bytes.len()).ok()?;
        let length = u32::try_from(text.len()).ok()?;
        self.0.bytes.extend_from_slice(text.as_bytes());
        Some(Value::Text(start, length))
    }
}

fn too_much<E: Error>(excess: Excess) -> E {
    E::custom(match excess {
        Excess::Entries => "it holds more values than are read",
        Excess::Depth => "it is nested too deeply",
    })
}

impl<'de> DeserializeSeed<'de> for Store<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Store<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON data")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Truth(truth))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Integer(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        // Larger ones are no sizes; some exports print hashes.
        Ok(i64::try_from(number).map_or(Value::Float(number as f64), Value::Integer))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Float(number))
    }

    fn visit_str<E: Error>(mut self, text: &str) -> Result<Value, E> {
        self.keep(text).ok_or_else(|| too_much(Excess::Entries))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let number = self.0.container().map_err(too_much)?;
        while let Some(item) = items.next_element_seed(Store(self.0))? {
            self.0.extend(number, std::iter::once(item)).map_err(too_much)?;
        }
        Ok(Value::Sequence(number))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let number = self.0.container().map_err(too_much)?;
        while let Some(key) = entries.next_key_seed(Store(self.0))? {
            let value = entries.next_value_seed(Store(self.0))?;
            self.0.extend(number, [key, value].into_iter()).map_err(too_much)?;
        }
        Ok(Value::Record(number))
    }
}
