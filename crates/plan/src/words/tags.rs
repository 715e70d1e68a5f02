//! Tags: the properties in a stream's header besides size, rate and format.
//!
//! The tags are chroma siting, interlacing, pixel aspect and comments. `decide` determines from a handler's entry which
//! tags the handler keeps.
//!
//! Invariant: tags describe a stream, not a frame; tags never change how a frame is stored.

/// The position of the chroma samples of a 4:2:0 frame among its luma samples.
///
/// Chroma sample k of an axis covers luma samples 2k and 2k + 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Siting {
    /// Midway between the two luma samples, on both axes (JPEG, MPEG-1).
    #[default]
    Centre,
    /// On luma sample 2k horizontally, midway vertically (MPEG-2).
    Left,
    /// On luma sample 2k horizontally; vertically Cr is on line 2k and Cb on line 2k + 1 (PAL-DV).
    Alternate,
}

impl Siting {
    pub const ALL: [Siting; 3] = [Siting::Centre, Siting::Left, Siting::Alternate];
}

/// Which lines of a frame were captured at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Interlacing {
    /// All lines belong to one moment.
    Progressive,
    /// The first line belongs to the earlier field.
    TopFirst,
    /// The second line belongs to the earlier field.
    BottomFirst,
    /// Each frame declares its own interlacing.
    Mixed,
    Unknown,
}

impl Interlacing {
    /// True if neighbouring lines may belong to different moments.
    pub const fn has_fields(self) -> bool {
        matches!(self, Interlacing::TopFirst | Interlacing::BottomFirst | Interlacing::Mixed)
    }
}

/// Width to height of a pixel; 0:0 means unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PixelAspect {
    pub num: u32,
    pub den: u32,
}

impl PixelAspect {
    /// Pixels as wide as they are high.
    pub const SQUARE: PixelAspect = PixelAspect { num: 1, den: 1 };
    pub const UNKNOWN: PixelAspect = PixelAspect { num: 0, den: 0 };

    /// The aspect times the product of `num` divided by the product of `den`, reduced; `None` if the result does not
    /// fit in 32 bits.
    pub fn times(self, num: [u32; 2], den: [u32; 2]) -> Option<PixelAspect> {
        let product = |one: u32, [two, three]: [u32; 2]| u128::from(one) * u128::from(two) * u128::from(three);
        let (num, den) = (product(self.num, num), product(self.den, den));
        let divisor = common_divisor(num, den).max(1);
        let reduced = |n: u128| u32::try_from(n / divisor).ok();
        Some(PixelAspect { num: reduced(num)?, den: reduced(den)? })
    }
}

fn common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The properties of a stream's header besides size, rate and format; a property that the header does not have is
/// `None`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct StreamTags {
    pub interlacing: Option<Interlacing>,
    pub aspect: Option<PixelAspect>,
    /// The header's word for the chroma layout.
    pub chroma: Option<&'static str>,
    /// True if the header declares the range of levels.
    pub says_range: bool,
    /// Comments in order: any bytes except spaces and line ends.
    pub comments: Vec<Vec<u8>>,
    /// The file that the pictures come from, for a sink that copies its sound.
    pub origin: Option<StreamOrigin>,
}

/// The file or address that a stream was decoded from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StreamOrigin {
    pub address: String,
    /// The time in the file at which the stream begins.
    pub start_ns: u64,
    pub has_audio: bool,
    pub has_subtitles: bool,
    /// Why the sound does not belong to the pictures; `None` if it does.
    pub no_copy: Option<&'static str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aspect_times_a_fraction_is_reduced_or_refused() {
        let aspect = |num, den| PixelAspect { num, den };
        assert_eq!(PixelAspect::SQUARE.times([640, 320], [480, 320]), Some(aspect(4, 3)));
        assert_eq!(aspect(4, 3).times([480, 1], [640, 1]), Some(aspect(1, 1)));
        assert_eq!(aspect(8, 6).times([1, 1], [1, 1]), Some(aspect(4, 3)));
        assert_eq!(PixelAspect::UNKNOWN.times([640, 320], [480, 320]), Some(PixelAspect::UNKNOWN));
        assert_eq!(aspect(u32::MAX, 1).times([3, 1], [2, 1]), None);
    }
}
