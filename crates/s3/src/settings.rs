//! What a client has to know, from where programs for S3 look for it.

use crate::credentials::{Credentials, value_in};
use crate::error::SettingsError;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// The region where none is said: that of most stores that are not AWS, and the oldest one of AWS.
const REGION: &str = "us-east-1";

/// Largest file with keys or settings that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What a client has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where the store is; `None`: at AWS, in the region.
    pub endpoint: Option<String>,
    /// The region.
    pub region: String,
    /// What requests are signed with.
    pub credentials: Credentials,
    /// The only certificate authorities that are believed; `None`: those of the system.
    pub authorities: Option<PathBuf>,
    /// What objects are encrypted with at the store, as `AES256`; `None`: what the bucket says.
    pub encryption: Option<String>,
}

/// Where the settings come from: the environment and files.
pub(crate) trait Surroundings {
    fn variable(&self, name: &str) -> Option<String>;
    fn file(&self, path: &str) -> Result<Option<String>, String>;
}

/// Those of this process.
struct Process;

impl Surroundings for Process {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn file(&self, path: &str) -> Result<Option<String>, String> {
        if std::fs::metadata(path).is_err() {
            return Ok(None);
        }
        let mut text = String::new();
        // One more than it may have shows that it is too long. The length that the system tells of a device is 0.
        let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text));
        match read {
            Err(error) => Err(error.to_string()),
            Ok(length) if length as u64 > FILE_BYTES_MAX => {
                Err(format!("it has more than {FILE_BYTES_MAX} bytes, and that is the most that is read"))
            }
            Ok(_) => Ok(Some(text)),
        }
    }
}

impl Settings {
    /// From `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` (and `AWS_SESSION_TOKEN`), or else from the section
    /// `AWS_PROFILE` (`default`) of `AWS_SHARED_CREDENTIALS_FILE` (`~/.aws/credentials`); `AWS_REGION` or
    /// `AWS_DEFAULT_REGION`, or `region` of that profile in `AWS_CONFIG_FILE` (`~/.aws/config`);
    /// `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`; `AWS_CA_BUNDLE`.
    ///
    /// # Errors
    /// [`SettingsError`] says which key is missing, or which file cannot be read. It has no secret in it.
    pub fn from_environment() -> Result<Self, SettingsError> {
        Self::from_surroundings(&Process)
    }

    pub(crate) fn from_surroundings(from: &impl Surroundings) -> Result<Self, SettingsError> {
        // Scripts set variables to nothing where they have no value.
        let variable = |name: &str| from.variable(name).filter(|value| !value.is_empty());
        let file = |name: &str, usual: &str| {
            let path = variable(name).or_else(|| variable("HOME").map(|home| format!("{home}/.aws/{usual}")));
            let Some(path) = path else { return Ok(None) };
            let failed = |problem: String| SettingsError::new(format!("{path}: {problem}"));
            Ok(from.file(&path).map_err(failed)?.map(|text| (path, text)))
        };
        let profile = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        let named = variable("AWS_ACCESS_KEY_ID").zip(variable("AWS_SECRET_ACCESS_KEY"));
        let credentials = match named {
            Some((access_key, secret_key)) => {
                Credentials { access_key, secret_key, session_token: variable("AWS_SESSION_TOKEN") }
            }
            None => {
                let found = file("AWS_SHARED_CREDENTIALS_FILE", "credentials")?;
                let value = |key: &str| {
                    let (_, text) = found.as_ref()?;
                    value_in(text, &profile, key).filter(|value| !value.is_empty()).map(str::to_owned)
                };
                let keys = value("aws_access_key_id").zip(value("aws_secret_access_key"));
                let (access_key, secret_key) = keys.ok_or_else(|| no_keys(found.as_ref(), &profile))?;
                Credentials { access_key, secret_key, session_token: value("aws_session_token") }
            }
        };
        let all = [
            Some(&credentials.access_key),
            Some(&credentials.secret_key),
            credentials.session_token.as_ref(),
        ];
        if all.into_iter().flatten().any(|key| !key.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err(SettingsError::new(
                "the access key, the secret key or the session token has blanks or other characters that no key has: is there a \
                 line break at its end?",
            ));
        }
        let region = match variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION")) {
            Some(region) => Some(region),
            None => file("AWS_CONFIG_FILE", "config")?.and_then(|(_, text)| {
                let section =
                    if profile == "default" { profile.clone() } else { format!("profile {profile}") };
                value_in(&text, &section, "region").map(str::to_owned)
            }),
        };
        Ok(Self {
            endpoint: variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL")),
            region: region.unwrap_or_else(|| REGION.to_owned()),
            credentials,
            authorities: variable("AWS_CA_BUNDLE").map(PathBuf::from),
            encryption: None,
        })
    }
}

