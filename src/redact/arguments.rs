//! `server_args` with types: what a key says holds for everything below it.

use super::keys::{Class, class_of};
use super::value::{is_nothing, is_private_path};
use super::{Kind, Redactor, hosts};
use crate::server_args::{Argument, ServerArgs};

impl Redactor {
    /// Redacts the arguments in place. Keys, numbers, flags and the structure stay.
    pub(super) fn arguments(&mut self, arguments: &mut ServerArgs) {
        for (key, value) in arguments.entries_mut() {
            self.argument(class_of(key), value);
        }
    }

    fn argument(&mut self, class: Option<Class>, value: &mut Argument) {
        match value {
            Argument::Text(text) | Argument::Opaque(text) => *text = self.classed(class, text),
            Argument::List(items) => items.iter_mut().for_each(|item| self.argument(class, item)),
            Argument::Record(fields) => {
                for (key, value) in fields {
                    self.argument(inherited(class, key), value);
                }
            }
            Argument::None | Argument::Bool(_) | Argument::Integer(_) | Argument::Float(_) => {}
        }
    }

    fn classed(&mut self, class: Option<Class>, value: &str) -> String {
        if value.is_empty() || self.is_pseudonym(value) {
            return value.to_string();
        }
        match class {
            Some(Class::Secret | Class::SecretIfQuoted) if !is_nothing(value) => {
                self.pseudonym(Kind::Secret, value)
            }
            Some(Class::User) if !is_nothing(value) => self.pseudonym(Kind::User, value),
            Some(Class::Gpu) if value.len() >= 6 => self.pseudonym(Kind::Gpu, value),
            Some(Class::Host) => self.host_in(value),
            Some(Class::Model) if is_private_path(value) => {
                let path = self.pseudonym(Kind::Path, value);
                self.text(&path).into_owned()
            }
            _ => self.text(value).into_owned(),
        }
    }

    /// A host, a `host:port` or a URL.
    fn host_in(&mut self, value: &str) -> String {
        let range = hosts::named_in(value).unwrap_or(0..0);
        let (Some(before), Some(host), Some(after)) =
            (value.get(..range.start), value.get(range.clone()), value.get(range.end..))
        else {
            return self.text(value).into_owned();
        };
        if host.is_empty() || self.is_pseudonym(host) {
            return self.text(value).into_owned();
        }
        let host = self.pseudonym(Kind::Host, host);
        self.text(&format!("{before}{host}{after}")).into_owned()
    }

    /// Remembers what the arguments name, so that it is found in every other line.
    pub(super) fn learn_arguments(&mut self, arguments: &ServerArgs) {
        for (key, value) in arguments.entries() {
            self.learn_argument(class_of(key), value);
        }
    }

    fn learn_argument(&mut self, class: Option<Class>, value: &Argument) {
        match (value, class) {
            (Argument::Text(text) | Argument::Opaque(text), Some(class)) => match class {
                Class::Secret | Class::SecretIfQuoted => self.learn(Kind::Secret, text),
                Class::Host => {
                    let host = hosts::named_in(text).and_then(|range| text.get(range));
                    host.into_iter().for_each(|host| self.learn(Kind::Host, host));
                }
                Class::Model => self.learn(Kind::Path, text.trim_end_matches(['/', '\\'])),
                Class::User | Class::Gpu => {}
            },
            (Argument::List(items), _) => items.iter().for_each(|item| self.learn_argument(class, item)),
            (Argument::Record(fields), _) => {
                for (key, value) in fields {
                    self.learn_argument(inherited(class, key), value);
                }
            }
            _ => {}
        }
    }
}

/// What is below a secret is secret; what is below anything else is what its own key says, else what is above.
fn inherited(above: Option<Class>, key: &str) -> Option<Class> {
    match above {
        Some(Class::Secret | Class::SecretIfQuoted) => above,
        _ => class_of(key).or(above),
    }
}
