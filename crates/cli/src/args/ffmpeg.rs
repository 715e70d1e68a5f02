//! The option that names the ffmpeg of `video` and `camera`.

use std::borrow::Cow;
use std::path::PathBuf;

use clap::ValueHint;
use vramp::handlers::with_ffmpeg;
use vramp::media::Tools;
use vramp::runtime::Registry;

#[derive(Clone, Default, clap::Args)]
pub(crate) struct FfmpegArg {
    /// The ffmpeg that decodes and encodes `video` and `camera`, with ffprobe beside it; defaults to the one in PATH
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    ffmpeg: Option<PathBuf>,
}

impl FfmpegArg {
    pub(crate) fn tools(&self) -> Tools {
        self.ffmpeg.as_ref().map_or_else(Tools::in_path, Tools::at)
    }

    /// The registry with this ffmpeg.
    pub(crate) fn set<'r>(&self, registry: &'r Registry) -> Cow<'r, Registry> {
        match &self.ffmpeg {
            Some(_) => Cow::Owned(with_ffmpeg(registry, self.tools())),
            None => Cow::Borrowed(registry),
        }
    }
}
