//! What a log record costs: one producer keeps a number of records in flight on real files, as so many
//! closed-loop clients would, and the thread of the log writes and syncs them in groups.
//!
//! `cargo run --release -p syros-wal --example group_commit -- [directory] [seconds per row]`
//!
//! The directory is created, must not hold a log yet, and is emptied of it afterwards.

use std::convert::Infallible;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use syros_types::ReplicaId;
use syros_wal::{Disk, FileDisk, GroupCommit, Options, RecordNumber, Wal};

/// Stops a row early where the disk is very fast, so that the example never fills one.
const BYTES_PER_ROW_MAX: u64 = 512 * 1024 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().map_or_else(
        || std::env::temp_dir().join(format!("syros-wal-example-{}", std::process::id())),
        PathBuf::from,
    );
    let seconds = arguments.next().map_or(Ok(2.0), |text| text.parse::<f64>())?;
    println!("{}, {seconds} s per row", directory.display());
    println!(
        "{:>7} {:>9} {:>10} {:>9} {:>8} {:>12} {:>10} {:>9}",
        "bytes", "in flight", "records/s", "MB/s", "fsyncs/s", "records/sync", "us/fsync", "CPU us/rec"
    );
    for (payload_bytes, in_flight) in
        [(100, 1), (100, 50), (100, 1_000), (100, 50_000), (4_096, 50), (4_096, 5_000)]
    {
        row(&directory, payload_bytes, in_flight, Duration::from_secs_f64(seconds))?;
    }
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

fn row(directory: &Path, payload_bytes: usize, in_flight: u64, time: Duration) -> Result<(), Box<dyn Error>> {
    let options = Options { may_create: true, ..Options::new(1, ReplicaId(0)) };
    let (wal, recovery) = Wal::open(FileDisk::open(directory)?, options, |_, _| Ok::<(), Infallible>(()))?;
    if recovery.last != RecordNumber(0) {
        return Err("the directory holds a log".into());
    }
    let payload = vec![0x5a; payload_bytes];
    let producer = std::thread::current();
    let mut log = GroupCommit::start(wal, move |_| producer.unpark())?;
    let (began, cpu_before) = (Instant::now(), cpu_time()?);
    let mut bytes = 0;
    while began.elapsed() < time && bytes < BYTES_PER_ROW_MAX {
        let target = log.persisted().0 + in_flight;
        while log.appended().0 < target {
            log.append(&[&payload[..payload_bytes / 2], &payload[payload_bytes / 2..]])?;
            bytes += payload_bytes as u64;
        }
        log.submit();
        // As an event loop would: sleep until the log says that there is something to look at.
        while log.persisted().0 + in_flight == log.appended().0 && log.error().is_none() {
            std::thread::park();
        }
    }
    let mut wal = log.close()?;
    let (elapsed, cpu) = (began.elapsed().as_secs_f64(), cpu_time()? - cpu_before);
    let counters = wal.counters();
    let (records, syncs) = (counters.records as f64, counters.syncs as f64);
    println!(
        "{payload_bytes:>7} {in_flight:>9} {:>10.0} {:>9.1} {:>8.0} {:>12.1} {:>10.0} {:>9.2}",
        records / elapsed,
        counters.bytes as f64 / elapsed / 1e6,
        syncs / elapsed,
        records / syncs,
        elapsed * 1e6 / syncs,
        cpu.as_secs_f64() * 1e6 / records,
    );
    let disk = wal.disk_mut();
    for name in disk.list()? {
        disk.remove(&name)?;
    }
    Ok(())
}

/// Processor time of all threads so far, in user and kernel mode (proc(5): fields 14 and 15 of
/// `/proc/self/stat`, in hundredths of a second).
fn cpu_time() -> Result<Duration, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = text.rsplit_once(") ").ok_or("unexpected /proc/self/stat")?.1;
    let ticks: u64 =
        after_name.split(' ').skip(11).take(2).map(|field| field.parse::<u64>().unwrap_or(0)).sum();
    Ok(Duration::from_millis(ticks * 10))
}
