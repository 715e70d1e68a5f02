//! What was found in a picture, drawn on it: boxes with labels, or lines of labels in the upper left corner.
//!
//! The rows of what was found are values of the network, so on a device nothing is read back to draw them. Labels and digits
//! are coverage that was prepared by the caller ([`LabelStrips`]). A first step places each row ([`PlaceRows`]), so that
//! the step that visits all pixels compares only whole numbers.
//!
//! Invariants: positions and colors are whole numbers on both sides. Rows come best first, and a better row lies above a
//! worse one. Alpha stays.

use crate::network::NetworkBuilder;
use crate::network::builder::NewValue;
#[cfg(not(target_arch = "wasm32"))]
use crate::network::step::{DeviceFacts, DeviceWork};
use crate::network::step::{HostCall, Step, WordKind};
use crate::network::value::ValueId;
use crate::ops::error::TensorError;

#[cfg(not(target_arch = "wasm32"))]
use crate::network::step::{Bound, Dispatch};
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::device::{KernelText, Launch, MATH};

#[cfg(not(target_arch = "wasm32"))]
use super::by_word::WordKernel;

const OP: &str = "annotate";

/// What the rows of found things are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Annotation {
    /// Class and score: a line each.
    Classes,
    /// Left, top, right, bottom, score and class: a box each.
    Boxes,
}

/// The coverage of labels and of the characters `0123456789.`, all of one height.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelStrips {
    pub height: usize,
    /// The width of each of the eleven characters.
    pub cell: usize,
    /// The width of the label of each class.
    pub widths: Vec<usize>,
    /// The coverage of each label, row by row, then that of each character.
    pub coverage: Vec<u8>,
}

/// Words before the first row: the kind and the number of rows.
const HEADER: usize = 2;

/// The width of a box's outline.
const OUTLINE: i32 = 2;

/// The distance of the first line from the corner.
const CORNER: i32 = 8;

/// Space around and between label and score.
const SPACE: i32 = 4;

/// Colors of classes: red, green and blue from the lowest byte on.
const COLORS: [u32; 8] = [0x00_a5ff, 0xff_c04d, 0x66_ff7a, 0xff_7ae0, 0x4d_ffff, 0xff_ff66, 0x80_80ff, 0xb3_ffcc];

/// Words of a placed row.
const PLACED: usize = 16;

/// Places rows: where the outline and the label of each row are, and what they show. Inputs: what was found, and the
/// strips as words.
#[derive(Debug)]
struct PlaceRows {
    /// The width of the picture.
    width: usize,
    what: Annotation,
    /// Rows that there is room for.
    most: usize,
    height: usize,
    cell: usize,
    labels: usize,
}

/// Draws placed rows. Inputs: pixels, placed rows, and the strips as words.
#[derive(Debug)]
struct Annotate {
    size: [usize; 2],
    most: usize,
    height: usize,
    cell: usize,
    labels: usize,
    /// The byte of the coverage where the characters begin.
    characters: usize,
}

impl Annotation {
    /// Words of a row.
    pub fn row(self) -> usize {
        match self {
            Annotation::Classes => 2,
            Annotation::Boxes => 6,
        }
    }
}

impl LabelStrips {
    /// The start and the width of each label, and then the coverage, four bytes a word.
    fn words(&self) -> Vec<u32> {
        let mut words = Vec::with_capacity(2 * self.widths.len() + self.coverage.len() / 4 + 1);
        let mut start = 0;
        for width in &self.widths {
            words.extend([start as u32, *width as u32]);
            start += width * self.height;
        }
        let mut coverage = self.coverage.clone();
        coverage.resize(self.coverage.len().next_multiple_of(4).max(4), 0);
        words.extend(coverage.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)));
        words
    }

    fn characters(&self) -> usize {
        self.widths.iter().sum::<usize>() * self.height
    }
}

impl NetworkBuilder {
    /// The picture `pixels` with what was found drawn on it. `found` is the kind, the number of rows, and the rows, best
    /// first, in pixels of the picture.
    pub fn annotated(
        &mut self,
        pixels: ValueId,
        found: ValueId,
        what: Annotation,
        strips: &LabelStrips,
    ) -> Result<ValueId, TensorError> {
        let size = self.is_picture(OP, pixels)?;
        let count: usize = self.lengths(found).iter().product();
        let room = strips.characters() + 11 * strips.cell * strips.height;
        if self.kind(found) != WordKind::F32 || count < HEADER || strips.coverage.len() != room {
            let problem = format!(
                "{count} values of {} and {} bytes of strips; expected {HEADER} or more of f32 and {room} bytes",
                self.kind(found).dtype(),
                strips.coverage.len()
            );
            return Err(TensorError::Mismatch { op: OP, problem });
        }
        let words = strips.words();
        let length = words.len();
        let known = self.integers(bytemuck::cast_vec(words), &[length])?;
        let most = (count - HEADER) / what.row();
        let (height, cell, labels) = (strips.height, strips.cell, strips.widths.len());
        let strip_words = self.straight(known)?;
        let memories = [self.straight(found)?, strip_words];
        let step = PlaceRows { width: size[0], what, most, height, cell, labels };
        let placed = self.add_one(step, &memories, NewValue::straight(WordKind::I32, &[most, PLACED]))?;
        let memories = [self.straight(pixels)?, self.straight(placed)?, strip_words];
        let step = Annotate { size, most, height, cell, labels, characters: strips.characters() };
        self.add_one(step, &memories, NewValue::straight(WordKind::I32, &[size[1], size[0]]))
    }
}

