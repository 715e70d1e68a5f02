//! `compositor` equals images scaled one by one with `OpenCV`, and properties that hold for any sizes.
//! `data/compositor/README.md` describes the reference images.

use crate::golden::GoldenCase;
use crate::heads_made::{Made, source};
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use vramp_kernels::head::bilinear;
use vramp_kernels::head::compositor::{COMPOSITOR, Cell, CompositorLayout, MOST_PICTURES, cells, pack, small};
use vramp_kernels::pixel::table;
use vramp_kernels::{Level, Pixel};
use vramp_plan::Size;

const LAYOUTS: [(&str, CompositorLayout); 4] = [
    ("grid", CompositorLayout::Grid),
    ("row", CompositorLayout::Row),
    ("column", CompositorLayout::Column),
    ("pip", CompositorLayout::Pip),
];

fn made(layout: CompositorLayout, sizes: &[Size], size: Size) -> Made {
    let cells = cells(layout, sizes.len(), size);
    Made::of(&COMPOSITOR, size).words(&pack(&cells)).small(small(&cells, sizes, size)).pictures(sizes)
}

#[test]
fn every_layout_of_one_to_eight_pictures_equals_opencv_within_one_level() {
    let cases = GoldenCase::all("compositor");
    assert_eq!(cases.len(), 4 * 4 * MOST_PICTURES);
    for case in cases {
        let sizes: Vec<Size> = case.words.iter().map(|word| word.parse().expect("a size")).collect();
        let (_, layout) = LAYOUTS.iter().find(|(name, _)| *name == case.kernel).expect("there are four");
        case.assert_near(&made(*layout, &sizes, case.size).whole(), 1, "");
    }
}

