//! Text: its position, its amount of ink, and that it allocates nothing per frame.

use crate::easel::{self, Made, Request, THIRTY, allocations, drawn, refusal, run, size};

/// White text on black at x 20, y 60.
fn text(text: &str, size_px: u32) -> Made {
    let size_px = size_px.to_string();
    drawn(size(700, 200), ("text", &[("text", text), ("y", "60"), ("size", &size_px)]))
}

fn ink(made: &Made) -> (u32, u32, u32, u32) {
    made.ink().expect("something was written")
}

#[test]
fn letters_stand_on_their_baseline_at_their_size() {
    // DejaVu Sans: H is 0.729 of its size high, is on the baseline, and its stem begins 0.098 to the right.
    for size_px in [12, 24, 50] {
        let made = text("H", size_px);
        let (left, top, right, bottom) = ink(&made);
        let em = f64::from(size_px);
        assert_eq!(bottom, 60, "the row of the baseline is the first below");
        assert!((f64::from(bottom - top) - 0.729 * em).abs() <= 1.0, "{size_px}: {}", bottom - top);
        assert!((f64::from(left) - (20.0 + 0.098 * em)).abs() <= 1.0, "{size_px}: {left}");
        assert!((f64::from(right - left) - 0.556 * em).abs() <= 1.5, "{size_px}: {}", right - left);
        // Two stems and a bar.
        let expected = (2.0 * 0.099 * 0.729 + 0.083 * 0.358) * em * em;
        assert!((made.amount() / expected - 1.0).abs() < 0.2, "{size_px}: {} of {expected}", made.amount());
    }
    assert!(ink(&text("p", 24)).3 > 63, "what hangs below the baseline is drawn");
}

#[test]
fn advances_are_the_fonts_however_long_the_line() {
    // An n advances by 0.634; the last one's ink ends 0.09 before that.
    let (left, _, right, _) = ink(&text(&"n".repeat(60), 17));
    let expected = 60.0 * 0.634 * 17.0 - 0.18 * 17.0;
    assert!((f64::from(right - left) - expected).abs() < 2.5, "{} for {expected}", right - left);
}

#[test]
fn lines_are_as_far_apart_as_the_font_says() {
    let one = text("H", 30);
    let lines = text("H\r\n\nH", 30);
    let (top, bottom) = (ink(&one).1, ink(&lines).3);
    // 2 lines of 1.164 * 30 pixels further down.
    assert_eq!(ink(&lines).1, top);
    assert_eq!(bottom, ink(&one).3 + 70);
    assert!(lines.each().all(|(_, y, pixel)| !(65..90).contains(&y) || pixel[1] == 0), "the empty line is empty");
}

#[test]
fn colour_and_its_alpha_are_those_of_the_setting() {
    let given = [("text", "\u{2588}"), ("color", "ff800080"), ("size", "40"), ("y", "60")];
    let made = drawn(size(100, 100), ("text", &given));
    let inside = made.at(32, 50);
    assert!(inside[0].abs_diff(128) <= 1 && inside[1].abs_diff(64) <= 1 && inside[2] == 0, "{inside:?}");
    assert_eq!(inside[3], 255);
}

#[test]
fn text_may_lie_partly_or_wholly_outside() {
    let at = |x: &str, y: &str| drawn(size(60, 40), ("text", &[("text", "Hello"), ("x", x), ("y", y)]));
    assert_eq!(ink(&at("-10", "30")).0, 0);
    assert_eq!(ink(&at("50", "30")).2, 60);
    for (x, y) in [("-500", "30"), ("500", "30"), ("0", "-30"), ("0", "3000"), ("65536", "65536"), ("-65536", "-65536")]
    {
        assert!(at(x, y).ink().is_none(), "{x},{y}");
    }
}

/// Ink per column from the left.
fn profile(made: &Made) -> Vec<u32> {
    let (left, _, right, _) = ink(made);
    (left..right).map(|x| (0..made.size.height).map(|y| u32::from(made.at(x, y)[1])).sum()).collect()
}

#[test]
fn scripts_that_run_to_the_left_come_out_so() {
    // Alef then lamed, alone and together: the first letter is on the right.
    let (alef, both) = (text("\u{5d0}", 48), text("\u{5d0}\u{5dc}", 48));
    let (alef, both) = (profile(&alef), profile(&both));
    assert_eq!(both[both.len() - alef.len()..], alef[..]);
    // The text still begins at x.
    assert!(ink(&text("\u{5d0}\u{5dc}", 48)).0 < 26);
    // Letters of an Arabic word join: the word differs from its separate letters.
    let (joined, apart) = (text("\u{628}\u{628}\u{628}", 48), text("\u{628} \u{628} \u{628}", 48));
    let width = |made: &Made| ink(made).2 - ink(made).0;
    assert!(width(&joined) * 2 < width(&apart), "{} of {}", width(&joined), width(&apart));
    // A Latin word inside keeps its own direction.
    let mixed = profile(&text("\u{5d0} abc", 48));
    let latin = profile(&text("abc", 48));
    assert_eq!(mixed[..latin.len()], latin[..]);
}

