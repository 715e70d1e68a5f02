//! Transfers to and from the device, and the mean of squares of many tensors at once.
//!
//! Uploaded tensors are tracked, so that `release` can free them.
//!
//! Invariants: a transfer has completed when its function returns. A failed transfer is reported to the [`Sink`] and
//! returned as an error. A batch has one result per tensor, in order, and all results are read back in one transfer.
//! Intermediates are freed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::adaptive::{Adapted, BatchRules, available_bytes, run_adaptive};
use super::sink::Sink;
use crate::ops::context::{Context, leave_scopes};
use crate::ops::dtype::DType;
use crate::ops::error::TensorError;
use crate::ops::expr::Expr;
use crate::ops::reduction::Reduction;
use crate::ops::tensor::{Handle, Tensor};

/// The default number of tensors that are computed together in a batch.
pub const DEFAULT_CHUNK: usize = 100;

/// Transfers and batches in one context.
#[derive(Debug)]
pub struct Compute {
    context: Context,
    chunk: usize,
    keeps_host_copies: bool,
    sink: Sink,
    /// Uploaded tensors that may still be alive.
    sent: Mutex<Vec<Weak<Handle>>>,
    is_released: AtomicBool,
}

impl Compute {
    /// Transfers and batches in this context, on its device or on the host.
    pub fn on(context: &Context) -> Compute {
        Compute {
            context: context.clone(),
            chunk: DEFAULT_CHUNK,
            keeps_host_copies: false,
            sink: Sink::default(),
            sent: Mutex::default(),
            is_released: AtomicBool::new(false),
        }
    }

    /// The number of tensors computed together, at least 1. Defaults to 100. Results do not depend on this number.
    #[must_use]
    pub fn with_chunk(mut self, tensors: usize) -> Self {
        self.chunk = tensors.max(1);
        self
    }

    /// Whether uploaded values stay on the host too. This doubles the memory, but the values survive the loss of the
    /// device. Defaults to false.
    #[must_use]
    pub fn with_host_copies(mut self, keep: bool) -> Self {
        self.keeps_host_copies = keep;
        self
    }

    /// Where transfer failures are reported. Defaults to stderr.
    #[must_use]
    pub fn with_sink(mut self, sink: Sink) -> Self {
        self.sink = sink;
        self
    }

    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Uploads values as a tensor of one row, to the context's device if it has one, and waits until the values have
    /// arrived. The tensor does not belong to an open scope.
    pub fn transfer_to_gpu(&self, values: &[f32]) -> Result<Tensor, TensorError> {
        let op = "transfer_to_gpu";
        self.check(op)?;
        let sent = self.send(values);
        self.report(op, values.len(), sent)
    }

    /// Reads the values of a tensor of f32, bit for bit.
    pub fn transfer_from_gpu(&self, tensor: &Tensor) -> Result<Vec<f32>, TensorError> {
        let op = "transfer_from_gpu";
        self.check(op)?;
        self.report(op, tensor.count(), tensor.read())
    }

    /// The mean of squares of each tensor. NaN for a tensor without values.
    pub fn compute_batch(&self, tensors: &[Tensor]) -> Result<Vec<f32>, TensorError> {
        let op = "compute_batch";
        self.check(op)?;
        for tensor in tensors {
            tensor.check(op)?;
            if !tensor.context().is(&self.context) {
                return Err(TensorError::Foreign { op });
            }
        }
        if tensors.is_empty() {
            return Ok(Vec::new());
        }
        self.context.scope(|_| {
            let mut chunks = Vec::new();
            for chunk in tensors.chunks(self.chunk) {
                let means: Vec<Expr> = chunk.iter().map(mean_of_squares).collect();
                chunks.push(Expr::concat(&means, 0).run()?);
                // The device starts while the next chunk is recorded.
                self.context.flush()?;
            }
            let chunks: Vec<&Tensor> = chunks.iter().collect();
            Tensor::concat(&chunks, 0)?.read()
        })
    }

    /// Runs work over items in chunks that fit the memory. Like [`run_adaptive`], with a first chunk that fits
    /// [`available_bytes`] of this context.
    pub fn run_adaptive<T, R>(
        &self,
        items: &[T],
        item_bytes: u64,
        work: impl FnMut(&[T]) -> Result<Vec<R>, TensorError>,
    ) -> Result<Adapted<R>, TensorError> {
        self.check("run_adaptive")?;
        let most = BatchRules::default().size(item_bytes, &available_bytes(&self.context, None));
        run_adaptive(items, most, work)
    }

    /// Frees the values of a tensor. Disposing of a tensor again has no effect.
    pub fn dispose(&self, tensor: &Tensor) {
        tensor.dispose();
    }

    /// Frees all tensors that this instance has uploaded, even if handles to them exist, and all pooled memory. Later
    /// transfers and batches return an error; releasing again has no effect.
    pub fn release(&self) {
        let all = {
            // `send` takes the same lock at its end: an upload in progress is either in the list or sees the flag.
            let mut sent = self.sent();
            if self.is_released.swap(true, Ordering::AcqRel) {
                return;
            }
            std::mem::take(&mut *sent)
        };
        for handle in all.iter().filter_map(Weak::upgrade) {
            handle.dispose();
        }
        // Waits, because buffers in use return to the pool only when the device has finished. The result is ignored: a
        // failed device has no buffers to return.
        let _ = self.context.finish();
        self.context.trim();
    }

    fn send(&self, values: &[f32]) -> Result<Tensor, TensorError> {
        let tensor = self.context.tensor(values, &[values.len()])?;
        leave_scopes(tensor.handle());
        tensor.settle()?;
        // Waits for the upload here, so that a failure is reported by this call and not by the first op.
        self.context.finish()?;
        if !self.keeps_host_copies {
            tensor.storage().leave_host();
        }
        let mut sent = self.sent();
        // If the instance was released meanwhile, the upload fails: `release` would never free this tensor.
        self.check("transfer_to_gpu")?;
        if sent.len() == sent.capacity() {
            sent.retain(|handle| handle.strong_count() > 0);
        }
        sent.push(Arc::downgrade(tensor.handle()));
        Ok(tensor)
    }

    fn report<T>(&self, op: &str, count: usize, answer: Result<T, TensorError>) -> Result<T, TensorError> {
        answer.inspect_err(|error| {
            let place =
                self.context.device().map_or_else(|| "the host".to_owned(), |device| device.adapter().name.clone());
            self.sink.tell(&format!("{op} failed: {count} values, {} bytes, {place}: {error}", count * 4));
        })
    }

    fn check(&self, op: &'static str) -> Result<(), TensorError> {
        if self.is_released.load(Ordering::Acquire) {
            let problem = "this compute was cleaned up; create another".to_owned();
            return Err(TensorError::Setting { op, problem });
        }
        Ok(())
    }

    fn sent(&self) -> MutexGuard<'_, Vec<Weak<Handle>>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn mean_of_squares(tensor: &Tensor) -> Expr {
    tensor.lazy().cast(DType::F32).reduce_all(Reduction::MeanOfSquares).reshape(&[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_on_its_way_when_it_was_cleaned_up_is_refused_and_leaves_nothing() {
        let context = Context::on_host();
        let compute = Compute::on(&context);
        let before = compute.send(&[1.0]).unwrap();
        compute.release();
        assert!(before.is_disposed());
        // Like a thread that passed the check just before the release.
        let late = compute.send(&[2.0]);
        assert!(matches!(late, Err(TensorError::Setting { op: "transfer_to_gpu", .. })), "{late:?}");
        assert_eq!((context.memory().tensors, context.memory().bytes()), (0, 0));
    }
}
