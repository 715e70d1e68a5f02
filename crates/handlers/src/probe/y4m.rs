//! The header of a YUV4MPEG2 stream: size, rate, format, colours and other tags.
//!
//! At most 4 KiB are read. Nothing after the header is taken from standard input, so that the next byte there belongs
//! to the first frame. The header of standard input is read once per process and remembered.

use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::Path;
use std::sync::{Arc, OnceLock, PoisonError};

use vramp_plan::catalog::{ProbeError, Probed};
use vramp_plan::{Format, Interlacing, PixelAspect, Rate, Siting, Size, StreamTags};
use vramp_runtime::{Yuv, YuvMatrix};

use super::{open, refuse, shown, unreadable};
use crate::patient::{self, is_pause};

/// The longest header line, including its line end.
pub(crate) const LONGEST: usize = 4096;
const MAGIC: &[u8] = b"YUV4MPEG2";

/// Size, rate and format in the header of a file, or of standard input for `-`.
pub(super) fn probe(path: &str) -> Result<Probed, ProbeError> {
    if path == "-" {
        return standard_input();
    }
    let path = Path::new(path);
    let head = first_line(&mut BufReader::new(open(path)?)).map_err(|error| unreadable(path, &error))?;
    read(&format!("`{}`", path.display()), &head)
}

/// The header line of standard input. The line is kept, because a pipe cannot be rewound and a plan may be made
/// repeatedly.
static HEAD: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();

/// The header line that was read from standard input; empty if no header was read.
pub(crate) fn standard_input_header() -> &'static [u8] {
    HEAD.get().and_then(|head| head.as_deref().ok()).unwrap_or_default()
}

fn first_of_standard_input() -> io::Result<Vec<u8>> {
    first_line(&mut *patient::standard_input()?.lock().unwrap_or_else(PoisonError::into_inner))
}

fn standard_input() -> Result<Probed, ProbeError> {
    if io::stdin().is_terminal() {
        return Err(refuse(
            "standard input is a terminal, expected a YUV4MPEG2 stream",
            "pipe a stream in, for example with `ffmpeg -i clip.mp4 -f yuv4mpegpipe - | vramp run ...`, or give a file",
        ));
    }
    match HEAD.get_or_init(|| first_of_standard_input().map_err(|error| error.to_string())) {
        Ok(head) => read("standard input", head),
        Err(error) => {
            Err(refuse(format!("standard input cannot be read: {error}"), "pipe a stream in, or give a file"))
        }
    }
}

/// The bytes up to and including the first line end, at most [`LONGEST`].
pub(crate) fn first_line(mut reader: &mut dyn BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        let most = (LONGEST - line.len()) as u64;
        match Read::take(&mut reader, most).read_until(b'\n', &mut line) {
            Err(error) if is_pause(&error) => {}
            read => return read.map(|_| line),
        }
    }
}

/// Parses a header line. `name` is the name of the stream in messages.
pub(crate) fn read(name: &str, head: &[u8]) -> Result<Probed, ProbeError> {
    let not_y4m = "check that the stream is y4m; `ffmpeg -i clip -pix_fmt yuv420p clip.y4m` makes a y4m file";
    let magic = &head[..head.len().min(MAGIC.len())];
    if magic != MAGIC {
        return Err(refuse(format!("{name}, byte 0: found {}, expected `YUV4MPEG2`", shown(magic)), not_y4m));
    }
    let Some(line) = head.strip_suffix(b"\n") else {
        let problem = if head.len() == LONGEST {
            format!("{name}: the header has no line end in its first {LONGEST} bytes")
        } else {
            format!("{name} ends at byte {} in the middle of its header, expected a line end", head.len())
        };
        return Err(refuse(problem, not_y4m));
    };
    let mut tags = Tags::default();
    let mut at = MAGIC.len();
    for (nth, tag) in line[MAGIC.len()..].split(|byte| *byte == b' ').enumerate() {
        // A word directly after the magic is not a tag.
        let taken = if nth == 0 && !tag.is_empty() { Err(("a space".to_owned(), not_y4m)) } else { tags.take(tag) };
        taken.map_err(|(expected, help)| {
            refuse(format!("{name}, byte {at}: found {}, expected {expected}", shown(tag)), help)
        })?;
        at += tag.len() + 1;
    }
    let missing = |what: &str| refuse(format!("{name}, byte {}: the header ends without {what}", line.len()), not_y4m);
    let width = tags.width.ok_or_else(|| missing("a width, such as `W640`"))?;
    let height = tags.height.ok_or_else(|| missing("a height, such as `H480`"))?;
    Ok(Probed {
        // A header without C means 4:2:0.
        format: Some(tags.chroma.map_or(Format::I420, |chroma| chroma.1)),
        size: Size::new(width, height),
        rate: tags.rate.and_then(|(num, den)| Rate::new(num, den)),
        tags: Some(Arc::new(StreamTags {
            interlacing: tags.interlacing,
            aspect: tags.aspect,
            chroma: tags.chroma.map(|chroma| chroma.0),
            says_range: tags.says_range,
            comments: tags.comments,
            origin: None,
        })),
        ..Probed::default()
    })
}

