//! The node tests of the Python package `onnx` 1.23.2, on the host and on a device. `data/README.md` describes the files.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use half::f16;
use miniz_oxide::inflate::decompress_to_vec_zlib;
use vramp_gpu::Device;
use vramp_model::Model;
use vramp_tensor::{Context, DType, Tensor};

/// Reads a file of node tests.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

struct NodeTest<'a> {
    name: String,
    model: &'a [u8],
    inputs: Vec<Array>,
    outputs: Vec<Array>,
    rtol: f64,
    atol: f64,
}

/// A tensor of a node test. `start` is its place among the values of the file.
struct Array {
    kind: u32,
    lengths: Vec<usize>,
    start: usize,
    bytes: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        self.at += count;
        &self.bytes[self.at - count..self.at]
    }

    fn number(&mut self) -> usize {
        u32::from_le_bytes(self.take(4).try_into().unwrap()) as usize
    }

    fn float(&mut self) -> f64 {
        f64::from(f32::from_le_bytes(self.take(4).try_into().unwrap()))
    }

    fn counted(&mut self) -> &'a [u8] {
        let count = self.number();
        self.take(count)
    }

    fn arrays(&mut self) -> Vec<Array> {
        (0..self.number())
            .map(|_| {
                self.counted();
                let kind = self.number() as u32;
                let lengths = (0..self.number()).map(|_| self.number()).collect();
                Array { kind, lengths, start: self.number(), bytes: self.number() }
            })
            .collect()
    }

    fn test(&mut self) -> NodeTest<'a> {
        NodeTest {
            name: String::from_utf8(self.counted().to_vec()).unwrap(),
            model: self.counted(),
            inputs: self.arrays(),
            outputs: self.arrays(),
            rtol: self.float(),
            atol: self.float(),
        }
    }
}

impl Array {
    /// Type and bytes as the tensors of a model have them.
    fn stored(&self, values: &[u8]) -> (DType, Vec<u8>) {
        let bytes = values[self.start..self.start + self.bytes].to_vec();
        match self.kind {
            1 => (DType::F32, bytes),
            2 | 9 => (DType::U8, bytes),
            3 => (DType::I8, bytes),
            6 => (DType::I32, bytes),
            7 => {
                let longs = bytes.as_chunks::<8>().0.iter().map(|long| i64::from_le_bytes(*long));
                (DType::I32, longs.flat_map(|long| i32::try_from(long).unwrap().to_le_bytes()).collect())
            }
            10 => (DType::F16, bytes),
            other => panic!("type {other}"),
        }
    }
}

fn numbers(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    match dtype {
        DType::F32 => bytes.as_chunks::<4>().0.iter().map(|value| f64::from(f32::from_le_bytes(*value))).collect(),
        DType::F16 => bytes.as_chunks::<2>().0.iter().map(|value| f16::from_le_bytes(*value).to_f64()).collect(),
        DType::I32 => bytes.as_chunks::<4>().0.iter().map(|value| f64::from(i32::from_le_bytes(*value))).collect(),
        DType::I8 => bytes.iter().map(|value| f64::from(value.cast_signed())).collect(),
        _ => bytes.iter().map(|value| f64::from(*value)).collect(),
    }
}

impl NodeTest<'_> {
    fn run(&self, context: &Context, values: &[u8]) -> Result<(), String> {
        let model = Model::from_bytes(self.model.to_vec()).map_err(|error| error.to_string())?;
        let tensor = |array: &Array| {
            let (dtype, bytes) = array.stored(values);
            context.tensor_from_bytes(&bytes, &array.lengths, dtype).map_err(|error| error.to_string())
        };
        let inputs = self.inputs.iter().map(tensor).collect::<Result<Vec<_>, _>>()?;
        let outputs = model.run_in(context, &inputs).map_err(|error| error.to_string())?;
        assert_eq!(outputs.len(), self.outputs.len(), "{}", self.name);
        for (at, (has, expected)) in outputs.iter().zip(&self.outputs).enumerate() {
            self.compare(has, expected, values).map_err(|problem| format!("output {at}: {problem}"))?;
        }
        Ok(())
    }

    fn compare(&self, has: &Tensor, expected: &Array, values: &[u8]) -> Result<(), String> {
        let (dtype, bytes) = expected.stored(values);
        if has.dtype() != dtype || has.shape().lengths() != expected.lengths {
            let (shape, lengths) = (has.shape(), &expected.lengths);
            return Err(format!("{} {shape}, expected {dtype} {lengths:?}", has.dtype()));
        }
        let found = numbers(dtype, &has.read_bytes().map_err(|error| error.to_string())?);
        for (at, (found, wanted)) in found.iter().zip(numbers(dtype, &bytes)).enumerate() {
            // Infinity has no difference from itself.
            let is_same = found.total_cmp(&wanted).is_eq() || (found.is_nan() && wanted.is_nan());
            let near = (found - wanted).abs() <= self.atol + self.rtol * wanted.abs();
            if !is_same && !near {
                return Err(format!("value {at} is {found}, expected {wanted}"));
            }
        }
        Ok(())
    }
}

/// Runs all tests of a file, and fails with the list of those that fail.
fn all_pass(compressed: &[u8], context: &Context, count: usize) {
    let bytes = decompress_to_vec_zlib(compressed).unwrap();
    let mut reader = Reader { bytes: &bytes, at: 0 };
    let tests: Vec<NodeTest<'_>> = (0..reader.number()).map(|_| reader.test()).collect();
    let values = &bytes[reader.at..];
    assert_eq!(tests.len(), count);
    let mut failed = Vec::new();
    for test in &tests {
        if let Err(problem) = test.run(context, values) {
            failed.push(format!("{}: {problem}", test.name));
        }
    }
    assert!(failed.is_empty(), "{} of {count} fail:\n{}", failed.len(), failed.join("\n"));
}

fn device() -> Context {
    Context::on(&Device::choose().open().unwrap()).unwrap()
}

const SINGLE: &[u8] = include_bytes!("data/node_tests.bin");
const LARGE: &[u8] = include_bytes!("data/node_tests_large.bin");
/// Results of ONNX Runtime.
const SPECIAL: &[u8] = include_bytes!("data/special_values.bin");
const SEVERAL: &[u8] = include_bytes!("data/node_tests_more.bin");

#[test]
fn all_single_ops_match_on_the_host() {
    all_pass(SINGLE, &Context::on_host(), 495);
}

#[test]
fn all_single_ops_match_on_a_device() {
    all_pass(SINGLE, &device(), 495);
}

#[test]
fn pools_of_large_volumes_match_on_both_sides() {
    all_pass(LARGE, &Context::on_host(), 2);
    all_pass(LARGE, &device(), 2);
}

#[test]
fn odd_values_and_settings_match_onnx_runtime_on_the_host() {
    all_pass(SPECIAL, &Context::on_host(), 78);
}

#[test]
fn odd_values_and_settings_match_onnx_runtime_on_a_device() {
    all_pass(SPECIAL, &device(), 78);
}

#[test]
fn several_ops_match_on_the_host() {
    all_pass(SEVERAL, &Context::on_host(), 125);
}

#[test]
fn several_ops_match_on_a_device() {
    all_pass(SEVERAL, &device(), 125);
}
