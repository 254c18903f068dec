//! Arguments as JSON, for the report: typed and in printed order.

use super::{Argument, ServerArgs};
use serde_json::{Map, Number, Value};

impl ServerArgs {
    /// The arguments as a JSON object, in printed order. Secrets are in it: [`crate::redact`] takes them out first.
    pub fn to_json(&self) -> Value {
        object(&self.entries)
    }
}

impl Argument {
    /// The value as JSON. What JSON cannot hold (something that is no literal, an integer beyond 64 bits) is a string.
    pub fn to_json(&self) -> Value {
        match self {
            Argument::None => Value::Null,
            Argument::Bool(flag) => Value::Bool(*flag),
            Argument::Integer(number) => {
                Number::from_i128(*number).map_or_else(|| Value::String(number.to_string()), Value::Number)
            }
            Argument::Float(number) => {
                Number::from_f64(*number).map_or_else(|| Value::String(number.to_string()), Value::Number)
            }
            Argument::Text(text) | Argument::Opaque(text) => Value::String(text.clone()),
            Argument::List(items) => Value::Array(items.iter().map(Argument::to_json).collect()),
            Argument::Record(fields) => object(fields),
        }
    }
}

fn object(fields: &[(String, Argument)]) -> Value {
    Value::Object(fields.iter().map(|(name, value)| (name.clone(), value.to_json())).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use crate::server_args::parse;

    #[test]
    fn values_keep_their_types_and_order() {
        let line = "ServerArgs(z=None, y=True, x=3, w=0.85, v='a', u=[1, 'b'], t=P(s=1), r=<f at 0x1>, \
                    q=99999999999999999999)";
        assert_eq!(
            parse(line).unwrap().to_json().to_string(),
            r#"{"z":null,"y":true,"x":3,"w":0.85,"v":"a","u":[1,"b"],"t":{"s":1},"r":"<f at 0x1>","q":"99999999999999999999"}"#
        );
    }
}
