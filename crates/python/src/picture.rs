//! A frame as a PNG file, for notebooks.

use vramp::plan::Format;

use crate::frame::PyFrame;

/// The picture as a PNG file. Fails in words if the frame is not a picture of one plane on the host.
pub(crate) fn png(frame: &PyFrame) -> Result<Vec<u8>, String> {
    let picture = frame.meta().as_picture().ok_or("the frame is not a picture")?;
    let color = match picture.format {
        Format::Rgba8 => png::ColorType::Rgba,
        Format::Rgb8 => png::ColorType::Rgb,
        Format::Gray8 => png::ColorType::Grayscale,
        other => return Err(format!("a picture in {other} cannot be drawn; add `convert rgba8` before `app`")),
    };
    if frame.is_on_device() {
        return Err("the frame is on the GPU; use the setting `space=cpu` of `app`".to_owned());
    }
    let plane = picture.format.planes(picture.size).next().ok_or("the format has no plane")?;
    let (row, stride) = (plane.row_bytes as usize, plane.stride as usize);
    let dense = |bytes: &[u8]| -> Vec<u8> { bytes.chunks(stride).flat_map(|line| &line[..row]).copied().collect() };
    let pixels = frame.with_bytes(dense).ok_or("the frame was sent")?;
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, picture.size.width, picture.size.height);
    encoder.set_color(color);
    encoder.set_compression(png::Compression::Fast);
    let write = |mut encoder: png::Writer<_>| encoder.write_image_data(&pixels);
    encoder.write_header().and_then(write).map_err(|problem| problem.to_string())?;
    Ok(file)
}
