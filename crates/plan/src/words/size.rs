//! Frame sizes and frame rates, with their ranges and text forms.
//!
//! Invariants: a side is 1..=65,536 pixels. A rate is a reduced fraction above zero and compares exactly.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// Width and height of a frame in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size {
    pub width: u32,
    pub height: u32,
}

impl Size {
    /// The longest side that a frame can have.
    pub const MAX_SIDE: u32 = 65_536;

    /// `None` if a side is out of range.
    pub const fn new(width: u32, height: u32) -> Option<Size> {
        if width == 0 || height == 0 || width > Size::MAX_SIDE || height > Size::MAX_SIDE {
            return None;
        }
        Some(Size { width, height })
    }

    pub const fn pixels(self) -> u64 {
        self.width as u64 * self.height as u64
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}x{}", self.width, self.height))
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        [self.width, self.height].serialize(to)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a size; expected WIDTHxHEIGHT with each side from 1 to {max}", max = Size::MAX_SIDE)]
pub struct BadSize(pub String);

impl FromStr for Size {
    type Err = BadSize;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let side = |digits: &str| -> Option<u32> {
            digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
        };
        word.split_once('x').and_then(|(w, h)| Size::new(side(w)?, side(h)?)).ok_or_else(|| BadSize(word.to_owned()))
    }
}

/// Frames per second as an exact fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    num: u32,
    den: u32,
}

impl Rate {
    /// The rate `num / den`, reduced; `None` if `num` or `den` is zero.
    pub const fn new(num: u32, den: u32) -> Option<Rate> {
        if num == 0 || den == 0 {
            return None;
        }
        let (mut a, mut b) = (num, den);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Some(Rate { num: num / a, den: den / a })
    }

    /// Frames in [`Rate::den`] seconds.
    pub const fn num(self) -> u32 {
        self.num
    }

    /// Seconds that [`Rate::num`] frames take.
    pub const fn den(self) -> u32 {
        self.den
    }

    /// Frames per second, rounded to a float.
    pub fn per_second(self) -> f64 {
        f64::from(self.num) / f64::from(self.den)
    }

    /// The rate if only one frame in `n` is kept; `None` if the fraction no longer fits in 32 bits.
    pub fn divided(self, n: u32) -> Option<Rate> {
        // Reduce `num / n` before multiplying `den`, so that the product does not overflow needlessly.
        let common = Rate::new(self.num, n)?;
        Rate::new(common.num, self.den.checked_mul(common.den)?)
    }
}

impl Ord for Rate {
    fn cmp(&self, other: &Self) -> Ordering {
        (u64::from(self.num) * u64::from(other.den)).cmp(&(u64::from(other.num) * u64::from(self.den)))
    }
}

impl PartialOrd for Rate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.den == 1 { write!(f, "{}", self.num) } else { write!(f, "{}/{}", self.num, self.den) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a frame rate; expected frames per second such as 30, 29.97 or 30000/1001")]
pub struct BadRate(pub String);

impl FromStr for Rate {
    type Err = BadRate;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let digits =
            |s: &str| -> Option<u32> { s.bytes().all(|b| b.is_ascii_digit()).then(|| s.parse().ok()).flatten() };
        let rate = if let Some((num, den)) = word.split_once('/') {
            digits(num).zip(digits(den)).and_then(|(n, d)| Rate::new(n, d))
        } else if let Some((whole, part)) = word.split_once('.') {
            // A decimal is exact: 29.97 is 2997/100.
            (!part.is_empty() && part.len() <= 6)
                .then(|| digits(&format!("{whole}{part}")).and_then(|n| Rate::new(n, 10u32.pow(part.len() as u32))))
                .flatten()
        } else {
            digits(word).and_then(|n| Rate::new(n, 1))
        };
        rate.ok_or_else(|| BadRate(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_out_of_range_or_shape_are_refused() {
        for word in ["", "x", "0x1", "1x0", "65537x1", "+1x1", "1x1x1", "99999999999x1", "640 x 480", "640X480"] {
            assert!(word.parse::<Size>().is_err(), "{word}");
        }
        assert_eq!("65536x1".parse(), Ok(Size { width: 65_536, height: 1 }));
    }

    #[test]
    fn rates_are_exact_and_reduced() {
        assert_eq!("29.97".parse(), Ok(Rate { num: 2997, den: 100 }));
        assert_eq!("60000/2002".parse(), Ok(Rate { num: 30_000, den: 1001 }));
        assert_eq!("60".parse::<Rate>().unwrap().divided(30), Rate::new(2, 1));
        for word in ["0", "-1", "1/0", "", ".", "1.", "nan", "4294967296", "1.0000001"] {
            assert!(word.parse::<Rate>().is_err(), "{word}");
        }
    }

    #[test]
    fn rates_compare_as_fractions() {
        assert!("30000/1001".parse::<Rate>().unwrap() < "30".parse().unwrap());
        assert!("4294967295".parse::<Rate>().unwrap() > "1/4294967295".parse().unwrap());
    }
}
