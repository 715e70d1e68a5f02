//! The examples in `inspect` and in error messages can be parsed and checked.

use vramp_handlers::registry;
use vramp_plan::catalog::{Entry, ProbeError, Probed, SettingValues, SourceProbe};
use vramp_plan::{Format, Graph, Rate, Size, read_text};

/// Answers for the files that the examples name, which do not exist.
struct EveryFileIsThere;

impl SourceProbe for EveryFileIsThere {
    fn probe(&self, _: &Entry, _: &SettingValues) -> Result<Probed, ProbeError> {
        Ok(Probed {
            format: Some(Format::I420),
            size: Size::new(640, 480),
            rate: Rate::new(30, 1),
            ..Probed::default()
        })
    }
}

fn mistakes_in(text: &str) -> String {
    let registry = registry();
    let catalog = registry.catalog();
    let reading = read_text(text, catalog);
    if !reading.mistakes.is_empty() {
        return format!("{:?}", reading.mistakes);
    }
    Graph::check(&reading.spec, catalog, &EveryFileIsThere).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn every_example_is_a_pipeline_without_mistakes() {
    // Checking a model reads its file.
    let model = concat!("path=", env!("CARGO_MANIFEST_DIR"), "/../model/models/selfie.onnx");
    for entry in registry().catalog().entries() {
        let example = entry.example.replace("path=selfie.onnx", model);
        assert_eq!(mistakes_in(&example), "", "{}: {example}", entry.name);
    }
}

#[test]
fn every_handler_is_found_in_its_example_with_its_settings() {
    let registry = registry();
    let found = |name: &str| {
        let mut entries = registry.catalog().entries();
        entries.find(|entry| entry.name == name).map_or("", |entry| entry.in_example())
    };
    for entry in registry.catalog().entries() {
        assert_eq!(entry.in_example().split_whitespace().next(), Some(entry.name), "{}", entry.example);
    }
    assert_eq!(found("mix"), "mix amount=0.3 name=both");
    assert_eq!(found("text"), "text \"{fps} fps\" size=32");
    assert!(found("wgsl").ends_with("}\""), "quoted text is kept: {}", found("wgsl"));
}

#[test]
fn the_demo_and_its_relatives_are_pipelines_without_mistakes() {
    for text in [
        "pattern kind=ball ! markers ! waveform ! fps ! null",
        "pattern kind=disc ! overlay path=logo.png ! waveform kind=luma ! text \"{fps}\" ! null",
        "pattern ! contrast 1.2 ! brightness 0.0392157 ! gamma 2.2 ! saturation 0.7 ! invert ! mix amount=0.3 name=m \
         ! null; pattern kind=bars ! m.b",
        "pattern kind=ball size=1920x1080 ! blur sigma=2 ! text \"{fps} fps\" ! png path=out-%04d.png",
    ] {
        assert_eq!(mistakes_in(text), "", "{text}");
    }
}

#[test]
fn a_value_without_its_key_reaches_the_natural_setting() {
    for text in [
        "pattern bars ! blur 3 ! null",
        "image photo.png ! resize 64x64 ! png out.png",
        "pattern ! crop 8x8 ! flip v ! rotate 180 ! median 5 ! boxblur 3 ! null",
        "pattern ! threshold 0.4 ! hue 90 ! sharpen 2 ! convert gray8 ! null",
        "pattern ! convolve 0,0,0,0,1,0,0,0,0 ! warp 1,0,0,0,1,0 ! every 2 ! delay 3 ! null",
        "pattern ! overlay logo.png ! waveform luma ! wgsl glow.wgsl ! lut film.cube ! null",
        "y4m - ! y4m -",
    ] {
        assert_eq!(mistakes_in(text), "", "{text}");
    }
}
