//! Progress on standard error, for commands that take as long as a server's start.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::RefCell;
use std::io::{IsTerminal, Write};

/// Standard error: a spinner under growing lines on a terminal, plain lines elsewhere.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    last: RefCell<String>,
}

impl Progress {
    /// As standard error allows.
    pub(super) fn new() -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            // A template that does not compile would leave the default one, which shows the message too.
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style);
            }
            bar.set_message("waiting for the first line of a start");
            bar
        });
        Progress { bar, last: RefCell::default() }
    }

    /// A line that stays.
    pub(super) fn line(&self, words: &str) {
        match &self.bar {
            Some(bar) => bar.println(words),
            // Nothing is left to tell the user through if standard error is gone.
            None => drop(writeln!(std::io::stderr().lock(), "{words}")),
        }
    }

    /// A line that is not repeated.
    pub(super) fn note(&self, words: &str) {
        if *self.last.borrow() != words {
            *self.last.borrow_mut() = words.to_string();
            self.line(words);
        }
    }

    /// The line that changes in place. Elsewhere than on a terminal it would only repeat itself.
    pub(super) fn outlook(&self, words: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(words.to_string());
        }
    }

    /// Moves the spinner on.
    pub(super) fn tick(&self) {
        if let Some(bar) = &self.bar {
            bar.tick();
        }
    }

    /// Takes the changing line away.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
