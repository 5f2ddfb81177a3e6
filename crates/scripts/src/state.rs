//! States of Lua in which one script is run.
//!
//! What an earlier script has left behind must decide nothing: a state is used for one script alone, and made again what it
//! was before that runs once more. Memory is not collected while a script runs, so that no answer depends on when it would
//! be; fuel limits how much there can be.

use crate::native::{self, Meter, PRELUDE, VALUE_UNITS, add, charge, one};
use crate::number::general;
use crate::reply::Reply;
use crate::{Host, Limits, bits, flags, json, messagepack, sha1_hex, structs};
use core::cell::Cell;
use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaOptions, MultiValue, StdLib, Table, Value};
use std::rc::Rc;
use std::sync::OnceLock;

/// The version of Redis that scripts find.
const VERSION: &str = "7.0.15";
const VERSION_NUMBER: i64 = 0x0007_000f;

/// Deepest nesting of what a script answers.
const DEPTH_MAX: usize = 60;

/// What is wrong with the text of a script.
pub(crate) enum Unready {
    /// It is no Lua: what Lua says.
    Syntax(String),
    /// It has used up its fuel.
    OutOfFuel,
    /// It has failed, with this.
    Failed(Failure),
}

/// An error that a script has not caught.
pub(crate) struct Failure {
    pub(crate) text: Vec<u8>,
    /// Where it was raised: a source as Lua writes it, and a line.
    pub(crate) place: Option<(String, i64)>,
}

/// What a script has ended with.
pub(crate) enum End {
    Answer(Reply),
    Failed(Failure),
    OutOfFuel,
}

/// A function that a library has registered.
pub(crate) struct Registered {
    pub(crate) name: String,
    pub(crate) description: Option<Vec<u8>>,
    pub(crate) flags: Vec<String>,
}

/// What prepares a state, compiled: that takes longer than most scripts, and is the same each time.
type Compiled = OnceLock<Vec<u8>>;
static SCRIPT_PRELUDE: Compiled = OnceLock::new();
static LIBRARY_PRELUDE: Compiled = OnceLock::new();

/// The function that a text of this crate is. It is compiled in a state of its own, also the first time: scripts may not
/// find out whether it was, for all members execute them.
fn ours(lua: &Lua, compiled: &Compiled, text: &str) -> mlua::Result<Function> {
    let code = match compiled.get() {
        Some(code) => code,
        None => {
            let apart = Lua::new_with(StdLib::NONE, LuaOptions::new())?;
            let function = apart.load(text).set_name(PRELUDE).set_mode(ChunkMode::Text).into_function()?;
            compiled.get_or_init(|| function.dump(false))
        }
    };
    lua.load(code.as_slice()).set_name(PRELUDE).set_mode(ChunkMode::Binary).into_function()
}

/// A state that has run nothing.
pub(crate) struct State {
    lua: Lua,
    begin: Function,
    run: Function,
    /// What belongs to libraries.
    library: Option<LibraryState>,
    /// The script has chosen RESP3.
    is_newer: Rc<Cell<bool>>,
    /// What it has chosen of `cjson`, if it has that.
    choices: Option<json::SharedChoices>,
    /// What is run, if it has been compiled.
    program: Option<Program>,
    /// Units that it took to compile that.
    compiling: u64,
}

/// Something that has been compiled.
enum Program {
    /// It is run once.
    Once(Function),
    /// This text, run again and again; what has been made of it stands in the state: see [`State::compile_to_stay`].
    Stays {
        text: Box<[u8]>,
        /// A function of this side that does nothing. Calling it makes what is made for the first call of any, and once more
        /// for the first after one that has failed with an error of this side.
        probe: Function,
    },
}

/// How libraries are loaded, and their functions called.
struct LibraryState {
    load: Function,
    call: Function,
}

/// What a state is made for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A script.
    Script,
    /// A library.
    Library,
}

