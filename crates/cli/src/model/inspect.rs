//! `vramp model inspect`: what a model reads, computes and needs.
//!
//! Ops, parameters and unsupported ops are facts of the file. Operations and memory depend on the sizes of the inputs: an
//! axis without a fixed length counts as 1, unless an option gives the shape. Opens no device.

use std::fmt::Write as _;

use anyhow::anyhow;
use serde::Serialize;
use serde_json::{Map, Value};
use vramp::model::onnx::{Dim, OnnxType};
use vramp::model::{Model, ModelCost, ModelError, ModelFacts, Port, UnsupportedOp};
use vramp::plan::bytes_in_words;

use super::ports::{assign, declared, names_of, printable, shape};
use crate::args::ModelInspectArgs;
use crate::failure::CliError;
use crate::page;

pub(super) fn run(args: &ModelInspectArgs) -> Result<(), CliError> {
    let model = super::open(&args.model)?;
    let sizes = sizes(&args.size, model.inputs())?;
    let mut facts = model.facts();
    let cost = model.cost(&sizes).map_err(|error| match error {
        ModelError::UnsupportedOps { ops } => {
            // All of them, with settings that only the lowering finds.
            facts.unsupported = ops;
            "the model has unsupported ops".to_owned()
        }
        error => error.to_string(),
    });
    // A shape that an option gives is wrong if the model cannot have it. A guessed one is only unlucky.
    if let (Err(problem), false) = (&cost, args.size.is_empty() || !facts.unsupported.is_empty()) {
        return Err(CliError::Wrong(anyhow!("--size {}: {problem}", args.size.join(" --size "))));
    }
    let shown = if args.json {
        let line = ModelJson::of(&model, &facts, cost.as_ref(), &sizes);
        serde_json::to_string(&line).map_err(|error| CliError::Failed(error.into()))? + "\n"
    } else {
        text(&args.model.display().to_string(), &model, &facts, cost.as_ref(), &sizes)
    };
    page::result(shown.as_bytes())
}

/// The shapes of the inputs if axes without a fixed length have the length 1.
pub(super) fn smallest(ports: &[Port]) -> Vec<Vec<usize>> {
    let length = |dim: &Dim| if let Dim::Fixed(length) = dim { *length } else { 1 };
    ports.iter().map(|port| port.dims.iter().map(length).collect()).collect()
}

/// The shapes of the inputs with which costs are computed.
fn sizes(words: &[String], ports: &[Port]) -> Result<Vec<Vec<usize>>, CliError> {
    let wrong = |problem: String| Err(CliError::Wrong(anyhow!("--size {problem}; {}", names_of(ports))));
    let mut sizes = smallest(ports);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    for assigned in assign("--size", &words, ports, |_| false)? {
        let lengths: Option<Vec<usize>> = assigned.value.split('x').map(|length| length.parse().ok()).collect();
        let port = &ports[assigned.port];
        let Some(lengths) = lengths else {
            return wrong(format!("{}: expected a shape, such as 1x3x480x640", assigned.value));
        };
        let fits = |(dim, length): (&Dim, &usize)| !matches!(dim, Dim::Fixed(fixed) if fixed != length);
        let is_stated = !port.dims.is_empty();
        if is_stated && (lengths.len() != port.dims.len() || !port.dims.iter().zip(&lengths).all(fits)) {
            return wrong(format!("{}: the shape does not fit `{}`", assigned.value, printable(&port.name)));
        }
        sizes[assigned.port] = lengths;
    }
    Ok(sizes)
}

fn text(
    name: &str,
    model: &Model,
    facts: &ModelFacts,
    cost: Result<&ModelCost, &String>,
    sizes: &[Vec<usize>],
) -> String {
    let mut out = format!("{name}: ONNX, opset {}, {} nodes\n", facts.opset, facts.nodes);
    for (title, ports) in [("inputs", model.inputs()), ("outputs", model.outputs())] {
        let _ = writeln!(out, "\n{title}");
        let rows: Vec<[String; 3]> =
            ports.iter().map(|port| [printable(&port.name), type_name(port.dtype), declared(port)]).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
        let widths = [width(0), width(1)];
        for [name, dtype, shape] in &rows {
            let [a, b] = widths;
            let _ = writeln!(out, "  {name:a$}  {dtype:b$}  {shape}");
        }
    }
    let _ = writeln!(out, "\nops");
    let width = facts.ops.iter().map(|(op, _)| op.chars().count()).max().unwrap_or_default();
    for (op, count) in &facts.ops {
        let _ = writeln!(out, "  {:width$}  {count}", printable(op));
    }
    let _ = writeln!(out, "\nneeds");
    let mut fact = |label: &str, value: &str| {
        let _ = writeln!(out, "  {label:11}{value}");
    };
    fact("parameters", &format!("{}, {}", in_words(facts.parameters), bytes_in_words(facts.weight_bytes)));
    match cost {
        Ok(cost) => {
            let shapes: Vec<String> = sizes.iter().map(|lengths| shape(lengths)).collect();
            let inputs = if shapes.is_empty() { String::new() } else { format!(" with inputs {}", shapes.join(", ")) };
            fact("FLOPs", &format!("{}{inputs}", in_words(2 * cost.multiply_adds)));
            let (weights, values) = (cost.weight_bytes, cost.working_bytes);
            let whole = bytes_in_words(weights + values);
            fact(
                "memory",
                &format!("{whole}: {} of weights, {} of values", bytes_in_words(weights), bytes_in_words(values)),
            );
        }
        Err(problem) => fact("FLOPs", &format!("not known: {problem}")),
    }
    if !facts.unsupported.is_empty() {
        let _ = writeln!(out, "\nunsupported, so that the model does not run");
        for UnsupportedOp { op, node } in &facts.unsupported {
            let _ = writeln!(out, "  {} (node `{}`)", printable(op), printable(node));
        }
    }
    out
}

