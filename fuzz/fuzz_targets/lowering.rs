//! Any bytes are read as an ONNX file, lowered for the lengths that the file declares, and planned as a network on the host;
//! or they are refused. Memory is bounded by the file and by the budget of the context, so run this with
//! `-rss_limit_mb=1024`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use vramp_model::onnx::{Dim, OnnxType};
use vramp_model::{Model, ModelError};
use vramp_tensor::{Context, DType, HostPoolRules};

fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = planned(bytes) {
        // Up to 50 unsupported ops are listed, each with shortened names.
        assert!(error.to_string().len() < 50_000);
    }
});

fn planned(bytes: &[u8]) -> Result<(), ModelError> {
    let rules = HostPoolRules { budget_bytes: 64 << 20, ..Default::default() };
    let context = Context::builder().threads(1).host_pool(rules).on_host();
    let model = Model::from_bytes(bytes.to_vec())?;
    let inputs = model.inputs().iter().map(|port| {
        let length = |dim: &Dim| if let Dim::Fixed(length) = dim { *length } else { 1 };
        let lengths: Vec<usize> = port.dims.iter().map(length).collect();
        let dtype = match port.dtype {
            OnnxType::I32 | OnnxType::I64 => DType::I32,
            OnnxType::U8 | OnnxType::Bool => DType::U8,
            OnnxType::I8 => DType::I8,
            OnnxType::F16 => DType::F16,
            _ => DType::F32,
        };
        context.zeros(&lengths, dtype)
    });
    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    model.prepare(&context, &inputs).map(drop)
}
