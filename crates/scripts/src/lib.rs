//! Scripts in Lua 5.1, as Redis has them, that give the same result on every machine.
//!
//! A script is a function of its text, its keys, its arguments, a seed, and the replies to the commands that it calls. What
//! Lua leaves to the machine is decided here: the order of tables, the text of objects, the last bit of a logarithm, when
//! memory is collected ([`lua/README.md`](https://github.com/syros-db/syros/blob/main/crates/scripts/lua/README.md)).
//!
//! *Fuel* limits how long a script takes and how much memory it allocates. It is counted, not measured: a script that uses it
//! up does so at the same step everywhere. No script can catch that.
//!
//! This crate knows no commands: [`Host`] executes them.
#![deny(unsafe_code)]

mod bits;
mod flags;
mod idle;
mod json;
mod mathematics;
mod messagepack;
mod native;
mod number;
mod reply;
mod sha1;
mod state;
mod structs;

pub use flags::{Flags, library_name};
pub use reply::Reply;
pub use sha1::{sha1, sha1_hex};

use state::{End, Failure, Purpose, State, Unready};

/// The first word of what a script has its host execute that asks whether it may call the rest: the reply is 1, or nothing. No
/// command has such a name.
pub const RIGHTS_QUESTION: &[u8] = b"\0may-call";

/// Executes the commands that scripts call.
pub trait Host {
    /// Executes a command: its reply, and how much fuel it has taken. `is_newer` if the script has chosen RESP3. The script has
    /// `fuel` left: a command that takes more need not be executed, because the script is undone then.
    fn call(&mut self, words: &[&[u8]], is_newer: bool, fuel: u64) -> (Reply, u64);

    /// True if the script must not go on: it has done something that no script may do.
    fn is_doomed(&self) -> bool;
}

/// What a script may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Units: one for each instruction, for each 16 bytes that are allocated, and for steps of functions.
    pub fuel: u64,
    /// What `math.random` draws from.
    pub seed: u64,
    /// Fuel is taken for what the script does, and not for what is done for it behind the scenes: then a state of Lua can be
    /// used more than once, which saves nine tenths of the time. Everybody who runs it must agree on that.
    pub counts_script_alone: bool,
}

/// How a script has ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// With this reply. An error among them is the script's own, and what the script has done stays done.
    Reply(Reply),
    /// It has used up its fuel. What it has done has to be undone.
    OutOfFuel,
}

/// The keys and the arguments of a script.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// `KEYS`.
    pub keys: &'a [&'a [u8]],
    /// `ARGV`.
    pub arguments: &'a [&'a [u8]],
}

/// A function of a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryFunction {
    /// Its name.
    pub name: String,
    /// What the library says about it.
    pub description: Option<Vec<u8>>,
    /// Its flags, in the library's order.
    pub flags: Vec<String>,
}

impl LibraryFunction {
    /// What its flags say.
    #[must_use]
    pub fn flags(&self) -> Flags {
        let mut flags = Flags { has_line: true, ..Flags::default() };
        self.flags.iter().for_each(|flag| {
            flags.add(flag);
        });
        flags
    }
}

/// Says whether a text can be run as a script.
///
/// # Errors
/// The text of the error that is the reply to whoever loads it.
pub fn check(text: &[u8]) -> Result<(), String> {
    Flags::of_script(text)?;
    match prepared(b"", Purpose::Script)
        .and_then(|state| state.check(text, CHECK_FUEL).map_err(|unready| unreadiness(unready, SCRIPT)))
    {
        Ok(()) => Ok(()),
        Err(problem) => Err(problem),
    }
}

/// Runs a script.
pub fn run(text: &[u8], input: Input<'_>, limits: Limits, host: &mut dyn Host) -> Outcome {
    let mut state = match compiled(text, Purpose::Script, limits) {
        Ok(state) => state,
        Err(end) => return end,
    };
    match state.run((input.keys, input.arguments), limits, host) {
        Ok(end) => {
            idle::put(state, &end);
            outcome(end, || flags::shown_name(text))
        }
        Err(_) => Outcome::OutOfFuel,
    }
}

