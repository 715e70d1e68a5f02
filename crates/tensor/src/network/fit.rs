//! How a picture is fitted to the size that a network wants, and back: which part of the picture lies where in the network's
//! input, axis by axis.
//!
//! Invariant: pixel centres are at half-integers and edges repeat, as in the handler `resize`.

use vramp_kernels::head::bilinear;

/// How a picture of another shape is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fit {
    /// The whole picture fills the whole input.
    #[default]
    Stretch,
    /// The whole picture keeps its shape in the middle; the rest is gray (114, 114, 114).
    Letterbox,
    /// The largest part of the right shape in the middle of the picture fills the input.
    Crop,
}

/// Neighbouring positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub start: usize,
    pub length: usize,
}

/// One axis of a fitted picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FittedAxis {
    /// Pixels of the picture.
    pub picture: usize,
    /// Positions of the network's input.
    pub network: usize,
    /// The part of the picture that the network sees.
    pub part: Span,
    /// Where that part is in the network's input.
    pub place: Span,
}

/// A position that lies outside of what is seen.
pub(super) const OUTSIDE: u32 = u32::MAX;

impl Span {
    fn whole(length: usize) -> Span {
        Span { start: 0, length }
    }

    /// `length` positions in the middle of `of`.
    fn middle(length: usize, of: usize) -> Span {
        Span { start: (of - length) / 2, length }
    }
}

impl Fit {
    /// Fits a picture to a network's input; both are width, height. Returns the axes of width and height.
    pub fn axes(self, picture: [usize; 2], network: [usize; 2]) -> [FittedAxis; 2] {
        let mut axes = [0, 1].map(|axis| FittedAxis {
            picture: picture[axis],
            network: network[axis],
            part: Span::whole(picture[axis]),
            place: Span::whole(network[axis]),
        });
        // The picture is wider than the input, or as wide.
        let is_wide = picture[0] * network[1] >= picture[1] * network[0];
        let rounded = |over: usize, by: usize| (2 * over + by) / (2 * by);
        let (one, other) = if is_wide { (0, 1) } else { (1, 0) };
        match self {
            Fit::Stretch => {}
            Fit::Letterbox => {
                let length = rounded(picture[other] * network[one], picture[one]).clamp(1, network[other]);
                axes[other].place = Span::middle(length, network[other]);
            }
            Fit::Crop => {
                let length = rounded(picture[other] * network[one], network[other]).clamp(1, picture[one]);
                axes[one].part = Span::middle(length, picture[one]);
            }
        }
        axes
    }
}

impl FittedAxis {
    /// For each position of the network's input: where it is in the picture, with
    /// [`FRACTION_BITS`](bilinear::FRACTION_BITS) fraction bits, as in the handler `resize`.
    pub(super) fn to_network(self) -> Vec<u32> {
        let Span { start, length } = self.place;
        let first = (self.part.start as u32) << bilinear::FRACTION_BITS;
        let places = bilinear::axis(self.part.length as u32, length as u32).map(|place| first + place);
        let mut all = vec![OUTSIDE; self.network];
        all[start..start + length].iter_mut().zip(places).for_each(|(to, place)| *to = place);
        all
    }

    /// For each pixel of the picture: the position of the network before it and the share of the next one.
    pub(super) fn to_picture(self) -> Vec<[u32; 2]> {
        taps(self.place, self.part, self.picture)
    }

    /// The axis of a value with another number of positions that covers the same as the network's input.
    pub(super) fn of_length(&self, length: usize) -> FittedAxis {
        let scaled = |at: usize| (2 * at * length + self.network) / (2 * self.network);
        let (start, end) = (scaled(self.place.start), scaled(self.place.start + self.place.length));
        let start = start.min(length - 1);
        FittedAxis { network: length, place: Span { start, length: end.max(start + 1) - start }, ..*self }
    }

    /// The factor and the addend that turn a coordinate of the network into one of the picture.
    pub fn scale(&self) -> (f32, f32) {
        let factor = self.part.length as f64 / self.place.length as f64;
        (factor as f32, (self.part.start as f64 - self.place.start as f64 * factor) as f32)
    }
}

/// For each of `count` positions of which `to` is stretched over `from`: the position before it, and the bits of the share
/// of the next position. Positions outside `to` are [`OUTSIDE`].
fn taps(from: Span, to: Span, count: usize) -> Vec<[u32; 2]> {
    let step = from.length as f64 / to.length as f64;
    let tap = |at: usize| {
        let Some(within) = at.checked_sub(to.start).filter(|within| *within < to.length) else { return [OUTSIDE, 0] };
        let place = ((within as f64 + 0.5) * step - 0.5).clamp(0.0, (from.length - 1) as f64);
        let before = place as usize;
        [(from.start + before) as u32, ((place - before as f64) as f32).to_bits()]
    };
    (0..count).map(tap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_or_the_whole_lies_in_the_middle() {
        let [wide, high] = Fit::Letterbox.axes([640, 480], [416, 416]);
        assert_eq!((wide.place, high.place), (Span::whole(416), Span { start: 52, length: 312 }));
        let [wide, high] = Fit::Crop.axes([640, 480], [224, 224]);
        assert_eq!((wide.part, high.part), (Span { start: 80, length: 480 }, Span::whole(480)));
        let [wide, high] = Fit::Crop.axes([3, 1000], [1, 100]);
        assert_eq!((wide.part, high.part), (Span::whole(3), Span { start: 350, length: 300 }));
        for fit in [Fit::Stretch, Fit::Letterbox, Fit::Crop] {
            for (picture, network) in [([1, 1], [7, 9]), ([5000, 1], [3, 3]), ([1, 5000], [3, 3]), ([16, 9], [16, 9])] {
                for axis in fit.axes(picture, network) {
                    assert!(axis.part.length > 0 && axis.part.start + axis.part.length <= axis.picture, "{axis:?}");
                    assert!(axis.place.length > 0 && axis.place.start + axis.place.length <= axis.network, "{axis:?}");
                }
            }
        }
    }

    #[test]
    fn coordinates_of_the_network_are_found_in_the_picture_again() {
        let [wide, high] = Fit::Letterbox.axes([640, 480], [416, 416]);
        let map = |axis: FittedAxis, at: f32| at * axis.scale().0 + axis.scale().1;
        assert!((map(wide, 416.0) - 640.0).abs() < 1e-3 && map(wide, 0.0).abs() < 1e-3);
        assert!((map(high, 52.0)).abs() < 1e-3 && (map(high, 364.0) - 480.0).abs() < 1e-3);
    }
}
