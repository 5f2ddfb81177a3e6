//! The log on real files.

mod common;

use common::{only_segment, open, options, payloads, write_to};
use std::fs;
use std::path::{Path, PathBuf};
use syros_types::Prng;
use syros_wal::{
    Cause, Disk, FileDisk, FileDiskError, OpenDirectory, Options, ReadOnlyDisk, RecordNumber, read_atomic,
    write_atomically,
};

/// A directory that goes when it is dropped.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("syros-wal-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_log_on_files() {
    let directory = Directory::new("log");
    let options = Options { segment_bytes: 200, ..options() };
    let (mut wal, ..) = open(FileDisk::open(&directory.0).unwrap(), &options).unwrap();
    write_to(&mut wal, 30);
    assert!(wal.remove_before(RecordNumber(10)).unwrap() > 0);
    write_atomically(wal.disk_mut(), "identity", b"me").unwrap();
    drop(wal);
    let (mut wal, recovery, records) = open(FileDisk::open(&directory.0).unwrap(), &options).unwrap();
    assert_eq!(records, payloads(30)[recovery.first.0 as usize - 1..]);
    assert_eq!(read_atomic(wal.disk_mut(), "identity"), Ok(Some(b"me".to_vec())));

    // A torn tail is cut from the file itself, and appending goes on from there.
    let last = wal.disk_mut().list().unwrap().pop().unwrap();
    drop(wal);
    let path = directory.0.join(&last);
    let mut bytes = fs::read(&path).unwrap();
    let valid = bytes.len();
    bytes.extend_from_slice(&[9, 0, 0, 0, 1, 2]);
    fs::write(&path, &bytes).unwrap();
    let (mut wal, recovery, _) = open(FileDisk::open(&directory.0).unwrap(), &options).unwrap();
    assert_eq!((recovery.cut.unwrap().bytes, recovery.last.0), (6, 30));
    assert_eq!(fs::metadata(&path).unwrap().len(), valid as u64);
    write_to(&mut wal, 40);
    drop(wal);
    assert_eq!(open(FileDisk::open(&directory.0).unwrap(), &options).unwrap().1.last.0, 40);
}

#[test]
fn a_directory_has_one_owner() {
    let directory = Directory::new("owner");
    let first = FileDisk::open(&directory.0).unwrap();
    assert_eq!(first.path(), directory.0);
    let error = FileDisk::open(&directory.0).unwrap_err();
    assert!(matches!(&error, FileDiskError::Locked { process: Some(id), .. } if *id == std::process::id()));
    let (path, process) = (directory.0.display(), std::process::id());
    assert_eq!(error.to_string(), format!("data directory {path} is in use by process {process}"));
    fs::write(directory.0.join("lock"), "unreadable").unwrap();
    let error = FileDisk::open(&directory.0).unwrap_err();
    assert_eq!(error.to_string(), format!("data directory {path} is in use by another process"));
    drop(first);
    FileDisk::open(&directory.0).unwrap();
}

#[test]
fn a_directory_that_cannot_be_used() {
    let directory = Directory::new("missing");
    let error = FileDisk::open(&directory.0.join("below")).unwrap_err();
    assert!(
        matches!(&error, FileDiskError::Io { error, .. } if error.kind() == std::io::ErrorKind::NotFound)
    );
}

#[test]
fn file_operations() {
    let directory = Directory::new("operations");
    let mut disk = FileDisk::open(&directory.0).unwrap();
    let mut file = disk.create("a").unwrap();
    disk.append(&mut file, b"hello").unwrap();
    disk.append(&mut file, b" there").unwrap();
    assert_eq!(disk.length(&file), Ok(11));
    disk.truncate(&mut file, 5).unwrap();
    disk.append(&mut file, b"!").unwrap();
    disk.sync(&mut file).unwrap();
    disk.sync_and_evict(&mut file).unwrap();
    let mut buffer = [0; 5];
    disk.read(&file, 1, &mut buffer).unwrap();
    assert_eq!(&buffer, b"ello!");
    assert_eq!(disk.read(&file, 2, &mut buffer).unwrap_err().cause, Cause::ShortRead);
    let again = disk.create("a").unwrap();
    assert_eq!(disk.length(&again), Ok(0), "replaced");
    disk.rename("a", "b").unwrap();
    disk.sync_directory().unwrap();
    fs::create_dir(directory.0.join("directory")).unwrap();
    assert_eq!(disk.list().unwrap(), ["b"], "neither the lock nor directories");
    disk.remove("b").unwrap();
    assert_eq!(disk.remove("b").unwrap_err().cause, Cause::NotFound);
    assert_eq!(disk.open("b").unwrap_err().to_string(), "cannot open b: no such file");
    for name in ["", ".", "..", "a/b", "/etc/passwd", "lock", "a\0"] {
        assert_eq!(disk.open(name).unwrap_err().cause, Cause::Name, "{name:?}");
    }
    assert!(only_segment().starts_with("wal-"));
}

