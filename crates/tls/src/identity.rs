//! What a certificate says that its holder is in a cluster.

use core::fmt;
use syros_types::{Group, ReplicaId};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// How a URI begins that says what somebody is in a cluster.
const SCHEME: &str = "syros://";

/// What somebody may do in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Be this member of the group, and all that an administrator may.
    Node(ReplicaId),
    /// Read and update, as an application or a gateway.
    Client,
    /// What a client may, and change how the cluster works: who leads, and by which mode it goes.
    Administrator,
}

impl Role {
    /// True if its holder may change how the cluster works.
    #[must_use]
    pub const fn may_administer(self) -> bool {
        matches!(self, Self::Node(_) | Self::Administrator)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(replica) => write!(f, "node/{}", replica.0),
            Self::Client => f.write_str("client"),
            Self::Administrator => f.write_str("admin"),
        }
    }
}

/// Somebody in a cluster: `syros://CLUSTER/node/REPLICA`, `syros://CLUSTER/client` or `syros://CLUSTER/admin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The cluster's number.
    pub cluster: u64,
    /// What its holder may do there.
    pub role: Role,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.cluster, self.role)
    }
}

impl Identity {
    /// Reads a URI as [`Display`](fmt::Display) writes it; the number of the cluster may be hexadecimal, too (`0x4711`).
    #[must_use]
    pub fn parse(uri: &str) -> Option<Self> {
        let (cluster, role) = uri.strip_prefix(SCHEME)?.split_once('/')?;
        let (digits, radix) = cluster.strip_prefix("0x").map_or((cluster, 10), |digits| (digits, 16));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let cluster = u64::from_str_radix(digits, radix).ok().filter(|_| is_number(digits))?;
        let role = match role.split_once('/') {
            None if role == "client" => Role::Client,
            None if role == "admin" => Role::Administrator,
            Some(("node", replica)) => {
                let number: u8 = replica.parse().ok().filter(|_| is_number(replica))?;
                if usize::from(number) >= Group::SIZE_MAX {
                    return None;
                }
                Role::Node(ReplicaId(number))
            }
            _ => return None,
        };
        Some(Self { cluster, role })
    }

    /// Who a certificate (DER) says that its holder is; `None` if it says nothing of a cluster.
    ///
    /// # Errors
    /// What is wrong with it: one that says several things is nobody's.
    pub fn of_certificate(certificate: &[u8]) -> Result<Option<Self>, String> {
        let (_, certificate) =
            X509Certificate::from_der(certificate).map_err(|error| format!("its certificate: {error}"))?;
        let names = certificate.subject_alternative_name();
        let names = names.map_err(|error| format!("the names in its certificate: {error}"))?;
        let mut found = None;
        for name in names.iter().flat_map(|names| &names.value.general_names) {
            let GeneralName::URI(uri) = name else { continue };
            if !uri.starts_with(SCHEME) {
                continue;
            }
            let Some(identity) = Self::parse(uri) else {
                return Err(format!(
                    "its certificate says {uri}; {SCHEME}CLUSTER/node/REPLICA, {SCHEME}CLUSTER/client or \
                     {SCHEME}CLUSTER/admin is expected"
                ));
            };
            if let Some(other) = found.replace(identity) {
                return Err(format!("its certificate says both {other} and {identity}"));
            }
        }
        Ok(found)
    }

    /// The same of the first certificate in a text (PEM); `None` also if there is none that can be read.
    #[must_use]
    pub fn of_pem(text: &str) -> Option<Self> {
        let (_, pem) = x509_parser::pem::parse_x509_pem(text.as_bytes()).ok()?;
        Self::of_certificate(&pem.contents).ok().flatten()
    }

    /// The role of a certificate's holder in this cluster.
    ///
    /// # Errors
    /// It has none.
    pub fn role_in(cluster: u64, certificate: &[u8]) -> Result<Role, String> {
        match Self::of_certificate(certificate)? {
            Some(identity) if identity.cluster == cluster => Ok(identity.role),
            Some(identity) => Err(format!("its certificate is for {identity}; this is cluster {cluster}")),
            None => {
                Err(format!("its certificate names no role in a cluster, such as {SCHEME}{cluster}/client"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_read_as_they_are_written() {
        for role in [Role::Node(ReplicaId(2)), Role::Client, Role::Administrator] {
            let identity = Identity { cluster: 0x4711, role };
            assert_eq!(Identity::parse(&identity.to_string()), Some(identity));
        }
        let node = Identity { cluster: 0x4711, role: Role::Node(ReplicaId(0)) };
        assert_eq!(Identity::parse("syros://0x4711/node/0"), Some(node));
        for wrong in [
            "syros://18193/node/9",
            "syros://18193/node/-1",
            "syros://18193/node",
            "syros://+18193/admin",
            "syros://0x+4711/admin",
            "syros://18193/node/+1",
            "syros://18193/root",
            "syros://18193/client/2",
            "syros:///client",
            "syros://name/client",
            "https://18193/client",
            "",
        ] {
            assert_eq!(Identity::parse(wrong), None, "{wrong}");
        }
    }
}
