//! `y4m`: writes uncompressed video with a one-line header, eight bits per sample.
//!
//! The source of the same name reads the stream back unchanged. The header holds what is known of the stream. For
//! unchanged frames from a y4m source, the header repeats the tags of the source's header and adds none. The planner
//! inserts a `convert` if the frames have another format. A file has its final name only once the stream has ended; the
//! file then holds whole frames, even after an error.

use vramp_plan::catalog::{Entry, Input, PathUse, PortMedia, Setting};
use vramp_plan::{Format, Interlacing, Rate, StreamTags};
use vramp_runtime::{
    Call, Flow, FrameHandler, HandlerError, Meta, PartialFile, Setup, StartContext, Worker, YuvMatrix,
};

use super::frame_writer::{FrameWriter, PARTIAL, replaces};
use super::outlet;
use crate::probe::{INTERLACING, LONGEST, chroma_word};

pub static ENTRY: Entry = Entry {
    name: "y4m",
    about: "writes YUV4MPEG2 video to a file or standard output",
    example: "pattern frames=30 ! y4m path=out.y4m",
    inputs: &[Input {
        media: PortMedia::video(&[Format::I420, Format::I422, Format::I444, Format::Gray8]),
        ..Input::VIDEO
    }],
    settings: &[Setting::path("path", PathUse::Write, "file, or - for standard output"), PARTIAL],
    bare: Some("path"),
    writes_tags: true,
    ..Entry::SINK
};

struct Y4mSink {
    settings: Settings,
    state: State,
}

struct Settings {
    path: String,
    replaces: bool,
    rate: Option<Rate>,
    /// The tags of the source's header; `None` if the stream comes from elsewhere.
    tags: Option<StreamTags>,
}

#[derive(Default)]
struct State {
    writer: Option<FrameWriter>,
}

impl FrameHandler for Y4mSink {
    fn start(&mut self, _: &mut StartContext<'_>) -> Result<(), HandlerError> {
        let path = &self.settings.path;
        self.state.writer = Some(FrameWriter::new(path, outlet::open(path).map_err(HandlerError::failed)?));
        Ok(())
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let (Some(frame), Some(writer)) = (call.input(0), &mut self.state.writer) else { return Ok(Flow::Filtered) };
        let Settings { rate, tags, .. } = &self.settings;
        let is_mixed = tags.as_ref().is_some_and(|tags| tags.interlacing == Some(Interlacing::Mixed));
        let (line, length) = frame_line(frame.meta().picture().fields.filter(|_| is_mixed));
        let line = &line[..length];
        let written = if writer.is_empty() {
            let mut head = head(frame.meta(), *rate, tags.as_ref())?;
            head.extend_from_slice(line);
            writer.write(&head, frame.meta(), &frame.bytes())
        } else {
            writer.write(line, frame.meta(), &frame.bytes())
        };
        written.map_err(HandlerError::failed)?;
        Ok(Flow::Produced)
    }

    fn stop(&mut self) -> Result<(), HandlerError> {
        self.state.writer.take().map_or(Ok(()), FrameWriter::finish).map_err(HandlerError::failed)
    }

    fn stop_early(&mut self) -> Result<Option<PartialFile>, HandlerError> {
        if self.settings.replaces {
            return self.stop().map(|()| None);
        }
        self.state.writer.take().map_or(Ok(None), FrameWriter::finish_early).map_err(HandlerError::failed)
    }
}

/// The line before a frame, and the length of the line.
fn frame_line(fields: Option<[u8; 3]>) -> ([u8; 11], usize) {
    match fields {
        None => (*b"FRAME\n\0\0\0\0\0", 6),
        Some([one, two, three]) => ([b'F', b'R', b'A', b'M', b'E', b' ', b'I', one, two, three, b'\n'], 11),
    }
}

