//! Patterns of KEYS and SCAN, and of commands that list names.

/// True if `text` matches `pattern` as Redis's `stringmatchlen` decides it: `*`, `?`, `[...]` with
/// ranges and `^`, and `\` before a literal; an unclosed class is closed by the end of the pattern.
///
/// Takes at most time proportional to the product of the lengths. Every part of a pattern but `*`
/// matches exactly one byte, so when a match fails only the last `*` met needs to take more.
///
/// Two peculiarities of Redis are kept: the empty text matches only the empty pattern and `*` alone;
/// and the ends of a range are compared as signed bytes.
#[must_use]
pub fn glob_matches(pattern: &[u8], text: &[u8]) -> bool {
    matches::<false>(pattern, text)
}

/// As [`glob_matches`], but letters match in either case, as Redis has it where names of its own are listed.
#[must_use]
pub fn glob_matches_in_any_case(pattern: &[u8], text: &[u8]) -> bool {
    matches::<true>(pattern, text)
}

fn matches<const ANY_CASE: bool>(pattern: &[u8], text: &[u8]) -> bool {
    if pattern == b"*" {
        return true;
    }
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (mut rest, mut position) = (pattern, 0);
    // What follows the last `*`, and where in the text it was tried last.
    let mut retry: Option<(&[u8], usize)> = None;
    while let Some(&byte) = text.get(position) {
        if let [b'*', after @ ..] = rest {
            rest = after;
            retry = Some((after, position));
        } else if let Some(after) = match_byte::<ANY_CASE>(rest, byte) {
            rest = after;
            position += 1;
        } else if let Some((after, tried)) = retry {
            rest = after;
            position = tried + 1;
            retry = Some((after, position));
        } else {
            return false;
        }
    }
    rest.iter().all(|byte| *byte == b'*')
}

const fn folded<const ANY_CASE: bool>(byte: u8) -> u8 {
    if ANY_CASE { byte.to_ascii_lowercase() } else { byte }
}

const fn same<const ANY_CASE: bool>(a: u8, b: u8) -> bool {
    folded::<ANY_CASE>(a) == folded::<ANY_CASE>(b)
}

/// What is left of `pattern`, which does not start with `*`, if its first part matches `byte`.
fn match_byte<const ANY_CASE: bool>(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (matched, rest) = match pattern {
        [] => return None,
        [b'?', rest @ ..] => (true, rest),
        [b'[', rest @ ..] => match_class::<ANY_CASE>(rest, byte),
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => (same::<ANY_CASE>(*literal, byte), rest),
    };
    matched.then_some(rest)
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
    use super::{glob_matches, glob_matches_in_any_case};

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

    #[test]
    fn many_stars_take_polynomial_time() {
        let pattern = [&b"a*".repeat(500)[..], b"b"].concat();
        assert!(!glob_matches(&pattern, &[b'a'; 65_536]));
    }
}
