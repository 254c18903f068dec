//! Pickles of plain data.
//!
//! A pickle is a program: it can import names and call them, which is how a file takes over the process that loads it. This
//! machine has no such instructions. It knows those that numbers, texts, lists, tuples and dictionaries are made of, and
//! refuses a file at the first other one. It is our own because the crate at hand (serde-pickle 1.2) resolves some globals
//! and calls, copies a memoised value at each reference (a few hundred bytes then grow to gigabytes) and has no limits.
//!
//! Opcodes by name and meaning: CPython, `Lib/pickletools.py` (protocols 2 to 5).

mod machine;
mod opcode;

#[cfg(test)]
mod tests;

pub(super) use machine::read;

use thiserror::Error;

/// The opcode that every pickle of protocol 2 and later begins with.
pub(super) const PROTOCOL: u8 = 0x80;

/// Why a pickle was refused, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("at byte {at}: {problem}")]
pub struct PickleError {
    /// The byte at which the opcode in question stands, counted from 0.
    pub at: usize,
    /// What is wrong with it.
    pub problem: PickleProblem,
}

/// What is wrong with a pickle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PickleProblem {
    /// An opcode that imports, calls or builds objects.
    #[error(
        "{0} would import or run code; a snapshot is plain data, so this file is something else, or an attack"
    )]
    Code(&'static str),
    /// An opcode of plain data that snapshots don't have.
    #[error("{0} is not part of any snapshot")]
    Unsupported(&'static str),
    /// No opcode.
    #[error("{0:#04x} is no opcode of protocols 2 to 5")]
    Unknown(u8),
    /// A protocol that this machine does not know.
    #[error("protocol {0} is unknown; 2 to 5 are read")]
    Protocol(u8),
    /// The data ends too early.
    #[error("the data ends in the middle")]
    Ended,
    /// A length that the rest of the file cannot hold.
    #[error("it claims {claimed} bytes, and {left} are left")]
    Claim {
        /// How much it claims.
        claimed: u64,
        /// How much there is.
        left: usize,
    },
    /// An integer of more than eight bytes.
    #[error("an integer of {0} bytes is no size and no address")]
    LargeInteger(u64),
    /// An opcode that needs values which are not there, or of another kind.
    #[error("it has nothing to work on: the pickle is broken")]
    Operand,
    /// A reference to something that was never remembered, or a number out of turn.
    #[error("memo entry {0} is missing or out of turn")]
    Memo(u32),
    /// Too deep.
    #[error("it is nested deeper than {} levels", super::tree::DEEPEST)]
    Depth,
    /// Too many values.
    #[error("it holds more than {} values", super::tree::MOST_ENTRIES)]
    Entries,
}
