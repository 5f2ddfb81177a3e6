//! CLIENT TRACKING: what a client says of the copies that it keeps.

/// Of which commands a client keeps what it reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrackingChoice {
    /// Of all.
    #[default]
    All,
    /// OPTIN: of those behind a CLIENT CACHING YES.
    OptIn,
    /// OPTOUT: of all but those behind a CLIENT CACHING NO.
    OptOut,
}

/// What CLIENT TRACKING ON asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrackingRequest {
    /// BCAST: the client is told of all keys that begin with a prefix, whether it has read them or not.
    pub is_broadcast: bool,
    /// The prefixes; none: all keys.
    pub prefixes: Vec<Vec<u8>>,
    /// Of which commands the client keeps what it reads.
    pub choice: TrackingChoice,
    /// NOLOOP: the reply to an update of the client's own needs no invalidation before it.
    pub no_loop: bool,
    /// REDIRECT: the number of the client that is told.
    pub redirect: Option<u64>,
}

/// How much is known of clients that keep copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrackingCounts {
    /// Clients that track.
    pub clients: u64,
    /// Keys that some client keeps a copy of.
    pub keys: u64,
    /// Copies of keys: each client's counts.
    pub items: u64,
    /// Different prefixes that clients are told of.
    pub prefixes: u64,
}

/// What a session knows of its tracking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionTracking {
    pub(crate) request: TrackingRequest,
    /// CLIENT CACHING: the next command is another one than the rest.
    pub(crate) is_caching_set: bool,
    /// The client that is told has gone.
    pub(crate) is_broken: bool,
}

impl SessionTracking {
    /// True if the client keeps what the next command reads.
    pub(crate) const fn keeps(&self) -> bool {
        match self.request.choice {
            TrackingChoice::All => true,
            TrackingChoice::OptIn => self.is_caching_set,
            TrackingChoice::OptOut => !self.is_caching_set,
        }
    }
}

/// Most prefixes of a connection, and most bytes that they take together.
const PREFIXES_MAX: usize = 1024;
const PREFIX_BYTES_MAX: usize = 64 * 1024;

