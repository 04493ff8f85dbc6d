//! Splits a line into fields and parses the numbers in them.

use ssdlab_time::Nanos;

/// An error message about a line.
pub type Message = String;

/// Limit of offsets and lengths.
const BYTES_MAX: u64 = 1 << 56;

pub struct Fields<'a> {
    rest: Option<&'a [u8]>,
    /// A comma, or a blank that stands for one or more blanks.
    separator: u8,
}

impl<'a> Fields<'a> {
    pub fn by_commas(line: &'a [u8]) -> Self {
        Self { rest: Some(line), separator: b',' }
    }

    pub fn by_blanks(line: &'a [u8]) -> Self {
        let line = line.trim_ascii();
        Self { rest: (!line.is_empty()).then_some(line), separator: b' ' }
    }

    /// The next field, trimmed.
    pub fn next(&mut self) -> Option<&'a [u8]> {
        let line = self.rest?;
        let is_end = |byte: &u8| {
            *byte == self.separator || (self.separator == b' ' && byte.is_ascii_whitespace())
        };
        let end = line.iter().position(is_end);
        self.rest = end.map(|end| {
            let rest = &line[end + 1..];
            if self.separator == b' ' { rest.trim_ascii_start() } else { rest }
        });
        Some(line[..end.unwrap_or(line.len())].trim_ascii())
    }

    /// The next field, or an error if there is none.
    pub fn word(&mut self, name: &str) -> Result<&'a [u8], Message> {
        self.next().ok_or_else(|| format!("{name} is missing: the line is too short"))
    }

    /// The next field as a whole number.
    pub fn number(&mut self, name: &str) -> Result<u64, Message> {
        let word = self.word(name)?;
        number(word).ok_or_else(|| invalid(name, word, "a whole number, 0 or more"))
    }

    /// The next field, a count of `unit` bytes, in bytes.
    pub fn bytes(&mut self, name: &str, unit: u64) -> Result<u64, Message> {
        let given = self.number(name)?;
        let bytes = given.checked_mul(unit).filter(|bytes| *bytes <= BYTES_MAX);
        bytes.ok_or_else(|| invalid(name, given.to_string().as_bytes(), "below 64 PiB"))
    }

    /// The next field as decimal seconds.
    pub fn seconds(&mut self, name: &str) -> Result<Nanos, Message> {
        let word = self.word(name)?;
        seconds(word).ok_or_else(|| invalid(name, word, "seconds, as 12.345"))
    }

    /// Checks that there are no more fields.
    pub fn end(&mut self) -> Result<(), Message> {
        match self.next() {
            None => Ok(()),
            Some(word) => Err(format!("{:?} follows the last field", text(word))),
        }
    }
}

pub fn invalid(name: &str, word: &[u8], allowed: &str) -> Message {
    format!("{name} is {:?}; may be {allowed}", text(word))
}

/// At most 40 characters of the field.
fn text(word: &[u8]) -> String {
    String::from_utf8_lossy(&word[..word.len().min(40)]).into_owned()
}

/// Parses a whole number of decimal digits.
fn number(word: &[u8]) -> Option<u64> {
    if word.is_empty() || word.len() > 20 {
        return None;
    }
    word.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { sum.checked_mul(10)?.checked_add(u64::from(digit)) }
    })
}

/// Parses decimal seconds exactly to the nanosecond, which floating point would not.
fn seconds(word: &[u8]) -> Option<Nanos> {
    let point = word.iter().position(|byte| *byte == b'.').unwrap_or(word.len());
    let whole = number(&word[..point])?.checked_mul(1_000_000_000)?;
    let digits = word.get(point + 1..).unwrap_or_default();
    let digits = &digits[..digits.len().min(9)];
    let part = if digits.is_empty() { 0 } else { number(digits)? };
    let part = part * 10_u64.pow(9 - digits.len() as u32);
    Some(Nanos::new(whole.checked_add(part)?))
}

#[cfg(test)]
mod tests {
    use ssdlab_time::Nanos;

    use super::{Fields, number, seconds};

    #[test]
    fn numbers_are_decimal_digits_and_nothing_else() {
        assert_eq!(number(b"0"), Some(0));
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for word in ["", "-1", "+1", "1.0", " 1", "18446744073709551616", "0x10"] {
            assert_eq!(number(word.as_bytes()), None, "{word:?}");
        }
    }

    #[test]
    fn seconds_are_exact_to_the_nanosecond() {
        assert_eq!(seconds(b"0.1"), Some(Nanos::new(100_000_000)));
        assert_eq!(seconds(b"26"), Some(Nanos::new(26_000_000_000)));
        assert_eq!(seconds(b"1435554430.123456789"), Some(Nanos::new(1_435_554_430_123_456_789)));
        assert_eq!(seconds(b"1.1234567899"), Some(Nanos::new(1_123_456_789)));
        for word in ["", ".", "-1.0", "1e3", "1.-5"] {
            assert_eq!(seconds(word.as_bytes()), None, "{word:?}");
        }
    }

    #[test]
    fn commas_separate_each_and_blanks_together() {
        let words = |mut fields: Fields<'_>| {
            let mut words = Vec::new();
            while let Some(word) = fields.next() {
                words.push(String::from_utf8(word.to_vec()).unwrap());
            }
            words
        };
        assert_eq!(words(Fields::by_commas(b"a, b,,c")), ["a", "b", "", "c"]);
        assert_eq!(words(Fields::by_blanks(b"  a\t b   c \n")), ["a", "b", "c"]);
        assert_eq!(words(Fields::by_blanks(b"  ")), [""; 0]);
    }
}
