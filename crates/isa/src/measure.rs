//! From a compiled kernel to a row of the table.

use anyhow::{Context as _, ensure};

use crate::compiler::Compiled;
use crate::disassembly::Code;
use crate::table::{Column, Row};

/// The row of a kernel. `rounds` are the kernel's own rounds of the loops in its code, see [`Code::run`].
pub(crate) fn row(gpu: &str, kernel: &str, made: &Compiled, rounds: &[u32]) -> anyhow::Result<Row> {
    let figure = |name: &str| {
        let found = made.statistics.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
        found.with_context(|| format!("the driver has no figure `{name}`; Mesa 25's RADV does"))
    };
    let text = made.texts.iter().find(|(name, _)| name == "Assembly").context("the driver has no text `Assembly`")?;
    let code = Code::read(&text.1);
    ensure!(
        rounds.is_empty() || code.loops().is_multiple_of(rounds.len()),
        "{kernel} has {} loops on {gpu}, but rounds of {} are listed in src/kernels/rounds.rs",
        code.loops(),
        rounds.len()
    );
    let [listed, assumed, own] = [code.counts(), code.assumed(), code.run(rounds)];
    let (latency, inverse) = (figure("Latency")?, figure("Inverse Throughput")?);
    let busier = own.issue_cycles() / assumed.issue_cycles();
    let longer = own.total() / assumed.total().max(1.0);
    let [instructions, vgprs, sgprs, waves, scratch, shared] =
        ["Instructions", "VGPRs", "SGPRs", "Subgroups per SIMD", "Scratch size", "LDS size"].map(figure);
    let [instructions, vgprs, sgprs, waves] = [instructions?, vgprs?, sgprs?, waves?];
    let (scratch, shared) = (scratch?, shared?);
    let spills = figure("Spilled VGPRs")? + figure("Spilled SGPRs")?;
    Ok(Row::new(gpu, kernel, |column| match column {
        Column::Instructions => instructions,
        Column::Vector => listed.vector as u64,
        Column::MultiplyAdds => listed.multiply_adds as u64,
        Column::Scalar => listed.scalar as u64,
        Column::Branches => listed.branches as u64,
        Column::Accesses => listed.accesses as u64,
        Column::ScalarReads => listed.scalar_reads as u64,
        Column::Shared => listed.shared as u64,
        Column::VectorRegisters => vgprs,
        Column::ScalarRegisters => sgprs,
        Column::Waves => waves,
        Column::Spills => spills,
        Column::Scratch => scratch,
        Column::SharedBytes => shared,
        Column::Latency => latency,
        Column::Inverse => inverse,
        Column::Cycles => (inverse as f64 * busier).round() as u64,
        Column::Lasts => (latency as f64 * longer).round() as u64,
        Column::Made => own.accesses.round() as u64,
        Column::Loops => code.loops() as u64,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURES: [(&str, u64); 10] = [
        ("Instructions", 9),
        ("VGPRs", 24),
        ("SGPRs", 16),
        ("Subgroups per SIMD", 16),
        ("Scratch size", 0),
        ("LDS size", 1024),
        ("Spilled VGPRs", 1),
        ("Spilled SGPRs", 2),
        ("Latency", 1000),
        ("Inverse Throughput", 100),
    ];
    const LOOP: &str = "BB0:
 v_mov_b32_e32 v0, v1
BB1:
 v_add_u32_e32 v0, v0, v1
 v_add_u32_e32 v2, v0, v1
 s_cbranch_scc1 BB1
";

    fn compiled() -> Compiled {
        let statistics = FIGURES.map(|(name, value)| (name.to_owned(), value)).to_vec();
        Compiled { wave: 64, statistics, texts: vec![("Assembly".to_owned(), LOOP.to_owned())] }
    }

    #[test]
    fn without_rounds_the_compilers_cycles_stand_and_with_rounds_they_are_scaled() {
        let row = |rounds: &[u32]| row("navi31", "k", &compiled(), rounds).unwrap();
        assert_eq!((row(&[]).of(Column::Cycles), row(&[]).of(Column::Lasts)), (100, 1000));
        // Vector cycles: 2 outside and 4 in each round; the compiler assumes 8 rounds.
        assert_eq!(row(&[16]).of(Column::Cycles), (100.0_f64 * 66.0 / 34.0).round() as u64);
        assert_eq!(
            (row(&[]).of(Column::Spills), row(&[]).of(Column::SharedBytes), row(&[]).of(Column::Loops)),
            (3, 1024, 1)
        );
    }

    #[test]
    fn rounds_of_loops_that_the_code_does_not_have_are_refused() {
        let error = row("navi31", "k", &compiled(), &[1, 2]).unwrap_err().to_string();
        assert!(error.starts_with("k has 1 loops on navi31, but rounds of 2 are listed"), "{error}");
    }

    #[test]
    fn a_driver_without_the_figures_is_refused() {
        let mut made = compiled();
        made.statistics.retain(|(name, _)| name != "Latency");
        assert!(row("navi31", "k", &made, &[]).unwrap_err().to_string().contains("no figure `Latency`"));
    }
}
