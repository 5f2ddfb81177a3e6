//! What SCRIPT EXISTS, SCRIPT SHOW, FUNCTION LIST, FUNCTION STATS and FUNCTION DUMP answer.

use super::evalsha::script_name;
use crate::access::{Databases, Keys};
use crate::arguments::Arguments;
use crate::encoding::{Elements, Flag, Value, choices, fields};
use crate::error::ExecutionError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::CommandSpec;
use crate::glob::glob_matches;
use crate::programs::Library;
use crate::rdb::dump_libraries;
use crate::reply::{put_array, put_bulk, put_error, put_integer, put_map, put_nil, put_set, put_simple};
use syros_types::Database;

/// SCRIPT EXISTS and SCRIPT SHOW: which scripts are loaded, or the text of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptLook<'a> {
    /// What the client calls the scripts.
    pub names: Arguments<'a>,
    /// The text of the first of them is wanted.
    pub shows: bool,
}

fields!(ScriptLook<'a> = 370 { names: Elements<1>, shows: Flag });

impl<'a> Definition<'a> for ScriptLook<'a> {
    const SPECS: &'static [CommandSpec] = &[];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::All
    }

    fn values(&self) -> u32 {
        u32::from(self.shows)
    }
}

impl ReadCommand for ScriptLook<'_> {
    /// It concerns what is loaded: see [`ReadCommand::read_of`].
    fn read<K: Keys>(&self, _keys: &K, _view: View, _reply: &mut Vec<u8>) -> ExecutionResult {
        Err(ExecutionError::NotRead)
    }

    fn read_of<D: Databases>(
        &self,
        databases: &D,
        _database: Database,
        _view: View,
        reply: &mut Vec<u8>,
    ) -> ExecutionResult {
        let programs = databases.programs();
        let find = |name: &[u8]| script_name(name).and_then(|name| programs.script(&name));
        if self.shows {
            match self.names.iter().next().and_then(find) {
                Some(text) => put_bulk(reply, &text),
                None => put_error(reply, b"NOSCRIPT No matching script. Please use EVAL."),
            }
            return Ok(());
        }
        put_array(reply, self.names.len());
        self.names.iter().for_each(|name| put_integer(reply, i64::from(find(name).is_some())));
        Ok(())
    }
}

/// What is asked about libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibraryQuestion {
    /// FUNCTION LIST.
    List,
    /// FUNCTION LIST .. WITHCODE.
    ListWithCode,
    /// FUNCTION STATS.
    Count,
    /// FUNCTION DUMP.
    Dump,
}

choices!(LibraryQuestion: List, ListWithCode, Count, Dump);

/// FUNCTION LIST, FUNCTION STATS and FUNCTION DUMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibraryLook<'a> {
    /// What is wanted.
    pub question: LibraryQuestion,
    /// Of the libraries whose names match this.
    pub pattern: &'a [u8],
}

fields!(LibraryLook<'a> = 372 { question: LibraryQuestion, pattern: Value });

impl<'a> Definition<'a> for LibraryLook<'a> {
    const SPECS: &'static [CommandSpec] = &[];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::All
    }

    fn values(&self) -> u32 {
        1
    }
}

impl ReadCommand for LibraryLook<'_> {
    /// It concerns what is loaded: see [`ReadCommand::read_of`].
    fn read<K: Keys>(&self, _keys: &K, _view: View, _reply: &mut Vec<u8>) -> ExecutionResult {
        Err(ExecutionError::NotRead)
    }

    fn read_of<D: Databases>(
        &self,
        databases: &D,
        _database: Database,
        _view: View,
        reply: &mut Vec<u8>,
    ) -> ExecutionResult {
        let programs = databases.programs();
        if self.question == LibraryQuestion::Count {
            let functions = programs.libraries().map(|(_, library)| library.functions.len()).sum::<usize>();
            put_map(reply, 2);
            put_bulk(reply, b"running_script");
            put_nil(reply);
            put_bulk(reply, b"engines");
            put_map(reply, 1);
            put_bulk(reply, b"LUA");
            put_map(reply, 2);
            put_bulk(reply, b"libraries_count");
            put_integer(reply, programs.libraries().count() as i64);
            put_bulk(reply, b"functions_count");
            put_integer(reply, functions as i64);
            return Ok(());
        }
        if self.question == LibraryQuestion::Dump {
            let texts = programs.libraries().map(|(_, library)| &*library.text);
            put_bulk(reply, &dump_libraries(texts));
            return Ok(());
        }
        let found: Vec<(&str, &Library)> =
            programs.libraries().filter(|(name, _)| glob_matches(self.pattern, name.as_bytes())).collect();
        put_array(reply, found.len());
        for (name, library) in found {
            put_library(reply, name, library, self.question == LibraryQuestion::ListWithCode);
        }
        Ok(())
    }
}

fn put_library(reply: &mut Vec<u8>, name: &str, library: &Library, with_code: bool) {
    put_map(reply, 3 + usize::from(with_code));
    put_bulk(reply, b"library_name");
    put_bulk(reply, name.as_bytes());
    put_bulk(reply, b"engine");
    put_bulk(reply, b"LUA");
    put_bulk(reply, b"functions");
    put_array(reply, library.functions.len());
    for function in &library.functions {
        put_map(reply, 3);
        put_bulk(reply, b"name");
        put_bulk(reply, function.name.as_bytes());
        put_bulk(reply, b"description");
        match &function.description {
            Some(description) => put_bulk(reply, description),
            None => put_nil(reply),
        }
        put_bulk(reply, b"flags");
        put_set(reply, function.flags.len());
        function.flags.iter().for_each(|flag| put_simple(reply, flag.as_bytes()));
    }
    if with_code {
        put_bulk(reply, b"library_code");
        put_bulk(reply, &library.text);
    }
}
