//! Runs a loop with the widest vectors that this machine has.
//!
//! Owns the choice among instruction sets.
//! Does not write vectors: loops over slices are plain Rust, and the compiler makes vectors of them.
//!
//! Always: the same code, compiled for each set; so the same bits, whichever runs.

/// Evaluates an expression with 512-bit vectors where the machine has them (AVX-512), with 256-bit ones where it has
/// those (AVX2), and otherwise as the target is compiled.
///
/// Whatever the expression calls must be `#[inline(always)]`, or it stays as the target is compiled.
///
/// A macro, since each set needs a closure of its own: one closure (or function) that is handed to three sets is called
/// from three places, is not inlined into any, and runs as plain SSE2. Seen in the disassembly: 0 registers of 512 bits
/// as a function, 129 as a macro.
///
/// `vectorised!(FUSED => ...)` names a constant that the expression may use: whether multiply and add are one instruction.
macro_rules! vectorised {
    ($fused:ident => $body:expr) => {
        match ::pulp::Arch::new() {
            #[cfg(target_arch = "x86_64")]
            ::pulp::Arch::V4(set) => ::pulp::x86::V4::vectorize(set, || {
                const $fused: bool = true;
                $body
            }),
            #[cfg(target_arch = "x86_64")]
            ::pulp::Arch::V3(set) => ::pulp::x86::V3::vectorize(set, || {
                const $fused: bool = true;
                $body
            }),
            _ => {
                const $fused: bool = cfg!(target_arch = "aarch64");
                $body
            }
        }
    };
    ($body:expr) => {
        match ::pulp::Arch::new() {
            #[cfg(target_arch = "x86_64")]
            ::pulp::Arch::V4(set) => ::pulp::x86::V4::vectorize(set, || $body),
            #[cfg(target_arch = "x86_64")]
            ::pulp::Arch::V3(set) => ::pulp::x86::V3::vectorize(set, || $body),
            _ => $body,
        }
    };
}

pub(crate) use vectorised;

#[cfg(test)]
mod tests {
    #[test]
    fn an_expression_gives_what_it_gives_without_vectors() {
        let mut values: Vec<f32> = (0_u8..100).map(f32::from).collect();
        let sum: f32 = vectorised!({
            for value in &mut values {
                *value = *value * 0.5 + 1.0;
            }
            values.iter().sum()
        });
        assert_eq!(sum, 2575.0);
        assert_eq!(values[3], 2.5);
    }
}