/// The functions of a library.
///
/// # Errors
/// The text of the error that is the reply to whoever loads it.
pub fn library(text: &[u8], limits: Limits) -> Result<Vec<LibraryFunction>, String> {
    let mut state = prepared(text, Purpose::Library)?;
    let loaded = state.compile_once(text, limits.fuel).and_then(|()| state.load(limits));
    let functions = loaded.map_err(|unready| unreadiness(unready, FUNCTION))?;
    if functions.is_empty() {
        return Err("ERR No functions registered".to_owned());
    }
    let function = |registered: state::Registered| LibraryFunction {
        name: registered.name,
        description: registered.description,
        flags: registered.flags,
    };
    Ok(functions.into_iter().map(function).collect())
}

/// Calls a function of a library.
pub fn call(text: &[u8], name: &str, input: Input<'_>, limits: Limits, host: &mut dyn Host) -> Outcome {
    let mut state = match compiled(text, Purpose::Library, limits) {
        Ok(state) => state,
        Err(end) => return end,
    };
    match state.load(limits) {
        Ok(functions) if functions.iter().any(|function| function.name == name) => {
            let end = state.call(name, (input.keys, input.arguments), host);
            idle::put(state, &end);
            outcome(end, || name.to_owned())
        }
        Ok(_) => error("ERR Function not found".to_owned()),
        Err(Unready::OutOfFuel) => Outcome::OutOfFuel,
        Err(unready) => error(unreadiness(unready, FUNCTION)),
    }
}

/// The fuel with which it is found out whether a text can be compiled. All builds must agree on it.
const CHECK_FUEL: u64 = 10_000_000;

/// What Redis calls what it compiles.
const SCRIPT: &str = "script (new function)";
const FUNCTION: &str = "function";

/// A state that has run nothing.
fn prepared(text: &[u8], purpose: Purpose) -> Result<State, String> {
    State::new(text, purpose).map_err(|problem| format!("ERR no script can be run: {problem}"))
}

/// A state in which this has been compiled, or how the attempt to run it has ended.
fn compiled(text: &[u8], purpose: Purpose, limits: Limits) -> Result<State, Outcome> {
    if limits.counts_script_alone
        && let Some(state) = idle::take(text, purpose)
    {
        return Ok(state);
    }
    let mut state = prepared(text, purpose).map_err(error)?;
    let done = if limits.counts_script_alone {
        state.compile_to_stay(text, limits.fuel)
    } else {
        state.compile_once(text, limits.fuel)
    };
    let kind = if purpose == Purpose::Script { SCRIPT } else { FUNCTION };
    match done {
        Ok(()) => Ok(state),
        Err(Unready::OutOfFuel) => Err(Outcome::OutOfFuel),
        Err(unready) => Err(error(unreadiness(unready, kind))),
    }
}

fn error(text: String) -> Outcome {
    Outcome::Reply(Reply::Error(text.into_bytes()))
}

/// The error for a text that cannot be run, or has failed while it was loaded.
fn unreadiness(unready: Unready, kind: &str) -> String {
    match unready {
        Unready::Syntax(message) => format!("ERR Error compiling {kind}: {message}"),
        Unready::OutOfFuel if kind == SCRIPT => format!("ERR Error compiling {kind}: out of fuel"),
        Unready::OutOfFuel => "ERR Error registering functions: out of fuel".to_owned(),
        Unready::Failed(failure) => {
            format!("ERR Error registering functions: {}", String::from_utf8_lossy(&failure.text))
        }
    }
}

/// How a script of this name has ended.
fn outcome(end: End, name: impl FnOnce() -> String) -> Outcome {
    match end {
        End::Answer(reply) => Outcome::Reply(reply),
        End::OutOfFuel => Outcome::OutOfFuel,
        End::Failed(Failure { mut text, place }) => {
            if let Some((source, line)) = place {
                text.extend_from_slice(format!(" script: {}, on {source}:{line}.", name()).as_bytes());
            }
            Outcome::Reply(Reply::Error(text))
        }
    }
}

#[cfg(test)]
mod tests;
