//! Patterns of KEYS and SCAN, of commands that list names, and of users' rules.

use memchr::memmem;

/// True if `text` matches `pattern` as Redis's `stringmatchlen` decides it: `*`, `?`, `[...]` with
/// ranges and `^`, and `\` before a literal; an unclosed class is closed by the end of the pattern.
///
/// Takes at most time proportional to the product of the lengths. Every part of a pattern but `*`
/// matches exactly one byte, so when a match fails only the last `*` met needs to take more. What stands between two `*` and
/// is nothing but itself is searched for as a whole, in time proportional to the sum of the lengths.
///
/// Two peculiarities of Redis are kept: the empty text matches only the empty pattern and `*` alone;
/// and the ends of a range are compared as signed bytes.
#[must_use]
pub fn glob_matches(pattern: &[u8], text: &[u8]) -> bool {
    matches::<false>(pattern, text, &mut Steps::unlimited()) == Some(true)
}

/// As [`glob_matches`], but letters match in either case, as Redis has it where names of its own are listed.
#[must_use]
pub fn glob_matches_in_any_case(pattern: &[u8], text: &[u8]) -> bool {
    matches::<true>(pattern, text, &mut Steps::unlimited()) == Some(true)
}

/// As [`glob_matches`], in no more steps than are left; `None` if that does not suffice to tell.
pub(crate) fn glob_matches_within(pattern: &[u8], text: &[u8], steps: &mut Steps) -> Option<bool> {
    matches::<false>(pattern, text, steps)
}

/// Bytes of a text that a search goes through in the time of one step.
const BYTES_SEARCHED_PER_STEP: usize = 8;

/// How many steps comparisons may still take: each is a part of a pattern that is compared with a byte of a text, or some bytes
/// that are searched. What has used up its steps does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Steps(u64);

impl Steps {
    pub(crate) const fn new(steps: u64) -> Self {
        Self(steps)
    }

    /// So many that no comparison takes as long.
    pub(crate) const fn unlimited() -> Self {
        Self(u64::MAX)
    }

    /// As many, but no more than that.
    pub(crate) fn at_most(self, steps: u64) -> Self {
        Self(self.0.min(steps))
    }

    /// Somebody had so many of them, and has left so many.
    pub(crate) const fn use_up(&mut self, had: Self, left: Self) {
        self.0 = self.0.saturating_sub(had.0 - left.0);
    }

    /// So many have been taken; `None` if there were not so many, and then there are none.
    pub(crate) fn take(&mut self, steps: usize) -> Option<()> {
        let left = self.0.checked_sub(steps as u64);
        self.0 = left.unwrap_or(0);
        left.map(drop)
    }
}

fn matches<const ANY_CASE: bool>(pattern: &[u8], text: &[u8], steps: &mut Steps) -> Option<bool> {
    if pattern == b"*" {
        return Some(true);
    }
    if text.is_empty() {
        return Some(pattern.is_empty());
    }
    // Nothing matches itself alone in any case.
    let head = if ANY_CASE { &[] } else { head_of(pattern) };
    steps.take(1 + head.len() / BYTES_SEARCHED_PER_STEP)?;
    let Some(mut rest) = text.starts_with(head).then(|| &pattern[head.len()..]) else { return Some(false) };
    let mut position = head.len();
    // What follows the last `*`, and where in the text it was tried last.
    let mut retry: Option<(&[u8], usize)> = None;
    while let Some(&byte) = text.get(position) {
        steps.take(1)?;
        if let [b'*', after @ ..] = rest {
            if after.is_empty() {
                return Some(true);
            }
            rest = after;
            if !ANY_CASE && let Some(literal) = literal_at(after) {
                steps.take(literal.len())?;
                let ahead = &text[position..];
                if literal.len() == after.len() {
                    return Some(ahead.ends_with(literal));
                }
                let found = memmem::find(ahead, literal);
                steps.take(found.unwrap_or(ahead.len()) / BYTES_SEARCHED_PER_STEP)?;
                let Some(found) = found else { return Some(false) };
                // It stands as far ahead as it can, so nothing before it needs to take more.
                position += found + literal.len();
                rest = &after[literal.len()..];
                retry = None;
                continue;
            }
            retry = Some((after, position));
            continue;
        }
        let (is_match, after) = match_byte::<ANY_CASE>(rest, byte);
        // A class is compared with the byte part by part.
        steps.take(rest.len() - after.len())?;
        if is_match {
            rest = after;
            position += 1;
        } else if let Some((after, tried)) = retry {
            rest = after;
            position = tried + 1;
            retry = Some((after, position));
        } else {
            return Some(false);
        }
    }
    Some(rest.iter().all(|byte| *byte == b'*'))
}