impl State {
    /// Prepares a state.
    ///
    /// It has the libraries that the text names: making one takes longer than most scripts.
    pub(crate) fn new(text: &[u8], purpose: Purpose) -> mlua::Result<Self> {
        let options = LuaOptions::new().catch_rust_panics(false);
        let lua = Lua::new_with(StdLib::TABLE | StdLib::STRING | StdLib::MATH, options)?;
        lua.gc_stop();
        let is_newer = Rc::new(Cell::new(false));
        let (native, choices) = natives(&lua, &is_newer, text)?;
        let made: Table = ours(&lua, &SCRIPT_PRELUDE, include_str!("prelude.lua"))?.call(native.clone())?;
        native::set_fuel(&lua, made.raw_get("fuel")?);
        let library = match purpose {
            Purpose::Script => None,
            Purpose::Library => {
                let prelude = ours(&lua, &LIBRARY_PRELUDE, include_str!("library.lua"))?;
                let made: Table = prelude.call((native, made.raw_get::<Table>("kit")?))?;
                Some(LibraryState { load: made.raw_get("load")?, call: made.raw_get("call")? })
            }
        };
        let (begin, run): (Function, _) = (made.raw_get("begin")?, made.raw_get("run")?);
        Ok(Self { begin, run, lua, library, is_newer, choices, program: None, compiling: 0 })
    }

    /// The function that this text is, and what is left of this much fuel: compiling may take long, too.
    fn compile(&self, text: &[u8], name: &str, fuel: u64) -> Result<(Function, f64), Unready> {
        self.begin.call::<()>((fuel as f64, 0)).map_err(|_| Unready::OutOfFuel)?;
        charge(&self.lua, text.len() as u64 / BYTES_COMPILED_FOR_ONE_UNIT);
        let text = flags::without_first_line(text);
        let chunk = self.lua.load(text).set_name(name).set_mode(ChunkMode::Text);
        let compiled = chunk.into_function();
        let left = charge(&self.lua, 0);
        if left < 0 {
            return Err(Unready::OutOfFuel);
        }
        let function = compiled.map_err(|error| {
            let message = match error {
                mlua::Error::SyntaxError { message, .. } => message,
                other => other.to_string(),
            };
            Unready::Syntax(message)
        })?;
        Ok((function, left as f64))
    }

    /// Says whether a script is Lua that can be compiled with this much fuel.
    pub(crate) fn check(&self, text: &[u8], fuel: u64) -> Result<(), Unready> {
        self.compile(text, "@user_script", fuel).map(drop)
    }

    /// Compiles a text with this much fuel, to run it once.
    pub(crate) fn compile_once(&mut self, text: &[u8], fuel: u64) -> Result<(), Unready> {
        let name = if self.library.is_some() { "@user_function" } else { "@user_script" };
        let (function, left) = self.compile(text, name, fuel)?;
        self.compiling = fuel - left as u64;
        self.program = Some(Program::Once(function));
        Ok(())
    }

    /// As [`compile_once`](Self::compile_once), to run it as often as the state [settles](Self::settle). Fuel is taken for what the
    /// script does from now on, and not for what the functions of this side do for it, which differs from the first time to
    /// the next.
    pub(crate) fn compile_to_stay(&mut self, text: &[u8], fuel: u64) -> Result<(), Unready> {
        self.compile_once(text, fuel)?;
        let Some(Program::Once(function)) = self.program.take() else { return Ok(()) };
        let failed = |_: mlua::Error| Unready::OutOfFuel;
        let probe = self.lua.create_function(|_, ()| Ok(())).map_err(failed)?;
        probe.call::<()>(()).map_err(failed)?;
        let runs = self.library.is_none().then(|| self.run.clone());
        self.begin.call::<()>((function, runs)).map_err(failed)?;
        self.program = Some(Program::Stays { text: text.into(), probe });
        Ok(())
    }

    /// The text that stays in it, if one does.
    pub(crate) fn text(&self) -> Option<&[u8]> {
        match &self.program {
            Some(Program::Stays { text, .. }) => Some(text),
            _ => None,
        }
    }

    /// What it was made for.
    pub(crate) const fn purpose(&self) -> Purpose {
        if self.library.is_some() { Purpose::Library } else { Purpose::Script }
    }

    /// Makes it again what it was when the program had been compiled. False if a script could find out that another one has
    /// run before it.
    pub(crate) fn settle(&self) -> bool {
        let Some(Program::Stays { probe, .. }) = &self.program else { return false };
        self.is_newer.set(false);
        if let Some(choices) = &self.choices {
            choices.reset();
        }
        let unloaded = self.library.as_ref().is_none_or(|library| library.load.call::<()>(()).is_ok());
        unloaded && probe.call::<()>(()).is_ok() && self.begin.call::<bool>(true).unwrap_or(false)
    }

