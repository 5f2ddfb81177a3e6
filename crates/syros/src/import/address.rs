//! Where data comes from, as the command line says it.

use std::path::PathBuf;

use syros_cli::check_address;
use syros_types::Database;

/// Where data comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// A file.
    File(PathBuf),
    /// A server.
    Server(Server),
}

/// A Redis or Valkey server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) user: Option<String>,
    /// Host and port.
    pub(super) address: String,
    /// The one database that is wanted.
    pub(super) database: Option<u64>,
}

/// The value of `--from`.
pub(super) fn parse_from(text: &str) -> Result<From, String> {
    if text.starts_with("rediss://") || text.starts_with("valkeys://") {
        return Err("servers that speak TLS cannot be asked: make a file there (redis-cli --tls --rdb dump.rdb), and import \
                    that"
            .to_owned());
    }
    let Some(rest) = text.strip_prefix("redis://").or_else(|| text.strip_prefix("valkey://")) else {
        return Ok(From::File(text.into()));
    };
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, _)) if user.contains(':') => {
            return Err("everybody on this machine can read the password in this URL: leave it out, and write it into a file \
                        (--from-password-file), or into the environment variable SYROS_FROM_PASSWORD"
                .to_owned());
        }
        Some((user, rest)) => (Some(user.to_owned()).filter(|user| !user.is_empty()), rest),
        None => (None, rest),
    };
    let (address, database) = match rest.split_once('/') {
        Some((address, "")) => (address, None),
        Some((address, number)) => {
            let number: u64 =
                number.parse().map_err(|_| format!("\"{number}\" is no number of a database"))?;
            if number >= Database::COUNT as u64 {
                return Err(format!("Syros has databases 0 to {}, and no {number}", Database::COUNT - 1));
            }
            (address, Some(number))
        }
        None => (rest, None),
    };
    check_address(address)?;
    Ok(From::Server(Server { user, address: address.to_owned(), database }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_servers() {
        let server = |user: Option<&str>, address: &str, database| {
            Ok(From::Server(Server { user: user.map(str::to_owned), address: address.to_owned(), database }))
        };
        assert_eq!(parse_from("a/dump.rdb"), Ok(From::File("a/dump.rdb".into())));
        assert_eq!(parse_from("redis://h:1"), server(None, "h:1", None));
        assert_eq!(parse_from("valkey://me@h:1/"), server(Some("me"), "h:1", None));
        assert_eq!(parse_from("redis://[::1]:6379/15"), server(None, "[::1]:6379", Some(15)));
        for (text, words) in [
            ("redis://h", "host:port"),
            ("redis://h:1/16", "no 16"),
            ("redis://h:1/x", "no number"),
            ("redis://me:secret@h:1", "--from-password-file"),
            ("redis://:secret@h:1", "--from-password-file"),
            ("rediss://h:1", "TLS"),
        ] {
            let refused = parse_from(text).unwrap_err();
            assert!(refused.contains(words) && !refused.contains("secret@"), "{refused}");
        }
    }
}
