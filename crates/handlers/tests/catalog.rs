//! The declarations of the built-in handlers, compared with lists written by hand.

use std::collections::BTreeSet;

use vramp_handlers::registry;
use vramp_plan::catalog::{
    Catalog, Entry, Fallback, Family, FormatRule, Frames, KernelKind, KernelRule, RateRule, SettingValues, SizeRule,
    TransferDirection, Units, Value, ValueType, When,
};
use vramp_plan::{Format, Size, Space};

fn entry(family: Family, name: &str) -> &'static Entry {
    registry().catalog().entries().find(|e| e.family == family && e.name == name).expect("the handler exists")
}

/// The settings of a handler with only its required ones given.
fn defaults(entry: &Entry) -> SettingValues {
    let mut settings = SettingValues::default();
    for setting in entry.settings {
        if let Fallback::Is(default) = setting.fallback {
            settings.set(setting.name, setting.value.read(default).expect("a default fits its own type"));
        }
    }
    settings
}

fn set(settings: &mut SettingValues, entry: &Entry, key: &str, text: &str) {
    let setting = entry.setting(key).expect("the setting exists");
    settings.set(key, setting.value.read(text).expect("the value fits"));
}

fn refuses(entry: &Entry, key: &str, text: &str) -> bool {
    entry.setting(key).expect("the setting exists").value.read(text).is_none()
}

fn units(entry: &Entry, settings: &SettingValues, size: Size) -> f64 {
    match entry.work.units {
        Units::PerPixel(n) => n * size.pixels() as f64,
        Units::PerPixelBy(f) => f(settings) * size.pixels() as f64,
        Units::PerFrameBy(f) => f(settings, size, size),
    }
}

#[test]
fn every_entry_registers_and_convert_is_the_converter() {
    let registry = registry();
    let catalog = registry.catalog();
    assert_eq!(catalog.converter().map(|e| e.name), Some("convert"));
    for entry in catalog.entries() {
        assert!(Catalog::of([entry]).is_ok(), "{}", entry.name);
    }
}

#[test]
fn the_handlers_are_exactly_these() {
    let expected = [
        (Family::Source, "app camera image pattern raw video y4m"),
        (
            Family::Filter,
            "blur boxblur brightness chromakey colormatrix contrast convolve crop edges flip gamma grayscale hue \
             invert lut median posterize resize rotate saturation sharpen threshold warp wgsl",
        ),
        (Family::Draw, "compositor fps markers mix overlay text waveform"),
        (Family::Convert, "convert download upload"),
        (Family::Model, "model"),
        (Family::Control, "delay every identity probe"),
        (Family::Sink, "app jpeg null png raw terminal values video window y4m"),
    ];
    let registry = registry();
    let catalog = registry.catalog();
    for (family, names) in expected {
        let found: Vec<_> = catalog.entries().filter(|e| e.family == family).map(|e| e.name).collect();
        assert_eq!(found.join(" "), names, "{}", family.name());
    }
}

