//! The library `cjson`: documents in JSON.
//!
//! As with the library of this name in Redis, a table is an array if its keys are positive integers that are not too far
//! apart, else an object; one without elements is an object. An array that was empty is one no more when it is encoded again.

use crate::native::{
    Fault, Meter, NUMBER_UNITS, VALUE_UNITS, add, fault, integer, lua_type, number, one, string,
};
use crate::number::general;
use core::cell::RefCell;
use mlua::{Lua, MultiValue, Table, Value};
use std::rc::Rc;

/// What a script can choose. A script finds it as it is at first, whatever others have chosen.
#[derive(Clone, Copy, Debug)]
struct Choices {
    sparse_convert: bool,
    sparse_ratio: i64,
    sparse_safe: i64,
    encode_depth: i64,
    decode_depth: i64,
    precision: i64,
    encode_invalid: Invalid,
    decode_invalid: bool,
    keep_buffer: bool,
}

/// What becomes of numbers that JSON does not have.
#[derive(Clone, Copy, Debug)]
enum Invalid {
    Refuse,
    Write,
    Null,
}

/// The deepest nesting that a script may choose: each takes some of the stack.
const DEPTH_MAX: i64 = 1_000;

impl Choices {
    const INITIAL: Self = Self {
        sparse_convert: false,
        sparse_ratio: 2,
        sparse_safe: 10,
        encode_depth: DEPTH_MAX,
        decode_depth: DEPTH_MAX,
        precision: 14,
        encode_invalid: Invalid::Refuse,
        decode_invalid: true,
        keep_buffer: true,
    };
}

/// What a script has chosen.
pub(crate) struct SharedChoices(Rc<RefCell<Choices>>);

impl SharedChoices {
    /// Nothing is chosen any more.
    pub(crate) fn reset(&self) {
        *self.0.borrow_mut() = Choices::INITIAL;
    }
}

/// The library, and what scripts choose of it.
pub(crate) fn library(lua: &Lua) -> mlua::Result<(Table, SharedChoices)> {
    let table = lua.create_table()?;
    let choices = Rc::new(RefCell::new(Choices::INITIAL));
    let shared = Rc::clone(&choices);
    add(lua, &table, "encode", move |lua, arguments| {
        let [value] = arguments else { return Err(Fault::Argument(1, "expected 1 argument".into())) };
        let choices = *shared.borrow();
        let mut encoder = Encoder { choices, out: Vec::new(), meter: Meter::new(lua) };
        encoder.value(value, 0)?;
        one(lua, lua.create_string(&encoder.out)?)
    })?;
    let shared = Rc::clone(&choices);
    add(lua, &table, "decode", move |lua, arguments| {
        if arguments.len() != 1 {
            return Err(Fault::Argument(1, "expected 1 argument".into()));
        }
        let text = string(lua, arguments, 1)?;
        let text = text.as_bytes();
        let meter = Meter::new(lua);
        let mut decoder = Decoder { lua, choices: *shared.borrow(), text: &text, at: 0, depth: 0, meter };
        decoder.meter.count(text.len() / 2)?;
        one(lua, decoder.document()?)
    })?;
    add_choices(lua, &table, &choices)?;
    Ok((table, SharedChoices(choices)))
}

