//! The launcher's arguments, typed.
//!
//! `server_args=` is a Python repr in most releases and a dict in the newest; both become the same ordered map of
//! typed values. It is a module of its own because the budget, the expected stages and the reports all ask it.

mod json;
mod keys;
mod line;
mod literal;
mod release;
mod string;

pub use keys::key_range;
pub use line::parse;
pub use release::version_range;

/// A Python value as a `server_args=` line prints it.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// A whole number.
    Integer(i128),
    /// A float, in its shortest repr.
    Float(f64),
    /// A string, unescaped.
    Text(String),
    /// A list or tuple.
    List(Vec<Argument>),
    /// A dict, or the fields of a nested record; in printed order.
    Record(Vec<(String, Argument)>),
    /// Something that is no literal (`<function …>`, an enum member), as printed.
    Opaque(String),
}

/// How a line prints its arguments: the form changed with the releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// `disable_flashinfer=False, …, `: five flags, no brackets (0.1.20).
    Flags,
    /// `ServerArgs(key=value, …)`: a dataclass repr (0.2.15 to 0.5.18).
    Repr,
    /// `{'key': value, …}`: a dict repr (0.5.20 and later).
    Dict,
}

/// The arguments of one launch, in printed order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerArgs {
    entries: Vec<(String, Argument)>,
    /// The form they were printed in. `None` for arguments that no line printed.
    pub form: Option<Form>,
    /// Whether the line ended before its closing bracket: absent keys are then unknown for a second reason.
    pub cut: bool,
}

impl ServerArgs {
    /// Arguments from parsed entries.
    pub fn new(entries: Vec<(String, Argument)>, cut: bool) -> Self {
        ServerArgs { entries, form: None, cut }
    }

    /// All entries, in printed order.
    pub fn entries(&self) -> &[(String, Argument)] {
        &self.entries
    }

    /// All entries, to be redacted: keys stay as they are.
    pub(crate) fn entries_mut(&mut self) -> impl Iterator<Item = (&str, &mut Argument)> {
        self.entries.iter_mut().map(|(key, value)| (key.as_str(), value))
    }

    /// The value of `key`. `None` where the line does not hold it: unknown, not the default.
    pub fn get(&self, key: &str) -> Option<&Argument> {
        self.entries.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The whole number under `key`.
    pub fn integer(&self, key: &str) -> Option<i128> {
        match self.get(key)? {
            Argument::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// The number under `key`, whole or not.
    pub fn float(&self, key: &str) -> Option<f64> {
        match self.get(key)? {
            Argument::Integer(number) => Some(*number as f64),
            Argument::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// The flag under `key`.
    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.get(key)? {
            Argument::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    /// The string under `key`.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Argument::Text(text) => Some(text),
            _ => None,
        }
    }
}
