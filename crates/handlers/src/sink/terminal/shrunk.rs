//! A frame scaled to the size of a terminal, in which one character holds two pixels.
//!
//! Each pixel is the mean of a few samples, so the cost depends on the window and not on the frame. Proportions are
//! kept to within half a pixel. Transparent pixels appear black. Frames of equal size reuse memory.

use vramp_plan::Size;

/// Maximum number of samples of a pixel along each axis. The mean of sixteen samples flickers no more than the mean of
/// all pixels of the frame in that place. Scaling takes 0.1 ms, which is less than a pass over the whole frame. Frames
/// that are not drawn are scaled too.
const MOST_SAMPLES: u32 = 4;

#[derive(Default)]
pub(super) struct Shrunk {
    size: Option<Size>,
    pixels: Vec<[u8; 3]>,
    /// The frame size and the window that the samples were computed for.
    made_for: Option<(Size, Size)>,
    /// Columns and rows of the samples. All pixels have the same number of sample columns and the same number of sample
    /// rows.
    columns: Vec<usize>,
    rows: Vec<usize>,
}

impl Shrunk {
    /// Scales an rgba8 frame for a window, given in characters.
    pub(super) fn take(&mut self, frame: &[u8], size: Size, window: Size) {
        let fitted = fit(size, window);
        if self.made_for != Some((size, fitted)) {
            self.made_for = Some((size, fitted));
            self.size = Some(fitted);
            samples(size.width, fitted.width, &mut self.columns);
            samples(size.height, fitted.height, &mut self.rows);
        }
        let each = |places: &[usize], pixels: u32| places.len() / pixels as usize;
        let (across, down) = (each(&self.columns, fitted.width), each(&self.rows, fitted.height));
        let stride = size.width as usize * 4;
        self.pixels.clear();
        for rows in self.rows.chunks_exact(down) {
            for columns in self.columns.chunks_exact(across) {
                let mut sums = [0_u32; 3];
                for row in rows {
                    for column in columns {
                        let at = row * stride + column * 4;
                        let [r, g, b, alpha] = [0, 1, 2, 3].map(|part| u32::from(frame[at + part]));
                        sums = [sums[0] + r * alpha, sums[1] + g * alpha, sums[2] + b * alpha];
                    }
                }
                let all = (across * down) as u32 * 255;
                self.pixels.push(sums.map(|sum| ((sum + all / 2) / all) as u8));
            }
        }
    }

    /// The size in pixels; `None` before the first frame.
    pub(super) fn size(&self) -> Option<Size> {
        self.size
    }

    /// The pixels of a row; `None` below the last row.
    pub(super) fn row(&self, row: u32) -> Option<&[[u8; 3]]> {
        let size = self.size.filter(|size| row < size.height)?;
        let start = (row * size.width) as usize;
        self.pixels.get(start..start + size.width as usize)
    }
}

/// The size in pixels to which a frame is scaled for a window. One line is left for the cursor.
fn fit(frame: Size, window: Size) -> Size {
    let (width, height) = (u64::from(frame.width.max(1)), u64::from(frame.height.max(1)));
    let most_wide = u64::from(window.width.max(1));
    let most_high = 2 * u64::from(window.height.saturating_sub(1).max(1));
    let rounded = |product: u64, by: u64| ((product + by / 2) / by).max(1);
    let (wide, high) = if width * most_high <= height * most_wide {
        (rounded(width * most_high, height).min(most_wide), most_high)
    } else {
        (most_wide, rounded(height * most_wide, width).min(most_high))
    };
    Size { width: wide as u32, height: high as u32 }
}

/// The sample positions for `to` pixels in a line of `from` pixels. The line is divided into equal parts, one per
/// sample, and each position is in the middle of its part.
fn samples(from: u32, to: u32, places: &mut Vec<usize>) {
    let count = to * from.div_ceil(to).min(MOST_SAMPLES);
    let place = |at: u32| ((2 * u64::from(at) + 1) * u64::from(from) / (2 * u64::from(count))) as usize;
    places.clear();
    places.extend((0..count).map(place));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(width: u32, height: u32) -> Size {
        Size { width, height }
    }

    #[test]
    fn a_frame_fits_and_keeps_its_proportions() {
        assert_eq!(fit(size(160, 90), size(80, 24)), size(80, 45));
        assert_eq!(fit(size(1920, 1080), size(80, 24)), size(80, 45));
        assert_eq!(fit(size(90, 160), size(80, 24)), size(26, 46));
        assert_eq!(fit(size(8, 8), size(80, 24)), size(46, 46));
        assert_eq!(fit(size(1, 1), size(1, 1)), size(1, 1));
        assert_eq!(fit(size(10_000, 1), size(80, 24)), size(80, 1));
        assert_eq!(fit(size(1, 10_000), size(80, 24)), size(1, 46));
        for (w, h) in [(1, 1), (7, 5), (333, 7), (640, 480), (65_536, 3)] {
            for (columns, lines) in [(1, 1), (20, 5), (80, 24), (237, 61)] {
                let fitted = fit(size(w, h), size(columns, lines));
                assert!(fitted.width <= columns && fitted.height <= 2 * (lines - 1).max(1), "{w}x{h}: {fitted}");
                assert!(fitted.width == columns || fitted.height == 2 * (lines - 1).max(1), "{w}x{h}: {fitted}");
            }
        }
    }

    #[test]
    fn pixels_are_means_of_what_is_below_them() {
        let mut small = Shrunk::default();
        // Four by four pixels with one colour in each quarter, for a window of two characters in one line.
        let colours = [[10, 20, 30, 255], [40, 50, 60, 255], [200, 100, 0, 128], [9, 9, 9, 0]];
        let frame: Vec<u8> = (0..16).flat_map(|at| colours[at / 8 * 2 + at % 4 / 2]).collect();
        small.take(&frame, size(4, 4), size(2, 2));
        assert_eq!(small.size(), Some(size(2, 2)));
        assert_eq!(small.row(0), Some(&[[10, 20, 30], [40, 50, 60]][..]));
        assert_eq!(small.row(1), Some(&[[100, 50, 0], [0, 0, 0]][..]));
        assert_eq!(small.row(2), None);
        // The mean of black and white halves is grey.
        let stripes: Vec<u8> =
            (0..64).flat_map(|at| [if at % 2 == 0 { 0 } else { 255 }; 3].into_iter().chain([255])).collect();
        small.take(&stripes, size(8, 8), size(2, 2));
        assert_eq!(small.row(0), Some(&[[128; 3]; 2][..]));
    }

    #[test]
    fn small_frames_are_made_larger_without_mixing_their_pixels() {
        let mut large = Shrunk::default();
        large.take(&[255, 0, 0, 255, 0, 0, 255, 255], size(2, 1), size(10, 24));
        assert_eq!(large.size(), Some(size(10, 5)));
        for row in 0..5 {
            let pixels = large.row(row).unwrap();
            assert!(pixels[..5].iter().all(|pixel| *pixel == [255, 0, 0]), "{pixels:?}");
            assert!(pixels[5..].iter().all(|pixel| *pixel == [0, 0, 255]), "{pixels:?}");
        }
    }

    #[test]
    fn samples_are_in_the_frame_and_ascend() {
        for (from, to) in [(1, 80), (79, 80), (80, 80), (81, 80), (1920, 80), (65_536, 1)] {
            let mut places = Vec::new();
            samples(from, to, &mut places);
            assert!(places.is_sorted() && places.iter().all(|at| *at < from as usize), "{from} to {to}");
            assert_eq!(places.len() % to as usize, 0);
        }
    }
}
