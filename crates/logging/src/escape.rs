//! Text of others in a line of ours: nothing in it may end the line, or move a terminal's cursor.

use std::fmt::{self, Write};

/// Longest value of a field, in bytes: a line stays readable whatever a client sends.
pub(crate) const VALUE_BYTES_MAX: usize = 1024;

/// Longest message, in bytes. Messages are this program's own texts.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4096;

/// Stands where text was cut.
const CUT: char = '…';

/// True for a character that is written as `\uXXXX`: control characters (C0, DEL and C1, of which U+009B begins an escape
/// sequence), the separators that some programs take for ends of lines, and what changes the direction of text.
const fn is_dangerous(character: char) -> bool {
    matches!(
        character,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// Appends `text`, with dangerous characters escaped.
pub(crate) fn push_escaped(out: &mut String, text: &str) {
    for character in text.chars() {
        push_character(out, character);
    }
}

fn push_character(out: &mut String, character: char) {
    match character {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        // All of them are in the basic plane, so that four digits do, as in JSON.
        _ if is_dangerous(character) => drop(write!(out, "\\u{:04x}", u32::from(character))),
        _ => out.push(character),
    }
}

/// Appends `text` as a JSON string.
pub(crate) fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            _ => push_character(out, character),
        }
    }
    out.push('"');
}

/// True if `text` can be told from what surrounds it in a line for people, without quotes.
pub(crate) fn is_plain(text: &str) -> bool {
    let is_special = |character: char| {
        character.is_whitespace() || matches!(character, '"' | '\\' | '=') || is_dangerous(character)
    };
    !text.is_empty() && !text.contains(is_special)
}

/// Takes so many bytes of text, and marks where it was cut.
pub(crate) struct Bounded {
    text: String,
    limit: usize,
    is_cut: bool,
}

impl Bounded {
    pub(crate) const fn new(limit: usize) -> Self {
        Self { text: String::new(), limit, is_cut: false }
    }

    /// The text of `arguments`, cut after `limit` bytes.
    pub(crate) fn of(limit: usize, arguments: fmt::Arguments<'_>) -> String {
        let mut bounded = Self::new(limit);
        // An error is the end of the space, which is marked.
        let _ = bounded.write_fmt(arguments);
        bounded.text
    }
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.is_cut {
            return Err(fmt::Error);
        }
        let room = self.limit - self.text.len();
        if text.len() <= room {
            self.text.push_str(text);
            return Ok(());
        }
        let end = (0..=room).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        self.text.push_str(&text[..end]);
        self.text.push(CUT);
        self.is_cut = true;
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_survives_json_and_none_ends_a_line() {
        for first in (0..0x11_0000_u32).step_by(0x40) {
            let text: String = (first..first + 0x40).filter_map(char::from_u32).collect();
            let mut quoted = String::new();
            push_quoted(&mut quoted, &text);
            assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), text);
            assert!(!quoted.chars().any(is_dangerous), "{quoted:?}");
        }
    }

    #[test]
    fn what_needs_quotes_gets_them() {
        assert!(is_plain("127.0.0.1:6379") && is_plain("/var/lib/syros") && is_plain("größer"));
        for text in ["", "a b", "a=b", "\"", "a\\b", "a\nb", "\u{9b}31m", "\u{202e}"] {
            assert!(!is_plain(text), "{text:?}");
        }
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        assert_eq!(Bounded::of(5, format_args!("{}{}", "abc", "de")), "abcde");
        assert_eq!(Bounded::of(5, format_args!("{}{}", "abc", "déf")), "abcd…");
        assert_eq!(Bounded::of(5, format_args!("{}{}", "abcdef", "g")), "abcde…");
    }
}
