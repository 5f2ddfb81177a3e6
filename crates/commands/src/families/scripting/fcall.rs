//! FCALL and FCALL_RO: functions of libraries, whose loading takes some of their fuel.

use super::loaded::runs_loaded;
use crate::error::CommandError;
use crate::families::specification::CommandSpec;

runs_loaded! {
    /// FCALL: calls a function.
    FCall = 92, { name: "fcall", since: "7.0.0", summary: "Invokes a function." }
    /// FCALL_RO: calls a function that changes nothing.
    FCallRo = 367, { name: "fcall_ro", summary: "Invokes a read-only function." }
    CommandError::BadKeyCount
}
