//! Reading pipelines: text in, text out.

use crate::text_kinds;
use vramp_plan::{Mistakes, ParsedGraph, SourceText, read_text, read_toml, write_text, write_toml};

fn shown(text: &str, reading: ParsedGraph) -> String {
    Mistakes { source: Some(SourceText::new("pipeline", text)), list: reading.mistakes }.to_string()
}

/// Asserts that the text is valid and equivalent to the expected text.
#[track_caller]
fn check(input: &str, expected: &str) {
    let reading = read_text(input, &text_kinds::catalog());
    assert!(reading.mistakes.is_empty(), "{}", shown(input, reading));
    assert_eq!(write_text(&reading.spec), expected);
}

/// Asserts the titles of all mistakes and the text that each points at.
#[track_caller]
fn titles(input: &str, expected: &[(&str, &str)]) {
    let reading = read_text(input, &text_kinds::catalog());
    let found: Vec<(&str, &str)> = reading
        .mistakes
        .iter()
        .map(|m| (m.title.as_str(), m.span.clone().and_then(|span| input.get(span)).unwrap_or("nowhere")))
        .collect();
    assert_eq!(found, expected);
}

/// Asserts the displayed mistakes of an invalid text.
#[track_caller]
fn answer(input: &str, expected: &str) {
    let reading = read_text(input, &text_kinds::catalog());
    assert_eq!(shown(input, reading).trim_end(), expected.trim_matches('\n').trim_end());
}

#[track_caller]
fn toml_answer(input: &str, expected: &str) {
    let reading = read_toml(input);
    assert_eq!(shown(input, reading).trim_end(), expected.trim_matches('\n').trim_end());
}

#[test]
fn a_chain_keeps_its_handlers_settings_and_links() {
    check(
        "pattern kind=ball size=1920x1080 ! blur sigma=2 ! text \"{fps} fps\" ! png path=out-%04d.png",
        "pattern kind=ball size=1920x1080 ! blur sigma=2 ! text text=\"{fps} fps\" ! png path=out-%04d.png\n",
    );
    check("pattern!blur 2!null", "pattern ! blur sigma=2 ! null\n");
    check("pattern on-error=skip name=cam ! null", "pattern name=cam on-error=skip ! null\n");
}

#[test]
fn chains_are_separated_by_semicolons_line_ends_and_plain_space() {
    let expected = "pattern ! null\npattern ! invert ! null\n";
    check("pattern ! null; pattern ! invert ! null", expected);
    check("pattern ! null\npattern ! invert ! null", expected);
    check("pattern ! null pattern ! invert ! null", expected);
    check(";;\n pattern ! null ;\n\n; pattern ! invert ! null;\r\n", expected);
}

#[test]
fn a_line_end_beside_a_link_is_just_space() {
    let expected = "pattern ! invert !{latest} null\n";
    check("pattern\n! invert !{latest}\n null", expected);
    check("pattern # the source\n\n  # then\n  ! invert !{latest} # why not\n\nnull", expected);
}

#[test]
fn a_hash_starts_a_comment_only_at_the_start_of_a_token() {
    check("# a file\npattern kind=a#b ! null # done", "pattern kind=a#b ! null\n");
    check("pattern kind=#b ! null", "pattern kind=\"#b\" ! null\n");
}

#[test]
fn references_reach_ports_forward_and_back() {
    check(
        "pattern name=cam ! mix; cam. !{queue depth=4} mix.b; mix. ! null",
        "pattern name=cam ! mix ! null\ncam. !{queue depth=4} mix0.b\n",
    );
    check("a. ! null pattern name=a", "null\npattern name=a\na. ! null0.\n");
    check("pattern ! blur0. blur ! null", "pattern ! blur ! null\n");
    // A given name has priority over a kind.
    check("pattern ! null; blur name=null; null. ! null0.", "pattern ! null\nblur name=null\nnull. ! null0.\n");
}

#[test]
fn two_default_names_are_never_the_same() {
    let blurs = "blur;".repeat(11);
    let reading = read_text(&format!("{blurs} blur1 ! null"), &text_kinds::catalog());
    let mut names = reading.spec.names();
    assert_eq!(names[10..12], ["blur10", "blur11"]);
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 13);
}

