//! The context in which a model runs: on a device, or on the CPU.

use vramp::gpu::AdapterKind;
use vramp::machine;
use vramp::tensor::{Context, HostPoolRules};

use crate::args::ModelRunArgs;
use crate::failure::{CliError, chainless};
use crate::request;

/// The context that the options describe. Uses the GPU if the options require a device or the machine has GPU hardware,
/// otherwise the CPU.
pub(super) fn context(args: &ModelRunArgs) -> Result<Context, CliError> {
    let memory = args.memory.unwrap_or_default();
    let mut builder = Context::builder();
    if let Some(threads) = args.threads {
        builder = builder.threads(threads as usize);
    }
    if let Some(budget_bytes) = memory.cpu_bytes {
        let usual = HostPoolRules::default();
        let keep_bytes = usual.keep_bytes.min(budget_bytes);
        builder = builder.host_pool(HostPoolRules { budget_bytes, keep_bytes, ..usual });
    }
    let mut choice = request::named_choice(args.backend, args.device.as_ref());
    if let Some(bytes) = memory.gpu_bytes {
        choice = choice.budget_bytes(bytes);
    }
    let requires_device = args.gpu || args.backend.is_some() || args.device.is_some();
    let is_hardware = || machine::adapter(&choice).is_ok_and(|adapter| adapter.kind != AdapterKind::Software);
    if args.cpu || !requires_device && !is_hardware() {
        return Ok(builder.on_host());
    }
    match choice.open() {
        Ok(device) => builder.on(&device).map_err(|error| CliError::Failed(chainless(&error))),
        Err(error) if requires_device => Err(CliError::NoPlan(error.into())),
        Err(_) => Ok(builder.on_host()),
    }
}

/// The name of the side on which ops run: `cpu`, or the graphics API.
pub(super) fn backend_of(context: &Context) -> String {
    context.device().map_or_else(|| "cpu".to_owned(), |device| device.adapter().backend.to_string())
}
