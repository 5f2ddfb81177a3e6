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

struct Idle {
    text: Box<[u8]>,
    purpose: Purpose,
    state: State,
}

thread_local! {
    /// The one that was used last is the last.
    static IDLE: RefCell<Vec<Idle>> = const { RefCell::new(Vec::new()) };
}

/// One for this text.
pub(crate) fn take(text: &[u8], purpose: Purpose) -> Option<State> {
    IDLE.with_borrow_mut(|idle| {
        let is_it = |idle: &Idle| idle.purpose == purpose && *idle.text == *text;
        let place = idle.iter().rposition(is_it)?;
        Some(idle.remove(place).state)
    })
}

/// Keeps one in which a run of this text has ended so.
pub(crate) fn put(text: &[u8], purpose: Purpose, state: State, end: &End) {
    if text.len() > TEXT_BYTES_MAX || matches!(end, End::OutOfFuel) || !state.settle() {
        return;
    }
    let idle = Idle { text: text.into(), purpose, state };
    let oldest = IDLE.with_borrow_mut(|all| {
        let oldest = if all.len() == MOST { Some(all.remove(0)) } else { None };
        all.push(idle);
        oldest
    });
    // Its end takes a while, and is nobody's business here.
    drop(oldest);
}

/// True if one is kept for this text.
#[cfg(test)]
pub(crate) fn keeps(text: &[u8], purpose: Purpose) -> bool {
    IDLE.with_borrow(|all| all.iter().any(|idle| idle.purpose == purpose && *idle.text == *text))
}

/// Keeps none any more.
#[cfg(test)]
pub(crate) fn clear() {
    IDLE.with_borrow_mut(Vec::clear);
}
