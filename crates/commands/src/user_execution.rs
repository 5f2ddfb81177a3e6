//! Executes what changes users and what looks at them.
//!
//! It stands above the families, because what a user may do is told from the table of all commands.

use crate::access::{Databases, DatabasesMut};
use crate::acl::{Selector, User, UserChange, Users};
use crate::families::{UserDelete, UserLook, UserQuestion, UserSet};
use crate::reply::{put_array, put_bulk, put_error, put_integer, put_map, put_nil, put_ok, put_set};

/// What is answered if a replica cannot read its own users. They are checked before they become its state.
const UNREADABLE: &[u8] = b"ERR internal error: the users cannot be read";

/// ACL SETUSER.
pub(crate) fn set<D: DatabasesMut>(databases: &mut D, set: &UserSet<'_>, reply: &mut Vec<u8>) {
    let when = if set.if_untouched { UserChange::IfUntouched } else { UserChange::Always };
    let rules: Vec<&[u8]> = set.rules.iter().collect();
    match change(databases, |users| users.set(set.name, &rules, when)) {
        Ok(()) => put_ok(reply),
        Err(text) => put_error(reply, &text),
    }
}

/// ACL DELUSER.
pub(crate) fn delete<D: DatabasesMut>(databases: &mut D, delete: &UserDelete<'_>, reply: &mut Vec<u8>) {
    match change(databases, |users| users.delete(delete.names.iter())) {
        Ok(count) => put_integer(reply, count as i64),
        Err(text) => put_error(reply, &text),
    }
}

/// Changes the users, unless that fails.
fn change<D: DatabasesMut, R>(
    databases: &mut D,
    change: impl FnOnce(&mut Users) -> Result<R, Vec<u8>>,
) -> Result<R, Vec<u8>> {
    let mut programs = databases.programs();
    let mut users = Users::of(&programs).map_err(|_| UNREADABLE.to_vec())?;
    let before = users.version();
    let result = change(&mut users)?;
    if users.version() != before {
        programs.set_users(&users.encode());
        databases.set_programs(programs);
    }
    Ok(result)
}

/// ACL LIST, ACL USERS, ACL GETUSER, and what front ends ask for themselves.
pub(crate) fn look<D: Databases>(databases: &D, look: &UserLook<'_>, reply: &mut Vec<u8>) {
    let programs = databases.programs();
    if look.question == UserQuestion::Table {
        let encoded = programs.users().unwrap_or_else(|| Users::default().encode().into());
        return if Users::version_of(&encoded) < look.known {
            put_nil(reply);
        } else {
            put_bulk(reply, &encoded);
        };
    }
    let Ok(users) = Users::of(&programs) else { return put_error(reply, UNREADABLE) };
    match look.question {
        UserQuestion::Lines => {
            put_array(reply, users.count());
            users.iter().for_each(|user| put_bulk(reply, &user.line()));
        }
        UserQuestion::Names => {
            put_array(reply, users.count());
            users.iter().for_each(|user| put_bulk(reply, user.name()));
        }
        UserQuestion::One | UserQuestion::Table => match users.find(look.name) {
            Some(user) => put_user(reply, user.user()),
            None => put_nil(reply),
        },
    }
}

fn put_user(reply: &mut Vec<u8>, user: &User) {
    put_map(reply, 6);
    put_bulk(reply, b"flags");
    put_set(reply, user.flags().count());
    user.flags().for_each(|flag| put_bulk(reply, flag.as_bytes()));
    put_bulk(reply, b"passwords");
    put_array(reply, user.passwords().len());
    user.passwords().iter().for_each(|password| put_bulk(reply, password.hexadecimal().as_bytes()));
    put_selector(reply, user.root());
    put_bulk(reply, b"selectors");
    put_array(reply, user.selectors().len());
    for selector in user.selectors() {
        put_map(reply, 3);
        put_selector(reply, selector);
    }
}

fn put_selector(reply: &mut Vec<u8>, selector: &Selector) {
    put_bulk(reply, b"commands");
    put_bulk(reply, selector.describe_commands().as_bytes());
    put_bulk(reply, b"keys");
    put_bulk(reply, &selector.describe_keys());
    put_bulk(reply, b"channels");
    put_bulk(reply, &selector.describe_channels());
}
