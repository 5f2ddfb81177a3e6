//! CRC-32C as arithmetic.
//!
//! The checksum of a record is the usual CRC-32C, computed by the `crc32c` crate. Recovery must also
//! find records whose position and number are unknown, which needs the algebra behind it: the register
//! is a polynomial over GF(2) modulo the generator, in reflected notation (the highest bit of the `u32`
//! is the coefficient of x^0), and appending 4 bytes `w` takes `state` to `(state + w) * x^32`.

/// The generator (Castagnoli 1993) without its leading term, reflected.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// The generator is `(x + 1)` times a primitive polynomial of degree 31, so x has this order.
const ORDER_OF_X: u64 = (1 << 31) - 1;

/// The register before the first byte.
pub(crate) const START: u32 = !0;

/// The register after `bytes`.
pub(crate) fn extend(state: u32, bytes: &[u8]) -> u32 {
    !crc32c::crc32c_append(!state, bytes)
}

/// The checksum that a register stands for (and back: it is its own inverse).
pub(crate) const fn finish(state: u32) -> u32 {
    !state
}

/// Product of two polynomials modulo the generator.
pub(crate) const fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = 1 << 31;
    while bit != 0 {
        // Masks instead of branches: the bits are random and would mispredict.
        product ^= b & 0u32.wrapping_sub((a & bit != 0) as u32);
        b = (b >> 1) ^ (POLYNOMIAL & 0u32.wrapping_sub(b & 1));
        bit >>= 1;
    }
    product
}

/// x^`exponent` modulo the generator; negative exponents are inverses.
pub(crate) const fn power_of_x(exponent: i64) -> u32 {
    let mut exponent = exponent.rem_euclid(ORDER_OF_X as i64);
    let mut square = 1 << 30;
    let mut product = 1 << 31;
    while exponent != 0 {
        if exponent & 1 == 1 {
            product = multiply(product, square);
        }
        square = multiply(square, square);
        exponent >>= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::{START, extend, finish, multiply, power_of_x};

    #[test]
    fn known_checksum() {
        // RFC 3720 B.4.
        assert_eq!(finish(extend(START, &[0; 32])), 0x8a91_36aa);
        assert_eq!(finish(extend(START, b"123456789")), 0xe306_9283);
    }

    #[test]
    fn appending_is_multiplication() {
        let state = extend(START, b"anything");
        for zeros in [1usize, 2, 4, 100, 4097] {
            let shifted = multiply(state, power_of_x(8 * zeros as i64));
            assert_eq!(shifted, extend(state, &vec![0; zeros]));
            assert_eq!(multiply(shifted, power_of_x(-8 * zeros as i64)), state);
        }
        let word = 0x1234_5678_u32;
        assert_eq!(extend(state, &word.to_le_bytes()), multiply(state ^ word, power_of_x(32)));
    }
}
