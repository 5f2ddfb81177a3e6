//! All users: a part of the replicated state.

use super::DEFAULT_USER;
use super::limits::{USER_BYTES_MAX, USER_NAME_BYTES_MAX, USERS_BYTES_MAX, USERS_MAX};
use super::user::User;
use crate::calling_user::UserNumber;
use crate::primitive::{Malformed, put_bytes, take_bytes_up_to};
use crate::programs::Programs;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use syros_types::varint::{put_varint, take_varint};

/// A user with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedUser {
    name: Vec<u8>,
    number: UserNumber,
    user: User,
}

impl NamedUser {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Its number.
    #[must_use]
    pub const fn number(&self) -> UserNumber {
        self.number
    }

    /// Its passwords, and what it may do.
    #[must_use]
    pub const fn user(&self) -> &User {
        &self.user
    }

    /// As ACL LIST shows it.
    #[must_use]
    pub fn line(&self) -> Vec<u8> {
        [b"user ", &self.name[..], b" ", &self.user.describe()].concat()
    }
}

/// A change of users that is to be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserChange {
    /// In any case.
    Always,
    /// If no change of users has ever been executed: what a new cluster begins with.
    IfUntouched,
}

/// All users. A clone costs little, and does not see what is done to the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Users(Arc<Table>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Table {
    /// So many changes have been executed.
    version: u64,
    next_number: u16,
    users: BTreeMap<Vec<u8>, Arc<NamedUser>>,
}

/// What a new cluster begins with.
static UNTOUCHED: LazyLock<Users> = LazyLock::new(|| {
    let user =
        NamedUser { name: DEFAULT_USER.to_vec(), number: UserNumber::DEFAULT, user: User::unrestricted() };
    let users = BTreeMap::from([(DEFAULT_USER.to_vec(), Arc::new(user))]);
    Users(Arc::new(Table { version: 0, next_number: UserNumber::DEFAULT.0 + 1, users }))
});

impl Default for Users {
    /// Those of a new cluster: the default user, who may do everything and needs no password.
    fn default() -> Self {
        UNTOUCHED.clone()
    }
}

