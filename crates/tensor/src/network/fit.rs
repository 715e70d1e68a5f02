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

    /// How pixels of the picture see a value of `length` positions that covers the same as the network's input. For each
    /// pixel: the position before it, and the bits of the share of the next position. Pixels that the network has not seen
    /// are [`OUTSIDE`].
    ///
    /// The edges of the seen part may lie within a position; edges are not rounded, because a position of a small value
    /// covers many pixels. Beyond the edges, the last position that the part touches repeats.
    pub(super) fn to_picture(self, length: usize) -> Vec<[u32; 2]> {
        let per = length as f64 / self.network as f64;
        let (start, end) = (self.place.start * length, (self.place.start + self.place.length) * length);
        let (first, last) = ((start / self.network) as f64, (end.div_ceil(self.network) - 1) as f64);
        let start = self.place.start as f64 * per;
        let step = self.place.length as f64 * per / self.part.length as f64;
        let tap = |at: usize| {
            let within = at.checked_sub(self.part.start).filter(|within| *within < self.part.length);
            let Some(within) = within else { return [OUTSIDE, 0] };
            let place = (start + (within as f64 + 0.5) * step - 0.5).clamp(first, last);
            [place as u32, (place.fract() as f32).to_bits()]
        };
        (0..self.picture).map(tap).collect()
    }

    /// The factor and the addend that turn a coordinate of the network into one of the picture.
    pub fn scale(&self) -> (f32, f32) {
        let factor = self.part.length as f64 / self.place.length as f64;
        (factor as f32, (self.part.start as f64 - self.place.start as f64 * factor) as f32)
    }
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
    fn values_smaller_than_the_network_cover_the_same_part() {
        // 1920x1080 lies in rows 56 to 200 of 256, which are rows 3.5 to 12.5 of 16.
        let [wide, high] = Fit::Letterbox.axes([1920, 1080], [256, 256]);
        let place = |tap: [u32; 2]| f64::from(tap[0]) + f64::from(f32::from_bits(tap[1]));
        let rows: Vec<f64> = high.to_picture(16).into_iter().map(place).collect();
        for (at, row) in rows.iter().enumerate() {
            let exact = 3.5 + (at as f64 + 0.5) * 9.0 / 1080.0 - 0.5;
            assert!((row - exact).abs() < 1e-6, "row {at}: {row}, not {exact}");
        }
        let columns: Vec<f64> = wide.to_picture(16).into_iter().map(place).collect();
        for (at, column) in [(0, 0.0), (960, 7.504_166_7), (1919, 15.0)] {
            assert!((columns[at] - column).abs() < 1e-6, "column {at}: {}", columns[at]);
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