/// What is in a directory and its directories: names and content, sorted.
fn contents(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            let bytes = fs::read(&path).unwrap();
            found.push((path, bytes));
        }
    }
    found.sort();
    found
}

#[test]
fn all_operations_act_on_the_own_directory_when_another_has_taken_its_place() {
    let home = Directory::new("replaced");
    let (path, away) = (home.0.join("wal"), home.0.join("wal.away"));
    fs::create_dir(&home.0).unwrap();
    let mut disk = FileDisk::open(&path).unwrap();
    let zeros = vec![0; 20_000];
    let mut old = disk.create("old").unwrap();
    disk.append(&mut old, &zeros).unwrap();
    disk.create("gone").unwrap();
    // The other directory has files of all these names, and one more.
    fs::rename(&path, &away).unwrap();
    fs::create_dir(&path).unwrap();
    for name in ["lock", "old", "gone", "new", "renamed", "other"] {
        fs::write(path.join(name), "precious").unwrap();
    }
    let before = contents(&path);

    disk.fill(&mut old, 0, &[b"directly"]).unwrap();
    let mut new = disk.create("new").unwrap();
    disk.append(&mut new, b"appended").unwrap();
    disk.sync(&mut new).unwrap();
    disk.rename("new", "renamed").unwrap();
    disk.remove("gone").unwrap();
    disk.sync_directory().unwrap();
    assert_eq!(disk.list().unwrap(), ["old", "renamed"]);
    assert_eq!(disk.open("other").unwrap_err().cause, Cause::NotFound);
    write_atomically(&mut disk, "atomic", b"whole").unwrap();
    let mut again = disk.open("old").unwrap();
    disk.fill(&mut again, 8, &[b" and again"]).unwrap();
    disk.sync(&mut again).unwrap();

    assert_eq!(contents(&path), before, "nothing has changed in the other directory");
    let read = |name: &str| fs::read(away.join(name)).unwrap();
    assert_eq!(&read("old")[..20], b"directly and again\0\0");
    assert_eq!((read("old").len(), read("renamed")), (zeros.len(), b"appended".to_vec()));
    assert!(!away.join("gone").exists() && !away.join("new").exists());
    let mut looker = ReadOnlyDisk::of(disk.directory().clone());
    assert_eq!(looker.list(), disk.list());
    let renamed = looker.open("renamed").unwrap();
    assert_eq!(looker.length(&renamed), Ok(8));
    assert_eq!(looker.open("other").unwrap_err().cause, Cause::NotFound);
    // When the own directory is back, the disk is as usable as before.
    fs::remove_dir_all(&path).unwrap();
    fs::rename(&away, &path).unwrap();
    assert_eq!(disk.list().unwrap(), ["atomic", "old", "renamed"]);
    assert_eq!(read_atomic(&mut disk, "atomic"), Ok(Some(b"whole".to_vec())));
}

#[test]
fn nothing_is_created_for_a_directory_that_was_deleted() {
    let home = Directory::new("deleted");
    let path = home.0.join("wal");
    fs::create_dir(&home.0).unwrap();
    let mut disk = FileDisk::open(&path).unwrap();
    let mut file = disk.create("a").unwrap();
    fs::remove_dir_all(&path).unwrap();
    for is_replaced in [false, true] {
        if is_replaced {
            fs::create_dir(&path).unwrap();
            fs::write(path.join("a"), "precious").unwrap();
        }
        assert_eq!(disk.create("b").unwrap_err().cause, Cause::NotFound);
        assert_eq!(disk.open("a").unwrap_err().cause, Cause::NotFound);
        assert_eq!(disk.rename("a", "b").unwrap_err().cause, Cause::NotFound);
        assert_eq!(disk.remove("a").unwrap_err().cause, Cause::NotFound);
        assert_eq!(disk.list(), Ok(Vec::new()));
        // What was open stays so, and no restart finds it: whether the directory is there has to be looked at.
        disk.append(&mut file, b"lost").unwrap();
        assert_eq!(path.exists(), is_replaced);
    }
    assert_eq!(contents(&path), [(path.join("a"), b"precious".to_vec())]);
}

