//! The library `cmsgpack`: values in MessagePack.

use crate::native::{Fault, Meter, VALUE_UNITS, add, fault, integer, number, one, string};
use crate::structs::within;
use mlua::{Lua, MultiValue, Table, Value};

/// Tables in tables beyond this depth become nil.
const ENCODED_DEPTH_MAX: usize = 16;

/// Deepest nesting of what is decoded: each level takes some of the stack.
const DECODED_DEPTH_MAX: usize = 1_000;

/// The library.
pub(crate) fn library(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    add(lua, &table, "pack", pack)?;
    add(lua, &table, "unpack", |lua, arguments| unpack(lua, arguments, 0, 0, true))?;
    add(lua, &table, "unpack_one", |lua, arguments| {
        let offset = optional(lua, arguments, 2, 0)?;
        unpack(lua, arguments, 1, offset, false)
    })?;
    add(lua, &table, "unpack_limit", |lua, arguments| {
        let limit = integer(number(lua, arguments, 2)?);
        let offset = optional(lua, arguments, 3, 0)?;
        unpack(lua, arguments, limit, offset, false)
    })?;
    Ok(table)
}

fn optional(lua: &Lua, arguments: &[Value], at: usize, default: i64) -> Result<i64, Fault> {
    match arguments.get(at - 1) {
        None | Some(Value::Nil) => Ok(default),
        Some(_) => Ok(integer(number(lua, arguments, at)?)),
    }
}

fn pack(lua: &Lua, arguments: &[Value]) -> Result<MultiValue, Fault> {
    if arguments.is_empty() {
        return Err(Fault::Argument(0, "MessagePack pack needs input.".into()));
    }
    let mut encoder = Encoder { out: Vec::new(), meter: Meter::new(lua) };
    arguments.iter().try_for_each(|value| encoder.value(value, 0))?;
    one(lua, lua.create_string(&encoder.out)?)
}

struct Encoder<'a> {
    out: Vec<u8>,
    meter: Meter<'a>,
}

impl Encoder<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Fault> {
        self.meter.count(VALUE_UNITS)?;
        match value {
            Value::Boolean(flag) => self.out.push(if *flag { 0xc3 } else { 0xc2 }),
            Value::Integer(integer) => self.integer(*integer),
            Value::Number(number) => self.number(*number),
            Value::String(text) => {
                let text = text.as_bytes();
                self.meter.count(text.len() / 4)?;
                self.head(text.len(), 0xa0, 32, [Some(0xd9), Some(0xda), Some(0xdb)]);
                self.out.extend_from_slice(&text);
            }
            Value::Table(table) if depth < ENCODED_DEPTH_MAX => self.table(table, depth)?,
            _ => self.out.push(0xc0),
        }
        Ok(())
    }

    /// The head of something with a length: of one byte if it is below `short`, else one of these with so many bytes.
    fn head(&mut self, length: usize, base: u8, short: usize, codes: [Option<u8>; 3]) {
        let [byte, two, four] = codes;
        match (length, byte) {
            (length, _) if length < short => self.out.push(base | length as u8),
            (0..=0xff, Some(code)) => self.out.extend_from_slice(&[code, length as u8]),
            (0..=0xffff, _) => {
                self.out.extend(two);
                self.out.extend_from_slice(&(length as u16).to_be_bytes());
            }
            _ => {
                self.out.extend(four);
                self.out.extend_from_slice(&(length as u32).to_be_bytes());
            }
        }
    }

    fn integer(&mut self, value: i64) {
        match value {
            0..=127 => self.out.push(value as u8),
            128..=0xff => self.out.extend_from_slice(&[0xcc, value as u8]),
            0x100..=0xffff => self.tagged(0xcd, &(value as u16).to_be_bytes()),
            0x1_0000..=0xffff_ffff => self.tagged(0xce, &(value as u32).to_be_bytes()),
            0x1_0000_0000.. => self.tagged(0xcf, &value.to_be_bytes()),
            -32..0 => self.out.push(value as i8 as u8),
            -128..-32 => self.out.extend_from_slice(&[0xd0, value as i8 as u8]),
            -0x8000..-128 => self.tagged(0xd1, &(value as i16).to_be_bytes()),
            -0x8000_0000..-0x8000 => self.tagged(0xd2, &(value as i32).to_be_bytes()),
            _ => self.tagged(0xd3, &value.to_be_bytes()),
        }
    }

    fn tagged(&mut self, tag: u8, bytes: &[u8]) {
        self.out.push(tag);
        self.out.extend_from_slice(bytes);
    }

    fn number(&mut self, number: f64) {
        let short = number as f32;
        if number == 0.0 {
            // Minus zero is an integer for this format.
            self.out.push(0);
        } else if f64::from(short).to_bits() == number.to_bits() {
            self.tagged(0xca, &short.to_be_bytes());
        } else if number.is_nan() {
            self.tagged(0xcb, &0xfff8_0000_0000_0000_u64.to_be_bytes());
        } else {
            self.tagged(0xcb, &number.to_be_bytes());
        }
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<(), Fault> {
        let (mut count, mut highest, mut is_array) = (0_usize, 0, true);
        for pair in table.pairs::<Value, Value>() {
            self.meter.count(VALUE_UNITS)?;
            count += 1;
            match pair?.0 {
                Value::Integer(key) if key > 0 => highest = highest.max(key),
                _ => is_array = false,
            }
        }
        if is_array && highest == count as i64 {
            self.head(count, 0x90, 16, [None, Some(0xdc), Some(0xdd)]);
            for at in 1..=count {
                self.value(&table.raw_get::<Value>(at)?, depth + 1)?;
            }
        } else {
            self.head(count, 0x80, 16, [None, Some(0xde), Some(0xdf)]);
            for pair in table.pairs::<Value, Value>() {
                let (key, value) = pair?;
                self.value(&key, depth + 1)?;
                self.value(&value, depth + 1)?;
            }
        }
        Ok(())
    }
}

