//! The library `struct`: values as the bytes of structures of C.

use crate::native::{Fault, Meter, VALUE_UNITS, add, fault, integer, number, one, string};
use mlua::{Lua, MultiValue, Table, Value};

/// The longest integer, in bytes.
const INTEGER_BYTES_MAX: usize = 32;

/// The library.
pub(crate) fn library(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    add(lua, &table, "pack", pack)?;
    add(lua, &table, "unpack", unpack)?;
    add(lua, &table, "size", size)?;
    Ok(table)
}

/// One part of a format.
#[derive(Clone, Copy)]
struct Part {
    option: u8,
    size: usize,
    /// Bytes before it, so that it stands where it is to stand.
    padding: usize,
}

/// A format that is read from its beginning.
struct Format<'a> {
    rest: &'a [u8],
    is_little: bool,
    align: usize,
}

impl<'a> Format<'a> {
    const fn new(text: &'a [u8]) -> Self {
        Self { rest: text, is_little: true, align: 1 }
    }

    /// The next part that stands for bytes at `position`.
    fn next(&mut self, position: usize) -> Result<Option<Part>, Fault> {
        while let Some((option, rest)) = self.rest.split_first() {
            // A C string ends there.
            if *option == 0 {
                break;
            }
            self.rest = rest;
            let size = match option {
                b'b' | b'B' | b'x' => 1,
                b'h' | b'H' => 2,
                b'l' | b'L' | b'T' | b'd' => 8,
                b'f' => 4,
                b'i' | b'I' => match self.digits(4)? {
                    size if size > INTEGER_BYTES_MAX => {
                        return fault(format!(
                            "integral size {size} is larger than limit of {INTEGER_BYTES_MAX}"
                        ));
                    }
                    size => size,
                },
                b'c' => self.digits(1)?,
                b's' => 0,
                other => {
                    self.control(*other)?;
                    continue;
                }
            };
            let padding = if size == 0 || *option == b'c' { 0 } else { self.padding(size, position) };
            return Ok(Some(Part { option: *option, size, padding }));
        }
        Ok(None)
    }

    const fn padding(&self, size: usize, position: usize) -> usize {
        let size = if size > self.align { self.align } else { size };
        if size > 1 { (size - (position & (size - 1))) & (size - 1) } else { 0 }
    }

    fn control(&mut self, option: u8) -> Result<(), Fault> {
        match option {
            b' ' => {}
            b'>' => self.is_little = false,
            b'<' => self.is_little = true,
            b'!' => {
                let align = self.digits(8)?;
                if !align.is_power_of_two() {
                    return fault(format!("alignment {align} is not a power of 2"));
                }
                self.align = align;
            }
            other => {
                let option = char::from(other);
                return Err(Fault::Argument(1, format!("invalid format option '{option}'")));
            }
        }
        Ok(())
    }

    /// The number that stands next, or a default.
    fn digits(&mut self, default: usize) -> Result<usize, Fault> {
        let length = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length == 0 {
            return Ok(default);
        }
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest;
        let value = core::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<i32>().ok());
        value.map_or_else(|| fault("integral size overflow"), |value| Ok(value.unsigned_abs() as usize))
    }
}

/// Puts the lowest bytes of a number in their order.
fn put_integer(out: &mut Vec<u8>, value: u64, size: usize, is_little: bool) {
    let byte = |at: usize| if at < 8 { (value >> (8 * at)) as u8 } else { 0 };
    if is_little {
        out.extend((0..size).map(byte));
    } else {
        out.extend((0..size).rev().map(byte));
    }
}

fn take_integer(bytes: &[u8], is_little: bool, is_signed: bool) -> f64 {
    let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
    let value = if is_little { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) };
    if !is_signed {
        return value as f64;
    }
    let unused = 64_usize.saturating_sub(8 * bytes.len());
    if unused == 64 { 0.0 } else { (value.cast_signed() << unused >> unused) as f64 }
}

fn pack(lua: &Lua, arguments: &[Value]) -> Result<MultiValue, Fault> {
    let format = string(lua, arguments, 1)?;
    let format = format.as_bytes();
    let mut format = Format::new(&format);
    let (mut out, mut at, mut meter) = (Vec::new(), 2, Meter::new(lua));
    while let Some(part) = format.next(out.len())? {
        meter.count(VALUE_UNITS + (part.padding + part.size) / 16)?;
        out.resize(out.len() + part.padding, 0);
        let order = |mut bytes: Vec<u8>| {
            if !format.is_little {
                bytes.reverse();
            }
            bytes
        };
        match part.option {
            b'x' => {
                out.push(0);
                continue;
            }
            b'f' => out.extend(order((canonical(number(lua, arguments, at)?) as f32).to_le_bytes().to_vec())),
            b'd' => out.extend(order(canonical(number(lua, arguments, at)?).to_le_bytes().to_vec())),
            b'c' | b's' => {
                let text = string(lua, arguments, at)?;
                let text = text.as_bytes();
                let size = if part.size == 0 { text.len() } else { part.size };
                let Some(text) = text.get(..size) else {
                    return Err(Fault::Argument(at + 1, "string too short".into()));
                };
                meter.count(size / 16)?;
                out.extend_from_slice(text);
                if part.option == b's' {
                    out.push(0);
                }
            }
            _ => {
                let number = number(lua, arguments, at)?;
                let value = if number < 0.0 { integer(number).cast_unsigned() } else { unsigned(number) };
                put_integer(&mut out, value, part.size, format.is_little);
            }
        }
        at += 1;
    }
    one(lua, lua.create_string(&out)?)
}

