//! The machine: a stack of values, marks on it, and a memo.
//!
//! Each opcode takes at least one byte and adds at most one value or container, so that memory stays in proportion to the
//! input; texts stay where they are in it. Nothing recurses.

use super::opcode::{Opcode, opcode};
use super::{PickleError, PickleProblem};
use crate::snapshot::tree::{DEEPEST, Excess, MOST_ENTRIES, Tree, Value};

/// The highest protocol known.
const LATEST: u8 = 5;

/// Reads a pickle: its data, and its protocol.
///
/// # Errors
/// At the first opcode that is not plain data, has nothing to work on, or goes beyond a limit.
pub(crate) fn read(bytes: Vec<u8>) -> Result<(Tree, u8), PickleError> {
    let mut machine = Machine { tree: Tree::new(), stack: Vec::new(), marks: Vec::new(), memo: Vec::new() };
    let mut rest = bytes.as_slice();
    let mut protocol = 0;
    loop {
        let at = bytes.len() - rest.len();
        let refuse = |problem| PickleError { at, problem };
        let (after, code) = opcode(rest).map_err(refuse)?;
        rest = after;
        match code {
            Opcode::Protocol(number @ 2..=LATEST) => protocol = number,
            Opcode::Protocol(number) => return Err(refuse(PickleProblem::Protocol(number))),
            Opcode::Stop => {
                machine.tree.root = machine.pop().map_err(refuse)?;
                machine.tree.bytes = bytes;
                return Ok((machine.tree, protocol));
            }
            Opcode::Text(text) => {
                let end = bytes.len() - rest.len();
                let range = u32::try_from(end - text.len()).ok().zip(u32::try_from(text.len()).ok());
                let (start, length) = range.ok_or(refuse(PickleProblem::Entries))?;
                machine.push(Value::Text(start, length)).map_err(refuse)?;
            }
            code => machine.step(code).map_err(refuse)?,
        }
    }
}

struct Machine {
    tree: Tree,
    stack: Vec<Value>,
    marks: Vec<usize>,
    memo: Vec<Value>,
}

impl From<Excess> for PickleProblem {
    fn from(excess: Excess) -> PickleProblem {
        match excess {
            Excess::Entries => PickleProblem::Entries,
            Excess::Depth => PickleProblem::Depth,
        }
    }
}

impl Machine {
    fn step(&mut self, code: Opcode<'_>) -> Result<(), PickleProblem> {
        match code {
            // Handled by the caller, or of no effect.
            Opcode::Protocol(_) | Opcode::Stop | Opcode::Text(_) | Opcode::Frame => Ok(()),
            Opcode::Mark => self.mark(),
            Opcode::Pop => self.pop().map(|_| ()).or_else(|_| self.unmark().map(|_| ())),
            Opcode::PopMark => self.unmark().map(|at| self.stack.truncate(at)),
            Opcode::Duplicate => self.top().and_then(|value| self.push(value)),
            Opcode::Nothing => self.push(Value::Nothing),
            Opcode::Truth(truth) => self.push(Value::Truth(truth)),
            Opcode::Integer(number) => self.push(Value::Integer(number)),
            Opcode::Float(number) => self.push(Value::Float(number)),
            Opcode::EmptySequence => self.container(0).map(Value::Sequence).and_then(|it| self.push(it)),
            Opcode::EmptyRecord => self.container(0).map(Value::Record).and_then(|it| self.push(it)),
            Opcode::Sequence => self.since_mark().map(Value::Sequence).and_then(|it| self.push(it)),
            Opcode::Record => self.since_mark().map(Value::Record).and_then(|it| self.push(it)),
            Opcode::Tuple(size) => self.container(size).map(Value::Sequence).and_then(|it| self.push(it)),
            Opcode::Append => self.add(Kind::Sequence, 1),
            Opcode::SetItem => self.add(Kind::Record, 2),
            Opcode::Appends => self.add_since_mark(Kind::Sequence),
            Opcode::SetItems => self.add_since_mark(Kind::Record),
            Opcode::Memoize => self.put(self.memo.len()),
            Opcode::Put(entry) => self.put(entry as usize),
            Opcode::Get(entry) => {
                let value = self.memo.get(entry as usize).copied().ok_or(PickleProblem::Memo(entry))?;
                self.push(value)
            }
        }
    }

    fn push(&mut self, value: Value) -> Result<(), PickleProblem> {
        if self.stack.len() >= MOST_ENTRIES {
            return Err(PickleProblem::Entries);
        }
        self.stack.push(value);
        Ok(())
    }

    /// The lowest position that may be taken from: the last mark.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> Result<Value, PickleProblem> {
        let above = self.stack.get(self.floor()..).unwrap_or_default();
        above.last().copied().ok_or(PickleProblem::Operand)
    }

    fn pop(&mut self) -> Result<Value, PickleProblem> {
        let value = self.top()?;
        self.stack.pop();
        Ok(value)
    }

    fn mark(&mut self) -> Result<(), PickleProblem> {
        if self.marks.len() >= usize::from(DEEPEST) {
            return Err(PickleProblem::Depth);
        }
        self.marks.push(self.stack.len());
        Ok(())
    }

    fn unmark(&mut self) -> Result<usize, PickleProblem> {
        self.marks.pop().ok_or(PickleProblem::Operand)
    }

    /// A container of the last `size` values.
    fn container(&mut self, size: usize) -> Result<u32, PickleProblem> {
        let from = self.stack.len().checked_sub(size).filter(|from| *from >= self.floor());
        let from = from.ok_or(PickleProblem::Operand)?;
        let number = self.tree.container()?;
        self.tree.extend(number, self.stack.drain(from..))?;
        Ok(number)
    }

    fn since_mark(&mut self) -> Result<u32, PickleProblem> {
        let from = self.unmark()?;
        self.container(self.stack.len() - from.min(self.stack.len()))
    }

    /// Adds the last `size` values to the container below them.
    fn add(&mut self, kind: Kind, size: usize) -> Result<(), PickleProblem> {
        let from = self.stack.len().checked_sub(size).filter(|from| *from > self.floor());
        let from = from.ok_or(PickleProblem::Operand)?;
        let number = match (kind, from.checked_sub(1).and_then(|below| self.stack.get(below))) {
            (Kind::Sequence, Some(Value::Sequence(number))) => *number,
            (Kind::Record, Some(Value::Record(number))) if size.is_multiple_of(2) => *number,
            _ => return Err(PickleProblem::Operand),
        };
        self.tree.extend(number, self.stack.drain(from..))?;
        Ok(())
    }

    fn add_since_mark(&mut self, kind: Kind) -> Result<(), PickleProblem> {
        let from = self.unmark()?;
        self.add(kind, self.stack.len() - from.min(self.stack.len()))
    }

    /// Remembers the last value. CPython numbers entries in turn, so a number beyond the next is no pickle of its own.
    fn put(&mut self, entry: usize) -> Result<(), PickleProblem> {
        let value = self.top()?;
        if let Some(known) = self.memo.get_mut(entry) {
            *known = value;
        } else if entry == self.memo.len() {
            self.tree.count(1)?;
            self.memo.push(value);
        } else {
            return Err(PickleProblem::Memo(u32::try_from(entry).unwrap_or(u32::MAX)));
        }
        Ok(())
    }
}

/// What a container must be for values to be added.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Sequence,
    Record,
}
