//! How much memory this process may take.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

/// What is assumed where the system does not say, in bytes.
const ASSUMED: u64 = 4 << 30;

/// The memory that this process may take, in bytes: the machine's, or the limit of its control group or of its
/// address space, if that is less.
pub(crate) fn machine_memory() -> u64 {
    let limits = [installed(), control_group(), getrlimit(Resource::As).current];
    limits.into_iter().flatten().min().unwrap_or(ASSUMED)
}

/// The machine's memory (proc(5)).
fn installed() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The lowest limit of the control groups around this process (cgroups(7), both versions).
fn control_group() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        match controllers {
            "" => lowest(Path::new("/sys/fs/cgroup"), path, "memory.max"),
            "memory" => lowest(Path::new("/sys/fs/cgroup/memory"), path, "memory.limit_in_bytes"),
            _ => None,
        }
    });
    limits.min()
}

/// The lowest limit of a group and those around it. In a container its own group is the root of what it sees.
fn lowest(root: &Path, group: &str, file: &str) -> Option<u64> {
    let group = root.join(group.trim_start_matches('/'));
    let groups = group.ancestors().take_while(|ancestor| ancestor.starts_with(root));
    // Where there is no limit, version 2 says "max", version 1 a number above all memory there is.
    groups.filter_map(|group| fs::read_to_string(group.join(file)).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_limit_counts() {
        let root = std::env::temp_dir().join(format!("syros-memory-{}", std::process::id()));
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        for (group, text) in [("", "900\n"), ("a", "300\n"), ("a/b", "max\n"), ("a/b/c", "400\n")] {
            fs::write(root.join(group).join("memory.max"), text).unwrap();
        }
        assert_eq!(lowest(&root, "/a/b/c", "memory.max"), Some(300));
        assert_eq!(lowest(&root, "/a/gone", "memory.max"), Some(300));
        assert_eq!(lowest(&root, "/", "memory.max"), Some(900));
        assert_eq!(lowest(&root, "/", "memory.high"), None);
        fs::remove_dir_all(&root).unwrap();
        assert!(machine_memory() > 1 << 20);
    }
}
