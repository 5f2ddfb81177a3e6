//! What the log shows: options that the commands which log have in common.

use std::process::ExitCode;

use clap::Args;
use syros_logging::{Filter, Format, Settings};
use syros_types::GroupId;

/// Options of `syros server`, `syros gateway` and `syros dev`.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct LogOptions {
    /// What goes to standard error: error, warn, info, debug, trace or off, and levels of modules, as in
    /// info,syros_runtime::event_loop=debug
    #[arg(long, value_name = "FILTER")]
    pub(crate) log_level: Option<Filter>,
    /// How a line of the log looks: human, or json, which is one object a line
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<Format>,
    /// Most lines that one place in the code may log in a minute; 0 is no limit
    #[arg(long, value_name = "N")]
    pub(crate) log_lines: Option<u32>,
}

impl LogOptions {
    /// The settings, where an option does not say otherwise. Every line names the group of the process.
    pub(crate) fn or(&self, settings: Settings) -> Settings {
        let Settings { filter, format, mut rate_limit, .. } = settings;
        rate_limit.lines = self.log_lines.unwrap_or(rate_limit.lines);
        Settings {
            filter: self.log_level.clone().unwrap_or(filter),
            format: self.log_format.unwrap_or(format),
            rate_limit,
            context: vec![("group", u64::from(GroupId::ONLY.0))],
        }
    }
}

/// Tells why the process ends, as all its lines are written, and gives the status of that.
pub(crate) fn fail(problem: &str) -> ExitCode {
    if syros_logging::is_json() {
        tracing::error!(error = problem, "the process ends");
        syros_logging::flush();
    } else {
        syros_logging::flush();
        syros_cli::say!("syros: {problem}");
    }
    ExitCode::FAILURE
}

/// The status of a service that a mistake keeps from starting, which no other start mends: EX_CONFIG of sysexits.h(3head). The units
/// for systemd know it (`packaging/`).
const MISTAKE: u8 = 78;

/// As [`fail`], of a service that would fail again however often it is started.
pub(crate) fn fail_for_good(problem: &str) -> ExitCode {
    _ = fail(problem);
    ExitCode::from(MISTAKE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_win_over_the_file() {
        let context = vec![("group", 0)];
        let file = Settings { format: Format::Json, context, ..Settings::default() };
        assert_eq!(LogOptions::default().or(file.clone()), file);
        let filter: Filter = "warn,syros_wal=trace".parse().unwrap();
        let options = LogOptions {
            log_level: Some(filter.clone()),
            log_format: Some(Format::Human),
            log_lines: Some(7),
        };
        let settings = options.or(file);
        assert_eq!((settings.filter, settings.format, settings.rate_limit.lines), (filter, Format::Human, 7));
    }
}
