//! The workloads on frames, by name.
//!
//! Invariants: a workload's last handler is called `out`. A workload that other libraries are measured with has the
//! same name in the benchmarks of those libraries.

use std::fmt;

use vramp_plan::Size;

/// A group of workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// One operation each.
    Filters,
    /// Several operations each.
    Pipelines,
    /// Ops on tensors.
    Tensor,
    /// Neural networks.
    Model,
}

impl Suite {
    pub const ALL: [Suite; 4] = [Suite::Filters, Suite::Pipelines, Suite::Tensor, Suite::Model];

    pub const fn name(self) -> &'static str {
        match self {
            Suite::Filters => "filters",
            Suite::Pipelines => "pipelines",
            Suite::Tensor => "tensor",
            Suite::Model => "model",
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of the `app` sink that receives the first and the last frame.
pub(super) const KEEP: &str = "keep";

/// A pipeline to measure, by name.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    pub name: &'static str,
    pub suite: Suite,
    /// The pipeline up to `out`. `SIZE` is replaced by the size, and `HALF` by half the width and half the height.
    pipeline: &'static str,
}

impl Workload {
    pub fn named(name: &str) -> Option<&'static Workload> {
        WORKLOADS.iter().find(|work| work.name == name)
    }

    /// The pipeline at a size, with its sinks. `null` drops all frames. The first and the last frame are also sent to
    /// the CPU and read there.
    pub(super) fn text(&self, size: Size, frames: u64) -> String {
        let half = Size { width: (size.width / 2).max(1), height: (size.height / 2).max(1) };
        let pipeline = self.pipeline.replace("SIZE", &size.to_string()).replace("HALF", &half.to_string());
        format!("{pipeline}; out. ! null; out. ! every n={} ! app format=any name={KEEP}", (frames - 1).max(1))
    }
}

const fn filter(name: &'static str, pipeline: &'static str) -> Workload {
    Workload { name, suite: Suite::Filters, pipeline }
}

const fn several(name: &'static str, pipeline: &'static str) -> Workload {
    Workload { name, suite: Suite::Pipelines, pipeline }
}

const CONVOLVE5: &str = "bench-still SIZE ! convolve kernel=-2,-1,0,1,2,3,4,-2,-1,0,1,2,3,4,-2,-1,0,1,2,3,4,-2,-1,0,\
    1 divisor=16 name=out";
const CONVOLVE7: &str = "bench-still SIZE ! convolve kernel=-3,-2,-1,0,1,2,3,4,5,-3,-2,-1,0,1,2,3,4,5,-3,-2,-1,0,1,2,3,4,5,\
    -3,-2,-1,0,1,2,3,4,5,-3,-2,-1,0,1,2,3,4,5,-3,-2,-1,0 divisor=32 name=out";

/// Every workload on frames.
pub static WORKLOADS: &[Workload] = &[
    filter("brightness_contrast", "bench-still SIZE ! contrast 1.2 ! brightness 0.0392157 name=out"),
    filter("gamma", "bench-still SIZE ! gamma 2.2 name=out"),
    filter("invert", "bench-still SIZE ! invert name=out"),
    filter("gray", "bench-still SIZE ! grayscale name=out"),
    filter("threshold", "bench-still SIZE ! threshold name=out"),
    filter("color_matrix", "bench-still SIZE ! saturation 0.7 name=out"),
    filter("hue", "bench-still SIZE ! hue 40 name=out"),
    filter("chroma_key", "bench-still SIZE ! chromakey name=out"),
    filter("gauss9_s2", "bench-still SIZE ! blur sigma=2 size=9 name=out"),
    filter("box9", "bench-still SIZE ! boxblur 9 name=out"),
    filter("box3", "bench-still SIZE ! boxblur 3 name=out"),
    filter("median3", "bench-still SIZE ! median 3 name=out"),
    filter("median5", "bench-still SIZE ! median 5 name=out"),
    filter("sharpen3x3", "bench-still SIZE ! sharpen 1 name=out"),
    filter("convolve3", "bench-still SIZE ! convolve kernel=-2,-1,0,-1,1,1,0,1,2 name=out"),
    filter("convolve5", CONVOLVE5),
    filter("convolve7", CONVOLVE7),
    filter("sobel_rgba_to_mag8", "bench-still SIZE ! edges name=out"),
    filter("resize_nearest", "bench-still SIZE ! resize scale=0.6666667 filter=nearest name=out"),
    filter("resize_bilinear", "bench-still SIZE ! resize scale=0.6666667 name=out"),
    filter("resize_area", "bench-still SIZE ! resize scale=0.6666667 filter=area name=out"),
    filter("resize_area_half", "bench-still SIZE ! resize scale=0.5 filter=area name=out"),
    filter("resize_lanczos", "bench-still SIZE ! resize scale=0.6666667 filter=lanczos name=out"),
    filter("crop", "bench-still SIZE ! crop x=0 y=0 size=HALF name=out"),
    filter("flip_h", "bench-still SIZE ! flip h name=out"),
    filter("flip_v", "bench-still SIZE ! flip v name=out"),
    filter("rotate_90", "bench-still SIZE ! rotate 90 name=out"),
    filter("rotate_180", "bench-still SIZE ! rotate 180 name=out"),
    filter("warp", "bench-still SIZE ! warp m=0.95,-0.2,120,0.2,0.95,-80 name=out"),
    filter("blend_const", "bench-still SIZE ! mix amount=0.3 name=out; bench-still SIZE seed=1 ! out.b"),
    filter(
        "blend_over",
        "bench-still SIZE ! mix mode=over amount=1 name=out; bench-still SIZE seed=1 alpha=128 ! out.b",
    ),
    filter("waveform_luma", "bench-still SIZE ! waveform luma name=out"),
    filter(
        "compositor4",
        "bench-still SIZE name=a ! compositor name=out; bench-still SIZE seed=1 name=b ! out.in1; a. ! out.in2; b. ! out.in3",
    ),
    filter("rgba_to_i420", "bench-still SIZE ! convert i420 name=out"),
    filter("nv12_to_rgba", "bench-still SIZE format=nv12 ! convert rgba8 name=out"),
    several(
        "chain5",
        "bench-still SIZE ! contrast 1.2 ! brightness 0.0392157 ! gamma 2.2 ! saturation 0.7 ! invert ! \
         mix amount=0.3 name=out; bench-still SIZE seed=1 ! out.b",
    ),
    several("pipe5_seed_rgba", "pattern kind=ball size=SIZE ! markers ! waveform ! fps name=out"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for work in WORKLOADS {
            assert!(std::ptr::eq(Workload::named(work.name).unwrap(), work), "{} is there twice", work.name);
        }
        assert!(Workload::named("nothing").is_none());
    }
}
