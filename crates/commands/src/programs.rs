//! What is loaded: scripts by their SHA-1, and libraries of functions; and the users who may run them. A part of the replicated
//! state.

use crate::primitive::{Malformed, put_bytes, take_bytes_up_to, take_u8};
use std::collections::BTreeMap;
use std::sync::Arc;
use syros_scripts::{LibraryFunction, sha1};
use syros_types::limits::BODY_BYTES_MAX;
use syros_types::varint::{put_varint, take_varint};

/// The name of a script.
pub type ScriptName = [u8; 20];

/// Most scripts. The one that was loaded least recently goes.
pub(crate) const SCRIPTS_MAX: usize = 1_000;

/// Most bytes of all scripts, and of all libraries: a node has them in memory twice at most.
pub(crate) const PROGRAM_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A script.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Script {
    text: Arc<[u8]>,
    /// Greater than that of all that were loaded before.
    number: u64,
}

/// A library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// Its text.
    pub text: Arc<[u8]>,
    /// What it has registered, in its order.
    pub functions: Vec<LibraryFunction>,
}

/// All that is loaded, and the users. A clone costs little, and does not see what is done to the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Programs(Option<Arc<Loaded>>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Loaded {
    scripts: BTreeMap<ScriptName, Script>,
    /// Names of scripts by their numbers.
    order: BTreeMap<u64, ScriptName>,
    script_bytes: usize,
    libraries: BTreeMap<String, Library>,
    /// The users, in an encoding that nobody looks at here; `None`: those of a new cluster.
    users: Option<Arc<[u8]>>,
}

/// The tags of records.
const SCRIPT: u8 = 1;
const LIBRARY: u8 = 2;
const USERS: u8 = 3;

impl Programs {
    /// Nothing.
    pub const NONE: Self = Self(None);

    /// True if nothing is loaded, and the users are those of a new cluster.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|loaded| {
            loaded.scripts.is_empty() && loaded.libraries.is_empty() && loaded.users.is_none()
        })
    }

    /// The users, as [`Users`](crate::acl::Users) writes them; `None`: those of a new cluster.
    #[must_use]
    pub fn users(&self) -> Option<Arc<[u8]>> {
        self.0.as_ref()?.users.clone()
    }

    /// Has other users in the place of those that there are.
    pub fn set_users(&mut self, users: &[u8]) {
        self.loaded().users = Some(users.into());
    }

    /// The text of the script with this name.
    #[must_use]
    pub fn script(&self, name: &ScriptName) -> Option<Arc<[u8]>> {
        self.0.as_ref()?.scripts.get(name).map(|script| Arc::clone(&script.text))
    }

    /// The library that has registered this function, and what it says about it. As in Redis, small letters and capitals are
    /// the same.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<(&Library, &LibraryFunction)> {
        self.libraries().find_map(|(_, library)| {
            let function = library.functions.iter().find(|function| function.name.eq_ignore_ascii_case(name));
            function.map(|function| (library, function))
        })
    }

    /// The libraries, in the order of their names.
    pub fn libraries(&self) -> impl Iterator<Item = (&str, &Library)> {
        let libraries = self.0.iter().flat_map(|loaded| loaded.libraries.iter());
        libraries.map(|(name, library)| (name.as_str(), library))
    }

    /// The library of this name.
    #[must_use]
    pub fn library(&self, name: &str) -> Option<&Library> {
        self.0.as_ref()?.libraries.get(name)
    }

    fn loaded(&mut self) -> &mut Loaded {
        Arc::make_mut(self.0.get_or_insert_default())
    }

    /// Loads a script, or loads it anew; its name. Others go if there are too many.
    pub fn load(&mut self, text: &[u8]) -> ScriptName {
        let name = sha1(text);
        let loaded = self.loaded();
        let number = loaded.order.last_key_value().map_or(0, |(last, _)| last + 1);
        loaded.add(name, Script { text: text.into(), number });
        while loaded.scripts.len() > SCRIPTS_MAX || loaded.script_bytes > PROGRAM_BYTES_MAX {
            let Some((_, oldest)) = loaded.order.pop_first() else { break };
            if let Some(script) = loaded.scripts.remove(&oldest) {
                loaded.script_bytes -= script.text.len();
            }
        }
        name
    }

    /// Unloads all scripts.
    pub fn flush_scripts(&mut self) {
        if self.0.is_some() {
            let loaded = self.loaded();
            (loaded.scripts, loaded.order, loaded.script_bytes) = Default::default();
        }
    }

    /// Gives a name a library, which another one may have had.
    pub fn set_library(&mut self, name: &str, library: Library) {
        self.loaded().libraries.insert(name.to_owned(), library);
    }

    /// Removes a library; false if there is none.
    pub fn remove_library(&mut self, name: &str) -> bool {
        self.library(name).is_some() && self.loaded().libraries.remove(name).is_some()
    }

    /// Removes all libraries.
    pub fn flush_libraries(&mut self) {
        if self.0.is_some() {
            self.loaded().libraries.clear();
        }
    }

    /// Bytes of all libraries.
    #[must_use]
    pub fn library_bytes(&self) -> usize {
        self.libraries().map(|(_, library)| library.text.len()).sum()
    }

    /// Everything as records of bytes, in no order that matters. What is equal has equal records.
    pub fn records(&self) -> impl Iterator<Item = Vec<u8>> {
        let scripts = self.0.iter().flat_map(|loaded| loaded.scripts.values());
        let scripts = scripts.map(|script| {
            let mut record = vec![SCRIPT];
            put_varint(&mut record, script.number);
            put_bytes(&mut record, &script.text);
            record
        });
        let users = self.users().map(|users| [&[USERS], &users[..]].concat());
        scripts.chain(self.libraries().map(|(name, library)| library_record(name, library))).chain(users)
    }

    /// Adds what a record says.
    ///
    /// # Errors
    /// If it is none, or says what another one has said.
    pub fn add_record(&mut self, record: &[u8]) -> Result<(), Malformed> {
        let input = &mut { record };
        match take_u8(input)? {
            SCRIPT => {
                let number = take_varint(input)?;
                let text = take_bytes_up_to(input, BODY_BYTES_MAX as u64)?;
                let loaded = self.loaded();
                if loaded.order.contains_key(&number) || loaded.scripts.contains_key(&sha1(text)) {
                    return Err(Malformed::Count(number));
                }
                loaded.add(sha1(text), Script { text: text.into(), number });
            }
            LIBRARY => {
                let (name, library) = take_library(input)?;
                if self.loaded().libraries.insert(name, library).is_some() {
                    return Err(Malformed::Count(0));
                }
            }
            USERS => {
                let users = std::mem::take(input);
                if users.is_empty() || self.users().is_some() {
                    return Err(Malformed::Count(users.len() as u64));
                }
                self.set_users(users);
            }
            other => return Err(Malformed::Tag(other)),
        }
        if input.is_empty() { Ok(()) } else { Err(Malformed::Truncated) }
    }
}

