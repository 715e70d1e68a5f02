//! Opening an ONNX file: from the path or the bytes to the decoded messages.
//!
//! Invariants: only regular files are read. Reading takes at most twice the size of the file and 64 MB, whatever the
//! file contains: its bytes once, and as much again for what is decoded ([`Allowance`]). Weights in other files take
//! at most the sizes of those files.

use std::path::Path;

use bytes::Bytes;
use prost::Message as _;

use super::allowance::Allowance;
use super::error::OnnxError;
use super::external::ExternalFiles;
use super::graph::OnnxGraph;
use super::proto::ModelProto;
use super::scan::{Kind, scan};
use super::weight::WeightReader;

/// An ONNX file that was read and decoded. Its graph is not yet checked.
#[derive(Debug)]
pub struct OnnxFile {
    model: ModelProto,
    external: ExternalFiles,
    allowance: Allowance,
    file_bytes: usize,
}

impl OnnxFile {
    /// Reads a file. External data may be in the folder of the file, and are read by [`graph`](OnnxFile::graph).
    #[cfg(not(target_arch = "wasm32"))]
    pub fn open(path: impl AsRef<Path>) -> Result<OnnxFile, OnnxError> {
        let path = path.as_ref();
        OnnxFile::read(whole_file(path)?, path.parent())
    }

    /// Decodes a file that is in memory. Without a folder, the model may have no external data.
    pub fn read(bytes: Bytes, folder: Option<&Path>) -> Result<OnnxFile, OnnxError> {
        let file_bytes = bytes.len();
        let mut allowance = Allowance::for_file(file_bytes);
        scan(Kind::Model, &bytes, &mut allowance)?;
        let model = ModelProto::decode(bytes).map_err(|error| OnnxError::malformed("the model", error))?;
        Ok(OnnxFile { model, external: ExternalFiles::of(folder), allowance, file_bytes })
    }

    pub fn file_bytes(&self) -> usize {
        self.file_bytes
    }

    /// The version of the format.
    pub fn ir_version(&self) -> i64 {
        self.model.ir_version
    }

    /// The name and the version of the program that wrote the file; either may be empty.
    pub fn producer(&self) -> (&str, &str) {
        (&self.model.producer_name, &self.model.producer_version)
    }

    /// The domains and versions of the ops.
    pub fn opsets(&self) -> impl ExactSizeIterator<Item = (&str, i64)> {
        self.model.opset_import.iter().map(|opset| (opset.domain.as_str(), opset.version))
    }

    /// Checks and normalises the graph, and reads external data.
    pub fn graph(self) -> Result<OnnxGraph, OnnxError> {
        let OnnxFile { model, mut external, mut allowance, .. } = self;
        let mut graph = OnnxGraph::read(model, WeightReader { external: &mut external, allowance: &mut allowance })?;
        graph.external_files = external.into_paths();
        Ok(graph)
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn whole_file(path: &Path) -> Result<Bytes, OnnxError> {
    use std::io::Read as _;

    /// Messages of the format are limited to 2 GB.
    const MOST_FILE_BYTES: u64 = (1 << 31) - 1;

    let unreadable = |error| OnnxError::Read { path: path.to_owned(), error };
    let file = vramp_files::open_regular(path).map_err(unreadable)?;
    let has = file.metadata().map_err(unreadable)?.len();
    if has > MOST_FILE_BYTES {
        return Err(OnnxError::FileTooLarge { path: path.to_owned(), has, most: MOST_FILE_BYTES });
    }
    let mut bytes = Vec::new();
    let reserved = bytes.try_reserve_exact(has as usize);
    reserved.map_err(|_| OnnxError::OutOfMemory { at: path.display().to_string(), needs: has })?;
    // A file that grows meanwhile is read up to its first size, so that the memory stays bounded.
    file.take(has).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes.into())
}
