//! Pictures in memory: read from any file that ffmpeg decodes, put side by side, compared and stored.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Picture {
    pub(super) width: usize,
    pub(super) height: usize,
    rgb: Vec<u8>,
}

impl Picture {
    pub(super) fn new(width: usize, height: usize, rgb: Vec<u8>) -> Picture {
        assert_eq!(rgb.len(), width * height * 3);
        Picture { width, height, rgb }
    }

    /// All frames of a picture or video file.
    pub(super) fn all(file: &Path) -> Vec<Picture> {
        let options = ["-fps_mode", "passthrough", "-f", "image2pipe", "-c:v", "ppm", "-pix_fmt", "rgb24", "-"];
        let mut command = ffmpeg();
        let bytes = fed(command.arg("-i").arg(file).args(options), &[]);
        let (mut rest, mut frames) = (&bytes[..], Vec::new());
        while !rest.is_empty() {
            let mut line = || {
                let end = rest.iter().position(|byte| *byte == b'\n').unwrap();
                let (line, after) = rest.split_at(end);
                rest = &after[1..];
                std::str::from_utf8(line).unwrap()
            };
            let (kind, size, most) = (line(), line(), line());
            assert_eq!((kind, most), ("P6", "255"));
            let (width, height) = size.split_once(' ').unwrap();
            let (width, height) = (width.parse().unwrap(), height.parse().unwrap());
            let (rgb, after) = rest.split_at(width * height * 3);
            rest = after;
            frames.push(Picture::new(width, height, rgb.to_vec()));
        }
        frames
    }

    /// The only frame of a picture file.
    pub(super) fn of(file: &Path) -> Picture {
        let frames: [Picture; 1] = Picture::all(file).try_into().unwrap_or_else(|_| panic!("{}", file.display()));
        frames.into_iter().next().unwrap()
    }

    /// Both pictures in one row, the taller one without its lowest rows.
    pub(super) fn beside(&self, right: &Picture) -> Picture {
        let rows = self.rows().zip(right.rows());
        let rgb: Vec<u8> = rows.flat_map(|(left, right)| left.iter().chain(right)).copied().collect();
        Picture::new(self.width + right.width, self.height.min(right.height), rgb)
    }

    pub(super) fn above(&self, below: &Picture) -> Picture {
        assert_eq!(self.width, below.width);
        Picture::new(self.width, self.height + below.height, [&self.rgb[..], &below.rgb].concat())
    }

    /// The mean colour of a part of the picture.
    pub(super) fn mean(&self, x: usize, y: usize, width: usize, height: usize) -> [f64; 3] {
        let mut sums = [0.0; 3];
        for row in self.rows().skip(y).take(height) {
            for pixel in row[x * 3..(x + width) * 3].as_chunks::<3>().0 {
                (0..3).for_each(|channel| sums[channel] += f64::from(pixel[channel]));
            }
        }
        sums.map(|sum| sum / (width * height) as f64)
    }

    /// The means of squares of 10x10 pixels.
    pub(super) fn blocks(&self) -> Picture {
        let (columns, rows) = (self.width / 10, self.height / 10);
        let means = (0..columns * rows).map(|block| self.mean(block % columns * 10, block / columns * 10, 10, 10));
        Picture::new(columns, rows, means.flat_map(|mean| mean.map(|value| value.round() as u8)).collect())
    }

    /// The peak signal-to-noise ratio in dB; infinite for equal pictures.
    pub(super) fn psnr(&self, other: &Picture) -> f64 {
        assert_eq!((self.width, self.height), (other.width, other.height), "the sizes of the compared pictures");
        let squares = self.rgb.iter().zip(&other.rgb).map(|(a, b)| f64::from(a.abs_diff(*b)).powi(2));
        let mean = squares.sum::<f64>() / self.rgb.len() as f64;
        20.0 * 255.0_f64.log10() - 10.0 * mean.log10()
    }

    /// Writes a file whose ending names the format.
    pub(super) fn write(&self, file: &Path, options: &[&str]) {
        fed(self.reader().args(options).arg(file), &self.rgb);
    }

    /// Writes a PNG for the page, with few colours if it would be large otherwise.
    pub(super) fn store(&self, file: &Path) {
        self.write(file, &["-pred", "mixed", "-compression_level", "9"]);
        for (bytes, colors, dither) in [(45_000, 256, "sierra2_4a"), (55_000, 64, "none")] {
            if std::fs::metadata(file).unwrap().len() > bytes {
                let palette = format!("[a]palettegen=max_colors={colors}[p];[b][p]paletteuse=dither={dither}");
                self.write(file, &["-vf", &format!("split[a][b];{palette}"), "-compression_level", "9"]);
            }
        }
    }

    fn rows(&self) -> impl Iterator<Item = &[u8]> {
        self.rgb.chunks_exact(self.width * 3)
    }

    fn reader(&self) -> Command {
        let mut command = ffmpeg();
        let size = format!("{}x{}", self.width, self.height);
        command.args(["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", &size, "-i", "-"]);
        command
    }
}

/// Encodes frames as a video with these options of ffmpeg.
pub(super) fn encode(frames: &[Picture], fps: u32, options: &str, file: &Path) {
    let bytes: Vec<u8> = frames.iter().flat_map(|frame| &frame.rgb).copied().collect();
    let size = format!("{}x{}", frames[0].width, frames[0].height);
    let mut command = ffmpeg();
    command.args(["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", &size, "-r", &fps.to_string(), "-i", "-"]);
    fed(command.args(options.split_whitespace()).arg(file), &bytes);
}

fn ffmpeg() -> Command {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-y"]);
    command
}

/// Feeds a command and returns what it prints.
fn fed(command: &mut Command, input: &[u8]) -> Vec<u8> {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("`cargo xtask test` installs ffmpeg");
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        // ffmpeg may close its input early; its exit code says whether that is an error.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().unwrap()
    });
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
