//! The dense packing of a tensor's values into the texels of a texture: value `i`, by its flat index, is channel
//! `i % 4` of texel `i / 4`. Texels are counted row by row. This module maps indices to texels and back, in Rust and in
//! WGSL.
//!
//! Shapes are given as [height, width], as in tensors; sizes of textures are given as (width, height). In a texture of
//! the shape [H, W], pixel (y, x) of a tensor [H, W, 4] or [1, H, W, 4] is texel (y, x).
//!
//! Invariants: every value has exactly one place. Channels after the last value are 0.

use std::fmt::{self, Write as _};

use smallvec::SmallVec;

use crate::ops::error::TensorError;
use crate::ops::shape::Shape;

/// Values per texel.
pub const CHANNELS: usize = 4;

/// The shape of a texture that holds a tensor, in texels, rows first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TexShape {
    pub height: usize,
    pub width: usize,
}

/// A place in a texture: the texel that shaders load at `vec2(col, row)`, and a channel of that texel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TexPlace {
    /// The row, counted from the top.
    pub row: usize,
    pub col: usize,
    /// 0 (red) to 3 (alpha).
    pub channel: usize,
}

impl TexShape {
    /// The default shape for `count` values: about square. For `t = max(ceil(count / 4), 1)` texels, the width is
    /// `ceil(sqrt(t))`, and the height is `ceil(t / width)`.
    pub fn of(count: usize) -> TexShape {
        let texels = count.div_ceil(CHANNELS).max(1);
        let width = ceil_sqrt(texels);
        TexShape { height: texels.div_ceil(width), width }
    }

    /// A shape of the caller's choice, which is not changed. Fails if the shape has no room for `count` values.
    pub fn custom(height: usize, width: usize, count: usize) -> Result<TexShape, TensorError> {
        let has = height.saturating_mul(width).saturating_mul(CHANNELS);
        if height == 0 || width == 0 || has < count {
            let problem = format!(
                "rows x cols x {CHANNELS} of a texture must be >= the {count} values of the tensor; {height} x {width} x \
                 {CHANNELS} is {has}; give more rows or columns"
            );
            return Err(TensorError::Setting { op: "texture", problem });
        }
        Ok(TexShape { height, width })
    }

    /// Fails if either side exceeds `most`, the device's limit in texels.
    pub fn check(self, most: u32) -> Result<TexShape, TensorError> {
        if self.height.max(self.width) <= most as usize {
            return Ok(self);
        }
        let problem = format!(
            "a texture of {self} texels (height, width); this device allows at most {most} along each side; give another \
             shape, or use the buffer"
        );
        Err(TensorError::NotSupported { op: "texture", problem })
    }

    pub fn texels(self) -> usize {
        self.height * self.width
    }

    /// The place of a value, by its flat index.
    pub fn place(self, flat: usize) -> TexPlace {
        let texel = flat / CHANNELS;
        TexPlace { row: texel / self.width, col: texel % self.width, channel: flat % CHANNELS }
    }

    /// The flat index of a place. Places past the last value of a tensor hold 0.
    pub fn flat(self, place: TexPlace) -> usize {
        (place.row * self.width + place.col) * CHANNELS + place.channel
    }

    /// The place of a value of a tensor, by its index along each axis.
    pub fn place_of(self, shape: &Shape, index: &[usize]) -> Result<TexPlace, TensorError> {
        let inside = index.len() == shape.rank() && index.iter().zip(shape.lengths()).all(|(at, length)| at < length);
        if !inside {
            let problem = format!("a tensor of {shape} has no value {index:?}");
            return Err(TensorError::Setting { op: "texture", problem });
        }
        Ok(self.place(index.iter().zip(shape.strides()).map(|(at, stride)| at * stride).sum()))
    }

    /// The index, along each axis, of the value in a place; `None` after the last value.
    pub fn index_at(self, shape: &Shape, place: TexPlace) -> Option<SmallVec<[usize; 4]>> {
        let inside = place.row < self.height && place.col < self.width && place.channel < CHANNELS;
        let flat = Some(self.flat(place)).filter(|flat| inside && *flat < shape.count())?;
        Some(shape.lengths().iter().zip(shape.strides()).map(|(length, stride)| flat / stride % length).collect())
    }

