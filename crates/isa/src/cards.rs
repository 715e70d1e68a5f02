//! A model of a frame on real cards: the time of a kernel is the longest of its arithmetic, its memory traffic and the
//! latency of one wave.
//!
//! Arithmetic is the inverse throughput of a wave times the waves of the frame, over the SIMDs of the card at its game
//! clock. Traffic is each byte once, at the card's bandwidth. Launching, caches and power limits are left out, so times
//! are lower bounds. docs/gpus.md says how good they are.

use crate::kernels::{Kernel, Work};
use crate::table::{Column, Row, Table};

/// A card, by its maker's public specification.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Card {
    pub(crate) name: &'static str,
    /// The GPU that the compiler compiles for.
    pub(crate) gpu: &'static str,
    /// Units that issue vector instructions: two in a compute unit of RDNA, four in one of GCN.
    pub(crate) simds: u32,
    pub(crate) clock_mhz: u32,
    pub(crate) memory_gb_s: f64,
    /// Where the figures are from.
    pub(crate) from: &'static str,
}

pub(crate) const CARDS: [Card; 5] = [
    Card {
        name: "RX 7900 XTX",
        gpu: "navi31",
        simds: 192,
        clock_mhz: 2300,
        memory_gb_s: 960.0,
        from: "AMD's product page: 96 compute units, game frequency 2300 MHz, up to 960 GB/s",
    },
    Card {
        name: "RX 9070 XT",
        gpu: "gfx1201",
        simds: 128,
        clock_mhz: 2400,
        memory_gb_s: 640.0,
        from: "AMD's product page: 64 compute units, game frequency 2400 MHz, up to 640 GB/s",
    },
    Card {
        name: "RX 6800",
        gpu: "navi21",
        simds: 120,
        clock_mhz: 1815,
        memory_gb_s: 512.0,
        from: "AMD's product page: 60 compute units, game frequency 1815 MHz, up to 512 GB/s",
    },
    Card {
        name: "RX Vega 64",
        gpu: "vega10",
        simds: 256,
        clock_mhz: 1247,
        memory_gb_s: 483.8,
        from: "AMD's product page: 64 compute units, base frequency 1247 MHz, 483.8 GB/s",
    },
    Card {
        name: "Radeon 780M",
        // The same generation; its registers are fewer, so that kernels of many registers have fewer waves.
        gpu: "navi31",
        simds: 24,
        clock_mhz: 2700,
        memory_gb_s: 89.6,
        from: "AMD's page of the Ryzen 7 7840HS: 12 compute units, 2700 MHz, two channels of DDR5-5600",
    },
];

/// A kernel's modelled time for one frame.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Modelled {
    pub(crate) kernel: String,
    pub(crate) compute_us: f64,
    /// The time of one wave.
    pub(crate) latency_us: f64,
    pub(crate) memory_us: f64,
    pub(crate) time_us: f64,
}

impl Modelled {
    /// What the time is limited by.
    pub(crate) fn bound(&self) -> &'static str {
        let parts = [("latency", self.latency_us), ("compute", self.compute_us), ("memory", self.memory_us)];
        let longest = parts.into_iter().max_by(|one, other| one.1.total_cmp(&other.1));
        longest.expect("there are three").0
    }

    /// The time in multiples of the time that the memory traffic takes.
    pub(crate) fn ratio(&self) -> f64 {
        self.time_us / self.memory_us.max(1e-9)
    }
}

impl Card {
    /// The times of the kernels that have work in a frame. A kernel of several passes also has a row with their sum.
    pub(crate) fn frame(&self, kernels: &[Kernel], table: &Table) -> Vec<Modelled> {
        let timed = kernels.iter().filter_map(|kernel| {
            let row = table.find(self.gpu, &kernel.name)?;
            Some(self.time(kernel, kernel.work?, row))
        });
        let mut made: Vec<Modelled> = Vec::new();
        for pass in timed {
            let (whole, number) = pass.kernel.rsplit_once('/').unwrap_or((&pass.kernel, ""));
            let sum =
                (number == "2").then(|| made.last().filter(|first| first.kernel == format!("{whole}/1"))).flatten();
            let sum = sum.map(|first| Modelled {
                kernel: whole.to_owned(),
                compute_us: first.compute_us + pass.compute_us,
                latency_us: first.latency_us + pass.latency_us,
                memory_us: first.memory_us + pass.memory_us,
                time_us: first.time_us + pass.time_us,
            });
            made.push(pass);
            made.extend(sum);
        }
        made
    }

