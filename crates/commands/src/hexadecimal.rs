//! Hexadecimal numbers such as `0x1.8p-3`, which C's `strtod` and `strtold` read, and how numbers of many bits are rounded.

use core::cmp::Ordering;

/// A number that is not zero: `(bits + s) * 2^exponent`, where `s` is between 0 and 1 if `sticky` and else 0. If `sticky`,
/// `bits` has more than 65 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bits {
    pub(crate) bits: u128,
    pub(crate) exponent: i32,
    pub(crate) sticky: bool,
}

impl Bits {
    /// The number of these hexadecimal digits, with at most one point in them, and a power of two. It has no bits if it is
    /// zero.
    pub(crate) fn parse_hexadecimal(text: &[u8]) -> Option<Self> {
        // Further powers are as good as these: the number is infinite or too small.
        const POWER_MAX: i32 = 100_000;
        let (mut bits, mut exponent, mut sticky) = (0u128, 0i32, false);
        let (mut has_digits, mut has_point) = (false, false);
        let mut rest = text;
        while let Some((&byte, after)) = rest.split_first() {
            match char::from(byte).to_digit(16) {
                Some(digit) => {
                    has_digits = true;
                    let fits = bits >> 120 == 0;
                    if fits {
                        bits = bits << 4 | u128::from(digit);
                    } else {
                        sticky |= digit != 0;
                    }
                    exponent = exponent.saturating_add(match (fits, has_point) {
                        (true, true) => -4,
                        (false, false) => 4,
                        _ => 0,
                    });
                }
                None if byte == b'.' && !has_point => has_point = true,
                None => break,
            }
            rest = after;
        }
        let power = match rest {
            [] => 0,
            [b'p' | b'P', power @ ..] => {
                let (is_less, digits) = match power {
                    [b'-', digits @ ..] => (true, digits),
                    [b'+', digits @ ..] | digits => (false, digits),
                };
                if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
                    return None;
                }
                let add = |value: i32, digit: &u8| (value * 10 + i32::from(digit - b'0')).min(POWER_MAX);
                let power = digits.iter().fold(0, add);
                if is_less { -power } else { power }
            }
            _ => return None,
        };
        has_digits.then_some(Self { bits, exponent: exponent.saturating_add(power), sticky })
    }

    /// A mantissa of at most so many bits and the exponent of its lowest bit, which is at least `lowest`: what is nearest, and
    /// of two such the even one. The mantissa has fewer bits only if the exponent is the lowest.
    pub(crate) fn round(self, mantissa_bits: i32, lowest: i32) -> (u64, i32) {
        let Self { bits, exponent, sticky } = self;
        let length = 128 - bits.leading_zeros() as i32;
        let shift = length.saturating_sub(mantissa_bits).max(lowest.saturating_sub(exponent));
        let mut exponent = exponent.saturating_add(shift);
        let mut mantissa = match shift {
            ..=0 => bits << -shift,
            1..=127 => {
                let (kept, rest) = (bits >> shift, bits & ((1 << shift) - 1));
                let up = match rest.cmp(&(1 << (shift - 1))) {
                    Ordering::Less => false,
                    Ordering::Equal => sticky || kept & 1 == 1,
                    Ordering::Greater => true,
                };
                kept + u128::from(up)
            }
            _ => 0,
        };
        if mantissa >> mantissa_bits != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
        (mantissa as u64, exponent)
    }
}
