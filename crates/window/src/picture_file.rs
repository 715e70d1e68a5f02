//! Saves a shown frame as a PNG file.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use vramp_files::TemporaryFile;
use vramp_plan::Size;

use crate::error::WindowError;

/// Saves RGBA pixels in this folder under a name with the frame's number, and returns the path. An older file of the
/// same name is kept: the new file then has another name.
pub(crate) fn save(folder: &Path, number: u64, size: Size, pixels: &[u8]) -> Result<PathBuf, WindowError> {
    let mut copies = 1_u32..;
    loop {
        let name = match copies.next() {
            None | Some(1) => format!("vramp-{number:06}.png"),
            Some(copy) => format!("vramp-{number:06}-{copy}.png"),
        };
        let path = folder.join(name);
        if path.exists() {
            continue;
        }
        let failed = |problem: String| WindowError::NotSaved { path: path.display().to_string(), problem };
        let file = TemporaryFile::beside(&path).map_err(|error| failed(error.to_string()))?;
        write(file.file(), size, pixels).map_err(|error| failed(error.to_string()))?;
        file.persist_noclobber(&path).map_err(|error| failed(error.to_string()))?;
        return Ok(path);
    }
}

fn write(file: &std::fs::File, size: Size, pixels: &[u8]) -> Result<(), png::EncodingError> {
    let mut out = BufWriter::new(file);
    let mut png = png::Encoder::new(&mut out, size.width, size.height);
    png.set_color(png::ColorType::Rgba);
    let mut writer = png.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failing unwrap in a test is a failing test")]

    use super::*;

    #[test]
    fn a_saved_picture_has_its_pixels_and_replaces_nothing() {
        let folder = std::env::temp_dir().join(format!("vramp-window-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let size = Size { width: 2, height: 1 };
        let first = save(&folder, 7, size, &[1, 2, 3, 255, 5, 6, 7, 0]).unwrap();
        let second = save(&folder, 7, size, &[9; 8]).unwrap();
        assert_eq!(first.file_name().unwrap(), "vramp-000007.png");
        assert_eq!(second.file_name().unwrap(), "vramp-000007-2.png");
        let mut read =
            png::Decoder::new(std::io::BufReader::new(std::fs::File::open(&first).unwrap())).read_info().unwrap();
        let mut pixels = vec![0; read.output_buffer_size().unwrap()];
        read.next_frame(&mut pixels).unwrap();
        assert_eq!(pixels, [1, 2, 3, 255, 5, 6, 7, 0]);
        let error = save(&folder.join("none"), 7, size, &[9; 8]).unwrap_err().to_string();
        assert!(error.contains("vramp-000007.png` cannot be written"), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
