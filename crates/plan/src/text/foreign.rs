//! Hints for users of `GStreamer` and ffmpeg: the vramp names for the elements, filters and settings of these tools.
//!
//! There are tables for unknown kinds and unknown settings, and functions for values in another notation and for links
//! or filter lists in another grammar. Each hint is one line for [`Mistake::help`](super::Mistake::help). An equivalent
//! kind is suggested only if the catalogue has this kind. Kinds that vramp can plan but cannot run are not in the
//! tables.

use crate::catalog::{Catalog, Entry, ValueType};

/// Words of other tools, the equivalent kind, and an example of that kind.
type Kinds = (&'static [&'static str], &'static str, &'static str);

const KINDS: &[Kinds] = &[
    (
        &["videotestsrc", "gltestsrc", "testsrc", "testsrc2", "smptebars", "smptehdbars", "fakesrc", "nullsrc"],
        "pattern",
        "pattern kind=bars",
    ),
    (
        &[
            "autovideosink",
            "xvimagesink",
            "ximagesink",
            "glimagesink",
            "waylandsink",
            "osxvideosink",
            "d3dvideosink",
            "kmssink",
            "fbdevsink",
            "aasink",
            "cacasink",
            "ffplay",
            "display",
        ],
        "terminal",
        "terminal",
    ),
    (&["fakesink", "fakevideosink", "nullsink"], "null", "null"),
    (&["multifilesrc", "pngdec", "jpegdec", "imagefreeze", "image2"], "image", "image path=in-%04d.png"),
    (&["y4mdec", "yuv4mpegpipe"], "y4m", "y4m path=in.y4m"),
    (&["filesink", "y4menc"], "y4m", "y4m path=out.y4m"),
    (&["multifilesink", "pngenc"], "png", "png path=out-%04d.png"),
    (&["jpegenc"], "jpeg", "jpeg path=out-%04d.jpg"),
    (&["rawvideo", "rawvideoparse", "videoparse"], "raw", "raw path=in.rgba size=640x480"),
    (&["videoconvert", "autovideoconvert", "colorconvert", "format"], "convert", "convert i420"),
    (&["scale", "zscale", "videoscale", "glcolorscale", "vapostproc"], "resize", "resize 640x480"),
    (&["drawtext", "textoverlay", "timeoverlay", "clockoverlay", "subtitles"], "text", "text \"hello\""),
    (&["hflip", "videoflip", "mirror"], "flip", "flip axis=h"),
    (&["vflip"], "flip", "flip axis=v"),
    (&["transpose"], "rotate", "rotate degrees=90"),
    (&["gblur", "gaussianblur", "gaussian"], "blur", "blur sigma=2"),
    (&["avgblur", "mean"], "boxblur", "boxblur size=9"),
    (&["unsharp", "cas"], "sharpen", "sharpen amount=1"),
    (&["videocrop", "videobox", "aspectratiocrop"], "crop", "crop size=320x240 x=0 y=0"),
    (&["negate", "negative"], "invert", "invert"),
    (&["gray", "grey", "monochrome", "greyscale"], "grayscale", "grayscale"),
    (&["edgedetect", "sobel", "edgetv", "canny"], "edges", "edges"),
    (&["convolution"], "convolve", "convolve 0,-1,0,-1,5,-1,0,-1,0"),
    (&["lut3d", "lut1d", "haldclut"], "lut", "lut path=table.cube"),
    (&["colorkey", "alpha"], "chromakey", "chromakey color=00ff00"),
    (&["colorchannelmixer"], "colormatrix", "colormatrix 1,0,0,0,0,0,1,0,0,0,0,0,1,0,0,0,0,0,1,0"),
    (&["eq", "videobalance"], "brightness", "brightness 0.1 ! contrast 1.2 ! saturation 1.1"),
    (&["videomixer", "glvideomixer", "hstack", "vstack", "xstack"], "compositor", "compositor"),
    (&["blend"], "mix", "mix"),
    (&["gdkpixbufoverlay", "watermark"], "overlay", "overlay path=logo.png"),
    (&["framestep", "videorate", "select", "decimate"], "every", "every n=2"),
    (&["glupload", "hwupload", "cudaupload"], "upload", "upload"),
    (&["gldownload", "hwdownload", "cudadownload"], "download", "download"),
];

/// Words without an equivalent kind, and what to do instead.
const OTHERWISE: &[(&[&str], &str)] = &[
    (
        &["tee", "split"],
        "an output can have several links, so no handler is needed: `pattern name=a ! null; a. ! blur ! null`",
    ),
    (&["queue", "queue2", "fifo"], "every link can queue: `!{queue depth=4}` instead of `!`"),
    (&["capsfilter"], "there are no caps filters: `resize 640x480` sets the size, and `convert i420` sets the format"),
    (
        &["v4l2src", "v4l2", "avfvideosrc", "ksvideosrc", "autovideosrc", "libcamerasrc"],
        "pipe a camera in: `ffmpeg -f v4l2 -i /dev/video0 -f yuv4mpegpipe - | vramp run 'y4m path=- ! ...'`",
    ),
    (
        &["filesrc", "uridecodebin", "decodebin", "decodebin3", "playbin", "movie", "ffmpeg"],
        "`y4m` and `image` read files; decode files of other formats with ffmpeg: `ffmpeg -i FILE -f yuv4mpegpipe - | vramp run 'y4m path=- ! ...'`",
    ),
];

