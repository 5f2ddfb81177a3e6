//! A segment of the write-ahead log as found on disk: whole records, then bytes changed and the end
//! cut off. What is recovered is a prefix of what was written; anything else never panics.
#![no_main]
use libfuzzer_sys::fuzz_target;
use std::convert::Infallible;
use syros_types::ReplicaId;
use syros_wal::memory_disk::MemoryDisk;
use syros_wal::{Disk, Options, Wal};

fuzz_target!(|input: (Vec<Vec<u8>>, Vec<(u16, u8)>, u16)| {
    let (payloads, changes, cut) = input;
    let payloads: Vec<Vec<u8>> = payloads.into_iter().filter(|payload| !payload.is_empty()).collect();
    let mut disk = MemoryDisk::new();
    let options = Options { may_create: true, reserve_bytes: 64, ..Options::new(7, ReplicaId(1)) };
    let opened = Wal::open(disk.clone(), options, |_, _| Ok::<(), Infallible>(()));
    let Ok((mut wal, _)) = opened else { panic!("a new log opens") };
    for payload in &payloads {
        wal.append(&[payload]).expect("there is room");
    }
    wal.flush().expect("the disk works");
    wal.sync().expect("the disk works");
    let name = disk.list().expect("the disk works").into_iter().find(|name| name.ends_with(".log"));
    let mut bytes = disk.contents(&name.expect("there is a segment")).expect("it can be read");
    for (offset, mask) in changes {
        let at = usize::from(offset) % bytes.len();
        bytes[at] ^= mask;
    }
    bytes.truncate(bytes.len().saturating_sub(usize::from(cut)));
    if let Ok(contents) = syros_wal::recover_segment(&bytes) {
        for (recovered, written) in contents.records.iter().zip(&payloads) {
            assert_eq!(recovered, written);
        }
        assert!(contents.records.len() <= payloads.len());
    }
});
