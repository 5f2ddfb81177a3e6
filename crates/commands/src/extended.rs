//! Extended precision numbers for INCRBYFLOAT, computed with integers alone.
//!
//! Redis adds in C's `long double`, which on x86-64 has 64 bits of mantissa, so that 3.0 + 0.1 prints
//! as 3.1 and not as 3.10000000000000009. An `f64` cannot give the same answers, and `long double` is a
//! different type on other processors; replicas must agree to the bit. So this is the x87 format in
//! software: reading rounds correctly, adding rounds to nearest even, printing is `%.17Lf` with the
//! trailing zeros cut off. It differs from Redis only in that it does not read hexadecimal numbers.

use crate::hexadecimal::Bits;
use core::cmp::Ordering;

/// A finite or infinite number in the x87 extended format; never NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extended {
    /// The 64 bits of the mantissa. The highest is set unless the number is below the normal ones.
    mantissa: u64,
    /// The sign in the highest bit, the biased exponent in the others.
    head: u16,
}

/// The bit of `head` that holds the sign.
const SIGN: u16 = 0x8000;
/// The biased exponent of infinity.
const EXPONENT_INFINITE: u16 = 0x7fff;
/// What a biased exponent exceeds the exponent of the mantissa's lowest bit by.
const BIAS: i32 = 16_383 + 63;
/// The exponent of the lowest bit of the smallest number.
const LOWEST: i32 = 1 - BIAS;
/// The highest bit of a mantissa.
const TOP_BIT: u64 = 1 << 63;
/// Longest text that Redis reads as a number, in bytes.
const TEXT_BYTES_MAX: usize = 5119;
/// Numbers of more decimal digits before the point overflow; numbers of more zeros behind it vanish.
const DECIMAL_EXPONENT_MAX: i64 = 5000;
/// Digits behind the point that are printed.
const DECIMALS: u128 = 100_000_000_000_000_000;

impl Extended {
    /// The number that Redis adds to when a key does not exist.
    pub const ZERO: Self = Self { mantissa: 0, head: 0 };

    const fn infinite(negative: bool) -> Self {
        Self { mantissa: TOP_BIT, head: EXPONENT_INFINITE | if negative { SIGN } else { 0 } }
    }

    const fn is_negative(self) -> bool {
        self.head & SIGN != 0
    }

    /// True if it is no infinity.
    #[must_use]
    pub const fn is_finite(self) -> bool {
        !self.is_infinite()
    }

    const fn is_infinite(self) -> bool {
        self.head & !SIGN == EXPONENT_INFINITE
    }

    /// The exponent of the mantissa's lowest bit.
    const fn exponent(self) -> i32 {
        let biased = (self.head & !SIGN) as i32;
        if biased == 0 { LOWEST } else { biased - BIAS }
    }

