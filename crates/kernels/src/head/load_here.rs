//! `load_here`: the source pixel at the same position. It is the head of a sequence of pixel functions without another
//! head.

use vramp_plan::Size;

use crate::head::{BandState, Head, HeadArgs, SourceRows};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};

pub static LOAD: Head = Head {
    name: "load_here",
    wgsl: include_str!("load_here.wgsl"),
    words: 0,
    source: true,
    small: false,
    first: None,
    rows_at_once: 1,
    row,
    samples: Some(samples),
};

fn row(_: &HeadArgs<'_>, source: &mut SourceRows<'_>, _: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    source.copy(y, pixels);
}

fn samples(_: &mut Chance, source: Size) -> Vec<KernelSample> {
    vec![KernelSample::new(source, &[])]
}
