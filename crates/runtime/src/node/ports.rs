//! What the log says of a process's ports, and of those that are open to more than they should be.

use std::net::SocketAddr;

use crate::config::FrontConfig;
use crate::directory::Identity;

/// Logs where a node listens, and for whom.
pub(super) fn log_address(identity: &Identity, address: SocketAddr, peers: &str) {
    let (node, cluster) = (identity.replica.0, format!("{:016x}", identity.cluster));
    tracing::info!(node, cluster, address = %address, "this node listens for {peers}");
}

/// Logs a warning if any process that reaches the port for the other nodes may say that it is one of them.
pub(super) fn warn_without_secret(node: u8, address: SocketAddr) {
    if !address.ip().is_loopback() {
        tracing::warn!(
            node,
            address = %address,
            "the port for the other nodes is open to everybody who reaches it: without a secret-file any process may say that it \
             is a replica, and lose writes. Set secret-file on all nodes, or keep the port in a network you trust"
        );
    }
}

/// Logs a warning if clients of other machines are served without a password, as far as the settings say.
pub(super) fn warn_if_exposed(address: SocketAddr, setting: &str, front: &FrontConfig) {
    if front.protected || !front.first_rules.is_empty() {
        return;
    }
    if let Some(warning) = exposure(address, setting) {
        tracing::warn!(address = %address, "{warning}");
    }
}

/// What is wrong with this address of a port for Redis clients, if other machines may reach it.
fn exposure(address: SocketAddr, setting: &str) -> Option<String> {
    let ip = address.ip().to_canonical();
    let networks = if ip.is_unspecified() { "on all networks of this machine " } else { "" };
    (!ip.is_loopback()).then(|| {
        format!(
            "{address} is open {networks}to everybody who reaches it, without a password unless ACL SETUSER has given the \
             default user one: anybody may read, change and delete all data, because protected mode is off. Turn it on, \
             set {setting} to a loopback address, or let a firewall admit your applications only"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exposed_port_is_warned_of() {
        let warning = |address: &str| exposure(address.parse().expect("an address"), "listen.redis");
        for loopback in ["127.0.0.1:6379", "127.9.9.9:1", "[::1]:6379", "[::ffff:127.0.0.1]:6379"] {
            assert_eq!(warning(loopback), None, "{loopback}");
        }
        for everywhere in ["0.0.0.0:6379", "[::]:6379"] {
            let text = warning(everywhere).expect("it is open");
            assert!(
                text.starts_with(everywhere) && text.contains("on all networks of this machine"),
                "{text}"
            );
            assert!(text.contains("without a password") && text.contains("set listen.redis to"), "{text}");
        }
        let text = warning("192.168.1.7:6379").expect("it is open");
        assert!(text.contains("is open to everybody who reaches it"), "{text}");
    }
}
