//! The lexer: turns the text of a pipeline into words, settings, links and separators.
//!
//! The lexer handles quoting, escapes, comments and line ends. It does not know kinds or names: `blur` and `2.5` are
//! both words. The lexer works on winnow's located stream and recovers from mistakes itself, because one mistake must
//! not hide the next mistake.
//!
//! Invariant: every token except the last is at least one byte long, and no token is read twice, so lexing ends.

use std::borrow::Cow;
use std::ops::Range;

use winnow::stream::{LocatingSlice, Location, Stream};

use crate::words::Policy;

use super::draft::{clip, depth_mistake, read_word};
use super::{MAX_DEPTH, MAX_MISTAKES, Mistake};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Lexeme<'a> {
    /// A bare word: a kind, a reference or a bare value.
    Word(&'a str),
    /// `key=value`; `reported` is true if a mistake in this setting was already reported.
    Setting { key: &'a str, key_at: Range<usize>, value: Option<(Cow<'a, str>, Range<usize>)>, reported: bool },
    /// Text in quotes.
    Quoted(Cow<'a, str>),
    /// `!` or `!{policy depth=N}`.
    Link { policy: Option<Policy>, depth: Option<u32> },
    /// `;`, or a line end that is not next to a link.
    Separator,
    /// The end of the text. Every further call of [`Lexer::next_token`] returns `End` again.
    End,
}

/// A lexeme with its span.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LexToken<'a> {
    pub(super) lexeme: Lexeme<'a>,
    pub(super) at: Range<usize>,
}