    /// What is run, and what is left of this much fuel, as if it were compiled now.
    fn program(&mut self, fuel: u64) -> Result<(Function, f64), Unready> {
        let left = fuel.checked_sub(self.compiling).ok_or(Unready::OutOfFuel)?;
        let function = if self.text().is_some() {
            self.begin.call(false).map_err(|_| Unready::OutOfFuel)?
        } else if let Some(Program::Once(function)) = self.program.take() {
            function
        } else {
            return Err(Unready::OutOfFuel);
        };
        Ok((function, left as f64))
    }

    /// Runs the script that has been compiled.
    pub(crate) fn run(
        &mut self,
        (keys, arguments): (&[&[u8]], &[&[u8]]),
        limits: Limits,
        host: &mut dyn Host,
    ) -> Result<End, Unready> {
        let (script, fuel) = self.program(limits.fuel)?;
        let ended = self.strings(keys).and_then(|keys| {
            let arguments = self.strings(arguments)?;
            self.with_host(host, |calls| self.run.call((script, calls, keys, arguments, fuel, seed(limits))))
        });
        Ok(self.end(ended))
    }

    /// Loads the library that has been compiled: what it has registered.
    pub(crate) fn load(&mut self, limits: Limits) -> Result<Vec<Registered>, Unready> {
        let (script, fuel) = self.program(limits.fuel)?;
        let Some(library) = &self.library else { return Err(Unready::OutOfFuel) };
        let loaded = library.load.call::<(bool, Value)>((script, fuel, seed(limits)));
        match loaded {
            Ok((true, Value::Table(list))) if !self.is_exhausted() => {
                let functions = list.sequence_values::<Table>().map(|each| registered(&each?));
                functions.collect::<mlua::Result<_>>().map_err(|_| Unready::OutOfFuel)
            }
            Ok((_, failure)) if !self.is_exhausted() => Err(Unready::Failed(failed(&failure))),
            _ => Err(Unready::OutOfFuel),
        }
    }

    /// Calls a function of the library that has been loaded.
    pub(crate) fn call(
        &self,
        name: &str,
        (keys, arguments): (&[&[u8]], &[&[u8]]),
        host: &mut dyn Host,
    ) -> End {
        let ended = self.strings(keys).and_then(|keys| {
            let arguments = self.strings(arguments)?;
            let Some(library) = &self.library else { return Ok((true, Value::Nil)) };
            self.with_host(host, |calls| library.call.call((name, calls, keys, arguments)))
        });
        self.end(ended)
    }

    fn strings(&self, list: &[&[u8]]) -> mlua::Result<Table> {
        let table = self.lua.create_table_with_capacity(list.len(), 0)?;
        for (at, text) in list.iter().enumerate() {
            table.raw_set(at + 1, self.lua.create_string(text)?)?;
        }
        Ok(table)
    }

    fn is_exhausted(&self) -> bool {
        charge(&self.lua, 0) < 0
    }

    /// Calls something with the function by which scripts call commands.
    fn with_host<R>(
        &self,
        host: &mut dyn Host,
        call: impl FnOnce(Function) -> mlua::Result<R>,
    ) -> mlua::Result<R> {
        self.lua.scope(|scope| {
            let calls = scope
                .create_function_mut(|lua, words: MultiValue| self.command(lua, host, &words.into_vec()))?;
            call(calls)
        })
    }

    /// Has a command executed: whether it has succeeded, and its reply.
    fn command(&self, lua: &Lua, host: &mut dyn Host, words: &[Value]) -> mlua::Result<(bool, Value)> {
        let refuse = |text: &str| {
            let table = lua.create_table()?;
            table.raw_set("err", text)?;
            Ok((false, Value::Table(table)))
        };
        if words.is_empty() {
            return refuse("ERR Please specify at least one argument for this redis lib call");
        }
        // Before any is copied: one text may stand in a thousand places.
        let bytes: usize =
            words.iter().map(|word| word.as_string().map_or(0, |text| text.as_bytes().len())).sum();
        let left = charge(lua, CALL_UNITS + (words.len() * VALUE_UNITS + bytes / 16) as u64);
        let Ok(left) = u64::try_from(left) else { return refuse("out of fuel") };
        let mut taken = Vec::with_capacity(words.len());
        for word in words {
            taken.push(match word {
                Value::String(text) => text.as_bytes().to_vec(),
                Value::Integer(integer) => general(*integer as f64, 17).into_bytes(),
                Value::Number(number) => general(*number, 17).into_bytes(),
                _ => return refuse("ERR Command arguments must be strings or integers"),
            });
        }
        let words: Vec<&[u8]> = taken.iter().map(Vec::as_slice).collect();
        let (reply, units) = host.call(&words, self.is_newer.get(), left);
        let spent = if host.is_doomed() { u64::MAX } else { units + reply.weight() };
        if charge(lua, spent) < 0 {
            return refuse("out of fuel");
        }
        let is_error = matches!(reply, Reply::Error(_));
        Ok((!is_error, self.to_lua(reply)?))
    }