/// How to interpret the YUV of a stream: its chroma siting and colours. The matrix is in the comment `XCOLORMATRIX`,
/// which only vramp writes, since YUV4MPEG2 has no tag for the matrix.
pub(crate) fn yuv_of(tags: &StreamTags, head: &[u8]) -> Yuv {
    let sited = CHROMA.iter().find(|chroma| Some(chroma.0) == tags.chroma);
    let mut yuv = Yuv { siting: sited.map_or(Siting::Centre, |chroma| chroma.2), ..Yuv::default() };
    for tag in head.strip_suffix(b"\n").unwrap_or(head).split(|byte| *byte == b' ') {
        match tag {
            b"XCOLORRANGE=FULL" => yuv.full_range = true,
            b"XCOLORRANGE=LIMITED" => yuv.full_range = false,
            b"XCOLORMATRIX=BT601" => yuv.matrix = Some(YuvMatrix::Bt601),
            b"XCOLORMATRIX=BT709" => yuv.matrix = Some(YuvMatrix::Bt709),
            _ => {}
        }
    }
    yuv
}

type ChromaTag = (&'static str, Format, Siting);

/// The words for chroma formats. The sitings of 4:2:0 are those of mjpegtools: `420` means `420jpeg`, and with
/// `420paldv` Cr is on the first line of a pair and Cb on the second.
const CHROMA: [ChromaTag; 7] = [
    ("420", Format::I420, Siting::Centre),
    ("420jpeg", Format::I420, Siting::Centre),
    ("420mpeg2", Format::I420, Siting::Left),
    ("420paldv", Format::I420, Siting::Alternate),
    ("422", Format::I422, Siting::Centre),
    ("444", Format::I444, Siting::Centre),
    ("mono", Format::Gray8, Siting::Centre),
];

/// The word for this format and siting. If the source's header has another word with the same meaning, that word is
/// kept.
pub(crate) fn chroma_word(format: Format, siting: Siting, read: Option<&'static str>) -> Option<&'static str> {
    let is_it = |chroma: &&ChromaTag| {
        chroma.1 == format
            && (format != Format::I420 || chroma.2 == siting)
            && (chroma.0 != "420" || read == Some("420"))
    };
    CHROMA.iter().find(is_it).map(|chroma| chroma.0)
}

pub(crate) const INTERLACING: [(u8, Interlacing); 5] = [
    (b'p', Interlacing::Progressive),
    (b't', Interlacing::TopFirst),
    (b'b', Interlacing::BottomFirst),
    (b'm', Interlacing::Mixed),
    (b'?', Interlacing::Unknown),
];

/// The tags of a header that have been read so far.
#[derive(Default)]
struct Tags {
    width: Option<u32>,
    height: Option<u32>,
    /// Numerator and denominator of the rate: both above zero, or both zero if the rate is unknown.
    rate: Option<(u32, u32)>,
    chroma: Option<ChromaTag>,
    interlacing: Option<Interlacing>,
    aspect: Option<PixelAspect>,
    says_range: bool,
    comments: Vec<Vec<u8>>,
}

impl Tags {
    /// Adds a tag; on failure returns what was expected and the remedy.
    fn take(&mut self, tag: &[u8]) -> Result<(), (String, &'static str)> {
        let Some((letter, value)) = tag.split_first() else {
            return Ok(());
        };
        let once = |fresh: bool| if fresh { Ok(()) } else { Err(("each tag once".to_owned(), "fix the header")) };
        match letter {
            b'W' => once(self.width.replace(side(value)?).is_none()),
            b'H' => once(self.height.replace(side(value)?).is_none()),
            b'F' => once(self.rate.replace(rate(value)?).is_none()),
            b'C' => once(self.chroma.replace(chroma(value)?).is_none()),
            b'I' => once(self.interlacing.replace(interlacing(value)?).is_none()),
            b'A' => once(self.aspect.replace(aspect(value)?).is_none()),
            b'X' => {
                match value {
                    b"COLORRANGE=FULL" | b"COLORRANGE=LIMITED" => self.says_range = true,
                    // The matrix and the range are stored with the frames.
                    b"COLORMATRIX=BT601" | b"COLORMATRIX=BT709" => {}
                    comment => self.comments.push(comment.to_vec()),
                }
                Ok(())
            }
            _ => Err(("a tag W, H, F, C, I, A or X".to_owned(), "fix the header")),
        }
    }
}

fn side(value: &[u8]) -> Result<u32, (String, &'static str)> {
    number(value).filter(|side| (1..=Size::MAX_SIDE).contains(side)).ok_or_else(|| {
        (format!("a side from 1 to {}", Size::MAX_SIDE), "check that the file is complete, or scale the video down")
    })
}

fn rate(value: &[u8]) -> Result<(u32, u32), (String, &'static str)> {
    ratio(value).filter(|(num, den)| (*num == 0) == (*den == 0)).ok_or_else(|| {
        ("a rate such as `F30000:1001`".to_owned(), "fix the header, or write F0:0 if the rate is unknown")
    })
}

fn chroma(value: &[u8]) -> Result<ChromaTag, (String, &'static str)> {
    CHROMA.into_iter().find(|chroma| chroma.0.as_bytes() == value).ok_or_else(|| {
        (
            "C420, C420jpeg, C420mpeg2, C420paldv, C422, C444 or Cmono, 8 bits each".to_owned(),
            "convert the video first, for example with `ffmpeg -i clip.y4m -pix_fmt yuv420p clip8.y4m`",
        )
    })
}

fn interlacing(value: &[u8]) -> Result<Interlacing, (String, &'static str)> {
    let found = INTERLACING.into_iter().find(|(letter, _)| value == [*letter]);
    found.map(|(_, interlacing)| interlacing).ok_or_else(|| {
        ("interlacing as Ip, It, Ib, Im or I?".to_owned(), "fix the header, or write I? if the interlacing is unknown")
    })
}

fn aspect(value: &[u8]) -> Result<PixelAspect, (String, &'static str)> {
    let parts = ratio(value).filter(|(num, den)| (*num == 0) == (*den == 0));
    parts.map(|(num, den)| PixelAspect { num, den }).ok_or_else(|| {
        ("a pixel aspect such as `A1:1`".to_owned(), "fix the header, or write A0:0 if the aspect is unknown")
    })
}

/// Two decimal numbers with a colon between them.
fn ratio(value: &[u8]) -> Option<(u32, u32)> {
    let colon = value.iter().position(|byte| *byte == b':')?;
    number(&value[..colon]).zip(number(&value[colon + 1..]))
}

/// A decimal number without sign or spaces.
fn number(digits: &[u8]) -> Option<u32> {
    let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    plain.then(|| std::str::from_utf8(digits).ok()?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn look(head: impl AsRef<[u8]>) -> Result<Probed, String> {
        let line = first_line(&mut head.as_ref()).expect("memory can be read");
        read("t.y4m", &line).map(|probed| Probed { tags: None, ..probed }).map_err(|error| error.to_string())
    }

    fn tags(head: impl AsRef<[u8]>) -> StreamTags {
        let probed = read("t.y4m", head.as_ref()).unwrap_or_else(|error| panic!("{error}"));
        StreamTags::clone(&probed.tags.expect("a header has tags"))
    }

    fn probed(format: Format, width: u32, height: u32, rate: Option<(u32, u32)>) -> Probed {
        let rate = rate.and_then(|(num, den)| Rate::new(num, den));
        Probed { format: Some(format), size: Size::new(width, height), rate, ..Probed::default() }
    }

    #[test]
    fn the_headers_that_common_tools_write_are_read() {
        let ffmpeg = "YUV4MPEG2 W1920 H1080 F30000:1001 Ip A1:1 C420jpeg XYSCSS=420JPEG XCOLORRANGE=LIMITED\nFRAME\n";
        assert_eq!(look(ffmpeg), Ok(probed(Format::I420, 1920, 1080, Some((30_000, 1001)))));
        for (tag, format) in [
            ("", Format::I420),
            (" C420", Format::I420),
            (" C420mpeg2", Format::I420),
            (" C420paldv", Format::I420),
            (" C422", Format::I422),
            (" C444", Format::I444),
            (" Cmono", Format::Gray8),
        ] {
            assert_eq!(look(format!("YUV4MPEG2 W5 H3 F25:1{tag}\n")), Ok(probed(format, 5, 3, Some((25, 1)))), "{tag}");
        }
    }

    #[test]
    fn a_rate_may_be_absent_or_unknown() {
        assert_eq!(look("YUV4MPEG2 W5 H3\n"), Ok(probed(Format::I420, 5, 3, None)));
        assert_eq!(look("YUV4MPEG2 W5 H3 F0:0\n"), Ok(probed(Format::I420, 5, 3, None)));
    }

    #[test]
    fn a_mistake_is_named_with_its_byte_and_its_tag() {
        for (head, problem) in [
            ("RIFF....", "t.y4m, byte 0: found `RIFF....`, expected `YUV4MPEG2`"),
            ("", "t.y4m, byte 0: found ``"),
            ("YUV4MPEG2", "t.y4m ends at byte 9 in the middle of its header"),
            ("YUV4MPEG2 W5 H3", "t.y4m ends at byte 15 in the middle"),
            ("YUV4MPEG2X W5 H3\n", "byte 9: found `X`, expected a space"),
            ("YUV4MPEG2 W0 H3\n", "byte 10: found `W0`, expected a side from 1 to 65536"),
            ("YUV4MPEG2 W5 H99999999999999999999\n", "byte 13: found `H99999999999999999999`, expected a side"),
            ("YUV4MPEG2 W+5 H3\n", "byte 10: found `W+5`"),
            ("YUV4MPEG2 H3\n", "byte 12: the header ends without a width"),
            ("YUV4MPEG2 W3\n", "byte 12: the header ends without a height"),
            ("YUV4MPEG2 W5 W5 H3\n", "byte 13: found `W5`, expected each tag once"),
            ("YUV4MPEG2 W5 H3 F25\n", "byte 16: found `F25`, expected a rate"),
            ("YUV4MPEG2 W5 H3 F25:0\n", "byte 16: found `F25:0`, expected a rate"),
            ("YUV4MPEG2 W5 H3 C420p10\n", "byte 16: found `C420p10`, expected C420, C420jpeg"),
            ("YUV4MPEG2 W5 H3 C444alpha\n", "byte 16: found `C444alpha`"),
            ("YUV4MPEG2 W5 H3 Ix\n", "byte 16: found `Ix`, expected interlacing as Ip, It, Ib, Im or I?"),
            ("YUV4MPEG2 W5 H3 Itt\n", "byte 16: found `Itt`, expected interlacing"),
            ("YUV4MPEG2 W5 H3 It Ib\n", "byte 19: found `Ib`, expected each tag once"),
            ("YUV4MPEG2 W5 H3 A4\n", "byte 16: found `A4`, expected a pixel aspect such as `A1:1`"),
            ("YUV4MPEG2 W5 H3 A4:0\n", "byte 16: found `A4:0`, expected a pixel aspect"),
            ("YUV4MPEG2 W5 H3 A4:-3\n", "byte 16: found `A4:-3`, expected a pixel aspect"),
            ("YUV4MPEG2 W5 H3 A99999999999:1\n", "byte 16: found `A99999999999:1`, expected a pixel aspect"),
            ("YUV4MPEG2 W5 H3 C411\n", "expected C420, C420jpeg, C420mpeg2, C420paldv, C422, C444 or Cmono"),
            ("YUV4MPEG2 W5 H3\r\n", "byte 13: found `H3\\r`"),
            ("YUV4MPEG2 W5 H3 Q\u{7}\n", "byte 16: found `Q\\x07`, expected a tag W, H, F, C, I, A or X"),
        ] {
            let error = look(head).unwrap_err();
            assert!(error.contains(problem), "{head:?}: {error}");
        }
    }

    #[test]
    fn interlacing_aspect_chroma_and_comments_are_read() {
        assert_eq!(tags("YUV4MPEG2 W5 H3\n"), StreamTags::default());
        let read = tags("YUV4MPEG2 Xfirst W5 H3 It A16:11 C420mpeg2 XYSCSS=420MPEG2 XCOLORRANGE=FULL X X\u{e9}\r\n");
        assert_eq!(read.interlacing, Some(Interlacing::TopFirst));
        assert_eq!(read.aspect, Some(PixelAspect { num: 16, den: 11 }));
        assert_eq!((read.chroma, read.says_range), (Some("420mpeg2"), true));
        assert_eq!(read.comments, [&b"first"[..], b"YSCSS=420MPEG2", b"", "\u{e9}\r".as_bytes()]);
        for (letter, interlacing) in INTERLACING {
            let read = tags(format!("YUV4MPEG2 W5 H3 I{}\n", char::from(letter)));
            assert_eq!(read.interlacing, Some(interlacing));
        }
    }

    #[test]
    fn colours_are_limited_and_by_height_and_chroma_is_centred_unless_tagged() {
        let colours = |head: &str| yuv_of(&tags(head), head.as_bytes());
        assert_eq!(colours("YUV4MPEG2 W2 H2 C420jpeg XCOLORRANGE=LIMITED\n"), Yuv::default());
        assert_eq!(colours("YUV4MPEG2 W2 H2\n"), Yuv::default());
        assert!(colours("YUV4MPEG2 W2 H2 XYSCSS=420JPEG XCOLORRANGE=FULL\n").full_range);
        let tagged = colours("YUV4MPEG2 XCOLORMATRIX=BT709 W2 H2\n");
        assert_eq!(tagged, Yuv { matrix: Some(YuvMatrix::Bt709), ..Yuv::default() });
        for (word, siting) in [
            ("420", Siting::Centre),
            ("420mpeg2", Siting::Left),
            ("420paldv", Siting::Alternate),
            ("422", Siting::Centre),
        ] {
            assert_eq!(colours(&format!("YUV4MPEG2 W2 H2 C{word}\n")).siting, siting, "{word}");
        }
    }

    #[test]
    fn a_line_without_end_is_given_up_after_4_kib() {
        let endless = format!("YUV4MPEG2 W5 H3 X{}", "x".repeat(100_000));
        assert!(look(&endless).unwrap_err().contains("no line end in its first 4096 bytes"));
        let longest = format!("YUV4MPEG2 W5 H3 X{}\n", "x".repeat(4096 - 18));
        assert_eq!(longest.len(), 4096);
        assert!(look(&longest).is_ok());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_give_a_size_out_of_range(
            magic in any::<bool>(),
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let head: Vec<u8> = if magic { [MAGIC, b" ", &bytes].concat() } else { bytes };
            if let Ok(probed) = look(&head) {
                let size = probed.size.expect("a header without a size is refused");
                prop_assert_eq!(Size::new(size.width, size.height), Some(size));
            }
        }

        #[test]
        fn tags_made_of_plausible_parts_never_panic(
            tags in proptest::collection::vec("[WHFCIAX]?[0-9:+a-z.]{0,24}", 0..8),
            end in "\n?",
        ) {
            let head = format!("YUV4MPEG2 {}{end}", tags.join(" "));
            if let Err(error) = look(&head) {
                prop_assert!(error.starts_with("t.y4m"), "{}", error);
                prop_assert!(error.len() < 400, "{}", error);
            }
        }

        #[test]
        fn every_size_and_rate_reads_back(
            width in 1..=65_536u32, height in 1..=65_536u32, num in 1..=u32::MAX, den in 1..=u32::MAX,
        ) {
            let head = format!("YUV4MPEG2 W{width} H{height} F{num}:{den} C444\n");
            prop_assert_eq!(look(&head), Ok(probed(Format::I444, width, height, Some((num, den)))));
        }
    }
}
