//! SGLang release numbers, and ranges of them.
//!
//! A log rarely states its release; wording and argument names narrow it down, so most of the program reasons
//! with ranges.

use std::fmt;

/// A release such as `0.4.6.post5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    /// Major, minor and patch.
    pub release: (u16, u16, u16),
    /// The number after `.post`, 0 for none.
    pub post: u16,
}

impl Version {
    /// The release `0.minor.patch`.
    pub const fn new(minor: u16, patch: u16) -> Self {
        Version { release: (0, minor, patch), post: 0 }
    }

    /// The release `0.minor.patch.postN`.
    pub const fn post(minor: u16, patch: u16, post: u16) -> Self {
        Version { release: (0, minor, patch), post }
    }

    /// Reads `0.5.12`, `v0.5.12`, `0.4.6.post5`, and the same with a trailing `rc1`, `.dev3+g1a2b3c4`.
    pub fn parse(text: &str) -> Option<Version> {
        let text = text.trim().trim_start_matches('v');
        let mut parts = text.split('.');
        let mut number = || parts.next().and_then(leading_number);
        let release = (number()?, number()?, number()?);
        let post = parts.find_map(|part| part.strip_prefix("post").and_then(leading_number)).unwrap_or(0);
        Some(Version { release, post })
    }
}

/// The number that a text begins with.
fn leading_number(text: &str) -> Option<u16> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text.get(..digits)?.parse().ok()
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor, patch) = self.release;
        write!(formatter, "{major}.{minor}.{patch}")?;
        if self.post > 0 { write!(formatter, ".post{}", self.post) } else { Ok(()) }
    }
}

/// The releases whose sources the catalogue was read from; a range is only as fine as these.
pub const KNOWN: [Version; 19] = [
    Version::new(1, 20),
    Version::new(2, 15),
    Version::post(3, 6, 3),
    Version::post(4, 1, 7),
    Version::post(4, 3, 4),
    Version::post(4, 6, 5),
    Version::post(4, 8, 1),
    Version::post(4, 10, 2),
    Version::post(5, 1, 3),
    Version::new(5, 3),
    Version::post(5, 6, 2),
    Version::post(5, 8, 1),
    Version::new(5, 9),
    Version::new(5, 10),
    Version::new(5, 12),
    Version::new(5, 15),
    Version::new(5, 18),
    Version::new(5, 20),
    Version::new(5, 23),
];

/// A range of releases, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VersionRange {
    /// The earliest it can be.
    pub first: Version,
    /// The latest it can be. The newest known release stands for "or later".
    pub last: Version,
}

impl VersionRange {
    /// Every release known here.
    pub const ALL: VersionRange = VersionRange { first: Version::new(1, 20), last: Version::new(5, 23) };

    /// The releases in both ranges. `None` where they exclude each other.
    pub fn intersect(self, other: VersionRange) -> Option<VersionRange> {
        let (first, last) = (self.first.max(other.first), self.last.min(other.last));
        (first <= last).then_some(VersionRange { first, last })
    }

    /// Whether every release in the range is at least `version`.
    pub fn surely_from(self, version: Version) -> bool {
        self.first >= version
    }

    /// Whether every release in the range is at most `version`.
    pub fn surely_until(self, version: Version) -> bool {
        self.last <= version
    }
}

impl fmt::Display for VersionRange {
    /// `0.5.12`, `0.5.15 to 0.5.18`, or `0.5.23 or later`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let newest = VersionRange::ALL.last;
        match (self.first == self.last, self.last == newest) {
            (true, true) => write!(formatter, "{} or later", self.first),
            (true, false) => write!(formatter, "{}", self.first),
            (false, true) => write!(formatter, "{} or later", self.first),
            (false, false) => write!(formatter, "{} to {}", self.first, self.last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_ordered_and_printed_as_read() {
        for text in ["0.1.20", "0.4.6.post5", "0.5.23"] {
            assert_eq!(Version::parse(text).unwrap().to_string(), text);
        }
        assert!(Version::parse("0.4.10.post2") > Version::parse("0.4.6.post5"));
        assert_eq!(Version::parse("v0.5.12rc1"), Some(Version::new(5, 12)));
        assert_eq!(Version::parse("0.5"), None);
    }

    #[test]
    fn known_releases_are_in_order() {
        assert!(KNOWN.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn ranges_intersect() {
        let old = VersionRange { first: Version::new(1, 20), last: Version::new(5, 12) };
        let new = VersionRange { first: Version::new(5, 9), last: Version::new(5, 23) };
        assert_eq!(old.intersect(new).unwrap().to_string(), "0.5.9 to 0.5.12");
        let newest = VersionRange { first: Version::new(5, 15), last: Version::new(5, 23) };
        assert_eq!(old.intersect(newest), None);
    }
}
