//! The codec, seen from outside.

mod golden;
mod properties;
mod random;
