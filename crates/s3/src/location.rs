//! Where objects are: `s3://BUCKET/PREFIX`.

use crate::error::SettingsError;
use std::fmt;

/// Longest key of an object, in bytes, as all stores have it.
const KEY_BYTES_MAX: usize = 1024;

/// Left of a key for the name behind the prefix, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// A bucket, and what the keys of the objects in question begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The bucket.
    pub bucket: String,
    /// What stands before the names of objects: empty, or it ends with a slash.
    pub prefix: String,
}

impl Location {
    /// The location that a text names; `None` if it does not begin with `s3://`.
    ///
    /// # Errors
    /// [`SettingsError`] says what is wrong with the bucket or the prefix.
    pub fn parse(text: &str) -> Option<Result<Self, SettingsError>> {
        let rest = text.strip_prefix("s3://")?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        Some(Self::new(text, bucket, prefix.strip_suffix('/').unwrap_or(prefix)))
    }

    fn new(text: &str, bucket: &str, prefix: &str) -> Result<Self, SettingsError> {
        let refuse = |problem: String| Err(SettingsError::new(format!("{text:?}: {problem}")));
        let is_bucket = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if !(3..=63).contains(&bucket.len()) || !bucket.chars().all(is_bucket) {
            return refuse(format!(
                "the bucket {bucket:?} is no name of one: 3 to 63 letters, digits, '.', '-' or '_' (s3://BUCKET/PREFIX)"
            ));
        }
        let most = KEY_BYTES_MAX - NAME_BYTES_MAX;
        if prefix.len() > most {
            return refuse(format!("the prefix has {} bytes, and {most} are possible", prefix.len()));
        }
        if prefix.chars().any(char::is_control) {
            return refuse("the prefix has control characters".to_owned());
        }
        // Clients and proxies take such parts out of addresses, and the signature covers them.
        if !prefix.is_empty() && prefix.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return refuse("a part of the prefix is empty, '.' or '..'".to_owned());
        }
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        Ok(Self { bucket: bucket.to_owned(), prefix })
    }

    /// The key of the object with this name.
    #[must_use]
    pub fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bucket, prefix } = self;
        write!(f, "s3://{}", format!("{bucket}/{prefix}").trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_read_and_impossible_ones_refused() {
        for (text, bucket, prefix, shown) in [
            ("s3://bucket", "bucket", "", "s3://bucket"),
            ("s3://bucket/", "bucket", "", "s3://bucket"),
            ("s3://my.bucket/a", "my.bucket", "a/", "s3://my.bucket/a"),
            ("s3://bucket/a/b c/", "bucket", "a/b c/", "s3://bucket/a/b c"),
        ] {
            let found = Location::parse(text).expect("it begins with s3://").expect("it is a location");
            assert_eq!(
                (&found.bucket[..], &found.prefix[..], &found.to_string()[..]),
                (bucket, prefix, shown)
            );
            assert_eq!(found.key("manifest"), format!("{prefix}manifest"));
        }
        let long = format!("s3://bucket/{}", "x".repeat(1000));
        for text in [
            "s3://",
            "s3://b/x",
            "s3://bu cket/x",
            "s3://bucket//x",
            "s3://bucket/../x",
            "s3://bucket/a\nb",
            &long,
        ] {
            assert!(Location::parse(text).expect("it begins with s3://").is_err(), "{text}");
        }
        assert!(Location::parse("/backups/today").is_none());
    }
}
