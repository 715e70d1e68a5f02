//! Decides how the pictures of a video are read: in which of vramp's formats, and what ffmpeg converts before.
//!
//! Frames are read as the decoder makes them wherever vramp has the format. What vramp cannot represent is converted by
//! ffmpeg, with a note (more than 8 bits, other matrices, interlacing, HDR), or refused. Alpha is kept.

use vramp_plan::{Format, PixelAspect, Rate, Siting, Size};

use crate::describe::{MediaFile, VideoTrack};

/// How ffmpeg converts pixels: precisely, with all chroma samples.
const SCALER: &str = "flags=bilinear+accurate_rnd+full_chroma_int+full_chroma_inp";

/// How a video is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub size: Size,
    pub format: Format,
    pub colours: VideoColours,
    pub rate: Option<Rate>,
    pub aspect: Option<PixelAspect>,
    /// What is converted, in words for the user.
    pub notes: Vec<String>,
    /// Whether decoded frames are turned by a quarter.
    pub(crate) turned: bool,
    /// ffmpeg's filters.
    pub(crate) filters: String,
    /// ffmpeg's pixel format. A full range has formats of its own, which must be named to avoid a conversion.
    pub(crate) pixel_format: String,
}

/// How luma and chroma are interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VideoColours {
    /// `None` if the stream does not tell.
    pub matrix: Option<ColourMatrix>,
    pub full_range: bool,
    pub siting: Siting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColourMatrix {
    Bt601,
    Bt709,
}

/// A video that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("it has no video stream")]
    NoVideo,
    #[error("its colours are {0}, which vramp cannot convert")]
    Matrix(String),
    #[error("it is HDR video ({0}), and this ffmpeg has no filters `zscale` and `tonemap` to convert it")]
    Hdr(String),
}

impl Unreadable {
    /// The remedy.
    pub fn help(&self) -> &'static str {
        match self {
            Unreadable::NoVideo => "give a file with pictures",
            Unreadable::Matrix(_) => {
                "convert the video to BT.709 first, for example with `ffmpeg -i IN -vf \
                                      scale=out_color_matrix=bt709 OUT`"
            }
            Unreadable::Hdr(_) => "use an ffmpeg that was built with libzimg, or convert the video to SDR first",
        }
    }
}

impl Reading {
    /// How a camera is read: whatever it sends, as 4:2:0 of BT.601.
    pub fn of_camera(size: Size) -> Reading {
        Reading {
            size,
            format: Format::I420,
            colours: VideoColours { matrix: Some(ColourMatrix::Bt601), full_range: false, siting: Siting::Left },
            rate: None,
            aspect: None,
            notes: Vec::new(),
            turned: false,
            filters: format!("scale=out_color_matrix=bt601:out_range=limited:{SCALER},format=yuv420p"),
            pixel_format: "yuv420p".to_owned(),
        }
    }

