//! Files as they are written.

use crate::values::put_length;
use std::io::{self, Write};
use syros_commands::rdb::{Format, LIBRARY, extended_checksum};

/// A file that is being written.
#[derive(Debug)]
pub struct FileWriter<W> {
    out: W,
    sum: u64,
    /// The database of what was written last.
    database: Option<u64>,
}

impl<W: Write> FileWriter<W> {
    /// Begins a file of this format, which says that `program` made it.
    ///
    /// # Errors
    /// What the system says.
    pub fn create(out: W, format: Format, program: &str) -> io::Result<Self> {
        let mut writer = Self { out, sum: 0, database: None };
        writer.put(format!("REDIS{:04}", format.version()).as_bytes())?;
        let mut bytes = Vec::new();
        for (name, value) in [("made-by", program), ("redis-bits", "64")] {
            bytes.push(250);
            put_string(name.as_bytes(), &mut bytes);
            put_string(value.as_bytes(), &mut bytes);
        }
        writer.put(&bytes)?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum = extended_checksum(self.sum, bytes);
        self.out.write_all(bytes)
    }

    /// Writes the text of a library of functions.
    ///
    /// # Errors
    /// What the system says.
    pub fn library(&mut self, text: &[u8]) -> io::Result<()> {
        let mut bytes = vec![LIBRARY];
        put_string(text, &mut bytes);
        self.put(&bytes)
    }

    /// Writes a key; `typed` is a type's number and a value, as `syros_commands::rdb` writes it.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Panics
    /// If there is no type's number.
    pub fn key(&mut self, database: u64, key: &[u8], expiry_ms: Option<u64>, typed: &[u8]) -> io::Result<()> {
        let (number, value) = typed.split_first().expect("a value has a type");
        let mut bytes = Vec::with_capacity(key.len() + 32);
        if self.database.replace(database) != Some(database) {
            bytes.push(254);
            put_length(database, &mut bytes);
        }
        if let Some(expiry_ms) = expiry_ms {
            bytes.push(252);
            bytes.extend_from_slice(&expiry_ms.to_le_bytes());
        }
        bytes.push(*number);
        put_string(key, &mut bytes);
        self.put(&bytes)?;
        self.put(value)
    }

    /// Ends the file, and gives back what it was written to.
    ///
    /// # Errors
    /// What the system says.
    pub fn finish(mut self) -> io::Result<W> {
        self.put(&[255])?;
        self.out.write_all(&self.sum.to_le_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }
}

fn put_string(string: &[u8], out: &mut Vec<u8>) {
    put_length(string.len() as u64, out);
    out.extend_from_slice(string);
}
