//! Plays what an ffmpeg process decodes, for the sources `video` and `camera`: times, rounds, connections that break,
//! and what ffmpeg complains about.
//!
//! Frames have the times of the stream, from its start. Times grow: a round of a loop continues after the last one. The
//! frames of a live source have the time of their arrival, plus the distances that the stream gives them. A live stream
//! that breaks is opened again until the run ends.
//!
//! Invariant: the process ends with this value. Reading allocates nothing unless a process is started.

use std::time::{Duration, Instant};

use vramp_media::{ANALYSIS, DecodeError, Decoder, DecoderInput, Decoding, NextFrame, Reading, Tools, Waiting};
use vramp_runtime::{Call, Flow, Frame, HandlerError, Reporter};

use crate::videos::yuv;

/// Pauses before a stream that broke is opened again: the first, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// A stream that sends nothing for longer is reported when it is back.
const GAP: Duration = Duration::from_secs(2);
/// A live stream whose times run off from the clock by more is matched with the clock again.
const DRIFT_NS: i64 = 2_000_000_000;
/// The least distance of two frames of a live stream, which is a tick of every container or more: an mp4 file with two
/// frames at the same tick cannot be written.
const LEAST_NS: i64 = 1_000_000;

/// What to play.
#[derive(Debug, Clone)]
pub(super) struct Playing {
    /// The name of the stream in messages.
    pub name: String,
    pub input: DecoderInput,
    pub hwaccel: Option<String>,
    /// Whether to start again at the end.
    pub again: bool,
    /// Whether the stream sends in real time.
    pub live: bool,
    /// Whether an error of the decoder ends the stream.
    pub stops: bool,
    /// The longest time without a frame.
    pub timeout: Duration,
    /// The time of a frame, for the pause between two rounds.
    pub period_ns: i64,
}

pub(super) struct Playback {
    playing: Playing,
    decoding: Decoding,
    tools: Tools,
    reporter: Reporter,
    decoder: Option<Decoder>,
    /// Errors of this process that are counted.
    counted: u64,
    /// Whether an error was reported.
    has_told: bool,
    /// Frames of this process, and of all.
    frames: u64,
    all_frames: u64,
    /// Added to the times of this process; `None` before the first frame.
    offset_ns: Option<i64>,
    last_ns: Option<i64>,
    /// The frame number and the message of a failure, after which nothing comes.
    failed: Option<(u64, String)>,
}

impl Playback {
    pub(super) fn start(
        tools: &Tools,
        playing: Playing,
        reading: Reading,
        reporter: Reporter,
    ) -> Result<Playback, HandlerError> {
        let decoding = Decoding { input: playing.input.clone(), reading, hwaccel: playing.hwaccel.clone() };
        let decoder = Decoder::start(tools, &decoding).map_err(failed)?;
        Ok(Playback {
            offset_ns: None,
            playing,
            decoding,
            tools: tools.clone(),
            reporter,
            decoder: Some(decoder),
            counted: 0,
            has_told: false,
            frames: 0,
            all_frames: 0,
            last_ns: None,
            failed: None,
        })
    }

    /// Sends the next frame.
    pub(super) fn send_next(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let number = call.now().number;
        if let Some((failed, problem)) = &self.failed {
            return if *failed == number { Err(HandlerError::failed(problem.as_str())) } else { Ok(Flow::Ended) };
        }
        match self.next(call) {
            Ok(Some((frame, pts_ns))) => {
                call.stamp(pts_ns);
                call.send(0, frame);
                Ok(Flow::Produced)
            }
            Ok(None) => Ok(Flow::Ended),
            Err(PlayError::Memory(error)) => Err(error),
            Err(PlayError::Broken(problem)) => {
                self.decoder = None;
                let problem = format!("`{}`, after {} frames: {problem}", self.playing.name, self.all_frames);
                self.failed = Some((number, problem.clone()));
                Err(HandlerError::failed(problem))
            }
        }
    }

