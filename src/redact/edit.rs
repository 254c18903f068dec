//! Pieces of a text that are replaced: drawn together where they overlap, and how offsets move with them.

use super::Kind;
use std::ops::Range;

/// A piece of a text that has to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
}

impl Span {
    pub(super) fn new(range: Range<usize>, kind: Kind) -> Span {
        Span { start: range.start, end: range.end, kind }
    }
}

/// A replaced piece: where it began in the text as read, and its bytes before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edit {
    /// Byte offset in the text as read.
    pub start: usize,
    /// Bytes that were taken out.
    pub old: usize,
    /// Bytes that were put in.
    pub new: usize,
}

/// Where in the redacted text the first pseudonym stands that replaced any of these bytes of the text as read.
pub(super) fn put_at(edits: &[Edit], start: usize, length: usize) -> Option<Range<usize>> {
    let (mut taken, mut put) = (0, 0);
    for edit in edits {
        if edit.start < start.saturating_add(length) && start < edit.start + edit.old {
            let at = (edit.start + put).checked_sub(taken)?;
            return Some(at..at + edit.new);
        }
        taken += edit.old;
        put += edit.new;
    }
    None
}

/// Where a byte of the text as read stands in the redacted one. `None` where it was replaced.
pub fn moved(edits: &[Edit], offset: usize) -> Option<usize> {
    let before = edits.iter().take_while(|edit| edit.start <= offset);
    let (mut taken, mut put) = (0, 0);
    for edit in before {
        if offset < edit.start + edit.old {
            return None;
        }
        taken += edit.old;
        put += edit.new;
    }
    (offset + put).checked_sub(taken)
}

/// The spans in order, overlapping ones as one: nothing of either may stay.
pub(super) fn merge(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    let mut merged: Vec<Span> = Vec::new();
    // Of the last merged span: the longest that it is made of.
    let mut longest = 0;
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start < last.end => {
                let length = span.end - span.start;
                let grows = span.end > last.end;
                last.end = last.end.max(span.end);
                last.kind = stronger(last.kind, span.kind, grows, length > longest);
                longest = longest.max(length);
            }
            _ => {
                longest = span.end - span.start;
                merged.push(span);
            }
        }
    }
    merged
}

/// The kind of two overlapping spans: the user's own word counts most, then secrets; a model's path stays one only where
/// all of it is the path; else the longer one tells what it is.
fn stronger(one: Kind, other: Kind, grows: bool, longer: bool) -> Kind {
    match (one, other) {
        (Kind::Own, _) | (_, Kind::Own) => Kind::Own,
        (Kind::Secret, _) | (_, Kind::Secret) => Kind::Secret,
        (Kind::Path, Kind::Path) if !grows => Kind::Path,
        (Kind::Path, _) if !grows => Kind::Path,
        (Kind::Path, _) | (_, Kind::Path) => Kind::Secret,
        _ if longer => other,
        _ => one,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_move_with_what_was_replaced_before_them() {
        let edits = [Edit { start: 2, old: 3, new: 8 }, Edit { start: 10, old: 6, new: 1 }];
        let at: Vec<Option<usize>> = [0, 2, 4, 5, 9, 10, 16].map(|offset| moved(&edits, offset)).to_vec();
        assert_eq!(put_at(&edits, 4, 3), Some(2..10));
        assert_eq!(put_at(&edits, 15, 9), Some(15..16));
        assert_eq!(put_at(&edits, 5, 5), None);
        assert_eq!(at, [Some(0), None, None, Some(10), Some(14), None, Some(16)]);
    }

    #[test]
    fn overlapping_spans_become_one_of_the_stronger_kind() {
        let span = |start: usize, end: usize, kind: Kind| Span::new(start..end, kind);
        let merged = merge(vec![
            span(4, 9, Kind::Host),
            span(0, 5, Kind::Secret),
            span(20, 30, Kind::Path),
            span(21, 25, Kind::User),
            span(40, 44, Kind::Ip),
            span(40, 50, Kind::Host),
        ]);
        assert_eq!(merged, [span(0, 9, Kind::Secret), span(20, 30, Kind::Path), span(40, 50, Kind::Host)]);
    }
}
