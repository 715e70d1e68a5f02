//! `luma`: the mean brightness of every column, as a curve over the darkened lower quarter of the image.
//!
//! Brightness is the grey value of `gray`, and its mean is rounded half up. The curve covers two rows in each column.
//! Above the darkened quarter, pixels that the curve does not cover stay unchanged. In images of less than four rows
//! nothing is darkened, and the curve covers the last row or two.

use vramp_plan::Size;
use vramp_plan::catalog::IntermediateExtent;

use crate::head::{BandState, First, Head, HeadArgs, SourceRows, Survey};
use crate::picture::Pixel;
use crate::pixel::gray::gray;
use crate::sample::{Chance, KernelSample};
use crate::simd::Loop;

/// No parameters, no small data.
pub static LUMA: Head = Head {
    name: "luma",
    wgsl: include_str!("luma.wgsl"),
    first: Some(First {
        over: IntermediateExtent::Columns,
        source_again: true,
        survey: Some(Survey { add, finish, edit }),
    }),
    row,
    samples: Some(samples),
    ..Head::PLAIN
};

const GREEN: Pixel = [0, 255, 0, 255];

/// The parameter words: none.
pub fn pack() -> [u32; 0] {
    []
}

fn add(args: &HeadArgs<'_>, row: &[Pixel], sums: &mut [u32]) {
    args.frame.level.run(Add { row, sums });
}

/// Turns the sum of each column into the last row that the curve covers in the column. For an image of h rows, this is
/// row h - 1 - mean (h div 4 - 1) / 255, where the quotient is rounded half up.
fn finish(args: &HeadArgs<'_>, sums: &mut [u32]) {
    let height = args.source.height;
    for sum in sums {
        let mean = (2 * *sum + height) / (2 * height);
        // Computes the quotient plus one, which is never negative, although h div 4 - 1 is -1 for less than four rows.
        let up = (2 * mean * (height / 4) + 765 - 2 * mean) / 510;
        *sum = height - up;
    }
}

fn edit(args: &HeadArgs<'_>, y: u32, row: &mut [Pixel]) {
    let quarter = args.source.height / 4;
    if y + quarter + 2 >= args.source.height {
        let darker = y + quarter >= args.source.height;
        args.frame.level.run(Edit { row, ends: args.found, y, darker });
    }
}

fn row(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, _: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    source.copy(y, pixels);
    edit(args, y, pixels);
}

/// Adds the brightness of a row.
struct Add<'a> {
    row: &'a [Pixel],
    sums: &'a mut [u32],
}

impl Loop for Add<'_> {
    #[inline(always)]
    fn run(self) {
        for (pixel, sum) in self.row.iter().zip(self.sums) {
            *sum += gray(u32::from_le_bytes(*pixel));
        }
    }
}

/// Darkens a row if `darker`, and draws the part of the curve that is in the row.
struct Edit<'a> {
    row: &'a mut [Pixel],
    ends: &'a [u32],
    y: u32,
    darker: bool,
}

impl Loop for Edit<'_> {
    #[inline(always)]
    fn run(self) {
        let green = u32::from_le_bytes(GREEN);
        let (shift, mask) = if self.darker { (1, 0x007f_7f7f) } else { (0, 0x00ff_ffff) };
        for (pixel, end) in self.row.iter_mut().zip(self.ends) {
            let word = u32::from_le_bytes(*pixel);
            let darker = ((word >> shift) & mask) | (word & 0xff00_0000);
            *pixel = if end.wrapping_sub(self.y) <= 1 { green } else { darker }.to_le_bytes();
        }
    }
}

fn samples(_: &mut Chance, source: Size) -> Vec<KernelSample> {
    vec![KernelSample::new(source, &pack())]
}