/// What a pattern begins with of which each byte matches itself.
fn head_of(pattern: &[u8]) -> &[u8] {
    let end = pattern.iter().position(|byte| matches!(byte, b'*' | b'?' | b'[' | b'\\'));
    &pattern[..end.unwrap_or(pattern.len())]
}

/// The same, if it is not empty and goes on up to the next `*` or the end.
fn literal_at(pattern: &[u8]) -> Option<&[u8]> {
    let head = head_of(pattern);
    let is_all = pattern.get(head.len()).is_none_or(|byte| *byte == b'*');
    (!head.is_empty() && is_all).then_some(head)
}

/// How long a comparison with this pattern can take for each byte of the text, in units of a search for what matches itself; 0
/// if it takes no longer than the pattern is.
pub(crate) fn weight(pattern: &[u8]) -> usize {
    /// A step for each part of the pattern takes so much longer than a search.
    const WILD: usize = 4;
    let Some(star) = pattern.iter().position(|byte| *byte == b'*') else { return 0 };
    let behind = &pattern[star + 1..];
    // Stars in classes are no stars: that such a class counts as short is made up for by the others being added up.
    let wild = behind.split(|byte| *byte == b'*').filter(|part| head_of(part).len() < part.len());
    usize::from(!behind.is_empty()) + WILD * wild.map(<[u8]>::len).sum::<usize>()
}

const fn folded<const ANY_CASE: bool>(byte: u8) -> u8 {
    if ANY_CASE { byte.to_ascii_lowercase() } else { byte }
}

const fn same<const ANY_CASE: bool>(a: u8, b: u8) -> bool {
    folded::<ANY_CASE>(a) == folded::<ANY_CASE>(b)
}

/// Whether the first part of `pattern`, which does not start with `*`, matches `byte`, and what is left of it.
fn match_byte<const ANY_CASE: bool>(pattern: &[u8], byte: u8) -> (bool, &[u8]) {
    match pattern {
        [] => (false, pattern),
        [b'?', rest @ ..] => (true, rest),
        [b'[', rest @ ..] => match_class::<ANY_CASE>(rest, byte),
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => (same::<ANY_CASE>(*literal, byte), rest),
    }
}