    /// Reads a number as C's `strtold` does in Redis's `string2ld`: decimal, with an optional point and
    /// exponent, or an infinity; the whole text, no blanks. `None` for anything else, for NaN, and for
    /// what is too large or, without being zero, too small for the format.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        if text.eq_ignore_ascii_case(b"inf") || text.eq_ignore_ascii_case(b"infinity") {
            return Some(Self::infinite(negative));
        }
        let decimal = Decimal::parse(text)?;
        if decimal.digits.is_zero() {
            return Some(Self { mantissa: 0, head: if negative { SIGN } else { 0 } });
        }
        let length = decimal.digits_count + decimal.exponent;
        if length.abs() > DECIMAL_EXPONENT_MAX {
            return None;
        }
        let number = decimal.round(negative);
        (!number.is_infinite() && number.mantissa != 0).then_some(number)
    }

    /// As [`Extended::parse`]; also hexadecimal numbers such as `0x1.8p-3`, which C's `strtold` reads. Only for what
    /// clients send, and for fields of hashes, which have never been read otherwise: a string is read when an operation
    /// executes, and an older log must execute as it did.
    #[must_use]
    pub fn parse_argument(text: &[u8]) -> Option<Self> {
        let (negative, digits) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        match digits {
            [b'0', b'x' | b'X', rest @ ..] if text.len() <= TEXT_BYTES_MAX => {
                Self::parse_hexadecimal(negative, rest)
            }
            _ => Self::parse(text),
        }
    }

    fn parse_hexadecimal(negative: bool, text: &[u8]) -> Option<Self> {
        let number = Bits::parse_hexadecimal(text)?;
        if number.bits == 0 {
            return Some(Self { mantissa: 0, head: if negative { SIGN } else { 0 } });
        }
        let number = Self::round(negative, number.bits, number.exponent, number.sticky);
        (!number.is_infinite() && number.mantissa != 0).then_some(number)
    }

    /// The sum, rounded to nearest even; `None` if it is not finite.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        if self.is_infinite() || other.is_infinite() {
            return None;
        }
        let (high, low) = if self.exponent() >= other.exponent() { (self, other) } else { (other, self) };
        let distance = (high.exponent() - low.exponent()) as u32;
        // The higher number moves up as far as 128 bits allow, the lower one down for the rest. If it
        // loses bits the higher one is normal, and the sum has far more bits than are kept.
        let up = distance.min(63);
        let down = distance - up;
        let large = u128::from(high.mantissa) << up;
        let small = u128::from(low.mantissa.checked_shr(down).unwrap_or(0));
        let sticky = down > 0 && (down >= 64 || low.mantissa & ((1 << down) - 1) != 0) && low.mantissa != 0;
        let exponent = high.exponent() - up as i32;
        let sum = if high.is_negative() == low.is_negative() {
            Self::round(high.is_negative(), large + small, exponent, sticky)
        } else if large >= small {
            // What was shifted out is taken off too: the true difference lies below.
            Self::round(high.is_negative(), large - small - u128::from(sticky), exponent, sticky)
        } else {
            Self::round(low.is_negative(), small - large, exponent, false)
        };
        (!sum.is_infinite()).then_some(sum)
    }

    /// The number nearest to `(bits + s) * 2^exponent`, where `s` is between 0 and 1 if `sticky` and
    /// else 0. With `sticky`, `bits` must have more than 65 bits.
    fn round(negative: bool, bits: u128, exponent: i32, sticky: bool) -> Self {
        let sign = if negative { SIGN } else { 0 };
        let (mantissa, exponent) = Bits { bits, exponent, sticky }.round(64, LOWEST);
        if mantissa < TOP_BIT {
            return Self { mantissa, head: sign };
        }
        match u16::try_from(exponent + BIAS) {
            Ok(biased) if biased < EXPONENT_INFINITE => Self { mantissa, head: sign | biased },
            _ => Self::infinite(negative),
        }
    }

    /// Appends the number as Redis prints it: `%.17Lf` without trailing zeros.
    pub fn write(self, out: &mut Vec<u8>) {
        let start = out.len();
        if self.is_negative() {
            out.push(b'-');
        }
        if self.is_infinite() {
            out.extend_from_slice(b"inf");
            return;
        }
        let exponent = self.exponent();
        if exponent >= 0 {
            let mut natural = Natural::from(u128::from(self.mantissa));
            natural.shift_left(exponent as u32);
            natural.write(out);
        } else {
            // At most 121 bits; what is shifted out is rounded to nearest even.
            let scaled = u128::from(self.mantissa) * DECIMALS;
            let shift = exponent.unsigned_abs();
            let rounded = if shift > 127 {
                0
            } else {
                let (kept, rest, half) = (scaled >> shift, scaled & ((1 << shift) - 1), 1 << (shift - 1));
                kept + u128::from(rest > half || (rest == half && kept & 1 == 1))
            };
            out.extend_from_slice((rounded / DECIMALS).to_string().as_bytes());
            let decimals = format!(".{:017}", rounded % DECIMALS);
            out.extend_from_slice(decimals.trim_end_matches('0').trim_end_matches('.').as_bytes());
        }
        if &out[start..] == b"-0" {
            out.remove(start);
        }
    }

    /// The number as the ten bytes of its format.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes[..8].copy_from_slice(&self.mantissa.to_le_bytes());
        bytes[8..].copy_from_slice(&self.head.to_le_bytes());
        bytes
    }

    /// The number that these ten bytes are; `None` for NaN and for bytes that no computation yields.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 10]) -> Option<Self> {
        let [m0, m1, m2, m3, m4, m5, m6, m7, h0, h1] = bytes;
        let mantissa = u64::from_le_bytes([m0, m1, m2, m3, m4, m5, m6, m7]);
        let head = u16::from_le_bytes([h0, h1]);
        let canonical = match head & !SIGN {
            0 => mantissa < TOP_BIT,
            EXPONENT_INFINITE => mantissa == TOP_BIT,
            _ => mantissa >= TOP_BIT,
        };
        canonical.then_some(Self { mantissa, head })
    }
}

