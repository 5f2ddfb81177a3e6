//! The keys with which requests are signed.

use std::fmt;

/// The keys with which requests are signed. They are shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Says whose request it is; no secret.
    pub access_key: String,
    /// What requests are signed with.
    pub secret_key: String,
    /// What goes with keys that are good for a while only.
    pub session_token: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Credentials {
    /// The text without the secrets, should it have any.
    pub(crate) fn redacted(&self, text: &str) -> String {
        let secrets = [Some(&self.secret_key), self.session_token.as_ref()];
        let known = secrets.into_iter().flatten().filter(|secret| !secret.is_empty());
        known.fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "***"))
    }
}

/// The value of a key in a section of a file like `~/.aws/credentials`.
pub(crate) fn value_in<'a>(file: &'a str, section: &str, key: &str) -> Option<&'a str> {
    let mut is_inside = false;
    for line in file.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            is_inside = name.0.trim() == section;
        } else if is_inside
            && let Some((found, value)) = line.split_once('=')
            && found.trim() == key
        {
            return Some(value.trim());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_section_are_found() {
        let file = "# keys\n[default]\na = 1\n\n[other]\na=2\nb = x = y\n[ spaced ]\na = 3\n";
        for (section, key, value) in [
            ("default", "a", Some("1")),
            ("default", "b", None),
            ("other", "a", Some("2")),
            ("other", "b", Some("x = y")),
            ("spaced", "a", Some("3")),
            ("absent", "a", None),
        ] {
            assert_eq!(value_in(file, section, key), value, "{section}.{key}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let keys = Credentials {
            access_key: "AKID".to_owned(),
            secret_key: "hidden".to_owned(),
            session_token: Some("token".to_owned()),
        };
        assert!(!format!("{keys:?}").contains("hidden") && !format!("{keys:?}").contains("token"));
        assert_eq!(keys.redacted("a hidden b token c"), "a *** b *** c");
    }
}
