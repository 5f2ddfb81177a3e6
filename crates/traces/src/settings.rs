//! Whether and how a process exports traces.

use crate::endpoint::Endpoint;
use crate::ids::Sampling;

/// Most attributes that an operator may add to those of a process. They travel with every batch.
pub const ATTRIBUTES_MAX: usize = 32;

/// Longest name of a service, and longest name or value of an attribute, in bytes.
pub const TEXT_BYTES_MAX: usize = 256;

/// Whether and how a process exports traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSettings {
    /// Where the collector listens.
    pub endpoint: Endpoint,
    /// Which operations are traced.
    pub sampling: Sampling,
    /// What the process is called: `service.name`.
    pub service_name: String,
    /// What else is said of the process, by name.
    pub attributes: Vec<(String, String)>,
}

impl TraceSettings {
    /// The share of operations that are traced if nothing else is said.
    pub const SHARE_DEFAULT: f64 = 0.001;

    /// What a process is called if nothing else is said.
    pub const SERVICE_NAME_DEFAULT: &'static str = "syros";
}

/// Reads an attribute such as `deployment.environment.name=production`; `None` if it is none, or too long.
#[must_use]
pub fn parse_attribute(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let is_one = !name.is_empty() && name.len() <= TEXT_BYTES_MAX && value.len() <= TEXT_BYTES_MAX;
    is_one.then(|| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_a_name_and_a_value() {
        let parsed = |text: &str| parse_attribute(text);
        let pair = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
        assert_eq!(parsed("a.b=c"), pair("a.b", "c"));
        assert_eq!(parsed(" a = c = d "), pair("a", "c = d"));
        assert_eq!(parsed("a="), pair("a", ""));
        assert_eq!((parsed("a"), parsed("=c"), parsed("")), (None, None, None));
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        assert_eq!((parsed(&format!("{long}=c")), parsed(&format!("a={long}"))), (None, None));
        assert_eq!(parsed(&format!("a={}", &long[1..])), pair("a", &long[1..]));
    }
}