/// The header, with its line end, of a stream whose frames are like `meta`.
fn head(meta: &Meta, rate: Option<Rate>, tags: Option<&StreamTags>) -> Result<Vec<u8>, HandlerError> {
    let Some(chroma) = chroma_word(meta.picture().format, meta.picture().yuv.siting, tags.and_then(|tags| tags.chroma))
    else {
        let other = meta.picture().format;
        return Err(HandlerError::failed(format!("y4m cannot hold {other}; put `convert format=i420` before `y4m`")));
    };
    let (width, height) = (meta.picture().size.width, meta.picture().size.height);
    let Some(tags) = tags else {
        // 0:0 means unknown.
        let (num, den) = rate.map_or((0, 0), |rate| (rate.num(), rate.den()));
        let (range, matrix) = (range(meta), matrix(meta));
        let head = format!("YUV4MPEG2 W{width} H{height} F{num}:{den} Ip A1:1 C{chroma}{range}{matrix}\n");
        return Ok(head.into_bytes());
    };
    let rate = rate.map(|rate| format!(" F{}:{}", rate.num(), rate.den())).unwrap_or_default();
    let letter = INTERLACING.iter().find(|(_, interlacing)| Some(*interlacing) == tags.interlacing);
    let interlacing = letter.map(|(letter, _)| format!(" I{}", char::from(*letter))).unwrap_or_default();
    let aspect = tags.aspect.map(|aspect| format!(" A{}:{}", aspect.num, aspect.den)).unwrap_or_default();
    // A header without a chroma word means 420jpeg.
    let said = tags.chroma.is_some() || chroma != "420jpeg";
    let stored = if said { format!(" C{chroma}") } else { String::new() };
    let range = if tags.says_range || meta.picture().yuv.full_range { range(meta) } else { "" };
    let head = format!("YUV4MPEG2 W{width} H{height}{rate}{interlacing}{aspect}{stored}{range}{}", matrix(meta));
    let mut head = head.into_bytes();
    for comment in &tags.comments {
        head.extend_from_slice(b" X");
        // `YSCSS` is an older way to describe chroma. The comment is rewritten for the frames as they are now.
        match comment.strip_prefix(b"YSCSS=") {
            Some(said) if tags.chroma != Some(chroma) && is_word(said, tags.chroma) => {
                head.extend_from_slice(format!("YSCSS={}", chroma.to_uppercase()).as_bytes());
            }
            _ => head.extend_from_slice(comment),
        }
    }
    head.push(b'\n');
    if head.len() > LONGEST {
        return Err(HandlerError::failed(format!(
            "the header with its comments has {} bytes, but a y4m header can have at most {LONGEST}; shorten the \
             comments of the source",
            head.len()
        )));
    }
    Ok(head)
}

fn is_word(said: &[u8], word: Option<&str>) -> bool {
    word.is_some_and(|word| said.eq_ignore_ascii_case(word.as_bytes()))
}

fn range(meta: &Meta) -> &'static str {
    if meta.picture().yuv.full_range { " XCOLORRANGE=FULL" } else { " XCOLORRANGE=LIMITED" }
}

