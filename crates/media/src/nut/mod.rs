//! NUT, the container between vramp and ffmpeg: raw frames with exact times, one stream.
//!
//! NUT costs nothing measurable beside raw video, and carries what raw video lacks: a time for each frame. [`read`]
//! parses the part of NUT that ffmpeg writes, [`write`] makes the part that ffmpeg reads. Both work on bytes in memory;
//! the pipes are in [`crate::pipe`].

pub(crate) mod read;
pub(crate) mod write;

/// The first bytes of every file.
const MAGIC: &[u8; 25] = b"nut/multimedia container\0";

/// The first eight bytes of each kind of packet.
const MAIN: u64 = 0x4E4D_7A56_1F5F_04AD;
const STREAM: u64 = 0x4E53_1140_5BF2_F9DB;
const SYNCPOINT: u64 = 0x4E4B_E4AD_EECA_4569;

/// A packet with a longer body has a checksum of its head too.
const LONG_BODY: u64 = 4096;

/// The flags of a frame.
mod flag {
    pub(super) const KEY: u64 = 1;
    pub(super) const CODED_PTS: u64 = 1 << 3;
    pub(super) const STREAM_ID: u64 = 1 << 4;
    pub(super) const SIZE_MSB: u64 = 1 << 5;
    pub(super) const CHECKSUM: u64 = 1 << 6;
    pub(super) const RESERVED: u64 = 1 << 7;
    pub(super) const SIDE_DATA: u64 = 1 << 8;
    pub(super) const HEADER_INDEX: u64 = 1 << 10;
    pub(super) const MATCH_TIME: u64 = 1 << 11;
    pub(super) const CODED_FLAGS: u64 = 1 << 12;
    pub(super) const INVALID: u64 = 1 << 13;
}

/// CRC-32 with the polynomial 0x04C11DB7, most significant bit first, starting at 0.
fn crc(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    bytes.iter().fold(0, |crc, byte| crc << 8 ^ TABLE[(crc >> 24) as usize ^ usize::from(*byte)])
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut crc = (at as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc >> 31 == 1 { crc << 1 ^ 0x04C1_1DB7 } else { crc << 1 };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
}

/// A fraction of a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeBase {
    pub num: u64,
    pub den: u64,
}

impl TimeBase {
    /// The time of `ticks`, rounded to the nearest nanosecond.
    pub fn to_ns(self, ticks: i64) -> i64 {
        let scaled = i128::from(ticks) * i128::from(self.num) * 1_000_000_000;
        clamped(rounded(scaled, i128::from(self.den)))
    }

    /// The nearest number of ticks to a time.
    pub fn to_ticks(self, ns: i64) -> i64 {
        clamped(rounded(i128::from(ns) * i128::from(self.den), i128::from(self.num) * 1_000_000_000))
    }
}

fn rounded(num: i128, den: i128) -> i128 {
    (num + den / 2).div_euclid(den.max(1))
}

fn clamped(value: i128) -> i64 {
    value.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_to_the_nearest_tick() {
        let base = TimeBase { num: 1, den: 90_000 };
        assert_eq!((base.to_ns(1), base.to_ns(90_000), base.to_ns(-1)), (11_111, 1_000_000_000, -11_111));
        assert_eq!((base.to_ticks(16_666), base.to_ticks(16_667), base.to_ticks(-16_666)), (1, 2, -1));
        assert_eq!(TimeBase { num: u64::MAX >> 1, den: 1 }.to_ns(i64::MAX >> 40), i64::MAX);
    }

    #[test]
    fn checksums_are_those_of_nut() {
        assert_eq!(crc(b""), 0);
        assert_eq!(crc(b"\x01"), 0x04C1_1DB7);
    }
}
