//! ffmpeg for the handlers `video` and `camera`: where it is, and what it has told about files.
//!
//! Probing a stream may take seconds, so a description is kept for the run that follows the plan. A file that has
//! changed since is described again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use vramp_media::{
    Abilities, Address, ColourMatrix, DescribeError, MediaFile, Reading, Tools, Unreadable, VideoColours, camera_input,
    describe, describe_camera,
};
use vramp_plan::catalog::ProbeError;
use vramp_plan::{Rate, Size};
use vramp_runtime::{Yuv, YuvMatrix};

/// Kept descriptions.
const MOST_KNOWN: usize = 64;

/// ffmpeg, and what it has told. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Videos {
    tools: Tools,
    known: Arc<Mutex<BTreeMap<String, KnownFile>>>,
    filters: Arc<OnceLock<BTreeSet<String>>>,
}

#[derive(Debug)]
struct KnownFile {
    media: MediaFile,
    /// Length and time of change; `None` for an address.
    stamp: Option<(u64, SystemTime)>,
}

impl Videos {
    pub fn new(tools: Tools) -> Videos {
        Videos { tools, ..Videos::default() }
    }

    pub(crate) fn tools(&self) -> &Tools {
        &self.tools
    }

    /// What is in a file or stream, and how its pictures are read.
    pub(crate) fn look(&self, address: &str, limit: Duration) -> Result<(MediaFile, Reading), ProbeError> {
        let media = self.described(address, stamp(address), || describe(&self.tools, address, limit))?;
        let reading = self.reading(address, &media)?;
        Ok((media, reading))
    }

    /// How the pictures of a camera are read.
    pub(crate) fn look_at_camera(
        &self,
        device: &str,
        size: Option<Size>,
        rate: Option<Rate>,
        limit: Duration,
    ) -> Result<Reading, ProbeError> {
        let input = camera_input(device, size, rate);
        let key = format!("{input:?}");
        let name = format!("camera {device}");
        let media = self.described(&key, None, || describe_camera(&self.tools, &name, input, limit));
        let media = media.map_err(|error| ProbeError {
            help: "`vramp doctor` lists the cameras, and `device=lavfi:testsrc2` is a made-up one".to_owned(),
            ..error
        })?;
        self.reading(&name, &media)
    }

    fn reading(&self, name: &str, media: &MediaFile) -> Result<Reading, ProbeError> {
        Reading::of(media, |filter| self.has_filter(filter)).map_err(|error: Unreadable| ProbeError {
            problem: format!("`{name}` cannot be read: {error}"),
            help: error.help().to_owned(),
        })
    }

    fn has_filter(&self, filter: &str) -> bool {
        let list = || self.tools.list(Abilities::Filters).unwrap_or_default();
        self.filters.get_or_init(list).contains(filter)
    }

    fn described(
        &self,
        key: &str,
        stamp: Option<(u64, SystemTime)>,
        describe: impl FnOnce() -> Result<MediaFile, DescribeError>,
    ) -> Result<MediaFile, ProbeError> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(key).filter(|found| found.stamp == stamp) {
            return Ok(found.media.clone());
        }
        let media = describe().map_err(|error| ProbeError { problem: error.to_string(), help: error.help() })?;
        let mut known = known();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(key.to_owned(), KnownFile { media: media.clone(), stamp });
        Ok(media)
    }
}

fn stamp(address: &str) -> Option<(u64, SystemTime)> {
    let Address::File(path) = Address::of(address) else { return None };
    let found = std::fs::metadata(path).ok()?;
    Some((found.len(), found.modified().ok()?))
}

/// The colours of a stream as those of its frames.
pub(crate) fn yuv(colours: VideoColours) -> Yuv {
    let matrix = colours.matrix.map(|matrix| match matrix {
        ColourMatrix::Bt601 => YuvMatrix::Bt601,
        ColourMatrix::Bt709 => YuvMatrix::Bt709,
    });
    Yuv { matrix, full_range: colours.full_range, siting: colours.siting }
}

/// The colours of frames as those of a stream.
pub(crate) fn colours(yuv: Yuv) -> VideoColours {
    let matrix = yuv.matrix.map(|matrix| match matrix {
        YuvMatrix::Bt601 => ColourMatrix::Bt601,
        YuvMatrix::Bt709 => ColourMatrix::Bt709,
    });
    VideoColours { matrix, full_range: yuv.full_range, siting: yuv.siting }
}
