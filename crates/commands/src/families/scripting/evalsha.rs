//! EVALSHA and EVALSHA_RO: scripts that have been loaded.

use super::loaded::runs_loaded;
use crate::error::CommandError;
use crate::families::specification::CommandSpec;
use crate::programs::ScriptName;

runs_loaded! {
    /// EVALSHA: runs a script that has been loaded.
    EvalSha = 91, {
        name: "evalsha",
        key_notes: "",
        summary: "Executes a server-side Lua script by SHA1 digest."
    }
    /// EVALSHA_RO: runs a script that has been loaded and changes nothing.
    EvalShaRo = 366, {
        name: "evalsha_ro",
        key_notes: "",
        summary: "Executes a read-only server-side Lua script by SHA1 digest."
    }
    CommandError::NotInteger
}

/// The script that a client calls so.
pub(crate) fn script_name(name: &[u8]) -> Option<ScriptName> {
    let digit = |digit: u8| Some(char::from(digit).to_digit(16)? as u8);
    let mut bytes = ScriptName::default();
    let (pairs, []) = name.as_chunks::<2>() else { return None };
    if pairs.len() != bytes.len() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}
