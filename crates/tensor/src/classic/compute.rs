//! Transfers, and means of squares by the batch.
//!
//! Owns the list of what it has sent up, to be given up at the end, and the size of chunks.
//! Does not compute: tensors do.
//!
//! Always: a transfer is over when it returns, or it has failed, was told to the sink and is returned as an error; a batch
//! has one result for each tensor, in order, and comes down in one read; between is nothing left behind.

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

/// Tensors of a batch that are computed together unless told.
pub const DEFAULT_CHUNK: usize = 100;

/// Transfers and batches in one context.
#[derive(Debug)]
pub struct Compute {
    context: Context,
    chunk: usize,
    keeps_host_copies: bool,
    sink: Sink,
    /// What was sent up and may still live.
    sent: Mutex<Vec<Weak<Handle>>>,
    is_released: AtomicBool,
}

impl Compute {
    /// In this context, on whichever side it is.
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

    /// So many tensors of a batch at once, at least 1; 100 unless told. Results do not depend on it.
    #[must_use]
    pub fn with_chunk(mut self, tensors: usize) -> Self {
        self.chunk = tensors.max(1);
        self
    }

    /// Whether what is sent up stays on the host too, unless told no. It takes twice the memory, and outlives a device
    /// that is lost.
    #[must_use]
    pub fn with_host_copies(mut self, keep: bool) -> Self {
        self.keeps_host_copies = keep;
        self
    }

    /// Who is told of failed transfers; the standard error output unless told.
    #[must_use]
    pub fn with_sink(mut self, sink: Sink) -> Self {
        self.sink = sink;
        self
    }

    /// Where its tensors live.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// A tensor of these values in one row, on the context's device where it has one; it has arrived. It belongs to
    /// whoever holds it, and not to an open scope.
    pub fn transfer_to_gpu(&self, values: &[f32]) -> Result<Tensor, TensorError> {
        let op = "transfer_to_gpu";
        self.check(op)?;
        let sent = self.send(values);
        self.told(op, values.len(), sent)
    }

    /// The values of a tensor of f32, bit by bit.
    pub fn transfer_from_gpu(&self, tensor: &Tensor) -> Result<Vec<f32>, TensorError> {
        let op = "transfer_from_gpu";
        self.check(op)?;
        self.told(op, tensor.count(), tensor.read())
    }

    /// The mean of the squares of each tensor; NaN of one without values.
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
                // The device begins while the next chunk is written down.
                self.context.flush()?;
            }
            let chunks: Vec<&Tensor> = chunks.iter().collect();
            Tensor::concat(&chunks, 0)?.read()
        })
    }

    /// Runs work over items in chunks that fit into the memory there is: as [`run_adaptive`], beginning with what
    /// [`available_bytes`] says of this context.
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

    /// Gives up the values of a tensor. Doing it again does nothing.
    pub fn dispose(&self, tensor: &Tensor) {
        tensor.dispose();
    }

    /// Gives up what it has sent up, whoever holds it, and memory that lies free. It does nothing more after that but say
    /// so; doing it again does nothing.
    pub fn release(&self) {
        let all = {
            // Under the lock that whoever sends takes at the end: what is on its way is in the list, or sees this.
            let mut sent = self.sent();
            if self.is_released.swap(true, Ordering::AcqRel) {
                return;
            }
            std::mem::take(&mut *sent)
        };
        for handle in all.iter().filter_map(Weak::upgrade) {
            handle.dispose();
        }
        // What the device still uses returns with its end. A device that fails has nothing to return.
        let _ = self.context.finish();
        self.context.trim();
    }

    fn send(&self, values: &[f32]) -> Result<Tensor, TensorError> {
        let tensor = self.context.tensor(values, &[values.len()])?;
        leave_scopes(tensor.handle());
        tensor.settle()?;
        // Values go up with the first op otherwise, and a failure would be told there.
        self.context.finish()?;
        if !self.keeps_host_copies {
            tensor.storage().leave_host();
        }
        let mut sent = self.sent();
        // It may have been cleaned up meanwhile, and nobody would give this one up.
        self.check("transfer_to_gpu")?;
        if sent.len() == sent.capacity() {
            sent.retain(|handle| handle.strong_count() > 0);
        }
        sent.push(Arc::downgrade(tensor.handle()));
        Ok(tensor)
    }

    fn told<T>(&self, op: &str, count: usize, answer: Result<T, TensorError>) -> Result<T, TensorError> {
        answer.inspect_err(|error| {
            let place =
                self.context.device().map_or_else(|| "the host".to_owned(), |device| device.adapter().name.clone());
            self.sink.tell(&format!("{op} failed: {count} values, {} bytes, {place}: {error}", count * 4));
        })
    }

    fn check(&self, op: &'static str) -> Result<(), TensorError> {
        if self.is_released.load(Ordering::Acquire) {
            let problem = "this compute was cleaned up; make another".to_owned();
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
        // As of a thread that was let in just before.
        let late = compute.send(&[2.0]);
        assert!(matches!(late, Err(TensorError::Setting { op: "transfer_to_gpu", .. })), "{late:?}");
        assert_eq!((context.memory().tensors, context.memory().bytes()), (0, 0));
    }
}
