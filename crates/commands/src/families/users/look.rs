//! What ACL LIST, ACL USERS and ACL GETUSER answer, and what a front end asks for itself.

use crate::access::Keys;
use crate::arguments::Arguments;
use crate::encoding::{Unsigned, Value, choices, fields};
use crate::error::ExecutionError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::CommandSpec;

/// What is asked about users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserQuestion {
    /// ACL LIST.
    Lines,
    /// ACL USERS.
    Names,
    /// ACL GETUSER.
    One,
    /// All of them as bytes of [`Users`](crate::acl::Users), for a front end; nil, if it knows this version or a later one.
    Table,
}

choices!(UserQuestion: Lines, Names, One, Table);

/// ACL LIST, ACL USERS and ACL GETUSER, and what a front end asks for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserLook<'a> {
    /// What is wanted.
    pub question: UserQuestion,
    /// The user that [`UserQuestion::One`] is about.
    pub name: &'a [u8],
    /// Of [`UserQuestion::Table`]: one more than the version that is known; 0, if none is.
    pub known: u64,
}

fields!(UserLook<'a> = 379 { question: UserQuestion, name: Value, known: Unsigned });

impl<'a> Definition<'a> for UserLook<'a> {
    const SPECS: &'static [CommandSpec] = &[];

    /// It names no key, and sees every change of users, which concerns all keys.
    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Declared(Arguments::new(&[]))
    }

    fn values(&self) -> u32 {
        1
    }
}

impl ReadCommand for UserLook<'_> {
    /// Users are more than operations know of keys, so it is executed above the families: see `user_execution`.
    fn read<K: Keys>(&self, _keys: &K, _view: View, _reply: &mut Vec<u8>) -> ExecutionResult {
        Err(ExecutionError::NotRead)
    }
}
