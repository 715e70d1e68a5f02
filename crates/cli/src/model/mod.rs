//! `vramp model`: shows what is in an ONNX file (`inspect`), and runs a model on arrays from files (`run`).
//!
//! The library reads and runs models. This module reads and writes arrays, measures, and assigns exit codes.

mod device;
mod ending;
mod inputs;
mod inspect;
mod npy;
mod outputs;
mod ports;
mod progress;
mod run;

use std::path::Path;

use anyhow::anyhow;
use vramp::model::{Model, ModelError};
use vramp::tensor::ErrorKind;

use crate::args::ModelCommand;
use crate::failure::CliError;

pub(crate) fn run(command: &ModelCommand) -> Result<(), CliError> {
    match command {
        ModelCommand::Inspect(args) => inspect::run(args),
        ModelCommand::Run(args) => run::run(args),
    }
}

fn open(path: &Path) -> Result<Model, CliError> {
    Model::open(path).map_err(|error| failure(path, &error))
}

/// Errors of the file, its ops, its inputs and its needs have codes of their own. Other errors happen while it runs.
fn failure(path: &Path, error: &ModelError) -> CliError {
    let words = anyhow!("{}: {error}", path.display());
    match error {
        ModelError::Onnx(_) | ModelError::WrongInput { .. } | ModelError::InvalidNode { .. } => CliError::Wrong(words),
        ModelError::UnsupportedOps { .. } => CliError::NoPlan(words),
        ModelError::Node { error, .. } => of_kind(error.kind(), words),
        ModelError::Tensor(error) => of_kind(error.kind(), words),
    }
}

fn of_kind(kind: ErrorKind, words: anyhow::Error) -> CliError {
    match kind {
        ErrorKind::DimensionMismatch => CliError::Wrong(words),
        ErrorKind::NotSupported | ErrorKind::OutOfMemory => CliError::NoPlan(words),
        ErrorKind::Gone | ErrorKind::Other => CliError::Failed(words),
    }
}