/// A decimal number as written: `digits * 10^exponent`.
struct Decimal {
    digits: Natural,
    /// Number of digits without leading zeros.
    digits_count: i64,
    exponent: i64,
}

impl Decimal {
    fn parse(text: &[u8]) -> Option<Self> {
        let mut rest = text;
        let whole = take_digits(&mut rest);
        let mut fraction: &[u8] = &[];
        if let [b'.', after @ ..] = rest {
            rest = after;
            fraction = take_digits(&mut rest);
        }
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let exponent = match rest {
            [] => 0,
            [b'e' | b'E', exponent @ ..] => parse_exponent(exponent)?,
            _ => return None,
        };
        let (mut digits, mut digits_count) = (Natural::default(), 0);
        // Digits are taken in as many at a time as a limb has room for: each time all limbs are gone through.
        let (mut factor, mut taken) = (1, 0);
        for digit in whole.iter().chain(fraction).skip_while(|digit| **digit == b'0') {
            digits_count += 1;
            (factor, taken) = (factor * 10, taken * 10 + u32::from(digit - b'0'));
            if factor == 1_000_000_000 {
                digits.multiply_add(factor, taken);
                (factor, taken) = (1, 0);
            }
        }
        digits.multiply_add(factor, taken);
        Some(Self { digits, digits_count, exponent: exponent - fraction.len() as i64 })
    }

    fn round(mut self, negative: bool) -> Extended {
        if let Ok(power) = u32::try_from(self.exponent) {
            self.digits.multiply_power_of_ten(power);
            let (bits, exponent, sticky) = self.digits.top_bits();
            return Extended::round(negative, bits, exponent, sticky);
        }
        let mut divisor = Natural::from(1);
        divisor.multiply_power_of_ten(self.exponent.unsigned_abs() as u32);
        // Scale so that the quotient has 66 or 67 bits: enough to round from.
        let shift = 66 + divisor.bits() as i32 - self.digits.bits() as i32;
        if shift >= 0 {
            self.digits.shift_left(shift as u32);
        } else {
            divisor.shift_left(shift.unsigned_abs());
        }
        let (quotient, exact) = self.digits.divide(&divisor, 67);
        Extended::round(negative, quotient, -shift, !exact)
    }
}

fn take_digits<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    *text = rest;
    digits
}

fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, mut rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let digits = take_digits(&mut rest);
    if digits.is_empty() || !rest.is_empty() {
        return None;
    }
    // Saturated far beyond what any number of digits could balance.
    const SATURATED: i64 = 1_000_000;
    let value = digits.iter().fold(0, |value, digit| (value * 10 + i64::from(digit - b'0')).min(SATURATED));
    Some(if negative { -value } else { value })
}

/// A natural number of any size: 32-bit limbs, the lowest first, the highest not zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Natural(Vec<u32>);