    /// Functions for a user's shader that reads this texture as a tensor of `shape`:
    ///
    /// - `texel_of(flat: u32) -> vec2<u32>`: the (x, y) at which `textureLoad` finds a value;
    /// - `channel_of(flat: u32) -> u32`: the channel of that texel;
    /// - `flat_at(texel: vec2<u32>, channel: u32) -> u32`: the inverse; results of `VALUES` or more are past the last
    ///   value;
    /// - `flat_of(a: u32, b: u32, ...) -> u32`, one parameter for each axis: the flat index of a value, and
    ///   `index_of(flat: u32) -> array<u32, RANK>`: the inverse. A shape without axes has neither function.
    pub fn wgsl(self, shape: &Shape) -> String {
        let (width, values) = (self.width, shape.count());
        let mut text = format!(
            "const VALUES: u32 = {values}u;\n\
             fn texel_of(flat: u32) -> vec2<u32> {{ return vec2<u32>((flat / 4u) % {width}u, (flat / 4u) / {width}u); }}\n\
             fn channel_of(flat: u32) -> u32 {{ return flat % 4u; }}\n\
             fn flat_at(texel: vec2<u32>, channel: u32) -> u32 {{ return (texel.y * {width}u + texel.x) * 4u + channel; }}\n"
        );
        let (strides, rank) = (shape.strides(), shape.rank());
        if rank > 0 {
            let names: Vec<String> = (0..rank).map(|axis| format!("at{axis}")).collect();
            let params: Vec<String> = names.iter().map(|name| format!("{name}: u32")).collect();
            let sum: Vec<String> =
                names.iter().zip(&strides).map(|(name, stride)| format!("{name} * {stride}u")).collect();
            let parts: Vec<String> = shape
                .lengths()
                .iter()
                .zip(&strides)
                .map(|(length, stride)| format!("(flat / {stride}u) % {}u", (*length).max(1)))
                .collect();
            let (params, sum, parts) = (params.join(", "), sum.join(" + "), parts.join(", "));
            let _ = writeln!(text, "fn flat_of({params}) -> u32 {{ return {sum}; }}");
            let array = format!("array<u32, {rank}>");
            let _ = writeln!(text, "fn index_of(flat: u32) -> {array} {{ return {array}({parts}); }}");
        }
        text
    }
}

impl fmt::Display for TexShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {}]", self.height, self.width)
    }
}

