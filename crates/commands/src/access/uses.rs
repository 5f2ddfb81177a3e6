//! How keys are used.

/// What an engine knows of the uses of a key. Each member of a group knows of those that it has seen itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uses {
    /// Nothing: no policy asks for it.
    Unknown,
    /// It was used so many seconds ago.
    Idle(u64),
    /// How often it is used: the logarithm of a count, up to 255.
    Frequency(u8),
}