#[test]
fn a_word_after_a_handler_is_its_bare_value_or_the_next_chain() {
    check("text null", "text text=null\n");
    check("text a null", "text text=a\nnull\n");
    check("blur null", "blur\nnull\n");
    check("blur 2 invert", "blur sigma=2\ninvert\n");
    check("blur cam. ! null; pattern name=cam", "blur\nnull\npattern name=cam\ncam. ! null0.\n");
    check("png a.b ! null", "png path=a.b ! null\n");
    // A word that fits nothing else is the bare value; the checker refuses it.
    check("blur much", "blur sigma=much\n");
    check("blur \"null\"", "blur sigma=null\n");
    // Only the source of this name has a bare setting.
    check("y4m in/a=b.y4m ! y4m -", "y4m path=in/a=b.y4m ! y4m path=-\n");
}

#[test]
fn unknown_kinds_are_read_and_their_words_dropped_without_a_word() {
    check("blru 2 3 \"x\" sigma=4 ! null", "blru sigma=4 ! null\n");
    check("blru 2 pattern ! null", "blru\npattern ! null\n");
    check("ymm in.y4m ! null", "ymm ! null\n");
    check("pattern name=cam; blru cam. ! null", "pattern name=cam\nblru\nnull\ncam. ! null0.\n");
}