/// The smallest integer whose square is at least `of`.
fn ceil_sqrt(of: usize) -> usize {
    let root = of.isqrt();
    root + usize::from(root * root < of)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shape(lengths: &[usize]) -> Shape {
        Shape::new(lengths).unwrap()
    }

    #[test]
    fn shapes_are_about_square_by_default() {
        let of = |count| (TexShape::of(count).height, TexShape::of(count).width);
        let table = [(12, (2, 2)), (4, (1, 1)), (1, (1, 1)), (0, (1, 1)), (5, (1, 2)), (24, (2, 3)), (400, (10, 10))];
        for (count, wants) in table {
            assert_eq!(of(count), wants, "{count} values");
        }
    }

    #[test]
    fn a_shape_of_ones_own_is_used_exactly_or_refused_with_numbers() {
        assert_eq!(TexShape::custom(1, 5, 12).unwrap(), TexShape { height: 1, width: 5 });
        assert_eq!(TexShape::custom(3, 1, 12).unwrap(), TexShape { height: 3, width: 1 });
        let wrong = TexShape::custom(2, 1, 12).unwrap_err().to_string();
        let words = "texture: rows x cols x 4 of a texture must be >= the 12 values of the tensor; 2 x 1 x 4 is 8; give \
                     more rows or columns";
        assert_eq!(wrong, words);
        assert!(TexShape::custom(0, 0, 0).is_err() && TexShape::custom(usize::MAX, 2, 12).is_ok());
        let long = TexShape { height: 1, width: 9000 }.check(8192).unwrap_err().to_string();
        assert!(long.contains("[1, 9000] texels (height, width); this device allows at most 8192"), "{long}");
    }

    #[test]
    fn the_picture_of_a_2_3_4_tensor() {
        let (it, tex) = (shape(&[2, 3, 4]), TexShape::of(24));
        let cell = |row, col, channel| {
            let index = tex.index_at(&it, TexPlace { row, col, channel }).unwrap();
            index.iter().map(usize::to_string).collect::<String>()
        };
        let texel = |row, col| (0..CHANNELS).map(|channel| cell(row, col, channel)).collect::<Vec<_>>().join(" ");
        let line = |row| (0..tex.width).map(|col| texel(row, col)).collect::<Vec<_>>().join(" | ");
        let picture: Vec<String> = (0..tex.height).map(line).collect();
        let table = [
            "000 001 002 003 | 010 011 012 013 | 020 021 022 023",
            "100 101 102 103 | 110 111 112 113 | 120 121 122 123",
        ];
        assert_eq!(picture, table);
    }

    #[test]
    fn pixels_of_a_picture_are_its_texels() {
        for lengths in [&[3, 5, 4][..], &[1, 3, 5, 4]] {
            let (it, tex) = (shape(lengths), TexShape::custom(3, 5, 60).unwrap());
            for (y, x, c) in [(0, 0, 0), (2, 1, 3), (1, 4, 2)] {
                let index = [0, y, x, c];
                let place = tex.place_of(&it, &index[4 - lengths.len()..]).unwrap();
                assert_eq!(place, TexPlace { row: y, col: x, channel: c });
            }
        }
        let wrong = TexShape::of(24).place_of(&shape(&[2, 3, 4]), &[0, 3, 0]).unwrap_err().to_string();
        assert_eq!(wrong, "texture: a tensor of [2, 3, 4] has no value [0, 3, 0]");
    }

    #[test]
    fn the_functions_for_shaders_are_valid() {
        for lengths in [&[][..], &[7], &[2, 3, 4], &[0, 4], &[1, 2, 3, 1, 2, 3, 1, 2]] {
            let it = shape(lengths);
            let text = TexShape::of(it.count()).wgsl(&it);
            let module = naga::front::wgsl::parse_str(&text).unwrap_or_else(|error| panic!("{text}\n{error}"));
            let flags = naga::valid::ValidationFlags::all();
            let mut validator = naga::valid::Validator::new(flags, naga::valid::Capabilities::empty());
            validator.validate(&module).unwrap_or_else(|error| panic!("{text}\n{error:?}"));
            let names: Vec<_> = module.functions.iter().filter_map(|(_, function)| function.name.clone()).collect();
            assert_eq!(names.len(), if lengths.is_empty() { 3 } else { 5 }, "{names:?}");
        }
    }

    proptest! {
        #[test]
        fn every_value_has_one_place_and_every_place_at_most_one_value(
            lengths in prop::collection::vec(1_usize..6, 0..5),
            more_rows in 0_usize..3,
            width in prop::option::of(1_usize..12),
        ) {
            let it = shape(&lengths);
            let tex = match width {
                None => TexShape::of(it.count()),
                Some(width) => {
                    let height = it.count().div_ceil(CHANNELS).div_ceil(width) + more_rows;
                    TexShape::custom(height, width, it.count()).unwrap()
                }
            };
            prop_assert!(tex.texels() * CHANNELS >= it.count());
            let mut seen = 0;
            for row in 0..tex.height {
                for col in 0..tex.width {
                    for channel in 0..CHANNELS {
                        let place = TexPlace { row, col, channel };
                        prop_assert_eq!(tex.place(tex.flat(place)), place);
                        if let Some(index) = tex.index_at(&it, place) {
                            prop_assert_eq!(tex.place_of(&it, &index).unwrap(), place);
                            seen += 1;
                        }
                    }
                }
            }
            prop_assert_eq!(seen, it.count());
        }

        #[test]
        fn the_default_wastes_less_than_a_row(count in 0_usize..1_000_000) {
            let tex = TexShape::of(count);
            prop_assert!(tex.texels() * CHANNELS >= count);
            prop_assert!((tex.height - 1) * tex.width < count.div_ceil(CHANNELS).max(1));
            prop_assert!(tex.height <= tex.width && tex.width <= tex.height + 1);
        }
    }
}