#[test]
fn settings_and_their_defaults_are_exactly_these() {
    // `key` is required, `key?` is optional, `key=value` has a default.
    let expected = [
        (Family::Source, "pattern", "kind=ball size=1280x720 fps=30 frames? color=000000 seed=0 label=true"),
        (Family::Source, "image", "path loop=false fps=30"),
        (Family::Source, "y4m", "path"),
        (Family::Source, "video", "path start? duration? loop=false hwaccel=none errors=count timeout=10"),
        (Family::Source, "camera", "device=0 size? fps?"),
        (Family::Source, "raw", "path=- size format=rgba8 fps=30"),
        (Family::Source, "app", "size format=rgba8 fps? live=false space=cpu"),
        (Family::Filter, "brightness", "amount=0"),
        (Family::Filter, "contrast", "amount=1 pivot=0"),
        (Family::Filter, "gamma", "value=1"),
        (Family::Filter, "saturation", "amount=1"),
        (Family::Filter, "hue", "degrees=0"),
        (Family::Filter, "invert", ""),
        (Family::Filter, "grayscale", ""),
        (Family::Filter, "threshold", "level=0.5"),
        (Family::Filter, "posterize", "levels=4"),
        (Family::Filter, "colormatrix", "m"),
        (Family::Filter, "lut", "path"),
        (Family::Filter, "chromakey", "color=00ff00 similarity=0.3 smooth=0.1"),
        (Family::Filter, "blur", "sigma=2 size=0"),
        (Family::Filter, "boxblur", "size=9"),
        (Family::Filter, "sharpen", "amount=1"),
        (Family::Filter, "convolve", "kernel divisor? bias=0"),
        (Family::Filter, "edges", ""),
        (Family::Filter, "median", "size=3"),
        (Family::Filter, "resize", "size? scale? filter=bilinear"),
        (Family::Filter, "crop", "x=0 y=0 size"),
        (Family::Filter, "flip", "axis=h"),
        (Family::Filter, "rotate", "degrees=90"),
        (Family::Filter, "warp", "m"),
        (Family::Filter, "wgsl", "path? code?"),
        (Family::Draw, "overlay", "path x=0 y=0 alpha=1"),
        (Family::Draw, "markers", "size=30 pulse=true"),
        (Family::Draw, "waveform", "kind=sine"),
        (Family::Draw, "text", "text x=20 y=40 size=24 color=ffffff font?"),
        (Family::Draw, "fps", ""),
        (Family::Draw, "compositor", "layout=grid size?"),
        (Family::Draw, "mix", "amount=0.5 mode=mix"),
        (Family::Convert, "convert", "format"),
        (Family::Convert, "upload", ""),
        (Family::Convert, "download", ""),
        (
            Family::Model,
            "model",
            "path output=raw of? size? multiple=32 layout=auto channels=rgb range=0..1 mean? std? fit=stretch channel? \
             activation=none threshold? show=alpha top=5 decode? iou=0.45 labels? every=1",
        ),
        (Family::Control, "identity", ""),
        (Family::Control, "delay", "frames keep-times=false"),
        (Family::Control, "every", "n"),
        (Family::Control, "probe", ""),
        (Family::Sink, "null", ""),
        (Family::Sink, "png", "path quality?"),
        (Family::Sink, "jpeg", "path quality=90"),
        (Family::Sink, "y4m", "path partial=beside"),
        (Family::Sink, "raw", "path partial=beside"),
        (Family::Sink, "values", "path partial=beside"),
        (Family::Sink, "video", "path codec? crf? preset? audio=copy partial=beside"),
        (Family::Sink, "window", "title=vramp fullscreen=false"),
        (Family::Sink, "terminal", ""),
        (Family::Sink, "app", "space=cpu format=rgba8 hold=16"),
    ];
    let shown = |entry: &Entry| {
        let settings = entry.settings.iter().map(|s| match s.fallback {
            Fallback::Required => s.name.to_owned(),
            Fallback::Unset => format!("{}?", s.name),
            Fallback::Is(default) => format!("{}={default}", s.name),
        });
        settings.collect::<Vec<_>>().join(" ")
    };
    for entry in registry().catalog().entries() {
        let (family, name, settings) = (entry.family, entry.name, shown(entry));
        let listed = expected.iter().any(|row| (row.0, row.1) == (family, name));
        assert!(listed, "a row is missing: (Family::{family:?}, {name:?}, {settings:?})");
    }
    for (family, name, settings) in expected {
        assert_eq!(shown(entry(family, name)), settings, "{} {name}", family.name());
    }
}

#[test]
fn choices_are_exactly_these() {
    let expected = [
        (Family::Source, "pattern", "kind", "ball bars gradient checker noise solid disc"),
        (Family::Filter, "median", "size", "3 5"),
        (Family::Filter, "resize", "filter", "nearest bilinear area lanczos"),
        (Family::Filter, "flip", "axis", "h v both"),
        (Family::Filter, "rotate", "degrees", "90 180 270"),
        (Family::Draw, "waveform", "kind", "sine luma"),
        (Family::Draw, "compositor", "layout", "grid row column pip"),
        (Family::Draw, "mix", "mode", "mix over add multiply screen difference"),
        (Family::Model, "model", "output", "raw mask classes boxes"),
        (Family::Model, "model", "layout", "auto nchw nhwc"),
        (Family::Model, "model", "channels", "rgb bgr gray"),
        (Family::Model, "model", "range", "0..1 -1..1 0..255"),
        (Family::Model, "model", "fit", "stretch letterbox crop"),
        (Family::Model, "model", "activation", "none sigmoid softmax"),
        (Family::Model, "model", "show", "alpha mask"),
        (Family::Model, "model", "decode", "yolov8 yolox blazeface corners"),
    ];
    for (family, name, key, words) in expected {
        let setting = entry(family, name).setting(key).expect("the setting exists");
        assert_eq!(setting.value.words().join(" "), words, "{name} {key}");
    }
}

