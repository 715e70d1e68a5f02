//! Workloads on tensors.
//!
//! The caller's context decides whether a workload runs on the CPU or on the GPU. Results on a GPU are read back within
//! the measured time, because other libraries are measured the same way; results on the CPU need no readback. It is an
//! error if the context has a GPU and nothing was dispatched on the GPU.

use vramp_handlers::control::probe::hash_of_bytes;
use vramp_tensor::{Context, Expr, Tensor, TensorError};

use super::timing::Times;
use super::{BenchError, Effort, Measurement};

#[derive(Clone, Copy)]
pub struct TensorWorkload {
    pub name: &'static str,
    /// The size, for people.
    pub size: &'static str,
    make: fn(&Context) -> Result<WorkloadFn, TensorError>,
}

/// The repeated part of a workload; returns the results.
type WorkloadFn = Box<dyn FnMut(&Context) -> Result<Vec<Tensor>, TensorError>>;

/// Every workload on tensors, under the names that other libraries' benchmarks use.
pub static TENSOR_WORKLOADS: &[TensorWorkload] = &[
    work("matmul_f32_512", "512", |context| matmul(context, 512)),
    work("matmul_f32_1024", "1024", |context| matmul(context, 1024)),
    work("softmax_1024x1024", "1024x1024", |context| {
        let x = noise(context, &[1024, 1024])?;
        Ok(Box::new(move |_| Ok(vec![x.softmax(-1)?])))
    }),
    work("elementwise8_1024x1024", "1024x1024", |context| {
        let x = noise(context, &[1024, 1024])?;
        Ok(Box::new(move |_| Ok(vec![chain(&x.lazy()).run()?])))
    }),
    work("square_mean_10x1MB", "10x1MB", |context| {
        let batch = (0..10).map(|_| noise(context, &[MEGABYTE])).collect::<Result<Vec<_>, _>>()?;
        Ok(Box::new(move |_| batch.iter().map(|x| x.mean_of_squares(0)).collect()))
    }),
    work("square_mean_10x1MB_upload", "10x1MB", |_| {
        let values = vec![0.5_f32; MEGABYTE];
        Ok(Box::new(move |context| (0..10).map(|_| context.tensor(&values, &[MEGABYTE])?.mean_of_squares(0)).collect()))
    }),
    work("transfer_10MB_roundtrip", "10MB", |_| {
        let values = vec![0.5_f32; 10 * MEGABYTE];
        Ok(Box::new(move |context| {
            let tensor = context.tensor(&values, &[values.len()])?;
            tensor.settle()?;
            // Marks the tensor as written by the device, so that its values have to be downloaded again.
            if context.device().is_some() {
                tensor.was_written();
            }
            Ok(vec![tensor])
        }))
    }),
    work("op_dispatch_overhead_add16", "16", |context| {
        let x = noise(context, &[16])?;
        Ok(Box::new(move |_| Ok(vec![x.add(&x)?])))
    }),
];

/// Values in a megabyte of f32.
const MEGABYTE: usize = (1 << 20) / 4;

const fn work(
    name: &'static str,
    size: &'static str,
    make: fn(&Context) -> Result<WorkloadFn, TensorError>,
) -> TensorWorkload {
    TensorWorkload { name, size, make }
}

impl std::fmt::Debug for TensorWorkload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TensorWorkload").field("name", &self.name).finish_non_exhaustive()
    }
}

impl TensorWorkload {
    /// Measures the workload in a context.
    pub fn measure(&self, context: &Context, effort: Effort) -> Result<Measurement, BenchError> {
        let failed = |problem| BenchError::Tensor { work: self.name, problem };
        let mut run = (self.make)(context).map_err(failed)?;
        let device = context.device();
        // Results on a device are read back each time.
        let mut once = || -> Result<Vec<Vec<f32>>, TensorError> {
            let made = run(context)?;
            if device.is_none() {
                return Ok(Vec::new());
            }
            context.read_all(&made.iter().collect::<Vec<_>>())
        };
        // The first two runs do not count: in these runs kernels are compiled and memory is touched for the first time.
        for _ in 0..2 {
            once().map_err(failed)?;
        }
        let before = device.as_ref().map(vramp_gpu::Device::counters);
        let times = Times::measure(effort, || once().map(drop)).map_err(failed)?;
        if let (Some(before), Some(device)) = (before, &device) {
            let since = device.counters().since(&before);
            let works = since.dispatches > 0 || self.name.starts_with("transfer") && since.uploads > 0;
            if !works || since.downloads == 0 {
                return Err(BenchError::NotOnDevice { work: self.name });
            }
        }
        let made = run(context).map_err(failed)?;
        let values = context.read_all::<f32>(&made.iter().collect::<Vec<_>>()).map_err(failed)?;
        let bytes: Vec<u8> = values.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
        Ok(Measurement {
            peer: "vramp",
            work: self.name,
            size: self.size.to_owned(),
            threads: context.threads(),
            backend: device.map_or_else(|| "cpu".to_owned(), |device| device.adapter().backend.to_string()),
            ms_median: times.median(),
            ms_min: times.wall[0],
            cpu_ms: times.median_cpu(),
            fps: 1e3 / times.median().max(1e-9),
            reps: times.wall.len() as u64,
            hash: format!("{:016x}", hash_of_bytes(&bytes)),
        })
    }
}

fn matmul(context: &Context, side: usize) -> Result<WorkloadFn, TensorError> {
    let (a, b) = (noise(context, &[side, side])?, noise(context, &[side, side])?);
    Ok(Box::new(move |_| Ok(vec![a.matmul(&b)?])))
}

/// Eight elementwise ops in sequence.
fn chain(x: &Expr) -> Expr {
    x.mul(1.2).add(0.1).relu().sub(0.3).tanh().mul(0.5).sigmoid().square()
}

/// A tensor of pseudorandom values between -1 and 1, the same in every run.
fn noise(context: &Context, lengths: &[usize]) -> Result<Tensor, TensorError> {
    let mut state = 1_u32;
    let values: Vec<f32> = (0..lengths.iter().product())
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect();
    let tensor = context.tensor(&values, lengths)?;
    tensor.settle()?;
    Ok(tensor)
}
