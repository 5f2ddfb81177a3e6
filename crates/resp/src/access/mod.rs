//! Who a client is, and what it may run: what connections know of the users, and what they remember of refusals.

mod acl_log;
mod known_users;
mod login;

pub(crate) use acl_log::{ACL_LOG_LENGTH_MAX, AclEntry, AclLog, Refusal, RefusalContext};
pub(crate) use known_users::KnownUsers;
pub(crate) use login::{Login, Standing, is_local};

/// What a client gets while nobody tells the process whether the users have changed.
pub(crate) const OUTDATED_USERS: &[u8] =
    b"NOQUORUM the command was not executed: this node cannot reach a majority of the replicas, and \
    does not know whether the users have changed";