#[test]
fn the_setting_that_needs_no_key_is_exactly_this_one() {
    let expected = [
        (Family::Source, "pattern=kind image=path y4m=path video=path app=size"),
        (
            Family::Filter,
            "brightness=amount contrast=amount gamma=value saturation=amount hue=degrees threshold=level \
             posterize=levels colormatrix=m lut=path chromakey=color blur=sigma boxblur=size sharpen=amount \
             convolve=kernel median=size resize=size crop=size flip=axis rotate=degrees warp=m wgsl=path",
        ),
        (Family::Draw, "overlay=path markers=size waveform=kind text=text compositor=layout mix=amount"),
        (Family::Convert, "convert=format"),
        (Family::Model, "model=path"),
        (Family::Control, "delay=frames every=n"),
        (Family::Sink, "png=path jpeg=path y4m=path raw=path values=path video=path"),
    ];
    for (family, pairs) in expected {
        let found: BTreeSet<String> = registry()
            .catalog()
            .entries()
            .filter(|e| e.family == family)
            .filter_map(|e| e.bare.map(|bare| format!("{}={bare}", e.name)))
            .collect();
        assert_eq!(found, pairs.split(' ').map(str::to_owned).collect());
    }
}

/// Otherwise it would take the first word of the next chain: `window pattern ! null`.
#[test]
fn free_text_without_a_key_has_to_be_given() {
    for entry in registry().catalog().entries() {
        let Some(setting) = entry.bare.and_then(|bare| entry.setting(bare)) else { continue };
        let free = matches!(setting.value, ValueType::Text | ValueType::Path(_));
        let needed =
            setting.fallback == Fallback::Required || entry.one_of.iter().any(|group| group.contains(&setting.name));
        assert!(!free || needed, "{} {}", entry.name, setting.name);
    }
}

/// Otherwise a run could overwrite its own input unnoticed.
#[test]
fn paths_of_sinks_are_written_and_all_others_are_read() {
    for entry in registry().catalog().entries() {
        for setting in entry.settings {
            if let ValueType::Path(path_use) = setting.value {
                assert_eq!(path_use.writes(), entry.family == Family::Sink, "{} {}", entry.name, setting.name);
            }
        }
    }
}

#[test]
fn every_rule_refers_to_a_setting_of_a_fitting_type() {
    for entry in registry().catalog().entries() {
        let is = |key: &str, fits: fn(&ValueType) -> bool| {
            let setting = entry.setting(key).unwrap_or_else(|| panic!("{}: no setting {key}", entry.name));
            assert!(fits(&setting.value), "{}: {key} is {:?}", entry.name, setting.value);
        };
        let is_size: fn(&ValueType) -> bool = |v| *v == ValueType::Size;
        let is_int: fn(&ValueType) -> bool = |v| matches!(v, ValueType::Int { .. });
        for output in entry.outputs {
            match output.size {
                SizeRule::Setting(key) | SizeRule::SettingOrInput(key) | SizeRule::Probed(Some(key)) => {
                    is(key, is_size);
                }
                SizeRule::SettingOrScaled(size, scale) => {
                    is(size, is_size);
                    is(scale, |v| matches!(v, ValueType::Number { .. }));
                }
                SizeRule::Cut(x, y, size) => {
                    is(x, is_int);
                    is(y, is_int);
                    is(size, is_size);
                }
                SizeRule::Turned(key) => is(key, |v| matches!(v, ValueType::Choice(_))),
                SizeRule::Input | SizeRule::Probed(None) => {}
            }
            if let RateRule::Setting(key) | RateRule::Probed(Some(key)) = output.rate {
                is(key, |v| *v == ValueType::Rate);
            }
            if let FormatRule::Setting(key) = output.format {
                is(key, |v| *v == ValueType::Format);
            }
        }
        if let When::Setting(key) = entry.keeps_times {
            is(key, |v| *v == ValueType::Bool);
        }
        for frames in [entry.delay, entry.every] {
            if let Frames::Setting(key) = frames {
                is(key, is_int);
            }
        }
        if let KernelRule::By { setting, cases, .. } = entry.kernel {
            let words = entry.setting(setting).expect("the kernel's setting exists").value.words();
            assert!(cases.iter().all(|(word, _)| words.contains(word)), "{}", entry.name);
        }
    }
}