fn type_name(dtype: OnnxType) -> String {
    if let OnnxType::Other(0) = dtype { "?".to_owned() } else { dtype.name().into_owned() }
}

/// A large number in words: `1.14 G`.
fn in_words(number: u64) -> String {
    let size = number as f64;
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{:.1} k", size / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} M", size / 1e6),
        _ => format!("{:.2} G", size / 1e9),
    }
}

#[derive(Serialize)]
struct ModelJson<'a> {
    opset: i64,
    nodes: usize,
    inputs: Vec<PortJson<'a>>,
    outputs: Vec<PortJson<'a>>,
    ops: Map<String, Value>,
    parameters: u64,
    /// These depend on `sizes`, and are null if they are not known.
    flops: Option<u64>,
    multiply_adds: Option<u64>,
    memory: MemoryJson,
    /// The shapes with which `flops` and `memory` were computed.
    sizes: Map<String, Value>,
    /// Why `flops` is null.
    problem: Option<&'a str>,
    unsupported: Vec<UnsupportedJson<'a>>,
}

#[derive(Serialize)]
struct PortJson<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    dtype: String,
    /// Numbers, names of axes, or null.
    shape: Vec<Value>,
}

#[derive(Serialize)]
struct MemoryJson {
    weight_bytes: u64,
    working_bytes: Option<u64>,
    bytes: Option<u64>,
}

#[derive(Serialize)]
struct UnsupportedJson<'a> {
    op: &'a str,
    node: &'a str,
}

impl<'a> ModelJson<'a> {
    fn of(
        model: &'a Model,
        facts: &'a ModelFacts,
        cost: Result<&ModelCost, &'a String>,
        sizes: &[Vec<usize>],
    ) -> ModelJson<'a> {
        let (cost, problem) = match cost {
            Ok(cost) => (Some(cost), None),
            Err(problem) => (None, Some(problem.as_str())),
        };
        let sizes = model.inputs().iter().zip(sizes);
        let unsupported = facts.unsupported.iter();
        ModelJson {
            opset: facts.opset,
            nodes: facts.nodes,
            inputs: model.inputs().iter().map(PortJson::of).collect(),
            outputs: model.outputs().iter().map(PortJson::of).collect(),
            ops: facts.ops.iter().map(|(op, count)| (op.clone(), Value::from(*count))).collect(),
            parameters: facts.parameters,
            flops: cost.map(|cost| 2 * cost.multiply_adds),
            multiply_adds: cost.map(|cost| cost.multiply_adds),
            memory: MemoryJson {
                weight_bytes: cost.map_or(facts.weight_bytes, |cost| cost.weight_bytes),
                working_bytes: cost.map(|cost| cost.working_bytes),
                bytes: cost.map(|cost| cost.weight_bytes + cost.working_bytes),
            },
            sizes: sizes.map(|(port, lengths)| (port.name.clone(), Value::from(lengths.as_slice()))).collect(),
            problem,
            unsupported: unsupported.map(|UnsupportedOp { op, node }| UnsupportedJson { op, node }).collect(),
        }
    }
}

impl<'a> PortJson<'a> {
    fn of(port: &'a Port) -> PortJson<'a> {
        let axis = |dim: &Dim| match dim {
            Dim::Fixed(length) => Value::from(*length),
            Dim::Named(name) => Value::from(name.as_str()),
            Dim::Unknown => Value::Null,
        };
        PortJson { name: &port.name, dtype: type_name(port.dtype), shape: port.dims.iter().map(axis).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_have_units() {
        let words = [7, 12_345, 4_200_000, 1_136_000_000].map(in_words);
        assert_eq!(words, ["7", "12.3 k", "4.20 M", "1.14 G"]);
    }
}
