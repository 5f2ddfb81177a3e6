//! Numbers as text.

/// A number as C writes it with `%.{precision}g`: so Redis writes those that a script gives to a command (17), and cjson
/// those of a document (14 unless the script says otherwise).
pub(crate) fn general(number: f64, precision: usize) -> String {
    if number.is_nan() {
        // Processors disagree about the sign of 0/0; this is the one of x86.
        return "-nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let precision = precision.max(1);
    let scientific = format!("{number:.*e}", precision - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let without_zeros = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if exponent < -4 || exponent >= precision as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs());
    }
    let decimals = (precision as i32 - 1 - exponent).max(0) as usize;
    without_zeros(&format!("{number:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn numbers_look_as_c_writes_them() {
        for (number, precision, text) in [
            (0.0, 17, "0"),
            (-0.0, 17, "-0"),
            (0.1, 17, "0.10000000000000001"),
            (0.1, 14, "0.1"),
            (1.5, 14, "1.5"),
            (100.0, 14, "100"),
            (1e17, 17, "1e+17"),
            (1e16, 17, "10000000000000000"),
            (1e14, 14, "1e+14"),
            (12_345_678_901_234_567_890.0, 14, "1.2345678901235e+19"),
            (1e-5, 14, "1e-05"),
            (0.0001, 14, "0.0001"),
            (1e-20, 17, "9.9999999999999995e-21"),
            (1e300, 14, "1e+300"),
            (0.000_1, 3, "0.0001"),
            (9.9999, 3, "10"),
            (f64::NAN, 14, "-nan"),
            (f64::NEG_INFINITY, 14, "-inf"),
        ] {
            assert_eq!(general(number, precision), text);
        }
    }
}