#[test]
fn a_directory_of_an_open_directory() {
    let home = Directory::new("parent");
    let (path, away) = (home.0.join("node"), home.0.join("node.away"));
    fs::create_dir_all(path.join("engine")).unwrap();
    let parent = OpenDirectory::open(&path).unwrap();
    fs::rename(&path, &away).unwrap();
    fs::create_dir_all(path.join("engine/1")).unwrap();

    drop(FileDisk::open_in(&parent, "wal").unwrap());
    let disk = FileDisk::open_in(&parent, "wal").unwrap();
    assert_eq!(disk.path(), path.join("wal"), "where it was opened: for messages");
    assert!(matches!(FileDisk::open_in(&parent, "wal").unwrap_err(), FileDiskError::Locked { .. }));
    assert_eq!(parent.create_directory("engine").ok(), Some(false));
    fs::create_dir(away.join("engine/1")).unwrap();
    parent.remove_directory("engine/1").unwrap();
    assert!(!away.join("engine/1").exists() && path.join("engine/1").exists());
    assert_eq!(parent.all_names().unwrap(), ["engine", "wal"]);
    assert!(parent.contains("wal").unwrap() && !parent.contains("snapshots").unwrap());
    assert!(!path.join("wal").exists(), "all that was made is in the own directory");
    // A path for code that knows only paths.
    fs::write(parent.lasting_path().join("file"), "mine").unwrap();
    assert_eq!(fs::read(away.join("file")).unwrap(), b"mine");
    fs::remove_dir_all(&away).unwrap();
    assert!(FileDisk::open_in(&parent, "wal").is_err(), "nothing is made in a directory that was deleted");
    assert!(fs::create_dir_all(parent.lasting_path().join("a/b")).is_err());
}

#[test]
fn room_is_filled_in_pieces_of_any_length() {
    let directory = Directory::new("fill");
    let mut disk = FileDisk::open(&directory.0).unwrap();
    let mut file = disk.create("a").unwrap();
    // Not a multiple of any block: the end has to be written in another way.
    let length = 300_123_usize;
    disk.append(&mut file, &vec![0; length]).unwrap();
    disk.sync(&mut file).unwrap();
    let mut prng = Prng::new(4);
    let mut expected = Vec::new();
    let mut zeros = length;
    while zeros > 0 {
        let most = [10, 300, 5_000, 40_000][prng.below(4) as usize];
        let bytes = zeros.min(1 + prng.below(most) as usize);
        let piece: Vec<u8> = (0..bytes).map(|_| 1 + prng.below(255) as u8).collect();
        let (first, second) = piece.split_at(prng.below(bytes as u64) as usize);
        disk.fill(&mut file, expected.len() as u64, &[first, second]).unwrap();
        expected.extend_from_slice(&piece);
        zeros -= bytes;
        match prng.below(8) {
            0 => disk.sync(&mut file).unwrap(),
            // Whoever opens it again goes on anywhere in a block.
            1 => file = disk.open("a").unwrap(),
            // More room.
            2 if prng.chance(1, 3) => {
                let more = 1 + prng.below(9_000) as usize;
                disk.append(&mut file, &vec![0; more]).unwrap();
                zeros += more;
            }
            // Less, and what is cut is not there when it comes back.
            3 if prng.chance(1, 3) => {
                let cut = prng.below(100).min(expected.len() as u64) as usize;
                expected.truncate(expected.len() - cut);
                disk.truncate(&mut file, expected.len() as u64).unwrap();
                disk.append(&mut file, &vec![0; zeros + cut]).unwrap();
                zeros += cut;
            }
            _ => {}
        }
        assert_eq!(disk.length(&file), Ok((expected.len() + zeros) as u64));
        if prng.chance(1, 5) {
            let mut found = fs::read(directory.0.join("a")).unwrap();
            assert!(found.split_off(expected.len()).iter().all(|byte| *byte == 0));
            assert!(found == expected, "at {}", expected.len());
        }
    }
    disk.sync_and_evict(&mut file).unwrap();
    assert!(fs::read(directory.0.join("a")).unwrap() == expected);
}

#[test]
fn a_renamed_file_is_filled_all_the_same() {
    let directory = Directory::new("renamed");
    let mut disk = FileDisk::open(&directory.0).unwrap();
    let mut file = disk.create("a").unwrap();
    disk.append(&mut file, &[0; 8192]).unwrap();
    disk.rename("a", "b").unwrap();
    drop(disk.create("a").unwrap());
    disk.fill(&mut file, 0, &[b"hello"]).unwrap();
    assert!(fs::read(directory.0.join("b")).unwrap().starts_with(b"hello\0"));
    assert_eq!(fs::read(directory.0.join("a")).unwrap(), b"");
}

#[test]
fn a_full_file_system_is_told_apart() {
    // Linux has a file on which every write fails for lack of space.
    let directory = Directory::new("full");
    let mut disk = FileDisk::open(&directory.0).unwrap();
    std::os::unix::fs::symlink("/dev/full", directory.0.join("full")).unwrap();
    let mut file = disk.open("full").unwrap();
    assert_eq!(disk.append(&mut file, b"x").unwrap_err().cause, Cause::Full);
}