/// Adds the functions by which a script chooses.
fn add_choices(lua: &Lua, table: &Table, choices: &Rc<RefCell<Choices>>) -> mlua::Result<()> {
    type Field = fn(&mut Choices) -> &mut i64;
    let fields: [(&'static str, Field, i64, i64); 3] = [
        ("encode_max_depth", |choices| &mut choices.encode_depth, 1, i64::from(i32::MAX)),
        ("decode_max_depth", |choices| &mut choices.decode_depth, 1, i64::from(i32::MAX)),
        ("encode_number_precision", |choices| &mut choices.precision, 1, 14),
    ];
    for (name, field, least, most) in fields {
        let choices = Rc::clone(choices);
        add(lua, table, name, move |lua, arguments| {
            let mut choices = choices.borrow_mut();
            let chosen = field(&mut choices);
            choose_integer(lua, arguments, 1, chosen, (least, most))?;
            one(lua, *chosen as f64)
        })?;
    }
    let shared = Rc::clone(choices);
    add(lua, table, "encode_sparse_array", move |lua, arguments| {
        let mut choices = shared.borrow_mut();
        choose_flag(arguments, &mut choices.sparse_convert)?;
        choose_integer(lua, arguments, 2, &mut choices.sparse_ratio, (0, i64::from(i32::MAX)))?;
        choose_integer(lua, arguments, 3, &mut choices.sparse_safe, (0, i64::from(i32::MAX)))?;
        let (ratio, safe) = (choices.sparse_ratio as f64, choices.sparse_safe as f64);
        let results = [Value::Boolean(choices.sparse_convert), Value::Number(ratio), Value::Number(safe)];
        Ok(MultiValue::from_iter(results))
    })?;
    let shared = Rc::clone(choices);
    add(lua, table, "encode_keep_buffer", move |lua, arguments| {
        let mut choices = shared.borrow_mut();
        choose_flag(arguments, &mut choices.keep_buffer)?;
        one(lua, choices.keep_buffer)
    })?;
    let shared = Rc::clone(choices);
    add(lua, table, "decode_invalid_numbers", move |lua, arguments| {
        let mut choices = shared.borrow_mut();
        choose_flag(arguments, &mut choices.decode_invalid)?;
        one(lua, choices.decode_invalid)
    })?;
    let shared = Rc::clone(choices);
    add(lua, table, "encode_invalid_numbers", move |lua, arguments| {
        let mut choices = shared.borrow_mut();
        match arguments {
            [Value::String(text), ..] if *text.as_bytes() == *b"null" => {
                choices.encode_invalid = Invalid::Null;
            }
            _ => {
                let mut allowed = matches!(choices.encode_invalid, Invalid::Write);
                let is_null = matches!(choices.encode_invalid, Invalid::Null);
                choose_flag(arguments, &mut allowed)?;
                if !(arguments.is_empty() && is_null) {
                    choices.encode_invalid = if allowed { Invalid::Write } else { Invalid::Refuse };
                }
            }
        }
        match choices.encode_invalid {
            Invalid::Refuse => one(lua, false),
            Invalid::Write => one(lua, true),
            Invalid::Null => one(lua, "null"),
        }
    })
}

fn choose_integer(
    lua: &Lua,
    arguments: &[Value],
    at: usize,
    chosen: &mut i64,
    (least, most): (i64, i64),
) -> Result<(), Fault> {
    if !matches!(arguments.get(at - 1), None | Some(Value::Nil)) {
        let value = integer(number(lua, arguments, at)?);
        if !(least..=most).contains(&value) {
            return Err(Fault::Argument(at, format!("expected integer between {least} and {most}")));
        }
        *chosen = value;
    }
    Ok(())
}

fn choose_flag(arguments: &[Value], chosen: &mut bool) -> Result<(), Fault> {
    match arguments.first() {
        None | Some(Value::Nil) => {}
        Some(Value::Boolean(flag)) => *chosen = *flag,
        Some(Value::String(text)) if *text.as_bytes() == *b"on" => *chosen = true,
        Some(Value::String(text)) if *text.as_bytes() == *b"off" => *chosen = false,
        Some(Value::String(text)) => {
            let text = text.to_string_lossy();
            return Err(Fault::Argument(1, format!("invalid option '{text}'")));
        }
        Some(other) => {
            return Err(Fault::Argument(1, format!("string expected, got {}", lua_type(other))));
        }
    }
    Ok(())
}

struct Encoder<'a> {
    choices: Choices,
    out: Vec<u8>,
    meter: Meter<'a>,
}

