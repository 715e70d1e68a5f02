//! Ops whose inputs and results are named tensors. The ops themselves are those of `Tensor` and `Expr`.
//!
//! Invariants: either all results of an op are registered, or none. A result stays on the side where it was computed.
//! Inputs are leased while the op runs.

use super::error::StoreError;
use super::lease::TensorLease;
use super::names::Named;
use super::shared::Store;
use crate::ops::error::TensorError;
use crate::ops::expr::Expr;
use crate::ops::program::Unary;
use crate::ops::tensor::Tensor;

impl Store {
    /// The product of two matrices, each optionally transposed first. Returns the name of the result.
    pub fn matmul(
        &self,
        a: Named<'_>,
        b: Named<'_>,
        out: Named<'_>,
        (transpose_a, transpose_b): (bool, bool),
    ) -> Result<String, StoreError> {
        self.one("matmul", &[a, b], out, |inputs| inputs[0].matmul_as(inputs[1], transpose_a, transpose_b))
    }

    /// Applies an op to each value. `op` is a name from [`Unary::NAMED`]; `None` means relu.
    pub fn elementwise(&self, input: Named<'_>, out: Named<'_>, op: Option<&str>) -> Result<String, StoreError> {
        let name = op.unwrap_or(Unary::Relu.name());
        let Some(op) = Unary::named(name) else {
            let known = Unary::NAMED.map(Unary::name).join(", ");
            return Err(StoreError::UnknownOp { op: name.to_owned(), known });
        };
        self.one("elementwise", &[input], out, |inputs| inputs[0].unary(op))
    }

    /// Softmax along an axis. Negative axes count from the end.
    pub fn softmax(&self, input: Named<'_>, out: Named<'_>, axis: isize) -> Result<String, StoreError> {
        self.one("softmax", &[input], out, |inputs| inputs[0].softmax(axis))
    }

    /// Quantizes a tensor to i8 ([`Expr::quantize`] documents the scheme). Registers the i8 values under the name
    /// `out`, and the scale, a tensor of shape `[1]`, under `<out>_scale`. Returns these two names.
    pub fn quantize(&self, input: Named<'_>, (out, model): Named<'_>) -> Result<(String, String), StoreError> {
        let scale = format!("{out}_scale");
        self.perform("quantize", &[input], &[out, &scale], model, |inputs| {
            let (values, scale) = inputs[0].quantize(None)?;
            Ok(vec![values, scale])
        })?;
        Ok((out.to_owned(), scale))
    }

    /// Multiplies i8 values by a scale, for example the scale from [`Store::quantize`].
    pub fn dequantize(&self, input: Named<'_>, scale: Named<'_>, out: Named<'_>) -> Result<String, StoreError> {
        self.one("dequantize", &[input, scale], out, |inputs| inputs[0].dequantize(inputs[1]))
    }

    /// Computes an expression over named tensors, fused into as few kernels as possible.
    pub fn compute(
        &self,
        inputs: &[Named<'_>],
        out: Named<'_>,
        write: impl Fn(&[Expr]) -> Expr,
    ) -> Result<String, StoreError> {
        self.one("compute", inputs, out, |inputs| {
            let written: Vec<Expr> = inputs.iter().map(|input| input.lazy()).collect();
            write(&written).run()
        })
    }

    /// Runs `act` on named tensors and registers either all of its results or none. If the device is out of memory,
    /// moves the least recently used tensors to the host and runs `act` once more.
    pub(crate) fn perform(
        &self,
        op: &'static str,
        inputs: &[Named<'_>],
        outs: &[&str],
        model: &str,
        act: impl Fn(&[&Tensor]) -> Result<Vec<Tensor>, TensorError>,
    ) -> Result<(), StoreError> {
        self.expect_free(outs)?;
        let leases: Result<Vec<TensorLease>, StoreError> =
            inputs.iter().map(|(name, model)| self.lease(name, model)).collect();
        let leases = leases?;
        let tensors: Vec<&Tensor> = leases.iter().map(|lease| &**lease).collect();
        let made = match act(&tensors) {
            #[cfg(not(target_arch = "wasm32"))]
            Err(TensorError::OutOfMemory { required_bytes, place: "device", .. }) => {
                self.make_room(required_bytes)?;
                act(&tensors)
            }
            answer => answer,
        };
        let made = made.map_err(|problem| StoreError::of(outs.first().unwrap_or(&op), problem))?;
        let named: Vec<(&str, &Tensor)> = outs.iter().copied().zip(&made).collect();
        self.enter(&named, model, &[])?;
        self.say(|| format!("{op} of {inputs:?} makes {outs:?}"));
        Ok(())
    }

    fn one(
        &self,
        op: &'static str,
        inputs: &[Named<'_>],
        (out, model): Named<'_>,
        act: impl Fn(&[&Tensor]) -> Result<Tensor, TensorError>,
    ) -> Result<String, StoreError> {
        self.perform(op, inputs, &[out], model, |inputs| Ok(vec![act(inputs)?]))?;
        Ok(out.to_owned())
    }
}
