//! What a store, or the way to it, refuses.

use std::fmt;

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError(String);

impl SettingsError {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self(problem.into())
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingsError {}

/// Why a request was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Error {
    /// The method, bucket and key.
    pub(crate) what: String,
    pub(crate) problem: Problem,
    /// How often it was tried.
    pub(crate) attempts: u32,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The store refuses.
    Refused {
        status: u16,
        /// The store's name for it, empty if it says none.
        code: String,
        message: String,
        /// Where the store says that the bucket is.
        region: Option<String>,
    },
    /// The store cannot be reached, or a connection broke or stood still.
    Transport {
        problem: String,
        /// It may be otherwise the next time.
        may_pass: bool,
    },
    /// The store answers something that is no answer.
    Answer(String),
    /// Nobody wants it any more.
    Cancelled,
}

impl Problem {
    /// It may be otherwise the next time.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Refused { status, code, .. } => {
                matches!(status, 429 | 500 | 502 | 503 | 504)
                    || matches!(
                        &code[..],
                        "RequestTimeout" | "ConditionalRequestConflict" | "OperationAborted"
                    )
            }
            Self::Transport { may_pass, .. } => *may_pass,
            Self::Answer(_) | Self::Cancelled => false,
        }
    }

    /// What to do about it, if that is known.
    fn advice(&self) -> Option<String> {
        let Self::Refused { status, code, region, .. } = self else { return None };
        if let Some(region) = region.as_ref().filter(|_| matches!(status, 301 | 307 | 400)) {
            return Some(format!(
                "the bucket is in region {region}: set AWS_REGION={region}, or give --s3-region {region}"
            ));
        }
        let advice = match &code[..] {
            "NoSuchBucket" => "make the bucket, or check its name and --s3-endpoint",
            "InvalidAccessKeyId" => "the store does not know AWS_ACCESS_KEY_ID: check it, and --s3-endpoint",
            "SignatureDoesNotMatch" => "check AWS_SECRET_ACCESS_KEY",
            "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired" => {
                "AWS_SESSION_TOKEN is not valid, or not any more: get new keys"
            }
            "RequestTimeTooSkewed" => "the clock of this machine is wrong: set it",
            "PermanentRedirect" | "TemporaryRedirect" | "AuthorizationHeaderMalformed" => {
                "the bucket is in another region: set AWS_REGION, or give --s3-region"
            }
            "SlowDown" | "ServiceUnavailable" => "the store is overloaded: try later",
            "ServerSideEncryptionConfigurationNotFoundError" | "InvalidEncryptionAlgorithmError" => {
                "the store cannot encrypt so: check --s3-encryption"
            }
            _ if *status == 403 => {
                "the key needs s3:ListBucket on the bucket, and s3:GetObject, s3:PutObject and s3:DeleteObject on what is in it"
            }
            _ if matches!(status, 301 | 302 | 307 | 308) => {
                "the store sends elsewhere, which is not followed: check --s3-endpoint and --s3-region"
            }
            _ => return None,
        };
        Some(advice.to_owned())
    }
}

impl S3Error {
    /// The status of the answer, if the store has refused.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        match &self.problem {
            Problem::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// What the store calls it, as `NoSuchBucket`; empty if it has no name for it.
    #[must_use]
    pub fn code(&self) -> &str {
        match &self.problem {
            Problem::Refused { code, .. } => code,
            _ => "",
        }
    }
}

impl fmt::Display for S3Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.what)?;
        match &self.problem {
            Problem::Refused { status, code, message, .. } => {
                let name = if code.is_empty() { "the store gives no reason" } else { code };
                write!(f, "{status} {name}")?;
                if !message.is_empty() {
                    write!(f, " ({message})")?;
                }
            }
            Problem::Transport { problem, .. } | Problem::Answer(problem) => f.write_str(problem)?,
            Problem::Cancelled => f.write_str("given up")?,
        }
        if self.attempts > 1 {
            write!(f, ", tried {} times", self.attempts)?;
        }
        self.problem.advice().map_or(Ok(()), |advice| write!(f, ": {advice}"))
    }
}

impl std::error::Error for S3Error {}