/// A placed row, in whole pixels. Rectangles are left, top, and the first pixels beyond right and bottom.
#[derive(Debug, Clone, Copy)]
struct DrawnRow {
    /// Of everything that is drawn; empty for rows that are not used.
    bounds: [i32; 4],
    /// Empty without an outline.
    outline: [i32; 4],
    /// The upper left corner of the label.
    corner: [i32; 2],
    /// The width and the first byte of the label's strip.
    strip: [i32; 2],
    color: i32,
    ink: i32,
    /// In hundredths.
    score: i32,
}

impl DrawnRow {
    const NONE: DrawnRow =
        DrawnRow { bounds: [0; 4], outline: [0; 4], corner: [0; 2], strip: [0; 2], color: 0, ink: 0, score: 0 };

    fn words(self) -> [i32; PLACED] {
        let mut words = [0; PLACED];
        words[..4].copy_from_slice(&self.bounds);
        words[4..8].copy_from_slice(&self.outline);
        words[8..10].copy_from_slice(&self.corner);
        words[10..12].copy_from_slice(&self.strip);
        words[12..15].copy_from_slice(&[self.color, self.ink, self.score]);
        words
    }

    fn of(words: &[i32; PLACED]) -> DrawnRow {
        let four = |at: usize| std::array::from_fn(|i| words[at + i]);
        let two = |at: usize| [words[at], words[at + 1]];
        DrawnRow {
            bounds: four(0),
            outline: four(4),
            corner: two(8),
            strip: two(10),
            color: words[12],
            ink: words[13],
            score: words[14],
        }
    }
}

impl PlaceRows {
    fn placed(&self, row: &[f32], number: usize, strips: &[u32]) -> DrawnRow {
        // NaN becomes 0.
        let whole = |value: f32| (value + 0.5).floor().clamp(-30_000.0, 30_000.0) as i32;
        let (outline, score, class) = match (self.what, row) {
            (Annotation::Classes, &[class, score, ..]) => (None, score, class),
            (Annotation::Boxes, &[x0, y0, x1, y1, score, class, ..]) => {
                (Some([x0, y0, x1, y1].map(whole)), score, class)
            }
            _ => unreachable!("a row has all its values"),
        };
        let class = class.clamp(0.0, 1e9) as usize;
        let has_label = class < self.labels;
        let strip = if has_label { [1, 0].map(|at| strips[2 * class + at].cast_signed()) } else { [0; 2] };
        let (width, height) = (strip[0] + 3 * SPACE + 4 * signed(self.cell), signed(self.height));
        let corner = match outline {
            None => [CORNER, CORNER + signed(number) * height],
            Some([left, top, ..]) => {
                [left.min(signed(self.width) - width).max(0), if top >= height { top - height } else { top }]
            }
        };
        let label = [corner[0], corner[1], corner[0] + width, corner[1] + height];
        let bounds = match outline {
            None => label,
            Some(own) => [own[0].min(label[0]), own[1].min(label[1]), own[2].max(label[2]), own[3].max(label[3])],
        };
        let score = (score * 100.0 + 0.5).floor().clamp(0.0, 999.0) as i32;
        let (color, ink) =
            if outline.is_some() { (COLORS[class % COLORS.len()].cast_signed(), 0) } else { (0, 0xff_ffff) };
        DrawnRow { bounds, outline: outline.unwrap_or_default(), corner, strip, color, ink, score }
    }
}

