//! Log times as people write them.

use syros_types::WallTime;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A log time in RFC 3339, in UTC and to the microsecond.
#[must_use]
pub fn rfc3339(time: WallTime) -> String {
    let nanos = i128::from(time.0) * 1_000;
    let text =
        OffsetDateTime::from_unix_timestamp_nanos(nanos).ok().and_then(|moment| moment.format(&Rfc3339).ok());
    text.unwrap_or_else(|| format!("{} us after 1970", time.0))
}

/// The moment that a text names: in RFC 3339, or in milliseconds since 1970, both UTC unless the text says otherwise. `None` if it
/// names none, or one before 1970. Of what RFC 3339 can say, what is behind the microsecond is left out.
#[must_use]
pub fn parse_moment(text: &str) -> Option<WallTime> {
    if let Ok(millis) = text.parse::<u64>() {
        return millis.checked_mul(1_000).map(WallTime);
    }
    let moment = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    u64::try_from(moment.unix_timestamp_nanos().div_euclid(1_000)).ok().map(WallTime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_come_back() {
        assert_eq!(rfc3339(WallTime(1_700_000_000_123_456)), "2023-11-14T22:13:20.123456Z");
        for (text, micros) in [
            ("2023-11-14T22:13:20.123456Z", Some(1_700_000_000_123_456)),
            ("2023-11-14T23:13:20.1234569+01:00", Some(1_700_000_000_123_456)),
            ("1700000000123", Some(1_700_000_000_123_000)),
            ("2023-11-14", None),
            ("1969-12-31T23:59:59Z", None),
            ("99999999999999999999", None),
            ("18446744073709551615", None),
            ("", None),
        ] {
            assert_eq!(parse_moment(text), micros.map(WallTime), "{text}");
        }
        assert!(rfc3339(WallTime(u64::MAX)).contains("us after 1970"));
    }
}