#[test]
fn values_are_quoted_only_where_they_must_be() {
    check(r#"text "a\"b\\c\nd\te""#, "text text=\"a\\\"b\\\\c\\nd\\te\"\n");
    check("text \"two\nlines\"", "text text=\"two\\nlines\"\n");
    check(r#"text text="" ; text text=C:\x ; text text="ä=ß""#, "text text=\"\"\ntext text=C:\\x\ntext text=ä=ß\n");
}

#[test]
fn one_mistake_is_one_message() {
    titles("! null", &[("a link with nothing before it", "!")]);
    titles("!", &[("a link with nothing before it", "!")]);
    titles("pattern ! ! null", &[("two links in a row", "!")]);
    titles("pattern !; null", &[("a link with nothing after it", "!")]);
    titles("pattern ; ! null", &[("a link with nothing before it", "!")]);
    titles("cam.", &[("`cam.` has no link", "cam.")]);
    titles("pattern ! \"x\" y=2 ! null", &[("text in quotes is a value, not a handler", "\"x\"")]);
    titles("sigma=2 ! null", &[("`sigma=` has no handler before it", "sigma")]);
    titles("pattern name=c; c. x=1 ! null", &[("a reference takes no settings", "x")]);
    titles("invert 2 ! null", &[("`invert` takes no bare value", "2")]);
    titles("blur 2 3", &[("`blur` already has a value for its bare setting `sigma`", "3")]);
    titles("blur sigma = 2 ! null", &[("space around `=`", "sigma = 2")]);
    titles("blur sigma= 2 ! null", &[("space around `=`", "sigma= 2")]);
    titles("blur sigma= size=3 ! null", &[("`sigma=` has no value", "sigma=")]);
    titles("blur =2", &[("space around `=`", "blur =2")]);
    titles("blur 2. =2", &[("nothing before `=`", "=2")]);
    titles("blur 2x=3", &[("`2x` cannot be a setting", "2x")]);
    titles("pattern ! {latest} null", &[("space between `!` and `{`", "! {")]);
    titles("pattern !{} null", &[("a link without a policy", "!{}")]);
    titles("pattern !{latest null", &[("`!{` is not closed", "!{latest ")]);
    titles("pattern !{ null", &[("`!{` is not closed", "!{ ")]);
    titles("pattern !{queue depth=4 fast} null", &[("unexpected word `fast`", "fast")]);
    titles("pattern !{depth=4} null", &[("a depth without a policy", "depth=4")]);
}

#[test]
fn depths_are_whole_numbers_in_their_range() {
    check("pattern !{queue depth=65536} null", "pattern !{queue depth=65536} null\n");
    for depth in ["0", "65537", "99999999999999999999", "-1", "+1", "1.5", "", "x"] {
        let input = format!("pattern !{{queue depth={depth}}} null");
        titles(&input, &[(&format!("`{depth}` cannot be a depth"), &format!("depth={depth}"))]);
    }
}

#[test]
fn everything_wrong_is_reported_in_the_order_of_the_text() {
    titles(
        "nowhere. ! null !{lates} invert 5; pattern name=9 on-error=skp; null.b ! c.\ninvert name=x name=y; blur 1 sigma=2",
        &[
            ("no handler is called `nowhere`", "nowhere."),
            ("unknown policy `lates`", "lates"),
            ("`invert` takes no bare value", "5"),
            ("`9` cannot be a name", "9"),
            ("unknown reaction `skp`", "skp"),
            ("no handler is called `c`", "c."),
            ("`name` is given twice", "y"),
            ("`sigma` is given twice", "sigma"),
        ],
    );
}

#[test]
fn mistakes_are_answered_with_the_text_a_caret_and_the_way_out() {
    answer(
        "pattern !{lates} null",
        "
error: unknown policy `lates`
 --> pipeline:1:11
  |
1 | pattern !{lates} null
  |           ^^^^^ expected latest, queue or lossless
  |
  = help: did you mean `latest`?",
    );
    answer(
        "pattern !{queue depth=70000} null",
        "
error: `70000` cannot be a depth
 --> pipeline:1:17
  |
1 | pattern !{queue depth=70000} null
  |                 ^^^^^^^^^^^ expected a whole number from 1 to 65536",
    );
    answer(
        "pattern on-error=skp ! null",
        "
error: unknown reaction `skp`
 --> pipeline:1:18
  |
1 | pattern on-error=skp ! null
  |                  ^^^ expected stop, skip or retry
  |
  = help: did you mean `skip`?",
    );
    answer(
        "invert nul",
        "
error: `invert` takes no bare value
 --> pipeline:1:8
  |
1 | invert nul
  |        ^^^ expected `!`, `;` or another handler
  |
  = help: did you mean `null`?",
    );
    answer(
        "pattern ! ! null",
        "
error: two links in a row
 --> pipeline:1:11
  |
1 | pattern ! ! null
  |           ^ expected a handler, or a reference such as `cam.`",
    );
    answer(
        "",
        "
error: there is no handler in this pipeline
 --> pipeline:1:1
  |
1 |
  | ^ expected a handler
  |
  = help: a small pipeline is `pattern ! null`",
    );
}

#[test]
fn names_that_reach_nothing_or_several_are_answered_with_those_there_are() {
    answer(
        "pattern name=cam ! null; cm. ! null",
        "
error: no handler is called `cm`
 --> pipeline:1:26
  |
1 | pattern name=cam ! null; cm. ! null
  |                          ^^^ expected one of cam, null0, null1
  |
  = help: did you mean `cam`?",
    );
    answer(
        "blur; blur; blur. ! null",
        "
error: `blur` could be any of 2 handlers
 --> pipeline:1:13
  |
1 | blur; blur; blur. ! null
  |             ^^^^^ expected one of blur0, blur1
  |
  = help: use `name=` to name the handler that you mean",
    );
    answer(
        "pattern name=cam ! null\npattern name=cam ! null",
        "
error: the name `cam` is taken
 --> pipeline:2:14
  |
2 | pattern name=cam ! null
  |              ^^^ expected a different name
  |
  = help: first given at line 1, column 14",
    );
}

#[test]
fn quotes_and_escapes_are_answered_with_how_to_write_them() {
    answer(
        r#"text "C:\dir" ! null"#,
        r#"
error: unknown escape `\d`
 --> pipeline:1:9
  |
1 | text "C:\dir" ! null
  |         ^^ expected \", \\, \n or \t
  |
  = help: write \\ for a backslash"#,
    );
    answer(
        "pattern !\n  text \"a ! null",
        r#"
error: this quote is never closed
 --> pipeline:2:8
  |
2 |   text "a ! null
  |        ^ expected a closing `"`
  |
  = help: write \" for a quote inside quotes"#,
    );
    answer(
        "text 'two words' ! null",
        r#"
error: `text` already has a value for its bare setting `text`
 --> pipeline:1:11
  |
1 | text 'two words' ! null
  |           ^^^^^^ expected `!`, or key=value with one of text
  |
  = help: put text that contains spaces in double quotes: "two words""#,
    );
}

#[test]
fn mistakes_in_toml_are_answered_in_the_same_way() {
    toml_answer(
        "[[handlers]]\nkind = \"blur\"\nsetings = {}\n",
        "
error: a handler has no `setings`
 --> pipeline:3:1
  |
3 | setings = {}
  | ^^^^^^^ expected kind, name, on-error, settings
  |
  = help: did you mean `settings`?",
    );
    toml_answer(
        "[[handlers]]\nkind = \"blur\n",
        r#"
error: TOML: invalid basic string
 --> pipeline:2:13
  |
2 | kind = "blur
  |             ^ expected `"`"#,
    );
    toml_answer(
        "[[handlers]]\nkind = \"a\"\n[[links]]\nfrom = \"b\"\nto = 3\ndepth = 4\n",
        "
error: no handler is called `b`
 --> pipeline:4:8
  |
4 | from = \"b\"
  |        ^^^ expected one of a0

error: `to` is a whole number
 --> pipeline:5:6
  |
5 | to = 3
  |      ^ expected a string

error: a depth without a policy
 --> pipeline:6:9
  |
6 | depth = 4
  |         ^ expected `policy` in the same link
  |
  = help: policy is latest, queue or lossless",
    );
}

#[test]
fn toml_values_that_are_no_settings_are_refused() {
    let values = [
        ("99999999999999999999", "a whole number that is not valid here"),
        ("-0x1", "TOML: "),
        ("inf", "a number that is not valid here"),
        ("1e999", "a number that is not valid here"),
        ("[]", "an empty list"),
        ("[[1]]", "a list that is not valid here"),
        ("[\"a\"]", "a string that is not valid here"),
        ("{ a = 1 }", "a table cannot be a setting's value"),
        ("1979-05-27", "a date or time cannot be a setting's value"),
    ];
    for (value, title) in values {
        let reading = read_toml(&format!("[[handlers]]\nkind = \"a\"\nsettings = {{ x = {value} }}"));
        let found: Vec<&str> = reading.mistakes.iter().map(|m| m.title.as_str()).collect();
        assert!(found.first().is_some_and(|found| found.starts_with(title)), "{value}: {found:?}");
    }
    for (settings, title) in [("name = \"x\"", "`name` is not a setting"), ("\"a b\" = 1", "`a b` cannot be a setting")]
    {
        let reading = read_toml(&format!("[[handlers]]\nkind = \"a\"\nsettings = {{ {settings} }}"));
        assert_eq!(reading.mistakes.len(), 1);
        assert_eq!(reading.mistakes[0].title, title);
    }
}

#[test]
fn toml_says_the_same_as_text() {
    let toml = r#"
        [[handlers]]
        kind = "pattern"
        name = "cam"
        on-error = "skip"
        settings = { kind = "ball", size = "1920x1080", on = true, n = 0x10, x = 2.50, m = [1, -0.5, 2.0] }
        [[handlers]]
        kind = "mix"
        [[links]]
        from = "cam"
        to = "mix0.a"
        policy = "latest"
        depth = 4
        [[links]]
        from = "cam."
        to = "mix.b"
    "#;
    let reading = read_toml(toml);
    assert!(reading.mistakes.is_empty(), "{}", shown(toml, reading));
    let text = "pattern name=cam kind=ball m=1,-0.5,2 n=16 on=true size=1920x1080 x=2.5 on-error=skip\n\
                mix\ncam. !{latest depth=4} mix0.a\ncam. ! mix0.b\n";
    assert_eq!(write_text(&reading.spec), text);
    assert_eq!(read_text(text, &text_kinds::catalog()).spec, reading.spec);
    assert_eq!(
        write_toml(&reading.spec),
        r#"[[handlers]]
kind = "pattern"
name = "cam"
on-error = "skip"
settings = { kind = "ball", m = [1, -0.5, 2], n = 16, on = true, size = "1920x1080", x = 2.5 }

[[handlers]]
kind = "mix"

[[links]]
from = "cam"
to = "mix0.a"
policy = "latest"
depth = 4

[[links]]
from = "cam"
to = "mix0.b"
"#
    );
}