/// A number whose bits are the same everywhere: of those that are none there are many.
const fn canonical(number: f64) -> f64 {
    if number.is_nan() { f64::from_bits(0xfff8_0000_0000_0000) } else { number }
}

/// A number that is not negative as an integer, cut as C cuts it on x86.
fn unsigned(number: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    match number {
        number if number >= 2.0 * HALF => 0,
        number if number >= HALF => (number - HALF) as u64 + (1 << 63),
        number => integer(number).cast_unsigned(),
    }
}

fn unpack(lua: &Lua, arguments: &[Value]) -> Result<MultiValue, Fault> {
    let too_short = || Fault::Argument(2, "data string too short".into());
    let (format, data) = (string(lua, arguments, 1)?, string(lua, arguments, 2)?);
    let (format, data) = (format.as_bytes(), data.as_bytes());
    let position = match arguments.get(2) {
        None | Some(Value::Nil) => 1,
        Some(_) => integer(number(lua, arguments, 3)?),
    };
    if position < 1 {
        return Err(Fault::Argument(3, "offset must be 1 or greater".into()));
    }
    let mut position = usize::try_from(position - 1).unwrap_or(usize::MAX);
    let mut format = Format::new(&format);
    let (mut results, mut meter) = (Vec::<Value>::new(), Meter::new(lua));
    while let Some(mut part) = format.next(position)? {
        meter.count(VALUE_UNITS)?;
        position = position.saturating_add(part.padding);
        let taken = |position: usize, size: usize| data.get(position..position.saturating_add(size));
        let bytes = taken(position, part.size).ok_or_else(too_short)?;
        let mut order = bytes.to_vec();
        if !format.is_little {
            order.reverse();
        }
        match part.option {
            b'x' => {}
            b'f' => {
                let bytes = order.try_into().unwrap_or_default();
                results.push(Value::Number(f64::from(f32::from_le_bytes(bytes))));
            }
            b'd' => results.push(Value::Number(f64::from_le_bytes(order.try_into().unwrap_or_default()))),
            b'c' => {
                let mut bytes = bytes;
                if part.size == 0 {
                    let Some(Value::Number(size)) = results.pop() else {
                        return fault("format 'c0' needs a previous size");
                    };
                    part.size = usize::try_from(integer(size)).unwrap_or(usize::MAX);
                    bytes = taken(position, part.size).ok_or_else(too_short)?;
                }
                results.push(Value::String(lua.create_string(bytes)?));
            }
            b's' => {
                let rest = data.get(position..).unwrap_or_default();
                let Some(length) = rest.iter().position(|byte| *byte == 0) else {
                    return fault("unfinished string in data");
                };
                results.push(Value::String(lua.create_string(&rest[..length])?));
                part.size = length + 1;
            }
            option => {
                let value = take_integer(bytes, format.is_little, option.is_ascii_lowercase());
                results.push(Value::Number(value));
            }
        }
        position += part.size;
    }
    results.push(Value::Number((position + 1) as f64));
    within(results)
}

/// The results of a function, if a script can take so many.
pub(crate) fn within(results: Vec<Value>) -> Result<MultiValue, Fault> {
    const RESULTS_MAX: usize = 7_000;
    if results.len() > RESULTS_MAX {
        return fault("stack overflow (too many results)");
    }
    Ok(MultiValue::from_iter(results))
}

fn size(lua: &Lua, arguments: &[Value]) -> Result<MultiValue, Fault> {
    let text = string(lua, arguments, 1)?;
    let text = text.as_bytes();
    let mut format = Format::new(&text);
    let mut position: usize = 0;
    while let Some(part) = format.next(position)? {
        match part.option {
            b's' => return Err(Fault::Argument(1, "variable-size format for option 's'".into())),
            b'c' if part.size == 0 => {
                return Err(Fault::Argument(1, "variable-length format for option 'c0'".into()));
            }
            _ => {}
        }
        if position + part.padding + part.size > i32::MAX as usize {
            return Err(Fault::Argument(1, "item too large".into()));
        }
        position += part.padding + part.size;
    }
    one(lua, position as f64)
}