fn no_keys(found: Option<&(String, String)>, profile: &str) -> SettingsError {
    let wanted = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
    SettingsError::new(match found {
        Some((path, _)) => format!(
            "there are no keys for the store: {wanted}, or put aws_access_key_id and aws_secret_access_key into section [{profile}] \
             of {path}"
        ),
        None => format!("there are no keys for the store: {wanted}, or write ~/.aws/credentials"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    struct Fixed {
        variables: BTreeMap<&'static str, &'static str>,
        files: BTreeMap<&'static str, &'static str>,
    }

    impl Surroundings for Fixed {
        fn variable(&self, name: &str) -> Option<String> {
            self.variables.get(name).map(|value| (*value).to_owned())
        }

        fn file(&self, path: &str) -> Result<Option<String>, String> {
            Ok(self.files.get(path).map(|text| (*text).to_owned()))
        }
    }

    fn read(
        variables: &[(&'static str, &'static str)],
        files: &[(&'static str, &'static str)],
    ) -> Result<Settings, SettingsError> {
        let (variables, files) = (variables.iter().copied().collect(), files.iter().copied().collect());
        Settings::from_surroundings(&Fixed { variables, files })
    }

    #[test]
    fn settings_come_from_the_environment_first() {
        let file = (
            "/h/.aws/credentials",
            "[default]\naws_access_key_id=A\naws_secret_access_key=S\n[p]\naws_access_key_id = B\naws_secret_access_key = T\naws_session_token = U\n",
        );
        let config = ("/h/.aws/config", "[default]\nregion=r1\n[profile p]\nregion = r2\n");
        let found = read(&[("HOME", "/h")], &[file, config]).expect("there are keys");
        assert_eq!((&found.credentials.access_key[..], &found.region[..], found.endpoint), ("A", "r1", None));
        let found = read(&[("HOME", "/h"), ("AWS_PROFILE", "p")], &[file, config]).expect("there are keys");
        assert_eq!((&found.credentials.secret_key[..], &found.region[..]), ("T", "r2"));
        assert_eq!(found.credentials.session_token.as_deref(), Some("U"));
        let named = [
            ("HOME", "/h"),
            ("AWS_ACCESS_KEY_ID", "C"),
            ("AWS_SECRET_ACCESS_KEY", "V"),
            ("AWS_SESSION_TOKEN", ""),
            ("AWS_DEFAULT_REGION", "r3"),
            ("AWS_ENDPOINT_URL", "http://a"),
            ("AWS_ENDPOINT_URL_S3", "http://b"),
            ("AWS_CA_BUNDLE", "/ca"),
        ];
        let found = read(&named, &[file, config]).expect("there are keys");
        assert_eq!((&found.credentials.access_key[..], &found.region[..]), ("C", "r3"));
        assert_eq!((found.credentials.session_token, found.endpoint.as_deref()), (None, Some("http://b")));
        assert_eq!(found.authorities, Some(PathBuf::from("/ca")));
        let found = read(&named[1..3], &[]).expect("there are keys");
        assert_eq!(found.region, REGION);
    }

    #[test]
    fn what_is_missing_is_named_and_no_secret_is() {
        let told = read(&[], &[]).expect_err("there are no keys").to_string();
        assert!(told.contains("AWS_ACCESS_KEY_ID") && told.contains("~/.aws/credentials"), "{told}");
        let file = ("/h/.aws/credentials", "[default]\naws_secret_access_key=hidden\n");
        let told = read(&[("HOME", "/h")], &[file]).expect_err("a key is missing").to_string();
        assert!(told.contains("[default] of /h/.aws/credentials") && !told.contains("hidden"), "{told}");
        let keys = [("AWS_ACCESS_KEY_ID", "A"), ("AWS_SECRET_ACCESS_KEY", "hidden\n")];
        let told = read(&keys, &[]).expect_err("it has a line break").to_string();
        assert!(told.contains("line break") && !told.contains("hidden"), "{told}");
    }

    #[test]
    fn a_file_without_end_is_refused() {
        let problem = Process.file("/dev/zero").unwrap_err();
        assert_eq!(problem, "it has more than 1048576 bytes, and that is the most that is read");
        assert_eq!(Process.file("/dev/null/credentials"), Ok(None));
    }
}