#[test]
fn accents_lie_over_their_letters() {
    let (plain, composed, combined) = (text("e", 48), text("\u{e9}", 48), text("e\u{301}", 48));
    assert!(composed == combined, "one character or two, it looks the same");
    assert!(ink(&composed).1 < ink(&plain).1, "the accent is above");
    assert_eq!(ink(&composed).2, ink(&plain).2, "and takes no room beside");
    // A combination that no font has as one character.
    let (q, dotted) = (text("q", 48), text("q\u{307}\u{323}", 48));
    let ((_, top, right, bottom), q) = (ink(&dotted), ink(&q));
    assert!(right <= q.2 + 1 && top < q.1 && bottom > q.3, "{right} {top} {bottom} {q:?}");
}

#[test]
fn whatever_is_written_something_or_nothing_is_shown() {
    for shown in ["👩\u{200d}👩\u{200d}👧", "你好", "\u{10ffff}", "x\0y", "\t", "a\u{2029}b", "\u{202e}abc", "\u{feff}"]
    {
        let _ = text(shown, 32);
    }
    assert!(text("\u{10ffff}", 32).ink().is_some(), "a box for what no font has");
    for nothing in ["", " ", "\n\n", "\u{200e}"] {
        assert!(text(nothing, 32).ink().is_none(), "{nothing:?}");
    }
}

#[test]
fn any_size_of_letters_works() {
    let tiny = text("Hello", 1);
    assert!(tiny.amount() > 0.2 && ink(&tiny).2 <= 25, "{} {:?}", tiny.amount(), tiny.ink());
    let huge = drawn(size(900, 1000), ("text", &[("text", "H{frame}"), ("x", "0"), ("y", "900"), ("size", "1024")]));
    let (_, top, _, bottom) = ink(&huge);
    assert_eq!((bottom, (150..156).contains(&top)), (900, true), "{top}");
}

#[test]
fn more_text_than_can_be_drawn_is_refused_with_numbers() {
    let many = "x".repeat(10_000);
    for more in [&many, &format!("{{frame}}{many}")] {
        let error = refusal(("text", &[("text", more)]));
        assert!(error.contains("10001 glyphs and lines") && error.contains("at most 8000"), "{error}");
    }
    let endless = refusal(("text", &[("text", &"x".repeat(1_000_000))]));
    assert!(endless.contains("1000000 characters"), "{endless}");
    // Spaces are not drawn, so many of them are allowed.
    assert!(easel::make(("text", &[("text", &"x ".repeat(7000))])).is_ok());
    let wide: String = ('\u{4e00}'..'\u{5e00}').collect();
    let fonts = easel::make(("text", &[("text", &wide), ("size", "1024")]));
    assert!(fonts.err().is_none_or(|error| error.contains("bytes at this size")));
}

#[test]
fn values_that_find_no_room_are_cut_off() {
    // 7998 letters and a line leave room for one figure.
    let letters = format!("{{size}}{}", "x".repeat(7998));
    let made = drawn(size(300, 60), ("text", &[("text", &letters)]));
    let one = drawn(size(300, 60), ("text", &[("text", "3")]));
    let (left, _, right, _) = ink(&one);
    let same = |x: u32| (0..60).all(|y| made.at(x, y) == one.at(x, y));
    assert!((left..right).all(same), "the first figure is there");
    assert!((34..90).all(|x| (0..60).all(|y| made.at(x, y)[1] == 0)), "the others left their room empty");
}

/// Frame n of a text on black, at 30 fps.
fn frame(text: &str, n: usize) -> Made {
    let frames = (n + 1).to_string();
    let black: Request<'_> = ("pattern", &[("kind", "solid"), ("size", "640x80"), ("frames", &frames)]);
    run(&[black, ("text", &[("text", text)])], &[], THIRTY).remove(n)
}