    /// A reply as a script finds it.
    fn to_lua(&self, reply: Reply) -> mlua::Result<Value> {
        let lua = &self.lua;
        let is_newer = self.is_newer.get();
        let text = |bytes: &[u8]| lua.create_string(bytes).map(Value::String);
        let named = |name: &str, value: Value| {
            let table = lua.create_table()?;
            table.raw_set(name, value)?;
            Ok(Value::Table(table))
        };
        match reply {
            Reply::Nil if is_newer => Ok(Value::Nil),
            Reply::Nil => Ok(Value::Boolean(false)),
            Reply::Status(status) => named("ok", text(&status)?),
            Reply::Error(message) => {
                let table = lua.create_table()?;
                table.raw_set("err", text(&message)?)?;
                table.raw_set("ignore_error_stats_update", true)?;
                Ok(Value::Table(table))
            }
            Reply::Integer(integer) => Ok(Value::Number(integer as f64)),
            Reply::Double(number) if is_newer => named("double", Value::Number(number)),
            Reply::Double(number) => text(general(number, 17).as_bytes()),
            Reply::Boolean(flag) if is_newer => Ok(Value::Boolean(flag)),
            Reply::Boolean(flag) => Ok(Value::Number(f64::from(u8::from(flag)))),
            Reply::BigNumber(digits) if is_newer => named("big_number", text(&digits)?),
            Reply::BigNumber(digits) => text(&digits),
            Reply::Verbatim(kind, bytes) if is_newer => {
                let table = lua.create_table()?;
                table.raw_set("format", text(&kind)?)?;
                table.raw_set("string", text(&bytes)?)?;
                named("verbatim_string", Value::Table(table))
            }
            Reply::Bulk(bytes) | Reply::Verbatim(_, bytes) => text(&bytes),
            Reply::Array(parts) => self.list(parts.into_iter()),
            Reply::Pairs(pairs) if is_newer => {
                self.list(pairs.into_iter().map(|(first, second)| Reply::Array(vec![first, second])))
            }
            Reply::Map(pairs) if is_newer => {
                let table = lua.create_table()?;
                for (name, value) in pairs {
                    table.raw_set(self.to_lua(name)?, self.to_lua(value)?)?;
                }
                named("map", Value::Table(table))
            }
            Reply::Map(pairs) | Reply::Pairs(pairs) => {
                self.list(pairs.into_iter().flat_map(|(first, second)| [first, second]))
            }
            Reply::Set(members) if is_newer => {
                let table = lua.create_table()?;
                for member in members {
                    table.raw_set(self.to_lua(member)?, true)?;
                }
                named("set", Value::Table(table))
            }
            Reply::Set(members) => self.list(members.into_iter()),
        }
    }

    fn list(&self, parts: impl Iterator<Item = Reply>) -> mlua::Result<Value> {
        let table = self.lua.create_table()?;
        for (at, part) in parts.enumerate() {
            table.raw_set(at + 1, self.to_lua(part)?)?;
        }
        Ok(Value::Table(table))
    }

    /// What a script has ended with, told from what `xpcall` has answered.
    fn end(&self, ended: mlua::Result<(bool, Value)>) -> End {
        if self.is_exhausted() {
            return End::OutOfFuel;
        }
        match ended {
            Ok((true, value)) => self.reply(&value).map_or(End::OutOfFuel, End::Answer),
            Ok((false, failure)) => End::Failed(failed(&failure)),
            Err(error) => End::Failed(Failure { text: format!("ERR {error}").into_bytes(), place: None }),
        }
    }

    /// What a script answers as a reply; `None` if that takes more fuel than it has.
    fn reply(&self, value: &Value) -> Option<Reply> {
        let mut meter = Meter::new(&self.lua);
        self.reply_of(value, 0, &mut meter).ok()
    }

