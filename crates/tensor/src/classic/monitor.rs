//! Timing of operations by name, device load and memory use.
//!
//! The caller passes in a function that reads the platform's counters ([`Monitor::with_readings`]).
//!
//! Invariants: an operation is recorded even if it fails or panics, and the error of a failed operation is returned to
//! the caller. The load of a device is a reading of the device's platform, or the reason why there is no reading.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use vramp_gpu::{Adapter, AdapterReading, Readout};

use super::metrics::{self, Metric};
use super::sink::Sink;
use super::timings::{Measured, OperationStatistics, Timings};
use super::{MemoryUsage, available_bytes};
use crate::ops::context::Context;

type MonitorReader = dyn Fn(&Adapter) -> AdapterReading + Send + Sync;

pub struct Monitor {
    context: Context,
    reader: Option<Arc<MonitorReader>>,
    sink: Sink,
    timings: Mutex<BTreeMap<(String, Measured), Timings>>,
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").field("context", &self.context).finish_non_exhaustive()
    }
}

impl Monitor {
    pub fn on(context: &Context) -> Monitor {
        Monitor { context: context.clone(), reader: None, sink: Sink::default(), timings: Mutex::default() }
    }

    /// The function that reads the counters of the device. Without this function, the load is unavailable.
    #[must_use]
    pub fn with_readings(mut self, read: impl Fn(&Adapter) -> AdapterReading + Send + Sync + 'static) -> Self {
        self.reader = Some(Arc::new(read));
        self
    }

    /// Where metrics are reported. Defaults to stderr.
    #[must_use]
    pub fn with_sink(mut self, sink: Sink) -> Self {
        self.sink = sink;
        self
    }

    /// Runs an operation and measures the milliseconds until it returns. The operation may return before work that it
    /// submitted to a device is done. [`Monitor::track_until_done`] also waits for the device.
    pub fn track_operation<T, E>(&self, name: &str, act: impl FnOnce() -> Result<T, E>) -> (Result<T, E>, f64) {
        self.track(name, Measured::UntilReturned, act)
    }

    /// Runs an operation and measures the milliseconds until the device has completed all work of the operation.
    /// Earlier work on the device is completed first and does not count.
    pub fn track_until_done<T, E>(&self, name: &str, act: impl FnOnce() -> Result<T, E>) -> (Result<T, E>, f64) {
        self.track(name, Measured::UntilDone, act)
    }

    /// Statistics of the operations with this name; `None` if no such operation was recorded.
    pub fn statistics(&self, name: &str, measured: Measured) -> Option<OperationStatistics> {
        self.timings().get(&(name.to_owned(), measured)).map(|timings| timings.statistics(name, measured))
    }

    /// Statistics of all operations, sorted by name.
    pub fn all_statistics(&self) -> Vec<OperationStatistics> {
        self.timings().iter().map(|((name, measured), timings)| timings.statistics(name, *measured)).collect()
    }

    /// The load of the device from 0 to 100, as the device's platform reports it, or the reason why the load is
    /// unavailable.
    pub fn gpu_utilization(&self) -> Readout<f32> {
        match self.reading() {
            Ok(AdapterReading { load_percent: Readout::Is { value, from, .. }, .. })
                if !(0.0..=100.0).contains(&value) =>
            {
                Readout::unavailable(format!("{from} reports {value} %, outside 0 to 100"))
            }
            Ok(reading) => reading.load_percent,
            Err(why) => Readout::Unavailable(why),
        }
    }

    pub fn memory_usage(&self) -> MemoryUsage {
        MemoryUsage::of(&self.context)
    }

    /// Bytes that tensors can still use.
    pub fn available_bytes(&self) -> Readout<u64> {
        available_bytes(&self.context, self.reading().ok().as_ref())
    }

    /// Reports named figures in one line.
    pub fn log_metrics<N: AsRef<str>, M: Metric>(&self, metrics: impl IntoIterator<Item = (N, M)>) {
        self.sink.tell(&metrics::line(metrics));
    }

    /// All figures as text, one per line.
    pub fn report(&self) -> String {
        let mut lines = vec![format!("memory: {}", self.memory_usage())];
        lines.push(format!("available bytes: {}", self.available_bytes().words()));
        lines.push(format!("device load in percent: {}", self.gpu_utilization().words()));
        lines.extend(self.all_statistics().iter().map(OperationStatistics::to_string));
        lines.join("\n")
    }

    /// Discards all statistics.
    pub fn release(&self) {
        self.timings().clear();
    }

    fn track<T, E>(&self, name: &str, measured: Measured, act: impl FnOnce() -> Result<T, E>) -> (Result<T, E>, f64) {
        let mut doubt = match measured {
            Measured::UntilReturned => {
                self.context.device().map(|_| "the device may still work when the call returns".to_owned())
            }
            Measured::UntilDone => self.wait(),
        };
        let mut tracked = Tracked { monitor: self, name, measured, started: Instant::now(), outcome: None };
        let answer = act();
        if measured == Measured::UntilDone {
            doubt = self.wait().or(doubt);
        }
        let elapsed_ms = tracked.started.elapsed().as_secs_f64() * 1e3;
        tracked.outcome = Some((elapsed_ms, answer.is_err(), doubt));
        drop(tracked);
        (answer, elapsed_ms)
    }

    /// Waits for the device. If waiting fails, returns why a time that is measured now would be wrong.
    fn wait(&self) -> Option<String> {
        let waited = self.context.finish().map_err(|error| error.to_string());
        // `finish` does not wait for an idle device, so it does not notice that such a device is lost.
        let is_there = |device: vramp_gpu::Device| device.check().map_err(|lost| lost.to_string());
        let waited = waited.and_then(|()| self.context.device().map_or(Ok(()), is_there));
        waited.err().map(|error| format!("waiting for the device failed: {error}"))
    }

    fn reading(&self) -> Result<AdapterReading, String> {
        let Some(device) = self.context.device() else {
            return Err("no GPU is selected: tensors are on the host".to_owned());
        };
        match &self.reader {
            Some(read) => Ok(read(device.adapter())),
            None => Err("no source of readings is set (`Monitor::with_readings`)".to_owned()),
        }
    }

    fn timings(&self) -> MutexGuard<'_, BTreeMap<(String, Measured), Timings>> {
        self.timings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running operation. The operation is recorded on drop, and therefore also if it panics.
struct Tracked<'a> {
    monitor: &'a Monitor,
    name: &'a str,
    measured: Measured,
    started: Instant,
    /// Milliseconds, whether the operation failed, and why the time may be wrong. `None` if the operation panicked.
    outcome: Option<(f64, bool, Option<String>)>,
}

impl Drop for Tracked<'_> {
    fn drop(&mut self) {
        let (elapsed_ms, has_failed, doubt) = self.outcome.take().unwrap_or_else(|| {
            (self.started.elapsed().as_secs_f64() * 1e3, true, Some("one of the operations panicked".to_owned()))
        });
        let mut timings = self.monitor.timings();
        timings.entry((self.name.to_owned(), self.measured)).or_default().add(elapsed_ms, has_failed, doubt);
    }
}
