//! The messages of an ffmpeg process: errors are counted, the last ones are kept, and sizes of frames are noted.
//!
//! ffmpeg writes a line for each message, with its level in brackets (`-loglevel repeat+level+...`). A thread reads the
//! lines, so that the process never waits for its messages to be read.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Kept messages.
const MOST_LINES: usize = 6;
/// Kept characters of a message.
const MOST_CHARS: usize = 300;
/// Bytes of a line; the rest counts as further lines.
const MOST_BYTES: u64 = 4 << 10;

#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<(Mutex<Messages>, Condvar)>);

#[derive(Debug, Default)]
struct Messages {
    /// The last errors.
    errors: VecDeque<String>,
    error_count: u64,
    /// The last warnings and lines without a level, for a process that ends without an error message.
    others: VecDeque<String>,
    /// The sizes of the frames that were decoded, each when it begins.
    sizes: Vec<(u32, u32)>,
    /// A message that tells that the hardware decoder is not used.
    no_hardware: Option<String>,
    ended: bool,
}

impl Log {
    /// Reads messages until the stream ends.
    pub(super) fn follow(from: impl Read + Send + 'static) -> Log {
        let log = Log::default();
        let own = log.clone();
        // Without a thread there are no messages, and the process is ended by its closed stream.
        let _ = thread::Builder::new().name("vramp messages".to_owned()).spawn(move || {
            own.read(BufReader::new(from));
            own.messages().ended = true;
            own.0.1.notify_all();
        });
        log
    }

    fn read(&self, mut from: impl BufRead) {
        let mut line = Vec::new();
        loop {
            line.clear();
            match from.by_ref().take(MOST_BYTES).read_until(b'\n', &mut line) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            }
            // ffmpeg ends lines that replace each other with a carriage return.
            for line in line.split(|byte| *byte == b'\r') {
                self.messages().add(&String::from_utf8_lossy(line));
            }
            self.0.1.notify_all();
        }
    }

    pub(crate) fn error_count(&self) -> u64 {
        self.messages().error_count
    }

    pub(crate) fn last_error(&self) -> Option<String> {
        self.messages().errors.back().cloned()
    }

    /// The last errors, or without an error the last messages, in one line.
    pub(crate) fn last_words(&self) -> String {
        let messages = self.messages();
        let lines = if messages.errors.is_empty() { &messages.others } else { &messages.errors };
        let skipped = lines.len().saturating_sub(3);
        lines.iter().skip(skipped).map(String::as_str).collect::<Vec<_>>().join("; ")
    }

    /// A message that tells that the hardware decoder is not used.
    pub(crate) fn no_hardware(&self) -> Option<String> {
        self.messages().no_hardware.clone()
    }

    /// The number of sizes that have been told.
    pub(crate) fn size_count(&self) -> usize {
        self.messages().sizes.len()
    }

    /// The sizes of decoded frames from number `from` on. Waits until one of them is `wanted`.
    pub(crate) fn sizes_until(
        &self,
        from: usize,
        limit: Duration,
        wanted: impl Fn((u32, u32)) -> bool,
    ) -> Vec<(u32, u32)> {
        let rest = |messages: &Messages| messages.sizes.get(from..).unwrap_or_default().to_vec();
        let waits = |messages: &mut Messages| !messages.ended && !rest(messages).into_iter().any(&wanted);
        let waited = self.0.1.wait_timeout_while(self.messages(), limit, waits);
        rest(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Waits for the end of the stream.
    pub(super) fn wait(&self, limit: Duration) {
        let waited = self.0.1.wait_timeout_while(self.messages(), limit, |messages| !messages.ended);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn messages(&self) -> MutexGuard<'_, Messages> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Messages {
    fn add(&mut self, line: &str) {
        let Some((level, words)) = level_and_words(line) else { return };
        if level == "verbose" {
            self.sizes.extend(input_size(line, words));
            return;
        }
        let words: String = words.chars().filter(|c| !c.is_control()).take(MOST_CHARS).collect();
        if words.is_empty() {
            return;
        }
        if words.contains("hwaccel initialisation returned error") || words.contains("No device available for decoder")
        {
            self.no_hardware = Some(words.clone());
        }
        if matches!(level, "info" | "debug") {
            return;
        }
        let kept = if matches!(level, "error" | "fatal" | "panic") {
            self.error_count += 1;
            &mut self.errors
        } else {
            &mut self.others
        };
        if kept.len() == MOST_LINES {
            kept.pop_front();
        }
        kept.push_back(words);
    }
}

/// The level of a message, and its words without the part of ffmpeg that they come from.
fn level_and_words(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    for (at, _) in line.match_indices('[') {
        let (level, words) = line[at + 1..].split_once(']')?;
        if matches!(level, "panic" | "fatal" | "error" | "warning" | "info" | "verbose" | "debug") {
            return Some((level, words.trim()));
        }
    }
    // A program that is not ffmpeg, or one that failed before it read its options.
    Some(("plain", line))
}

/// The size of the frames that enter the filters: `w:320 h:240 pixfmt:yuv420p ...` from the graph's input.
fn input_size(line: &str, words: &str) -> Option<(u32, u32)> {
    if !line.trim_start().starts_with("[graph ") {
        return None;
    }
    let mut parts = words.split_whitespace();
    let width = parts.next()?.strip_prefix("w:")?.parse().ok()?;
    let height = parts.next()?.strip_prefix("h:")?.parse().ok()?;
    Some((width, height))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(text: &str) -> Log {
        let log = Log::default();
        log.read(text.as_bytes());
        log
    }

    #[test]
    fn errors_are_counted_and_named_without_their_addresses() {
        let log =
            log("[h264 @ 0x55d0] [error] bad MB 3\n[info] frame= 1\r[h264 @ 0x55d0] [error] bad MB 4\n[fatal] no\n");
        assert_eq!((log.error_count(), log.last_error().as_deref()), (3, Some("no")));
        assert_eq!(log.last_words(), "bad MB 3; bad MB 4; no");
    }

    #[test]
    fn without_errors_the_last_messages_count() {
        assert_eq!(log("usage: sleep\nsleep: bad\n[verbose] x\n").last_words(), "usage: sleep; sleep: bad");
        assert_eq!(log("").last_words(), "");
    }

    #[test]
    fn sizes_come_from_the_input_of_the_filters() {
        let log = log("[graph 0 input from stream 0:0 @ 0x5] [verbose] w:320 h:240 pixfmt:yuv420p tb:1/90000\n\
                       [h264 @ 0x5] [verbose] Reinit context to 640x480, pix_fmt: yuv420p\n\
                       [graph 0 input from stream 0:0 @ 0x6] [verbose] w:640 h:480 pixfmt:yuv420p\n");
        assert_eq!(log.sizes_until(0, Duration::ZERO, |_| true), [(320, 240), (640, 480)]);
        assert_eq!(log.sizes_until(1, Duration::ZERO, |_| true), [(640, 480)]);
        assert_eq!(log.size_count(), 2);
    }

    #[test]
    fn lines_without_end_are_cut() {
        let long = log(&"[error] x".repeat(10_000));
        assert!(long.last_words().len() < 2000);
    }
}
