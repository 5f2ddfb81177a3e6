//! The first line of a script, which says what it may do.

use crate::sha1_hex;

/// What a script says about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// It has a first line with flags: it is one of the newer kind.
    pub has_line: bool,
    /// `no-writes`: it changes nothing.
    pub no_writes: bool,
    /// `allow-undeclared-keys`: it may touch any key.
    pub undeclared_keys: bool,
    /// `allow-oom`: it may make the data grow though there is no memory for that.
    pub out_of_memory: bool,
}

/// The flags that scripts and functions may have, besides those of [`Flags`]: there is nothing that they would allow
/// here.
const WITHOUT_EFFECT: [&str; 3] = ["allow-stale", "no-cluster", "allow-cross-slot-keys"];

impl Flags {
    /// Takes in a flag; false if there is no such flag.
    pub(crate) fn add(&mut self, flag: &str) -> bool {
        match flag {
            "no-writes" => self.no_writes = true,
            "allow-undeclared-keys" => self.undeclared_keys = true,
            "allow-oom" => self.out_of_memory = true,
            other => return WITHOUT_EFFECT.contains(&other),
        }
        true
    }

    /// Those of a script.
    ///
    /// # Errors
    /// The text of the error that is the reply to whoever runs it.
    pub fn of_script(text: &[u8]) -> Result<Self, String> {
        let mut flags = Self::default();
        let Some(line) = first_line(text) else { return Ok(flags) };
        flags.has_line = true;
        let mut parts = line.split(' ').filter(|part| !part.is_empty());
        let engine = parts.next().unwrap_or_default();
        if engine != "#!lua" {
            return Err(format!("ERR Unexpected engine in script shebang: {engine}"));
        }
        for part in parts {
            let Some(list) = part.strip_prefix("flags=") else {
                return Err(format!("ERR Unknown lua shebang option: {part}"));
            };
            for flag in list.split(',').filter(|flag| !flag.is_empty()) {
                if !flags.add(flag) {
                    return Err(format!("ERR Unexpected flag in script shebang: {flag}"));
                }
            }
        }
        Ok(flags)
    }
}

/// The first line of a text that begins with `#!`.
fn first_line(text: &[u8]) -> Option<String> {
    text.starts_with(b"#!").then(|| {
        let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        String::from_utf8_lossy(line).trim_end_matches('\r').to_owned()
    })
}

/// The name of a library, and its text without the first line, which is empty instead.
///
/// # Errors
/// The text of the error that is the reply to whoever loads it.
pub fn library_name(text: &[u8]) -> Result<String, String> {
    let line = first_line(text).ok_or("ERR Missing library metadata")?;
    if line.len() == text.len() {
        return Err("ERR Invalid library metadata".to_owned());
    }
    let mut parts = line.trim_start_matches("#!").split(' ');
    let engine = parts.next().unwrap_or_default();
    let mut name = None;
    for part in parts.filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some((option, value)) if option.eq_ignore_ascii_case("name") => {
                let bare = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
                if name.replace(bare.unwrap_or(value).to_owned()).is_some() {
                    return Err(
                        "ERR Invalid metadata value, name argument was given multiple times".to_owned()
                    );
                }
            }
            _ => return Err(format!("ERR Invalid metadata value given: {part}")),
        }
    }
    let name = name.ok_or("ERR Library name was not given")?;
    if !is_name(&name) {
        let allowed = "letters, numbers, or underscores(_) and must be at least one character long";
        return Err(format!("ERR Library names can only contain {allowed}"));
    }
    if !engine.eq_ignore_ascii_case("lua") {
        return Err(format!("ERR Engine '{engine}' not found"));
    }
    Ok(name)
}

/// True for names that libraries and functions may have.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A text as Lua gets it: the first line, if it begins with `#!`, is empty, so that all others keep their numbers.
pub(crate) fn without_first_line(text: &[u8]) -> &[u8] {
    if !text.starts_with(b"#!") {
        return text;
    }
    let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    &text[end..]
}

/// The name of a script: see [`sha1_hex`].
pub(crate) fn shown_name(text: &[u8]) -> String {
    String::from_utf8_lossy(&sha1_hex(text)).into_owned()
}
