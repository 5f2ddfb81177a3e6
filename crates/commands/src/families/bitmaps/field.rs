//! Numbers among the bits of a string.

use super::{bit_at, set_bit};

/// A number of some bits at an offset, its highest bit first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitfieldSlot {
    /// True if it is in two's complement.
    pub is_signed: bool,
    /// How many bits it has: 1 to 63, of a signed one up to 64.
    pub bits: u8,
    /// The offset of its first bit.
    pub offset: u64,
}

/// What becomes of a number that a slot is too short for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum BitfieldOverflow {
    /// Its lowest bits are stored.
    #[default]
    Wrap = 0,
    /// The number next to it that fits is stored.
    Saturate = 1,
    /// It is not stored.
    Fail = 2,
}

impl BitfieldSlot {
    /// The offset behind its last bit.
    pub(super) const fn end(self) -> u64 {
        self.offset + self.bits as u64
    }

    /// The number in it. Bits beyond the end of the string are 0.
    pub(super) fn get(self, bytes: &[u8]) -> i64 {
        let bits = self.offset..self.end();
        self.number_of(bits.fold(0, |number, offset| number << 1 | u64::from(bit_at(bytes, offset))))
    }

    /// Gives it a number that fits. The string must be long enough.
    pub(super) fn set(self, bytes: &mut [u8], number: i64) {
        for (place, offset) in (self.offset..self.end()).rev().enumerate() {
            set_bit(bytes, offset, number >> place & 1 == 1);
        }
    }

    /// What is stored for `number`, if anything is.
    pub(super) fn fit(self, number: i64, overflow: BitfieldOverflow) -> Option<i64> {
        let (_, most) = self.limits();
        let exact = if self.is_signed { i128::from(number) } else { i128::from(number as u64) };
        // So far below it, Redis loses the sign of the distance to the largest number, and takes that for too small.
        let seems_large = self.is_signed && self.bits < 64 && most - exact > i128::from(i64::MAX);
        if seems_large && overflow == BitfieldOverflow::Saturate {
            return Some(most as i64);
        }
        self.fit_exact(exact, overflow)
    }

    /// What is stored for the sum of the number in it and `delta`, if anything is.
    pub(super) fn fit_sum(self, old: i64, delta: i64, overflow: BitfieldOverflow) -> Option<i64> {
        self.fit_exact(i128::from(old) + i128::from(delta), overflow)
    }

    fn fit_exact(self, number: i128, overflow: BitfieldOverflow) -> Option<i64> {
        let (least, most) = self.limits();
        match overflow {
            // All limits are numbers of 64 bits with a sign.
            _ if (least..=most).contains(&number) => Some(number as i64),
            BitfieldOverflow::Wrap => Some(self.number_of(number as u64)),
            BitfieldOverflow::Saturate => Some(number.clamp(least, most) as i64),
            BitfieldOverflow::Fail => None,
        }
    }

    /// The least and the largest number that it can have.
    fn limits(self) -> (i128, i128) {
        let range = 1 << self.bits;
        if self.is_signed { (-range / 2, range / 2 - 1) } else { (0, range - 1) }
    }

    /// The number that its lowest bits are.
    const fn number_of(self, bits: u64) -> i64 {
        let unused = 64 - self.bits as u32;
        let highest = bits << unused;
        if self.is_signed { highest as i64 >> unused } else { (highest >> unused) as i64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const I8: BitfieldSlot = BitfieldSlot { is_signed: true, bits: 8, offset: 3 };
    const U8: BitfieldSlot = BitfieldSlot { is_signed: false, bits: 8, offset: 3 };
    const I64: BitfieldSlot = BitfieldSlot { is_signed: true, bits: 64, offset: 1 };
    const U63: BitfieldSlot = BitfieldSlot { is_signed: false, bits: 63, offset: 1 };

    #[test]
    fn what_is_set_is_found() {
        let mut bytes = [0xa5; 10];
        for (slot, number) in [(I8, -100), (U8, 200), (I64, i64::MIN), (I64, -1), (U63, i64::MAX), (U63, 0)] {
            slot.set(&mut bytes, number);
            assert_eq!(slot.get(&bytes), number, "{slot:?}");
        }
        assert_eq!((bytes[0] >> 7, bytes[9]), (1, 0xa5), "other bits stay");
        assert_eq!(I8.get(&[0xff]), -8, "bits beyond the end are 0");
    }

    #[test]
    fn what_does_not_fit_overflows_as_in_redis() {
        use BitfieldOverflow::{Fail, Saturate, Wrap};
        for (slot, number, [wrapped, saturated]) in [
            (I8, 128, [-128, 127]),
            (I8, -129, [127, -128]),
            (I8, i64::MAX, [-1, 127]),
            (I8, i64::MIN + 128, [-128, -128]),
            (I8, i64::MIN + 127, [127, 127]),
            (U8, 256, [0, 255]),
            (U8, -1, [255, 255]),
            (U63, i64::MIN, [0, i64::MAX]),
        ] {
            assert_eq!(slot.fit(number, Fail), None, "{slot:?} {number}");
            assert_eq!(slot.fit(number, Wrap), Some(wrapped), "{slot:?} {number}");
            assert_eq!(slot.fit(number, Saturate), Some(saturated), "{slot:?} {number}");
        }
        assert_eq!(I64.fit_sum(i64::MAX, 1, Wrap), Some(i64::MIN));
        assert_eq!(I64.fit_sum(i64::MIN, -1, Saturate), Some(i64::MIN));
        assert_eq!(U8.fit_sum(3, -5, Wrap), Some(254));
        assert_eq!(U8.fit_sum(3, -5, Saturate), Some(0));
        assert_eq!(U8.fit_sum(3, 5, Fail), Some(8));
    }
}
