//! Workloads of whole models.
//!
//! The models are files: two are in vramp's repository, and `cargo xtask models` fetches the others. The caller's context
//! decides whether a model runs on the CPU or on the GPU. Results on a GPU are read back within the measured time, because
//! other libraries are measured the same way. A model that is to run on a GPU, and dispatches nothing there, is an error.

use std::path::{Path, PathBuf};

use vramp_handlers::control::probe::hash_of_bytes;
use vramp_model::onnx::OnnxType;
use vramp_model::{Model, ModelError};
use vramp_tensor::{Context, DType, Tensor, TensorError};

use super::timing::Times;
use super::{BenchError, Effort, Measurement};

/// A model that is measured with an input of one shape.
#[derive(Debug, Clone, Copy)]
pub struct ModelWorkload {
    /// Also the name of the file, without its extension.
    pub name: &'static str,
    /// The shape of the first input. Models with other inputs are not among the workloads.
    shape: &'static [usize],
}

/// Every model, under the names of its file.
pub static MODEL_WORKLOADS: &[ModelWorkload] = &[
    ModelWorkload { name: "selfie", shape: &[1, 3, 256, 256] },
    ModelWorkload { name: "blazeface", shape: &[1, 3, 128, 128] },
    ModelWorkload { name: "mobilenet_v1", shape: &[1, 3, 224, 224] },
    ModelWorkload { name: "efficientnet_lite0", shape: &[1, 3, 224, 224] },
    ModelWorkload { name: "orientation", shape: &[1, 3, 224, 224] },
    ModelWorkload { name: "ocr_det", shape: &[1, 3, 480, 640] },
    ModelWorkload { name: "yolox_text", shape: &[1, 3, 416, 416] },
];

/// The folders of models, relative to vramp's repository.
const FOLDERS: [&str; 2] = ["crates/model/models", "target/models"];

impl ModelWorkload {
    /// Where the models may be: in vramp's repository, which is the working directory, or a directory above it.
    pub fn folders() -> Vec<PathBuf> {
        let working = std::env::current_dir().unwrap_or_default();
        let root = working.ancestors().find(|folder| folder.join(FOLDERS[0]).is_dir());
        FOLDERS.iter().map(|folder| root.map_or_else(|| PathBuf::from(folder), |root| root.join(folder))).collect()
    }

    /// The file of the model, in the first of these folders that has it.
    pub fn file(&self, folders: &[PathBuf]) -> Option<PathBuf> {
        let name = self.file_name();
        folders.iter().map(|folder| folder.join(&name)).find(|path| path.is_file())
    }

    fn file_name(&self) -> String {
        format!("{}.onnx", self.name)
    }

    /// Measures the model in a context. `folders` are searched for its file.
    pub fn measure(&self, folders: &[PathBuf], context: &Context, effort: Effort) -> Result<Measurement, BenchError> {
        let no_file = || BenchError::NoModel { work: self.name, file: self.file_name(), folders: folders.to_vec() };
        let path = self.file(folders).ok_or_else(no_file)?;
        self.measure_file(&path, context, effort)
            .map_err(|problem| BenchError::Model { work: self.name, problem: Box::new(problem) })?
    }

    fn measure_file(
        &self,
        path: &Path,
        context: &Context,
        effort: Effort,
    ) -> Result<Result<Measurement, BenchError>, ModelError> {
        let model = Model::open(path)?;
        let input = self.input(&model, context)?;
        let device = context.device();
        let once = || -> Result<Vec<Vec<u8>>, ModelError> {
            let outputs = model.run_in(context, std::slice::from_ref(&input))?;
            if device.is_none() {
                return Ok(Vec::new());
            }
            Ok(read(context, &outputs)?)
        };
        // The first two runs do not count: in these runs kernels are compiled and memory is touched for the first time.
        for _ in 0..2 {
            once()?;
        }
        let before = device.as_ref().map(vramp_gpu::Device::counters);
        let times = Times::measure(effort, || once().map(drop))?;
        if let (Some(before), Some(device)) = (before, &device) {
            let since = device.counters().since(&before);
            if since.dispatches == 0 || since.downloads == 0 {
                return Ok(Err(BenchError::NotOnDevice { work: self.name }));
            }
        }
        let bytes = read(context, &model.run(std::slice::from_ref(&input))?)?.concat();
        let size: Vec<String> = input.shape().lengths().iter().map(usize::to_string).collect();
        Ok(Ok(Measurement {
            peer: "vramp",
            work: self.name,
            size: size.join("x"),
            threads: context.threads(),
            backend: device.map_or_else(|| "cpu".to_owned(), |device| device.adapter().backend.to_string()),
            ms_median: times.median(),
            ms_min: times.wall[0],
            cpu_ms: times.median_cpu(),
            fps: 1e3 / times.median().max(1e-9),
            reps: times.wall.len() as u64,
            hash: format!("{:016x}", hash_of_bytes(&bytes)),
        }))
    }

    /// Pseudorandom values from 0 to 1, the same in every run.
    fn input(&self, model: &Model, context: &Context) -> Result<Tensor, ModelError> {
        if let [port] = model.inputs()
            && port.dtype != OnnxType::F32
        {
            let (name, got) = (port.name.clone(), port.dtype.name().into_owned());
            return Err(ModelError::WrongInput { name, expected: "f32 to be measured".to_owned(), got });
        }
        let mut state = 1_u32;
        let values: Vec<f32> = (0..self.shape.iter().product())
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 24) as f32
            })
            .collect();
        Ok(context.tensor(&values, self.shape)?)
    }
}

/// The values of all results. The floats of several results are downloaded together.
fn read(context: &Context, outputs: &[Tensor]) -> Result<Vec<Vec<u8>>, TensorError> {
    let floats: Vec<&Tensor> = outputs.iter().filter(|tensor| tensor.dtype() == DType::F32).collect();
    let mut all: Vec<Vec<u8>> = Vec::with_capacity(outputs.len());
    for values in context.read_all::<f32>(&floats)? {
        all.push(values.iter().flat_map(|value| value.to_le_bytes()).collect());
    }
    for tensor in outputs {
        if tensor.dtype() == DType::I32 {
            all.push(tensor.read::<i32>()?.iter().flat_map(|value| value.to_le_bytes()).collect());
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_files_are_found_in_the_first_folder_that_has_them() {
        let mut names: Vec<&str> = MODEL_WORKLOADS.iter().map(|work| work.name).collect();
        names.dedup();
        assert_eq!(names.len(), MODEL_WORKLOADS.len());
        let selfie = MODEL_WORKLOADS.iter().find(|work| work.name == "selfie").expect("it is in the list");
        let file = selfie.file(&ModelWorkload::folders()).expect("it is in the repository");
        assert!(file.ends_with("crates/model/models/selfie.onnx"), "{}", file.display());
        assert_eq!(selfie.file(&[PathBuf::from("no such folder")]), None);
    }
}
