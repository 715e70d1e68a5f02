//! Settings for the conversion between images and tensors: size, channels, normalisation and layout.

use crate::ops::error::TensorError;

/// The order of axes in an image tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ChannelLayout {
    /// A plane per channel: [1, channels, height, width].
    #[default]
    Nchw,
    /// Channels side by side: [1, height, width, channels].
    Nhwc,
}

/// How an image is sampled if its size differs from the size of the tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ResizeMode {
    /// The pixel that contains the sample point.
    Nearest,
    /// Interpolates between the four nearest pixels. Pixel centres are at half-integers; pixels at the edges repeat.
    #[default]
    Bilinear,
}

/// The mapping between an image's bytes and a tensor's values.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageSpec {
    /// Height and width of the tensor; the default is the size of the image.
    pub size: Option<(usize, usize)>,
    /// The letter (`r`, `g`, `b`, `a`) of each channel in order, such as `rgb` or `bgr`. A tensor of one channel
    /// becomes a gray image.
    pub channels: String,
    /// Subtracted from byte / 255, per channel.
    pub mean: [f32; 4],
    /// Divides byte / 255 - mean, per channel.
    pub std: [f32; 4],
    pub layout: ChannelLayout,
    pub resize: ResizeMode,
}

impl Default for ImageSpec {
    fn default() -> Self {
        ImageSpec {
            size: None,
            channels: "rgb".to_owned(),
            mean: [0.0; 4],
            std: [1.0; 4],
            layout: ChannelLayout::default(),
            resize: ResizeMode::default(),
        }
    }
}

impl ImageSpec {
    /// The index of each channel in `rgba`. Fails if the letters or `std` are invalid.
    pub(crate) fn numbers(&self, op: &'static str) -> Result<Vec<usize>, TensorError> {
        let number = |letter: char| "rgba".find(letter);
        let numbers: Option<Vec<usize>> = self.channels.chars().map(number).collect();
        let usable = numbers.filter(|numbers| matches!(numbers.len(), 1 | 3 | 4));
        let divides = self.std[..self.channels.len().min(4)].iter().all(|std| *std != 0.0);
        match usable {
            Some(numbers) if divides => Ok(numbers),
            Some(_) => Err(TensorError::Setting {
                op,
                problem: format!("std is {:?}; it must not be 0 for any channel", self.std),
            }),
            None => {
                let problem =
                    format!("channels `{}`; expected 1, 3 or 4 letters of `rgba`, such as `rgb`", self.channels);
                Err(TensorError::Setting { op, problem })
            }
        }
    }

    /// The shape of a tensor with `channels` channels.
    pub(crate) fn lengths(&self, channels: usize, height: usize, width: usize) -> [usize; 4] {
        match self.layout {
            ChannelLayout::Nchw => [1, channels, height, width],
            ChannelLayout::Nhwc => [1, height, width, channels],
        }
    }
}
