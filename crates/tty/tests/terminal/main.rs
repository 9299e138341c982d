//! A terminal without a host: what each flag does (`flags`), what the caller is told to do (`effects`), how
//! reads wait (`reading`). The values are those of Linux 6.18; `differential` compares with the host's.

mod effects;
mod flags;
mod reading;

use abi::Termios2;
use tty::{Effects, PtyPair, Read};

/// A pair with the slave open.
struct Terminal {
    pair: PtyPair,
}

impl Terminal {
    fn new() -> Terminal {
        let mut pair = PtyPair::new();
        pair.set_locked(false);
        pair.open_slave().expect("an unlocked slave opens");
        Terminal { pair }
    }

    fn with(change: impl FnOnce(&mut Termios2)) -> Terminal {
        let mut terminal = Terminal::new();
        terminal.set(change);
        terminal
    }

    /// Changes the settings.
    fn set(&mut self, change: impl FnOnce(&mut Termios2)) -> Effects {
        let mut termios = *self.pair.line().termios();
        change(&mut termios);
        let mut fx = Effects::default();
        self.pair.line_mut().set_termios(&termios, &mut fx);
        fx
    }

    /// Types, and says what the caller is to do.
    fn types(&mut self, text: &[u8]) -> Effects {
        let mut fx = Effects::default();
        assert_eq!(self.pair.write_master(text, &mut fx), text.len(), "there is room");
        fx
    }

    /// Prints, and says what the caller is to do.
    fn prints(&mut self, text: &[u8]) -> Effects {
        let mut fx = Effects::default();
        assert_eq!(self.pair.write_slave(text, &mut fx), Ok(text.len()), "there is room");
        fx
    }

    /// One read of the slave: its bytes, or None if it has to wait.
    fn reads(&mut self, max: usize) -> Option<Vec<u8>> {
        let Read::Ready(chunk) = self.pair.peek_slave(max) else { return None };
        self.pair.line_mut().commit(&chunk, chunk.bytes.len(), &mut Effects::default());
        Some(chunk.bytes)
    }

    /// All lines that wait, each in brackets.
    fn lines(&mut self) -> String {
        let mut lines = String::new();
        while let Some(bytes) = self.reads(5000) {
            lines += &format!("[{}]", bytes.escape_ascii());
        }
        lines
    }

    /// All that the master shows.
    fn screen(&mut self) -> String {
        let mut text = String::new();
        while let Read::Ready(chunk) = self.pair.peek_master(5000) {
            self.pair.commit_master(&chunk, chunk.bytes.len(), &mut Effects::default());
            text += &chunk.bytes.escape_ascii().to_string();
        }
        text
    }
}
