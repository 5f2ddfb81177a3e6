//! The library `bit`: operations on the bits of numbers of 32 bits, with a sign.

use crate::native::{Fault, add, number, one};
use mlua::{Lua, Table, Value};

/// The library.
pub(crate) fn library(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let put = |name, function: fn(&Lua, &[Value]) -> Result<i32, Fault>| {
        add(lua, &table, name, move |lua, arguments| one(lua, f64::from(function(lua, arguments)?)))
    };
    put("tobit", |lua, arguments| bits(lua, arguments, 1))?;
    put("bnot", |lua, arguments| Ok(!bits(lua, arguments, 1)?))?;
    put("bswap", |lua, arguments| Ok(bits(lua, arguments, 1)?.swap_bytes()))?;
    put("band", |lua, arguments| fold(lua, arguments, |first, second| first & second))?;
    put("bor", |lua, arguments| fold(lua, arguments, |first, second| first | second))?;
    put("bxor", |lua, arguments| fold(lua, arguments, |first, second| first ^ second))?;
    put("lshift", |lua, arguments| shift(lua, arguments, |number, by| number << by))?;
    put("rshift", |lua, arguments| {
        shift(lua, arguments, |number, by| (number.cast_unsigned() >> by).cast_signed())
    })?;
    put("arshift", |lua, arguments| shift(lua, arguments, |number, by| number >> by))?;
    put("rol", |lua, arguments| shift(lua, arguments, i32::rotate_left))?;
    put("ror", |lua, arguments| shift(lua, arguments, i32::rotate_right))?;
    add(lua, &table, "tohex", |lua, arguments| {
        let number = bits(lua, arguments, 1)?;
        let digits = if arguments.len() < 2 { 8 } else { bits(lua, arguments, 2)? };
        let text = if digits < 0 { format!("{number:08X}") } else { format!("{number:08x}") };
        let shown = (digits.unsigned_abs() as usize).min(8);
        one(lua, &text[8 - shown..])
    })?;
    Ok(table)
}

/// An argument as 32 bits: rounded, and what is above them is cut off.
fn bits(lua: &Lua, arguments: &[Value], at: usize) -> Result<i32, Fault> {
    // Added to a number, this leaves its integer in the lowest bits of the sum.
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    Ok((number(lua, arguments, at)? + SHIFT).to_bits() as i32)
}

fn fold(lua: &Lua, arguments: &[Value], combine: impl Fn(i32, i32) -> i32) -> Result<i32, Fault> {
    let mut result = bits(lua, arguments, 1)?;
    for at in 2..=arguments.len() {
        result = combine(result, bits(lua, arguments, at)?);
    }
    Ok(result)
}

fn shift(lua: &Lua, arguments: &[Value], shifted: impl Fn(i32, u32) -> i32) -> Result<i32, Fault> {
    let number = bits(lua, arguments, 1)?;
    let by = bits(lua, arguments, 2)?;
    Ok(shifted(number, by.cast_unsigned() & 31))
}
