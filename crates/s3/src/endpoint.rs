//! Where a store is, and the addresses of what is in it.

use crate::error::SettingsError;

/// What AWS calls its own hosts.
const AWS_HOSTS: [&str; 2] = [".amazonaws.com", ".amazonaws.com.cn"];

/// Where the bucket is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) is_tls: bool,
    /// Host, and port if it is not the usual one: what the header `host` says.
    pub(crate) authority: String,
    /// What stands before a key: a slash, and the bucket if the host does not name it.
    base: String,
}

impl Endpoint {
    /// The endpoint of a bucket, at AWS if nothing else is said. AWS wants the bucket in the name of the host; other stores
    /// need not have names for their buckets. A bucket with a dot in its name has no certificate at AWS, and stands in the path.
    pub(crate) fn new(url: Option<&str>, region: &str, bucket: &str) -> Result<Self, SettingsError> {
        let Some(url) = url else {
            let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
            return Ok(Self::of_host(true, format!("s3.{region}.{domain}"), bucket, true));
        };
        let refuse = |problem: &str| Err(SettingsError::new(format!("the endpoint {url:?} {problem}")));
        let (is_tls, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return refuse("begins with neither https:// nor http://"),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains('@') {
            // What is before it is not repeated: it may be a password.
            return Err(SettingsError::new("the endpoint has a user in it: keys come from the environment"));
        }
        let is_usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
        if authority.is_empty() || !authority.chars().all(is_usual) {
            return refuse("is not https://HOST[:PORT] or http://HOST[:PORT]");
        }
        let usual = if is_tls { ":443" } else { ":80" };
        let authority = authority.strip_suffix(usual).unwrap_or(authority).to_ascii_lowercase();
        let is_aws = AWS_HOSTS.iter().any(|host| authority.ends_with(host));
        Ok(Self::of_host(is_tls, authority, bucket, is_aws))
    }

    fn of_host(is_tls: bool, host: String, bucket: &str, is_aws: bool) -> Self {
        if is_aws && host.starts_with(&format!("{bucket}.")) {
            return Self { is_tls, authority: host, base: "/".to_owned() };
        }
        if is_aws && !bucket.contains(['.', '_']) {
            return Self { is_tls, authority: format!("{bucket}.{host}"), base: "/".to_owned() };
        }
        Self { is_tls, authority: host, base: format!("/{bucket}/") }
    }

    /// The path of an object, or of the bucket without a key, as it is sent and signed.
    pub(crate) fn path(&self, key: &str) -> String {
        let path = format!("{}{}", self.base, encoded(key, true));
        if key.is_empty() && path.len() > 1 { path.trim_end_matches('/').to_owned() } else { path }
    }

    /// The address of a path, with a query if there is one.
    pub(crate) fn url(&self, path: &str, query: &str) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{scheme}://{}{path}{mark}{query}", self.authority)
    }

    /// True if the store is on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.authority.rsplit_once(':').map_or(&self.authority[..], |(host, _)| host);
        host == "localhost" || host == "[::1]" || host.starts_with("127.")
    }
}

/// Every byte but the unreserved ones (and slashes in paths) as `%XX`.
pub(crate) fn encoded(text: &str, is_path: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || (is_path && byte == b'/') {
            out.push(char::from(byte));
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    out
}

/// A query, sorted as signatures want it.
pub(crate) fn query(pairs: &[(&str, &str)]) -> String {
    let mut pairs: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", encoded(name, false), encoded(value, false)))
        .collect();
    pairs.sort();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bucket_is_in_the_host_at_aws_and_in_the_path_elsewhere() {
        for (url, region, bucket, address) in [
            (None, "eu-central-1", "b1c", "https://b1c.s3.eu-central-1.amazonaws.com/a/b%20c"),
            (None, "cn-north-1", "b1c", "https://b1c.s3.cn-north-1.amazonaws.com.cn/a/b%20c"),
            (None, "us-east-1", "b.c", "https://s3.us-east-1.amazonaws.com/b.c/a/b%20c"),
            (Some("http://127.0.0.1:9000/"), "x", "b1c", "http://127.0.0.1:9000/b1c/a/b%20c"),
            (Some("http://[::1]:9000"), "x", "b1c", "http://[::1]:9000/b1c/a/b%20c"),
            (Some("https://Minio.local:443"), "x", "b1c", "https://minio.local/b1c/a/b%20c"),
            (
                Some("https://s3.us-west-2.amazonaws.com"),
                "x",
                "b1c",
                "https://b1c.s3.us-west-2.amazonaws.com/a/b%20c",
            ),
            (
                Some("https://b1c.s3.us-west-2.amazonaws.com"),
                "x",
                "b1c",
                "https://b1c.s3.us-west-2.amazonaws.com/a/b%20c",
            ),
        ] {
            let endpoint = Endpoint::new(url, region, bucket).expect("it is an endpoint");
            assert_eq!(endpoint.url(&endpoint.path("a/b c"), ""), address);
        }
        let endpoint = Endpoint::new(Some("http://localhost:80"), "x", "b1c").expect("it is an endpoint");
        assert!(endpoint.is_loopback() && endpoint.path("") == "/b1c");
        assert!(!Endpoint::new(None, "x", "b1c").expect("it is an endpoint").is_loopback());
        for url in ["ftp://x", "x", "https://", "https://a b", "https://host/path", "http://host?x"] {
            assert!(Endpoint::new(Some(url), "x", "b1c").is_err(), "{url}");
        }
        let told = Endpoint::new(Some("https://user:hidden@host"), "x", "b1c")
            .expect_err("there is a password in it");
        assert!(!told.to_string().contains("hidden"), "{told}");
    }

    #[test]
    fn queries_are_sorted_and_encoded() {
        assert_eq!(
            query(&[("prefix", "a/b c"), ("list-type", "2"), ("b", "")]),
            "b=&list-type=2&prefix=a%2Fb%20c"
        );
    }
}
