//! `y4m`: writes uncompressed video with a one-line header.
//!
//! Owns the formats such a stream can have, its header, and where it goes.
//! Does not convert: the planner puts a `convert` in front where one is needed.
//!
//! Always: eight bits a sample; what this writes, the source of the same name reads back unchanged; a file has its
//! final name only once the stream has ended, and then holds whole frames, also after an error.

use vramp_plan::catalog::{Entry, Input, Liveness, PathUse, PortMedia, Status, ValueType};
use vramp_plan::{Format, Rate};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Matrix, Meta, PartialFile, Setup, Worker};

use super::frame_writer::{FrameWriter, PARTIAL, replaces};
use super::outlet;
use crate::declare::required;

/// What the sink `y4m` declares.
pub static ENTRY: Entry = Entry {
    name: "y4m",
    about: "writes YUV4MPEG2 video to a file or standard output",
    example: "pattern frames=30 ! y4m path=out.y4m",
    inputs: &[Input {
        media: PortMedia::video(&[Format::I420, Format::I422, Format::I444, Format::Gray8]),
        ..Input::VIDEO
    }],
    settings: &[
        required("path", ValueType::Path(PathUse::Write), Liveness::Fixed, "a file, or - for standard output"),
        PARTIAL,
    ],
    bare: Some("path"),
    status: Status::Runs,
    ..Entry::SINK
};

/// Writes frames.
struct Y4m {
    settings: Settings,
    state: State,
}

/// What was set, and the rate of the plan.
struct Settings {
    path: String,
    /// Whether an unfinished file replaces an older one.
    replaces: bool,
    rate: Option<Rate>,
}

/// What changes from frame to frame.
#[derive(Default)]
struct State {
    writer: Option<FrameWriter>,
}

impl FrameHandler for Y4m {
    fn start(&mut self) -> Result<(), HandlerError> {
        let path = &self.settings.path;
        self.state.writer = Some(FrameWriter::new(path, outlet::open(path).map_err(HandlerError::failed)?));
        Ok(())
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let (Some(frame), Some(writer)) = (call.input(0), &mut self.state.writer) else { return Ok(Flow::Filtered) };
        let written = if writer.is_empty() {
            let head = head(frame.meta(), self.settings.rate)?;
            writer.write(format!("{head}\nFRAME\n").as_bytes(), frame.meta(), &frame.bytes())
        } else {
            writer.write(b"FRAME\n", frame.meta(), &frame.bytes())
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

/// The header of a stream of such frames, without its line end.
fn head(meta: &Meta, rate: Option<Rate>) -> Result<String, HandlerError> {
    let chroma = match meta.format {
        // `convert` takes chroma to be in the middle of its pixels, which is what this tag says.
        Format::I420 => "420jpeg",
        Format::I422 => "422",
        Format::I444 => "444",
        Format::Gray8 => "mono",
        other => {
            return Err(HandlerError::failed(format!("y4m cannot hold {other}; put `convert format=i420` in front")));
        }
    };
    let (width, height) = (meta.size.width, meta.size.height);
    // 0:0 is how such a header says that it does not know.
    let (num, den) = rate.map_or((0, 0), |rate| (rate.num(), rate.den()));
    let range = if meta.yuv.full_range { "FULL" } else { "LIMITED" };
    let matrix = match meta.yuv.matrix {
        None => "",
        Some(Matrix::Bt601) => " XCOLORMATRIX=BT601",
        Some(Matrix::Bt709) => " XCOLORMATRIX=BT709",
    };
    Ok(format!("YUV4MPEG2 W{width} H{height} F{num}:{den} Ip A1:1 C{chroma} XCOLORRANGE={range}{matrix}"))
}

/// Makes the sink `y4m`.
pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let path = setup.settings.text("path").ok_or_else(|| HandlerError::failed("the setting `path` is missing"))?;
    let settings = Settings { path: path.to_owned(), replaces: replaces(setup.settings), rate: setup.rate };
    Ok(Worker::frames(Y4m { settings, state: State::default() }))
}

#[cfg(test)]
mod tests {
    use vramp_plan::Size;
    use vramp_runtime::Yuv;

    use super::*;

    #[test]
    fn the_header_says_what_the_frames_are() {
        let mut meta = Meta::new(Format::I420, Size { width: 640, height: 480 });
        let text = |meta: &Meta, rate| head(meta, rate).unwrap();
        assert_eq!(
            text(&meta, Rate::new(30_000, 1001)),
            "YUV4MPEG2 W640 H480 F30000:1001 Ip A1:1 C420jpeg XCOLORRANGE=LIMITED"
        );
        meta.yuv = Yuv { matrix: Some(Matrix::Bt709), full_range: true };
        meta.format = Format::Gray8;
        assert_eq!(text(&meta, None), "YUV4MPEG2 W640 H480 F0:0 Ip A1:1 Cmono XCOLORRANGE=FULL XCOLORMATRIX=BT709");
        meta.format = Format::Rgba8;
        assert!(head(&meta, None).unwrap_err().to_string().contains("convert format=i420"));
    }
}
