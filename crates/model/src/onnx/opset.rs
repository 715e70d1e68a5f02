//! The version of ONNX's ops that a file was written for.

use super::error::OnnxError;
use super::proto::OperatorSetIdProto;

/// The oldest opset that is read.
pub const OLDEST_OPSET: i64 = 1;

/// The newest opset that is read. Opsets 9 to 22 are those of models in use; the tests of single ops reach from 1 to 28.
/// Below 7, the lowering accepts only ops whose meaning has not changed since.
pub const NEWEST_OPSET: i64 = 28;

/// Whether a domain is that of ONNX itself.
pub fn is_default_domain(domain: &str) -> bool {
    matches!(domain, "" | "ai.onnx")
}

/// The opset of the default domain.
pub(super) fn default_opset(imports: &[OperatorSetIdProto]) -> Result<i64, OnnxError> {
    let mut versions = imports.iter().filter(|import| is_default_domain(&import.domain)).map(|import| import.version);
    let version = versions.next().ok_or_else(|| OnnxError::Malformed {
        at: "opset_import".into(),
        problem: "it has no version for the ops of ONNX; the file is truncated, or older than opset 1 of 2017".into(),
    })?;
    if let Some(other) = versions.find(|other| *other != version) {
        let problem = format!("it has two versions for the ops of ONNX: {version} and {other}");
        return Err(OnnxError::Malformed { at: "opset_import".into(), problem });
    }
    if (OLDEST_OPSET..=NEWEST_OPSET).contains(&version) {
        Ok(version)
    } else {
        Err(OnnxError::Opset { has: version, oldest: OLDEST_OPSET, newest: NEWEST_OPSET })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn import(domain: &str, version: i64) -> OperatorSetIdProto {
        OperatorSetIdProto { domain: domain.into(), version }
    }

    #[test]
    fn the_opset_is_that_of_the_default_domain() {
        let imports = [import("com.microsoft", 1), import("ai.onnx", 13), import("", 13)];
        assert_eq!(default_opset(&imports).unwrap(), 13);
    }

    #[test]
    fn missing_foreign_and_contradictory_opsets_are_refused_with_their_numbers() {
        let text = |imports: &[OperatorSetIdProto]| default_opset(imports).unwrap_err().to_string();
        assert!(text(&[import("other", 3)]).contains("no version"));
        assert!(text(&[import("", 0)]).contains("opset 0"), "{}", text(&[import("", 0)]));
        assert!(text(&[import("", 29)]).contains("1 to 28"));
        assert!(text(&[import("", 9), import("ai.onnx", 11)]).contains("9 and 11"));
    }
}
