//! What a client can subscribe to.

/// A kind of subscription. Names of different kinds have nothing to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubscriptionKind {
    /// A channel of PUBLISH, by its name.
    Channel,
    /// All channels of PUBLISH whose names match a glob pattern.
    Pattern,
    /// A channel of SPUBLISH, by its name.
    Shard,
}

impl SubscriptionKind {
    /// All kinds, in the order of their [`index`](Self::index).
    pub const ALL: [Self; 3] = [Self::Channel, Self::Pattern, Self::Shard];

    /// The place of the kind in a table of all kinds.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Channel => 0,
            Self::Pattern => 1,
            Self::Shard => 2,
        }
    }
}
