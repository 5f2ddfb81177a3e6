//! A TOML table read key by key: every value has a type and a range, every error names the key, and a key that the
//! program does not know is an error too.

use crate::units::{BytesText, DurationText, parse_bytes, parse_duration};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;
use toml::{Table, Value};

/// Why a file was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The key, with its section; empty if the file as a whole is wrong.
    pub key: String,
    /// What is wrong: the value, and what is allowed.
    pub problem: String,
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
#[derive(Debug)]
pub struct Reader {
    section: String,
    table: Table,
    known: BTreeSet<&'static str>,
}

impl Reader {
    /// Parses a whole file.
    ///
    /// # Errors
    /// The text is no TOML.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let table = text.parse::<Table>().map_err(|error| {
            let problem = format!("not a TOML file: {}", error.to_string().trim_end());
            ConfigError { key: String::new(), problem }
        })?;
        Ok(Self::new(String::new(), table))
    }

    /// Takes the sub-table `name`; an absent one is empty.
    ///
    /// # Errors
    /// The key is something else.
    pub fn section(&mut self, name: &'static str) -> Result<Self, ConfigError> {
        let table = match self.take(name) {
            None => Table::new(),
            Some(Value::Table(table)) => table,
            Some(other) => return Err(self.wrong(name, &other, "a section")),
        };
        Ok(Self::new(name.to_owned(), table))
    }

    /// Takes all tables `[[name]]`; there may be none. Errors call the first one `name.1`.
    ///
    /// # Errors
    /// The key is something else.
    pub fn sections(&mut self, name: &'static str) -> Result<Vec<Self>, ConfigError> {
        let entries = match self.take(name) {
            None => Vec::new(),
            Some(Value::Array(entries)) => entries,
            Some(other) => return Err(self.wrong(name, &other, "a list of sections")),
        };
        let section = |(index, entry)| match entry {
            Value::Table(table) => Ok(Self::new(format!("{name}.{}", index + 1), table)),
            other => Err(self.wrong(name, &other, "a section")),
        };
        entries.into_iter().enumerate().map(section).collect()
    }

    const fn new(section: String, table: Table) -> Self {
        Self { section, table, known: BTreeSet::new() }
    }

    /// An error about `key`.
    #[must_use]
    pub fn error(&self, key: &str, problem: impl Into<String>) -> ConfigError {
        ConfigError { key: self.full_name(key), problem: problem.into() }
    }

    /// An error about the whole table.
    #[must_use]
    pub fn error_of_section(&self, problem: impl Into<String>) -> ConfigError {
        ConfigError { key: self.section.clone(), problem: problem.into() }
    }

    /// Ends the table: whatever was not asked for is an error. Returns the full names of all keys.
    ///
    /// # Errors
    /// The first key that was not asked for is named, with those that were.
    pub fn finish(self) -> Result<Vec<String>, ConfigError> {
        if let Some(unknown) = self.table.keys().next() {
            let known: Vec<_> = self.known.iter().copied().collect();
            return Err(self.error(unknown, format!("unknown; known here are {}", known.join(", "))));
        }
        Ok(self.known.iter().map(|key| self.full_name(key)).collect())
    }

    /// True if the key is there, and has not been taken yet.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// A whole number in `range`.
    ///
    /// # Errors
    /// The value is something else, or out of range.
    pub fn integer(
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
    ///
    /// # Errors
    /// The key is missing, something else, or out of range.
    pub fn required_integer(
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
    ///
    /// # Errors
    /// The value is something else.
    pub fn text(&mut self, key: &'static str) -> Result<Option<String>, ConfigError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(key, &other, "a text in quotes")),
        }
    }

    /// A text that must be there.
    ///
    /// # Errors
    /// The key is missing or something else.
    pub fn required_text(&mut self, key: &'static str) -> Result<String, ConfigError> {
        self.text(key)?.ok_or_else(|| self.missing(key))
    }

    /// A list of texts, if it is there.
    ///
    /// # Errors
    /// The value is something else.
    pub fn texts(&mut self, key: &'static str) -> Result<Option<Vec<String>>, ConfigError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let wrong = || self.wrong(key, &value, "a list of texts in quotes");
        let texts = value.as_array().ok_or_else(wrong)?;
        texts
            .iter()
            .map(|text| text.as_str().map(str::to_owned).ok_or_else(wrong))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// A list of texts that must be there.
    ///
    /// # Errors
    /// The key is missing or something else.
    pub fn required_texts(&mut self, key: &'static str) -> Result<Vec<String>, ConfigError> {
        self.texts(key)?.ok_or_else(|| self.missing(key))
    }

    /// A number in `range`, with or without a fraction, if it is there.
    ///
    /// # Errors
    /// The value is something else, or out of range.
    pub fn number(
        &mut self,
        key: &'static str,
        range: RangeInclusive<f64>,
    ) -> Result<Option<f64>, ConfigError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let number = match value {
            Value::Float(number) => Some(number),
            Value::Integer(number) => Some(number as f64),
            _ => None,
        };
        let allowed = format!("a number from {} to {}", range.start(), range.end());
        let number = number.filter(|number| range.contains(number));
        number.map(Some).ok_or_else(|| self.wrong(key, &value, &allowed))
    }

    /// `true` or `false`, if it is there.
    ///
    /// # Errors
    /// The value is something else.
    pub fn boolean(&mut self, key: &'static str) -> Result<Option<bool>, ConfigError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.wrong(key, &value, "true or false"))
    }

    /// One of several names, each of which stands for a value.
    ///
    /// # Errors
    /// The value is none of the names, which are listed.
    pub fn choice<T: Copy>(
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
    ///
    /// # Errors
    /// The value is something else, or out of range.
    pub fn duration(
        &mut self,
        key: &'static str,
        range: RangeInclusive<Duration>,
        default: Duration,
    ) -> Result<Duration, ConfigError> {
        let Some(value) = self.take(key) else { return Ok(default) };
        let duration = value.as_str().and_then(parse_duration).filter(|d| range.contains(d));
        let [from, to, such] = [*range.start(), *range.end(), default].map(DurationText);
        let allowed = format!("a duration from {from} to {to}, such as \"{such}\"");
        duration.ok_or_else(|| self.wrong(key, &value, &allowed))
    }

    /// A number of bytes such as `"64MiB"`, in `range`.
    ///
    /// # Errors
    /// The value is something else, or out of range.
    pub fn bytes(
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
    ///
    /// # Errors
    /// The value is something else, or out of range.
    pub fn automatic_bytes(
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

        let text = "[[line]]\nms = 1\n[[line]]\nms = -1\nlength = 2";
        let lines = Reader::parse(text).unwrap().sections("line").unwrap();
        let [mut first, mut second] = lines.try_into().unwrap();
        assert_eq!(first.number("ms", 0.0..=5.0), Ok(Some(1.0)));
        assert_eq!(
            (first.number("s", 0.0..=5.0), first.boolean("fast"), first.texts("to")),
            (Ok(None), Ok(None), Ok(None))
        );
        let error = second.number("ms", 0.0..=5.0).unwrap_err().to_string();
        assert_eq!(error, "key 'line.2.ms': -1 is not a number from 0 to 5");
        let error = second.finish().unwrap_err().to_string();
        assert_eq!(error, "key 'line.2.length': unknown; known here are ms");

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
