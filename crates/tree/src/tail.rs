//! The bytes of a separator, which most separators have none of.

use std::sync::Arc;

/// Bytes that tell elements apart whose hashes or scores are equal. Shared, for copies of nodes copy separators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail(Option<Arc<[u8]>>);

impl Tail {
    /// The shortest bytes that are greater than `left` and not greater than `right`, which follows `left`.
    pub(crate) fn between(left: &[u8], right: &[u8]) -> Self {
        let common = left.iter().zip(right).take_while(|(a, b)| a == b).count();
        let length = right.len().min(common + 1);
        Self((length > 0).then(|| right[..length].into()))
    }

    /// These bytes.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self((!bytes.is_empty()).then(|| bytes.into()))
    }

    /// The bytes; none if there are none.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}