#[test]
fn values_stand_in_their_places() {
    for (template, n, shown) in [
        ("{frame}", 0, "0"),
        ("n {frame}!", 12, "n 12!"),
        ("{time}", 45, "0:00:01.500"),
        ("{size} at {frame}", 3, "640x80 at 3"),
        ("{{frame} {word} {", 3, "{frame} {word} {"),
        ("a {time}\nb {frame}", 1, "a 0:00:00.033\nb 1"),
        ("{fps} fps", 20, "30.0 fps"),
    ] {
        // As written, except for pairs that the font would kern.
        let (made, fixed) = (frame(template, n), frame(&shown.replace('{', "{{"), n));
        let (made, fixed) = (ink(&made), ink(&fixed));
        let near = |a: u32, b: u32| a.abs_diff(b) <= 1;
        assert_eq!((made.1, made.3), (fixed.1, fixed.3), "{template}");
        assert!(near(made.0, fixed.0) && near(made.2, fixed.2), "{template}: {made:?} {fixed:?}");
    }
    assert!(frame("{frame}", 4) != frame("{frame}", 5));
}

#[test]
fn values_beside_words_that_run_to_the_left_go_to_their_left() {
    let word = profile(&frame("\u{5e9}\u{5dc}\u{5d5}\u{5dd}", 0));
    let after = profile(&frame("\u{5e9}\u{5dc}\u{5d5}\u{5dd} {frame}", 0));
    assert_eq!(after[after.len() - word.len()..], word[..], "the word is on the right");
    let number = profile(&frame("0", 0));
    assert_eq!(after[..number.len()], number[..], "and the number on the left");
    let latin = profile(&frame("{frame} abc \u{5d0}", 0));
    assert_eq!(latin[..number.len()], number[..], "in a line that runs to the right it stays where it is written");
}

#[test]
fn a_font_file_is_used_and_a_bad_one_refused() {
    let with = |path: &str| refusal(("text", &[("text", "a"), ("font", path)]));
    let missing = with("no-such-font.ttf");
    assert!(missing.contains("font `no-such-font.ttf` cannot be read"), "{missing}");
    let folder = std::env::temp_dir().join(format!("vramp-letters-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for temporary files");
    let embedded = include_bytes!("../assets/DejaVuSans.ttf");
    let path = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).expect("a file can be written");
        path.to_str().expect("a path in letters").to_owned()
    };
    for (name, bytes, why) in [
        ("garbage.ttf", &b"this is not a font"[..], "18 bytes long, but not a valid font"),
        ("empty.ttf", &[], "empty"),
        ("cut.ttf", &embedded[..300], "300 bytes long, but not a valid font"),
    ] {
        let path = path(name, bytes);
        let error = with(&path);
        assert!(error.contains(&path) && error.contains(why) && error.contains(".otf"), "{error}");
    }
    let error = with(folder.to_str().expect("a path in letters"));
    assert!(error.contains("not a file"), "{error}");
    let whole = path("whole.ttf", embedded);
    let made = drawn(size(300, 60), ("text", &[("text", "Hello"), ("font", &whole)]));
    assert!(made == drawn(size(300, 60), ("text", &[("text", "Hello")])));
    std::fs::remove_dir_all(folder).expect("it is there");
}

#[test]
fn fonts_that_were_damaged_do_no_harm() {
    let embedded = include_bytes!("../assets/DejaVuSans.ttf");
    let path = std::env::temp_dir().join(format!("vramp-damaged-{}.ttf", std::process::id()));
    let mut state = 7_u64;
    let mut below = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    for _ in 0..40 {
        let mut bytes = embedded.to_vec();
        for _ in 0..=below(200) {
            // The table directory and headers, with lengths and offsets, or anywhere.
            let at = if below(2) == 0 { below(1000) } else { below(bytes.len()) };
            bytes[at] = below(256) as u8;
        }
        std::fs::write(&path, &bytes).expect("a file can be written");
        let font = path.to_str().expect("a path in letters");
        // Made or refused, but no panic.
        let _ = easel::make(("text", &[("text", "Ag\u{e9} \u{5d0}\u{628}\u{628} {frame}"), ("font", font)]));
    }
    std::fs::remove_file(path).expect("it is there");
}

#[test]
fn text_that_changes_allocates_nothing() {
    assert!(vramp_runtime::internals::is_counted());
    let black: Request<'_> = ("pattern", &[("kind", "solid"), ("size", "320x200")]);
    let all: Request<'_> = ("text", &[("text", "{fps} {frame}\n{time} {size} \u{5d0}{{")]);
    // 60 frames before and 60 after: the number gets one digit more in between, and another afterwards.
    assert_eq!(allocations(&[black, all], 60), 0);
    assert_eq!(allocations(&[black, ("fps", &[])], 60), 0);
    assert_eq!(allocations(&[("pattern", &[("size", "320x200")])], 60), 0);
    let demo = [("pattern", &[("size", "320x200")][..]), ("markers", &[]), ("waveform", &[]), ("fps", &[])];
    assert_eq!(allocations(&demo, 60), 0);
}
