//! The user that runs a script: a number, and nothing of what [`acl`](crate::acl) knows.

/// The number of a user, from 1 on. A user that is made anew has another one; a number comes again after 65,000 others. A
/// script carries that of the client that calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UserNumber(pub u16);

impl UserNumber {
    /// That of the default user, which is never removed.
    pub const DEFAULT: Self = Self(1);
}

/// The user that runs a script, or nobody that is to be checked: the client may do everything. As bytes, because a decoded
/// operation has no more room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallingUser([u8; 2]);

impl CallingUser {
    /// Nothing is to be checked.
    pub const NOBODY: Self = Self([0; 2]);

    /// This user.
    #[must_use]
    pub const fn new(number: UserNumber) -> Self {
        Self(number.0.to_le_bytes())
    }

    /// The user; `None` if nothing is to be checked.
    #[must_use]
    pub fn number(self) -> Option<UserNumber> {
        let number = u16::from_le_bytes(self.0);
        (number > 0).then_some(UserNumber(number))
    }
}
