use super::starts::STARTS_FILE;
use super::*;

use std::cell::RefCell;
use syros_snapshot::SnapshotFiles;
use syros_storage::RemovalPace;
use syros_types::{Configuration, FastQuorum, Group, Prng, ReplicaId};
use syros_wal::memory_disk::MemoryDisk;
use syros_wal::{Cause, DiskError};

const CLUSTER: u64 = 7;
const FILES: SnapshotFiles = SnapshotFiles { hash_seed: 0, pace: RemovalPace::SLOW };

/// A replica's directory on a disk in memory.
struct Directory {
    disk: MemoryDisk,
    is_new: bool,
    notices: RefCell<Vec<String>>,
}

impl ReplicaFiles for Directory {
    type Disk = MemoryDisk;
    type Error = DiskError;

    fn is_new(&self) -> bool {
        self.is_new
    }

    fn view(&mut self) -> Result<MemoryDisk, DiskError> {
        Ok(self.disk.directory("view"))
    }

    fn log(&mut self) -> Result<MemoryDisk, DiskError> {
        Ok(self.disk.directory("wal"))
    }

    fn snapshots(&mut self) -> Result<MemoryDisk, DiskError> {
        Ok(self.disk.directory("snapshots"))
    }

    fn new_log(&mut self) -> Result<MemoryDisk, DiskError> {
        self.disk.remove_directory("wal.new")?;
        Ok(self.disk.directory("wal.new"))
    }

    fn set_aside(&mut self) -> Result<String, DiskError> {
        self.disk.rename_directory("snapshots", "damaged")?;
        self.disk.rename_directory("wal", "damaged")?;
        self.disk.rename_directory("wal.new", "wal")?;
        self.disk.sync_directory()?;
        Ok("damaged".to_owned())
    }

    fn on_notice(&mut self, notice: &OpenNotice<'_>) {
        self.notices.borrow_mut().push(format!("{notice:?}"));
    }
}

fn config(replicas: usize) -> Config {
    let group = Group::new(replicas).expect("a small group");
    let configuration = Configuration::first(group, FastQuorum::Majority);
    Config::new(
        configuration,
        ReplicaId(1 % replicas as u8),
        |body| syros_commands::describe(body).ok(),
        |_, _| true,
    )
}

type Opened = Result<(bool, View), DataError<DiskError>>;

/// Opens the directory: whether the replica is without memory, and its view.
fn open(directory: &mut Directory, replicas: usize) -> Opened {
    let config = config(replicas);
    let options = Options::new(CLUSTER, config.replica);
    let (data, _) = Data::open(&config, &options, directory, || FILES)?;
    directory.is_new = false;
    Ok((data.stored.restored.is_amnesiac(), data.view.view()))
}

/// The directory of a replica that has run and is in view 3.
fn in_view_3(replicas: usize) -> Directory {
    let mut directory = Directory { disk: MemoryDisk::new(), is_new: true, notices: RefCell::default() };
    let config = config(replicas);
    let options = Options::new(CLUSTER, config.replica);
    let (mut data, _) = Data::open(&config, &options, &mut directory, || FILES).expect("a new disk works");
    directory.is_new = false;
    data.view.record(View(3)).expect("it takes the view");
    directory
}

fn lose_log(directory: &Directory) {
    directory.disk.remove_directory("wal").expect("it can be removed");
    directory.disk.clone().sync_directory().expect("it syncs");
}

#[test]
fn what_is_damaged_is_set_aside_whenever_the_machine_stops() {
    let mut finished = 0;
    for operation in 1..60 {
        for seed in 0..20 {
            let mut directory = in_view_3(3);
            lose_log(&directory);
            directory.disk.stop_at(directory.disk.operations() + operation);
            let first = open(&mut directory, 3);
            finished += u64::from(first.is_ok());
            directory.disk.crash(&mut Prng::new(seed));
            let (is_amnesiac, view) = open(&mut directory, 3).expect("it is found damaged, or set aside");
            assert!(is_amnesiac && view == View(3), "stopped at {operation}, seed {seed}: view {}", view.0);
        }
    }
    assert!(finished > 20, "so many operations it takes: {finished}");
}

#[test]
fn without_log_and_view_there_is_no_way_back() {
    let mut directory = in_view_3(3);
    lose_log(&directory);
    directory.disk.directory("view").corrupt(VIEW_FILE, 25, 1);
    let Err(DataError::Hopeless { damage, view }) = open(&mut directory, 3) else { panic!("it is hopeless") };
    assert!(
        damage.contains("there is no write-ahead log") && view.contains("is damaged"),
        "{damage}; {view}"
    );
    // Alone it has nobody to get its log from.
    let mut directory = in_view_3(1);
    lose_log(&directory);
    assert!(matches!(open(&mut directory, 1), Err(DataError::Alone { .. })));
    // One that has never run has no view.
    let mut directory = in_view_3(3);
    directory.is_new = true;
    assert!(matches!(open(&mut directory, 3), Err(DataError::NotNewView(View(3)))));
}