/// Whether `byte` is in the class whose `[` was just read, and what follows the class.
fn match_class<const ANY_CASE: bool>(class: &[u8], byte: u8) -> (bool, &[u8]) {
    let (negated, mut rest) = match class {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, class),
    };
    let mut found = false;
    loop {
        rest = match rest {
            [b'\\', literal, rest @ ..] => {
                found |= same::<ANY_CASE>(*literal, byte);
                rest
            }
            [b']', rest @ ..] => return (found != negated, rest),
            [] => return (found != negated, rest),
            [low, b'-', high, rest @ ..] => {
                // Redis puts the ends into order before it makes letters small.
                let (low, high) = (*low as i8, *high as i8);
                let [low, high] =
                    [low.min(high), low.max(high)].map(|end| folded::<ANY_CASE>(end as u8) as i8);
                found |= (low..=high).contains(&(folded::<ANY_CASE>(byte) as i8));
                rest
            }
            [literal, rest @ ..] => {
                found |= same::<ANY_CASE>(*literal, byte);
                rest
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::{Steps, glob_matches, glob_matches_in_any_case, glob_matches_within, weight};

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("**", "", false),
            ("", "", true),
            ("", "a", false),
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "a", true),
            ("a**", "a", true),
            ("*a", "ba", true),
            ("*ab", "aab", true),
            ("a*b*c", "axxbxxbc", true),
            ("a*b*c", "axxbxxbd", false),
            ("?", "a", true),
            ("??", "a", false),
            ("h[ae]llo", "hello", true),
            ("h[^e]llo", "hello", false),
            ("h[^e]llo", "hallo", true),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("[\\]]", "]", true),
            ("[a\\-z]", "-", true),
            ("[a\\-z]", "b", false),
            ("[abc", "c", true),
            ("[", "[", false),
            ("[^", "x", true),
            ("[a-", "-", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("a\\", "a\\", true),
            ("[]", "]", false),
            ("[^]", "x", true),
        ] {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            assert_eq!(glob_matches(pattern, text), expected, "{pattern:?} {text:?}");
            assert_eq!(glob_matches_in_any_case(pattern, text), expected, "{pattern:?} {text:?}");
        }
        assert!(glob_matches(b"[\x01-\xff]", b"\xff") && !glob_matches(b"[\x01-\xff]", b"\x02"));
    }

    #[test]
    fn letters_match_in_either_case_only_if_asked_to() {
        for (pattern, text, expected) in [
            ("SAVE", "save", true),
            ("max*Y", "maxmemory-policy", true),
            ("max*z", "maxmemory-policy", false),
            ("s[A-C]ve", "save", true),
            ("s[a-c]ve", "SAVE", true),
            ("s\\Ave", "save", true),
            ("s\\*ve", "s*VE", true),
            ("sav", "SAVE", false),
        ] {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            assert_eq!(glob_matches_in_any_case(pattern, text), expected, "{pattern:?} {text:?}");
            assert!(!glob_matches(pattern, text), "{pattern:?} {text:?}");
        }
        assert!(glob_matches(b"s[^A]ve", b"save") && !glob_matches_in_any_case(b"s[^A]ve", b"save"));
    }

    /// As it was before what matches itself was searched for: no step is left out.
    fn matches_slowly(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            (b"*", _) => true,
            (_, []) => pattern.is_empty(),
            _ => matches_from(pattern, text),
        }
    }

    fn matches_from(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            (_, []) => pattern.iter().all(|byte| *byte == b'*'),
            ([b'*', after @ ..], _) => (0..=text.len()).any(|at| matches_from(after, &text[at..])),
            (_, [byte, behind @ ..]) => {
                let (is_match, after) = super::match_byte::<false>(pattern, *byte);
                is_match && matches_from(after, behind)
            }
        }
    }

    #[test]
    fn searching_gives_what_comparing_gives() {
        let mut state = 1_u64;
        let mut draw = |alphabet: &[u8], length_max: usize| -> Vec<u8> {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as usize
            };
            let length = next() % (length_max + 1);
            (0..length).map(|_| alphabet[next() % alphabet.len()]).collect()
        };
        for _ in 0..200_000 {
            let (pattern, text) = (draw(b"aab**?[]^\\", 9), draw(b"aab*\\]", 9));
            assert_eq!(
                glob_matches(&pattern, &text),
                matches_slowly(&pattern, &text),
                "{pattern:?} {text:?}"
            );
        }
    }

    #[test]
    fn what_takes_too_many_steps_is_not_decided() {
        let text = [b'a'; 65_536];
        let steps_of = |pattern: &[u8]| {
            let mut steps = Steps::unlimited();
            glob_matches_within(pattern, &text, &mut steps);
            u64::MAX - steps.0
        };
        // What matches itself is searched for.
        for pattern in
            [&[&b"*"[..], &[b'a'; 30_000], b"b*"].concat(), &[&b"*"[..], &[b'a'; 30_000], b"b"].concat()]
        {
            assert!(steps_of(pattern) < 100_000, "{}", steps_of(pattern));
        }
        let wild = [&b"*"[..], &[b'?'; 30_000], b"b"].concat();
        let mut few = Steps::new(100_000);
        assert_eq!(glob_matches_within(&wild, &text, &mut few), None);
        assert_eq!(few, Steps::new(0), "nothing is left for what comes next");
        assert_eq!(glob_matches_within(b"a*", &text, &mut few), None);
    }

    #[test]
    fn patterns_weigh_what_is_compared_again_and_again() {
        for (pattern, expected) in [
            ("", 0),
            ("key", 0),
            ("k?[ab]*", 0),
            ("*", 0),
            ("*key", 1),
            ("a*key*", 1),
            ("*a?c*d", 13),
            ("*[ab]*c\\", 25),
        ] {
            assert_eq!(weight(pattern.as_bytes()), expected, "{pattern}");
        }
    }

    #[test]
    fn many_stars_take_polynomial_time() {
        let pattern = [&b"a*".repeat(500)[..], b"b"].concat();
        assert!(!glob_matches(&pattern, &[b'a'; 65_536]));
    }
}
