//! What compilers made of the kernels, as a text table: a row for each kernel and GPU.
//!
//! The same format holds one measurement, several, and the checked-in table. Lines that start with `#` are for readers.
//!
//! Invariant: a table reads back as it was written.

use std::fmt::{self, Write as _};

use anyhow::{Context as _, ensure};

/// A figure of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Instructions,
    Vector,
    MultiplyAdds,
    Scalar,
    Branches,
    /// Accesses to buffers.
    Accesses,
    ScalarReads,
    /// Accesses to workgroup memory.
    Shared,
    VectorRegisters,
    ScalarRegisters,
    /// Waves that a SIMD can hold.
    Waves,
    /// Registers that did not fit.
    Spills,
    /// Bytes of scratch memory.
    Scratch,
    /// Bytes of workgroup memory.
    SharedBytes,
    /// The compiler's latency of a wave.
    Latency,
    /// The compiler's inverse throughput: cycles of a SIMD for 64 invocations.
    Inverse,
    /// The inverse throughput with the kernel's own rounds of loops.
    Cycles,
    /// Latency with the kernel's own rounds of loops.
    Lasts,
    /// Accesses to buffers that a wave makes, with the kernel's own rounds of loops.
    Made,
    /// Loops of the code.
    Loops,
}

impl Column {
    pub(crate) const ALL: [Column; 20] = [
        Column::Instructions,
        Column::Vector,
        Column::MultiplyAdds,
        Column::Scalar,
        Column::Branches,
        Column::Accesses,
        Column::ScalarReads,
        Column::Shared,
        Column::VectorRegisters,
        Column::ScalarRegisters,
        Column::Waves,
        Column::Spills,
        Column::Scratch,
        Column::SharedBytes,
        Column::Latency,
        Column::Inverse,
        Column::Cycles,
        Column::Lasts,
        Column::Made,
        Column::Loops,
    ];

    /// The head of the column.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Column::Instructions => "instr",
            Column::Vector => "valu",
            Column::MultiplyAdds => "fma",
            Column::Scalar => "salu",
            Column::Branches => "branch",
            Column::Accesses => "vmem",
            Column::ScalarReads => "smem",
            Column::Shared => "lds",
            Column::VectorRegisters => "vgpr",
            Column::ScalarRegisters => "sgpr",
            Column::Waves => "waves",
            Column::Spills => "spills",
            Column::Scratch => "scratch",
            Column::SharedBytes => "lds_bytes",
            Column::Latency => "latency",
            Column::Inverse => "inverse",
            Column::Cycles => "cycles",
            Column::Lasts => "lasts",
            Column::Made => "vmem_run",
            Column::Loops => "loops",
        }
    }
}

/// A kernel on a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) gpu: String,
    pub(crate) kernel: String,
    figures: [u64; Column::ALL.len()],
}

impl Row {
    pub(crate) fn new(gpu: &str, kernel: &str, figure: impl Fn(Column) -> u64) -> Row {
        Row { gpu: gpu.to_owned(), kernel: kernel.to_owned(), figures: Column::ALL.map(figure) }
    }

    pub(crate) fn of(&self, column: Column) -> u64 {
        self.figures[column as usize]
    }
}

/// Rows, and the driver that made them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// The driver with its version.
    pub(crate) driver: String,
    pub(crate) rows: Vec<Row>,
}

impl Table {
    pub(crate) fn read(text: &str) -> anyhow::Result<Table> {
        let mut table = Table::default();
        let mut columns: Option<Vec<usize>> = None;
        for (at, line) in text.lines().enumerate() {
            let place = || format!("line {}: `{line}`", at + 1);
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            if let Some(driver) = line.strip_prefix("driver: ") {
                driver.trim().clone_into(&mut table.driver);
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let Some(columns) = &columns else {
                ensure!(words.starts_with(&["gpu", "kernel"]), "{}: expected the columns, `gpu kernel ...`", place());
                let find = |name: &&str| Column::ALL.iter().position(|column| column.name() == *name);
                let found: Option<Vec<usize>> = words[2..].iter().map(find).collect();
                let found = found.filter(|found| found.len() == Column::ALL.len());
                columns =
                    Some(found.with_context(|| format!("{}: these are not the columns of this version", place()))?);
                continue;
            };
            ensure!(words.len() == columns.len() + 2, "{}: expected {} words", place(), columns.len() + 2);
            let mut figures = [0; Column::ALL.len()];
            for (column, word) in columns.iter().zip(&words[2..]) {
                figures[*column] = word.parse().with_context(|| format!("{}: `{word}` is not a count", place()))?;
            }
            let (gpu, kernel) = (words[0].to_owned(), words[1].to_owned());
            ensure!(table.find(&gpu, &kernel).is_none(), "{}: `{kernel}` is listed twice for {gpu}", place());
            table.rows.push(Row { gpu, kernel, figures });
        }
        Ok(table)
    }

    pub(crate) fn find(&self, gpu: &str, kernel: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.gpu == gpu && row.kernel == kernel)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# What GPUs' compilers make of the kernels; docs/gpus.md explains the columns.")?;
        writeln!(f, "driver: {}", self.driver)?;
        writeln!(f, "gpu kernel {}", Column::ALL.map(Column::name).join(" "))?;
        for row in &self.rows {
            let figures = row.figures.iter().fold(String::new(), |mut text, figure| {
                let _ = write!(text, " {figure}");
                text
            });
            writeln!(f, "{} {}{figures}", row.gpu, row.kernel)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_reads_back_as_it_was_written() {
        let row = |gpu: &str, kernel: &str| Row::new(gpu, kernel, |column| 10 + column as u64);
        let table = Table { driver: "radv Mesa 25".to_owned(), rows: vec![row("a", "blur/1"), row("b", "blur/1")] };
        assert_eq!(Table::read(&table.to_string()).unwrap(), table);
        assert_eq!(table.find("b", "blur/1").unwrap().of(Column::Vector), 11);
        assert_eq!(table.find("b", "blur/2"), None);
    }

    #[test]
    fn columns_have_their_places_and_names() {
        for (at, column) in Column::ALL.into_iter().enumerate() {
            assert_eq!(column as usize, at);
            assert!(Column::ALL.iter().all(|other| *other == column || other.name() != column.name()));
        }
    }

    #[test]
    fn a_table_that_is_not_one_is_refused_with_its_line() {
        let head = format!("gpu kernel {}\n", Column::ALL.map(Column::name).join(" "));
        let row = |first: &str| format!("a k {first}{}\n", " 1".repeat(Column::ALL.len() - 1));
        for (text, expected) in [
            ("a k 1".to_owned(), "line 1: `a k 1`: expected the columns, `gpu kernel ...`"),
            ("gpu kernel speed".to_owned(), "line 1: `gpu kernel speed`: these are not the columns of this version"),
            (format!("{head}a k 1"), "line 2: `a k 1`: expected 22 words"),
            (format!("{head}{}{}", row("1"), row("1")), "`k` is listed twice for a"),
        ] {
            let error = Table::read(&text).unwrap_err().to_string();
            assert!(error.ends_with(expected), "{error}");
        }
        assert!(
            format!("{:#}", Table::read(&format!("{head}{}", row("x"))).unwrap_err()).contains("`x` is not a count")
        );
    }
}