    fn reply_of(&self, value: &Value, depth: usize, meter: &mut Meter<'_>) -> Result<Reply, native::Fault> {
        meter.count(VALUE_UNITS)?;
        Ok(match value {
            Value::String(text) => Reply::Bulk(counted(text, meter)?),
            Value::Integer(integer) => Reply::Integer(*integer),
            Value::Number(number) => Reply::Integer(native::integer(*number)),
            Value::Boolean(flag) if self.is_newer.get() => Reply::Boolean(*flag),
            Value::Boolean(true) => Reply::Integer(1),
            Value::Table(_) if depth == DEPTH_MAX => Reply::Error(b"ERR reached lua stack limit".to_vec()),
            Value::Table(table) => self.reply_of_table(table, depth + 1, meter)?,
            _ => Reply::Nil,
        })
    }

    fn reply_of_table(
        &self,
        table: &Table,
        depth: usize,
        meter: &mut Meter<'_>,
    ) -> Result<Reply, native::Fault> {
        meter.count(TABLE_UNITS)?;
        if let Some(text) = counted_field(table, "err", meter)? {
            return Ok(Reply::Error(line(text)));
        }
        if let Some(text) = counted_field(table, "ok", meter)? {
            return Ok(Reply::Status(line(text)));
        }
        match table.raw_get::<Value>("double")? {
            Value::Integer(integer) => return Ok(Reply::Double(integer as f64)),
            Value::Number(number) => return Ok(Reply::Double(number)),
            _ => {}
        }
        if let Value::Table(map) = table.raw_get("map")? {
            let pair = |pair: mlua::Result<(Value, Value)>| {
                let (name, value) = pair?;
                Ok((self.reply_of(&name, depth, meter)?, self.reply_of(&value, depth, meter)?))
            };
            let pairs: Result<_, native::Fault> = map.pairs::<Value, Value>().map(pair).collect();
            return Ok(Reply::Map(pairs?));
        }
        if let Value::Table(set) = table.raw_get("set")? {
            let member = |pair: mlua::Result<(Value, Value)>| self.reply_of(&pair?.0, depth, meter);
            let members: Result<_, native::Fault> = set.pairs::<Value, Value>().map(member).collect();
            return Ok(Reply::Set(members?));
        }
        if let Some(digits) = counted_field(table, "big_number", meter)? {
            return Ok(Reply::BigNumber(line(digits)));
        }
        if let Value::Table(verbatim) = table.raw_get("verbatim_string")?
            && let Some(kind) = counted_field(&verbatim, "format", meter)?
            && let Some(text) = counted_field(&verbatim, "string", meter)?
        {
            return Ok(Reply::Verbatim(kind, text));
        }
        let mut parts = Vec::new();
        loop {
            let part: Value = table.raw_get(parts.len() + 1)?;
            if part.is_nil() {
                return Ok(Reply::Array(parts));
            }
            parts.push(self.reply_of(&part, depth, meter)?);
        }
    }
}

/// What a call of a command costs besides what it does.
const CALL_UNITS: u64 = 100;

/// What it costs to look into a table that a script answers: it may be a reply of any kind.
const TABLE_UNITS: usize = 150;

/// Bytes of a text that are compiled for one unit, besides what its parts cost.
const BYTES_COMPILED_FOR_ONE_UNIT: u64 = 4;

/// The seed of `math.random`, as its generator wants it.
fn seed(limits: Limits) -> f64 {
    const BITS: u64 = 48;
    (limits.seed >> (64 - BITS)) as f64
}

/// The functions that the prelude makes its libraries of.
fn natives(
    lua: &Lua,
    is_newer: &Rc<Cell<bool>>,
    text: &[u8],
) -> mlua::Result<(Table, Option<json::SharedChoices>)> {
    let native = lua.create_table()?;
    native.raw_set("version", VERSION)?;
    native.raw_set("version_number", VERSION_NUMBER)?;
    native.raw_set("null", Value::NULL)?;
    // Whoever looks for a global by a name that is put together may mean any of them.
    let may_mean_any = names(text, "_G");
    let is_named = |name| may_mean_any || names(text, name);
    let mut choices = None;
    if is_named("cjson") {
        let (library, shared) = json::library(lua)?;
        native.raw_set("cjson", library)?;
        choices = Some(shared);
    }
    type Make = fn(&Lua) -> mlua::Result<Table>;
    let others: [(&str, Make); 3] =
        [("cmsgpack", messagepack::library), ("bit", bits::library), ("struct", structs::library)];
    for (name, make) in others {
        if is_named(name) {
            native.raw_set(name, make(lua)?)?;
        }
    }
    add(lua, &native, "sha1hex", |lua, arguments| {
        let text = match arguments {
            [Value::String(text), ..] => text.as_bytes().to_vec(),
            [Value::Integer(_) | Value::Number(_), ..] => {
                native::string(lua, arguments, 1)?.as_bytes().to_vec()
            }
            _ => Vec::new(),
        };
        Meter::new(lua).count(text.len() / 4)?;
        one(lua, lua.create_string(sha1_hex(&text))?)
    })?;
    let is_newer = Rc::clone(is_newer);
    add(lua, &native, "setresp", move |lua, arguments| {
        is_newer.set(native::number(lua, arguments, 1)? > 2.0);
        Ok(MultiValue::new())
    })?;
    native.raw_set(
        "is_name",
        lua.create_function(|_, name: mlua::LuaString| Ok(flags::is_name(&name.to_string_lossy())))?,
    )?;
    native.raw_set(
        "is_flag",
        lua.create_function(|_, name: mlua::LuaString| {
            Ok(flags::Flags::default().add(&name.to_string_lossy()))
        })?,
    )?;
    native.raw_set("where", lua.create_function(|lua, ()| Ok(place(lua)))?)?;
    Ok((native, choices))
}

