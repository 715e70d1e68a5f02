//! Video files, cameras and streams, through ffmpeg processes.
//!
//! [`describe`] tells what is in a file, [`Reading`] decides in which format its pictures are read, a [`Decoder`] reads
//! raw frames straight into the caller's memory, and an [`Encoder`] writes a file. The frames travel through pipes in
//! NUT, which carries exact times. This is the only crate that starts processes. It knows neither frames nor handlers;
//! the handlers `video` and `camera` in crates/handlers use it.

mod address;
mod camera;
mod container;
mod decode;
mod describe;
mod encode;
mod nut;
mod pipe;
mod process;
mod reading;
mod sound;
mod tools;

pub use address::Address;
pub use camera::{Camera, camera_input, cameras};
pub use container::{Container, UnknownContainer};
pub use decode::{DecodeError, Decoder, DecoderInput, Decoding, NextFrame, Waiting};
pub use describe::{
    ANALYSIS, DescribeError, MediaFile, MediaStream, MediaStreamKind, VideoTrack, describe, describe_camera,
};
pub use encode::{EncodeError, Encoder, Encoding};
pub use nut::read::NutError;
pub use process::NotStarted;
pub use reading::{ColourMatrix, Reading, Unreadable, VideoColours};
pub use sound::{SoundSource, add_sound};
pub use tools::{Abilities, EncoderError, OLDEST, ToolError, Tools, check_encoder, install};
