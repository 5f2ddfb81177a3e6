//! A TOML table read key by key: every value has a type, a range and a default, every error names
//! the key, and a key that nobody asked for is an error too.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use syros_cli::{BytesText, parse_bytes, parse_duration};
use toml::{Table, Value};

/// Why a configuration file was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigError {
    /// The key, with its section; empty if the file as a whole is wrong.
    pub(crate) key: String,
    /// What is wrong: the value, and what is allowed.
    pub(crate) problem: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            return f.write_str(&self.problem);
        }
        write!(f, "key '{}': {}", self.key, self.problem)
    }
}

impl std::error::Error for ConfigError {}

/// One table of the file, and the keys that were asked for.
pub(crate) struct Reader {
    section: &'static str,
    table: Table,
    known: BTreeSet<&'static str>,
}

impl Reader {
    /// Parses a whole file.
    pub(crate) fn parse(text: &str) -> Result<Self, ConfigError> {
        let table = text.parse::<Table>().map_err(|error| {
            let problem = format!("not a TOML file: {}", error.to_string().trim_end());
            ConfigError { key: String::new(), problem }
        })?;
        Ok(Self { section: "", table, known: BTreeSet::new() })
    }

    /// Takes the sub-table `name`; an absent one is empty.
    pub(crate) fn section(&mut self, name: &'static str) -> Result<Self, ConfigError> {
        let table = match self.take(name) {
            None => Table::new(),
            Some(Value::Table(table)) => table,
            Some(other) => return Err(self.wrong(name, &other, "a section")),
        };
        Ok(Self { section: name, table, known: BTreeSet::new() })
    }

    /// An error about `key`.
    pub(crate) fn error(&self, key: &str, problem: impl Into<String>) -> ConfigError {
        ConfigError { key: self.full_name(key), problem: problem.into() }
    }

    /// Ends the table: whatever was not asked for is an error. Returns the full names of all keys.
    pub(crate) fn finish(self) -> Result<Vec<String>, ConfigError> {
        if let Some(unknown) = self.table.keys().next() {
            let known: Vec<_> = self.known.iter().copied().collect();
            return Err(self.error(unknown, format!("unknown; known here are {}", known.join(", "))));
        }
        Ok(self.known.iter().map(|key| self.full_name(key)).collect())
    }

    /// A whole number in `range`.
    pub(crate) fn integer(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
        default: u64,
    ) -> Result<u64, ConfigError> {
        match self.take(key) {
            None => Ok(default),
            Some(value) => self.check_integer(key, &value, &range),
        }
    }

    /// A whole number in `range` that must be there.
    pub(crate) fn required_integer(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<u64, ConfigError> {
        let value = self.take(key).ok_or_else(|| self.missing(key))?;
        self.check_integer(key, &value, &range)
    }

    fn check_integer(
        &self,
        key: &str,
        value: &Value,
        range: &RangeInclusive<u64>,
    ) -> Result<u64, ConfigError> {
        let (low, high) = (range.start(), range.end());
        let allowed = format!("a whole number from {low} to {high}");
        let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
        number.filter(|number| range.contains(number)).ok_or_else(|| self.wrong(key, value, &allowed))
    }

    /// A text, if it is there.
    pub(crate) fn text(&mut self, key: &'static str) -> Result<Option<String>, ConfigError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(key, &other, "a text in quotes")),
        }
    }

    /// A text that must be there.
    pub(crate) fn required_text(&mut self, key: &'static str) -> Result<String, ConfigError> {
        self.text(key)?.ok_or_else(|| self.missing(key))
    }

