//! Live streams that break and come back, and a camera.

use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use crate::program::{command, dir, ends_with, json, vramp_in};

use super::rtsp::RtspServer;
use super::{Killed, times, wait_until};

const PICTURES: &str = "-re -f lavfi -i testsrc2=s=160x120:r=15 -c:v libx264 -preset ultrafast -tune zerolatency -g 8";

/// The program, and what it has printed on standard error so far.
pub(crate) struct Watched {
    child: Child,
    err: std::sync::Arc<std::sync::Mutex<String>>,
}

impl Watched {
    fn start(dir: &Path, args: &[&str]) -> Watched {
        let mut command = command(args);
        command.current_dir(dir);
        Watched::spawn(command)
    }

    pub(crate) fn spawn(mut command: Command) -> Watched {
        let mut child = command.spawn().unwrap();
        let err = std::sync::Arc::<std::sync::Mutex<String>>::default();
        let (own, mut from) = (std::sync::Arc::clone(&err), child.stderr.take().unwrap());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = std::io::Read::read(&mut from, &mut bytes) {
                own.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Watched { child, err }
    }

    pub(crate) fn err(&self) -> String {
        self.err.lock().unwrap().clone()
    }

    pub(crate) fn wait_for(&self, words: &str) {
        let begun = std::time::Instant::now();
        while !self.err().contains(words) {
            assert!(begun.elapsed() < Duration::from_secs(60), "waited in vain for `{words}`:\n{}", self.err());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for a line of progress with frames, from this position of the output on.
    pub(crate) fn wait_for_frames(&self, from: usize) {
        wait_until("frames arrive", || {
            let has_frames =
                |line: &str| line.contains(" fps") && !line.contains(" 0 frames") && !line.contains(" 0.0 fps");
            self.err()[from..].lines().any(has_frames)
        });
    }

    /// Ends the run as Ctrl-C does.
    pub(crate) fn interrupt(mut self) -> (Option<i32>, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let code = self.child.wait().unwrap().code();
        std::thread::sleep(Duration::from_millis(50));
        (code, self.err())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

fn free_port() -> u16 {
    std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Cuts a stream and restores it: the run continues, tells how long the stream was gone, and records both parts with
/// the gap between them.
fn survives_a_cut(dir: &Path, address: &str, mut send: impl FnMut() -> Killed) {
    let sender = send();
    let run = format!("video {address} timeout=3 ! video cut.mp4");
    let watched = Watched::start(dir, &["run", &run, "--cpu"]);
    watched.wait_for_frames(0);
    drop(sender);
    watched.wait_for("has stopped, and is opened again");
    let sender = send();
    watched.wait_for("is back; it was gone for");
    watched.wait_for_frames(watched.err().len());
    let (code, err) = watched.interrupt();
    assert_eq!(code, Some(130), "{err}");
    drop(sender);
    let times = times(dir, "cut.mp4");
    // The run notices the cut after 3 s. Shorter gaps are frames that UDP loses on a busy machine.
    let gaps = times.windows(2).filter(|pair| pair[1] - pair[0] > 3.0).count();
    assert_eq!(gaps, 1, "{times:?}");
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
}

#[test]
fn a_udp_stream_that_is_cut_comes_back() {
    let dir = dir("video_udp");
    let port = free_port();
    let address = format!("udp://127.0.0.1:{port}");
    survives_a_cut(&dir, &address, || {
        Killed::ffmpeg(&dir, &format!("{PICTURES} -f mpegts udp://127.0.0.1:{port}?pkt_size=1316"))
    });
}

#[test]
fn an_rtsp_stream_that_is_cut_comes_back() {
    let dir = dir("video_rtsp");
    let server = RtspServer::start(&dir);
    let address = server.address();
    survives_a_cut(&dir, &address, || server.send());
}

#[test]
fn an_hls_folder_that_stands_still_continues_and_a_finished_one_ends() {
    let dir = dir("video_hls");
    let segments = |more: &str| format!("{PICTURES} -f hls -hls_time 1 -hls_list_size 4 {more} live.m3u8");
    let sender = Killed::ffmpeg(&dir, &segments("-hls_flags append_list+omit_endlist"));
    wait_until("segments are there", || {
        std::fs::read_to_string(dir.join("live.m3u8")).is_ok_and(|list| list.matches(".ts").count() >= 2)
    });
    let watched = Watched::start(&dir, &["run", "video live.m3u8 timeout=30 ! null", "--cpu"]);
    watched.wait_for_frames(0);
    drop(sender);
    std::thread::sleep(Duration::from_secs(5));
    let sender = Killed::ffmpeg(&dir, &segments("-hls_flags append_list+omit_endlist+discont_start"));
    watched.wait_for("is back; it was gone for");
    let (code, err) = watched.interrupt();
    assert_eq!(code, Some(130), "{err}");
    drop(sender);
    super::make(&dir, "-f lavfi -i testsrc2=s=64x48:r=15:d=2 -c:v libx264 -g 15 -f hls -hls_time 1", "whole.m3u8");
    let run = ends_with(0, vramp_in(&dir, &["run", "video whole.m3u8 ! null", "--cpu", "--json"]));
    assert_eq!(json(&run)["frames"].as_u64(), Some(30));
}

#[test]
fn a_made_up_camera_gives_frames_at_its_pace_and_is_probed_or_set() {
    let dir = dir("video_camera");
    for settings in ["device=lavfi:testsrc2=s=160x120:r=25", "device=lavfi:testsrc2 size=160x120 fps=25"] {
        let run = format!("camera {settings} ! resize 80x60 ! null");
        let run = ends_with(0, vramp_in(&dir, &["run", &run, "--cpu", "--frames", "30", "--json"]));
        let report = json(&run);
        assert_eq!(
            report["frames_out"].as_u64().unwrap() + report["dropped"]["late"].as_u64().unwrap(),
            30,
            "{report}"
        );
        assert!(report["seconds"].as_f64().unwrap() > 0.9, "{report}");
    }
}
