//! Text encodings: UTF-16 becomes UTF-8 before anything else looks at it.
//!
//! Separate because only the opening of a source needs it. PowerShell's `>` writes UTF-16, with a byte order mark or,
//! after a copy and paste of bytes, without one. Invalid UTF-8 and NUL bytes are no matter of this module: they are
//! replaced in the few lines that are handed on.

use std::io::{self, Read};

/// How the characters of a source are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, ASCII, or something that the lines' replacement of invalid bytes will cope with.
    Utf8,
    /// UTF-16, low byte first.
    Utf16Le,
    /// UTF-16, high byte first.
    Utf16Be,
}

/// How many bytes decide.
const SAMPLE: usize = 4096;

impl Encoding {
    /// Recognises the encoding by the byte order mark, or by every other byte being zero.
    pub fn detect(head: &[u8]) -> Encoding {
        match head {
            [0xFF, 0xFE, ..] => return Encoding::Utf16Le,
            [0xFE, 0xFF, ..] => return Encoding::Utf16Be,
            _ => {}
        }
        let sample = head.get(..SAMPLE).unwrap_or(head);
        let pairs = sample.chunks_exact(2).len();
        let zeros = |which: usize| sample.chunks_exact(2).filter(|pair| pair.get(which) == Some(&0)).count();
        let (first, second) = (zeros(0), zeros(1));
        // Mostly Latin text has a zero in most pairs, and in the same half of each.
        if pairs < 4 {
            Encoding::Utf8
        } else if second * 10 > pairs * 7 && first * 10 < pairs {
            Encoding::Utf16Le
        } else if first * 10 > pairs * 7 && second * 10 < pairs {
            Encoding::Utf16Be
        } else {
            Encoding::Utf8
        }
    }
}

/// Reads UTF-16 and gives UTF-8; unpaired surrogates become U+FFFD.
pub(super) struct Utf16Reader<R> {
    inner: R,
    big_endian: bool,
    input: Vec<u8>,
    output: Vec<u8>,
    given: usize,
}

impl<R: Read> Utf16Reader<R> {
    pub fn new(inner: R, big_endian: bool) -> Self {
        Utf16Reader { inner, big_endian, input: Vec::new(), output: Vec::new(), given: 0 }
    }

    /// Transcodes the next piece into `output`; false at the end.
    fn refill(&mut self) -> io::Result<bool> {
        const PIECE: u64 = 64 << 10;
        self.output.clear();
        self.given = 0;
        let ended = (&mut self.inner).take(PIECE).read_to_end(&mut self.input)? == 0;
        if ended && self.input.is_empty() {
            return Ok(false);
        }
        let mut units: Vec<u16> = self
            .input
            .chunks_exact(2)
            .filter_map(|pair| <[u8; 2]>::try_from(pair).ok())
            .map(|pair| if self.big_endian { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) })
            .collect();
        // The first half of a surrogate pair waits for the second.
        if !ended && units.last().is_some_and(|unit| (0xD800..0xDC00).contains(unit)) {
            units.pop();
        }
        for character in char::decode_utf16(units.iter().copied()) {
            let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.output.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        self.input.drain(..units.len() * 2);
        if ended {
            // Half a character is left at most.
            self.input.clear();
        }
        Ok(true)
    }
}

impl<R: Read> Read for Utf16Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.output.len() {
            if !self.refill()? {
                return Ok(0);
            }
        }
        let mut left = self.output.get(self.given..).unwrap_or_default();
        let read = left.read(buffer)?;
        self.given += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str, big_endian: bool) -> Vec<u8> {
        text.encode_utf16()
            .flat_map(|unit| if big_endian { unit.to_be_bytes() } else { unit.to_le_bytes() })
            .collect()
    }

    #[test]
    fn utf16_is_recognised_with_and_without_a_byte_order_mark() {
        let text = "[2026-11-29 13:51:42] Load weight begin. avail mem=139.13 GB\r\n 50%|█████ |";
        for mark in ["", "\u{feff}"] {
            let text = format!("{mark}{text}");
            assert_eq!(Encoding::detect(&utf16(&text, false)), Encoding::Utf16Le);
            assert_eq!(Encoding::detect(&utf16(&text, true)), Encoding::Utf16Be);
            assert_eq!(Encoding::detect(text.as_bytes()), Encoding::Utf8);
        }
        assert_eq!(Encoding::detect(&[0; 100]), Encoding::Utf8);
        assert_eq!(Encoding::detect(b""), Encoding::Utf8);
    }

    #[test]
    fn transcoding_copes_with_surrogates_across_pieces_and_half_a_character() {
        let text = format!("a{}", "😀█x\n".repeat(30_000));
        for big_endian in [false, true] {
            let mut bytes = utf16(&text, big_endian);
            bytes.push(b'h');
            let mut read = String::new();
            Utf16Reader::new(bytes.as_slice(), big_endian).read_to_string(&mut read).unwrap();
            assert_eq!(read, text);
        }
        let mut read = String::new();
        Utf16Reader::new([0x00, 0xD8, 0x41, 0x00].as_slice(), false).read_to_string(&mut read).unwrap();
        assert_eq!(read, "\u{fffd}A");
    }
}