/// Settings of other tools, the vramp kinds with the equivalent setting (all kinds if the list is empty), the
/// equivalent setting, and the hint.
const SETTINGS: &[(&[&str], &[&str], &str, &str)] = &[
    (&["radius", "strength", "amount"], &["blur"], "sigma", "use `sigma`; it is about a third of the radius"),
    (&["radius"], &["boxblur"], "size", "`size` is the side of the square, which is twice the radius plus one"),
    (&["location", "filename", "file", "src", "uri", "url"], &[], "path", "the file is `path=FILE`"),
    (
        &["width", "height", "w", "h"],
        &[],
        "size",
        "width and height are one setting: `size=WIDTHxHEIGHT`, such as size=1280x720",
    ),
    (&["framerate", "rate", "r"], &[], "fps", "the rate is `fps`, such as fps=30"),
    (&["num-buffers", "count", "n"], &[], "frames", "the number of frames is `frames`"),
    (&["pattern"], &["pattern"], "kind", "the test image is `kind`, such as kind=bars"),
    (&["fontsize", "font-size"], &["text"], "size", "the font size is `size`, in pixels"),
    (&["fontfile", "font-desc"], &[], "font", "the font is `font=FILE`"),
    (&["fontcolor", "foreground-color"], &[], "color", "the colour is `color=rrggbb`"),
    (&["method", "direction"], &["flip"], "axis", "flip takes `axis=h`, `axis=v` or `axis=both`"),
    (&["angle", "method"], &["rotate"], "degrees", "rotate takes `degrees=90`, 180 or 270"),
];

/// The hint for a kind that does not exist.
pub(crate) fn kind(word: &str, catalog: &Catalog) -> Option<String> {
    let has = |kind: &str| catalog.named(kind).next().is_some();
    if let Some((_, kind, example)) = KINDS.iter().find(|(words, kind, _)| words.contains(&word) && has(kind)) {
        return Some(if kind == example {
            format!("vramp has `{kind}` for this")
        } else {
            format!("vramp has `{kind}` for this: `{example}`")
        });
    }
    if let Some((_, hint)) = OTHERWISE.iter().find(|(words, _)| words.contains(&word)) {
        return Some((*hint).to_owned());
    }
    if word.starts_with("video/x-raw") {
        return kind("capsfilter", catalog);
    }
    if word.contains('|') || word.contains("->") {
        return Some("link handlers with `!`, with a space on both sides".to_owned());
    }
    (word.contains(['=', ',', '[', ':'])).then(filter_syntax)
}

/// The hint for a setting that this kind does not have.
pub(crate) fn setting(key: &str, entry: &Entry) -> Option<String> {
    SETTINGS
        .iter()
        .find(|(words, kinds, here, _)| {
            let fits = entry
                .setting(here)
                .is_some_and(|s| s.value == ValueType::Size || !matches!(key, "width" | "height" | "w" | "h"));
            words.contains(&key) && (kinds.is_empty() || kinds.contains(&entry.name)) && fits
        })
        .map(|(.., hint)| (*hint).to_owned())
}

/// The hint for a value in another tool's notation.
pub(crate) fn value(text: &str, value: ValueType, entry: &Entry) -> Option<String> {
    if value != ValueType::Size {
        return None;
    }
    if let Some(percent) = text.strip_suffix('%') {
        let factor = percent.trim().parse::<f64>().ok().filter(|p| p.is_finite() && *p > 0.0).map(|p| p / 100.0);
        return Some(match (factor, entry.setting("scale")) {
            (Some(factor), Some(_)) => format!("a size is in pixels; use `scale={factor}` for {text}"),
            _ => "a size is in pixels, not in percent".to_owned(),
        });
    }
    let (width, height) = text.split_once([':', '*', 'X', ','])?;
    let number = |side: &str| side.parse::<u32>().is_ok();
    (number(width) && number(height)).then(|| format!("write `{width}x{height}`"))
}

/// True if a bare word is another tool's link.
pub(crate) fn is_link(word: &str) -> bool {
    matches!(word, "|" | "->" | "=>")
}

/// The hint for ffmpeg's `scale=640:480,gblur=5`.
pub(crate) fn filter_syntax() -> String {
    "settings follow a handler after a space, and `!` links handlers: `resize 640x480 ! blur sigma=5`".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equivalent_kind_is_suggested_only_if_the_catalogue_has_it() {
        static RESIZE: Entry = Entry { name: "resize", example: "resize ! null", ..Entry::FILTER };
        let catalog = Catalog::of([&RESIZE]).unwrap();
        assert_eq!(kind("scale", &catalog).as_deref(), Some("vramp has `resize` for this: `resize 640x480`"));
        assert_eq!(kind("scale", &Catalog::new()), None);
        assert_eq!(kind("fakesink", &catalog), None);
        assert!(kind("tee", &catalog).unwrap().contains("name=a"));
        assert_eq!(kind("resiez", &catalog), None);
    }

    #[test]
    fn no_word_is_in_two_rows() {
        let words = KINDS.iter().flat_map(|(words, ..)| *words).chain(OTHERWISE.iter().flat_map(|(words, _)| *words));
        let mut seen = std::collections::BTreeSet::new();
        for word in words {
            assert!(seen.insert(*word), "{word}");
        }
    }

    #[test]
    fn sizes_in_other_notations_are_rewritten() {
        for (text, hint) in [
            ("50%", Some("a size is in pixels, not in percent")),
            ("640:480", Some("write `640x480`")),
            ("640*480", Some("write `640x480`")),
            ("iw:ih", None),
            ("big", None),
        ] {
            assert_eq!(value(text, ValueType::Size, &Entry::FILTER).as_deref(), hint, "{text}");
        }
        assert_eq!(value("50%", ValueType::Text, &Entry::FILTER), None);
    }
}
