//! `vramp run --verify`: compares results instead of running the pipeline.
//!
//! Chooses the device to compare with, prints the comparisons, and sets the exit code. `vramp::verify` compares. A
//! pipeline that cannot be planned is refused, as in a run. A skipped comparison is reported, and a difference is a
//! failure.

use serde::Serialize;
use vramp::gpu::Device;
use vramp::plan::{Graph, GraphSpec};
use vramp::runtime::Registry;
use vramp::verify::{Comparison, ComparisonKind, ComparisonResult, Mismatch, Options, Verified};

use crate::args::RunArgs;
use crate::failure::CliError;
use crate::{page, request};

use super::words::{counted, device_line};

pub(super) fn run(args: &RunArgs, spec: &GraphSpec, graph: &Graph, registry: &Registry) -> Result<(), CliError> {
    let flags = &args.flags;
    // Verification does not use this plan, but a pipeline that cannot be planned could not run either.
    request::on_this_machine(flags, graph, registry)?.plan()?;
    let device = request::open_device(flags)?;
    if !flags.quiet {
        warn(args);
        page::words(&match &device {
            Ok(device) => device_line(device),
            Err(why) => format!("no device ({why}): only fused and unfused results on the CPU are compared"),
        });
    }
    let device = device.ok();
    if let (Some(device), Some(limit_ms)) = (&device, args.time_limit) {
        device.set_time_limit(std::time::Duration::from_millis(limit_ms));
    }
    let usual = Options::default();
    let frames = args.frames.unwrap_or(usual.frames);
    let verified = vramp::verify::verify(spec, registry, &Options { frames, device: device.clone(), ..usual })?;
    if !flags.quiet {
        page::words(&comparison_text(flags.verbose, &verified));
    }
    let ended = judge(&verified);
    let printed = if args.json { super::print(&Json::of(&verified, device.as_ref())) } else { Ok(()) };
    ended.and(printed)
}

/// Warns about options without effect.
fn warn(args: &RunArgs) {
    if args.seconds.is_some() {
        page::warning("--seconds has no effect on a verification; --frames sets how much is compared");
    }
    if args.watch {
        page::warning("--watch has no effect on a verification; only a run reloads files");
    }
    if !args.flags.budget.is_empty() {
        page::warning("--budget has no effect on a verification; only a run measures budgets");
    }
}

/// Fails with the list of all differences, if there are any.
fn judge(verified: &Verified) -> Result<(), CliError> {
    let differences: Vec<String> = verified.differences().map(|(check, _)| check.to_string()).collect();
    if differences.is_empty() { Ok(()) } else { Err(CliError::Different(differences)) }
}

/// With `all`, one line for each comparison. Otherwise one line for each kind of comparison and one line for each
/// skipped comparison.
fn comparison_text(all: bool, verified: &Verified) -> String {
    if all {
        return verified.to_string();
    }
    let mut lines = Vec::new();
    for what in [ComparisonKind::FusedOnCpu, ComparisonKind::Twins, ComparisonKind::FusedOnDevice] {
        let checks: Vec<&Comparison> = verified.comparisons.iter().filter(|check| check.kind == what).collect();
        if !checks.is_empty() {
            lines.push(format!("{what}: {}", summed(&checks)));
        }
        lines.extend(
            checks.iter().filter(|check| matches!(check.result, ComparisonResult::Left(_))).map(ToString::to_string),
        );
    }
    lines.push(match (verified.differences().count(), verified.compared()) {
        (0, compared) => format!("verified: {}, no difference", counted(compared, "comparison")),
        (count, compared) => format!("{}, {}", counted(compared, "comparison"), counted(count, "difference")),
    });
    lines.join("\n")
}

/// Comparisons of one kind as a line.
fn summed(checks: &[&Comparison]) -> String {
    let (mut equal, mut near, mut different, mut left, mut most) = (0, 0, 0, 0, 0);
    for check in checks {
        match &check.result {
            ComparisonResult::Equal { frames, levels } => {
                (equal, most) = (equal + 1, most.max(*frames));
                near += usize::from(*levels > 0);
            }
            ComparisonResult::Different(_) => different += 1,
            ComparisonResult::Left(_) => left += 1,
        }
    }
    let mut parts = Vec::new();
    if equal > 0 {
        let within = if near > 0 { format!(" ({near} within a level)") } else { String::new() };
        parts.push(format!("{} equal{within} in up to {}", counted(equal, "output"), counted(most, "frame")));
    }
    if different > 0 {
        parts.push(format!("{} different", counted(different, "output")));
    }
    if left > 0 {
        parts.push(format!("{} not compared", counted(left, "output")));
    }
    parts.join(", ")
}

// ---- JSON

#[derive(Serialize)]
struct Json<'a> {
    verified: bool,
    /// `cpu` if there was no device to compare with.
    backend: String,
    device: Option<&'a str>,
    checks: Vec<JsonCheck<'a>>,
}

#[derive(Serialize)]
struct JsonCheck<'a> {
    what: &'static str,
    port: &'a str,
    made_by: &'a [String],
    #[serde(flatten)]
    result: JsonResult<'a>,
}

#[derive(Serialize)]
#[serde(tag = "result", rename_all = "lowercase")]
enum JsonResult<'a> {
    Equal {
        frames: usize,
        levels: u8,
    },
    Different {
        frame: u64,
        frames: usize,
        words: String,
        #[serde(flatten)]
        pixel: Option<JsonPixel>,
    },
    Left {
        why: &'a str,
    },
}