impl Encoder<'_> {
    fn value(&mut self, value: &Value, depth: i64) -> Result<(), Fault> {
        self.meter.count(VALUE_UNITS)?;
        match value {
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::Boolean(flag) => self.out.extend_from_slice(if *flag { b"true" } else { b"false" }),
            Value::String(text) => self.string(text)?,
            Value::Integer(integer) => self.number(*integer as f64)?,
            Value::Number(number) => self.number(*number)?,
            Value::LightUserData(pointer) if pointer.0.is_null() => self.out.extend_from_slice(b"null"),
            Value::Table(table) => self.table(table, depth + 1)?,
            other => return fault(format!("Cannot serialise {}: type not supported", lua_type(other))),
        }
        Ok(())
    }

    /// A text. It is counted first: the same one may stand in many places, and each character may become six.
    fn string(&mut self, text: &mlua::LuaString) -> Result<(), Fault> {
        let text = text.as_bytes();
        self.meter.count(text.len() / 2)?;
        put_string(&mut self.out, &text);
        Ok(())
    }

    fn number(&mut self, number: f64) -> Result<(), Fault> {
        self.meter.count(NUMBER_UNITS)?;
        let text = match self.choices.encode_invalid {
            _ if number.is_finite() => general(number, self.choices.precision as usize),
            Invalid::Refuse => return fault("Cannot serialise number: must not be NaN or Inf"),
            Invalid::Null => "null".to_owned(),
            Invalid::Write if number.is_nan() => "nan".to_owned(),
            Invalid::Write => general(number, 14),
        };
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn table(&mut self, table: &Table, depth: i64) -> Result<(), Fault> {
        if depth > self.choices.encode_depth.min(DEPTH_MAX) {
            return fault(format!("Cannot serialise, excessive nesting ({depth})"));
        }
        match self.array_length(table)? {
            Some(length) if length > 0 => {
                self.out.push(b'[');
                for at in 1..=length {
                    if at > 1 {
                        self.out.push(b',');
                    }
                    self.value(&table.raw_get::<Value>(at)?, depth)?;
                }
                self.out.push(b']');
            }
            _ => self.object(table, depth)?,
        }
        Ok(())
    }

    fn object(&mut self, table: &Table, depth: i64) -> Result<(), Fault> {
        self.out.push(b'{');
        let mut is_first = true;
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            if !core::mem::take(&mut is_first) {
                self.out.push(b',');
            }
            match key {
                Value::Integer(integer) => self.quoted_number(integer as f64)?,
                Value::Number(number) => self.quoted_number(number)?,
                Value::String(text) => self.string(&text)?,
                other => {
                    let name = lua_type(&other);
                    return fault(format!("Cannot serialise {name}: table key must be a number or string"));
                }
            }
            self.out.push(b':');
            self.value(&value, depth)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    fn quoted_number(&mut self, number: f64) -> Result<(), Fault> {
        self.out.push(b'"');
        self.number(number)?;
        self.out.push(b'"');
        Ok(())
    }

    /// The length of the array that the table is, if it is one.
    fn array_length(&mut self, table: &Table) -> Result<Option<i64>, Fault> {
        let (mut highest, mut count) = (0, 0_i64);
        for pair in table.pairs::<Value, Value>() {
            self.meter.count(VALUE_UNITS)?;
            match pair?.0 {
                Value::Integer(key) if key > 0 => highest = highest.max(key),
                _ => return Ok(None),
            }
            count += 1;
        }
        let Choices { sparse_convert, sparse_ratio, sparse_safe, .. } = self.choices;
        let is_sparse =
            sparse_ratio > 0 && highest > count.saturating_mul(sparse_ratio) && highest > sparse_safe;
        match (is_sparse, sparse_convert) {
            (false, _) => Ok(Some(highest)),
            (true, true) => Ok(None),
            (true, false) => fault("Cannot serialise table: excessively sparse array"),
        }
    }
}

fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'/' => out.extend_from_slice(b"\\/"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..32 | 127 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
}

struct Decoder<'a> {
    lua: &'a Lua,
    choices: Choices,
    text: &'a [u8],
    at: usize,
    depth: i64,
    meter: Meter<'a>,
}

/// What stands next in a document.
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    String(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
}

impl Token {
    const fn name(&self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::String(_) => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Boolean(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::End => "T_END",
        }
    }
}

