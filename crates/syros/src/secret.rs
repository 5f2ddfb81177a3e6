//! The file with the secret of a cluster.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use syros_runtime::Secret;

/// Bits of a file's mode that let others than its owner do anything with it.
const OTHERS: u32 = 0o077;

/// Random bytes in a secret that this program makes; it writes them as text.
const RANDOM_BYTES: usize = 32;

/// Reads a secret: everything in the file but white space at its end.
pub(crate) fn read(path: &Path) -> Result<Secret, String> {
    let name = path.display();
    let failed = |error: std::io::Error| format!("cannot read the secret in {name}: {error}");
    let file = File::open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(format!("cannot read the secret in {name}: it is not a file"));
    }
    let mode = found.permissions().mode();
    if mode & OTHERS != 0 {
        return Err(format!(
            "the secret in {name} can be read by others than its owner (mode {:o}): chmod 600 {name}",
            mode & 0o777
        ));
    }
    let mut bytes = Vec::new();
    // One more than it may have shows that it is too long.
    file.take(Secret::BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    Secret::new(bytes.trim_ascii_end()).map_err(|problem| format!("the secret in {name}: {problem} bytes"))
}

/// Makes a secret, unless there is one.
pub(crate) fn make(path: &Path) -> Result<(), String> {
    let failed = |problem: String| format!("cannot write the secret {}: {problem}", path.display());
    if path.exists() {
        return Ok(());
    }
    let mut bytes = [0; RANDOM_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| failed(error.to_string()))?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let new = path.with_extension("new");
    let mut options = File::options();
    let file = options.create(true).truncate(true).write(true).mode(0o600).open(&new);
    file.and_then(|mut file| {
        writeln!(file, "{text}")?;
        file.sync_all()?;
        std::fs::rename(&new, path)
    })
    .map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn secrets_are_made_once_and_read_only_if_nobody_else_can() {
        let path = std::env::temp_dir().join(format!("syros-secret-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        make(&path).unwrap();
        let secret = read(&path).unwrap();
        make(&path).unwrap();
        assert!(read(&path).unwrap() == secret, "it is not made anew");
        assert!(read(&std::env::temp_dir()).unwrap_err().contains("it is not a file"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(read(&path).unwrap_err().contains("mode 640"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "short\n").unwrap();
        let refused = read(&path).unwrap_err();
        assert!(refused.contains("a secret of 5 bytes; it must have 16 to 4096 bytes"), "{refused}");
        fs::remove_file(&path).unwrap();
    }
}