/// Yields tokens one by one. The tokens are never collected, because a text can have millions of tokens.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    input: LocatingSlice<&'a str>,
    mistakes: Vec<Mistake>,
    after_link: bool,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        let mut lexer = Lexer { input: LocatingSlice::new(text), mistakes: Vec::new(), after_link: false };
        // Windows editors may write a byte order mark at the start. The mark has no meaning.
        lexer.eat('\u{feff}');
        lexer
    }

    pub(super) fn next_token(&mut self) -> LexToken<'a> {
        let gap_start = self.position();
        let line_ended = self.skip_blank();
        let start = self.position();
        let ahead = self.input.peek_token();
        if line_ended && !self.after_link && ahead != Some('!') {
            return LexToken { lexeme: Lexeme::Separator, at: gap_start..start };
        }
        let lexeme = match ahead {
            None => Lexeme::End,
            Some('!') => self.link(),
            Some(';') => {
                self.eat(';');
                Lexeme::Separator
            }
            Some('"') => Lexeme::Quoted(self.quoted()),
            Some(_) => self.word(),
        };
        self.after_link = matches!(lexeme, Lexeme::Link { .. });
        LexToken { lexeme, at: start..self.position() }
    }

    /// The mistakes found since the last call.
    pub(super) fn take_mistakes(&mut self) -> Vec<Mistake> {
        std::mem::take(&mut self.mistakes)
    }

    /// A bare word or a setting. Text before `=` is a key only if all its characters may occur in keys: `in/a=b.png` is
    /// a word.
    fn word(&mut self) -> Lexeme<'a> {
        let before = self.input.checkpoint();
        let start = self.position();
        let key = self.take_while(is_key_char);
        let key_at = start..self.position();
        let mut spaced = !self.take_while(is_inline_space).is_empty();
        if !self.eat('=') {
            self.input.reset(&before);
            return Lexeme::Word(self.take_while(in_word));
        }
        let mut value = self.value();
        if value.is_none() {
            value = self.late_value();
            spaced |= value.is_some();
        }
        let at = key_at.start..self.position();
        let shown = clip(key);
        if key.is_empty() {
            let expected = "expected `key=value` without spaces";
            self.report(Mistake::new("nothing before `=`", expected).at(Some(at)));
        } else if value.is_none() {
            let mistake = Mistake::new(format!("`{shown}=` has no value"), "expected a value right after `=`");
            self.report(mistake.at(Some(at)).help(format!("write {shown}=\"\" for an empty value")));
        } else if spaced {
            let mistake = Mistake::new("space around `=`", "expected `key=value` without spaces");
            self.report(mistake.at(Some(at)).help("quote text that contains spaces or `=`"));
        }
        let reported = spaced || key.is_empty() || value.is_none();
        Lexeme::Setting { key, key_at, value, reported }
    }

    fn value(&mut self) -> Option<(Cow<'a, str>, Range<usize>)> {
        let start = self.position();
        let value = match self.input.peek_token()? {
            '"' => self.quoted(),
            c if in_word(c) => Cow::Borrowed(self.take_while(in_word)),
            _ => return None,
        };
        Some((value, start..self.position()))
    }

    /// Takes the value of `sigma= 2`, so that the space gives one mistake and not two. A comment or another setting is
    /// not taken as the value.
    fn late_value(&mut self) -> Option<(Cow<'a, str>, Range<usize>)> {
        let before = self.input.checkpoint();
        self.take_while(is_inline_space);
        let here = self.input.checkpoint();
        let ahead = self.take_while(in_word);
        if ahead.starts_with('#') || ahead.contains('=') {
            self.input.reset(&before);
            return None;
        }
        self.input.reset(&here);
        self.value()
    }

    fn quoted(&mut self) -> Cow<'a, str> {
        let open = self.position();
        self.eat('"');
        let mut text = Cow::Borrowed(self.take_while(in_plain_text));
        loop {
            let at = self.position();
            match self.input.next_token() {
                Some('"') => return text,
                // This is a backslash, because only a quote or a backslash ends plain text inside quotes.
                Some(_) => {
                    match self.input.next_token() {
                        Some(c @ ('"' | '\\')) => text.to_mut().push(c),
                        Some('n') => text.to_mut().push('\n'),
                        Some('t') => text.to_mut().push('\t'),
                        Some(c) => {
                            let title = format!("unknown escape `\\{}`", clip(c.encode_utf8(&mut [0; 4])));
                            let mistake = Mistake::new(title, r#"expected \", \\, \n or \t"#);
                            let at = Some(at..self.position());
                            self.report(mistake.at(at).help(r"write \\ for a backslash"));
                        }
                        None => {}
                    }
                    let more = self.take_while(in_plain_text);
                    text.to_mut().push_str(more);
                }
                None => {
                    let mistake = Mistake::new("this quote is never closed", "expected a closing `\"`");
                    self.report(mistake.at(Some(open..open + 1)).help(r#"write \" for a quote inside quotes"#));
                    return text;
                }
            }
        }
    }

    fn link(&mut self) -> Lexeme<'a> {
        let start = self.position();
        self.eat('!');
        let (mut policy, mut depth) = (None, None);
        let before = self.input.checkpoint();
        let spaced = !self.take_while(is_inline_space).is_empty();
        if !self.eat('{') {
            self.input.reset(&before);
            return Lexeme::Link { policy, depth };
        }
        if spaced {
            // No kind starts with a brace, so this brace belongs to the link.
            let at = start..self.position();
            self.report(Mistake::new("space between `!` and `{`", "expected `!{` without a space").at(Some(at)));
        }
        let closed = self.closes_brace();
        let mut count = 0_usize;
        loop {
            self.take_while(is_inline_space);
            let before = self.input.checkpoint();
            let word_start = self.position();
            let word = self.take_while(|c| in_word(c) && c != '}');
            let at = word_start..self.position();
            // If the closing brace is missing, a word is read as an option only if the word cannot be a handler. The
            // first word that is not an option is left for the next token.
            let option = closed || count == 0 && word.parse::<Policy>().is_ok() || word.starts_with("depth=");
            if word.is_empty() || !option {
                self.input.reset(&before);
                break;
            }
            count += 1;
            match count {
                1 => policy = self.policy(word, at),
                2 => depth = self.depth(word, at),
                3 => {
                    let mistake = Mistake::new(format!("unexpected word `{}`", clip(word)), "expected `}`");
                    self.report(mistake.at(Some(at)));
                }
                _ => {}
            }
        }
        let end = self.position();
        if !self.eat('}') {
            let mistake = Mistake::new("`!{` is not closed", "expected `}` on the same line");
            self.report(mistake.at(Some(start..end)).help("a link is `!` or `!{policy depth=N}`"));
        } else if count == 0 {
            let mistake = Mistake::new("a link without a policy", "expected latest, queue or lossless");
            self.report(mistake.at(Some(start..end + 1)).help("write `!` to leave the policy to the planner"));
        }
        Lexeme::Link { policy, depth }
    }

    /// True if the brace that was just opened is closed on its line.
    fn closes_brace(&mut self) -> bool {
        let before = self.input.checkpoint();
        self.take_while(|c| c != '}' && (in_word(c) || is_inline_space(c)));
        let closed = self.input.peek_token() == Some('}');
        self.input.reset(&before);
        closed
    }

    fn policy(&mut self, word: &str, at: Range<usize>) -> Option<Policy> {
        if word.starts_with("depth=") {
            let mistake = Mistake::new("a depth without a policy", "expected latest, queue or lossless first");
            self.report(mistake.at(Some(at)).help(format!("write `!{{lossless {}}}`", clip(word))));
            return None;
        }
        read_word("policy", word, Policy::ALL.map(Policy::name), at).map_err(|mistake| self.report(mistake)).ok()
    }

    fn depth(&mut self, word: &str, at: Range<usize>) -> Option<u32> {
        let Some(number) = word.strip_prefix("depth=") else {
            let mistake = Mistake::new(format!("unknown option `{}`", clip(word)), "expected `depth=N` or `}`");
            self.report(mistake.at(Some(at)));
            return None;
        };
        // A sign is not part of the grammar, although Rust's parser accepts a sign.
        let depth = number.bytes().all(|b| b.is_ascii_digit()).then(|| number.parse().ok()).flatten();
        let depth = depth.filter(|n| (1..=MAX_DEPTH).contains(n));
        if depth.is_none() {
            self.report(depth_mistake(number, at));
        }
        depth
    }

    /// Skips spaces, line ends and comments; returns true if a line ended.
    fn skip_blank(&mut self) -> bool {
        let mut line_ended = false;
        loop {
            line_ended |= self.take_while(char::is_whitespace).contains('\n');
            if self.input.peek_token() != Some('#') {
                return line_ended;
            }
            self.take_while(|c| c != '\n');
        }
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let end = self.input.offset_for(|c| !wanted(c)).unwrap_or_else(|| self.input.eof_offset());
        self.input.next_slice(end)
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.input.peek_token() == Some(wanted);
        if found {
            self.input.next_token();
        }
        found
    }

    fn position(&self) -> usize {
        self.input.current_token_start()
    }

    fn report(&mut self, mistake: Mistake) {
        if self.mistakes.len() < MAX_MISTAKES {
            self.mistakes.push(mistake);
        }
    }
}

fn in_word(c: char) -> bool {
    !c.is_whitespace() && !matches!(c, '!' | ';' | '"')
}

fn is_key_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

fn is_inline_space(c: char) -> bool {
    c.is_whitespace() && c != '\n'
}

fn in_plain_text(c: char) -> bool {
    !matches!(c, '"' | '\\')
}
