//! The size of small data that handlers load from files: the image of `overlay`, the cube of `lut`.
//!
//! The size is `None` for a file that cannot be read; the handler that loads the file reports the error.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use vramp_kernels::pixel::cube;
use vramp_plan::catalog::SettingValues;

use crate::draw::overlay;

/// Number of bytes at the start of a .cube file that are searched for the size of the cube.
const MOST_HEADER_BYTES: u64 = 64 << 10;

pub(crate) fn overlay_bytes(settings: &SettingValues) -> Option<u64> {
    let size = imagesize::size(file(settings)?).ok()?;
    let pixels = (size.width as u64).checked_mul(size.height as u64)?;
    (pixels <= overlay::MOST_PIXELS).then(|| 4 * pixels)
}

pub(crate) fn lut_bytes(settings: &SettingValues) -> Option<u64> {
    cube_bytes(file(settings)?)
}

fn file(settings: &SettingValues) -> Option<&Path> {
    let path = Path::new(settings.text("path")?);
    path.metadata().ok()?.is_file().then_some(path)
}

/// The bytes of small data for a .cube file; zero if the file has only curves and no cube.
fn cube_bytes(path: &Path) -> Option<u64> {
    let mut lines = BufReader::new(File::open(path).ok()?.take(MOST_HEADER_BYTES)).lines();
    let said = lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| line.trim().strip_prefix("LUT_3D_SIZE")?.trim().parse().ok());
    Some(said.map_or(0, cube::small_bytes))
}

#[cfg(test)]
mod tests {
    use vramp_plan::catalog::Value;

    use super::*;

    #[test]
    fn a_picture_of_impossible_sides_has_no_answer() {
        let path = std::env::temp_dir().join(format!("vramp-small-{}.bmp", std::process::id()));
        let mut header = b"BM".to_vec();
        header.resize(54, 0);
        header[14] = 40;
        for byte in [21, 25] {
            header[byte] = 0x80;
        }
        std::fs::write(&path, &header).expect("the file is written");
        let mut settings = SettingValues::default();
        settings.set("path", Value::Text(path.display().to_string()));
        assert_eq!(overlay_bytes(&settings), None);
        std::fs::remove_file(path).expect("it is there");
    }
}
