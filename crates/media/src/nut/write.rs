//! Writes a NUT stream of raw frames: the header, and the bytes before each frame.

use vramp_plan::Size;

use super::{LONG_BODY, MAGIC, MAIN, STREAM, SYNCPOINT, TimeBase, crc, flag};

/// Times are stored in full from this bit on.
const PTS_SHIFT: u32 = 14;
/// The frame code that the header declares: a key frame with its time, its size and a checksum.
const FRAME_CODE: u8 = 1;

/// The most bytes before a frame.
pub(crate) const MOST_HEAD: usize = 80;

/// The header of a stream. `tag` is ffmpeg's code of the pixel format.
pub(crate) fn header(size: Size, tag: [u8; 4], base: TimeBase, aspect: (u32, u32)) -> Vec<u8> {
    let mut main = Vec::new();
    // Version, streams, the distance of syncpoints, and the only time base.
    for number in [3, 1, 65_536, 1, base.num, base.den] {
        number_into(number, &mut main);
    }
    // The table of frame codes: code 0, the code in use, and all others.
    for (flags, count) in
        [(flag::INVALID, 1), (flag::KEY | flag::CODED_PTS | flag::SIZE_MSB | flag::CHECKSUM, 1), (flag::INVALID, 253)]
    {
        // The time, multiplier, stream, size, reserved count and number of codes.
        for number in [flags, 6, 0, 1, 0, 0, 0, count] {
            number_into(number, &mut main);
        }
    }
    // No headers are left out of frames.
    number_into(0, &mut main);
    let mut stream = Vec::new();
    for number in [0, 0, tag.len() as u64] {
        number_into(number, &mut stream);
    }
    stream.extend_from_slice(&tag);
    let (width, height) = (u64::from(size.width), u64::from(size.height));
    let aspect = [u64::from(aspect.0), u64::from(aspect.1)];
    for number in [0, u64::from(PTS_SHIFT), 1 << 20, 0, 0, 0, width, height, aspect[0], aspect[1], 0] {
        number_into(number, &mut stream);
    }
    let mut bytes = MAGIC.to_vec();
    packet(MAIN, &main, &mut bytes);
    packet(STREAM, &stream, &mut bytes);
    bytes
}

/// Replaces `head` by the bytes before a frame. Allocates nothing if `head` has room for [`MOST_HEAD`] bytes.
pub(crate) fn frame_head(ticks: u64, bytes: u64, head: &mut Vec<u8>) {
    head.clear();
    head.extend_from_slice(&SYNCPOINT.to_be_bytes());
    // The time, and no way back to an earlier syncpoint, since a pipe cannot seek.
    let start = head.len() + 1;
    head.push(0);
    number_into(ticks, head);
    number_into(0, head);
    let checked = crc(&head[start..]);
    head.extend_from_slice(&checked.to_be_bytes());
    head[start - 1] = (head.len() - start) as u8;
    let start = head.len();
    head.push(FRAME_CODE);
    number_into(ticks.saturating_add(1 << PTS_SHIFT), head);
    number_into(bytes, head);
    let checked = crc(&head[start..]);
    head.extend_from_slice(&checked.to_be_bytes());
}

fn packet(code: u64, body: &[u8], into: &mut Vec<u8>) {
    let start = into.len();
    let length = body.len() as u64 + 4;
    into.extend_from_slice(&code.to_be_bytes());
    number_into(length, into);
    if length > LONG_BODY {
        let checked = crc(&into[start..]);
        into.extend_from_slice(&checked.to_be_bytes());
    }
    into.extend_from_slice(body);
    into.extend_from_slice(&crc(body).to_be_bytes());
}

/// Seven bits to a byte, the highest first; all bytes but the last have the top bit set.
fn number_into(number: u64, into: &mut Vec<u8>) {
    let groups = (64 - number.leading_zeros()).div_ceil(7).max(1);
    for group in (0..groups).rev() {
        let bits = (number >> (7 * group)) as u8 & 0x7F;
        into.push(if group > 0 { bits | 0x80 } else { bits });
    }
}
