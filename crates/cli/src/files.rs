//! Files that commands read as a whole.

use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::path::Path;

/// Longest file that a command reads as a whole, in bytes: configurations and certificates are some kilobytes. A device has no
/// end.
pub const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Reads a file of at most [`TEXT_BYTES_MAX`] bytes, which is text.
///
/// # Errors
/// What the system said, or that the file is too long or no text; the file is not named.
pub fn read_text(path: &Path) -> Result<String, Error> {
    let mut bytes = Vec::new();
    // One more than it may have shows that it is too long. The length that the system tells of a device is 0.
    File::open(path)?.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        let problem = format!("it has more than {TEXT_BYTES_MAX} bytes, and that is the most that is read");
        return Err(Error::new(ErrorKind::InvalidData, problem));
    }
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        Error::new(
            ErrorKind::InvalidData,
            format!("it is not text: the byte at offset {offset} is not UTF-8"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_end_and_those_that_are_no_text_are_refused() {
        let problem = |path: &Path| read_text(path).unwrap_err().to_string();
        assert!(problem(Path::new("/dev/zero")).contains("more than 1048576 bytes"));
        let path = std::env::temp_dir().join(format!("syros-text-{}", std::process::id()));
        std::fs::write(&path, "a = 1\n").unwrap();
        assert_eq!(read_text(&path).unwrap(), "a = 1\n");
        std::fs::write(&path, b"a = \xff").unwrap();
        assert!(problem(&path).contains("the byte at offset 4 is not UTF-8"), "{}", problem(&path));
        std::fs::write(&path, vec![b'#'; 1 << 20]).unwrap();
        assert_eq!(read_text(&path).unwrap().len(), 1 << 20);
        std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
        assert!(problem(&path).contains("more than 1048576 bytes"));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read_text(&path).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
