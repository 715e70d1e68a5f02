//! Shared parts of the tests of the classic API.

use std::sync::{Arc, Mutex};

use vramp_tensor::Context;
use vramp_tensor::classic::Sink;

/// A sink, and the lines it has received.
pub fn heard() -> (Sink, impl Fn() -> Vec<String>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&lines);
    (Sink::to(move |line| received.lock().expect("no test panics here").push(line.to_owned())), move || {
        lines.lock().expect("no test panics here").clone()
    })
}

pub fn nothing() -> Sink {
    Sink::to(|_| ())
}

pub fn counts(context: &Context) -> (u64, u64, u64) {
    let memory = context.memory();
    (memory.tensors, memory.buffers, memory.bytes())
}
