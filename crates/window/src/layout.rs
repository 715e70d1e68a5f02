//! Where pictures are in a window.

use vramp_gpu::Region;
use vramp_plan::Size;

/// The largest region with the proportions of `picture` in the middle of `window`. A window of the picture's size is
/// filled exactly. Neither size may be 0.
pub(crate) fn fitted(picture: Size, window: Size) -> Region {
    let (pw, ph) = (u64::from(picture.width), u64::from(picture.height));
    let (ww, wh) = (u64::from(window.width), u64::from(window.height));
    let scaled = |side: u64, to: u64, from: u64| ((side * to + from / 2) / from).max(1);
    let (width, height) = if ww * ph <= wh * pw { (ww, scaled(ph, ww, pw)) } else { (scaled(pw, wh, ph), wh) };
    let (width, height) = (width.min(ww) as u32, height.min(wh) as u32);
    Region { x: (window.width - width) / 2, y: (window.height - height) / 2, size: Size { width, height } }
}

/// The size of a new window: that of the picture, or smaller with the same proportions if the screen is smaller.
pub(crate) fn opened(picture: Size, screen: Option<Size>) -> Size {
    let visible = |size: &Size| size.width > 0 && size.height > 0;
    match screen.filter(visible) {
        Some(screen) if picture.width > screen.width || picture.height > screen.height => fitted(picture, screen).size,
        _ => picture,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(width: u32, height: u32) -> Size {
        Size { width, height }
    }

    #[test]
    fn a_picture_keeps_its_proportions_in_the_middle() {
        let region = |x, y, width, height| Region { x, y, size: size(width, height) };
        assert_eq!(fitted(size(320, 240), size(320, 240)), region(0, 0, 320, 240));
        assert_eq!(fitted(size(320, 240), size(640, 240)), region(160, 0, 320, 240));
        assert_eq!(fitted(size(320, 240), size(320, 400)), region(0, 80, 320, 240));
        assert_eq!(fitted(size(320, 240), size(160, 240)), region(0, 60, 160, 120));
        assert_eq!(fitted(size(1920, 1080), size(1000, 1000)), region(0, 218, 1000, 563));
        assert_eq!(fitted(size(10_000, 1), size(10, 10)), region(0, 4, 10, 1), "never thinner than a pixel");
    }

    #[test]
    fn every_region_is_inside_its_window() {
        for picture in [size(1, 1), size(3, 7), size(1920, 1080), size(16_000, 3)] {
            for width in 1..40 {
                for height in 1..40 {
                    let Region { x, y, size } = fitted(picture, Size { width, height });
                    assert!(size.width > 0 && size.height > 0);
                    assert!(x + size.width <= width && y + size.height <= height);
                    assert!(size.width == width || size.height == height);
                }
            }
        }
    }

    #[test]
    fn a_new_window_fits_the_screen() {
        assert_eq!(opened(size(640, 480), Some(size(1920, 1080))), size(640, 480));
        assert_eq!(opened(size(3840, 2160), Some(size(1920, 1200))), size(1920, 1080));
        assert_eq!(opened(size(640, 480), None), size(640, 480));
        assert_eq!(opened(size(640, 480), Some(size(0, 0))), size(640, 480));
    }
}
