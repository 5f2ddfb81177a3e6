//! Which `Host` a browser may have reached this process by.
//!
//! A web page of a stranger can have its own name lead to this machine (DNS rebinding). The browser then takes this process for
//! a part of that page, and lets the page read what it answers. The browser tells by which name it came, so what only people
//! look at is answered under names alone that a stranger cannot own: addresses, and names of this machine and of the nodes.

use std::fs;
use std::net::IpAddr;

/// True if a request with this header `Host` may have been meant for this process. `nodes` are where the nodes listen, as
/// `host:port`.
pub(crate) fn is_ours(host: &str, nodes: &[String]) -> bool {
    let name = name_of(host).trim_end_matches('.');
    let is_address = name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    let is = |other: &str| !other.is_empty() && name.eq_ignore_ascii_case(other);
    is_address || is("localhost") || nodes.iter().any(|node| is(name_of(node))) || is(&machine())
}

/// A host without its port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        // An address of IPv6 is in brackets, before a port at least.
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

/// The name of this machine.
fn machine() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_stranger_may_own_are_not_ours() {
        let nodes = ["db1.internal:7379".to_owned(), "[::1]:7380".to_owned(), String::new()];
        let machine = machine();
        for ours in [
            "127.0.0.1:9121",
            "10.0.0.7",
            "[::1]:9121",
            "[fe80::1]",
            "localhost:9121",
            "LocalHost",
            "db1.internal:9121",
            "DB1.internal.",
            &machine,
        ] {
            assert!(is_ours(ours, &nodes), "{ours}");
        }
        for not_ours in
            ["", ":9121", "evil.example:9121", "db1.internal.evil.example", "127.0.0.1.evil.example", "x:y:1"]
        {
            assert!(!is_ours(not_ours, &nodes), "{not_ours}");
        }
    }
}