    /// The next frame and its time; `None` at the end.
    fn next(&mut self, call: &mut Call<'_>) -> Result<Option<(Frame, i64)>, PlayError> {
        let (mut gone, mut pause) = (None::<Instant>, FIRST_PAUSE);
        let begun = Instant::now();
        loop {
            let over = || call.is_ending();
            // Before the first frame, ffmpeg also looks into the stream.
            let opening = if self.frames == 0 { ANALYSIS } else { Duration::ZERO };
            let waiting = Waiting { over: &over, limit: self.playing.timeout + opening };
            let Some(decoder) = &mut self.decoder else {
                if !rest(pause, &over) {
                    return Ok(None);
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
                match Decoder::start(&self.tools, &self.decoding) {
                    Ok(decoder) => self.restart(decoder),
                    Err(error) => return Err(PlayError::Broken(error.to_string())),
                }
                continue;
            };
            let problem = match decoder.next(&waiting) {
                Ok(NextFrame::Frame { pts_ns, size }) => {
                    let mut frame = call.lend(self.decoding.reading.format, size)?;
                    let mut meta = *frame.meta();
                    meta.picture_mut().yuv = yuv(self.decoding.reading.colours);
                    frame.set_meta(meta);
                    let mut bytes = frame.fill().expect("a frame that was just lent has one holder");
                    let read = decoder.read(&mut bytes, &waiting);
                    drop(bytes);
                    match read {
                        Ok(true) => {
                            // The time of a call is that of its beginning. Since then, a stream may have been opened or
                            // gone for seconds.
                            let waited = if self.playing.live { begun.elapsed() } else { Duration::ZERO };
                            let pts_ns = self.place(pts_ns, call.now().pts_ns + waited.as_nanos() as i64);
                            self.report_gap(gone, begun);
                            self.report_errors()?;
                            return Ok(Some((frame, pts_ns)));
                        }
                        Ok(false) => return Ok(None),
                        Err(error) => error,
                    }
                }
                Ok(NextFrame::Over) => return Ok(None),
                Ok(NextFrame::End) if self.playing.live => {
                    DecodeError::Died { ending: "reached the end of the stream".to_owned(), words: String::new() }
                }
                Ok(NextFrame::End) => {
                    self.report_errors()?;
                    if self.all_frames == 0 {
                        let name = &self.playing.name;
                        self.reporter
                            .warn(format!("`{name}` gave no frame; check its settings `start` and `duration`"));
                    }
                    if !self.playing.again || self.frames == 0 {
                        return Ok(None);
                    }
                    self.offset_ns = self.last_ns.map(|last_ns| last_ns + self.playing.period_ns);
                    match Decoder::start(&self.tools, &self.decoding) {
                        Ok(decoder) => self.restart(decoder),
                        Err(error) => return Err(PlayError::Broken(error.to_string())),
                    }
                    continue;
                }
                Err(error) => error,
            };
            if self.frames == 0 && self.decoding.hwaccel.is_some() {
                let hwaccel = self.decoding.hwaccel.take().unwrap_or_default();
                self.reporter.warn(format!("hwaccel={hwaccel} does not work here, decoding on the CPU: {problem}"));
                match Decoder::start(&self.tools, &self.decoding) {
                    Ok(decoder) => self.restart(decoder),
                    Err(error) => return Err(PlayError::Broken(error.to_string())),
                }
                continue;
            }
            // A live stream that was there before is expected to come back.
            if !self.playing.live || self.all_frames == 0 {
                return Err(PlayError::Broken(problem.to_string()));
            }
            if gone.is_none() {
                self.reporter.warn(format!("`{}` has stopped, and is opened again: {problem}", self.playing.name));
                gone = Some(begun);
            }
            self.decoder = None;
            self.offset_ns = None;
        }
    }

    fn restart(&mut self, decoder: Decoder) {
        (self.decoder, self.counted, self.frames) = (Some(decoder), 0, 0);
    }

    /// The time of a frame that the stream places at `pts_ns`. `now_ns` is the time of its arrival.
    fn place(&mut self, pts_ns: i64, now_ns: i64) -> i64 {
        // A file that another graph begins to read continues at the time of the run.
        let begins_ns = if self.playing.live { now_ns - pts_ns } else { now_ns };
        let mut offset_ns = *self.offset_ns.get_or_insert(begins_ns);
        if self.playing.live && (pts_ns + offset_ns - now_ns).abs() > DRIFT_NS {
            offset_ns = now_ns - pts_ns;
            self.offset_ns = Some(offset_ns);
        }
        let least_ns = if self.playing.live { LEAST_NS } else { 1 };
        let placed_ns = (pts_ns + offset_ns).max(self.last_ns.map_or(i64::MIN, |last_ns| last_ns + least_ns));
        self.last_ns = Some(placed_ns);
        if self.frames == 0 {
            self.look_at_start();
        }
        self.frames += 1;
        self.all_frames += 1;
        placed_ns
    }

    /// After the first frame of a process: what it has complained about until then.
    fn look_at_start(&mut self) {
        let Some(decoder) = &self.decoder else { return };
        if self.playing.live {
            // A stream that is joined in its middle begins with pictures that cannot be decoded.
            self.counted = decoder.error_count();
        }
        if let (Some(hwaccel), Some(why)) = (&self.decoding.hwaccel, decoder.no_hardware()) {
            self.reporter.warn(format!("hwaccel={hwaccel} does not work here, decoding on the CPU: {why}"));
        }
    }

    fn report_gap(&self, gone: Option<Instant>, begun: Instant) {
        let waited = gone.unwrap_or(begun).elapsed();
        if gone.is_none() && (waited < GAP || self.all_frames <= 1) {
            return;
        }
        // Only a stream may stand still; a file that takes long is slow.
        let name = &self.playing.name;
        if self.playing.live || name.contains("://") || name.contains(".m3u8") {
            self.reporter.note(format!("`{name}` is back; it was gone for {:.1} s", waited.as_secs_f64()));
        }
    }

    /// Counts what the decoder has complained about, and reports the first complaint.
    fn report_errors(&mut self) -> Result<(), PlayError> {
        let Some(decoder) = &self.decoder else { return Ok(()) };
        let count = decoder.error_count();
        if count == self.counted {
            return Ok(());
        }
        self.reporter.count_problems(count - self.counted);
        self.counted = count;
        let last = decoder.last_error().unwrap_or_default();
        if self.playing.stops {
            return Err(PlayError::Broken(format!("ffmpeg reports: {last}")));
        }
        if !self.has_told {
            self.has_told = true;
            let frame = self.all_frames;
            let name = &self.playing.name;
            self.reporter.warn(format!(
                "ffmpeg reports an error in `{name}` about frame {frame}: {last}; further errors are only counted \
                 (`errors=stop` ends the run)"
            ));
        }
        Ok(())
    }
}

/// Waits, unless the run is over. Returns whether the run continues.
fn rest(pause: Duration, over: &dyn Fn() -> bool) -> bool {
    let end = Instant::now() + pause;
    while Instant::now() < end {
        if over() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    !over()
}

enum PlayError {
    /// There is no memory for the frame, which has not been read yet.
    Memory(HandlerError),
    Broken(String),
}

impl From<vramp_runtime::PoolError> for PlayError {
    fn from(error: vramp_runtime::PoolError) -> PlayError {
        PlayError::Memory(error.into())
    }
}

fn failed(error: DecodeError) -> HandlerError {
    match error {
        DecodeError::NotStarted(reason) => HandlerError::failed(format!("{reason}; {}", vramp_media::install())),
        error => HandlerError::failed(error),
    }
}
