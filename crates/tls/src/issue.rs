//! Certificates for a cluster that has no authority yet.

use crate::identity::Identity;
use core::fmt;
use rcgen::PublicKeyData;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use std::time::SystemTime;
use time::{Duration, OffsetDateTime};
use x509_parser::pem::parse_x509_pem;

/// For how many days a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidityDays(pub u32);

impl ValidityDays {
    /// That of an authority by default: ten years.
    pub const AUTHORITY: Self = Self(3650);

    /// That of anybody else by default: a little more than a year.
    pub const HOLDER: Self = Self(398);
}

/// Why there is no certificate.
#[derive(Debug)]
pub struct IssueError(String);

impl fmt::Display for IssueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for IssueError {}

impl From<rcgen::Error> for IssueError {
    fn from(error: rcgen::Error) -> Self {
        Self(error.to_string())
    }
}

/// A certificate and its private key, in PEM.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// The key. Nobody else is to see it.
    pub key: String,
}

/// A certificate authority, with its key.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    days_left: ValidityDays,
}

impl Authority {
    /// Makes an authority of this name. Gives back what its files are to have.
    ///
    /// # Errors
    /// What the name has that a certificate cannot.
    pub fn make(name: &str, validity: ValidityDays) -> Result<(Self, Issued), IssueError> {
        let key = KeyPair::generate()?;
        let mut params = params(name, validity)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key)?.pem();
        let issued = Issued { certificate, key: key.serialize_pem() };
        Ok((Self { issuer: Issuer::new(params, key), days_left: validity }, issued))
    }

    /// The authority with this certificate and key, in PEM.
    ///
    /// # Errors
    /// They are none.
    pub fn read(certificate: &str, key: &str) -> Result<Self, IssueError> {
        let key = KeyPair::from_pem(key)?;
        let wrong = |problem: &str| IssueError(problem.to_owned());
        let (_, pem) =
            parse_x509_pem(certificate.as_bytes()).map_err(|error| IssueError(error.to_string()))?;
        let parsed = pem.parse_x509().map_err(|error| IssueError(error.to_string()))?;
        if !parsed.is_ca() {
            return Err(wrong("its certificate is not that of an authority"));
        }
        if parsed.public_key().raw != key.subject_public_key_info() {
            return Err(wrong("its key does not belong to its certificate"));
        }
        if !parsed.validity().is_valid() {
            return Err(wrong("its certificate is no longer valid, or not yet"));
        }
        let days_left = parsed.validity().time_to_expiration().map_or(0, Duration::whole_days);
        let days_left = ValidityDays(u32::try_from(days_left).unwrap_or(u32::MAX));
        Ok(Self { issuer: Issuer::from_ca_cert_pem(certificate, key)?, days_left })
    }

    /// A certificate for somebody in a cluster, who is reached under these host names and IP addresses, if anybody connects.
    ///
    /// # Errors
    /// What a name has that a certificate cannot.
    pub fn issue(
        &self,
        identity: Identity,
        hosts: &[String],
        validity: ValidityDays,
    ) -> Result<Issued, IssueError> {
        let ValidityDays(left) = self.days_left;
        if validity.0 > left {
            let problem =
                format!("{} days are more than the authority itself has left, which is {left}", validity.0);
            return Err(IssueError(problem));
        }
        let key = KeyPair::generate()?;
        let mut params = params(&format!("Syros {}", identity.role), validity)?;
        params.subject_alt_names = CertificateParams::new(hosts)?.subject_alt_names;
        params.subject_alt_names.push(SanType::URI(identity.to_string().try_into()?));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // A node is at both ends of connections.
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Issued { certificate, key: key.serialize_pem() })
    }
}

fn params(name: &str, ValidityDays(days): ValidityDays) -> Result<CertificateParams, IssueError> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, name);
    let now = OffsetDateTime::from(SystemTime::now());
    // Other clocks may be behind.
    params.not_before = now - Duration::hours(1);
    params.not_after = now + Duration::days(i64::from(days));
    Ok(params)
}
