//! Parses a NUT stream with one stream of raw frames.
//!
//! [`NutParser::next`] gets the bytes that have arrived and tells what they begin with: a frame head, a packet to skip,
//! or too few bytes. The parser keeps no bytes and allocates only for headers.
//!
//! Invariant: any bytes give frames or one error; no memory is sized by a number in the stream.

use super::{LONG_BODY, MAGIC, MAIN, STREAM, SYNCPOINT, TimeBase, crc, flag};

/// The longest head of a packet or frame, and the longest header that is parsed.
pub(crate) const MOST_HEAD: usize = 16 << 10;
/// The largest frame: no pool would lend more.
const MOST_FRAME: u64 = 1 << 36;
const CODES: usize = 256;

/// A stream that is not the NUT that ffmpeg writes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NutError {
    #[error("it does not begin with a NUT header")]
    NotNut,
    #[error("its {0} is damaged")]
    Damaged(&'static str),
    #[error("its {0} is longer than {MOST_HEAD} bytes")]
    Long(&'static str),
    #[error("it has {0}, which vramp does not read")]
    Unsupported(&'static str),
    #[error("a frame has {0} bytes")]
    LargeFrame(u64),
}

/// What the bytes begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Too few bytes to tell.
    More,
    /// A packet of this many bytes, some of which may not have arrived yet.
    Skip(u64),
    /// The head of a frame has `head` bytes, and `bytes` of pixels follow.
    Frame { head: usize, pts_ns: i64, bytes: u64 },
}

/// Why parsing stopped.
enum Stop {
    Short,
    Wrong(NutError),
}

impl From<NutError> for Stop {
    fn from(error: NutError) -> Stop {
        Stop::Wrong(error)
    }
}

#[derive(Debug, Default)]
pub(crate) struct NutParser {
    begun: bool,
    bases: Vec<TimeBase>,
    codes: Vec<FrameCode>,
    stream: Option<NutStream>,
    /// The time of the last frame or syncpoint, in ticks of the stream.
    last: i64,
}

/// The properties of frames that begin with one byte.
#[derive(Debug, Clone, Copy)]
struct FrameCode {
    flags: u64,
    stream: u64,
    size_mul: u64,
    size_lsb: u64,
    pts_delta: i64,
    reserved: u64,
}

#[derive(Debug, Clone, Copy)]
struct NutStream {
    base: TimeBase,
    pts_shift: u32,
}

impl NutParser {
    pub(crate) fn next(&mut self, bytes: &[u8]) -> Result<Step, NutError> {
        if !self.begun {
            let length = bytes.len().min(MAGIC.len());
            if bytes[..length] != MAGIC[..length] {
                return Err(NutError::NotNut);
            }
            self.begun = length == MAGIC.len();
            return Ok(if self.begun { Step::Skip(length as u64) } else { Step::More });
        }
        let read = match bytes.first() {
            None => return Ok(Step::More),
            Some(b'N') => self.packet(bytes),
            Some(code) => self.frame(*code, bytes),
        };
        match read {
            Ok(step) => Ok(step),
            Err(Stop::Short) if bytes.len() < MOST_HEAD => Ok(Step::More),
            Err(Stop::Short) => Err(NutError::Long("packet or frame head")),
            Err(Stop::Wrong(error)) => Err(error),
        }
    }

    fn packet(&mut self, bytes: &[u8]) -> Result<Step, Stop> {
        let mut rest = Bytes(bytes);
        let code = u64::from_be_bytes(rest.array()?);
        let length = rest.number()?;
        if length > LONG_BODY {
            rest.array::<4>()?;
        }
        let head = bytes.len() - rest.0.len();
        let whole = length.checked_add(head as u64).ok_or(NutError::Damaged("packet"))?;
        let name = match code {
            MAIN | STREAM => "header",
            SYNCPOINT => "syncpoint",
            // Information about the file, the index at its end, and packets of later versions.
            _ => return Ok(Step::Skip(whole)),
        };
        if whole > MOST_HEAD as u64 {
            return Err(NutError::Long(name).into());
        }
        let body = rest.take(length)?;
        let (body, checksum) = body.split_last_chunk::<4>().ok_or(NutError::Damaged(name))?;
        if crc(body) != u32::from_be_bytes(*checksum) {
            return Err(NutError::Damaged(name).into());
        }
        let mut body = Bytes(body);
        let read = match code {
            MAIN => self.main_header(&mut body),
            STREAM => self.stream_header(&mut body),
            _ => self.syncpoint(&mut body),
        };
        match read {
            Ok(()) => Ok(Step::Skip(whole)),
            // The body is complete, so more bytes would not help.
            Err(Stop::Short) => Err(NutError::Damaged(name).into()),
            Err(wrong) => Err(wrong),
        }
    }

    fn main_header(&mut self, body: &mut Bytes<'_>) -> Result<(), Stop> {
        let damaged = || Stop::Wrong(NutError::Damaged("header"));
        let version = body.number()?;
        if version > 3 {
            body.number()?;
        }
        let _streams = body.number()?;
        let _syncpoint_distance = body.number()?;
        self.bases.clear();
        for _ in 0..body.number()? {
            let (num, den) = (body.number()?, body.number()?);
            if !(1..1 << 31).contains(&num) || !(1..1 << 31).contains(&den) {
                return Err(damaged());
            }
            self.bases.push(TimeBase { num, den });
        }
        self.codes.clear();
        let (mut pts_delta, mut size_mul, mut stream) = (0, 1, 0);
        while self.codes.len() < CODES {
            let (flags, fields) = (body.number()?, body.number()?);
            if fields > 0 {
                pts_delta = body.signed()?;
            }
            if fields > 1 {
                size_mul = body.number()?;
            }
            if fields > 2 {
                stream = body.number()?;
            }
            let size = if fields > 3 { body.number()? } else { 0 };
            let reserved = if fields > 4 { body.number()? } else { 0 };
            let count = if fields > 5 { body.number()? } else { size_mul.checked_sub(size).ok_or_else(damaged)? };
            for _ in 6..fields {
                body.number()?;
            }
            if count == 0 {
                return Err(damaged());
            }
            let mut made = 0;
            while made < count && self.codes.len() < CODES {
                // A packet begins with N, so no frame does.
                let is_packet = self.codes.len() == usize::from(b'N');
                let flags = if is_packet { flag::INVALID } else { flags };
                let size_lsb = size.checked_add(made).ok_or_else(damaged)?;
                self.codes.push(FrameCode { flags, stream, size_mul, size_lsb, pts_delta, reserved });
                made += u64::from(!is_packet);
            }
        }
        Ok(())
    }

    fn stream_header(&mut self, body: &mut Bytes<'_>) -> Result<(), Stop> {
        let (id, class) = (body.number()?, body.number()?);
        if (id, class) != (0, 0) {
            return Err(NutError::Unsupported("a stream beside its video").into());
        }
        let tag_bytes = body.number()?;
        body.take(tag_bytes)?;
        let base = usize::try_from(body.number()?).ok().and_then(|at| self.bases.get(at)).copied();
        let base = base.ok_or(NutError::Damaged("header"))?;
        let pts_shift = u32::try_from(body.number()?).ok().filter(|shift| *shift < 32);
        let pts_shift = pts_shift.ok_or(NutError::Damaged("header"))?;
        self.stream = Some(NutStream { base, pts_shift });
        Ok(())
    }

    fn syncpoint(&mut self, body: &mut Bytes<'_>) -> Result<(), Stop> {
        let damaged = NutError::Damaged("syncpoint");
        let (Some(stream), count) = (self.stream, self.bases.len() as u64) else { return Err(damaged.into()) };
        // The time base is coded with the time. A stream has a time base, so the count is not 0.
        let coded = body.number()?;
        let base = self.bases[(coded % count) as usize];
        let num = u128::from(coded / count) * u128::from(base.num) * u128::from(stream.base.den);
        let den = u128::from(base.den) * u128::from(stream.base.num);
        self.last = i64::try_from(num / den).map_err(|_| damaged)?;
        Ok(())
    }

    fn frame(&mut self, code: u8, bytes: &[u8]) -> Result<Step, Stop> {
        let damaged = || Stop::Wrong(NutError::Damaged("frame head"));
        let code = self.codes.get(usize::from(code)).copied().ok_or_else(damaged)?;
        let stream = self.stream.ok_or_else(damaged)?;
        let mut head = Bytes(&bytes[1..]);
        let mut flags = code.flags;
        if flags & flag::CODED_FLAGS != 0 {
            flags ^= head.number()?;
        }
        if flags & flag::INVALID != 0 {
            return Err(damaged());
        }
        let id = if flags & flag::STREAM_ID != 0 { head.number()? } else { code.stream };
        if id != 0 || flags & flag::SIDE_DATA != 0 {
            return Err(NutError::Unsupported("more than pictures in its frames").into());
        }
        let pts = if flags & flag::CODED_PTS != 0 {
            self.full_pts(head.number()?, stream.pts_shift).ok_or_else(damaged)?
        } else {
            self.last.checked_add(code.pts_delta).ok_or_else(damaged)?
        };
        let msb = if flags & flag::SIZE_MSB != 0 { head.number()? } else { 0 };
        let size = msb.checked_mul(code.size_mul).and_then(|size| size.checked_add(code.size_lsb));
        if flags & flag::MATCH_TIME != 0 {
            head.signed()?;
        }
        if flags & flag::HEADER_INDEX != 0 && head.number()? != 0 {
            return Err(NutError::Unsupported("frames without their first bytes").into());
        }
        let reserved = if flags & flag::RESERVED != 0 { head.number()? } else { code.reserved };
        for _ in 0..reserved {
            head.number()?;
        }
        if flags & flag::CHECKSUM != 0 {
            let length = bytes.len() - head.0.len();
            if u32::from_be_bytes(head.array()?) != crc(&bytes[..length]) {
                return Err(damaged());
            }
        }
        let size = size.ok_or_else(damaged)?;
        if size > MOST_FRAME {
            return Err(NutError::LargeFrame(size).into());
        }
        self.last = pts;
        Ok(Step::Frame { head: bytes.len() - head.0.len(), pts_ns: stream.base.to_ns(pts), bytes: size })
    }

    /// The time behind a coded time, which may have only the low bits.
    fn full_pts(&self, coded: u64, shift: u32) -> Option<i64> {
        let coded = i64::try_from(coded).ok()?;
        if coded >= 1 << shift {
            return coded.checked_sub(1 << shift);
        }
        let mask = (1_i64 << shift) - 1;
        let lowest = self.last.checked_sub(mask >> 1)?;
        coded.wrapping_sub(lowest).checked_rem_euclid(mask + 1)?.checked_add(lowest)
    }
}

/// Bytes that are parsed from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let (first, rest) = self.0.split_first_chunk().ok_or(Stop::Short)?;
        self.0 = rest;
        Ok(*first)
    }

    fn take(&mut self, count: u64) -> Result<&'a [u8], Stop> {
        let count = usize::try_from(count).map_err(|_| Stop::Short)?;
        let (first, rest) = self.0.split_at_checked(count).ok_or(Stop::Short)?;
        self.0 = rest;
        Ok(first)
    }

    /// Seven bits to a byte, the highest first; all bytes but the last have the top bit set.
    fn number(&mut self) -> Result<u64, Stop> {
        let mut number = 0_u64;
        loop {
            let [byte] = self.array()?;
            if number >> 57 != 0 {
                return Err(NutError::Damaged("number").into());
            }
            number = number << 7 | u64::from(byte & 0x7F);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
    }

    fn signed(&mut self) -> Result<i64, Stop> {
        let coded = i64::try_from(self.number()?).map_err(|_| NutError::Damaged("number"))?;
        // 0, 1, -1, 2, -2, ...
        Ok(if coded & 1 == 1 { (coded >> 1) + 1 } else { -(coded >> 1) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use vramp_plan::Size;

    use super::super::write;
    use super::*;

    const BASE: TimeBase = TimeBase { num: 1, den: 90_000 };

    fn written(times: &[u64], pixels: usize) -> Vec<u8> {
        let mut bytes = write::header(Size::new(4, 2).unwrap(), *b"I420", BASE, (1, 1));
        let mut head = Vec::with_capacity(write::MOST_HEAD);
        for ticks in times {
            write::frame_head(*ticks, pixels as u64, &mut head);
            assert!(head.len() <= write::MOST_HEAD);
            bytes.extend_from_slice(&head);
            bytes.extend(std::iter::repeat_n(7, pixels));
        }
        bytes
    }

    /// The times and sizes of all frames, from bytes that arrive `piece` at a time.
    fn parsed(bytes: &[u8], piece: usize) -> Result<Vec<(i64, u64)>, NutError> {
        let (mut parser, mut at, mut arrived, mut frames) = (NutParser::default(), 0, 0, Vec::new());
        while at < bytes.len() {
            match parser.next(&bytes[at.min(arrived)..arrived])? {
                Step::More if arrived == bytes.len() => break,
                Step::More => arrived = (arrived + piece).min(bytes.len()),
                Step::Skip(count) => at += count as usize,
                Step::Frame { head, pts_ns, bytes } => {
                    frames.push((pts_ns, bytes));
                    at += head + bytes as usize;
                }
            }
            arrived = arrived.max(at.min(bytes.len()));
        }
        Ok(frames)
    }

    #[test]
    fn what_is_written_is_read_however_the_bytes_arrive() {
        let times = [0, 3003, 3004, 90_000, 1 << 40];
        let bytes = written(&times, 12);
        for piece in [1, 2, 7, 100, bytes.len()] {
            let expected: Vec<(i64, u64)> = times.iter().map(|ticks| (BASE.to_ns(ticks.cast_signed()), 12)).collect();
            assert_eq!(parsed(&bytes, piece), Ok(expected), "{piece}");
        }
    }

    #[test]
    fn every_changed_byte_of_a_frame_head_is_noticed() {
        let mut head = Vec::new();
        write::frame_head(5000, 12, &mut head);
        let start = written(&[], 0);
        // After the syncpoint, which may also be skipped.
        for at in head.len() - 9..head.len() {
            let mut wrong = [&start[..], &head, &[7; 12]].concat();
            wrong[start.len() + at] ^= 0x10;
            assert!(parsed(&wrong, wrong.len()).is_err(), "byte {at}");
        }
    }

    #[test]
    fn signed_numbers_alternate() {
        let read = |byte| Bytes(&[byte]).signed().ok();
        assert_eq!([0, 1, 2, 3, 4].map(read), [0, 1, -1, 2, -2].map(Some));
    }

    proptest! {
        #[test]
        fn any_bytes_are_frames_or_an_error(mut bytes in proptest::collection::vec(any::<u8>(), 0..600), headed: bool) {
            if headed {
                bytes.splice(0..0, written(&[], 0));
            }
            let _ = parsed(&bytes, 64);
        }

        #[test]
        fn damaged_streams_never_panic(at in 0_usize..400, byte: u8) {
            let mut bytes = written(&[1, 2, 3], 6);
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = parsed(&bytes, 33);
        }
    }
}
