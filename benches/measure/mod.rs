//! Measuring for benches: CPU time of the whole process and of its children, medians.

/// CPU time of this process so far, including threads that have ended, in steps of 10 ms.
pub fn cpu_ms() -> f64 {
    (ticks(11) + ticks(12)) * 10.0
}

/// A field of this process's figures, counted after its name.
fn ticks(at: usize) -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").expect("these benches read Linux's own figures");
    // Fields are counted after the name, which may contain anything but ends with the last bracket.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0)
}

/// CPU time of this process and of its children that have ended, in steps of 10 ms.
pub fn cpu_with_children_ms() -> f64 {
    (0..4).map(|field| ticks(11 + field)).sum::<f64>() * 10.0
}

pub fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
