//! States of Lua in which a script or a library has been compiled, and which have run it.
//!
//! Making a state takes longer than most scripts, and compiling a long script does, too. So a thread keeps what it has
//! made. No script may find out whether it is the first in its state, or members would answer differently: a state is only
//! kept if it is again what it was, down to the order in which it finds its strings (`syros_settle` in `lua/lbaselib.c`).

use crate::state::{End, Purpose, State};
use std::cell::RefCell;

/// Most that a thread keeps. Applications have few scripts, and a state takes some 100 KB.
const MOST: usize = 32;

/// Longest text that is kept, in bytes: the states of longer ones take more memory than most scripts are worth.
const TEXT_BYTES_MAX: usize = 64 << 10;

thread_local! {
    /// The one that was used last is the last.
    static IDLE: RefCell<Vec<State>> = const { RefCell::new(Vec::new()) };
}

fn place_of(idle: &[State], text: &[u8], purpose: Purpose) -> Option<usize> {
    idle.iter().rposition(|state| state.purpose() == purpose && state.text() == Some(text))
}

/// One for this text.
pub(crate) fn take(text: &[u8], purpose: Purpose) -> Option<State> {
    IDLE.with_borrow_mut(|idle| place_of(idle, text, purpose).map(|place| idle.remove(place)))
}

/// Keeps one in which a run has ended so, if its text stays in it.
pub(crate) fn put(state: State, end: &End) {
    let is_kept = state.text().is_some_and(|text| text.len() <= TEXT_BYTES_MAX);
    if !is_kept || matches!(end, End::OutOfFuel) || !state.settle() {
        return;
    }
    let oldest = IDLE.with_borrow_mut(|idle| {
        let oldest = if idle.len() == MOST { Some(idle.remove(0)) } else { None };
        idle.push(state);
        oldest
    });
    // Its end takes a while, and is nobody's business here.
    drop(oldest);
}

/// True if one is kept for this text.
#[cfg(test)]
pub(crate) fn keeps(text: &[u8], purpose: Purpose) -> bool {
    IDLE.with_borrow(|idle| place_of(idle, text, purpose).is_some())
}

/// Keeps none any more.
#[cfg(test)]
pub(crate) fn clear() {
    IDLE.with_borrow_mut(Vec::clear);
}