/// Decodes at most `limit` values, or all if that is 0, from `offset` on. If the script did not ask for all, where the next
/// one begins comes first, or -1.
fn unpack(lua: &Lua, arguments: &[Value], limit: i64, offset: i64, all: bool) -> Result<MultiValue, Fault> {
    let text = string(lua, arguments, 1)?;
    let text = text.as_bytes();
    if offset < 0 || limit < 0 {
        return fault(format!(
            "Invalid request to unpack with offset of {offset} and limit of {}.",
            text.len()
        ));
    }
    let Some(rest) = usize::try_from(offset).ok().and_then(|offset| text.get(offset..)) else {
        return fault(format!("Start offset {offset} greater than input length {}.", text.len()));
    };
    let mut decoder = Decoder { lua, rest, meter: Meter::new(lua) };
    decoder.meter.count(rest.len() / 16)?;
    let mut values = Vec::new();
    let limit = if limit == 0 { i64::MAX } else { limit };
    while !decoder.rest.is_empty() && (values.len() as i64) < limit {
        values.push(decoder.value(0)?);
    }
    if !all {
        let next = if decoder.rest.is_empty() { -1.0 } else { (text.len() - decoder.rest.len()) as f64 };
        values.insert(0, Value::Number(next));
    }
    within(values)
}

struct Decoder<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
    meter: Meter<'a>,
}

impl<'a> Decoder<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            return fault("Missing bytes in input.");
        };
        self.rest = rest;
        Ok(taken)
    }

    fn unsigned(&mut self, bytes: usize) -> Result<u64, Fault> {
        Ok(self.take(bytes)?.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    fn signed(&mut self, bytes: usize) -> Result<f64, Fault> {
        let unused = 64 - 8 * bytes as u32;
        Ok((self.unsigned(bytes)?.cast_signed() << unused >> unused) as f64)
    }

    fn value(&mut self, depth: usize) -> Result<Value, Fault> {
        self.meter.count(VALUE_UNITS)?;
        if depth > DECODED_DEPTH_MAX {
            return fault("stack overflow (in function mp_decode_to_lua_type)");
        }
        let tag = self.take(1)?[0];
        Ok(match tag {
            0..0x80 => Value::Number(f64::from(tag)),
            0xe0.. => Value::Number(f64::from(tag as i8)),
            0x80..0x90 => self.map(usize::from(tag & 15), depth)?,
            0x90..0xa0 => self.array(usize::from(tag & 15), depth)?,
            0xa0..0xc0 => self.string(usize::from(tag & 31))?,
            0xc0 => Value::Nil,
            0xc2 => Value::Boolean(false),
            0xc3 => Value::Boolean(true),
            0xca => Value::Number(f64::from(f32::from_bits(self.unsigned(4)? as u32))),
            0xcb => Value::Number(f64::from_bits(self.unsigned(8)?)),
            0xcc..=0xcf => Value::Number(self.unsigned(1 << (tag - 0xcc))? as f64),
            0xd0..=0xd3 => Value::Number(self.signed(1 << (tag - 0xd0))?),
            0xc4..=0xc6 => {
                let length = self.unsigned(1 << (tag - 0xc4))? as usize;
                self.string(length)?
            }
            0xd9..=0xdb => {
                let length = self.unsigned(1 << (tag - 0xd9))? as usize;
                self.string(length)?
            }
            0xdc | 0xdd => {
                let length = self.unsigned(2 << (tag - 0xdc))? as usize;
                self.array(length, depth)?
            }
            0xde | 0xdf => {
                let length = self.unsigned(2 << (tag - 0xde))? as usize;
                self.map(length, depth)?
            }
            _ => return fault("Bad data format in input."),
        })
    }

    fn string(&mut self, length: usize) -> Result<Value, Fault> {
        let bytes = self.take(length)?;
        Ok(Value::String(self.lua.create_string(bytes)?))
    }

    fn array(&mut self, length: usize, depth: usize) -> Result<Value, Fault> {
        let table = self.lua.create_table()?;
        for at in 1..=length {
            let value = self.value(depth + 1)?;
            table.raw_set(at, value)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, length: usize, depth: usize) -> Result<Value, Fault> {
        let table = self.lua.create_table()?;
        for _ in 0..length {
            let (key, value) = (self.value(depth + 1)?, self.value(depth + 1)?);
            match key {
                Value::Nil => return fault("table index is nil"),
                Value::Number(key) if key.is_nan() => return fault("table index is NaN"),
                key => table.raw_set(key, value)?,
            }
        }
        Ok(Value::Table(table))
    }
}
