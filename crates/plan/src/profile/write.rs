//! A profile as TOML text: every key that [`Profile::read`] accepts, each figure with its origin.
//!
//! Invariant: the written text reads back as the same figures.

use std::fmt::Write as _;

use super::{CpuProfile, Figure, FigureOrigin, GpuProfile, Limits, Profile, Rates};
use crate::catalog::Class;
use crate::words::Variant;

impl Profile {
    /// The profile as TOML. The text does not contain the profile's name.
    pub fn write(&self) -> String {
        let mut out = format!("about = {}\n\n[cpu]\n", quoted(&self.about));
        let CpuProfile { threads, cache_bytes, cache_gb_s, memory_gb_s, memory_bytes, call_us, rates } = &self.cpu;
        lines(
            &mut out,
            &[
                ("threads", threads),
                ("cache_bytes", cache_bytes),
                ("cache_gb_s", cache_gb_s),
                ("memory_gb_s", memory_gb_s),
                ("memory_bytes", memory_bytes),
                ("call_us", call_us),
            ],
        );
        write_rates(&mut out, "cpu", rates);
        if let Some(gpu) = &self.gpu {
            write_gpu(&mut out, gpu);
        }
        out
    }
}

fn write_gpu(out: &mut String, gpu: &GpuProfile) {
    let _ = writeln!(out, "\n[gpu]\nunified = {}", gpu.unified);
    if gpu.software {
        let _ = writeln!(out, "software = true");
    }
    lines(
        out,
        &[
            ("upload_us", &gpu.upload_us),
            ("upload_gb_s", &gpu.upload_gb_s),
            ("download_us", &gpu.download_us),
            ("download_gb_s", &gpu.download_gb_s),
            ("dispatch_us", &gpu.dispatch_us),
            ("submit_us", &gpu.submit_us),
            ("memory_gb_s", &gpu.memory_gb_s),
            ("memory_bytes", &gpu.memory_bytes),
        ],
    );
    write_rates(out, "gpu", &gpu.rates);
    out.push_str("\n[gpu.limits]\n");
    let Limits { storage_buffers_per_stage, binding_bytes, buffer_bytes, workgroups_per_dimension } = &gpu.limits;
    lines(
        out,
        &[
            ("storage_buffers_per_stage", storage_buffers_per_stage),
            ("binding_bytes", binding_bytes),
            ("buffer_bytes", buffer_bytes),
            ("workgroups_per_dimension", workgroups_per_dimension),
        ],
    );
    out.push_str("\n# Invocations per workgroup and pixels per invocation.\n[gpu.variants]\n");
    for (key, variant) in gpu.variants.named() {
        let Variant { workgroup, pixels_per_invocation: pixels, wide } = variant;
        let _ = writeln!(out, "{key} = {{ workgroup = {workgroup}, pixels_per_invocation = {pixels}, wide = {wide} }}");
    }
}

fn write_rates(out: &mut String, side: &str, rates: &Rates) {
    let _ = writeln!(out, "\n# Million units per second.\n[{side}.rates]");
    for class in Class::ALL {
        line(out, class.name(), rates.figure(class));
    }
    if !rates.handlers.is_empty() {
        let _ = writeln!(out, "\n[{side}.rates.handlers]");
        for (kind, figure) in &rates.handlers {
            line(out, &quoted(kind), figure);
        }
    }
}

fn lines(out: &mut String, all: &[(&str, &Figure)]) {
    for (key, figure) in all {
        line(out, key, figure);
    }
}

fn line(out: &mut String, key: &str, figure: &Figure) {
    // `{value}` prints the shortest text that reads back as exactly this number.
    let value = figure.value;
    let _ = match &figure.origin {
        FigureOrigin::Unsaid => writeln!(out, "{key} = {value}"),
        FigureOrigin::From(text) => writeln!(out, "{key} = {{ value = {value}, from = {} }}", quoted(text)),
        FigureOrigin::Estimate(text) => writeln!(out, "{key} = {{ value = {value}, estimate = {} }}", quoted(text)),
    };
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Variants;

    #[test]
    fn what_is_written_reads_back_as_the_same_figures() {
        for class in Profile::SHIPPED {
            let profile = Profile::shipped(class).unwrap();
            assert_eq!(Profile::read(profile.name(), &profile.write()), Ok(profile));
        }
    }

    #[test]
    fn handlers_variants_and_odd_numbers_read_back() {
        let mut profile = Profile::shipped("software").unwrap();
        "a \"quoted\" \\ name\nof two lines".clone_into(&mut profile.about);
        let odd = Figure { value: 1.0 / 3.0, origin: FigureOrigin::From("it's measured".to_owned()) };
        profile.cpu.rates.handlers.insert("pattern.ball".to_owned(), odd);
        profile.cpu.call_us = Figure { value: 1e-7, origin: FigureOrigin::Unsaid };
        let gpu = profile.gpu.as_mut().unwrap();
        gpu.variants =
            Variants { tap: Variant { workgroup: 32, pixels_per_invocation: 8, wide: true }, ..Variants::default() };
        gpu.limits.buffer_bytes.value = 2.0_f64.powi(63);
        assert_eq!(Profile::read(profile.name(), &profile.write()), Ok(profile));
    }

    #[test]
    fn a_variant_that_no_device_takes_is_refused_with_its_numbers() {
        let text = Profile::shipped("software").unwrap().write();
        let doctored = text.replacen("workgroup = 64", "workgroup = 5000", 1);
        assert_ne!(doctored, text);
        let error = Profile::read("mine", &doctored).unwrap_err().to_string();
        assert!(error.contains("5000") && error.contains("gpu.variants.pixel"), "{error}");
    }
}
