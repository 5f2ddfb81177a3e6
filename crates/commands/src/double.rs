//! Numbers of floating point as Redis reads and writes them: scores, weights and bounds.

use crate::hexadecimal::Bits;
use crate::number::write_integer;
use std::io::Write as _;

/// Digits that are written: so many tell every number from all others.
const DIGITS: usize = 17;

/// Bits of a mantissa.
const MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS;

/// The exponent of the lowest bit of the smallest number.
const LOWEST: i32 = f64::MIN_EXP - MANTISSA_BITS as i32;

/// Below this all integers are numbers, and have fewer than [`DIGITS`] digits.
const INTEGER_MAX: f64 = (1_u64 << MANTISSA_BITS) as f64;

/// A number that was read, and whether it is too large or, without being zero, too small for the format: infinite or zero
/// then.
struct Number {
    value: f64,
    is_out_of_range: bool,
}

/// Reads a number as Redis's `string2d` does: as C's `strtod`, but the whole text, without blanks. `None` for anything else,
/// for NaN, and for what is too large or, without being zero, too small for the format.
#[must_use]
pub fn parse_double(text: &[u8]) -> Option<f64> {
    read(text).filter(|number| !number.is_out_of_range).map(|number| number.value)
}

/// Reads a bound of a range as Redis does: as C's `strtod` reads a string that ends at a NUL. Nothing at all is zero, blanks
/// before the number do not matter, and what is too large is infinite.
pub(crate) fn parse_bound(text: &[u8]) -> Option<f64> {
    read_bound(text).map(|number| number.value)
}

fn read_bound(text: &[u8]) -> Option<Number> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Some(Number { value: 0.0, is_out_of_range: false });
    }
    // What C calls a space.
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = text.iter().position(|byte| !is_space(byte))?;
    read(&text[start..])
}

/// Reads what SORT compares as Redis does: as [`parse_bound`], but what is too large or, without being zero, too small is no
/// number.
pub(crate) fn parse_sort_weight(text: &[u8]) -> Option<f64> {
    read_bound(text).filter(|number| !number.is_out_of_range).map(|number| number.value)
}

fn read(text: &[u8]) -> Option<Number> {
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let number = match digits {
        [b'0', b'x' | b'X', rest @ ..] => read_hexadecimal(rest),
        [b'+' | b'-', ..] => None,
        _ => read_decimal(digits),
    }?;
    Some(Number { value: if is_negative { -number.value } else { number.value }, ..number })
}

/// A decimal number or an infinity, without a sign. Rust reads what C reads, and rounds correctly as the C library does.
fn read_decimal(text: &[u8]) -> Option<Number> {
    let value: f64 = str::from_utf8(text).ok()?.parse().ok()?;
    let mantissa = text.split(|byte| byte.eq_ignore_ascii_case(&b'e')).next().unwrap_or_default();
    let is_out_of_range = match value {
        _ if value.is_nan() => return None,
        0.0 => mantissa.iter().any(|byte| matches!(byte, b'1'..=b'9')),
        _ => value.is_infinite() && !text[0].eq_ignore_ascii_case(&b'i'),
    };
    Some(Number { value, is_out_of_range })
}

/// A hexadecimal number without its `0x`.
fn read_hexadecimal(text: &[u8]) -> Option<Number> {
    let number = Bits::parse_hexadecimal(text)?;
    if number.bits == 0 {
        return Some(Number { value: 0.0, is_out_of_range: false });
    }
    let (mantissa, exponent) = number.round(MANTISSA_BITS as i32, LOWEST);
    let top_bit = 1 << (MANTISSA_BITS - 1);
    let value = if mantissa < top_bit {
        f64::from_bits(mantissa)
    } else {
        let biased = u64::try_from(exponent.saturating_sub(LOWEST).saturating_add(1)).unwrap_or(0);
        // An infinity has this exponent, and larger ones are none.
        let infinite = 2 * f64::MAX_EXP as u64 - 1;
        if biased >= infinite {
            f64::INFINITY
        } else {
            f64::from_bits(biased << (MANTISSA_BITS - 1) | mantissa ^ top_bit)
        }
    };
    Some(Number { value, is_out_of_range: value == 0.0 || value.is_infinite() })
}

/// Appends a number as Redis 7.0 writes it: as C's `printf` does with `%.17g`.
pub fn write_double(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() || value.is_infinite() {
        out.extend_from_slice(if value.is_nan() {
            b"nan"
        } else if value > 0.0 {
            b"inf"
        } else {
            b"-inf"
        });
        return;
    }
    if value.trunc() == value && value.abs() < INTEGER_MAX && (value != 0.0 || value.is_sign_positive()) {
        return write_integer(out, value as i64);
    }
    let mut text = Vec::with_capacity(DIGITS + 8);
    write!(text, "{:.*e}", DIGITS - 1, value.abs()).expect("a vector takes what is written");
    let mut parts = text.split(|byte| *byte == b'e');
    let (mantissa, exponent) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let exponent = str::from_utf8(exponent).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let digits: Vec<u8> = mantissa.iter().copied().filter(u8::is_ascii_digit).collect();
    if value.is_sign_negative() {
        out.push(b'-');
    }
    write_digits(out, &digits, exponent);
}