    /// `has_filter` tells whether ffmpeg has a filter.
    pub fn of(media: &MediaFile, has_filter: impl Fn(&str) -> bool) -> Result<Reading, Unreadable> {
        let video = media.video().ok_or(Unreadable::NoVideo)?;
        let Layout { format, is_exact, bits } = Layout::of(&video.pixel_format);
        let (mut filters, mut notes) = (Vec::new(), Vec::new());
        let mut reading = Reading {
            size: video.size,
            format,
            colours: VideoColours { matrix: None, full_range: is_full_range(video), siting: siting(video, &mut notes) },
            rate: video.rate,
            aspect: video.aspect,
            notes: Vec::new(),
            turned: video.turned,
            filters: String::new(),
            pixel_format: String::new(),
        };
        if let Some(order) = video.fields.as_deref().filter(|order| matches!(*order, "tt" | "bb" | "tb" | "bt")) {
            filters.push("bwdif=mode=send_frame".to_owned());
            notes.push(format!("the video is interlaced ({order}) and is deinterlaced by ffmpeg"));
        }
        let transfer = video.transfer.as_deref().filter(|curve| matches!(*curve, "smpte2084" | "arib-std-b67"));
        if let Some(curve) = transfer {
            let name = if curve == "smpte2084" { "PQ" } else { "HLG" };
            if !(has_filter("zscale") && has_filter("tonemap")) {
                return Err(Unreadable::Hdr(name.to_owned()));
            }
            filters.push(tone_map(video, curve));
            notes.push(format!("the video is HDR ({name}) and is converted to 8 bits of BT.709 by ffmpeg"));
            reading.format = Format::I420;
            reading.colours =
                VideoColours { matrix: Some(ColourMatrix::Bt709), full_range: false, siting: Siting::Left };
        } else if matches!(format, Format::Rgb8) && is_rgb(&video.pixel_format) {
            if bits > 8 {
                notes.push(fewer_bits(bits));
            }
            if !is_exact {
                filters.push(format!("scale={SCALER},format=rgb24"));
            }
        } else if format == Format::Rgba8 {
            if bits > 8 {
                notes.push(fewer_bits(bits));
            }
            let from = if is_rgb(&video.pixel_format) { String::new() } else { format!("{}:", origin(video)?) };
            if !is_exact {
                filters.push(format!("scale={from}{SCALER},format=rgba"));
            }
        } else {
            let matrix = video.matrix.as_deref();
            let (own, converted) = match matrix {
                None => (None, None),
                Some("bt709") => (Some(ColourMatrix::Bt709), None),
                Some("smpte170m" | "bt470bg") => (Some(ColourMatrix::Bt601), None),
                Some(other) => {
                    let word = scale_matrix(other).ok_or_else(|| Unreadable::Matrix(other.to_owned()))?;
                    notes.push(format!("the colours ({other}) are converted to BT.709 by ffmpeg"));
                    (Some(ColourMatrix::Bt709), Some(format!("in_color_matrix={word}:out_color_matrix=bt709:")))
                }
            };
            reading.colours.matrix = own;
            if bits > 8 {
                notes.push(fewer_bits(bits));
            } else if !is_exact && !is_rearranged(&video.pixel_format) {
                notes.push(format!("the pixel format {} is converted to {format} by ffmpeg", video.pixel_format));
            }
            if !is_exact || converted.is_some() {
                let name = ffmpeg_name(format);
                let range = if reading.colours.full_range { "full" } else { "limited" };
                let range = format!("in_range={range}:out_range={range}:");
                filters.push(format!("scale={}{range}{SCALER},format={name}", converted.unwrap_or_default()));
            }
        }
        if reading.format != Format::I420 && reading.format != Format::Nv12 {
            reading.colours.siting = Siting::Centre;
        }
        let is_same = is_exact && filters.iter().all(|filter| filter.starts_with("bwdif"));
        reading.pixel_format =
            if is_same { video.pixel_format.clone() } else { ffmpeg_name(reading.format).to_owned() };
        reading.filters = filters.join(",");
        reading.notes = notes;
        Ok(reading)
    }
}

fn fewer_bits(bits: u32) -> String {
    format!("the video has {bits} bits per sample, and is converted to 8 by ffmpeg")
}

/// ffmpeg's name of a format.
pub(crate) fn ffmpeg_name(format: Format) -> &'static str {
    match format {
        Format::Rgba8 => "rgba",
        Format::Rgb8 => "rgb24",
        Format::I444 => "yuv444p",
        Format::I422 => "yuv422p",
        Format::I420 => "yuv420p",
        Format::Nv12 => "nv12",
        Format::Gray8 => "gray",
    }
}

/// The format in which vramp reads a pixel format of ffmpeg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    format: Format,
    /// Whether the bytes are the same.
    is_exact: bool,
    bits: u32,
}

impl Layout {
    fn of(name: &str) -> Layout {
        let exact = |format| Layout { format, is_exact: true, bits: 8 };
        let name = name.trim_end_matches("le").trim_end_matches("be");
        match name {
            "yuv420p" | "yuvj420p" => return exact(Format::I420),
            "yuv422p" | "yuvj422p" => return exact(Format::I422),
            "yuv444p" | "yuvj444p" => return exact(Format::I444),
            "nv12" => return exact(Format::Nv12),
            "gray" => return exact(Format::Gray8),
            "rgb24" => return exact(Format::Rgb8),
            "rgba" => return exact(Format::Rgba8),
            _ => {}
        }
        let has_alpha = name.starts_with("yuva")
            || name.starts_with("gbrap")
            || name.starts_with("ya")
            || name.starts_with("rgba64")
            || name.starts_with("bgra64")
            || matches!(name, "bgra" | "argb" | "abgr" | "pal8" | "rgba" | "vuya");
        let format = if has_alpha {
            Format::Rgba8
        } else if name.starts_with("gray") || name.starts_with("mono") {
            Format::Gray8
        } else if is_rgb(name) {
            Format::Rgb8
        } else if ["yuv420", "p01", "nv21"].iter().any(|start| name.starts_with(start)) {
            Format::I420
        } else if ["yuv422", "yuyv", "uyvy", "yvyu", "p21", "y21", "nv16", "nv20", "yuv411", "uyyvyy"]
            .iter()
            .any(|start| name.starts_with(start))
        {
            Format::I422
        } else if ["yuv", "p41", "nv24", "nv42", "xv", "vuy"].iter().any(|start| name.starts_with(start)) {
            Format::I444
        } else {
            Format::Rgba8
        };
        Layout { format, is_exact: false, bits: bits_of(name) }
    }
}

