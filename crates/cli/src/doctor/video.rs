//! Checks of what `video` and `camera` need: ffmpeg and ffprobe, the codecs that people use most, and cameras.

use std::collections::BTreeSet;

use vramp::media::{Abilities, ToolError, Tools, cameras};

use super::HealthCheck;
use super::fix::Fixes;

/// Codecs with the names of their decoders and encoders in ffmpeg.
const DECODERS: [(&str, &[&str]); 6] = [
    ("H.264", &["h264"]),
    ("H.265", &["hevc"]),
    ("VP9", &["vp9", "libvpx-vp9"]),
    ("AV1", &["libdav1d", "libaom-av1", "av1"]),
    ("MPEG-2", &["mpeg2video"]),
    ("ProRes", &["prores"]),
];
const ENCODERS: [(&str, &[&str]); 7] = [
    ("libx264", &["libx264"]),
    ("libx265", &["libx265"]),
    ("libvpx-vp9", &["libvpx-vp9"]),
    ("libsvtav1", &["libsvtav1"]),
    ("mpeg4", &["mpeg4"]),
    ("gif", &["gif"]),
    ("prores_ks", &["prores_ks"]),
];

pub(super) fn checks(tools: &Tools, fixes: &Fixes) -> Vec<HealthCheck> {
    let versions = tools.version().and_then(|ffmpeg| Ok((ffmpeg, tools.ffprobe_version()?)));
    let mut checks = match versions {
        Ok((ffmpeg, _)) => vec![HealthCheck::ok("ffmpeg", format!("version {ffmpeg}")), codecs(tools)],
        Err(error @ ToolError::NotStarted { .. }) => {
            let ToolError::NotStarted { reason } = error else { return Vec::new() };
            let words = format!("{reason}; `video` and `camera` need ffmpeg and ffprobe");
            vec![HealthCheck::warning("ffmpeg", words).fix(fixes.ffmpeg())]
        }
        Err(error) => vec![HealthCheck::warning("ffmpeg", error.to_string()).fix(fixes.ffmpeg())],
    };
    checks.push(camera());
    checks
}

fn codecs(tools: &Tools) -> HealthCheck {
    let (Ok(decoders), Ok(encoders)) = (tools.list(Abilities::VideoDecoders), tools.list(Abilities::VideoEncoders))
    else {
        return HealthCheck::warning("codecs", "ffmpeg does not list its codecs");
    };
    let words = format!("decodes {}; encodes {}", found(&DECODERS, &decoders), found(&ENCODERS, &encoders));
    if encoders.contains("libx264") {
        return HealthCheck::ok("codecs", words);
    }
    HealthCheck::warning("codecs", format!("{words}; without libx264, mp4 and mkv files need `codec=`"))
}

/// The codecs of a table that ffmpeg has.
fn found(table: &[(&str, &[&str])], there: &BTreeSet<String>) -> String {
    let has = |names: &[&str]| names.iter().any(|name| there.contains(*name));
    let names: Vec<&str> = table.iter().filter(|(_, names)| has(names)).map(|(name, _)| *name).collect();
    if names.is_empty() { "none of the usual codecs".to_owned() } else { names.join(", ") }
}

fn camera() -> HealthCheck {
    let list: Vec<String> =
        cameras().iter().map(|camera| format!("device={} {}", camera.device, camera.name)).collect();
    if !list.is_empty() {
        return HealthCheck::ok("cameras", list.join("; "));
    }
    if cfg!(target_os = "linux") {
        return HealthCheck::ok("cameras", "none found");
    }
    let system = if cfg!(windows) { "dshow" } else { "avfoundation" };
    HealthCheck::ok("cameras", format!("`ffmpeg -f {system} -list_devices true -i dummy` lists them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_are_named_by_any_of_their_decoders() {
        let there = ["hevc", "av1"].map(str::to_owned).into();
        assert_eq!(found(&DECODERS, &there), "H.265, AV1");
        assert_eq!(found(&DECODERS, &BTreeSet::new()), "none of the usual codecs");
    }
}
