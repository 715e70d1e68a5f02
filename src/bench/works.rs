//! Works: what is measured, by name.
//!
//! Owns the list, and the pipeline that each work is.
//! Does not run any.
//!
//! Always: a work's last handler is called `out`; works that others measure too have the names that they have there.

use std::fmt;

use vramp_plan::Size;

/// Works that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// One operation each.
    Filters,
    /// Several in a row.
    Pipelines,
}

impl Suite {
    /// Every suite.
    pub const ALL: [Suite; 2] = [Suite::Filters, Suite::Pipelines];

    /// The word used in text.
    pub const fn name(self) -> &'static str {
        match self {
            Suite::Filters => "filters",
            Suite::Pipelines => "pipelines",
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One piece of work.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// Its name.
    pub name: &'static str,
    /// Where it belongs.
    pub suite: Suite,
    /// Its pipeline up to `out`; `SIZE` stands for the size.
    pipeline: &'static str,
}

impl Work {
    /// The work of this name.
    pub fn named(name: &str) -> Option<&'static Work> {
        WORKS.iter().find(|work| work.name == name)
    }

    /// Its pipeline at a size. All frames are dropped, but for the first and the last of so many: these are looked at,
    /// on the host, wherever they were made.
    pub(super) fn text(&self, size: Size, frames: u64) -> String {
        let pipeline = self.pipeline.replace("SIZE", &size.to_string());
        format!("{pipeline}; out. ! null; out. ! every n={} ! bench-keep", (frames - 1).max(1))
    }
}

const fn filter(name: &'static str, pipeline: &'static str) -> Work {
    Work { name, suite: Suite::Filters, pipeline }
}

const fn several(name: &'static str, pipeline: &'static str) -> Work {
    Work { name, suite: Suite::Pipelines, pipeline }
}

/// Every work.
pub static WORKS: &[Work] = &[
    filter("brightness_contrast", "bench-still SIZE ! contrast 1.2 ! brightness 0.0392157 name=out"),
    filter("gamma", "bench-still SIZE ! gamma 2.2 name=out"),
    filter("invert", "bench-still SIZE ! invert name=out"),
    filter("gray", "bench-still SIZE ! grayscale name=out"),
    filter("threshold", "bench-still SIZE ! threshold name=out"),
    filter("color_matrix", "bench-still SIZE ! saturation 0.7 name=out"),
    filter("hue", "bench-still SIZE ! hue 40 name=out"),
    filter("gauss9_s2", "bench-still SIZE ! blur sigma=2 size=9 name=out"),
    filter("resize_nearest", "bench-still SIZE ! resize scale=0.6666667 filter=nearest name=out"),
    filter("resize_bilinear", "bench-still SIZE ! resize scale=0.6666667 name=out"),
    filter("flip_h", "bench-still SIZE ! flip h name=out"),
    filter("flip_v", "bench-still SIZE ! flip v name=out"),
    filter("blend_const", "bench-still SIZE ! mix amount=0.3 name=out; bench-still SIZE seed=1 ! out.b"),
    filter(
        "blend_over",
        "bench-still SIZE ! mix mode=over amount=1 name=out; bench-still SIZE seed=1 alpha=128 ! out.b",
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
        for work in WORKS {
            assert!(std::ptr::eq(Work::named(work.name).unwrap(), work), "{} is there twice", work.name);
        }
        assert!(Work::named("nothing").is_none());
    }
}
