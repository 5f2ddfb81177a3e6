//! Which events are written: a level for all modules, and levels for modules by their paths.

use std::fmt;
use std::str::FromStr;

use tracing::Level;
use tracing::level_filters::LevelFilter;

/// Levels by their names in settings, from the fewest lines to the most; `off` is none.
const LEVELS: [(&str, LevelFilter); 6] = [
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
    ("off", LevelFilter::OFF),
];

/// Most modules with a level of their own: an event of a module is compared with each.
const TARGETS_MAX: usize = 64;

/// Longest path of a module: longer than any in this program.
const TARGET_BYTES_MAX: usize = 128;

/// A level for all modules, and others for the modules under some paths. Written as `info,syros_runtime::event_loop=debug`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// For modules that no path names.
    default: LevelFilter,
    /// Paths and their levels, the longest path first: it decides.
    targets: Vec<(String, LevelFilter)>,
}

/// Why a text is no [`Filter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterError {
    /// Not the name of a level.
    Level(String),
    /// Not the path of a module.
    Target(String),
    /// A path, or the level of all others, is there twice.
    Twice(String),
    /// More paths than there may be.
    TooMany(usize),
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Level(text) => {
                let names = LEVELS.map(|(name, _)| format!("\"{name}\"")).join(", ");
                write!(
                    f,
                    "\"{text}\" is not one of {names}; a module has a level of its own as in \
                     \"info,syros_runtime::event_loop=debug\""
                )
            }
            Self::Target(text) => write!(
                f,
                "\"{text}\" is not the path of a module, such as syros_runtime::event_loop: 1 to {TARGET_BYTES_MAX} letters, digits, \
                 '_' and ':'"
            ),
            Self::Twice(text) => write!(f, "\"{text}\" is a second level for the same modules"),
            Self::TooMany(count) => write!(f, "{count} modules have a level, and {TARGETS_MAX} may"),
        }
    }
}

impl std::error::Error for FilterError {}

impl Default for Filter {
    fn default() -> Self {
        Self { default: LevelFilter::INFO, targets: Vec::new() }
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let (mut default, mut targets) = (None, Vec::<(String, LevelFilter)>::new());
        for part in text.split(',').map(str::trim) {
            let twice = || FilterError::Twice(part.to_owned());
            match part.split_once('=') {
                None if default.is_some() && is_level(part) => return Err(twice()),
                None => default = Some(level(part)?),
                Some((target, _)) if targets.iter().any(|(known, _)| known == target) => return Err(twice()),
                Some((target, name)) => targets.push((path(target)?, level(name)?)),
            }
        }
        if targets.len() > TARGETS_MAX {
            return Err(FilterError::TooMany(targets.len()));
        }
        targets.sort_by_key(|(target, _)| std::cmp::Reverse(target.len()));
        Ok(Self { default: default.unwrap_or(LevelFilter::INFO), targets })
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name(self.default))?;
        self.targets.iter().try_for_each(|(target, level)| write!(f, ",{target}={}", name(*level)))
    }
}

impl Filter {
    /// True if events of this level and module are written.
    pub(crate) fn enables(&self, level: Level, target: &str) -> bool {
        let is_under = |path: &str| {
            target.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        let own = self.targets.iter().find(|(path, _)| is_under(path));
        level <= own.map_or(self.default, |(_, level)| *level)
    }

    /// The level beyond which no module's events are written.
    pub(crate) fn most(&self) -> LevelFilter {
        self.targets.iter().map(|(_, level)| *level).fold(self.default, Ord::max)
    }
}

fn is_level(text: &str) -> bool {
    LEVELS.iter().any(|(name, _)| *name == text)
}

fn level(text: &str) -> Result<LevelFilter, FilterError> {
    let found = LEVELS.iter().find(|(name, _)| *name == text);
    found.map(|(_, level)| *level).ok_or_else(|| FilterError::Level(text.to_owned()))
}

fn name(level: LevelFilter) -> &'static str {
    LEVELS.iter().find(|(_, known)| *known == level).map_or("off", |(name, _)| name)
}

fn path(text: &str) -> Result<String, FilterError> {
    let is_path = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':');
    if is_path && (1..=TARGET_BYTES_MAX).contains(&text.len()) {
        Ok(text.to_owned())
    } else {
        Err(FilterError::Target(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_path_decides_and_the_level_of_all_decides_for_the_rest() {
        let filter: Filter = "warn, syros_runtime::event_loop=trace,syros_runtime=debug".parse().unwrap();
        for (level, target, expected) in [
            (Level::WARN, "fjall", true),
            (Level::INFO, "fjall", false),
            (Level::DEBUG, "syros_runtime", true),
            (Level::DEBUG, "syros_runtime::node", true),
            (Level::TRACE, "syros_runtime::node", false),
            (Level::TRACE, "syros_runtime::event_loop", true),
            // A path ends where a module does.
            (Level::TRACE, "syros_runtime::event_loop_of_others", false),
            (Level::DEBUG, "syros_runtimes", false),
        ] {
            assert_eq!(filter.enables(level, target), expected, "{level} {target}");
        }
        assert_eq!(filter.most(), LevelFilter::TRACE);
        assert_eq!(filter.to_string(), "warn,syros_runtime::event_loop=trace,syros_runtime=debug");
        assert_eq!(filter.to_string().parse(), Ok(filter));
    }

    #[test]
    fn modules_alone_leave_the_others_at_info_and_off_is_nothing() {
        let filter: Filter = "syros_wal=debug".parse().unwrap();
        assert!(
            filter.enables(Level::INFO, "syros_runtime") && !filter.enables(Level::DEBUG, "syros_runtime")
        );
        let off: Filter = "off".parse().unwrap();
        assert!(!off.enables(Level::ERROR, "syros_runtime"));
        assert_eq!(off.most(), LevelFilter::OFF);
    }

    #[test]
    fn what_is_no_filter_is_named_with_what_would_be_one() {
        let many: Vec<String> = (0..65).map(|number| format!("m{number}=info")).collect();
        for (text, complaint) in [
            (
                "chatty",
                "\"chatty\" is not one of \"error\", \"warn\", \"info\", \"debug\", \"trace\", \"off\"",
            ),
            ("INFO", "\"INFO\" is not one of"),
            ("", "\"\" is not one of"),
            ("info,", "\"\" is not one of"),
            ("syros_runtime=loud", "\"loud\" is not one of"),
            ("=info", "\"\" is not the path of a module"),
            ("a b=info", "\"a b\" is not the path of a module, such as"),
            ("info,warn", "\"warn\" is a second level for the same modules"),
            ("a=info,a=warn", "\"a=warn\" is a second level"),
            (&many.join(","), "65 modules have a level, and 64 may"),
        ] {
            let error = text.parse::<Filter>().unwrap_err().to_string();
            assert!(error.contains(complaint), "{text}: {error}");
        }
    }
}
