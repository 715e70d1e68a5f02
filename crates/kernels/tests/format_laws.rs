//! Properties of formats for any size and matrix: every level equals the integer definition to the bit, bands join
//! without a seam, and functions in between see pixels.

use crate::format_made::{Converted, OTHERS, bare, made_up};
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};
use vramp_kernels::Level;
use vramp_kernels::head::flip;
use vramp_kernels::pixel::{markers, table};
use vramp_kernels::stored::{Way, of};
use vramp_plan::{Format, Siting, Size};

/// Single pixels, and rows of several vectors.
fn size() -> impl Strategy<Value = Size> {
    let width = prop_oneof![1..20u32, 60..70u32, 120..200u32];
    (width, 1..12u32).prop_map(|(width, height)| Size { width, height })
}

fn format() -> impl Strategy<Value = Format> {
    (0..OTHERS.len()).prop_map(|at| OTHERS[at])
}

fn way() -> impl Strategy<Value = Way> {
    sited_way().prop_map(|(way, _)| way)
}

fn sited_way() -> impl Strategy<Value = (Way, Siting)> {
    (any::<bool>(), any::<bool>(), 0..3usize)
        .prop_map(|(bt709, full, at)| (Way::new(bt709, full).sited(Siting::ALL[at]), Siting::ALL[at]))
}

/// The position of chroma in half luma samples from the first sample that it covers: horizontally, and vertically for u
/// or v.
fn places(format: Format, siting: Siting, which: usize) -> (i32, i32) {
    match (siting, which) {
        _ if !matches!(format, Format::I420 | Format::Nv12) => (1, 1),
        (Siting::Centre, _) => (1, 1),
        (Siting::Left, _) => (0, 1),
        (Siting::Alternate, 0) => (0, 2),
        (Siting::Alternate, _) => (0, 0),
    }
}

/// The two chroma samples around a luma sample with their weights in quarters, the one that covers it first.
fn taps_up(at: i32, covers: i32, count: i32, place: i32) -> [(i32, i32); 2] {
    if covers == 1 {
        return [(at, 4), (at, 0)];
    }
    let near = at / 2;
    let far = if at % 2 == 0 { near - 1 } else { near + 1 }.clamp(0, (count + 1) / 2 - 1);
    // Chroma samples are four half luma samples apart.
    let distance = (2 * at - (4 * near + place)).abs();
    [(near, 4 - distance), (far, distance)]
}

/// The luma samples of a chroma mean with their weights in quarters: those around its position, two lengths in all.
fn taps_down(k: i32, covers: i32, count: i32, place: i32) -> Vec<(i32, i32)> {
    if covers == 1 {
        return vec![(k, 4)];
    }
    let whole = |at: i32| at.clamp(0, count - 1);
    match place {
        1 => vec![(2 * k, 2), (whole(2 * k + 1), 2)],
        _ => {
            let on = 2 * k + place / 2;
            vec![(whole(on - 1), 1), (whole(on), 2), (whole(on + 1), 1)]
        }
    }
}

fn heights() -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(1..7u32, 1..5)
}

/// A byte of a plane.
fn at(format: Format, size: Size, frame: &[u8], plane: usize, x: i32, y: i32) -> i32 {
    let plane = format.planes(size).nth(plane).expect("the plane is there");
    i32::from(frame[plane.start as usize + y as usize * plane.stride as usize + x as usize])
}

/// Pixels per chroma sample of a format, horizontally and vertically.
fn covers(format: Format) -> (i32, i32) {
    match format {
        Format::I420 | Format::Nv12 => (2, 2),
        Format::I422 => (2, 1),
        _ => (1, 1),
    }
}

fn chroma(format: Format, size: Size, frame: &[u8], which: usize, x: i32, y: i32) -> i32 {
    match format {
        Format::Nv12 => at(format, size, frame, 1, 2 * x + i32::try_from(which).expect("0 or 1"), y),
        _ => at(format, size, frame, 1 + which, x, y),
    }
}

/// The pixels of a frame by the definition, one by one.
fn pixels_by_definition(format: Format, size: Size, frame: &[u8], (way, siting): (Way, Siting)) -> Vec<u8> {
    let words = of(format).expect("another format").load_words(way, size).map(u32::cast_signed);
    let (w, h) = (size.width.cast_signed(), size.height.cast_signed());
    let mut made = Vec::new();
    for (y, x) in (0..h).flat_map(|y| (0..w).map(move |x| (y, x))) {
        if format == Format::Rgb8 {
            made.extend((0..3).map(|c| at(format, size, frame, 0, 3 * x + c, y) as u8).chain([255]));
            continue;
        }
        let [u, v] = [0, 1].map(|which| {
            let ((across, down), (left, top)) = (covers(format), places(format, siting, which));
            let level = |x, y| if format == Format::Gray8 { 128 } else { chroma(format, size, frame, which, x, y) };
            let rows = taps_up(y, down, h, top);
            let columns = taps_up(x, across, w, left);
            let row = |y: i32| columns.iter().map(|(x, quarters)| quarters * level(*x, y)).sum::<i32>();
            let sixteenths: i32 = rows.iter().map(|(y, quarters)| quarters * row(*y)).sum();
            (sixteenths << 4) - 32768
        });
        let times = |a: i32, b: i32| (a * b) >> 16;
        let luma = times((at(format, size, frame, 0, x, y) - words[1]) << 7, words[2]) + 17;
        let levels =
            [luma + times(v, words[3]), luma + times(u, words[4]) + times(v, words[5]), luma + times(u, words[6])];
        made.extend(levels.map(|level| (level >> 5).clamp(0, 255) as u8).into_iter().chain([255]));
    }
    made
}

