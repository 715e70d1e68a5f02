//! A profile as a text table. Numbers are rounded here; the fields of [`OpProfile`] are exact.

use std::fmt::{self, Write as _};

use vramp_gpu::Readout;

use super::{OpProfile, ProfiledOp, RanOn};

const HEADS: [&str; 9] = ["op", "in", "out", "type", "side", "kernels", "KB moved", "host us", "device us"];
/// The index of the first column that has numbers. Numbers are right-aligned.
const NUMBERS: usize = 5;

impl fmt::Display for OpProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<[String; 9]> = self.ops.iter().map(row).collect();
        let mut widths = HEADS.map(str::len);
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.len());
            }
        }
        for row in [HEADS.map(str::to_owned)].iter().chain(&rows) {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
                if column < NUMBERS {
                    write!(line, "{cell:<width$}  ")?;
                } else {
                    write!(line, "{cell:>width$}  ")?;
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        let dispatches: usize = self.ops.iter().map(|op| op.dispatches).sum();
        write!(f, "{} ops, {dispatches} kernels, {:.3} ms", self.ops.len(), ms(self.elapsed_ns))?;
        match &self.device_ns {
            Readout::Is { value, from, doubt } => {
                write!(f, "; device {:.3} ms by {from}", ms(*value))?;
                if let Some(doubt) = doubt {
                    write!(f, " ({doubt})")?;
                }
            }
            Readout::Unavailable(why) => write!(f, "; device unavailable: {why}")?,
        }
        let moved = &self.moved;
        writeln!(f)?;
        write!(
            f,
            "{:+} tensors, {:+} bytes, at most {} bytes; {} uploads, {} reads, {} copies",
            self.new_tensors,
            self.new_bytes,
            self.peak_bytes,
            moved.uploads,
            moved.host_reads + moved.async_reads,
            moved.copies
        )
    }
}

fn row(op: &ProfiledOp) -> [String; 9] {
    let inputs: Vec<String> = op.inputs.iter().map(|(shape, _)| shape.to_string()).collect();
    let name = if op.has_failed { format!("{} (failed)", op.op) } else { op.op.clone() };
    let side = match op.side {
        RanOn::Host => "host",
        RanOn::Device => "device",
    };
    [
        name,
        inputs.join(" "),
        op.output.to_string(),
        op.dtype.to_string(),
        side.to_owned(),
        op.dispatches.to_string(),
        format!("{:.1}", (op.read_bytes + op.written_bytes) as f64 / 1e3),
        format!("{:.1}", op.host_ns as f64 / 1e3),
        op.device_ns.value().map_or_else(|| "-".to_owned(), |ns| format!("{:.1}", ns as f64 / 1e3)),
    ]
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}
