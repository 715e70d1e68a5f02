//! Copies between host and device for a window: uploads frames and overlays, and reads frames back to be saved.

use std::sync::Arc;
use std::time::Duration;

use vramp_gpu::{Buffer, Device, HostSource, Player, Recording};
use vramp_runtime::Frame;

use crate::error::WindowError;

/// How long a saved picture may take from the device to the host.
const READBACK: Duration = Duration::from_secs(10);

/// Bytes on the host, read when they are staged.
enum UploadedBytes {
    Frame(Frame),
    Image(Vec<u8>),
}

impl HostSource for UploadedBytes {
    fn len(&self) -> usize {
        match self {
            UploadedBytes::Frame(frame) => frame.bytes().len(),
            UploadedBytes::Image(bytes) => bytes.len(),
        }
    }

    fn read(&self, take: &mut dyn FnMut(&[u8])) {
        match self {
            UploadedBytes::Frame(frame) => take(&frame.bytes()),
            UploadedBytes::Image(bytes) => take(bytes),
        }
    }
}

/// Uploads to and reads from one device.
pub(crate) struct WindowTransfers {
    player: Player,
    recording: Recording<Buffer, UploadedBytes>,
    owner: Arc<str>,
}

impl WindowTransfers {
    pub(crate) fn on(device: &Device) -> Result<WindowTransfers, WindowError> {
        Ok(WindowTransfers {
            player: Player::on(device).build()?,
            recording: Recording::default(),
            owner: "window".into(),
        })
    }

    pub(crate) fn device(&self) -> &Device {
        self.player.device()
    }

    /// A copy of a frame on the device.
    pub(crate) fn upload(&mut self, frame: &Frame) -> Result<Buffer, WindowError> {
        self.send(UploadedBytes::Frame(frame.clone()))
    }

    /// A copy of an image on the device.
    pub(crate) fn upload_image(&mut self, image: Vec<u8>) -> Result<Buffer, WindowError> {
        self.send(UploadedBytes::Image(image))
    }

    fn send(&mut self, bytes: UploadedBytes) -> Result<Buffer, WindowError> {
        let buffer = self.player.device().lend_unplanned(bytes.len() as u64, &self.owner)?;
        self.recording.upload(&buffer, bytes)?;
        self.play()?;
        Ok(buffer)
    }

    /// The bytes of a frame on the device. Waits for the device.
    pub(crate) fn read(&mut self, buffer: &Buffer) -> Result<Vec<u8>, WindowError> {
        let not_read = |problem: String| WindowError::NotRead { problem };
        self.recording.download(buffer)?;
        self.play()?;
        let arrived = self.player.readbacks().wait(READBACK).map_err(|error| not_read(error.to_string()))?;
        let arrived = arrived.ok_or_else(|| not_read(format!("{} s have passed", READBACK.as_secs())))?;
        Ok(arrived.bytes(0).to_vec())
    }

    fn play(&mut self) -> Result<(), WindowError> {
        let played = self.player.play(&mut self.recording);
        // A refused recording must not be played with the next frame.
        self.recording.clear();
        Ok(played.map(|_| ())?)
    }
}