/// A token and where it begins, or what is wrong there.
type Found = (Result<Token, &'static str>, usize);

impl Decoder<'_> {
    fn document(&mut self) -> Result<Value, Fault> {
        if self.text.len() >= 2 && (self.text[0] == 0 || self.text[1] == 0) {
            return fault("JSON parser does not support UTF-16 or UTF-32");
        }
        let first = self.next();
        let value = self.value(first)?;
        match self.next() {
            (Ok(Token::End), _) => Ok(value),
            other => self.unexpected("the end", &other),
        }
    }

    fn unexpected<T>(&self, expected: &str, (token, at): &Found) -> Result<T, Fault> {
        let found = token.as_ref().map_or_else(|problem| *problem, Token::name);
        fault(format!("Expected {expected} but found {found} at character {}", at + 1))
    }

    fn value(&mut self, found: Found) -> Result<Value, Fault> {
        self.meter.count(NUMBER_UNITS)?;
        Ok(match found.0 {
            Ok(Token::String(text)) => Value::String(self.lua.create_string(text)?),
            Ok(Token::Number(number)) => Value::Number(number),
            Ok(Token::Boolean(flag)) => Value::Boolean(flag),
            Ok(Token::Null) => Value::NULL,
            Ok(Token::ObjectBegin) => self.object()?,
            Ok(Token::ArrayBegin) => self.array()?,
            _ => return self.unexpected("value", &found),
        })
    }

    fn descend(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > self.choices.decode_depth.min(DEPTH_MAX) {
            let (depth, at) = (self.depth, self.at);
            return fault(format!("Found too many nested data structures ({depth}) at character {at}"));
        }
        Ok(())
    }

    fn object(&mut self) -> Result<Value, Fault> {
        self.descend()?;
        let table = self.lua.create_table()?;
        let mut found = self.next();
        if !matches!(found.0, Ok(Token::ObjectEnd)) {
            loop {
                let (Ok(Token::String(key)), _) = found else {
                    return self.unexpected("object key string", &found);
                };
                let key = self.lua.create_string(key)?;
                match self.next() {
                    (Ok(Token::Colon), _) => {}
                    other => return self.unexpected("colon", &other),
                }
                let first = self.next();
                let value = self.value(first)?;
                table.raw_set(key, value)?;
                match self.next() {
                    (Ok(Token::ObjectEnd), _) => break,
                    (Ok(Token::Comma), _) => found = self.next(),
                    other => return self.unexpected("comma or object end", &other),
                }
            }
        }
        self.depth -= 1;
        Ok(Value::Table(table))
    }

    fn array(&mut self) -> Result<Value, Fault> {
        self.descend()?;
        let table = self.lua.create_table()?;
        let mut found = self.next();
        if !matches!(found.0, Ok(Token::ArrayEnd)) {
            for at in 1_i64.. {
                let value = self.value(found)?;
                table.raw_set(at, value)?;
                match self.next() {
                    (Ok(Token::ArrayEnd), _) => break,
                    (Ok(Token::Comma), _) => found = self.next(),
                    other => return self.unexpected("comma or array end", &other),
                }
            }
        }
        self.depth -= 1;
        Ok(Value::Table(table))
    }

    fn next(&mut self) -> Found {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        let begin = self.at;
        let single = |token| (Ok(token), 1);
        let (token, length) = match self.text.get(begin) {
            None | Some(0) => (Ok(Token::End), 0),
            Some(b'{') => single(Token::ObjectBegin),
            Some(b'}') => single(Token::ObjectEnd),
            Some(b'[') => single(Token::ArrayBegin),
            Some(b']') => single(Token::ArrayEnd),
            Some(b':') => single(Token::Colon),
            Some(b',') => single(Token::Comma),
            Some(b'"') => return self.string(),
            Some(b'-' | b'+' | b'0'..=b'9') => return self.number(),
            Some(_) => self.word(),
        };
        self.at += length;
        (token, begin)
    }

    fn word(&self) -> (Result<Token, &'static str>, usize) {
        let rest = &self.text[self.at..];
        for (word, token) in
            [("true", Token::Boolean(true)), ("false", Token::Boolean(false)), ("null", Token::Null)]
        {
            if rest.starts_with(word.as_bytes()) {
                return (Ok(token), word.len());
            }
        }
        match invalid_number(rest) {
            Some((number, length)) if self.choices.decode_invalid => (Ok(Token::Number(number)), length),
            _ => (Err("invalid token"), 0),
        }
    }

    fn number(&mut self) -> Found {
        let begin = self.at;
        let rest = &self.text[begin..];
        let Some((number, length)) = number_at(rest) else { return (Err("invalid number"), begin) };
        if !self.choices.decode_invalid && !is_strict(rest) {
            return (Err("invalid number"), begin);
        }
        self.at += length;
        (Ok(Token::Number(number)), begin)
    }

    fn string(&mut self) -> Found {
        let begin = self.at;
        let mut text = Vec::new();
        let mut at = begin + 1;
        loop {
            match self.text.get(at) {
                None => return (Err("unexpected end of string"), at),
                Some(0) if at == self.text.len() => return (Err("unexpected end of string"), at),
                Some(b'"') => break,
                Some(b'\\') => {
                    let escape = self.text.get(at + 1).copied().unwrap_or_default();
                    if escape == b'u' {
                        let Some((character, length)) = unicode(&self.text[at..]) else {
                            return (Err("invalid unicode escape code"), at);
                        };
                        text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                        at += length;
                        continue;
                    }
                    text.push(match escape {
                        b'"' | b'\\' | b'/' => escape,
                        b'b' => 8,
                        b'f' => 12,
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        _ => return (Err("invalid escape code"), at),
                    });
                    at += 2;
                }
                Some(byte) => {
                    text.push(*byte);
                    at += 1;
                }
            }
        }
        self.at = at + 1;
        (Ok(Token::String(text)), begin)
    }
}

