//! Plain data as a flat store: values, and containers that hold values by number.
//!
//! Nothing in it is nested in memory, so that no depth of the input can exhaust the call stack, and a container that is
//! referred to a thousand times is stored once.

use std::borrow::Cow;

/// Entries that may be kept: an item of 16 bytes is one, a container of 40 bytes two. A snapshot with a history of 100,000
/// events and stacks of 50 frames has 7 million.
pub(super) const MOST_ENTRIES: usize = 1 << 25;
/// How deep containers may be nested. A snapshot needs 8.
pub(super) const DEEPEST: u8 = 64;
/// Entries of a dictionary that is read as a record; PyTorch's have at most 16.
const LONGEST_RECORD: usize = 64;

/// A value. Texts are ranges of the tree's bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    /// Python's `None`, JSON's `null`.
    Nothing,
    /// A truth value.
    Truth(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// A text or bytes: where it begins, and how many bytes it has.
    Text(u32, u32),
    /// A list or tuple.
    Sequence(u32),
    /// A dictionary.
    Record(u32),
}

#[derive(Debug, Default)]
struct Container {
    /// The items; of a dictionary keys and values in turn.
    items: Vec<Value>,
    /// How deep it is nested, as far as it was known when it was filled.
    depth: u8,
}

/// Why a value could not be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Excess {
    /// More than [`MOST_ENTRIES`].
    Entries,
    /// More than [`DEEPEST`].
    Depth,
}

/// The store, and the value at its root.
#[derive(Debug)]
pub(super) struct Tree {
    /// What texts are ranges of.
    pub(super) bytes: Vec<u8>,
    /// The root.
    pub(super) root: Value,
    containers: Vec<Container>,
    entries: usize,
}

impl Tree {
    /// An empty store.
    pub(super) fn new() -> Tree {
        Tree { bytes: Vec::new(), root: Value::Nothing, containers: Vec::new(), entries: 0 }
    }

    /// A new, empty container.
    pub(super) fn container(&mut self) -> Result<u32, Excess> {
        self.count(2)?;
        let number = u32::try_from(self.containers.len()).map_err(|_| Excess::Entries)?;
        self.containers.push(Container::default());
        Ok(number)
    }

    /// Adds items to a container. A number that [`Tree::container`] did not give is ignored.
    pub(super) fn extend(
        &mut self,
        container: u32,
        items: impl Iterator<Item = Value>,
    ) -> Result<(), Excess> {
        for item in items {
            self.count(1)?;
            let inner = match item {
                Value::Sequence(number) | Value::Record(number) => {
                    self.container_at(number).map(|it| it.depth)
                }
                _ => None,
            };
            let depth = inner.map_or(0, |depth| depth.saturating_add(1));
            if depth > DEEPEST {
                return Err(Excess::Depth);
            }
            if let Some(outer) = self.containers.get_mut(container as usize) {
                outer.depth = outer.depth.max(depth);
                outer.items.push(item);
            }
        }
        Ok(())
    }

    /// Counts entries against the limit.
    pub(super) fn count(&mut self, entries: usize) -> Result<(), Excess> {
        self.entries += entries;
        if self.entries > MOST_ENTRIES { Err(Excess::Entries) } else { Ok(()) }
    }

    fn container_at(&self, number: u32) -> Option<&Container> {
        self.containers.get(number as usize)
    }

    /// How many containers there are: a bound on how many different things the input can hold.
    pub(super) fn containers(&self) -> usize {
        self.containers.len()
    }

    /// The items of a list or tuple.
    pub(super) fn items(&self, value: Value) -> Option<&[Value]> {
        match value {
            Value::Sequence(number) => self.container_at(number).map(|container| container.items.as_slice()),
            _ => None,
        }
    }

    /// The value of a key in a dictionary. The last of several wins, as in Python. `None` where it is absent, or the
    /// dictionary is too long to be a record.
    pub(super) fn get(&self, record: Value, key: &str) -> Option<Value> {
        let Value::Record(number) = record else { return None };
        let items = &self.container_at(number)?.items;
        if items.len() > 2 * LONGEST_RECORD {
            return None;
        }
        let mut found = None;
        for pair in items.chunks_exact(2) {
            if let [name, value] = pair
                && self.raw(*name) == Some(key.as_bytes())
            {
                found = Some(*value);
            }
        }
        found
    }

    fn raw(&self, value: Value) -> Option<&[u8]> {
        match value {
            Value::Text(start, length) => self.bytes.get(start as usize..)?.get(..length as usize),
            _ => None,
        }
    }

    /// A text. Bytes that are no UTF-8 are replaced.
    pub(super) fn text(&self, value: Value) -> Option<Cow<'_, str>> {
        self.raw(value).map(String::from_utf8_lossy)
    }
}
