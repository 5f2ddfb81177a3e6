//! Rot: disks that do not keep what was written, while nobody looks.
//!
//! Only what a store can tell from a write that a crash cut short. Nobody can tell that of all damage to the
//! last batch of the log, or of a last segment that is gone or has become shorter (see `syros_wal`): a
//! store that took it for the end would not be wrong about anything it can know.

use crate::tally::Occurrence;
use std::ops::Range;
use syros_types::Prng;
use syros_wal::memory_disk::MemoryDisk;
use syros_wal::{
    Disk, DiskError, HEADER_BYTES, SegmentHeader, list_snapshots, recover_segment, snapshot_name,
};

/// Most bytes that go at once: a sector.
const WIPED_MAX: u64 = 512;

/// A file that may be damaged.
struct Target {
    name: String,
    bytes: Vec<u8>,
    /// Where its bytes may change.
    range: Range<usize>,
    /// Where it may end instead.
    ends: Range<usize>,
    /// It may be gone altogether.
    may_go: bool,
    /// Of the log; else it is a snapshot.
    is_segment: bool,
}

/// What was done.
pub(crate) struct Done {
    pub(crate) occurrence: Occurrence,
    pub(crate) what: String,
}

/// Damages something on `disk`; what belongs to somebody else comes from `other`. `None` if nothing was
/// found to damage.
pub(crate) fn damage(disk: &mut MemoryDisk, other: &mut MemoryDisk, prng: &mut Prng) -> Option<Done> {
    let targets = targets(disk).ok()?;
    let target = pick(&targets, prng)?;
    match prng.below(8) {
        0 if target.may_go => remove(disk, target).ok(),
        1 if !target.ends.is_empty() => Some(shorten(disk, target, prng)),
        2 | 3 if target.is_segment => swap(disk, target, other, prng),
        4 | 5 => Some(wipe(disk, target, prng)),
        _ => Some(flip(disk, target, prng)),
    }
}

fn targets(disk: &mut MemoryDisk) -> Result<Vec<Target>, DiskError> {
    let mut targets = Vec::new();
    let names = segment_names(disk)?;
    for (index, name) in names.iter().enumerate() {
        let Some(bytes) = disk.contents(name) else { continue };
        let contents = recover_segment(&bytes).expect("a segment gets its name when its header is written");
        // What is wrong before the last mark cannot be a torn tail; behind the records there is only room.
        let (all, marked) = (contents.valid_bytes, contents.marked_bytes);
        let is_last = index + 1 == names.len();
        let range = 0..if is_last { marked } else { all };
        // A last segment that ends in its header was not left so by a crash.
        let ends = 0..if is_last { HEADER_BYTES } else { all };
        let may_go = !is_last || names.len() == 1;
        targets.push(Target { name: name.clone(), range, ends, may_go, is_segment: true, bytes });
    }
    for op_number in list_snapshots(disk)? {
        let name = snapshot_name(op_number);
        let Some(bytes) = disk.contents(&name) else { continue };
        let (range, ends) = (0..bytes.len(), 0..bytes.len());
        targets.push(Target { name, range, ends, may_go: true, is_segment: false, bytes });
    }
    Ok(targets)
}

/// Names of the segments of the log, in order.
fn segment_names(disk: &mut MemoryDisk) -> Result<Vec<String>, DiskError> {
    let mut names = disk.list()?;
    names.retain(|name| name.starts_with("wal-") && name.ends_with(".log"));
    Ok(names)
}

fn pick<'a, T>(all: &'a [T], prng: &mut Prng) -> Option<&'a T> {
    (!all.is_empty()).then(|| &all[prng.below(all.len() as u64) as usize])
}

fn place(range: &Range<usize>, prng: &mut Prng) -> usize {
    range.start + prng.below(range.len() as u64) as usize
}

fn flip(disk: &MemoryDisk, target: &Target, prng: &mut Prng) -> Done {
    let (at, bit) = (place(&target.range, prng), prng.below(8));
    disk.corrupt(&target.name, at as u64, 1 << bit);
    Done {
        occurrence: Occurrence::BitFlipped,
        what: format!("bit {bit} of byte {at} of {} is flipped", target.name),
    }
}

