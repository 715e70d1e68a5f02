//! Addresses of videos: a file, or a URL that ffmpeg opens, and the options that belong to each.
//!
//! ffmpeg may open only the protocols of the address's own family: a playlist from the network cannot read files.

use std::ffi::OsString;
use std::time::Duration;

use vramp_plan::catalog::is_live_address;

/// Where a video is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address<'a> {
    File(&'a str),
    Url { scheme: &'a str, url: &'a str },
}

impl<'a> Address<'a> {
    /// Reads a path or URL. A URL begins with a scheme and `://`.
    pub fn of(text: &'a str) -> Address<'a> {
        let is_word = |scheme: &str| {
            scheme.len() > 1
                && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        };
        match text.split_once("://") {
            Some(("file", path)) => Address::File(path),
            Some((scheme, _)) if is_word(scheme) => Address::Url { scheme, url: text },
            _ => Address::File(text),
        }
    }

    /// Whether the source sends in real time and cannot wait.
    pub fn is_live(self) -> bool {
        matches!(self, Address::Url { url, .. } if is_live_address(url))
    }

    /// ffmpeg's input options and the input itself. `timeout` bounds each wait for the network.
    pub(crate) fn input(self, timeout: Duration) -> Vec<OsString> {
        let micros = timeout.as_micros().to_string();
        let mut arguments: Vec<&str> = Vec::new();
        let url = match self {
            Address::File(path) => {
                arguments.extend(["-protocol_whitelist", "file,crypto,data"]);
                // With its protocol, so that a name with a dash or a colon is a name.
                format!("file:{path}")
            }
            Address::Url { scheme, url } => {
                let scheme = scheme.to_ascii_lowercase();
                let network =
                    "tcp,tls,udp,rtp,srtp,crypto,data,http,https,httpproxy,rtsp,rtsps,rtmp,rtmps,rtmpt,srt,unix";
                arguments.extend(["-protocol_whitelist", network]);
                if self.is_live() {
                    // By default ffmpeg looks into a stream for five seconds.
                    arguments.extend(["-analyzeduration", "2000000"]);
                }
                match scheme.as_str() {
                    "rtsp" | "rtsps" => arguments.extend(["-rtsp_flags", "prefer_tcp", "-timeout", &micros]),
                    "udp" => arguments.extend(["-timeout", &micros, "-overrun_nonfatal", "1"]),
                    "http" | "https" => arguments.extend([
                        "-rw_timeout",
                        &micros,
                        "-reconnect",
                        "1",
                        "-reconnect_streamed",
                        "1",
                        "-reconnect_delay_max",
                        "4",
                    ]),
                    "rtp" => {}
                    _ => arguments.extend(["-rw_timeout", &micros]),
                }
                url.to_owned()
            }
        };
        let mut input: Vec<OsString> = arguments.into_iter().map(OsString::from).collect();
        input.extend([OsString::from("-i"), OsString::from(url)]);
        input
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_files_whatever_they_look_like() {
        for name in ["clip.mp4", "-i", "a:b.mp4", "C:\\clip.mp4", "no scheme://x", "://x", "img-%03d.png", "concat:a|b"]
        {
            assert_eq!(Address::of(name), Address::File(name));
            let input = Address::of(name).input(Duration::from_secs(1));
            assert_eq!(input.last().and_then(|last| last.to_str()), Some(format!("file:{name}").as_str()));
        }
        assert_eq!(Address::of("file:///tmp/a.mp4"), Address::File("/tmp/a.mp4"));
    }

    #[test]
    fn the_scheme_decides_whether_a_source_is_live() {
        for live in ["rtsp://cam/1", "RTSP://cam/1", "udp://127.0.0.1:5000", "srt://host:1", "rtmp://host/app"] {
            assert!(Address::of(live).is_live(), "{live}");
        }
        for other in ["http://host/clip.mp4", "https://host/live.m3u8", "rtsp", "clip.mp4"] {
            assert!(!Address::of(other).is_live(), "{other}");
        }
    }

    #[test]
    fn a_playlist_of_the_network_opens_no_files() {
        let input = Address::of("http://host/a.m3u8").input(Duration::from_secs(2));
        let allowed = input[1].to_str().unwrap().split(',').any(|protocol| protocol == "file");
        assert!(!allowed);
    }
}
