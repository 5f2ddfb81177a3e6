//! The terminal: a screen of its own, and keys one by one.

use std::io::{self, Read, Write};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

/// Ctrl-C, which sends no signal while keys are read one by one.
const INTERRUPT: u8 = 3;

/// True for keys that end it.
pub(super) const fn is_end(key: u8) -> bool {
    matches!(key, b'q' | b'Q' | INTERRUPT)
}

/// A screen of its own, until it is dropped: then the terminal is as it was.
pub(super) struct Screen {
    /// How the terminal was; `None` if keys come from elsewhere.
    before: Option<Termios>,
}

impl Screen {
    pub(super) fn open() -> Result<Self, String> {
        let before = tcgetattr(io::stdin()).ok();
        if let Some(before) = &before {
            let mut raw = before.clone();
            raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
            raw.special_codes[SpecialCodeIndex::VMIN] = 1;
            raw.special_codes[SpecialCodeIndex::VTIME] = 0;
            tcsetattr(io::stdin(), OptionalActions::Flush, &raw)
                .map_err(|error| format!("cannot read keys one by one: {error}"))?;
        }
        let screen = Self { before };
        // Another screen, without a cursor.
        write("\x1b[?1049h\x1b[?25l")?;
        Ok(screen)
    }

    /// Shows lines, as far as there is room.
    pub(super) fn show(&mut self, lines: &[String]) -> Result<(), String> {
        // Some that have no size say 0.
        let size = tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0);
        let (rows, columns) =
            size.map_or((24, 80), |size| (usize::from(size.ws_row), usize::from(size.ws_col)));
        let mut text = String::from("\x1b[H");
        for (place, line) in lines.iter().take(rows.saturating_sub(1)).enumerate() {
            let shown: String = line.chars().take(columns).collect();
            let is_title = place == 0 || place == 2;
            text += &if is_title {
                format!("\x1b[1m{shown}\x1b[0m\x1b[K\r\n")
            } else {
                format!("{shown}\x1b[K\r\n")
            };
        }
        text += "\x1b[Jq ends";
        write(&text)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // If the terminal is gone, there is nothing to put in order.
        let _ = write("\x1b[?25h\x1b[?1049l");
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, before);
        }
    }
}

fn write(text: &str) -> Result<(), String> {
    let mut out = io::stdout();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| format!("the terminal: {error}"))
}

/// Hands over keys until nobody takes them, or there are none any more.
pub(super) fn read_keys(mut take: impl FnMut(u8) -> bool) {
    let mut key = [0];
    let mut keys = io::stdin();
    while keys.read_exact(&mut key).is_ok() && take(key[0]) {}
}
