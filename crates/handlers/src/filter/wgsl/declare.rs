//! Reads the shader of a `wgsl` handler and the settings that the shader declares, before anything is planned.
//!
//! `vramp_kernels::own` analyses the WGSL. A file above a size limit is refused. An error names the file, the line
//! and the column.

use std::io::Read as _;
use std::path::Path;

use vramp_files::open_regular;
use vramp_kernels::own::{MAX_BYTES, MemberKind, Own, OwnError, ShaderMember};
use vramp_plan::catalog::{
    DeclareError, DeclaredSetting, DeclaredShader, KernelDesc, ProbeError, SettingValues, Value, ValueType,
};

/// Setting names that every shader handler already has.
const TAKEN: [&str; 4] = ["path", "code", "name", "on-error"];

/// Reads the shader of a handler with these settings.
pub(crate) fn declared(settings: &SettingValues) -> Result<DeclaredShader, DeclareError> {
    let (name, text) = text(settings)?;
    let own = Own::read(&text).map_err(|error| wrong(&name, &error))?;
    let mut found = Vec::new();
    for member in own.members() {
        let at = |problem: String| {
            let shown = text.lines().nth(member.at.0.saturating_sub(1) as usize).unwrap_or("").to_owned();
            let (line, column) = member.at;
            wrong(&name, &OwnError { line, column, problem, help: None, shown })
        };
        if TAKEN.contains(&member.name.as_str()) {
            return Err(at(format!("`{}` is a setting of every shader; choose another name", member.name)));
        }
        let default = default(member).map_err(at)?;
        found.push(DeclaredSetting { name: member.name.clone(), value: value_type(member.kind), default });
    }
    let kernel = match own {
        Own::Pixel(_) => KernelDesc::POINTWISE,
        Own::Whole(_) => KernelDesc::OPAQUE,
    };
    Ok(DeclaredShader { kernel, settings: found, text: text.into() })
}

/// The name of a shader in messages, and its text.
pub(super) fn text(settings: &SettingValues) -> Result<(String, String), ProbeError> {
    match settings.text("path") {
        Some(path) => Ok((path.to_owned(), read(Path::new(path))?)),
        None => Ok((name(settings), settings.text("code").unwrap_or_default().to_owned())),
    }
}

/// The name of a shader in messages.
pub(super) fn name(settings: &SettingValues) -> String {
    settings.text("path").unwrap_or("code").to_owned()
}

const MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a text file up to the length limit.
pub(super) fn read(path: &Path) -> Result<String, ProbeError> {
    let refuse = |problem: String, help: &str| ProbeError { problem, help: help.to_owned() };
    let shown = path.display();
    let cannot = |error: std::io::Error| {
        let help = match error.kind() {
            std::io::ErrorKind::NotFound => "check the path; it is relative to the current directory",
            std::io::ErrorKind::InvalidInput => "give a WGSL file",
            _ => "check that the path leads to a file that you may read",
        };
        refuse(format!("`{shown}` cannot be read: {error}"), help)
    };
    let file = open_regular(path).map_err(cannot)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() > MAX_BYTES {
        return Err(refuse(format!("`{shown}` has more than {MAX_BYTES} bytes"), "give a file with a single kernel"));
    }
    // Some editors write a byte order mark at the start, which is an error in WGSL.
    if bytes.starts_with(MARK) {
        bytes.drain(..MARK.len());
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].split(|byte| *byte == b'\n').count();
        let problem = format!("`{shown}` is not UTF-8 text: invalid byte at offset {at}, in line {line}");
        refuse(problem, "give a WGSL file")
    })
}

/// The default of a setting; zero if the shader declares no default.
pub(super) fn default(member: &ShaderMember) -> Result<Value, String> {
    let zero = match member.kind {
        MemberKind::Float => Value::Number(0.0),
        MemberKind::Int | MemberKind::Unsigned => Value::Int(0),
        MemberKind::Bool => Value::Bool(false),
        MemberKind::Floats(count) => Value::Numbers(vec![0.0; count]),
    };
    let Some(written) = &member.default else { return Ok(zero) };
    let value = value_type(member.kind);
    let setting = DeclaredSetting { name: member.name.clone(), value, default: zero };
    setting.read(written).ok_or_else(|| {
        format!("`// = {written}` is not a valid default for `{}`; expected {}", member.name, value.expects())
    })
}

/// A value as parameter words; `None` if the type of the value does not match `kind`.
pub(super) fn words(kind: MemberKind, value: &Value) -> Option<Vec<u32>> {
    let float = |number: f64| (number.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32).to_bits();
    Some(match (kind, value) {
        (MemberKind::Float, Value::Number(number)) => vec![float(*number)],
        (MemberKind::Float, Value::Int(number)) => vec![float(*number as f64)],
        (MemberKind::Int, Value::Int(number)) => vec![i32::try_from(*number).ok()?.cast_unsigned()],
        (MemberKind::Unsigned, Value::Int(number)) => vec![u32::try_from(*number).ok()?],
        (MemberKind::Unsigned | MemberKind::Bool, Value::Bool(flag)) => vec![u32::from(*flag)],
        (MemberKind::Floats(count), Value::Numbers(numbers)) if numbers.len() == count => {
            numbers.iter().map(|number| float(*number)).collect()
        }
        _ => return None,
    })
}

fn value_type(kind: MemberKind) -> ValueType {
    match kind {
        MemberKind::Float => ValueType::Number { min: f64::MIN, max: f64::MAX },
        MemberKind::Int => ValueType::Int { min: i64::from(i32::MIN), max: i64::from(i32::MAX) },
        MemberKind::Unsigned => ValueType::Int { min: 0, max: i64::from(u32::MAX) },
        MemberKind::Bool => ValueType::Bool,
        MemberKind::Floats(2) => ValueType::Numbers { counts: &[2] },
        MemberKind::Floats(3) => ValueType::Numbers { counts: &[3] },
        MemberKind::Floats(_) => ValueType::Numbers { counts: &[4] },
    }
}

/// Adds the name of the shader and the faulty line to an error.
fn wrong(name: &str, error: &OwnError) -> DeclareError {
    let mut help = Vec::new();
    if error.line > 0 {
        help.push(format!("line {} is `{}`", error.line, error.shown.trim()));
    }
    help.extend(error.help.clone());
    if help.is_empty() {
        help.push("the error concerns the shader as a whole".to_owned());
    }
    let separator = if error.line > 0 { ":" } else { ": " };
    DeclareError::Wrong { problem: format!("{name}{separator}{error}"), help: help.join("; ") }
}
