//! Functions in Rust that scripts call, and their errors.

use mlua::{Function, IntoLua, Lua, MultiValue, Table, Value};

/// Why a function fails.
#[derive(Debug)]
pub(crate) enum Fault {
    /// With this text.
    Text(String),
    /// The argument of this number, from one, is wrong, in this way.
    Argument(usize, String),
    /// Lua itself has failed.
    Lua(mlua::Error),
}

impl From<mlua::Error> for Fault {
    fn from(error: mlua::Error) -> Self {
        Self::Lua(error)
    }
}

/// A failure with this text.
pub(crate) fn fault<T>(text: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Text(text.into()))
}

/// The function that says how much fuel is left, after it has taken some.
struct Fuel(Function);

/// Makes the function known to [`Meter`].
pub(crate) fn set_fuel(lua: &Lua, fuel: Function) {
    lua.set_app_data(Fuel(fuel));
}

/// Takes fuel, and says how much is left: less than 0 if there was not so much.
pub(crate) fn charge(lua: &Lua, units: u64) -> i64 {
    // Numbers of this size are exact.
    let units = units.min(1 << 50) as f64;
    let fuel = lua.app_data_ref::<Fuel>().map(|fuel| fuel.0.clone());
    fuel.and_then(|fuel| fuel.call::<f64>(units).ok()).map_or(-1, |left| left as i64)
}

/// What it costs to look at a value, or to make one.
pub(crate) const VALUE_UNITS: usize = 10;

/// What it costs to read or to write a number.
pub(crate) const NUMBER_UNITS: usize = 30;

/// Counts the work of a function that takes more than a step.
pub(crate) struct Meter<'a> {
    lua: &'a Lua,
    left: i64,
    used: u64,
}

impl<'a> Meter<'a> {
    /// Begins to count.
    pub(crate) fn new(lua: &'a Lua) -> Self {
        Self { lua, left: charge(lua, 0), used: 0 }
    }

    /// Counts so many units.
    ///
    /// # Errors
    /// If there is not so much fuel.
    pub(crate) fn count(&mut self, units: usize) -> Result<(), Fault> {
        self.used += units as u64;
        if self.used > self.left.max(0).unsigned_abs() { fault("out of fuel") } else { Ok(()) }
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        charge(self.lua, self.used);
    }
}

/// The name by which the prelude is known to Lua.
pub(crate) const PRELUDE: &str = "=prelude";

/// Where the script stands that has called the function that is executed, as Lua puts it before messages; nothing if that
/// is no Lua function.
fn caller(lua: &Lua) -> Option<String> {
    const CALLER: usize = 2;
    lua.inspect_stack(CALLER, |debug| {
        let source = debug.source();
        (source.what != "C").then(|| {
            let line = debug.current_line().unwrap_or(0);
            format!("{}:{line}: ", source.short_src.as_deref().unwrap_or("?"))
        })
    })
    .flatten()
}

/// Adds a function to a library: see the prelude for what it answers.
pub(crate) fn add(
    lua: &Lua,
    library: &Table,
    name: &'static str,
    function: impl Fn(&Lua, &[Value]) -> Result<MultiValue, Fault> + 'static,
) -> mlua::Result<()> {
    let native = lua.create_function(move |lua, arguments: MultiValue| {
        let failure = match function(lua, &arguments.into_vec()) {
            Ok(mut results) => {
                results.push_front(Value::Boolean(true));
                return Ok(results);
            }
            Err(failure) => failure,
        };
        let caller = caller(lua);
        let text = match failure {
            Fault::Lua(error) => return Err(error),
            Fault::Text(text) => text,
            Fault::Argument(number, problem) => {
                let name = if caller.is_some() { name } else { "?" };
                format!("bad argument #{number} to '{name}' ({problem})")
            }
        };
        let text = lua.create_string(caller.unwrap_or_default() + &text)?;
        Ok(MultiValue::from_iter([Value::Boolean(false), Value::String(text)]))
    })?;
    library.raw_set(name, native)
}

/// One result.
pub(crate) fn one(lua: &Lua, result: impl IntoLua) -> Result<MultiValue, Fault> {
    Ok(MultiValue::from_iter([result.into_lua(lua)?]))
}

/// What Lua calls the type of an argument.
fn type_name(argument: Option<&Value>) -> &'static str {
    match argument {
        None => "no value",
        Some(Value::Integer(_) | Value::Number(_)) => "number",
        Some(other) => lua_type(other),
    }
}

/// What Lua calls the type of a value.
pub(crate) fn lua_type(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Boolean(_) => "boolean",
        Value::Integer(_) | Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Table(_) => "table",
        Value::Function(_) => "function",
        Value::Thread(_) => "thread",
        _ => "userdata",
    }
}

/// The argument of this number, from one, as a number: a string that is one will do.
pub(crate) fn number(lua: &Lua, arguments: &[Value], at: usize) -> Result<f64, Fault> {
    let argument = arguments.get(at - 1);
    let found = match argument {
        Some(Value::Integer(integer)) => Some(*integer as f64),
        Some(Value::Number(number)) => Some(*number),
        Some(string @ Value::String(_)) => lua.coerce_number(string.clone())?,
        _ => None,
    };
    found.ok_or_else(|| Fault::Argument(at, format!("number expected, got {}", type_name(argument))))
}

/// The argument of this number, from one, as a string: a number will do.
pub(crate) fn string(lua: &Lua, arguments: &[Value], at: usize) -> Result<mlua::LuaString, Fault> {
    let argument = arguments.get(at - 1);
    let found = match argument {
        Some(Value::String(string)) => Some(string.clone()),
        Some(Value::Integer(integer)) => {
            Some(lua.create_string(crate::number::general(*integer as f64, 14))?)
        }
        Some(Value::Number(number)) => Some(lua.create_string(crate::number::general(*number, 14))?),
        _ => None,
    };
    found.ok_or_else(|| Fault::Argument(at, format!("string expected, got {}", type_name(argument))))
}

/// A number as an integer, where it is cut as C cuts it on x86.
pub(crate) fn integer(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}
