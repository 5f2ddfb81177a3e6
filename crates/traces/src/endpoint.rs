//! Where a collector listens.

use std::fmt;

use ureq::http::Uri;

/// What stands behind an endpoint in the address that traces are sent to, by the specification of OTLP.
const PATH: &str = "/v1/traces";

/// Where a collector takes OTLP over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    url: String,
}

/// Why a text is no endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointError {
    /// It is no URL with a host.
    NoUrl,
    /// It begins with `https`.
    Encrypted,
    /// It has another scheme than `http`.
    Scheme,
    /// It has a name or a password, a question mark or a fragment.
    Extras,
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoUrl => "is not a URL, such as \"http://127.0.0.1:4318\"",
            Self::Encrypted => {
                "begins with https, which is not supported: let a collector on this machine, such as the OpenTelemetry \
                 Collector, take the traces by http and pass them on"
            }
            Self::Scheme => "does not begin with \"http://\"",
            Self::Extras => "may have a host, a port and a path, and nothing else",
        })
    }
}

impl std::error::Error for EndpointError {}

impl Endpoint {
    /// Reads an endpoint such as `http://127.0.0.1:4318`.
    ///
    /// # Errors
    /// [`EndpointError`] says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        // The parser drops what stands behind it.
        if text.contains('#') {
            return Err(EndpointError::Extras);
        }
        let uri: Uri = text.parse().map_err(|_| EndpointError::NoUrl)?;
        match uri.scheme_str() {
            None => return Err(EndpointError::NoUrl),
            Some("http") => {}
            Some("https") => return Err(EndpointError::Encrypted),
            Some(_) => return Err(EndpointError::Scheme),
        }
        let authority = uri.authority().ok_or(EndpointError::NoUrl)?;
        if authority.as_str().contains('@') || uri.query().is_some() {
            return Err(EndpointError::Extras);
        }
        let behind_host = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
        let has_wrong_port = !behind_host.is_empty() && authority.port_u16().is_none_or(|port| port == 0);
        if authority.host().is_empty() || has_wrong_port {
            return Err(EndpointError::NoUrl);
        }
        Ok(Self { url: format!("http://{authority}{}{PATH}", uri.path().trim_end_matches('/')) })
    }

    /// Where requests go.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_url_behind_which_the_path_of_otlp_is_put() {
        let url = |text| Endpoint::parse(text).map(|endpoint| endpoint.url);
        for (text, expected) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            ("http://collector/otlp/", "http://collector/otlp/v1/traces"),
            ("http://[::1]:4318", "http://[::1]:4318/v1/traces"),
            ("http://[::1]", "http://[::1]/v1/traces"),
        ] {
            assert_eq!(url(text).as_deref(), Ok(expected), "{text}");
        }
        for (text, error) in [
            ("", EndpointError::NoUrl),
            ("127.0.0.1:4318", EndpointError::NoUrl),
            ("/v1/traces", EndpointError::NoUrl),
            ("http://", EndpointError::NoUrl),
            ("http://:4318", EndpointError::NoUrl),
            ("http://host:0", EndpointError::NoUrl),
            ("http://host:70000", EndpointError::NoUrl),
            ("http://host:", EndpointError::NoUrl),
            ("http://ho st", EndpointError::NoUrl),
            ("https://127.0.0.1:4318", EndpointError::Encrypted),
            ("grpc://127.0.0.1:4317", EndpointError::Scheme),
            ("http://user:word@host", EndpointError::Extras),
            ("http://host/?a=b", EndpointError::Extras),
            ("http://host/#a", EndpointError::Extras),
        ] {
            assert_eq!(url(text), Err(error), "{text}");
        }
    }
}
