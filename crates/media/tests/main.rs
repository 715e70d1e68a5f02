//! Tests of ffmpeg processes. `cargo xtask test` installs ffmpeg.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failing unwrap in a test is a failing test")]

mod clips;
mod decoding;
mod describing;
mod encoding;
mod ending;
