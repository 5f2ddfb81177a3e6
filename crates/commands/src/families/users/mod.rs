//! Operations on users. What users are stands in [`acl`](crate::acl).

pub(crate) mod delete;
pub(crate) mod look;
pub(crate) mod set;