impl Loaded {
    fn add(&mut self, name: ScriptName, script: Script) {
        self.script_bytes += script.text.len();
        self.order.insert(script.number, name);
        if let Some(before) = self.scripts.insert(name, script) {
            self.script_bytes -= before.text.len();
            self.order.remove(&before.number);
        }
    }
}

/// The record of a library, which FUNCTION DUMP has, too.
pub(crate) fn library_record(name: &str, library: &Library) -> Vec<u8> {
    let mut record = vec![LIBRARY];
    put_bytes(&mut record, name.as_bytes());
    put_bytes(&mut record, &library.text);
    put_varint(&mut record, library.functions.len() as u64);
    for function in &library.functions {
        put_bytes(&mut record, function.name.as_bytes());
        match &function.description {
            None => record.push(0),
            Some(description) => {
                record.push(1);
                put_bytes(&mut record, description);
            }
        }
        put_varint(&mut record, function.flags.len() as u64);
        function.flags.iter().for_each(|flag| put_bytes(&mut record, flag.as_bytes()));
    }
    record
}

/// Takes what stands behind the tag of the record of a library.
fn take_library(input: &mut &[u8]) -> Result<(String, Library), Malformed> {
    let limit = BODY_BYTES_MAX as u64;
    let text = |input: &mut &[u8]| {
        let bytes = take_bytes_up_to(input, limit)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| Malformed::Truncated)
    };
    let name = text(input)?;
    let code = take_bytes_up_to(input, limit)?.into();
    let mut functions = Vec::new();
    for _ in 0..take_varint(input)? {
        let name = text(input)?;
        let description = match take_u8(input)? {
            0 => None,
            1 => Some(take_bytes_up_to(input, limit)?.to_vec()),
            other => return Err(Malformed::Options(other)),
        };
        let mut flags = Vec::new();
        for _ in 0..take_varint(input)? {
            flags.push(text(input)?);
        }
        functions.push(LibraryFunction { name, description, flags });
    }
    Ok((name, Library { text: code, functions }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_that_was_loaded_least_recently_goes() {
        let mut programs = Programs::NONE;
        for number in 0..SCRIPTS_MAX {
            programs.load(format!("return {number}").as_bytes());
        }
        let first = programs.load(b"return 0");
        programs.load(b"return 'new'");
        assert!(programs.script(&first).is_some());
        assert!(programs.script(&sha1(b"return 1")).is_none());
        assert!(programs.script(&sha1(b"return 2")).is_some());
    }

    #[test]
    fn records_make_an_equal_state() {
        let mut programs = Programs::NONE;
        programs.load(b"return 1");
        programs.load(b"return 2");
        programs.load(b"return 1");
        let function = LibraryFunction {
            name: "f".into(),
            description: Some(b"d".to_vec()),
            flags: vec!["no-writes".into()],
        };
        programs.set_library("l", Library { text: (*b"code").into(), functions: vec![function] });
        programs.set_users(b"users");
        let mut restored = Programs::NONE;
        for record in programs.records() {
            restored.add_record(&record).expect("a record");
            assert!(restored.add_record(&record).is_err(), "nothing is there twice");
        }
        assert_eq!(restored, programs);
        for bad in [&[][..], &[3], &[4], &[1, 0, 2, 1], &[2, 1, b'x', 0, 1]] {
            assert!(Programs::NONE.clone().add_record(bad).is_err());
        }
    }
}