/// The first pixel that differs; only for formats that have pixels.
#[derive(Serialize)]
struct JsonPixel {
    x: u32,
    y: u32,
    expected: [u8; 4],
    found: [u8; 4],
    pixels: u64,
    levels: u8,
}

impl<'a> Json<'a> {
    fn of(verified: &'a Verified, device: Option<&'a Device>) -> Json<'a> {
        let adapter = device.map(Device::adapter);
        Json {
            verified: verified.is_equal(),
            backend: adapter.map_or_else(|| "cpu".to_owned(), |adapter| adapter.backend.to_string()),
            device: adapter.map(|adapter| adapter.name.as_str()),
            checks: verified.comparisons.iter().map(JsonCheck::of).collect(),
        }
    }
}

impl<'a> JsonCheck<'a> {
    fn of(check: &'a Comparison) -> JsonCheck<'a> {
        let what = match check.kind {
            ComparisonKind::FusedOnCpu => "fused-on-cpu",
            ComparisonKind::Twins => "gpu-and-cpu",
            ComparisonKind::FusedOnDevice => "fused-on-gpu",
        };
        let result = match &check.result {
            ComparisonResult::Equal { frames, levels } => JsonResult::Equal { frames: *frames, levels: *levels },
            ComparisonResult::Left(why) => JsonResult::Left { why },
            ComparisonResult::Different(difference) => JsonResult::Different {
                frame: difference.frame,
                frames: difference.frames,
                words: difference.to_string(),
                pixel: match difference.found {
                    Mismatch::Pixels { x, y, expected, found, count, most } => {
                        Some(JsonPixel { x, y, expected, found, pixels: count, levels: most })
                    }
                    _ => None,
                },
            },
        };
        JsonCheck { what, port: &check.port, made_by: &check.made_by, result }
    }
}

#[cfg(test)]
mod tests {
    use vramp::verify::Difference;

    use super::*;

    fn verified(results: &[(ComparisonKind, ComparisonResult)]) -> Verified {
        let check = |(what, result): &(ComparisonKind, ComparisonResult)| {
            let (port, made_by) = ("blur0.video".to_owned(), vec!["blur0".to_owned()]);
            Comparison { kind: *what, port, made_by, result: result.clone() }
        };
        Verified { comparisons: results.iter().map(check).collect() }
    }

    fn one_of_each() -> Verified {
        let (expected, found) = ([1, 2, 3, 255], [1, 2, 4, 255]);
        let pixels = Mismatch::Pixels { x: 5, y: 6, expected, found, count: 2, most: 1 };
        verified(&[
            (ComparisonKind::FusedOnCpu, ComparisonResult::Equal { frames: 8, levels: 0 }),
            (ComparisonKind::Twins, ComparisonResult::Different(Difference { frame: 3, found: pixels, frames: 4 })),
            (ComparisonKind::Twins, ComparisonResult::Equal { frames: 8, levels: 1 }),
            (ComparisonKind::FusedOnDevice, ComparisonResult::Left("text0 may be a level off".to_owned())),
        ])
    }

    #[test]
    fn a_difference_ends_with_five_and_says_who_where_and_what() {
        let Err(failure @ CliError::Different(_)) = judge(&one_of_each()) else { panic!("it differs") };
        assert_eq!(failure.code(), 5);
        let CliError::Different(words) = failure else { unreachable!() };
        assert_eq!(
            words,
            ["blur0, gpu and cpu: frame 3, pixel 5,6 is 1 2 4 255 instead of 1 2 3 255; 2 pixels differ by up to 1; \
              4 frames differ"]
        );
        assert!(
            judge(&verified(&[(ComparisonKind::FusedOnCpu, ComparisonResult::Equal { frames: 1, levels: 0 })])).is_ok()
        );
    }

    #[test]
    fn people_read_a_line_for_each_kind_of_comparison() {
        let text = comparison_text(false, &one_of_each());
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                "fused and unfused on the cpu: 1 output equal in up to 8 frames",
                "gpu and cpu: 1 output equal (1 within a level) in up to 8 frames, 1 output different",
                "fused on the gpu and unfused on the cpu: 1 output not compared",
                "blur0.video (made by blur0), fused on the gpu and unfused on the cpu: not compared: text0 may be a \
                 level off",
                "3 comparisons, 1 difference",
            ]
        );
    }

    #[test]
    fn programs_read_every_comparison() {
        let line = serde_json::to_string(&Json::of(&one_of_each(), None)).unwrap();
        assert!(line.starts_with("{\"verified\":false,\"backend\":\"cpu\",\"device\":null,\"checks\":["), "{line}");
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        let results: Vec<&str> =
            value["checks"].as_array().unwrap().iter().map(|check| check["result"].as_str().unwrap()).collect();
        assert_eq!(results, ["equal", "different", "equal", "left"]);
        let different = &value["checks"][1];
        assert_eq!((different["frame"].as_u64(), different["x"].as_u64()), (Some(3), Some(5)));
        assert_eq!(different["expected"], serde_json::json!([1, 2, 3, 255]));
        assert_eq!((&different["made_by"][0], &different["what"]), (&"blur0".into(), &"gpu-and-cpu".into()));
    }
}