impl Natural {
    fn from(value: u128) -> Self {
        let limbs = (0..4).map(|limb| (value >> (32 * limb)) as u32).collect();
        let mut natural = Self(limbs);
        natural.trim();
        natural
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    const fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    fn bits(&self) -> u32 {
        self.0.last().map_or(0, |top| self.0.len() as u32 * 32 - top.leading_zeros())
    }

    fn multiply_add(&mut self, factor: u32, summand: u32) {
        let mut carry = u64::from(summand);
        for limb in &mut self.0 {
            carry += u64::from(*limb) * u64::from(factor);
            *limb = carry as u32;
            carry >>= 32;
        }
        if carry != 0 {
            self.0.push(carry as u32);
        }
    }

    fn multiply_power_of_ten(&mut self, power: u32) {
        for _ in 0..power / 9 {
            self.multiply_add(1_000_000_000, 0);
        }
        self.multiply_add(10u32.pow(power % 9), 0);
    }

    fn shift_left(&mut self, bits: u32) {
        if self.is_zero() {
            return;
        }
        let (limbs, bits) = ((bits / 32) as usize, bits % 32);
        self.multiply_add(1 << bits, 0);
        self.0.splice(0..0, core::iter::repeat_n(0, limbs));
    }

    fn shift_right_one(&mut self) {
        let mut carry = 0;
        for limb in self.0.iter_mut().rev() {
            let next = *limb << 31;
            *limb = *limb >> 1 | carry;
            carry = next;
        }
        self.trim();
    }

    /// The 128 highest bits, the exponent of the lowest of them, and whether any lower bit is set.
    fn top_bits(&self) -> (u128, i32, bool) {
        let dropped = self.0.len().saturating_sub(4);
        let (low, high) = self.0.split_at(dropped);
        let bits = high.iter().rev().fold(0, |bits: u128, limb| bits << 32 | u128::from(*limb));
        (bits, dropped as i32 * 32, low.iter().any(|limb| *limb != 0))
    }

    fn compare(&self, other: &Self) -> Ordering {
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    /// Subtracts `other`, which must not be larger.
    fn subtract(&mut self, other: &Self) {
        let mut borrow = false;
        let padded = other.0.iter().copied().chain(core::iter::repeat(0));
        for (limb, subtrahend) in self.0.iter_mut().zip(padded) {
            let (difference, first) = limb.overflowing_sub(subtrahend);
            let (difference, second) = difference.overflowing_sub(u32::from(borrow));
            *limb = difference;
            borrow = first || second;
        }
        self.trim();
    }

    /// The quotient, which must have at most `bits` bits, and whether nothing remains.
    fn divide(mut self, divisor: &Self, bits: u32) -> (u128, bool) {
        let mut shifted = divisor.clone();
        shifted.shift_left(bits);
        let mut quotient = 0;
        for _ in 0..=bits {
            quotient <<= 1;
            if self.compare(&shifted) != Ordering::Less {
                self.subtract(&shifted);
                quotient |= 1;
            }
            shifted.shift_right_one();
        }
        (quotient, self.is_zero())
    }

    /// Appends the decimal digits.
    fn write(mut self, out: &mut Vec<u8>) {
        let mut groups = Vec::new();
        while !self.is_zero() {
            let mut remainder = 0;
            for limb in self.0.iter_mut().rev() {
                let value = u64::from(remainder) << 32 | u64::from(*limb);
                *limb = (value / 1_000_000_000) as u32;
                remainder = (value % 1_000_000_000) as u32;
            }
            self.trim();
            groups.push(remainder);
        }
        let top = groups.pop().unwrap_or(0);
        out.extend_from_slice(top.to_string().as_bytes());
        for group in groups.iter().rev() {
            out.extend_from_slice(format!("{group:09}").as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Extended {
        Extended::parse(text.as_bytes()).unwrap_or_else(|| panic!("{text} is no number"))
    }

    fn print(number: Extended) -> String {
        let mut out = Vec::new();
        number.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn sum(a: &str, b: &str) -> String {
        print(number(a).checked_add(number(b)).unwrap())
    }

    #[test]
    fn hexadecimal_arguments_are_read_as_by_redis() {
        let shown = |text: &str| {
            let mut out = Vec::new();
            Extended::parse_argument(text.as_bytes())?.write(&mut out);
            Some(String::from_utf8(out).unwrap())
        };
        // What redis-server 7.0.15 answers to INCRBYFLOAT of a key that does not exist.
        for (text, expected) in [
            ("0x10", "16"),
            ("+0x10", "16"),
            ("0x1p4", "16"),
            ("0x1.8", "1.5"),
            ("-0X1", "-1"),
            ("0x1p-3", "0.125"),
            ("0x.8", "0.5"),
            ("0x1.", "1"),
            ("0x0", "0"),
            ("0x1.fffffffffffffffffffffffffp0", "2"),
            ("0x10000000000000001", "18446744073709551616"),
            ("0x000000000000000000000000000000000000000001", "1"),
            ("10", "10"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "0x",
            "0x.",
            "0x1p",
            "0x1p+",
            "0xg",
            "0x1 ",
            "0x1.1.1",
            "x10",
            "0x1p99999999999",
            "0x1p-99999999",
        ] {
            assert_eq!(shown(text), None, "{text}");
        }
        assert!(Extended::parse(b"0x10").is_none(), "a stored value is read as it always was");
    }

    #[test]
    fn known_bit_patterns() {
        // As gcc compiles these long double constants.
        for (text, mantissa, head) in [
            ("1", 0x8000_0000_0000_0000, 0x3fff),
            ("-2", 0x8000_0000_0000_0000, 0xc000),
            ("0.1", 0xcccc_cccc_cccc_cccd, 0x3ffb),
            ("3.1", 0xc666_6666_6666_6666, 0x4000),
            ("1e4932", 0xd72c_b2a9_5c7e_f6cd, 0x7ffe),
            ("3.6451995318824746e-4951", 1, 0),
            ("18446744073709551615", u64::MAX, 0x403e),
            ("18446744073709551617", 0x8000_0000_0000_0000, 0x403f),
        ] {
            assert_eq!((number(text).mantissa, number(text).head), (mantissa, head), "{text}");
        }
    }

    #[test]
    fn sums_print_as_redis_prints_them() {
        for (a, b, expected) in [
            ("3.0", "0.1", "3.1"),
            ("10.50", "0.1", "10.6"),
            ("5.0e3", "2.0e2", "5200"),
            ("10.6", "-5", "5.6"),
            ("1", "-1", "0"),
            ("-1e-30", "0", "0"),
            ("1e30", "1", "1000000000000000000024696061952"),
            (".5", "5.", "5.5"),
            ("0.00000000000000001", "0", "0.00000000000000001"),
            ("0.000000000000000004", "0", "0"),
            ("1e300", "-1e300", "0"),
            ("1", "1e-25", "1"),
            ("+0", "-0", "0"),
        ] {
            assert_eq!(sum(a, b), expected, "{a} + {b}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            "-",
            ".",
            "e5",
            "1e",
            "1e+",
            " 1",
            "1 ",
            "1,5",
            "nan",
            "-nan",
            "0x10",
            "1e4933",
            "1e-4970",
            "infin",
            "1e99999999999999999999",
            "--1",
            "1.2.3",
        ] {
            assert_eq!(Extended::parse(text.as_bytes()), None, "{text}");
        }
        assert!(Extended::parse(&[b'1'; 4000]).is_some());
        assert_eq!(Extended::parse(&[b'1'; 5119]), None, "overflows");
        assert!(Extended::parse(&[b'0'; 5119]).is_some());
        assert_eq!(Extended::parse(&[b'0'; 5120]), None, "too long");
    }

    #[test]
    fn infinite_sums_are_none() {
        for (a, b) in [("inf", "1"), ("1", "-Infinity"), ("inf", "-inf"), ("1.1e4932", "1.1e4932")] {
            assert_eq!(number(a).checked_add(number(b)), None, "{a} + {b}");
        }
    }

    #[test]
    fn bytes_round_trip_and_nan_is_refused() {
        for text in ["0", "-0", "1.5", "-1e4000", "1e-4940", "inf", "-inf"] {
            let bytes = number(text).to_bytes();
            assert_eq!(Extended::from_bytes(bytes).map(Extended::to_bytes), Some(bytes), "{text}");
        }
        let nan = Extended { mantissa: TOP_BIT | 1, head: EXPONENT_INFINITE };
        let unnormal = Extended { mantissa: 1, head: 0x3fff };
        let pseudo_denormal = Extended { mantissa: TOP_BIT, head: 0 };
        for bad in [nan, unnormal, pseudo_denormal] {
            assert_eq!(Extended::from_bytes(bad.to_bytes()), None, "{bad:?}");
        }
    }

    #[test]
    fn doubles_survive_reading_exactly() {
        // A decimal with 17 digits identifies an f64; extended precision must hold its exact value too.
        let mut prng = syros_types::Prng::new(5);
        for _ in 0..2000 {
            let value = f64::from_bits(prng.next_u64());
            if !value.is_normal() {
                continue;
            }
            let exact = number(&format!("{value:.1100}").chars().take(4000).collect::<String>());
            let mantissa = (value.to_bits() & ((1 << 52) - 1) | 1 << 52) << 11;
            if value.abs() > 1e-200 {
                assert_eq!(exact.mantissa, mantissa, "{value:e}");
            }
        }
    }
}
