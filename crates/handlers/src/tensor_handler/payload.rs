//! Which tensor a frame is, which frame a tensor becomes, and what a tensor's error means for a run.

use vramp_gpu::{Device, LendError, Lost, PlayError};
use vramp_plan::{Content, Format, Size};
use vramp_runtime::{Call, DeviceError, Frame, FrameContent, HandlerError, Meta, StartContext, TensorShape};
use vramp_tensor::{Context, DType, Tensor, TensorError};

type Lengths = Vec<usize>;

/// The tensor of a frame: over the frame's own memory on the device, a copy on the host.
pub(super) fn tensor_of(frame: &Frame, context: &Context) -> Result<Tensor, TensorError> {
    let (shape, dtype) = match &frame.meta().content {
        FrameContent::Video(picture) => (shape_of_picture(picture.format, picture.size), DType::U8),
        FrameContent::Tensor(shape) => (lengths(shape.dims()), shape.dtype()),
        FrameContent::Data { bytes } => shape_of_data(*bytes),
    };
    #[cfg(not(target_arch = "wasm32"))]
    if let Some(buffer) = frame.buffer() {
        return context.tensor_over(buffer, &shape, dtype);
    }
    let bytes = shape.iter().product::<usize>() * dtype.bytes();
    context.tensor_from_bytes(&frame.bytes()[..bytes], &shape, dtype)
}

/// The shape and type of the tensors of a port. A port without a link has no values.
pub(super) fn shape_of_content(content: Option<&Content>) -> (Lengths, DType) {
    match content {
        Some(Content::Video(frame)) => (shape_of_picture(frame.format, frame.size), DType::U8),
        Some(Content::Tensor(tensor)) => (lengths(&tensor.dims), tensor.dtype),
        Some(Content::Data { bytes, .. }) => shape_of_data(*bytes),
        Some(Content::Audio { .. }) | None => (vec![0], DType::U8),
    }
}

fn shape_of_picture(format: Format, size: Size) -> Lengths {
    let (height, width) = (size.height as usize, size.width as usize);
    match format {
        Format::Rgba8 => vec![height, width, 4],
        // Rows of bytes are padded to whole words.
        Format::Gray8 => vec![height, width.next_multiple_of(4), 1],
        _ => vec![format.frame_bytes(size) as usize],
    }
}

fn shape_of_data(bytes: u32) -> (Lengths, DType) {
    (vec![bytes.div_ceil(4) as usize], DType::F32)
}

fn lengths(dims: &[u32]) -> Lengths {
    dims.iter().map(|dim| *dim as usize).collect()
}

/// The frame that a result becomes, if it is what the output port carries.
pub(super) fn meta_of(made: &Tensor, output: Option<&Content>, call: &Call<'_>) -> Result<Meta, HandlerError> {
    // An output without a link takes anything.
    let Some(output) = output else { return own_shape(made) };
    let (wanted, dtype) = shape_of_content(Some(output));
    let refused = || misfit(made, output, &wanted, dtype);
    if made.dtype() != dtype {
        return Err(refused());
    }
    let lengths = made.shape().lengths();
    match output {
        Content::Video(frame) => {
            let lead = call.input(call.lead_port()).and_then(|lead| lead.meta().as_picture().copied());
            // The size of pictures may change during a run.
            let is_of = |size: &Size| is_picture(lengths, &shape_of_picture(frame.format, *size));
            let sizes = [lead.map(|lead| lead.size), Some(frame.size), size_of(lengths, frame.format)];
            let size = sizes.into_iter().flatten().find(is_of).ok_or_else(refused)?;
            let mut meta = Meta::new(frame.format, size);
            if let Some(lead) = lead {
                let picture = meta.picture_mut();
                (picture.yuv, picture.fields) = (lead.yuv, lead.fields);
            }
            Ok(meta)
        }
        Content::Tensor(_) | Content::Data { .. } if without_ones(lengths) == without_ones(&wanted) => {
            Meta::of(output).ok_or_else(refused)
        }
        _ => Err(refused()),
    }
}

/// Whether a result has the shape of a picture. A batch of one picture, and gray without an axis of channels, are the same
/// values.
fn is_picture(lengths: &[usize], picture: &[usize]) -> bool {
    let lengths = if lengths.len() > picture.len() { lengths.strip_prefix(&[1]).unwrap_or(lengths) } else { lengths };
    lengths == picture || picture.strip_suffix(&[1]) == Some(lengths)
}

fn own_shape(made: &Tensor) -> Result<Meta, HandlerError> {
    let dims: Vec<u32> = made.shape().lengths().iter().map(|length| *length as u32).collect();
    let shape = TensorShape::new(made.dtype(), &dims);
    shape.map(Meta::tensor).ok_or_else(|| HandlerError::failed(format!("its result has too many axes: {dims:?}")))
}

/// The size of a picture in rgba8, [height, width, 4], whatever its size.
fn size_of(lengths: &[usize], format: Format) -> Option<Size> {
    match *lengths {
        [height, width, 4] | [1, height, width, 4] if format == Format::Rgba8 => {
            Size::new(u32::try_from(width).ok()?, u32::try_from(height).ok()?)
        }
        _ => None,
    }
}

/// The lengths without axes of length 1, which change no value's place.
fn without_ones(lengths: &[usize]) -> Lengths {
    lengths.iter().copied().filter(|length| *length != 1).collect()
}

fn misfit(made: &Tensor, output: &Content, wanted: &[usize], dtype: DType) -> HandlerError {
    HandlerError::failed(format!(
        "its result is a tensor {:?} of {}, but its output carries {output}, a tensor {wanted:?} of {dtype}; reshape, \
         cast or convert the result (`tensor_to_image`)",
        made.shape().lengths(),
        made.dtype(),
    ))
}

/// A context on the side of the handler's frames.
pub(crate) fn context_for(start: &StartContext<'_>) -> Result<Context, HandlerError> {
    let builder = Context::builder().threads(start.threads());
    #[cfg(not(target_arch = "wasm32"))]
    if let Some(device) = start.device() {
        return builder.on(device).map_err(|error| failed(error, Some(device)));
    }
    Ok(builder.on_host())
}

/// The error of a run for an error of a tensor: the loss of a device is handled by the lane, and a call that finds too
/// little memory is repeated.
pub(crate) fn failed(error: TensorError, device: Option<&Device>) -> HandlerError {
    match (error, device) {
        (TensorError::Lost { reason, .. }, Some(_)) => {
            HandlerError::Device(DeviceError::Play(PlayError::Lost(Lost { reason })))
        }
        (TensorError::OutOfMemory { required_bytes, available_bytes, place: "device", .. }, Some(device)) => {
            let pool = device.pool().statistics();
            HandlerError::Device(DeviceError::Lend(LendError::OutOfBudget {
                owner: "tensor".into(),
                needed_bytes: required_bytes,
                available_bytes,
                held_bytes: pool.lent_bytes + pool.waiting_bytes,
                budget_bytes: pool.budget_bytes,
            }))
        }
        (error, _) => HandlerError::failed(error),
    }
}