#[test]
fn a_view_that_is_damaged_is_written_anew_from_the_log() {
    let mut directory = in_view_3(3);
    directory.disk.directory("view").corrupt(VIEW_FILE, 25, 1);
    assert_eq!(open(&mut directory, 3).expect("the log is intact"), (false, View(0)));
    assert!(directory.notices.take().iter().any(|notice| notice.starts_with("ViewDamaged")));
    assert!(open(&mut directory, 3).is_ok());
    assert!(directory.notices.take().is_empty());
}

/// Whoever renews the file tries again later. The view must not have been forgotten meanwhile.
#[test]
fn a_view_that_could_not_be_renewed_is_still_known() {
    let mut directory = in_view_3(3);
    let owner = Owner { cluster: CLUSTER, replica: config(3).replica };
    let disk = directory.disk.directory("view");
    let mut file = ViewFile::open(disk.clone(), owner).expect("it is readable");
    disk.corrupt(VIEW_FILE, 25, 1);
    disk.fail_next_write(Cause::Full, 0);
    assert!(file.renew().is_err(), "the disk is full");
    assert_eq!(file.view(), View(3));
    file.renew().expect("it has room again");
    lose_log(&directory);
    assert_eq!(open(&mut directory, 3).expect("it comes back without memory"), (true, View(3)));
}

/// The files of a directory.
fn copied(directory: &Directory, name: &str) -> Vec<(String, Vec<u8>)> {
    let mut disk = directory.disk.directory(name);
    let names = disk.list().expect("it can be listed");
    names.into_iter().map(|name| (name.clone(), disk.contents(&name).expect("it is there"))).collect()
}

fn put_back(directory: &Directory, name: &str, files: &[(String, Vec<u8>)]) {
    directory.disk.remove_directory(name).expect("it can be removed");
    directory.disk.clone().sync_directory().expect("it syncs");
    files.iter().for_each(|(file, bytes)| directory.disk.directory(name).replace(file, bytes));
}

/// The view stays, as it does where an operator moves only the log out of the way.
#[test]
fn an_old_log_that_is_put_back_is_set_aside() {
    let mut directory = in_view_3(3);
    let old = copied(&directory, "wal");
    assert_eq!(open(&mut directory, 3).expect("it starts again"), (false, View(3)));
    put_back(&directory, "wal", &old);
    assert_eq!(open(&mut directory, 3).expect("it starts without its memory"), (true, View(3)));
    let notices = directory.notices.take();
    let text = "is that of start 1 of this replica, which has started 2 times";
    assert!(notices.iter().any(|notice| notice.contains(text)), "{notices:?}");

    // What was set aside is put back.
    put_back(&directory, "wal", &copied(&directory, "damaged"));
    assert_eq!(open(&mut directory, 3).expect("it is set aside once more"), (true, View(3)));
    assert!(directory.notices.take().iter().any(|notice| notice.starts_with("SetAside")));
    assert_eq!(open(&mut directory, 3).expect("what it has is its own"), (true, View(3)));
    assert_eq!(directory.notices.take(), [""; 0]);

    let mut alone = in_view_3(1);
    let old = copied(&alone, "wal");
    open(&mut alone, 1).expect("it starts again");
    put_back(&alone, "wal", &old);
    assert!(matches!(open(&mut alone, 1), Err(DataError::Alone { .. })));
}

#[test]
fn a_log_of_a_build_that_counted_no_starts_is_taken() {
    let mut directory = in_view_3(3);
    let uncounted = |files: Vec<(String, Vec<u8>)>| -> Vec<_> {
        files.into_iter().filter(|(name, _)| name != STARTS_FILE).collect()
    };
    for name in ["wal", "view"] {
        let files = uncounted(copied(&directory, name));
        put_back(&directory, name, &files);
    }
    for _ in 0..2 {
        assert_eq!(open(&mut directory, 3).expect("it starts"), (false, View(3)));
    }
    // Its copy, put back now, is an old one.
    let files = uncounted(copied(&directory, "wal"));
    put_back(&directory, "wal", &files);
    assert_eq!(open(&mut directory, 3).expect("it starts without its memory"), (true, View(3)));
}

/// What a start has not finished to count has acknowledged nothing.
#[test]
fn a_start_counts_wherever_the_machine_stops() {
    for operation in 1..40 {
        for seed in 0..20 {
            let mut directory = in_view_3(3);
            let old = copied(&directory, "wal");
            directory.disk.stop_at(directory.disk.operations() + operation);
            let has_started = open(&mut directory, 3).is_ok();
            directory.disk.crash(&mut Prng::new(seed));
            assert_eq!(
                open(&mut directory, 3).expect("it starts"),
                (false, View(3)),
                "stopped at {operation}"
            );
            put_back(&directory, "wal", &old);
            let (is_amnesiac, _) = open(&mut directory, 3).expect("it starts");
            assert!(is_amnesiac, "stopped at {operation}, seed {seed}, {has_started}");
        }
    }
}
