//! What tests of all types have in common.

use syros_values::{InvalidValue, Value};

pub(crate) fn encoded(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    value.put(&mut out);
    out
}

pub(crate) fn decoded(mut bytes: &[u8]) -> Result<Value, InvalidValue> {
    let value = Value::take(&mut bytes)?;
    assert!(bytes.is_empty(), "{} bytes left", bytes.len());
    Ok(value)
}
