//! Arrays from files as the inputs of a model.
//!
//! Types and shapes are checked before values are read. Integers of 64 bits become integers of 32 bits, with a check of
//! each value.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use vramp::model::Port;
use vramp::model::onnx::{Dim, OnnxType};
use vramp::plan::DType;
use vramp::tensor::{Context, ErrorKind, Tensor};

use super::npy::{NpyError, NpyFile, place_of};
use super::ports::{assign, declared, names_of, printable, shape};
use crate::failure::CliError;

/// The files of all inputs, open and checked, in the order of the inputs.
pub(super) struct InputFiles {
    files: Vec<(PathBuf, NpyFile)>,
}

impl InputFiles {
    pub(super) fn open(words: &[OsString], ports: &[Port]) -> Result<InputFiles, CliError> {
        let texts: Option<Vec<&str>> = words.iter().map(|word| word.to_str()).collect();
        let texts =
            texts.ok_or_else(|| CliError::Wrong(anyhow!("--input: the name of a file is not UTF-8; rename it")))?;
        let assigned = assign("--input", &texts, ports, |word| Path::new(word).exists())?;
        let mut files: Vec<Option<(PathBuf, NpyFile)>> = ports.iter().map(|_| None).collect();
        for one in assigned {
            let path = PathBuf::from(one.value);
            let file = NpyFile::open(&path).map_err(|error| refused(&path, &error))?;
            fits(&path, &file, &ports[one.port])?;
            files[one.port] = Some((path, file));
        }
        if let Some(missing) = files.iter().position(Option::is_none) {
            let name = printable(&ports[missing].name);
            let names = names_of(ports);
            return Err(CliError::Wrong(anyhow!("input `{name}` has no values; add --input {name}=FILE.npy; {names}")));
        }
        let files = InputFiles { files: files.into_iter().flatten().collect() };
        files.named_axes(ports)?;
        Ok(files)
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(path, _)| path.as_path())
    }

    /// Reads the values into tensors.
    pub(super) fn tensors(self, context: &Context) -> Result<Vec<Tensor>, CliError> {
        self.files.into_iter().map(|(path, file)| tensor(context, &path, file)).collect()
    }

    /// Axes with the same name have the same length.
    fn named_axes(&self, ports: &[Port]) -> Result<(), CliError> {
        let mut known: Vec<(&str, usize, &str)> = Vec::new();
        for (port, (path, file)) in ports.iter().zip(&self.files) {
            for (dim, length) in port.dims.iter().zip(file.lengths()) {
                let Dim::Named(name) = dim else { continue };
                match known.iter().find(|(other, ..)| other == name) {
                    Some((_, first, of)) if first != length => {
                        let (path, name, of) = (path.display(), printable(name), printable(of));
                        return Err(CliError::Wrong(anyhow!(
                            "--input {path}: axis `{name}` has length {length}, but that of input `{of}` has {first}"
                        )));
                    }
                    Some(_) => {}
                    None => known.push((name, *length, &port.name)),
                }
            }
        }
        Ok(())
    }
}

fn refused(path: &Path, error: &NpyError) -> CliError {
    let words = anyhow!("--input {}: {error}", path.display());
    if let NpyError::OutOfMemory { .. } = error { CliError::Failed(words) } else { CliError::Wrong(words) }
}

/// Checks type and shape of a file.
fn fits(path: &Path, file: &NpyFile, port: &Port) -> Result<(), CliError> {
    let (has, wants, name) = (file.dtype(), port.dtype, printable(&port.name));
    let wrong = |problem: String| Err(CliError::Wrong(anyhow!("--input {}: {problem}", path.display())));
    if has != wants {
        let remedy = numpy_name(wants)
            .map_or_else(String::new, |numpy| format!("; convert the array with `x.astype('{numpy}')`"));
        return wrong(format!("values are {}, but input `{name}` is {}{remedy}", has.name(), wants.name()));
    }
    if tensor_type(wants).is_none() {
        return wrong(format!("input `{name}` is {}, which is not supported", wants.name()));
    }
    let lengths = file.lengths();
    let is_length = |(dim, length): (&Dim, &usize)| !matches!(dim, Dim::Fixed(fixed) if fixed != length);
    // A port without axes may be one whose file states no shape; the model itself checks those.
    let is_stated = !port.dims.is_empty();
    if is_stated && (lengths.len() != port.dims.len() || !port.dims.iter().zip(lengths).all(is_length)) {
        return wrong(format!("the shape is {}, but input `{name}` is {}", shape(lengths), declared(port)));
    }
    Ok(())
}

fn tensor(context: &Context, path: &Path, file: NpyFile) -> Result<Tensor, CliError> {
    let (dtype, lengths) = (file.dtype(), file.lengths().to_vec());
    let mut values = file.values().map_err(|error| refused(path, &error))?;
    match dtype {
        OnnxType::I64 => {
            values = narrowed(&values, &lengths)
                .map_err(|problem| CliError::Wrong(anyhow!("--input {}: {problem}", path.display())))?;
        }
        OnnxType::Bool => values.iter_mut().for_each(|value| *value = u8::from(*value != 0)),
        _ => {}
    }
    let tensor_type = tensor_type(dtype).expect("types were checked when the file was opened");
    context.tensor_from_bytes(&values, &lengths, tensor_type).map_err(|error| {
        let words = anyhow!("--input {}: {error}", path.display());
        if error.kind() == ErrorKind::OutOfMemory { CliError::NoPlan(words) } else { CliError::Wrong(words) }
    })
}

/// Integers of 32 bits from integers of 64 bits.
fn narrowed(values: &[u8], lengths: &[usize]) -> Result<Vec<u8>, String> {
    let mut narrow = Vec::with_capacity(values.len() / 2);
    for (at, value) in values.as_chunks::<8>().0.iter().enumerate() {
        let value = i64::from_le_bytes(*value);
        let Ok(small) = i32::try_from(value) else {
            let place = place_of(at, lengths);
            return Err(format!(
                "the value {value} at {place:?} does not fit into 32 bits, in which integers are computed"
            ));
        };
        narrow.extend_from_slice(&small.to_le_bytes());
    }
    Ok(narrow)
}

/// The type of the tensor for an input of this type.
fn tensor_type(dtype: OnnxType) -> Option<DType> {
    match dtype {
        OnnxType::F32 => Some(DType::F32),
        OnnxType::F16 => Some(DType::F16),
        OnnxType::I8 => Some(DType::I8),
        OnnxType::U8 | OnnxType::Bool => Some(DType::U8),
        OnnxType::I32 | OnnxType::I64 => Some(DType::I32),
        _ => None,
    }
}

fn numpy_name(dtype: OnnxType) -> Option<&'static str> {
    match dtype {
        OnnxType::F32 => Some("float32"),
        OnnxType::F16 => Some("float16"),
        OnnxType::I8 => Some("int8"),
        OnnxType::U8 => Some("uint8"),
        OnnxType::I32 => Some("int32"),
        OnnxType::I64 => Some("int64"),
        OnnxType::Bool => Some("bool"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_narrowed_and_the_first_that_does_not_fit_is_named() {
        let bytes = |values: &[i64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let narrow = narrowed(&bytes(&[-1, i64::from(i32::MAX)]), &[2]);
        assert_eq!(narrow, Ok([(-1_i32).to_le_bytes(), i32::MAX.to_le_bytes()].concat()));
        let problem = narrowed(&bytes(&[0, 1, 2, 3, 1 << 31, 1 << 40]), &[2, 3]);
        assert!(problem.is_err_and(|words| words.starts_with("the value 2147483648 at [1, 1] does not fit")));
    }
}
