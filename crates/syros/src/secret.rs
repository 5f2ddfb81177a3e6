//! The files with the secret of a cluster, and with the first password of its default user.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use syros_runtime::{Secret, hide_passwords};

/// Bits of a file's mode that let others than its owner do anything with it.
const OTHERS: u32 = 0o077;

/// Random bytes in a secret that this program makes; it writes them as text.
const RANDOM_BYTES: usize = 32;

/// Longest password in a file, in bytes.
const PASSWORD_BYTES_MAX: usize = 4096;

/// Reads a secret: everything in the file but white space at its end.
pub(crate) fn read(path: &Path) -> Result<Secret, String> {
    let bytes = read_private(path, "secret", Secret::BYTES_MAX)?;
    let name = path.display();
    Secret::new(bytes.trim_ascii_end()).map_err(|problem| format!("the secret in {name}: {problem} bytes"))
}

/// Reads a password, everything in the file but white space at its end: the rules that give it to a user, with its hash.
pub(crate) fn read_password(path: &Path) -> Result<Vec<Vec<u8>>, String> {
    let password = password_in(path)?;
    Ok(hide_passwords(&[b"resetpass", &[b">", &password[..]].concat()]))
}

/// Reads a password that is shown to a server.
pub(crate) fn read_password_text(path: &Path) -> Result<String, String> {
    let name = path.display();
    String::from_utf8(password_in(path)?).map_err(|_| format!("the password in {name} is not text"))
}

fn password_in(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = read_private(path, "password", PASSWORD_BYTES_MAX)?;
    let (password, name) = (bytes.trim_ascii_end(), path.display());
    match password.len() {
        0 => Err(format!("the password in {name} has 0 bytes; it must have 1 to {PASSWORD_BYTES_MAX}")),
        length if length > PASSWORD_BYTES_MAX => {
            Err(format!("the password in {name} has more than {PASSWORD_BYTES_MAX} bytes"))
        }
        _ => Ok(password.to_vec()),
    }
}

/// Reads a file that only its owner may read: at most one byte more than so many.
fn read_private(path: &Path, what: &str, bytes_max: usize) -> Result<Vec<u8>, String> {
    let name = path.display();
    let failed = |error: std::io::Error| format!("cannot read the {what} in {name}: {error}");
    let file = File::open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(format!("cannot read the {what} in {name}: it is not a file"));
    }
    let mode = found.permissions().mode();
    if mode & OTHERS != 0 {
        return Err(format!(
            "the {what} in {name} can be read by others than its owner (mode {:o}): chmod 600 {name}",
            mode & 0o777
        ));
    }
    let mut bytes = Vec::new();
    // One more than it may have shows that it is too long.
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
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

    #[test]
    fn a_password_is_read_as_its_hash_and_only_if_nobody_else_can() {
        let path = std::env::temp_dir().join(format!("syros-password-{}", std::process::id()));
        fs::write(&path, "foobar \n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let hash = b"#c3ab8ff13720e8ad9047dd39466b3c8974e592c2fa383d4a3960714caef0c4f2";
        assert_eq!(read_password(&path).unwrap(), [b"resetpass".to_vec(), hash.to_vec()]);
        fs::write(&path, " \n").unwrap();
        assert!(read_password(&path).unwrap_err().contains("has 0 bytes; it must have 1 to 4096"));
        fs::write(&path, "x".repeat(4097)).unwrap();
        assert!(read_password(&path).unwrap_err().contains("has more than 4096 bytes"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).unwrap();
        assert!(read_password(&path).unwrap_err().contains("the password in"));
        fs::remove_file(&path).unwrap();
    }
}