/// Appends a number as Redis writes it for people: with up to seventeen decimals, as C's `printf` does with `%.17f`, and
/// without zeros at their end.
pub fn write_decimal(out: &mut Vec<u8>, value: f64) {
    let text = format!("{value:.DIGITS$}");
    let text = if value.is_finite() { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    out.extend_from_slice(if text == "-0" { b"0" } else { text.as_bytes() });
}

/// Appends the number whose first digit has this decimal exponent, without zeros at the end of its fraction.
fn write_digits(out: &mut Vec<u8>, digits: &[u8], exponent: i32) {
    let significant = digits.iter().rposition(|digit| *digit != b'0').map_or(1, |last| last + 1);
    match usize::try_from(exponent) {
        Ok(exponent) if exponent < DIGITS => {
            let (whole, fraction) = digits.split_at(exponent + 1);
            out.extend_from_slice(whole);
            write_fraction(out, &fraction[..significant.saturating_sub(exponent + 1)]);
        }
        Err(_) if exponent >= -4 => {
            out.extend_from_slice(b"0.");
            out.extend(core::iter::repeat_n(b'0', exponent.unsigned_abs() as usize - 1));
            out.extend_from_slice(&digits[..significant]);
        }
        _ => {
            out.push(digits[0]);
            write_fraction(out, &digits[1..significant]);
            let sign = if exponent < 0 { '-' } else { '+' };
            out.extend_from_slice(format!("e{sign}{:02}", exponent.unsigned_abs()).as_bytes());
        }
    }
}

fn write_fraction(out: &mut Vec<u8>, digits: &[u8]) {
    if !digits.is_empty() {
        out.push(b'.');
        out.extend_from_slice(digits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: f64) -> String {
        let mut out = Vec::new();
        write_double(&mut out, value);
        String::from_utf8(out).expect("digits")
    }

    #[test]
    fn numbers_are_written_as_redis_does() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-17.0, "-17"),
            (1.5, "1.5"),
            (-1.1, "-1.1000000000000001"),
            (0.1, "0.10000000000000001"),
            (1e-4, "0.0001"),
            (7.62939453125e-6, "7.62939453125e-06"),
            (1e16, "10000000000000000"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (9_007_199_254_740_993.0, "9007199254740992"),
            (-1e17, "-1e+17"),
            (1e21, "1e+21"),
            (1e100, "1e+100"),
            // A tie between two of seventeen digits.
            (1.0 + 1.0 / 131_072.0, "1.0000076293945312"),
            (5e-324, "4.9406564584124654e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(written(value), text);
            assert_eq!(parse_double(text.as_bytes()).map(f64::to_bits), Some(value.to_bits()), "{text}");
        }
    }

    #[test]
    fn decimals_are_written_as_redis_does() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (-1.5, "-1.5"),
            (100.0, "100"),
            (13.361_389_338_970_184, "13.36138933897018433"),
            (1e-18, "0"),
        ] {
            let mut out = Vec::new();
            write_decimal(&mut out, value);
            assert_eq!(String::from_utf8_lossy(&out), text);
        }
    }

    #[test]
    fn numbers_are_read_as_redis_does() {
        for (text, value) in [
            ("1", Some(1.0)),
            ("+1.", Some(1.0)),
            (".5", Some(0.5)),
            ("-1e3", Some(-1000.0)),
            ("InFinity", Some(f64::INFINITY)),
            ("-inf", Some(f64::NEG_INFINITY)),
            ("0x10", Some(16.0)),
            ("-0X1.8p-3", Some(-0.1875)),
            ("0x1.fffffffffffff8p0", Some(2.0)),
            ("0x1.00000000000008p0", Some(1.0)),
            ("0x1.000000000000080000000000000000000000000000000001p0", Some(1.000_000_000_000_000_2)),
            ("0x1p-1074", Some(5e-324)),
            ("0x1p1023", Some(8.98846567431158e307)),
            ("0x0p99999999999999", Some(0.0)),
            ("1e-320", Some(1e-320)),
            ("0e999", Some(0.0)),
            ("0x1p1024", None),
            ("0x1p-1076", None),
            ("0x", None),
            ("0x.", None),
            ("0x1p", None),
            ("1e400", None),
            ("1e-400", None),
            ("nan", None),
            ("-nan", None),
            ("", None),
            (".", None),
            ("1e", None),
            ("+-1", None),
            (" 1", None),
            ("1 ", None),
            ("1\0", None),
        ] {
            assert_eq!(parse_double(text.as_bytes()), value, "{text}");
        }
        for (text, value) in [
            ("", Some(0.0)),
            ("\0", Some(0.0)),
            (" \t\r\n\x0b\x0c-1.5\0x", Some(-1.5)),
            ("1e999", Some(f64::INFINITY)),
            ("1e-999", Some(0.0)),
            (" ", None),
            ("1 ", None),
            ("nan", None),
            ("x", None),
        ] {
            assert_eq!(parse_bound(text.as_bytes()), value, "{text:?}");
        }
    }
}