/// Whether pixels are red, green and blue.
fn is_rgb(name: &str) -> bool {
    ["rgb", "bgr", "gbr", "0rgb", "0bgr", "argb", "abgr", "pal8", "x2rgb", "x2bgr", "bayer"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// The bits of a sample, from the last number of names such as `yuv420p10` and `p010`.
fn bits_of(name: &str) -> u32 {
    let deep = |digits: &str| digits.parse::<u32>().ok().filter(|bits| (9..=16).contains(bits));
    match name {
        "rgb48" | "bgr48" | "rgba64" | "bgra64" | "ya16" => 16,
        _ if name.starts_with("x2rgb10") || name.starts_with("x2bgr10") => 10,
        _ => {
            let digits = name.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            match digits.len() {
                // p010, p216, y210: the last two digits.
                3 => deep(&digits[1..]),
                // yuv420p10, gray12, gbrp9.
                1 | 2 => deep(digits),
                _ => None,
            }
            .unwrap_or(8)
        }
    }
}

/// Whether a pixel format has the samples of vramp's format in another order.
fn is_rearranged(name: &str) -> bool {
    matches!(name, "nv21" | "yuyv422" | "uyvy422" | "yvyu422" | "nv16" | "nv24" | "nv42")
}

fn is_full_range(video: &VideoTrack) -> bool {
    let is_gray = video.pixel_format.starts_with("gray") || video.pixel_format.starts_with("mono");
    match video.range.as_deref() {
        Some(range) => matches!(range, "pc" | "jpeg" | "full"),
        // ffmpeg reads untagged gray as full range.
        None => video.pixel_format.starts_with("yuvj") || is_gray,
    }
}

fn siting(video: &VideoTrack, notes: &mut Vec<String>) -> Siting {
    match video.chroma_location.as_deref() {
        Some("center") => Siting::Centre,
        Some(other @ ("topleft" | "top" | "bottomleft" | "bottom")) => {
            notes.push(format!("chroma is located {other}, and is read as located left"));
            Siting::Left
        }
        // Most video has its chroma on the left, and files that do not tell are such video.
        _ => Siting::Left,
    }
}

/// The matrix and range of the frames, as settings of ffmpeg's filter `scale`.
fn origin(video: &VideoTrack) -> Result<String, Unreadable> {
    let matrix = match video.matrix.as_deref() {
        None if video.size.height < 720 => "bt601",
        None => "bt709",
        Some(matrix) => scale_matrix(matrix).ok_or_else(|| Unreadable::Matrix(matrix.to_owned()))?,
    };
    let range = if is_full_range(video) { "full" } else { "limited" };
    Ok(format!("in_color_matrix={matrix}:in_range={range}"))
}

/// The word of ffmpeg's filter `scale` for a matrix.
fn scale_matrix(matrix: &str) -> Option<&'static str> {
    Some(match matrix {
        "bt709" => "bt709",
        "smpte170m" | "bt470bg" => "bt601",
        "fcc" => "fcc",
        "smpte240m" => "smpte240m",
        "bt2020nc" | "bt2020c" => "bt2020",
        _ => return None,
    })
}

/// Maps HDR to the range of a usual screen.
fn tone_map(video: &VideoTrack, curve: &str) -> String {
    let range = if is_full_range(video) { "full" } else { "limited" };
    let primaries = if video.primaries.as_deref() == Some("bt709") { "709" } else { "2020" };
    let matrix = if video.matrix.as_deref() == Some("bt709") { "709" } else { "2020_ncl" };
    format!(
        "zscale=rangein={range}:primariesin={primaries}:matrixin={matrix}:transferin={curve}:transfer=linear:npl=100,\
         format=gbrpf32le,zscale=primaries=709,tonemap=tonemap=hable:desat=0,\
         zscale=transfer=709:matrix=709:range=limited,format=yuv420p"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::{MediaStream, MediaStreamKind};

    fn video(pixel_format: &str) -> VideoTrack {
        VideoTrack {
            size: Size::new(1920, 1080).unwrap(),
            turned: false,
            rate: None,
            frames: None,
            pixel_format: pixel_format.to_owned(),
            aspect: None,
            range: None,
            matrix: None,
            transfer: None,
            primaries: None,
            chroma_location: None,
            fields: None,
        }
    }

    fn reading(video: VideoTrack) -> Result<Reading, Unreadable> {
        let kind = MediaStreamKind::Video(Box::new(video));
        let stream = MediaStream { kind, codec: "h264".to_owned(), language: None, duration_s: None };
        let media = MediaFile {
            container: "mp4".to_owned(),
            duration_s: None,
            start_s: 0.0,
            bit_rate: None,
            streams: vec![stream],
        };
        Reading::of(&media, |_| true)
    }

    #[test]
    fn what_the_decoder_makes_is_read_as_it_is() {
        for (name, format) in [
            ("yuv420p", Format::I420),
            ("yuvj420p", Format::I420),
            ("yuv422p", Format::I422),
            ("yuv444p", Format::I444),
            ("nv12", Format::Nv12),
            ("gray", Format::Gray8),
            ("rgb24", Format::Rgb8),
            ("rgba", Format::Rgba8),
        ] {
            let read = reading(video(name)).unwrap();
            assert_eq!((read.format, read.filters.as_str(), read.notes.len()), (format, "", 0), "{name}");
        }
    }

    #[test]
    fn other_formats_are_converted_and_lost_bits_are_noted() {
        for (name, format, notes) in [
            ("yuv420p10le", Format::I420, 1),
            ("p010le", Format::I420, 1),
            ("yuv422p10le", Format::I422, 1),
            ("yuv444p12be", Format::I444, 1),
            ("gray12le", Format::Gray8, 1),
            ("rgb48le", Format::Rgb8, 1),
            ("yuva444p10le", Format::Rgba8, 1),
            ("nv21", Format::I420, 0),
            ("yuyv422", Format::I422, 0),
            ("bgra", Format::Rgba8, 0),
            ("pal8", Format::Rgba8, 0),
            ("bgr24", Format::Rgb8, 0),
            ("gbrp", Format::Rgb8, 0),
            ("yuva420p", Format::Rgba8, 0),
            ("yuv411p", Format::I422, 1),
            ("yuv440p", Format::I444, 1),
            ("something", Format::Rgba8, 0),
        ] {
            let read = reading(video(name)).unwrap();
            assert_eq!((read.format, read.notes.len()), (format, notes), "{name}: {:?}", read.notes);
            assert!(read.filters.ends_with(&format!("format={}", ffmpeg_name(format))), "{name}: {}", read.filters);
        }
    }

    #[test]
    fn colours_are_those_of_the_tags() {
        let tagged = VideoTrack {
            matrix: Some("bt709".to_owned()),
            range: Some("pc".to_owned()),
            chroma_location: Some("center".to_owned()),
            ..video("yuv420p")
        };
        let colours = VideoColours { matrix: Some(ColourMatrix::Bt709), full_range: true, siting: Siting::Centre };
        assert_eq!(reading(tagged).unwrap().colours, colours);
        let plain = VideoColours { matrix: None, full_range: false, siting: Siting::Left };
        assert_eq!(reading(video("yuv420p")).unwrap().colours, plain);
        assert!(reading(video("yuvj420p")).unwrap().colours.full_range);
        let wide = reading(VideoTrack { matrix: Some("bt2020nc".to_owned()), ..video("yuv420p10le") }).unwrap();
        assert_eq!(wide.colours.matrix, Some(ColourMatrix::Bt709));
        assert!(wide.filters.contains("in_color_matrix=bt2020:out_color_matrix=bt709"), "{}", wide.filters);
        let odd = reading(VideoTrack { matrix: Some("ictcp".to_owned()), ..video("yuv420p10le") });
        assert_eq!(odd, Err(Unreadable::Matrix("ictcp".to_owned())));
    }

    #[test]
    fn interlaced_and_hdr_video_is_converted_with_a_note() {
        let fields = reading(VideoTrack { fields: Some("tt".to_owned()), ..video("yuv420p") }).unwrap();
        assert!(fields.filters.starts_with("bwdif") && fields.notes[0].contains("interlaced"), "{fields:?}");
        let hdr = VideoTrack { transfer: Some("smpte2084".to_owned()), ..video("yuv420p10le") };
        let read = reading(hdr.clone()).unwrap();
        assert!(read.filters.contains("tonemap") && read.notes[0].contains("HDR (PQ)"), "{read:?}");
        let kind = MediaStreamKind::Video(Box::new(hdr));
        let stream = MediaStream { kind, codec: "hevc".to_owned(), language: None, duration_s: None };
        let media = MediaFile {
            container: String::new(),
            duration_s: None,
            start_s: 0.0,
            bit_rate: None,
            streams: vec![stream],
        };
        assert_eq!(Reading::of(&media, |_| false), Err(Unreadable::Hdr("PQ".to_owned())));
    }
}