/// True if a text has this word in it.
fn names(text: &[u8], word: &str) -> bool {
    text.windows(word.len()).any(|part| part == word.as_bytes())
}

/// Where the innermost function of the script stands: its source, as Lua writes it, and the line.
fn place(lua: &Lua) -> (Option<String>, Option<i64>) {
    // Below are this function, and the one that has called it.
    const FIRST: usize = 2;
    const DEPTH_MAX: usize = 64;
    for level in FIRST..DEPTH_MAX {
        let found = lua.inspect_stack(level, |debug| {
            let source = debug.source();
            let name = source.source.map(std::borrow::Cow::into_owned).unwrap_or_default();
            name.starts_with('@').then(|| (name, debug.current_line().unwrap_or(0) as i64))
        });
        match found {
            None => break,
            Some(Some((source, line))) => return (Some(source), Some(line)),
            Some(None) => {}
        }
    }
    (None, None)
}

/// The bytes of a string that becomes part of a reply.
fn counted(text: &mlua::LuaString, meter: &mut Meter<'_>) -> Result<Vec<u8>, native::Fault> {
    let text = text.as_bytes();
    meter.count(text.len() / 16)?;
    Ok(text.to_vec())
}

/// The bytes of a field that is a string and becomes part of a reply.
fn counted_field(table: &Table, name: &str, meter: &mut Meter<'_>) -> Result<Option<Vec<u8>>, native::Fault> {
    let value: Value = table.raw_get(name)?;
    value.as_string().map(|text| counted(text, meter)).transpose()
}

/// A field that is a string.
fn bytes_of(table: &Table, name: &str) -> mlua::Result<Option<Vec<u8>>> {
    let value: Value = table.raw_get(name)?;
    Ok(if let Value::String(text) = value { Some(text.as_bytes().to_vec()) } else { None })
}

/// A text that fits on one line.
fn line(mut text: Vec<u8>) -> Vec<u8> {
    text.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n')).for_each(|byte| *byte = b' ');
    text
}

/// What the prelude says about an error.
fn failed(failure: &Value) -> Failure {
    let unknown = || Failure { text: b"ERR unknown error".to_vec(), place: None };
    let Value::Table(table) = failure else {
        return match failure {
            Value::String(text) => Failure { text: [b"ERR ", &text.as_bytes()[..]].concat(), place: None },
            _ => unknown(),
        };
    };
    let Ok(Some(text)) = bytes_of(table, "err") else { return unknown() };
    let source = bytes_of(table, "source").ok().flatten();
    let at = table.raw_get::<Option<i64>>("line").ok().flatten();
    let place = source.zip(at).map(|(source, at)| (String::from_utf8_lossy(&source).into_owned(), at));
    Failure { text: line(text), place }
}

fn registered(table: &Table) -> mlua::Result<Registered> {
    let name = table.raw_get::<mlua::LuaString>(1)?.to_string_lossy();
    let description: Option<mlua::LuaString> = table.raw_get(2)?;
    let flags: Table = table.raw_get(3)?;
    let flags = flags.sequence_values::<mlua::LuaString>();
    Ok(Registered {
        name,
        description: description.map(|text| text.as_bytes().to_vec()),
        flags: flags.map(|flag| Ok(flag?.to_string_lossy())).collect::<mlua::Result<_>>()?,
    })
}