impl Step for PlaceRows {
    fn name(&self) -> &'static str {
        OP
    }

    fn host(&self, mut call: HostCall<'_, '_>) {
        let (found, strips) = (call.floats(0), call.inputs[1]);
        let count = found[1].max(0.0) as usize;
        let rows = found[HEADER..].chunks_exact(self.what.row());
        let (out, _) = call.integers_out(0).as_chunks_mut::<PLACED>();
        for (number, (out, row)) in out.iter_mut().zip(rows).enumerate() {
            *out = if number < count { self.placed(row, number, strips) } else { DrawnRow::NONE }.words();
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork {
        let colors = COLORS.map(|color| format!("{color}u")).join(", ");
        let kernel = WordKernel {
            name: &format!("place rows of {:?}", self.what),
            inputs: &["found", "strips"],
            fields: &[("width", self.width), ("height", self.height), ("cell", self.cell), ("labels", self.labels)],
            vectors: &[],
            wgsl: &format!(
                "{}const COLOR_COUNT = {}u;\nconst COLORS = array<u32, COLOR_COUNT>({colors});\nconst ROW = {}u;\nconst IS_BOXES = {};\n{}",
                constants(),
                COLORS.len(),
                self.what.row(),
                self.what == Annotation::Boxes,
                include_str!("annotate_rows.wgsl")
            ),
            count: self.most * PLACED,
        };
        DeviceWork::one(kernel.dispatch(facts))
    }
}

/// WGSL of the numbers that both shaders share with the host.
#[cfg(not(target_arch = "wasm32"))]
fn constants() -> String {
    let header = format!("const HEADER = {HEADER}u;\nconst PLACED = {PLACED}u;\n");
    format!("{header}const OUTLINE = {OUTLINE};\nconst CORNER = {CORNER};\nconst SPACE = {SPACE};\n")
}

/// A length or a place, which is less than 2^31.
fn signed(length: usize) -> i32 {
    (length as u32).cast_signed()
}

/// A pixel with this color over it; alpha stays.
fn painted(pixel: u32, color: u32) -> u32 {
    pixel & 0xff00_0000 | color
}

/// The color of a label's pixel.
fn inked(color: u32, ink: u32, coverage: u32) -> u32 {
    let channel = |shift: u32| {
        let (from, to) = (color >> shift & 255, ink >> shift & 255);
        ((from * (255 - coverage) + to * coverage + 127) / 255) << shift
    };
    channel(0) | channel(8) | channel(16)
}

impl Annotate {
    /// The coverage of a row's label at a place inside it.
    fn coverage(&self, row: &DrawnRow, [x, y]: [i32; 2], strips: &[u32]) -> u32 {
        let byte = |at: usize| strips[2 * self.labels + at / 4] >> (at % 4 * 8) & 255;
        let ([label, start], x) = (row.strip, x - SPACE);
        if (0..label).contains(&x) {
            return byte((start + y * label + x) as usize);
        }
        let (x, cell) = (x - label - SPACE, signed(self.cell));
        if !(0..4 * cell).contains(&x) {
            return 0;
        }
        let digits = [row.score / 100, 10, row.score / 10 % 10, row.score % 10];
        let character = digits[(x / cell) as usize] as usize;
        byte(self.characters + character * self.cell * self.height + (y * cell + x % cell) as usize)
    }
}

impl Step for Annotate {
    fn name(&self) -> &'static str {
        OP
    }

    fn host(&self, call: HostCall<'_, '_>) {
        let (pixels, placed, strips) = (call.inputs[0], call.integers(1), call.inputs[2]);
        let out = &mut *call.outputs[0];
        out.copy_from_slice(pixels);
        let [width, height] = self.size.map(signed);
        let mut paint = |[x0, y0, x1, y1]: [i32; 4], color: &dyn Fn(i32, i32) -> u32| {
            for y in y0.max(0)..y1.min(height) {
                let line = &mut out[(y * width) as usize..][..width as usize];
                for x in x0.max(0)..x1.min(width) {
                    line[x as usize] = painted(line[x as usize], color(x, y));
                }
            }
        };
        for row in placed.as_chunks::<PLACED>().0.iter().rev().map(DrawnRow::of) {
            if row.bounds == [0; 4] {
                continue;
            }
            let (color, ink) = (row.color.cast_unsigned(), row.ink.cast_unsigned());
            let [left, top, right, bottom] = row.outline;
            let upper = bottom.min(top + OUTLINE);
            let lower = (bottom - OUTLINE).max(upper);
            paint([left, top, right, upper], &|_, _| color);
            paint([left, lower, right, bottom], &|_, _| color);
            paint([left, upper, right.min(left + OUTLINE), lower], &|_, _| color);
            paint([left.max(right - OUTLINE), upper, right, lower], &|_, _| color);
            let [x0, y0] = row.corner;
            let label = [x0, y0, x0 + row.strip[0] + 3 * SPACE + 4 * signed(self.cell), y0 + signed(self.height)];
            paint(label, &|x, y| inked(color, ink, self.coverage(&row, [x - x0, y - y0], strips)));
        }
    }

    /// An invocation draws four pixels. Rows are dropped for the 256 pixels of a workgroup at once, and then for four.
    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork {
        let [width, height] = self.size;
        let mut text = KernelText::new();
        text.read("pixels", "u32");
        text.read("rows", "vec4<i32>");
        text.read("strips", "u32");
        text.write("out", "u32");
        text.params(&["pixel_count", "width", "most", "height", "cell", "labels", "characters"], 0);
        text.push(MATH);
        text.push(&constants());
        text.push(include_str!("annotate.wgsl"));
        let words = [width * height, width, self.most, self.height, self.cell, self.labels, self.characters];
        let words = words.map(|number| number as u32);
        DeviceWork::one(Dispatch {
            key: OP.into(),
            shader: text.shader(OP.into(), 64),
            buffers: [Bound::Input(0), Bound::Input(1), Bound::Input(2), Bound::Output(0)].into_iter().collect(),
            launch: Launch::new(&words, (width * height).div_ceil(4 * 64) as u64, facts.most_groups),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::trial::{Given, both};
    use super::*;

    fn strips() -> LabelStrips {
        let widths = vec![9, 0, 14];
        let (height, cell) = (7, 3);
        let bytes = (widths.iter().sum::<usize>() + 11 * cell) * height;
        let coverage = (0..bytes).map(|at| (at * 37 % 256) as u8).collect();
        LabelStrips { height, cell, widths, coverage }
    }

    fn drawn(size: [usize; 2], what: Annotation, found: &[f32]) -> Vec<u32> {
        let pixels: Vec<i32> =
            (0..size[0] * size[1]).map(|at| (at as u32).wrapping_mul(0x9e37_79b9).cast_signed()).collect();
        let given = [Given::Integers(&pixels, &[size[1], size[0]]), Given::Floats(found, &[found.len()])];
        let made = both(&given, |net, ids| Ok(vec![net.annotated(ids[0], ids[1], what, &strips())?]));
        let [host, device] = made[0].sides();
        for (at, (host, device)) in host.iter().zip(device).enumerate() {
            assert_eq!(host, device, "{what:?} at {} {}: {host:08x}, {device:08x}", at % size[0], at / size[0]);
        }
        for (word, pixel) in host.iter().zip(&pixels) {
            assert_eq!(word >> 24, pixel.cast_unsigned() >> 24, "alpha stays");
        }
        host.to_vec()
    }

    #[test]
    fn boxes_have_an_outline_and_a_label_and_the_best_is_on_top() {
        let found = [
            1.0, 3.0, 10.2, 20.4, 40.6, 50.0, 0.974, 0.0, 5.0, 2.0, 60.0, 70.0, 0.5, 2.0, -9.0, 60.0, 30.0, 200.0,
            0.25, 9.0, 0.0, 0.0, 64.0, 64.0, 1.0, 0.0,
        ];
        let out = drawn([64, 80], Annotation::Boxes, &found);
        let at = |x: usize, y: usize| out[y * 64 + x] & 0xff_ffff;
        for (x, y) in [(10, 20), (11, 49), (40, 30), (25, 21)] {
            assert_eq!(at(x, y), COLORS[0], "{x} {y}");
        }
        assert_ne!(at(41, 30), COLORS[0]);
        assert_eq!(at(6, 60), COLORS[2], "the second box");
        assert_eq!((at(0, 60), at(28, 79)), (COLORS[1], COLORS[1]), "the third box leaves the picture");
        // The label of the first box is above it and begins with space.
        assert_eq!((at(10, 13), at(13, 19)), (COLORS[0], COLORS[0]));
        let coverage = u32::from(strips().coverage[9]);
        assert_eq!(at(14, 14), inked(COLORS[0], 0, coverage), "the first pixel of the label's second row");
    }

    #[test]
    fn classes_are_lines_and_missing_rows_are_not_drawn() {
        let out = drawn([70, 40], Annotation::Classes, &[2.0, 2.0, 0.0, 0.5, 7.0, 0.004, 0.0, 1.0]);
        let at = |x: usize, y: usize| out[y * 70 + x] & 0xff_ffff;
        assert_eq!((at(8, 8), at(8, 21)), (0, 0), "black grounds");
        let start = strips().characters();
        let five = u32::from(strips().coverage[start + 5 * 3 * 7]);
        assert_eq!(at(8 + 4 + 9 + 4 + 6, 8), inked(0, 0xff_ffff, five));
        for found in [&[0.0, 0.0][..], &[2.0, -1.0], &[2.0, f32::NAN, 1.0, 1.0], &[2.0, 9.0]] {
            let out = drawn([5, 4], Annotation::Classes, found);
            assert!(
                out.iter().enumerate().all(|(at, word)| *word == (at as u32).wrapping_mul(2_654_435_769)),
                "{found:?}"
            );
        }
    }

    #[test]
    fn rows_that_are_not_numbers_are_drawn_alike() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        drawn([20, 20], Annotation::Boxes, &[1.0, 2.0, nan, -inf, inf, 5.0, nan, nan, 3.0, 3.0, 1.0, 1.0, inf, -4.0]);
    }
}