impl Users {
    /// So many changes of users have been executed. Users of one cluster with equal versions are equal.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.0.version
    }

    /// The user of this name.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<&Arc<NamedUser>> {
        self.0.users.get(name)
    }

    /// The user with this number.
    #[must_use]
    pub fn with_number(&self, number: UserNumber) -> Option<&Arc<NamedUser>> {
        self.iter().find(|user| user.number == number)
    }

    /// The default user.
    ///
    /// # Panics
    /// Never: nothing removes it, and no state is read that lacks it.
    #[must_use]
    pub fn default_user(&self) -> &Arc<NamedUser> {
        self.find(DEFAULT_USER).expect("nothing removes the default user")
    }

    /// The users in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<NamedUser>> {
        self.0.users.values()
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.users.len()
    }

    fn text_bytes(&self) -> usize {
        self.iter().map(|user| user.line().len()).sum()
    }

    /// True if whatever somebody may do by the users `before` is allowed by these, too, as far as a look at each user tells.
    #[must_use]
    pub fn take_nothing_from(&self, before: &Self) -> bool {
        before.iter().all(|user| {
            self.find(&user.name)
                .is_some_and(|found| found.number == user.number && found.user.takes_nothing_from(&user.user))
        })
    }

    /// ACL SETUSER: changes a user by rules, or makes one. All rules are applied, or none.
    ///
    /// # Errors
    /// The text of the error that the client gets.
    pub fn set(&mut self, name: &[u8], rules: &[&[u8]], when: UserChange) -> Result<(), Vec<u8>> {
        if when == UserChange::IfUntouched && self.0.version > 0 {
            return Ok(());
        }
        check_name(name)?;
        let known = self.find(name);
        if known.is_none() && self.count() >= USERS_MAX {
            return Err(format!("ERR {USERS_MAX} users are the maximum").into_bytes());
        }
        let mut user = known.map_or_else(User::new, |known| known.user.clone());
        user.change(rules).map_err(|(rule, error)| match error {
            Some(error) => {
                let about = format!("': {error}");
                [b"ERR Error in ACL SETUSER modifier '", &rule[..], about.as_bytes()].concat()
            }
            None => [b"ERR Unmatched parenthesis in acl selector starting at '", &rule[..], b"'."].concat(),
        })?;
        if User::of_text(&user.describe()).as_ref() != Ok(&user) {
            // A parenthesis in a pattern, or bytes that are no text in the name of an argument: it could not be read again.
            return Err(
                b"ERR Error in ACL SETUSER: a rule has a character that no text of a user can have".to_vec()
            );
        }
        let number = known.map_or_else(|| self.free_number(), |known| known.number);
        let is_new = known.is_none();
        let user = NamedUser { name: name.to_vec(), number, user };
        let (bytes, before) = (user.line().len(), known.map_or(0, |known| known.line().len()));
        if bytes > USER_BYTES_MAX {
            let text = format!("ERR a user of {bytes} bytes exceeds the maximum of {USER_BYTES_MAX}");
            return Err(text.into_bytes());
        }
        let together = self.text_bytes() - before + bytes;
        if together > USERS_BYTES_MAX && bytes > before {
            let text = format!("ERR all users of {together} bytes exceed the maximum of {USERS_BYTES_MAX}");
            return Err(text.into_bytes());
        }
        let table = Arc::make_mut(&mut self.0);
        table.version += 1;
        if is_new {
            table.next_number = number.0.wrapping_add(1);
        }
        table.users.insert(name.to_vec(), Arc::new(user));
        Ok(())
    }

    /// The next number that no user has.
    fn free_number(&self) -> UserNumber {
        let mut number = self.0.next_number.max(1);
        while self.with_number(UserNumber(number)).is_some() {
            number = number.wrapping_add(1).max(1);
        }
        UserNumber(number)
    }

    /// ACL DELUSER: removes users; how many of them there were.
    ///
    /// # Errors
    /// The text of the error that the client gets.
    pub fn delete<'a>(&mut self, names: impl Iterator<Item = &'a [u8]> + Clone) -> Result<usize, Vec<u8>> {
        if names.clone().any(|name| name == DEFAULT_USER) {
            return Err(b"ERR The 'default' user cannot be removed".to_vec());
        }
        let found: Vec<&[u8]> = names.filter(|name| self.find(name).is_some()).collect();
        if found.is_empty() {
            return Ok(0);
        }
        let table = Arc::make_mut(&mut self.0);
        table.version += 1;
        Ok(found.into_iter().filter(|name| table.users.remove(*name).is_some()).count())
    }

    /// Everything as bytes. What is equal has equal bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.0.version);
        put_varint(&mut out, u64::from(self.0.next_number));
        put_varint(&mut out, self.count() as u64);
        for user in self.iter() {
            put_bytes(&mut out, &user.name);
            put_varint(&mut out, u64::from(user.number.0));
            put_bytes(&mut out, &user.user.describe());
        }
        out
    }

    /// The users of a replica.
    ///
    /// # Errors
    /// [`Malformed`] if what it has loaded are none.
    pub fn of(programs: &Programs) -> Result<Self, Malformed> {
        programs.users().map_or_else(|| Ok(Self::default()), |bytes| Self::decode(&bytes))
    }

    /// The version of the users of these bytes; of others, 0.
    #[must_use]
    pub fn version_of(mut bytes: &[u8]) -> u64 {
        take_varint(&mut bytes).unwrap_or(0)
    }

    /// The user with this number among those of a replica, without reading what the others may do.
    #[must_use]
    pub fn one_of(programs: &Programs, number: UserNumber) -> Option<NamedUser> {
        let Some(bytes) = programs.users() else {
            return Self::default().with_number(number).map(|user| NamedUser::clone(user));
        };
        let input = &mut &*bytes;
        let (_, _, count) = take_head(input).ok()?;
        for _ in 0..count {
            let (name, found, text) = take_user(input).ok()?;
            if found == number {
                let user = User::of_text(text).ok()?;
                return Some(NamedUser { name: name.to_vec(), number, user });
            }
        }
        None
    }

    /// The users of these bytes, which need not be trusted.
    ///
    /// # Errors
    /// [`Malformed`] if they are none.
    pub fn decode(mut bytes: &[u8]) -> Result<Self, Malformed> {
        let input = &mut bytes;
        let (version, next_number, count) = take_head(input)?;
        let mut users = BTreeMap::new();
        for _ in 0..count {
            let (name, number, text) = take_user(input)?;
            let user = User::of_text(text).map_err(|_| Malformed::Truncated)?;
            users.insert(name.to_vec(), Arc::new(NamedUser { name: name.to_vec(), number, user }));
        }
        let has_default = users.contains_key(DEFAULT_USER);
        if !has_default || users.len() as u64 != count || !input.is_empty() {
            return Err(Malformed::Count(count));
        }
        Ok(Self(Arc::new(Table { version, next_number, users })))
    }
}

/// Takes the version, the next number, and how many users there are.
fn take_head(input: &mut &[u8]) -> Result<(u64, u16, u64), Malformed> {
    let head = (take_varint(input)?, take_number(input)?, take_varint(input)?);
    let limit = USERS_MAX as u64;
    if head.2 > limit { Err(Malformed::TooLong { length: head.2, limit }) } else { Ok(head) }
}

/// Takes the name, the number and the text of a user.
fn take_user<'a>(input: &mut &'a [u8]) -> Result<(&'a [u8], UserNumber, &'a [u8]), Malformed> {
    let name = take_bytes_up_to(input, USER_NAME_BYTES_MAX as u64)?;
    let number = UserNumber(take_number(input)?);
    Ok((name, number, take_bytes_up_to(input, USER_BYTES_MAX as u64)?))
}

fn take_number(input: &mut &[u8]) -> Result<u16, Malformed> {
    let number = take_varint(input)?;
    let limit = u64::from(u16::MAX);
    u16::try_from(number).map_err(|_| Malformed::TooLong { length: number, limit })
}

fn check_name(name: &[u8]) -> Result<(), Vec<u8>> {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0 | 0x0b);
    if name.iter().any(is_blank) {
        return Err(b"ERR Usernames can't contain spaces or null characters".to_vec());
    }
    if name.len() > USER_NAME_BYTES_MAX {
        let text =
            format!("ERR user name of {} bytes exceeds the maximum of {USER_NAME_BYTES_MAX}", name.len());
        return Err(text.into_bytes());
    }
    Ok(())
}
