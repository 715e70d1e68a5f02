//! The part of JSON that a header is written in: strings, whole numbers and the signs between them.
//!
//! Owns reading and writing of these, one after another.
//! Does not know what they mean, and has no use for fractions, negative numbers or nested values of any kind.
//!
//! Always: what is read borrows nothing and recurses into nothing; what `push_string` writes, `string` reads back.

use std::fmt::Write as _;

/// A place in a text, and what is expected next.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    text: &'a str,
    at: usize,
}

/// What was expected, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unexpected {
    pub(super) at: usize,
    pub(super) wanted: &'static str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Reader<'a> {
        Reader { text, at: 0 }
    }

    /// Whether this sign is next; then it is behind us.
    pub(super) fn eat(&mut self, sign: u8) -> bool {
        self.skip_space();
        let there = self.peek() == Some(sign);
        self.at += usize::from(there);
        there
    }

    pub(super) fn expect(&mut self, sign: u8, wanted: &'static str) -> Result<(), Unexpected> {
        if self.eat(sign) { Ok(()) } else { Err(self.unexpected(wanted)) }
    }

    pub(super) fn at_end(&mut self) -> bool {
        self.skip_space();
        self.at == self.text.len()
    }

    pub(super) fn unexpected(&self, wanted: &'static str) -> Unexpected {
        Unexpected { at: self.at, wanted }
    }

    /// A whole number that is not negative.
    pub(super) fn number(&mut self) -> Result<u64, Unexpected> {
        self.skip_space();
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let number = &self.rest()[..digits];
        let follows = self.rest().as_bytes().get(digits);
        if matches!(follows, Some(b'.' | b'e' | b'E')) || (digits > 1 && number.starts_with('0')) {
            return Err(self.unexpected("a whole number"));
        }
        let number = number.parse().map_err(|_| self.unexpected("a whole number below 2^64"))?;
        self.at += digits;
        Ok(number)
    }

    /// A string, with what it escapes.
    pub(super) fn string(&mut self) -> Result<String, Unexpected> {
        self.expect(b'"', "a string")?;
        let mut string = String::new();
        loop {
            let plain = self.rest().bytes().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)).count();
            string.push_str(&self.rest()[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(string);
                }
                Some(b'\\') => {
                    self.at += 1;
                    string.push(self.escaped()?);
                }
                Some(_) => return Err(self.unexpected("a string without control characters")),
                None => return Err(self.unexpected("the end of a string")),
            }
        }
    }

    /// What stands behind a backslash.
    fn escaped(&mut self) -> Result<char, Unexpected> {
        let sign = self.peek().ok_or_else(|| self.unexpected("an escaped character"))?;
        let plain = match sign {
            b'"' | b'\\' | b'/' => char::from(sign),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.unicode();
            }
            _ => return Err(self.unexpected("an escaped character")),
        };
        self.at += 1;
        Ok(plain)
    }

    /// Four digits, and four more where they are half of a character.
    fn unicode(&mut self) -> Result<char, Unexpected> {
        let first = self.hex()?;
        let code = if (0xd800..0xdc00).contains(&first) {
            let second = if self.rest().starts_with("\\u") {
                self.at += 2;
                self.hex()?
            } else {
                0
            };
            if !(0xdc00..0xe000).contains(&second) {
                return Err(self.unexpected("the second half of a character"));
            }
            0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
        } else {
            first
        };
        char::from_u32(code).ok_or_else(|| self.unexpected("the first half of a character"))
    }

    fn hex(&mut self) -> Result<u32, Unexpected> {
        let digits = self.rest().as_bytes().get(..4).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.ok_or_else(|| self.unexpected("four hexadecimal digits"))?;
        let code = digits.iter().fold(0, |code, digit| code * 16 + char::from(*digit).to_digit(16).unwrap_or(0));
        self.at += 4;
        Ok(code)
    }

    fn skip_space(&mut self) {
        self.at += self.rest().bytes().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }
}

/// Writes a string, with what must be escaped.
pub(super) fn push_string(into: &mut String, string: &str) {
    into.push('"');
    for sign in string.chars() {
        match sign {
            '"' => into.push_str("\\\""),
            '\\' => into.push_str("\\\\"),
            sign if sign < ' ' => write!(into, "\\u{:04x}", u32::from(sign)).expect("a String takes everything"),
            sign => into.push(sign),
        }
    }
    into.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Result<String, Unexpected> {
        Reader::new(text).string()
    }

    #[test]
    fn strings_are_read_with_what_they_escape() {
        assert_eq!(string(r#" "a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00""#).unwrap(), "a\"\\/\u{8}\u{c}\n\r\té😀");
        for wrong in [
            r#""\ud83d""#,
            r#""\ud83dx""#,
            r#""\ude00""#,
            r#""\u12""#,
            r#""\x""#,
            "\"a\nb\"",
            "\"a",
            "a\"",
            r#""\u12é""#,
        ] {
            assert!(string(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_are_whole_and_not_negative() {
        assert_eq!(Reader::new(" 18446744073709551615,").number(), Ok(u64::MAX));
        for wrong in ["18446744073709551616", "-1", "1.0", "1e3", "01", "", "x"] {
            assert!(Reader::new(wrong).number().is_err(), "{wrong}");
        }
    }
}