#[test]
fn the_cells_of_a_few_layouts_are_these() {
    let shown = |layout: CompositorLayout, count: usize, width: u32, height: u32| {
        let show = |cell: Cell| format!("{},{} {}x{}", cell.left, cell.top, cell.width, cell.height);
        cells(layout, count, Size { width, height }).into_iter().map(show).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(shown(CompositorLayout::Grid, 1, 5, 3), "0,0 5x3");
    assert_eq!(shown(CompositorLayout::Grid, 2, 5, 3), "0,0 3x3; 3,0 2x3");
    assert_eq!(shown(CompositorLayout::Grid, 3, 5, 3), "0,0 3x2; 3,0 2x2; 0,2 3x1");
    assert_eq!(shown(CompositorLayout::Row, 3, 10, 4), "0,0 3x4; 3,0 4x4; 7,0 3x4");
    assert_eq!(shown(CompositorLayout::Column, 2, 10, 4), "0,0 10x2; 0,2 10x2");
    assert_eq!(shown(CompositorLayout::Pip, 3, 80, 40), "0,0 80x40; 60,30 20x10; 40,30 20x10");
    assert_eq!(shown(CompositorLayout::Pip, 6, 8, 8).split("; ").skip(4).collect::<Vec<_>>(), ["0,6 2x2", "6,4 2x2"]);
    assert_eq!(shown(CompositorLayout::Row, 3, 1, 1), "0,0 0x1; 0,0 1x1; 1,0 0x1");
    assert_eq!(shown(CompositorLayout::Pip, 3, 1, 1), "0,0 1x1; 0,0 1x1; 0,0 0x0");
}

fn size() -> impl Strategy<Value = Size> {
    (1..40u32, 1..40u32).prop_map(|(width, height)| Size { width, height })
}

fn layout() -> impl Strategy<Value = CompositorLayout> {
    (0..4usize).prop_map(|at| LAYOUTS[at].1)
}

/// Images of any size, and images that need no positions: as large as their cell, and twice as large.
fn pictures() -> impl Strategy<Value = (CompositorLayout, Size, Vec<Size>)> {
    let scales = prop_oneof![0..1u32, 1..3u32];
    let each = proptest::collection::vec((size(), scales), 1..=MOST_PICTURES);
    (layout(), prop_oneof![size(), (60..150u32, 1..9u32).prop_map(|(width, height)| Size { width, height })], each)
        .prop_map(|(layout, size, each)| {
            let cells = cells(layout, each.len(), size);
            let fitted = each.iter().zip(cells).map(|((any, times), cell)| match times {
                times if *times > 0 && cell.width.min(cell.height) > 0 => {
                    Size { width: times * cell.width, height: times * cell.height }
                }
                _ => *any,
            });
            (layout, size, fitted.collect())
        })
}

proptest! {
    #[test]
    fn every_cell_is_what_bilinear_makes_of_its_picture((layout, size, sizes) in pictures()) {
        let mut expected = vec![[0, 0, 0, 255]; size.pixels() as usize];
        for (cell, from) in cells(layout, sizes.len(), size).iter().zip(&sizes) {
            if cell.width.min(cell.height) == 0 {
                continue;
            }
            let to = Size { width: cell.width, height: cell.height };
            let scaled = Made::of(&bilinear::BILINEAR, to).small(bilinear::small(*from, to)).pictures(&[*from]).whole();
            for (row, y) in scaled.chunks(to.width as usize).zip(cell.top..) {
                expected[(y * size.width + cell.left) as usize..][..row.len()].copy_from_slice(row);
            }
        }
        prop_assert_eq!(made(layout, &sizes, size).whole(), expected);
    }

    #[test]
    fn bands_and_levels_change_nothing(
        (layout, size, sizes) in pictures(), heights in proptest::collection::vec(1..12u32, 1..6),
    ) {
        let made = made(layout, &sizes, size);
        let plain = made.clone().at(Level::BASELINE).whole();
        for level in Level::available() {
            prop_assert_eq!(&made.clone().at(level).bands(&heights), &plain, "{}", level);
        }
    }

    #[test]
    fn a_function_before_a_single_image_sees_all_of_it(
        layout in layout(), size in size(), from in size(), double in any::<bool>(),
    ) {
        let from = if double { Size { width: 2 * size.width, height: 2 * size.height } } else { from };
        let curve: [u8; 256] = std::array::from_fn(|v| (v as u8).wrapping_mul(29));
        let changed: Vec<Pixel> = source(from).iter().map(|[r, g, b, a]| {
            let [r, g, b] = [r, g, b].map(|v| curve[usize::from(*v)]);
            [r, g, b, *a]
        }).collect();
        let made = made(layout, &[from], size);
        let first = made.clone().before_head(&table::TABLE, &table::pack(&curve)).whole();
        prop_assert_eq!(first, made.source(from, changed).whole());
    }

    #[test]
    fn a_grid_a_row_and_a_column_cover_each_pixel_at_most_once(layout in 0..3usize, count in 1..=MOST_PICTURES, size in size()) {
        let mut covered = vec![0; size.pixels() as usize];
        for cell in cells(LAYOUTS[layout].1, count, size) {
            for y in cell.top..cell.top + cell.height {
                for x in cell.left..cell.left + cell.width {
                    covered[(y * size.width + x) as usize] += 1;
                }
            }
        }
        let full = layout > 0 || [1, 2, 4, 6].contains(&count);
        prop_assert!(!full || covered.iter().all(|times| *times == 1));
        prop_assert_eq!(covered.iter().max(), Some(&1));
    }

    #[test]
    fn halving_is_the_mean_of_four(size in (1..150u32, 1..9u32).prop_map(|(width, height)| Size { width, height })) {
        let from = Size { width: 2 * size.width, height: 2 * size.height };
        let pixels = source(from);
        let at = |x: u32, y: u32, c: usize| u32::from(pixels[(y * from.width + x) as usize][c]);
        let places = (0..size.height).flat_map(|y| (0..size.width).map(move |x| (2 * x, 2 * y)));
        let expected: Vec<Pixel> = places.map(|(x, y)| std::array::from_fn(|c| {
            ((at(x, y, c) + at(x + 1, y, c) + at(x, y + 1, c) + at(x + 1, y + 1, c) + 2) / 4) as u8
        })).collect();
        let made = Made::of(&bilinear::BILINEAR, size).small(bilinear::small(from, size)).pictures(&[from]);
        for level in Level::available() {
            prop_assert_eq!(&made.clone().at(level).whole(), &expected);
        }
    }
}
