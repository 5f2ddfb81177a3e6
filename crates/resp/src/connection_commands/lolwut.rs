//! LOLWUT: a drawing.

use crate::info::REDIS_VERSION;
use crate::writer::{Protocol, write_verbatim};

const DRAWING: &str = "\
           .        *         .
   *            .      .           *
        ___o___o___o___o___
   .   |   |   |   |   |   |   .
 ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
";

/// Writes the drawing and the version of Redis that the server is like; what the drawing should be like is not looked at.
pub(super) fn answer(protocol: Protocol, out: &mut Vec<u8>) {
    let text = format!("{DRAWING}\nRedis ver. {REDIS_VERSION}\n");
    write_verbatim(out, protocol, text.as_bytes());
}
