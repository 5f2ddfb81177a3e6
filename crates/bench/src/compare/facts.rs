//! What does not change within a comparison, and must be known to judge it.

/// What does not change within a comparison, and must be known to judge it.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Replicas that were asked for.
    pub replicas: usize,
    /// `fsync` or `replicated`.
    pub durability: String,
    /// The engine's name.
    pub engine: String,
    /// Length of a value; `None` in virtual time, where each is a few bytes that tell it from all others.
    pub value_bytes: Option<u64>,
    /// Number of records.
    pub keys: u64,
    /// How operations are asked for, and how long: in words.
    pub load: String,
    /// The commit that the program was built from.
    pub commit: String,
    /// Processor, cores and kernel.
    pub machine: String,
    /// The command line.
    pub command: String,
}

impl Facts {
    /// How many records there are, and how long.
    #[must_use]
    pub fn records(&self) -> String {
        match self.value_bytes {
            Some(bytes) => format!("{} records with values of {bytes} bytes", self.keys),
            None => format!("{} records", self.keys),
        }
    }
}

/// The value of the first line of `/proc/cpuinfo` that names the processor.
fn processor(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim()).filter(|name| !name.is_empty())
}

/// Processor, cores and kernel of this machine, in words.
#[must_use]
pub fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = match kernel.trim() {
        "" => "unknown",
        kernel => kernel,
    };
    let processor = processor(&text).unwrap_or(std::env::consts::ARCH);
    format!("{processor}, {cores} cores, Linux {kernel}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_named() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: A CPU @ 2: fast\n"), Some("A CPU @ 2: fast"));
        assert_eq!(processor("processor\t: 0\nmodel name\t:\n"), None);
        assert_eq!(processor(""), None);
        assert!(machine().contains(" cores, Linux "));
    }
}
