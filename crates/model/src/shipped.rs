//! The two models in the repository and a picture for them, for measurements and demonstrations.
//! [NOTICE](../models/NOTICE) says where they are from.

/// Finds the person in a picture of 256x256 pixels, as a mask.
pub static SELFIE: &[u8] = include_bytes!("../models/selfie.onnx");

/// Finds faces in a picture of 128x128 pixels, with values from -1 to 1.
pub static BLAZEFACE: &[u8] = include_bytes!("../models/blazeface.onnx");

/// A picture of a person, 384x384, for the two models: a JPEG file.
pub static PORTRAIT: &[u8] = include_bytes!("../models/portrait.jpg");
