//! Lines of the control protocol: reading them with a limit, and splitting them into words as pipelines are split.

use std::io::BufRead;

/// The longest line. A matrix or a shader's text fits.
const MOST_BYTES: usize = 64 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    Text(String),
    /// The rest of the line was skipped.
    TooLong {
        most: usize,
    },
    NotText,
}

/// The lines of an input, up to its end or its first error.
pub(super) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Lines<R> {
        Lines { input, buffer: Vec::new() }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        self.buffer.clear();
        let (mut read, mut too_long) = (false, false);
        loop {
            let available = match self.input.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => return None,
            };
            if available.is_empty() {
                if !read {
                    return None;
                }
                break;
            }
            read = true;
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = &available[..end.unwrap_or(available.len())];
            let room = MOST_BYTES - self.buffer.len();
            too_long |= part.len() > room;
            self.buffer.extend_from_slice(&part[..part.len().min(room)]);
            let used = end.map_or(available.len(), |end| end + 1);
            self.input.consume(used);
            if end.is_some() {
                break;
            }
        }
        if too_long {
            return Some(Line::TooLong { most: MOST_BYTES });
        }
        Some(match std::str::from_utf8(&self.buffer) {
            Ok(text) => Line::Text(text.trim_end_matches('\r').to_owned()),
            Err(_) => Line::NotText,
        })
    }
}

/// Splits a line at spaces outside of quotes. Inside quotes, `\"` and `\\` are escapes, as in a pipeline, and `\n` is a
/// line end.
pub(super) fn words(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        None => return Err("a quote is not closed".to_owned()),
                        Some('"') => break,
                        Some('\\') => match chars.next() {
                            Some(escaped @ ('"' | '\\')) => word.push(escaped),
                            Some('n') => word.push('\n'),
                            other => {
                                word.push('\\');
                                word.extend(other);
                            }
                        },
                        Some(c) => word.push(c),
                    }
                }
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

/// A value as [`words`] reads it, on one line.
pub(super) fn quoted(value: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "+-.,:/_%".contains(c);
    if !value.is_empty() && value.chars().all(is_bare) {
        return value.to_owned();
    }
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_at_spaces_outside_of_quotes() {
        let split = |line: &str| words(line).unwrap();
        assert_eq!(split(" a.b=1   c.d=2 "), ["a.b=1", "c.d=2"]);
        assert_eq!(split(r#"t.text="two words" x"#), ["t.text=two words", "x"]);
        assert_eq!(split(r#"t.text="a \"b\" \\ c\d""#), [r#"t.text=a "b" \ c\d"#]);
        assert_eq!(split("t.text=\"\""), ["t.text="]);
        assert!(split("   ").is_empty());
        assert!(words("t.text=\"open").is_err());
    }

    #[test]
    fn a_quoted_value_is_read_as_it_was() {
        for value in ["3", "a b", "two\nlines", "a\\nb", "\"", "\\", "", "ä", "1,2,3", "x=y", "#"] {
            assert_eq!(words(&format!("k={}", quoted(value))).unwrap(), [format!("k={value}")], "{value}");
        }
    }

    #[test]
    fn long_lines_are_skipped_and_the_next_line_is_read() {
        let mut input = vec![b'x'; 3 * MOST_BYTES];
        input.extend_from_slice(b"\nget a.b\r\n\xff\xfe\nlast");
        let lines: Vec<Line> = Lines::new(&input[..]).collect();
        let text = |text: &str| Line::Text(text.to_owned());
        assert_eq!(lines, [Line::TooLong { most: MOST_BYTES }, text("get a.b"), Line::NotText, text("last")]);
    }
}