fn matrix(meta: &Meta) -> &'static str {
    match meta.picture().yuv.matrix {
        None => "",
        Some(YuvMatrix::Bt601) => " XCOLORMATRIX=BT601",
        Some(YuvMatrix::Bt709) => " XCOLORMATRIX=BT709",
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let path = setup.settings.text("path").ok_or_else(|| HandlerError::failed("the setting `path` is missing"))?;
    let settings = Settings {
        path: path.to_owned(),
        replaces: replaces(setup.settings),
        rate: setup.rate,
        tags: setup.tags.cloned(),
    };
    Ok(Worker::frames(Y4mSink { settings, state: State::default() }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use vramp_plan::catalog::{ProbeError, Probed};
    use vramp_plan::{PixelAspect, Siting, Size};
    use vramp_runtime::Yuv;

    use super::*;
    use crate::probe::{read_header, yuv_of};

    fn probe(header: &[u8]) -> Result<Probed, ProbeError> {
        read_header("t.y4m", header)
    }

    /// The header that the sink writes for unchanged frames of a stream with this header.
    fn again(header: &[u8]) -> Vec<u8> {
        let probed = probe(header).unwrap_or_else(|error| panic!("{}: {error}", header.escape_ascii()));
        let (format, size) = probed.format.zip(probed.size).expect("a header has both");
        let tags = probed.tags.expect("a header has tags");
        let mut meta = Meta::new(format, size);
        meta.picture_mut().yuv = yuv_of(&tags, header);
        head(&meta, probed.rate, Some(&tags)).unwrap_or_else(|error| panic!("{error}"))
    }

    fn tokens(header: &[u8]) -> Vec<Vec<u8>> {
        let line = header.strip_suffix(b"\n").expect("a line end");
        let mut tokens: Vec<Vec<u8>> = line.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect();
        tokens.sort();
        tokens
    }

    #[test]
    fn a_header_that_is_read_is_written_with_the_same_tokens() {
        for header in [
            "YUV4MPEG2 W5 H3\n",
            "YUV4MPEG2 W5 H3 C420\n",
            "YUV4MPEG2 W5 H3 F25:1 Cmono\n",
            "YUV4MPEG2 W1920 H1080 F30000:1001 Ip A1:1 C420jpeg XYSCSS=420JPEG XCOLORRANGE=LIMITED\n",
            "YUV4MPEG2 W720 H576 F25:1 Ib A59:54 C420paldv XYSCSS=420PALDV\n",
            "YUV4MPEG2 W720 H480 It A0:0 C420mpeg2 XCOLORRANGE=FULL XCOLORMATRIX=BT709\n",
            "YUV4MPEG2 W5 H3 Im A4294967295:1 C422 X Xa=b Xa=b\n",
            "YUV4MPEG2 W5 H3 I? C444 XCOLORRANGE=OTHER\n",
        ] {
            assert_eq!(tokens(&again(header.as_bytes())), tokens(header.as_bytes()), "{header}");
        }
    }

    #[test]
    fn what_has_become_of_a_stream_is_what_the_header_says() {
        let tags = StreamTags {
            interlacing: Some(Interlacing::Unknown),
            aspect: Some(PixelAspect { num: 4, den: 3 }),
            chroma: Some("420mpeg2"),
            says_range: true,
            comments: vec![b"YSCSS=420MPEG2".to_vec(), b"kept".to_vec()],
            origin: None,
        };
        let mut meta = Meta::new(Format::I420, Size { width: 8, height: 6 });
        let text = |meta: &Meta| String::from_utf8(head(meta, None, Some(&tags)).unwrap()).unwrap();
        meta.picture_mut().yuv.siting = Siting::Left;
        let rest = "XYSCSS=420MPEG2 Xkept\n";
        assert_eq!(text(&meta), format!("YUV4MPEG2 W8 H6 I? A4:3 C420mpeg2 XCOLORRANGE=LIMITED {rest}"));
        meta.picture_mut().format = Format::I444;
        assert_eq!(text(&meta), "YUV4MPEG2 W8 H6 I? A4:3 C444 XCOLORRANGE=LIMITED XYSCSS=444 Xkept\n");
    }

    #[test]
    fn a_header_that_would_not_read_back_is_refused() {
        let comments = vec![vec![b'x'; LONGEST - 40]];
        let tags = StreamTags { comments, says_range: true, ..StreamTags::default() };
        let meta = Meta::new(Format::I444, Size { width: 10_000, height: 10_000 });
        let error = head(&meta, None, Some(&tags)).unwrap_err().to_string();
        assert!(error.contains("a y4m header can have at most 4096; shorten the comments"), "{error}");
    }

    /// A tag with one of these values; `None` for a missing tag.
    fn tag(letter: &'static str, values: &'static [&'static str]) -> impl Strategy<Value = Option<Vec<u8>>> {
        prop_oneof![
            Just(None),
            proptest::sample::select(values).prop_map(move |value| Some(format!("{letter}{value}").into_bytes())),
        ]
    }

    fn comment() -> impl Strategy<Value = Option<Vec<u8>>> {
        let byte = any::<u8>().prop_filter("not a space or a line end", |byte| !matches!(byte, b' ' | b'\n'));
        let odd = proptest::collection::vec(byte, 0..40).prop_map(|bytes| [b"X".as_slice(), &bytes].concat());
        let known = proptest::sample::select(vec!["XCOLORRANGE=FULL", "XCOLORRANGE=LIMITED", "XCOLORMATRIX=BT601"]);
        prop_oneof![4 => odd.prop_map(Some), 1 => known.prop_map(|text| Some(text.as_bytes().to_vec())), 1 => Just(None)]
    }

    proptest! {
        #[test]
        fn any_header_is_written_with_its_tokens_and_reads_back(
            width in 1..=65_536u32, height in 1..=65_536u32,
            rate in tag("F", &["25:1", "30000:1001", "1:7"]),
            interlacing in tag("I", &["p", "t", "b", "m", "?"]),
            aspect in tag("A", &["1:1", "0:0", "16:11", "4294967295:3", "10:10"]),
            chroma in tag("C", &["420", "420jpeg", "420mpeg2", "420paldv", "422", "444", "mono"]),
            comments in proptest::collection::vec(comment(), 0..5),
            turned in 0..9usize,
        ) {
            let sides = [Some(format!("W{width}").into_bytes()), Some(format!("H{height}").into_bytes())];
            let all = sides.into_iter().chain([rate, interlacing, aspect, chroma]).chain(comments);
            let mut tags: Vec<Vec<u8>> = all.flatten().collect();
            // Keeps only one range tag and one matrix tag, because of several such tags only the last tag counts.
            let is_colour = |tag: &[u8], what: &[u8]| tag.starts_with(what);
            for what in [b"XCOLORRANGE=".as_slice(), b"XCOLORMATRIX="] {
                let mut seen = false;
                tags.retain(|tag| !is_colour(tag, what) || !std::mem::replace(&mut seen, true));
            }
            let middle = turned % tags.len();
            tags.rotate_left(middle);
            let header = [b"YUV4MPEG2 ".as_slice(), &tags.join(&b' '), b"\n"].concat();
            let written = again(&header);
            prop_assert_eq!(tokens(&written), tokens(&header));
            prop_assert_eq!(probe(&written), probe(&header));
            prop_assert_eq!(again(&written), written);
        }
    }

    #[test]
    fn the_header_says_what_the_frames_are() {
        let mut meta = Meta::new(Format::I420, Size { width: 640, height: 480 });
        let text = |meta: &Meta, rate| String::from_utf8(head(meta, rate, None).unwrap()).unwrap();
        assert_eq!(
            text(&meta, Rate::new(30_000, 1001)),
            "YUV4MPEG2 W640 H480 F30000:1001 Ip A1:1 C420jpeg XCOLORRANGE=LIMITED\n"
        );
        meta.picture_mut().yuv = Yuv { matrix: Some(YuvMatrix::Bt709), full_range: true, ..Yuv::default() };
        meta.picture_mut().format = Format::Gray8;
        assert_eq!(text(&meta, None), "YUV4MPEG2 W640 H480 F0:0 Ip A1:1 Cmono XCOLORRANGE=FULL XCOLORMATRIX=BT709\n");
        meta.picture_mut().format = Format::Rgba8;
        assert!(head(&meta, None, None).unwrap_err().to_string().contains("convert format=i420"));
    }
}