    fn time(&self, kernel: &Kernel, work: Work, row: &Row) -> Modelled {
        // The compiler's inverse throughput is that of 64 invocations, also if a workgroup has fewer.
        let waves = work.workgroups as f64 * f64::from(kernel.workgroup) / 64.0;
        let us = |cycles: f64| cycles / f64::from(self.clock_mhz);
        let compute_us = us(waves / f64::from(self.simds) * row.of(Column::Cycles) as f64);
        let latency_us = us(row.of(Column::Lasts) as f64);
        let memory_us = work.bytes as f64 / self.memory_gb_s / 1e3;
        let time_us = compute_us.max(latency_us).max(memory_us);
        Modelled { kernel: kernel.name.clone(), compute_us, latency_us, memory_us, time_us }
    }
}

#[cfg(test)]
mod tests {
    use vramp::plan::Shader;

    use super::*;

    const CARD: Card = Card { name: "c", gpu: "g", simds: 100, clock_mhz: 1000, memory_gb_s: 1.0, from: "" };

    fn kernel(name: &str, workgroups: u64, bytes: u64) -> Kernel {
        let shader = Shader { name: name.to_owned(), wgsl: String::new(), bindings: Vec::new(), per_workgroup: 256 };
        Kernel { name: name.to_owned(), shader, workgroup: 64, work: Some(Work { workgroups, bytes }) }
    }

    fn table(rows: &[(&str, u64, u64)]) -> Table {
        let row = |(kernel, cycles, lasts): &(&str, u64, u64)| {
            Row::new("g", kernel, |column| match column {
                Column::Cycles => *cycles,
                Column::Lasts => *lasts,
                _ => 0,
            })
        };
        Table { driver: String::new(), rows: rows.iter().map(row).collect() }
    }

    #[test]
    fn a_kernel_takes_as_long_as_its_arithmetic_its_traffic_or_one_wave() {
        let time = |workgroups: u64, bytes: u64, lasts: u64| {
            CARD.frame(&[kernel("k", workgroups, bytes)], &table(&[("k", 50, lasts)])).remove(0)
        };
        // 1000 waves of 50 cycles on 100 SIMDs: 500 cycles of 1 ns; 1000 bytes at 1 GB/s: 1 us.
        let made = time(1000, 1000, 10);
        assert_eq!((made.compute_us, made.memory_us, made.time_us, made.bound()), (0.5, 1.0, 1.0, "memory"));
        let made = time(1000, 250, 10);
        assert_eq!((made.time_us, made.bound(), made.ratio()), (0.5, "compute", 2.0));
        assert_eq!((time(1, 4, 3000).time_us.to_string().as_str(), time(1, 4, 3000).bound()), ("3", "latency"));
    }

    #[test]
    fn passes_are_followed_by_their_sum() {
        let kernels = [kernel("a/1", 1, 1000), kernel("a/2", 1, 2000), kernel("b", 1, 1), kernel("c/2", 1, 1)];
        let made = CARD.frame(&kernels, &table(&[("a/1", 1, 1), ("a/2", 1, 1), ("b", 1, 1), ("c/2", 1, 1)]));
        let names: Vec<&str> = made.iter().map(|row| row.kernel.as_str()).collect();
        assert_eq!(names, ["a/1", "a/2", "a", "b", "c/2"]);
        assert_eq!(made[2].memory_us.to_string(), "3");
    }

    #[test]
    fn every_card_has_a_source_and_a_gpu() {
        for card in CARDS {
            assert!(card.from.len() > 20 && card.simds > 0, "{}", card.name);
            assert!(["vega10", "navi21", "navi31", "gfx1201"].contains(&card.gpu), "{}", card.name);
        }
    }
}
