//! What a process knows of the scripts that its clients run.
//!
//! A script that is run by its text is loaded, so that others find it by its name. Loading it concerns everything that is
//! loaded, so it is ordered before and after all else, which is slow: it happens once. If the cluster has forgotten the
//! script meanwhile, a client that names it is told so, and then this process forgets all that it knows, too.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use syros_commands::{Operation, ScriptUse};
use syros_scripts::{Flags, sha1_hex};

/// Most scripts and functions that are remembered: as many scripts as are loaded.
const KNOWN_MAX: usize = 1_000;

/// Scripts and functions by their names; whether they may touch keys that they do not declare.
#[derive(Debug, Default)]
pub(crate) struct KnownScripts(Mutex<BTreeMap<Vec<u8>, bool>>);

impl KnownScripts {
    /// Tells an operation what it has to know of the script that it runs. If scripts `may_touch_any` key, everything is the
    /// footprint of each; else of those alone that say so. Of those that only read and bring their text along it is one if all
    /// members know of such (`reads_may`).
    pub(crate) fn tell(&self, operation: &mut Operation<'_>, may_touch_any: bool, reads_may: bool) {
        let Some(used) = operation.script_mut() else { return };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match used {
            ScriptUse::Text { text, loads, owns_everything } => {
                *owns_everything = may_touch_any;
                let name = sha1_hex(text).to_vec();
                *loads = !known.contains_key(&name);
                if *loads {
                    let touches_any = Flags::of_script(text).is_ok_and(|flags| flags.undeclared_keys);
                    remember(&mut known, name, touches_any);
                }
            }
            ScriptUse::Name { name, owns_everything } => {
                *owns_everything =
                    may_touch_any || known.get(&name.to_ascii_lowercase()).copied().unwrap_or(false);
            }
            ScriptUse::Function { name, owns_everything } => {
                *owns_everything = may_touch_any || known.get(&function(name)).copied().unwrap_or(false);
            }
            ScriptUse::ReadText { owns_everything } => *owns_everything = may_touch_any && reads_may,
            ScriptUse::Flush => known.clear(),
        }
    }

    /// A client gets this error.
    pub(crate) fn on_error(&self, error: &[u8]) {
        if error.starts_with(b"NOSCRIPT") {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        let mut words = error.split(|byte| *byte == b' ');
        let (code, kind, name) = (words.next(), words.next(), words.next());
        if let (Some(b"TRYAGAIN"), Some(kind @ (b"script" | b"function")), Some(name)) = (code, kind, name) {
            let name = if kind == b"function" { function(name) } else { name.to_ascii_lowercase() };
            remember(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), name, true);
        }
    }
}

/// The name of a function beside those of scripts.
fn function(name: &[u8]) -> Vec<u8> {
    [b"function ", name].concat()
}

fn remember(known: &mut BTreeMap<Vec<u8>, bool>, name: Vec<u8>, touches_any: bool) {
    if known.len() >= KNOWN_MAX {
        known.clear();
    }
    known.insert(name, touches_any);
}

#[cfg(test)]
mod tests {
    use super::*;
    use syros_commands::{Generation, Parsed, parse};

    #[test]
    fn a_script_that_reads_may_touch_any_key_where_all_members_know_of_that() {
        let generation = |may_touch_any, reads_may| {
            let words: [&[u8]; 3] = [b"eval_ro", b"return redis.call('dbsize')", b"0"];
            let Ok(Parsed::Data(mut operation)) = parse(&words) else { panic!("a script") };
            KnownScripts::default().tell(&mut operation, may_touch_any, reads_may);
            let mut body = Vec::new();
            operation.encode(&mut body);
            Generation::of_body(&body)
        };
        assert_eq!(generation(true, true), Generation::OwningReads);
        for (may_touch_any, reads_may) in [(true, false), (false, true)] {
            assert_eq!(generation(may_touch_any, reads_may), Generation::Programs);
        }
    }
}
