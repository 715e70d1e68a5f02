//! Tags: what the header of a stream says besides size, rate and format.
//!
//! Owns chroma siting, interlacing, pixel aspect and comments as values.
//! Does not decide what a handler keeps of them: `decide` does, from the handler's entry.
//!
//! Invariant: tags describe a stream, not a frame; they never change how a frame is stored.

/// Where the chroma samples of a 4:2:0 picture lie among its luma samples.
///
/// Chroma sample k of an axis covers luma samples 2k and 2k + 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Siting {
    /// Midway between the two, on both axes (JPEG, MPEG-1).
    #[default]
    Centre,
    /// On sample 2k horizontally, midway vertically (MPEG-2).
    Left,
    /// On sample 2k horizontally; vertically Cr lies on line 2k and Cb on line 2k + 1 (PAL-DV).
    Alternate,
}

impl Siting {
    /// Every siting.
    pub const ALL: [Siting; 3] = [Siting::Centre, Siting::Left, Siting::Alternate];
}

/// How the lines of a picture belong to moments in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Interlacing {
    /// All lines are of one moment.
    Progressive,
    /// The first line belongs to the earlier field.
    TopFirst,
    /// The second line belongs to the earlier field.
    BottomFirst,
    /// Each frame says for itself.
    Mixed,
    /// Not known.
    Unknown,
}

impl Interlacing {
    /// Whether neighbouring lines may be of different moments.
    pub const fn has_fields(self) -> bool {
        matches!(self, Interlacing::TopFirst | Interlacing::BottomFirst | Interlacing::Mixed)
    }
}

/// Width to height of a pixel; 0:0 means that it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PixelAspect {
    /// Width.
    pub num: u32,
    /// Height.
    pub den: u32,
}

impl PixelAspect {
    /// Pixels as wide as they are high.
    pub const SQUARE: PixelAspect = PixelAspect { num: 1, den: 1 };
    /// Not known.
    pub const UNKNOWN: PixelAspect = PixelAspect { num: 0, den: 0 };

    /// The aspect times a fraction of two products, reduced; none if it cannot be written in 32 bits.
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

/// What a stream's header says besides size, rate and format. What it does not say is none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct StreamTags {
    /// How lines belong to moments.
    pub interlacing: Option<Interlacing>,
    /// The shape of a pixel.
    pub aspect: Option<PixelAspect>,
    /// The header's word for how chroma is stored.
    pub chroma: Option<&'static str>,
    /// Whether it says which range of levels is used.
    pub says_range: bool,
    /// Comments in their order: any bytes but spaces and line ends.
    pub comments: Vec<Vec<u8>>,
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
