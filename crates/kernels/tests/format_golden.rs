//! Conversions equal double precision within one level. `data/format/README.md` describes the reference frames.

use std::path::PathBuf;

use crate::format_made::{Converted, OTHERS, bare, made_up};
use vramp_kernels::Level;
use vramp_kernels::stored::Way;
use vramp_plan::{Format, Siting, Size};

struct Case {
    line: String,
    from: Format,
    into: Format,
    size: Size,
    way: Way,
    expected: Vec<u8>,
}

fn cases() -> Vec<Case> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/format");
    let text = std::fs::read_to_string(folder.join("cases.txt")).expect("the file is checked in");
    let mut frames = &std::fs::read(folder.join("frames.bin")).expect("the file is checked in")[..];
    let case = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let (expected, later) = frames.split_at(words[6].parse().expect("the last word is a number of bytes"));
        frames = later;
        Case {
            line: line.to_owned(),
            from: words[0].parse().expect("a format"),
            into: words[1].parse().expect("a format"),
            size: words[2].parse().expect("a size"),
            way: Way::new(words[3] == "bt709", words[4] == "full").sited(match words[5] {
                "centre" => Siting::Centre,
                "left" => Siting::Left,
                "alternate" => Siting::Alternate,
                other => panic!("{other} is not a siting"),
            }),
            expected: expected.to_vec(),
        }
    };
    text.lines().map(case).collect()
}

#[test]
fn every_format_and_way_is_within_one_level_of_double_precision() {
    let cases = cases();
    for format in OTHERS {
        for way in Way::ALL {
            let here = |case: &&Case| (case.from == format || case.into == format) && case.way == way;
            let wanted = if format == Format::Rgb8 && way != Way::ALL[0] { 0 } else { 6 };
            assert_eq!(cases.iter().filter(here).count(), wanted, "{format} {way:?}");
        }
    }
    for (format, siting) in [Format::I420, Format::Nv12].into_iter().flat_map(|f| Siting::ALL.map(|s| (f, s))) {
        let way = Way::ALL[0].sited(siting);
        let here = |case: &&Case| (case.from == format || case.into == format) && case.way == way;
        assert_eq!(cases.iter().filter(here).count(), 6, "{format} {siting:?}");
    }
    for case in cases {
        let Case { from, into, size, way, .. } = case;
        let frame = made_up(from, size, u64::from(size.width));
        let off = u8::from(from != Format::Rgb8 && into != Format::Rgb8);
        for level in Level::available() {
            let made = Converted { level, ..Converted::new(from, into, size, way, frame.clone()) }.whole();
            let made = bare(into, size, &made);
            assert_eq!(made.len(), case.expected.len());
            let far = made.iter().zip(&case.expected).position(|(a, b)| a.abs_diff(*b) > off);
            if let Some(at) = far {
                panic!("{} at {level}: byte {at} is {} instead of {}", case.line, made[at], case.expected[at]);
            }
        }
    }
}
