//! `compositor`: several images in one, each scaled into its own cell by `bilinear`.
//!
//! Later cells replace the pixels of earlier cells, including their alpha. Pixels outside of cells are opaque black. A
//! row is computed only from the cells that cross it.

use vramp_plan::Size;

use crate::head::bilinear::{Scaled, axis};
use crate::head::{BandState, Head, HeadArgs, SourceRows};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};

/// Parameter: the offset of the columns' bits in the small data. Small data: the words of each cell, then one word for
/// each column and for each row of the output, with a bit for each cell that crosses the column or row, then source
/// positions for the columns and rows of each cell. The words of a cell are its left, top, width and height, the width
/// and height of its image, and two offsets: the offset of the cell's column positions minus the cell's left, and the
/// offset of the cell's row positions minus the cell's top.
pub static COMPOSITOR: Head = Head {
    name: "compositor",
    wgsl: include_str!("compositor.wgsl"),
    words: 1,
    small: true,
    row,
    samples: Some(samples),
    ..Head::PLAIN
};

/// The maximum number of images that a head reads.
pub const MOST_PICTURES: usize = 8;
/// The colour outside of cells.
const UNCOVERED: Pixel = [0, 0, 0, 255];
/// Words of small data per cell, without its positions.
const CELL_WORDS: usize = 8;

/// The arrangement of the images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompositorLayout {
    /// Cells of equal size, row by row from the left. There are as many columns as rows, or one column more.
    Grid,
    /// Side by side.
    Row,
    /// One below the other.
    Column,
    /// The first image fills the output. The other images are drawn over the first, a quarter as wide and as high as
    /// the output, from the lower right corner to the left, four in a row, then in the row above.
    Pip,
}

/// A rectangle of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    pub left: u32,
    pub top: u32,
    /// May be 0.
    pub width: u32,
    /// May be 0.
    pub height: u32,
}

/// The cells of `count` images in an output of this size. All cells are within the output.
pub fn cells(layout: CompositorLayout, count: usize, size: Size) -> Vec<Cell> {
    let count = count.clamp(1, MOST_PICTURES) as u32;
    let columns = match layout {
        CompositorLayout::Grid => (1..=count).find(|n| n * n >= count).unwrap_or(count),
        CompositorLayout::Row => count,
        CompositorLayout::Column => 1,
        CompositorLayout::Pip => return (0..count).map(|number| pip(number, size)).collect(),
    };
    let rows = count.div_ceil(columns);
    let edge = |at: u32, side: u32, of: u32| {
        ((2 * u64::from(at) * u64::from(side) + u64::from(of)) / (2 * u64::from(of))) as u32
    };
    let between = |at: u32, side: u32, of: u32| (edge(at, side, of), edge(at + 1, side, of) - edge(at, side, of));
    let cell = |number: u32| {
        let (left, width) = between(number % columns, size.width, columns);
        let (top, height) = between(number / columns, size.height, rows);
        Cell { left, top, width, height }
    };
    (0..count).map(cell).collect()
}

fn pip(number: u32, size: Size) -> Cell {
    let Some(small) = number.checked_sub(1) else {
        return Cell { left: 0, top: 0, width: size.width, height: size.height };
    };
    let (width, height) = ((size.width / 4).max(1), (size.height / 4).max(1));
    let in_a_row = (size.width / width).min(4);
    let (left, top) = ((small % in_a_row + 1) * width, (small / in_a_row + 1) * height);
    match size.height.checked_sub(top) {
        Some(top) => Cell { left: size.width - left, top, width, height },
        // An output of a few pixels has no room for the cell.
        None => Cell { left: 0, top: 0, width: 0, height: 0 },
    }
}

/// The parameter words for these cells.
pub fn pack(cells: &[Cell]) -> [u32; 1] {
    [(CELL_WORDS * cells.len()) as u32]
}

/// The maximum bytes of small data for an output of this size, for cells that are no larger than the output.
pub fn most_small_bytes(size: Size) -> u64 {
    let sides = u64::from(size.width) + u64::from(size.height);
    let most = MOST_PICTURES as u64;
    4 * (most * CELL_WORDS as u64 + (1 + most) * sides)
}