#[test]
fn pixel_handlers_offer_both_spaces_and_the_outside_world_is_on_the_host() {
    let host_only =
        [(Family::Source, "image y4m video camera raw"), (Family::Sink, "png jpeg y4m raw video terminal values")];
    for entry in registry().catalog().entries() {
        let host = host_only.iter().any(|(f, names)| *f == entry.family && names.split(' ').any(|n| n == entry.name));
        let expected: &[Space] = match (host, entry.name) {
            (true, _) | (false, "probe") => &[Space::Cpu],
            (false, "wgsl" | "upload" | "download") => &[Space::Gpu],
            (false, _) => &[Space::Gpu, Space::Cpu],
        };
        assert_eq!(entry.spaces, expected, "{}", entry.name);
        assert_eq!(entry.blocking, host || entry.name == "window", "{}", entry.name);
    }
}

#[test]
fn kernels_follow_from_settings() {
    use KernelKind::{Gather, Generator, Opaque, Pointwise, Reduction, Stencil};
    let kind = |family, name: &str, given: &[(&str, &str)]| {
        let entry = entry(family, name);
        let mut settings = defaults(entry);
        for (key, text) in given {
            set(&mut settings, entry, key, text);
        }
        entry.kernel.under(&settings).map(|kernel| (kernel.kind, kernel.dispatches))
    };
    assert_eq!(kind(Family::Source, "pattern", &[]), Some((Generator, 1)));
    for name in
        "brightness contrast gamma saturation hue invert grayscale threshold posterize colormatrix lut chromakey"
            .split(' ')
    {
        assert_eq!(kind(Family::Filter, name, &[]), Some((Pointwise, 1)), "{name}");
    }
    for name in "overlay markers waveform text fps mix".split(' ') {
        assert_eq!(kind(Family::Draw, name, &[]), Some((Pointwise, 1)), "{name}");
    }
    for name in "crop flip rotate warp".split(' ') {
        assert_eq!(kind(Family::Filter, name, &[]), Some((Gather, 1)), "{name}");
    }
    for (name, dispatches) in
        [("blur", 2), ("boxblur", 2), ("sharpen", 1), ("convolve", 1), ("edges", 1), ("median", 1)]
    {
        assert_eq!(kind(Family::Filter, name, &[]), Some((Stencil, dispatches)), "{name}");
    }
    for (filter, expected) in
        [("nearest", (Gather, 1)), ("bilinear", (Stencil, 1)), ("area", (Stencil, 2)), ("lanczos", (Stencil, 2))]
    {
        assert_eq!(kind(Family::Filter, "resize", &[("filter", filter)]), Some(expected), "{filter}");
    }
    assert_eq!(kind(Family::Draw, "waveform", &[("kind", "luma")]), Some((Reduction, 2)));
    assert_eq!(kind(Family::Draw, "compositor", &[]), Some((Gather, 1)));
    assert_eq!(kind(Family::Filter, "wgsl", &[]), Some((Opaque, 1)));
    for name in "identity delay every probe".split(' ') {
        assert_eq!(kind(Family::Control, name, &[]), None, "{name}");
    }
    assert_eq!(kind(Family::Convert, "upload", &[]), None);
    assert_eq!(kind(Family::Convert, "convert", &[("format", "nv12")]), Some((Gather, 1)));
    assert_eq!(kind(Family::Convert, "convert", &[("format", "rgba8")]), Some((Pointwise, 1)));
    for entry in registry().catalog().entries().filter(|e| e.family == Family::Sink) {
        assert!(entry.kernel.under(&defaults(entry)).is_none(), "{}", entry.name);
    }
}

#[test]
fn median_of_five_reads_twenty_five_pixels() {
    let entry = entry(Family::Filter, "median");
    let mut settings = defaults(entry);
    assert_eq!(entry.kernel.under(&settings).map(|k| k.reads_per_pixel), Some(9));
    set(&mut settings, entry, "size", "5");
    assert_eq!(entry.kernel.under(&settings).map(|k| k.reads_per_pixel), Some(25));
}