/// The character that an escape of four hexadecimal digits stands for, or two of them, and how long they are.
fn unicode(text: &[u8]) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?))
    };
    match unit(0)? {
        high @ 0xd800..0xdc00 => {
            let low = unit(6).filter(|low| (0xdc00..0xe000).contains(low))?;
            Some((char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00))?, 12))
        }
        other => Some((char::from_u32(other)?, 6)),
    }
}

/// A number as C reads it at the beginning of a text, and how many bytes it takes.
fn number_at(text: &[u8]) -> Option<(f64, usize)> {
    let (sign, digits) = match text {
        [b'-', rest @ ..] => (-1.0, rest),
        [b'+', rest @ ..] => (1.0, rest),
        _ => (1.0, text),
    };
    let signed = text.len() - digits.len();
    if let Some((number, length)) = hexadecimal(digits).or_else(|| invalid_number(digits)) {
        return Some((sign * number, signed + length));
    }
    let count = |from: usize| digits[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = count(0);
    let mut end = whole;
    if digits.get(end) == Some(&b'.') {
        end += 1 + count(end + 1);
    }
    if whole == 0 && end <= 1 {
        return None;
    }
    if let Some(b'e' | b'E') = digits.get(end) {
        let sign = usize::from(matches!(digits.get(end + 1), Some(b'+' | b'-')));
        let exponent = count((end + 1 + sign).min(digits.len()));
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let text = core::str::from_utf8(&digits[..end]).ok()?;
    Some((sign * text.parse::<f64>().ok()?, signed + end))
}

/// A whole number of hexadecimal digits.
fn hexadecimal(text: &[u8]) -> Option<(f64, usize)> {
    let [b'0', b'x' | b'X', digits @ ..] = text else { return None };
    let length = digits.iter().take_while(|digit| digit.is_ascii_hexdigit()).count();
    let digit = |digit: &u8| f64::from(char::from(*digit).to_digit(16).unwrap_or(0));
    (length > 0)
        .then(|| (digits[..length].iter().fold(0.0, |sum, next| sum * 16.0 + digit(next)), 2 + length))
}

/// A number that JSON does not have.
fn invalid_number(text: &[u8]) -> Option<(f64, usize)> {
    [("infinity", f64::INFINITY), ("inf", f64::INFINITY), ("nan", f64::NAN)]
        .into_iter()
        .find(|(word, _)| {
            text.get(..word.len()).is_some_and(|text| text.eq_ignore_ascii_case(word.as_bytes()))
        })
        .map(|(word, number)| (number, word.len()))
}

/// True if a number is one that JSON has.
fn is_strict(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    match digits {
        [b'0', next, ..] => !matches!(next, b'x' | b'X' | b'0'..=b'9'),
        [b'0'..=b'9', ..] => true,
        _ => false,
    }
}