/// A frame stored by the definition, byte by byte, without padding.
fn stored_by_definition(format: Format, size: Size, pixels: &[u8], (way, siting): (Way, Siting)) -> Vec<u8> {
    let words = of(format).expect("another format").store_words(way, size).map(u32::cast_signed);
    let (w, h) = (size.width.cast_signed(), size.height.cast_signed());
    let pixel = |x: i32, y: i32, c: i32| i32::from(pixels[(4 * (y * w + x) + c) as usize]);
    let mut made = Vec::new();
    let grid = |w: i32, h: i32| (0..h).flat_map(move |y| (0..w).map(move |x| (x, y)));
    if format == Format::Rgb8 {
        return grid(w, h).flat_map(|(x, y)| [0, 1, 2].map(|c| pixel(x, y, c) as u8)).collect();
    }
    made.extend(grid(w, h).map(|(x, y)| {
        let sum: i32 = (0..3).map(|c| pixel(x, y, c) * words[2 + c as usize]).sum();
        ((sum + (words[1] << 15) + (1 << 14)) >> 15) as u8
    }));
    if format == Format::Gray8 {
        return made;
    }
    let (across, down) = covers(format);
    let (cw, ch) = ((w + across - 1) / across, (h + down - 1) / down);
    let level = |which: usize, x: i32, y: i32| {
        let (left, top) = places(format, siting, which);
        let weighed = |x: i32, y: i32| (0..3).map(|c| pixel(x, y, c) * words[5 + 3 * which + c as usize]).sum::<i32>();
        let columns = taps_down(x, across, w, left);
        let row = |y: i32| columns.iter().map(|(x, quarters)| quarters * weighed(*x, y)).sum::<i32>();
        let sum: i32 = taps_down(y, down, h, top).iter().map(|(y, quarters)| quarters * row(*y)).sum();
        ((sum + (128 << 19) + (1 << 18)) >> 19).clamp(0, 255) as u8
    };
    if format == Format::Nv12 {
        made.extend(grid(cw, ch).flat_map(|(x, y)| [level(0, x, y), level(1, x, y)]));
    } else {
        made.extend(
            [0, 1]
                .into_iter()
                .flat_map(|which| grid(cw, ch).map(move |(x, y)| (which, x, y)))
                .map(|(which, x, y)| level(which, x, y)),
        );
    }
    made
}

proptest! {
    #[test]
    fn to_pixels_every_level_is_the_definition_to_the_bit(
        format in format(), size in size(), way in sited_way(), seed in 0..1000u64, heights in heights(),
    ) {
        let frame = made_up(format, size, seed);
        let expected = pixels_by_definition(format, size, &frame, way);
        let made = Converted::new(format, Format::Rgba8, size, way.0, frame);
        for level in Level::available() {
            prop_assert_eq!(&Converted { level, ..made.clone() }.bands(&heights), &expected, "{} {}", format, level);
        }
    }

    #[test]
    fn from_pixels_every_level_is_the_definition_to_the_bit(
        format in format(), size in size(), way in sited_way(), seed in 0..1000u64, heights in heights(),
    ) {
        let frame = made_up(Format::Rgba8, size, seed);
        let expected = stored_by_definition(format, size, &frame, way);
        let made = Converted::new(Format::Rgba8, format, size, way.0, frame);
        let first = made.whole();
        for level in Level::available() {
            let made = Converted { level, ..made.clone() }.bands(&heights);
            prop_assert_eq!(&bare(format, size, &made), &expected, "{} {}", format, level);
            prop_assert_eq!(&made, &first, "what fills rows up is the same: {} {}", format, level);
        }
    }

    #[test]
    fn what_fills_rows_up_is_zero(format in format(), size in size(), seed in 0..1000u64) {
        let made = Converted::new(Format::Rgba8, format, size, Way::ALL[0], made_up(Format::Rgba8, size, seed)).whole();
        for plane in format.planes(size) {
            for row in 0..plane.rows {
                let start = (plane.start + row * plane.stride) as usize;
                let filling = &made[start + plane.row_bytes as usize..start + plane.stride as usize];
                prop_assert_eq!(filling, &[0, 0, 0][..filling.len()]);
            }
        }
    }

    #[test]
    fn two_formats_at_once_are_one_after_the_other_with_functions_in_between(
        from in format(), into in format(), size in size(), ways in (way(), way()), heights in heights(),
        flipped in prop_oneof![Just(None), (any::<bool>(), any::<bool>()).prop_map(Some)],
    ) {
        let frame = made_up(from, size, 3);
        let inverted = (&table::TABLE, table::pack(&std::array::from_fn(|v| 255 - v as u8)).to_vec());
        let marked = (&markers::MARKERS, markers::pack(5, 77).to_vec());
        let mut made = Converted::new(from, into, size, ways.0, frame.clone());
        made.ways[1] = ways.1;
        if let Some((left_right, top_bottom)) = flipped {
            made.head = (&flip::FLIP, flip::pack(left_right, top_bottom).to_vec());
        }
        made.before = vec![inverted.clone()];
        made.after = vec![marked.clone()];
        let pixels = Converted::new(from, Format::Rgba8, size, ways.0, frame).whole();
        let changed = Converted { before: vec![inverted], after: vec![marked], head: made.head.clone(),
            ..Converted::new(Format::Rgba8, Format::Rgba8, size, ways.0, pixels) }.whole();
        let expected = Converted::new(Format::Rgba8, into, size, ways.1, changed).whole();
        prop_assert_eq!(made.bands(&heights), expected);
    }
}