#[test]
fn work_is_finite_and_drawing_touches_no_more_than_the_frame() {
    for size in ["1x1", "3x5", "640x480", "65536x65536"].map(|s| s.parse::<Size>().expect("a size")) {
        for entry in registry().catalog().entries() {
            let n = units(entry, &defaults(entry), size);
            assert!(n.is_finite() && n >= 0.0, "{} at {size}: {n}", entry.name);
            // The luma waveform also reads the whole frame; the default is the sine.
            if matches!(entry.work.units, Units::PerFrameBy(_)) {
                assert!(n <= size.pixels() as f64, "{} at {size}: {n}", entry.name);
            }
        }
    }
}

#[test]
fn a_wider_blur_is_more_work() {
    let entry = entry(Family::Filter, "blur");
    let size = Size { width: 10, height: 10 };
    let mut settings = defaults(entry);
    assert!((units(entry, &settings, size) - 2600.0).abs() < 1e-9, "two passes of 13 taps on 100 pixels");
    set(&mut settings, entry, "sigma", "5");
    assert!((units(entry, &settings, size) - 6200.0).abs() < 1e-9);
    set(&mut settings, entry, "size", "3");
    assert!((units(entry, &settings, size) - 600.0).abs() < 1e-9);
}

#[test]
fn formats_at_the_edges_are_exactly_these() {
    use vramp_plan::catalog::PortMedia;
    let formats = |media: &PortMedia| match media {
        PortMedia::Video { formats, .. } | PortMedia::Every { formats } => {
            formats.iter().map(|f| f.name()).collect::<Vec<_>>().join(" ")
        }
        other => panic!("{other:?} carries no pictures"),
    };
    let every = Format::RANKED.map(Format::name).join(" ");
    for (name, expected, rule) in [
        ("pattern", "rgba8", FormatRule::Declared),
        ("image", "rgba8", FormatRule::Declared),
        ("y4m", "i420 i422 i444 gray8", FormatRule::Probed),
        ("video", "i420 nv12 i422 i444 gray8 rgb8 rgba8", FormatRule::Probed),
        ("camera", "i420", FormatRule::Declared),
        ("raw", every.as_str(), FormatRule::Setting("format")),
    ] {
        let output = entry(Family::Source, name).outputs[0];
        assert_eq!((formats(&output.media).as_str(), output.format), (expected, rule), "{name}");
    }
    for (name, expected) in [
        ("null", every.as_str()),
        ("png", "rgba8"),
        ("jpeg", "rgba8 rgb8"),
        ("y4m", "i420 i422 i444 gray8"),
        ("raw", every.as_str()),
        ("video", "i420 nv12"),
        ("window", "rgba8"),
        ("terminal", "rgba8"),
    ] {
        assert_eq!(formats(&entry(Family::Sink, name).inputs[0].media), expected, "{name}");
    }
    for entry in registry().catalog().entries().filter(|e| matches!(e.family, Family::Filter | Family::Draw)) {
        assert!(entry.inputs.iter().all(|input| formats(&input.media) == "rgba8"), "{}", entry.name);
    }
}