impl TrackingRequest {
    /// What these words ask for that stand behind CLIENT TRACKING ON, by a client that tracks like this, if it
    /// does. Behind OFF (`is_on` is false) it does not matter whether they go together.
    ///
    /// # Errors
    /// The text of an error, as Redis has it where Redis does.
    pub(crate) fn parse(words: &[&[u8]], present: Option<&Self>, is_on: bool) -> Result<Self, Vec<u8>> {
        let mut request = Self::default();
        let (mut is_in, mut is_out) = (false, false);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
            if is(b"redirect") && words.len() > 0 {
                let id = words.next().and_then(|word| syros_commands::parse_integer(word));
                let id = id.ok_or_else(|| b"ERR value is not an integer or out of range".to_vec())?;
                if request.redirect.is_some() {
                    return Err(b"ERR A client can only redirect to a single other client".to_vec());
                }
                request.redirect = Some(u64::try_from(id).unwrap_or(u64::MAX));
            } else if is(b"prefix") && words.len() > 0 {
                request.prefixes.extend(words.next().map(|prefix| prefix.to_vec()));
            } else if is(b"bcast") {
                request.is_broadcast = true;
            } else if is(b"optin") {
                is_in = true;
            } else if is(b"optout") {
                is_out = true;
            } else if is(b"noloop") {
                request.no_loop = true;
            } else {
                return Err(b"ERR syntax error".to_vec());
            }
        }
        if !is_on {
            return Ok(request);
        }
        request.choice = match (is_in, is_out) {
            (true, true) => return Err(b"ERR You can't specify both OPTIN mode and OPTOUT mode".to_vec()),
            (true, false) => TrackingChoice::OptIn,
            (false, true) => TrackingChoice::OptOut,
            (false, false) => TrackingChoice::All,
        };
        request.check(present)?;
        // Without a prefix it asks for all keys, whatever it has asked for before.
        if let Some(present) = present.filter(|_| request.is_broadcast && !request.prefixes.is_empty()) {
            request.prefixes.splice(0..0, present.prefixes.iter().cloned());
        }
        Ok(request)
    }

    fn check(&self, present: Option<&Self>) -> Result<(), Vec<u8>> {
        const SWITCH: &str = "before disabling tracking for this client, and then re-enabling it with a \
                              different mode.";
        if !self.is_broadcast && !self.prefixes.is_empty() {
            return Err(b"ERR PREFIX option requires BCAST mode to be enabled".to_vec());
        }
        if present.is_some_and(|present| present.is_broadcast != self.is_broadcast) {
            return Err(format!("ERR You can't switch BCAST mode on/off {SWITCH}").into_bytes());
        }
        if self.is_broadcast && self.choice != TrackingChoice::All {
            return Err(b"ERR OPTIN and OPTOUT are not compatible with BCAST".to_vec());
        }
        let is_switched = |present: &Self| {
            present.choice != self.choice
                && present.choice != TrackingChoice::All
                && self.choice != TrackingChoice::All
        };
        if present.is_some_and(is_switched) {
            return Err(format!("ERR You can't switch OPTIN/OPTOUT mode {SWITCH}").into_bytes());
        }
        self.check_prefixes(present)
    }

    fn check_prefixes(&self, present: Option<&Self>) -> Result<(), Vec<u8>> {
        const END: &[u8] = b"'. Prefixes for a single client must not overlap.";
        let overlap = |one: &[u8], two: &[u8]| one.starts_with(two) || two.starts_with(one);
        let all = [Vec::new()];
        let known = match present {
            Some(present) if present.is_broadcast && present.prefixes.is_empty() => &all[..],
            Some(present) => &present.prefixes,
            None => &[],
        };
        if known.len() + self.prefixes.len() > PREFIXES_MAX
            || known.iter().chain(&self.prefixes).map(Vec::len).sum::<usize>() > PREFIX_BYTES_MAX
        {
            let text =
                format!("ERR a client has at most {PREFIXES_MAX} prefixes of {PREFIX_BYTES_MAX} bytes");
            return Err(text.into_bytes());
        }
        for (place, prefix) in self.prefixes.iter().enumerate() {
            let text = |which: &[u8], other: &[u8]| {
                Err([b"ERR Prefix '", &prefix[..], b"' overlaps with ", which, b" prefix '", other, END]
                    .concat())
            };
            if let Some(other) = known.iter().find(|other| overlap(prefix, other)) {
                return text(b"an existing", other);
            }
            if let Some(other) = self.prefixes[place + 1..].iter().find(|other| overlap(prefix, other)) {
                return text(b"another provided", other);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str, present: Option<&TrackingRequest>) -> Result<TrackingRequest, String> {
        let words: Vec<&[u8]> = words.split_whitespace().map(str::as_bytes).collect();
        TrackingRequest::parse(&words, present, true)
            .map_err(|text| String::from_utf8_lossy(&text).into_owned())
    }

    /// What redis-server 7.0.15 answers.
    #[test]
    fn what_is_wrong_is_said_as_by_redis() {
        let broadcast = parse("BCAST PREFIX foo PREFIX bar", None).expect("right");
        let in_by_choice = parse("OPTIN", None).expect("right");
        let all = parse("BCAST", Some(&broadcast)).expect("right");
        assert!(all.prefixes.is_empty(), "all keys, not only those that it has asked for before");
        for (words, present, expected) in [
            (
                "BCAST PREFIX foo",
                Some(&all),
                "ERR Prefix 'foo' overlaps with an existing prefix ''. Prefixes for a single client must not overlap.",
            ),
            ("PREFIX a", None, "ERR PREFIX option requires BCAST mode to be enabled"),
            ("BCAST OPTIN", None, "ERR OPTIN and OPTOUT are not compatible with BCAST"),
            ("OPTIN OPTOUT", None, "ERR You can't specify both OPTIN mode and OPTOUT mode"),
            ("REDIRECT x", None, "ERR value is not an integer or out of range"),
            ("REDIRECT 1 REDIRECT 2", None, "ERR A client can only redirect to a single other client"),
            ("REDIRECT", None, "ERR syntax error"),
            (
                "BCAST PREFIX foobar",
                Some(&broadcast),
                "ERR Prefix 'foobar' overlaps with an existing prefix 'foo'. Prefixes for a single client must not overlap.",
            ),
            (
                "BCAST PREFIX a PREFIX ab",
                None,
                "ERR Prefix 'a' overlaps with another provided prefix 'ab'. Prefixes for a single client must not overlap.",
            ),
            (
                "",
                Some(&broadcast),
                "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.",
            ),
            (
                "OPTOUT",
                Some(&in_by_choice),
                "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.",
            ),
        ] {
            assert_eq!(parse(words, present), Err(expected.to_owned()), "{words}");
        }
        let more = parse("BCAST PREFIX zoo", Some(&broadcast)).expect("right");
        assert_eq!(more.prefixes, [b"foo", b"bar", b"zoo"]);
    }
}
