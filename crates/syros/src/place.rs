//! Where a backup is, as command lines name it: a directory, or `s3://BUCKET/PREFIX`.

use std::path::{Path, PathBuf};

use clap::Args;
use syros_backup::Place;
use syros_s3::{Client, ENCRYPTIONS, Location, Patience, Settings};

const HEADING: &str = "Options for s3://BUCKET/PREFIX (keys: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials)";

/// What a command has to know of a store. Keys are in the environment or in a file, for everybody may read command lines.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = HEADING)]
pub(crate) struct PlaceOptions {
    /// Where the store is, as http://127.0.0.1:9000; by default AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or AWS itself
    #[arg(long, value_name = "URL")]
    s3_endpoint: Option<String>,
    /// The region of the bucket; by default AWS_REGION, AWS_DEFAULT_REGION, that of the profile, or us-east-1
    #[arg(long, value_name = "REGION")]
    s3_region: Option<String>,
    /// File with the certificate authorities of the store; by default AWS_CA_BUNDLE, or those of the system
    #[arg(long, value_name = "FILE")]
    s3_ca: Option<PathBuf>,
    /// Have the store encrypt what is written; by default it does what the bucket says
    #[arg(long, value_name = "HOW", value_parser = ENCRYPTIONS)]
    s3_encryption: Option<String>,
}

impl PlaceOptions {
    /// The place that a command line names. A store is not asked yet.
    pub(crate) fn open(&self, target: &Path) -> Result<Place, String> {
        let location = target.to_str().and_then(Location::parse);
        let Some(location) = location else {
            if self.is_given() {
                return Err(format!(
                    "options for stores are of no use for the directory {}: a bucket is named s3://BUCKET/PREFIX",
                    target.display()
                ));
            }
            return Ok(Place::directory(target));
        };
        let location = location.map_err(|error| error.to_string())?;
        let mut settings = Settings::from_environment().map_err(|error| format!("{location}: {error}"))?;
        settings.endpoint = self.s3_endpoint.clone().or(settings.endpoint);
        settings.region = self.s3_region.clone().unwrap_or(settings.region);
        settings.authorities = self.s3_ca.clone().or(settings.authorities);
        settings.encryption.clone_from(&self.s3_encryption);
        let client = Client::new(&settings, &location.bucket, Patience::default());
        let client = client.map_err(|error| format!("{location}: {error}"))?;
        Ok(Place::bucket(client, location))
    }

    const fn is_given(&self) -> bool {
        self.s3_endpoint.is_some()
            || self.s3_region.is_some()
            || self.s3_ca.is_some()
            || self.s3_encryption.is_some()
    }
}

/// True if this names a bucket.
pub(crate) fn is_bucket(target: &Path) -> bool {
    target.to_str().is_some_and(|text| Location::parse(text).is_some())
}

/// Tells what a store cannot do.
pub(crate) fn warn(place: &Place) {
    if let Some(warning) = place.warning() {
        syros_cli::say!("syros: {warning}");
    }
}
