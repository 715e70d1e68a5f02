//! How long operations take, how busy the device is, and how much memory there is in use.
//!
//! Owns the statistics by name, and who is asked and told.
//! Does not read a platform's counters: whoever knows the platform hands a reader in.
//!
//! Always: an operation is recorded also where it fails or panics, and its error goes to whoever called; the load of a
//! device is a reading of its platform or the reason why there is none.

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

/// Measures operations in one context.
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
    /// Of this context.
    pub fn on(context: &Context) -> Monitor {
        Monitor { context: context.clone(), reader: None, sink: Sink::default(), timings: Mutex::default() }
    }

    /// Who is asked for readings of the device; nobody unless told.
    #[must_use]
    pub fn with_readings(mut self, read: impl Fn(&Adapter) -> AdapterReading + Send + Sync + 'static) -> Self {
        self.reader = Some(Arc::new(read));
        self
    }

    /// Who is told; the standard error output unless told.
    #[must_use]
    pub fn with_sink(mut self, sink: Sink) -> Self {
        self.sink = sink;
        self
    }

    /// Runs an operation and says how many milliseconds passed until it returned. Where it only asks a device to work,
    /// that is the time of asking; [`Monitor::track_until_done`] waits.
    pub fn track_operation<T, E>(&self, name: &str, act: impl FnOnce() -> Result<T, E>) -> (Result<T, E>, f64) {
        self.track(name, Measured::UntilReturned, act)
    }

    /// Runs an operation and says how many milliseconds passed until the device was done with all of it. What was asked
    /// before is waited for first, and does not count.
    pub fn track_until_done<T, E>(&self, name: &str, act: impl FnOnce() -> Result<T, E>) -> (Result<T, E>, f64) {
        self.track(name, Measured::UntilDone, act)
    }

    /// Statistics of a name; none where there was no such operation.
    pub fn statistics(&self, name: &str, measured: Measured) -> Option<OperationStatistics> {
        self.timings().get(&(name.to_owned(), measured)).map(|timings| timings.statistics(name, measured))
    }

    /// Statistics of all names, sorted.
    pub fn all_statistics(&self) -> Vec<OperationStatistics> {
        self.timings().iter().map(|((name, measured), timings)| timings.statistics(name, *measured)).collect()
    }

    /// How busy the device is, from 0 to 100, as its platform says; or why nobody knows.
    pub fn gpu_utilization(&self) -> Readout<f32> {
        match self.reading() {
            Ok(AdapterReading { load_percent: Readout::Is { value, from, .. }, .. })
                if !(0.0..=100.0).contains(&value) =>
            {
                Readout::unavailable(format!("{from} says {value} %"))
            }
            Ok(reading) => reading.load_percent,
            Err(why) => Readout::Unavailable(why),
        }
    }

    /// How much memory the context takes.
    pub fn memory_usage(&self) -> MemoryUsage {
        MemoryUsage::of(&self.context)
    }

    /// Bytes that tensors could still take.
    pub fn available_bytes(&self) -> Readout<u64> {
        available_bytes(&self.context, self.reading().ok().as_ref())
    }

    /// Says numbers with names in one line.
    pub fn log_metrics<N: AsRef<str>, M: Metric>(&self, metrics: impl IntoIterator<Item = (N, M)>) {
        self.sink.tell(&metrics::line(metrics));
    }

    /// Everything it knows, line by line.
    pub fn report(&self) -> String {
        let mut lines = vec![format!("memory: {}", self.memory_usage())];
        lines.push(format!("available bytes: {}", self.available_bytes().words()));
        lines.push(format!("device load in percent: {}", self.gpu_utilization().words()));
        lines.extend(self.all_statistics().iter().map(OperationStatistics::to_string));
        lines.join("\n")
    }

    /// Forgets all operations.
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

    /// Waits for the device; says why a time that ends here is wrong where that fails.
    fn wait(&self) -> Option<String> {
        let waited = self.context.finish().map_err(|error| error.to_string());
        // A device that has nothing to do need not be waited for, and may be lost all the same.
        let is_there = |device: vramp_gpu::Device| device.check().map_err(|lost| lost.to_string());
        let waited = waited.and_then(|()| self.context.device().map_or(Ok(()), is_there));
        waited.err().map(|error| format!("the device could not be waited for: {error}"))
    }

    fn reading(&self) -> Result<AdapterReading, String> {
        let Some(device) = self.context.device() else {
            return Err("no GPU is selected: tensors are on the host".to_owned());
        };
        match &self.reader {
            Some(read) => Ok(read(device.adapter())),
            None => Err("nobody was given who could read it (`Monitor::with_readings`)".to_owned()),
        }
    }

    fn timings(&self) -> MutexGuard<'_, BTreeMap<(String, Measured), Timings>> {
        self.timings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An operation that is at work; recorded at the end, on panic too.
struct Tracked<'a> {
    monitor: &'a Monitor,
    name: &'a str,
    measured: Measured,
    started: Instant,
    /// Milliseconds, whether it failed, and what is doubtful.
    outcome: Option<(f64, bool, Option<String>)>,
}

impl Drop for Tracked<'_> {
    fn drop(&mut self) {
        let (elapsed_ms, has_failed, doubt) = self.outcome.take().unwrap_or_else(|| {
            (self.started.elapsed().as_secs_f64() * 1e3, true, Some("one of them panicked".to_owned()))
        });
        let mut timings = self.monitor.timings();
        timings.entry((self.name.to_owned(), self.measured)).or_default().add(elapsed_ms, has_failed, doubt);
    }
}
