//! Clusters of real processes, each in a network namespace of its own, under load while leaders are
//! killed, stopped and cut off, disks run full, and stores are damaged. What the clients saw is a history, which must be
//! linearizable: by our own checker here, and by Porcupine with `scripts/porcupine-check`, which reads the
//! files that these tests leave in `target/tmp/histories`.
//!
//! Needs root and, on Debian, iproute2 (namespaces and links) and e2fsprogs and mount (disks that run full).
//! A test that lacks one says so and passes.

#[path = "../common/mod.rs"]
mod common;
mod damage;
mod disks;
mod histories;
mod links;
mod load;
mod processes;
mod setup;