    /// A list of texts that must be there.
    pub(crate) fn required_texts(&mut self, key: &'static str) -> Result<Vec<String>, ConfigError> {
        let value = self.take(key).ok_or_else(|| self.missing(key))?;
        let wrong = || self.wrong(key, &value, "a list of texts in quotes");
        let texts = value.as_array().ok_or_else(wrong)?;
        texts.iter().map(|text| text.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
    }

    /// One of several names, each of which stands for a value.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
        default: T,
    ) -> Result<T, ConfigError> {
        let Some(value) = self.take(key) else { return Ok(default) };
        let chosen = choices.iter().find(|(name, _)| value.as_str() == Some(name));
        let names = || choices.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>();
        chosen
            .map(|(_, choice)| *choice)
            .ok_or_else(|| self.wrong(key, &value, &format!("one of {}", names().join(", "))))
    }

    /// A duration such as `"25ms"`, in `range`.
    pub(crate) fn duration(
        &mut self,
        key: &'static str,
        range: RangeInclusive<Duration>,
        default: Duration,
    ) -> Result<Duration, ConfigError> {
        let Some(value) = self.take(key) else { return Ok(default) };
        let duration = value.as_str().and_then(parse_duration).filter(|d| range.contains(d));
        let allowed =
            format!("a duration from {:?} to {:?}, such as \"{default:?}\"", range.start(), range.end());
        duration.ok_or_else(|| self.wrong(key, &value, &allowed))
    }

    /// A number of bytes such as `"64MiB"`, in `range`.
    pub(crate) fn bytes(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
        default: u64,
    ) -> Result<u64, ConfigError> {
        let Some(value) = self.take(key) else { return Ok(default) };
        let bytes = match &value {
            Value::String(text) => parse_bytes(text),
            Value::Integer(bytes) => u64::try_from(*bytes).ok(),
            _ => None,
        };
        let allowed = format!(
            "a size from {} to {}, such as \"{}\"",
            BytesText(*range.start()),
            BytesText(*range.end()),
            BytesText(default)
        );
        bytes.filter(|bytes| range.contains(bytes)).ok_or_else(|| self.wrong(key, &value, &allowed))
    }

    /// A size in `range`, or `"auto"`, the default: `None`.
    pub(crate) fn automatic_bytes(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, ConfigError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let bytes = match &value {
            Value::String(text) if text == "auto" => return Ok(None),
            Value::String(text) => parse_bytes(text),
            Value::Integer(bytes) => u64::try_from(*bytes).ok(),
            _ => None,
        };
        let (least, most) = (BytesText(*range.start()), BytesText(*range.end()));
        let allowed = format!("\"auto\" or a size from {least} to {most}, such as \"256MiB\"");
        match bytes.filter(|bytes| range.contains(bytes)) {
            None => Err(self.wrong(key, &value, &allowed)),
            bytes => Ok(bytes),
        }
    }

    fn take(&mut self, key: &'static str) -> Option<Value> {
        self.known.insert(key);
        self.table.remove(key)
    }

    fn full_name(&self, key: &str) -> String {
        if self.section.is_empty() { key.to_owned() } else { format!("{}.{key}", self.section) }
    }

    fn missing(&self, key: &str) -> ConfigError {
        self.error(key, "missing, and it has no default")
    }

    fn wrong(&self, key: &str, value: &Value, allowed: &str) -> ConfigError {
        let mut shown = value.to_string();
        if shown.len() > 100 {
            shown = shown.chars().take(100).collect::<String>() + "...";
        }
        self.error(key, format!("{shown} is not {allowed}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_and_sections_are_named() {
        let mut reader = Reader::parse("[limits]\nconections = 5").unwrap();
        let mut limits = reader.section("limits").unwrap();
        assert_eq!(limits.integer("connections", 1..=10, 7), Ok(7));
        let error = limits.finish().unwrap_err().to_string();
        assert_eq!(error, "key 'limits.conections': unknown; known here are connections");
        assert_eq!(reader.finish(), Ok(vec!["limits".to_owned()]));

        let mut reader = Reader::parse("limits = 3").unwrap();
        let error = reader.section("limits").map(|_| ()).unwrap_err().to_string();
        assert_eq!(error, "key 'limits': 3 is not a section");
    }

    #[test]
    fn a_file_that_is_no_toml_is_named_with_its_line() {
        let error = Reader::parse("a = 1\nb ==").map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
    }
}
