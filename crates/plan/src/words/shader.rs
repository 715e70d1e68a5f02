//! Shaders as data: the type that the kernels crate produces and the GPU crate runs.
//!
//! The two crates do not depend on each other. Every kernel can therefore be tested without a device, and every device
//! can be tested without vramp's kernels.
//!
//! Invariant: bindings are numbered in the order of the list, which has inputs first, then outputs, then parameters.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Binding {
    /// A whole storage buffer that is read.
    Read,
    /// A whole storage buffer that is written, and may be read.
    Write,
    /// A uniform buffer of parameters.
    Params {
        /// A multiple of 16.
        bytes: u32,
    },
}

/// How a kernel is distributed over a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Invocations per workgroup.
    pub workgroup: u32,
    /// Neighbouring pixels that each invocation computes.
    pub pixels_per_invocation: u32,
    /// Whether an invocation tests once whether all of its pixels exist, so that compilers can join its loads and
    /// stores. Software drivers are slower with it, because they execute both sides of every branch.
    #[serde(default)]
    pub wide: bool,
}

impl Variant {
    pub const fn per_workgroup(self) -> u32 {
        self.workgroup * self.pixels_per_invocation
    }
}

impl Default for Variant {
    /// The variant that every device supports: 64 invocations of four pixels.
    fn default() -> Self {
        Variant { workgroup: 64, pixels_per_invocation: 4, wide: false }
    }
}

/// A compute shader with its bindings and workgroup.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shader {
    /// Used in messages and traces.
    pub name: String,
    /// WGSL with one entry point, which is `main` in vramp's own shaders. All bindings are in group 0.
    pub wgsl: String,
    /// In binding order.
    pub bindings: Vec<Binding>,
    /// Pixels or elements that one workgroup covers.
    pub per_workgroup: u32,
}

impl Shader {
    /// Workgroups along x and y that cover this many pixels, with at most `most` along each dimension. The shader's
    /// flat index is `x + y * groups_x`; invocations beyond the last pixel must do nothing.
    pub fn grid(&self, pixels: u64, most: u32) -> [u32; 2] {
        let groups = pixels.div_ceil(u64::from(self.per_workgroup.max(1))).max(1);
        let rows = groups.div_ceil(u64::from(most.max(1)));
        let across = groups.div_ceil(rows);
        [u32::try_from(across).unwrap_or(u32::MAX), u32::try_from(rows).unwrap_or(u32::MAX)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_covers_every_pixel_and_no_dimension_is_too_long() {
        let shader = Shader { name: String::new(), wgsl: String::new(), bindings: vec![], per_workgroup: 256 };
        for (pixels, most) in
            [(1, 65_535), (256, 65_535), (257, 65_535), (1 << 24, 65_535), (1 << 30, 100_000), (1 << 20, 7)]
        {
            let [x, y] = shader.grid(pixels, most);
            assert!(u64::from(x) * u64::from(y) * 256 >= pixels);
            assert!(x <= most, "{x} of {most}");
        }
    }
}
