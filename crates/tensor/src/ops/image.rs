//! How pictures become tensors, and tensors pictures.
//!
//! Owns the settings: size, channels, normalising and order.
//! Does not compute.

use crate::ops::error::TensorError;

/// Where channels are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ChannelLayout {
    /// A plane per channel: [1, channels, height, width].
    #[default]
    Nchw,
    /// Channels side by side: [1, height, width, channels].
    Nhwc,
}

/// How pixels are chosen where sizes differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ResizeMode {
    /// The pixel that the centre falls into.
    Nearest,
    /// Between the four around the centre, with centres at halves and edges repeated.
    #[default]
    Bilinear,
}

/// How a picture's bytes and a tensor's values correspond.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageSpec {
    /// Height and width of the tensor; those of the picture where none is said.
    pub size: Option<(usize, usize)>,
    /// Which of `r`, `g`, `b`, `a` each channel is, in order, such as `rgb` or `bgr`. One channel of a tensor that becomes
    /// a picture is gray.
    pub channels: String,
    /// Taken off byte / 255, per channel.
    pub mean: [f32; 4],
    /// What is left is divided by this, per channel.
    pub std: [f32; 4],
    /// Where channels are.
    pub layout: ChannelLayout,
    /// How pixels are chosen.
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
    /// Its channels by number, checked.
    pub(crate) fn numbers(&self, op: &'static str) -> Result<Vec<usize>, TensorError> {
        let number = |letter: char| "rgba".find(letter);
        let numbers: Option<Vec<usize>> = self.channels.chars().map(number).collect();
        let usable = numbers.filter(|numbers| matches!(numbers.len(), 1 | 3 | 4));
        let divides = self.std[..self.channels.len().min(4)].iter().all(|std| *std != 0.0);
        match usable {
            Some(numbers) if divides => Ok(numbers),
            Some(_) => {
                Err(TensorError::Setting { op, problem: format!("std is {:?}; no channel's may be 0", self.std) })
            }
            None => {
                let problem =
                    format!("channels `{}`; expected 1, 3 or 4 letters of `rgba`, such as `rgb`", self.channels);
                Err(TensorError::Setting { op, problem })
            }
        }
    }

    /// The lengths of a tensor of so many channels.
    pub(crate) fn lengths(&self, channels: usize, height: usize, width: usize) -> [usize; 4] {
        match self.layout {
            ChannelLayout::Nchw => [1, channels, height, width],
            ChannelLayout::Nhwc => [1, height, width, channels],
        }
    }
}