/// The small data for images of these sizes in these cells of an output of this size.
pub fn small(cells: &[Cell], pictures: &[Size], size: Size) -> Vec<u32> {
    let mut words = vec![0; CELL_WORDS * cells.len()];
    let bits = |crosses: &dyn Fn(&Cell) -> bool| {
        cells.iter().zip(0..).fold(0, |bits, (cell, number)| bits | u32::from(crosses(cell)) << number)
    };
    words.extend((0..size.width).map(|x| bits(&|cell| (cell.left..cell.left + cell.width).contains(&x))));
    words.extend((0..size.height).map(|y| bits(&|cell| (cell.top..cell.top + cell.height).contains(&y))));
    for (number, (cell, picture)) in cells.iter().zip(pictures).enumerate() {
        // The positions follow a word for each column and row of the output, so neither offset is negative.
        let columns = words.len() as u32 - cell.left;
        words.extend(axis(picture.width, cell.width));
        let rows = words.len() as u32 - cell.top;
        words.extend(axis(picture.height, cell.height));
        let cell_words = [cell.left, cell.top, cell.width, cell.height, picture.width, picture.height, columns, rows];
        words[CELL_WORDS * number..][..CELL_WORDS].copy_from_slice(&cell_words);
    }
    words
}

/// `kept.sums` and `kept.wide` hold what the cells keep from row to row, one cell after another.
fn row(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, kept: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    let small = args.frame.small;
    let words_of_cells = small[..args.frame.words[0] as usize].as_chunks::<CELL_WORDS>().0;
    let cells = || words_of_cells.iter().take(MOST_PICTURES);
    let crosses = |cell: &[u32; CELL_WORDS]| (cell[1]..cell[1] + cell[3]).contains(&y);
    // The cells that cross a row are listed from left to right. In the layout `Pip`, they are listed from right to
    // left, after the first cell, which covers the whole row.
    let covered = cells()
        .filter(|cell| crosses(cell))
        .fold(0, |covered, cell| if cell[0] <= covered { covered.max(cell[0] + cell[2]) } else { covered });
    pixels[covered as usize..].fill(UNCOVERED);
    let (mut sums_at, mut words_at) = (0, 0);
    for (number, cell) in cells().enumerate() {
        let [left, top, width, height, from_width, from_height, columns, rows] = *cell;
        let scaled = Scaled {
            number,
            from: Size { width: from_width, height: from_height },
            to: Size { width, height },
            columns: &small[(columns + left) as usize..][..width as usize],
            rows: &small[(rows + top) as usize..][..height as usize],
        };
        let (sums_next, words_next) = (sums_at + scaled.kept_sums(), words_at + scaled.kept_words());
        if kept.sums.len() < sums_next {
            kept.sums.resize(sums_next, 0);
        }
        if kept.wide.len() < words_next {
            kept.wide.resize(words_next, 0);
        }
        if crosses(cell) && width > 0 {
            let (sums, words) = (&mut kept.sums[sums_at..sums_next], &mut kept.wide[words_at..words_next]);
            let pixels = &mut pixels[left as usize..][..width as usize];
            scaled.row(args.frame.level, source, (&mut kept.rows_of[number], sums, words), y - top, pixels);
        }
        (sums_at, words_at) = (sums_next, words_next);
    }
}

/// One, two, three and a random number of images, in a random layout.
fn samples(chance: &mut Chance, source: Size) -> Vec<KernelSample> {
    let drawn = [0, 1, 2, chance.below(MOST_PICTURES as u32)].map(|others| {
        let size = chance.size();
        let pictures: Vec<Size> = (0..others).map(|_| chance.size()).collect();
        let layout = chance.one_of(&[
            CompositorLayout::Grid,
            CompositorLayout::Row,
            CompositorLayout::Column,
            CompositorLayout::Pip,
        ]);
        let cells = cells(layout, 1 + pictures.len(), size);
        let small = small(&cells, &[&[source][..], &pictures].concat(), size);
        KernelSample::new(size, &pack(&cells)).small(small).pictures(pictures)
    });
    drawn.to_vec()
}