fn wipe(disk: &MemoryDisk, target: &Target, prng: &mut Prng) -> Done {
    let first = place(&target.range, prng);
    let end = target.range.end.min(first + 1 + prng.below(WIPED_MAX) as usize);
    let mut bytes = target.bytes.clone();
    bytes[first..end].fill(0);
    disk.replace(&target.name, &bytes);
    Done {
        occurrence: Occurrence::BytesWiped,
        what: format!("bytes {first} to {end} of {} are zero", target.name),
    }
}

fn shorten(disk: &MemoryDisk, target: &Target, prng: &mut Prng) -> Done {
    let end = place(&target.ends, prng);
    disk.replace(&target.name, &target.bytes[..end]);
    Done { occurrence: Occurrence::FileShortened, what: format!("{} ends after {end} bytes", target.name) }
}

fn remove(disk: &mut MemoryDisk, target: &Target) -> Result<Done, DiskError> {
    disk.remove(&target.name)?;
    disk.sync_directory()?;
    Ok(Done { occurrence: Occurrence::FileGone, what: format!("{} is gone", target.name) })
}

fn swap(disk: &MemoryDisk, target: &Target, other: &mut MemoryDisk, prng: &mut Prng) -> Option<Done> {
    let theirs = segment_names(other).ok()?;
    let source = pick(&theirs, prng)?;
    let bytes = other.contents(source)?;
    // The other one may have an older state of this replica's, from an earlier swap. Nobody could tell that it
    // is old: whoever goes back to a backup of a replica loses what it has vouched for since.
    let owner = |bytes| SegmentHeader::decode(bytes).map(|header| header.replica);
    if owner(&bytes).is_ok() && owner(&bytes) == owner(&target.bytes) {
        return None;
    }
    disk.replace(&target.name, &bytes);
    let what = format!("{} is another replica's {source}", target.name);
    Some(Done { occurrence: Occurrence::FileSwapped, what })
}

#[cfg(test)]
mod tests {
    use super::*;
    use syros_types::ReplicaId;
    use syros_wal::{OpenError, Options, RecordNumber, Wal};

    const RECORDS: u64 = 40;

    fn options(replica: u8) -> Options {
        Options { segment_bytes: 400, may_create: false, ..Options::new(1, ReplicaId(replica)) }
    }

    fn disk(replica: u8, torn: usize) -> MemoryDisk {
        let disk = MemoryDisk::new();
        let options = Options { may_create: true, ..options(replica) };
        let (mut wal, _) = Wal::open(disk.clone(), options, |_, _| Ok::<_, ()>(())).unwrap();
        for number in 0..RECORDS {
            wal.append(&[&[number as u8; 20]]).unwrap();
            wal.flush().unwrap();
            wal.sync().unwrap();
        }
        if torn > 0 {
            wal.append(&[&[7; 20]]).unwrap();
            disk.fail_next_write(syros_wal::Cause::Io, torn);
            assert!(wal.flush().is_err());
        }
        disk
    }

    #[test]
    fn what_rots_is_never_taken_for_the_end_of_the_log() {
        let mut prng = Prng::new(5);
        let mut seen = Vec::new();
        for round in 0..500 {
            let mut victim = disk(1, round % 15);
            let done = damage(&mut victim, &mut disk(2, 0), &mut prng).unwrap();
            let opened = Wal::open(victim, options(1), |_, _| Ok::<_, ()>(()));
            match opened {
                Err(OpenError::Damaged { .. } | OpenError::UnsupportedVersion { .. }) => {}
                // What is missing at the beginning may have been removed on purpose; the records tell.
                Ok((_, recovery)) => {
                    assert!(done.occurrence == Occurrence::FileGone, "round {round}: {}", done.what);
                    assert!(recovery.first > RecordNumber(1) && recovery.last == RecordNumber(RECORDS));
                }
                Err(error) => panic!("round {round}: {}: {error:?}", done.what),
            }
            if !seen.contains(&done.occurrence) {
                seen.push(done.occurrence);
            }
        }
        assert_eq!(seen.len(), 5, "{seen:?}");
    }
}