#[test]
fn inputs_of_mix_and_compositor_are_named_and_counted() {
    let inputs = |name| {
        let inputs = entry(Family::Draw, name).inputs.iter();
        inputs.map(|i| format!("{}{}", i.name, if i.required { "" } else { "?" })).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(inputs("mix"), "a b");
    assert_eq!(inputs("compositor"), "in0 in1? in2? in3? in4? in5? in6? in7?");
    assert!(entry(Family::Draw, "mix").equal_sizes);
    for (name, small) in [("mix", false), ("overlay", true), ("text", true), ("fps", true), ("markers", false)] {
        assert_eq!(entry(Family::Draw, name).small.is_some(), small, "{name}");
    }
    assert!(entry(Family::Filter, "lut").small.is_some());
}

#[test]
fn only_these_hold_thin_out_transfer_or_run_live() {
    for entry in registry().catalog().entries() {
        assert_eq!(entry.stateful, entry.name == "delay", "{}", entry.name);
        let live = match (entry.name, entry.family) {
            ("camera", _) => When::Always,
            ("app", Family::Source) => When::Setting("live"),
            ("video", Family::Source) => When::LiveAddress("path"),
            _ => When::Never,
        };
        assert_eq!(entry.live, live, "{}", entry.name);
        assert_eq!(entry.delay != Frames::Fixed(0), entry.name == "delay", "{}", entry.name);
        assert_eq!(entry.every != Frames::Fixed(1), entry.name == "every", "{}", entry.name);
        assert_eq!(entry.open_settings, entry.name == "wgsl", "{}", entry.name);
        let transfer = match entry.name {
            "upload" => Some(TransferDirection::Up),
            "download" => Some(TransferDirection::Down),
            _ => None,
        };
        assert_eq!(entry.transfer, transfer, "{}", entry.name);
    }
}

#[test]
fn every_handler_runs() {
    let registry = registry();
    let only_planned = registry.catalog().entries().filter(|entry| !registry.runs(entry));
    let names: Vec<_> = only_planned.map(|entry| (entry.family, entry.name)).collect();
    assert_eq!(names, []);
}

#[test]
fn nonsense_is_refused_by_the_settings_themselves() {
    for (family, name, key, texts) in [
        (Family::Filter, "blur", "sigma", "0 -1 101 inf nan"),
        (Family::Filter, "blur", "size", "2 -3 1025"),
        (Family::Filter, "boxblur", "size", "0 8"),
        (Family::Filter, "gamma", "value", "0 -1"),
        (Family::Filter, "threshold", "level", "-0.1 1.1"),
        (Family::Filter, "posterize", "levels", "1 257 -1 2.5 x"),
        (Family::Filter, "median", "size", "1 4 7"),
        (Family::Filter, "rotate", "degrees", "0 45 360"),
        (Family::Filter, "resize", "scale", "0 -1 1e9"),
        (Family::Filter, "crop", "x", "-1 1.5"),
        (Family::Filter, "colormatrix", "m", "1 1,2,3"),
        (Family::Filter, "convolve", "kernel", "1 1,1,1,1"),
        (Family::Filter, "warp", "m", "1,0,0,0,1 a,b,c,d,e,f"),
        (Family::Draw, "overlay", "alpha", "-0.1 1.1"),
        (Family::Draw, "text", "size", "0 -1"),
        (Family::Control, "every", "n", "0 -1"),
        (Family::Control, "delay", "frames", "-1 1000000000"),
        (Family::Source, "pattern", "frames", "0 -1"),
        (Family::Source, "pattern", "seed", "-1 4294967296"),
        (Family::Source, "video", "duration", "0 -1"),
        (Family::Sink, "jpeg", "quality", "0 101"),
    ] {
        for text in texts.split(' ') {
            assert!(refuses(entry(family, name), key, text), "{name} {key}={text}");
        }
    }
}

#[test]
fn every_entry_explains_itself_and_shows_itself_in_use() {
    for entry in registry().catalog().entries() {
        assert!(!entry.about.is_empty() && !entry.about.contains('\n'), "{}", entry.name);
        assert!(entry.example.split([' ', ';']).any(|word| word == entry.name), "{}: {}", entry.name, entry.example);
        for setting in entry.settings {
            assert!(!setting.about.is_empty() && !setting.about.contains('\n'), "{} {}", entry.name, setting.name);
        }
    }
}

#[test]
fn the_camera_is_described_by_its_settings() {
    let camera = entry(Family::Source, "camera");
    let mut settings = defaults(camera);
    assert_eq!(settings.get("size"), None);
    assert_eq!(settings.text("device"), Some("0"));
    set(&mut settings, camera, "size", "640x480");
    assert_eq!(settings.get("size"), Some(&Value::Size(Size { width: 640, height: 480 })));
}

#[test]
fn settings_that_make_no_sense_together_are_refused() {
    let registry = registry();
    let catalog = registry.catalog();
    let huge = ["600000"; 20].join(",");
    for (handler, problem) in [
        ("convolve kernel=0,0,0,0,1,0,0,0,0 divisor=0".to_owned(), "must not be 0"),
        ("warp m=1,2,0,2,4,0".to_owned(), "is not invertible"),
        (format!("colormatrix m={huge}"), "row 1 of m is too large"),
    ] {
        let reading = vramp_plan::read_text(&format!("pattern ! {handler} ! null"), catalog);
        assert!(reading.mistakes.is_empty(), "{handler}");
        let error = vramp_plan::Graph::check(&reading.spec, catalog, &vramp_plan::catalog::NoProbe).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
}
