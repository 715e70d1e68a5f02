//! Shapes and indices from Python.

use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PyInt, PySlice, PyTuple};
use vramp::tensor::Expr;

/// Lengths given as arguments or as one tuple. A length of -1 is what is left of `count` values.
pub(super) fn lengths_of(given: &Bound<'_, PyTuple>, count: usize) -> PyResult<Vec<usize>> {
    let list: Vec<isize> = match given.len() {
        1 => given.get_item(0)?.extract().or_else(|_| given.extract())?,
        _ => given.extract()?,
    };
    let known: usize = list.iter().filter(|length| **length >= 0).map(|length| *length as usize).product();
    let mut open = 0;
    let lengths = list.iter().map(|length| match *length {
        -1 if known > 0 && count.is_multiple_of(known) => {
            open += 1;
            Ok(count / known)
        }
        length => usize::try_from(length)
            .map_err(|_| PyValueError::new_err(format!("{count} values do not fit the shape {list:?}"))),
    });
    let lengths = lengths.collect::<PyResult<Vec<_>>>()?;
    if open > 1 {
        return Err(PyValueError::new_err("only one length may be -1"));
    }
    Ok(lengths)
}

/// Ranges along axes, and the axes that an index has removed.
pub(super) struct Cuts {
    /// By axis: the first and the last index, which is excluded.
    ranges: Vec<(usize, usize)>,
    /// The shape that is cut.
    from: Vec<usize>,
    /// The shape of the result.
    shape: Vec<usize>,
}

impl Cuts {
    pub(super) fn of(&self, expr: &Expr) -> Expr {
        let whole = self.ranges.iter().zip(&self.from).enumerate();
        let cut = whole.filter(|(_, ((start, end), length))| *start != 0 || end != *length);
        let cut = cut.fold(expr.clone(), |expr, (axis, ((start, end), _))| expr.slice(axis as isize, *start, *end));
        cut.reshape(&self.shape)
    }
}

pub(super) fn cuts_of(key: &Bound<'_, PyAny>, shape: &[usize]) -> PyResult<Cuts> {
    let keys = match key.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => vec![key.clone()],
    };
    let is_ellipsis = |key: &Bound<'_, PyAny>| key.is_instance_of::<PyEllipsis>();
    let given = keys.iter().filter(|key| !is_ellipsis(key)).count();
    if given > shape.len() || keys.len() - given > 1 {
        return Err(PyIndexError::new_err(format!("{given} indices for a tensor with {} axes", shape.len())));
    }
    let mut cuts = Cuts { ranges: Vec::new(), from: shape.to_vec(), shape: Vec::new() };
    let all = |cuts: &mut Cuts, until: usize| {
        while cuts.ranges.len() < until {
            let length = shape[cuts.ranges.len()];
            cuts.ranges.push((0, length));
            cuts.shape.push(length);
        }
    };
    for (at, key) in keys.iter().enumerate() {
        if is_ellipsis(key) {
            let after = keys.len() - at - 1;
            all(&mut cuts, shape.len() - after);
            continue;
        }
        let length = shape[cuts.ranges.len()];
        if let Ok(slice) = key.cast::<PySlice>() {
            let found = slice.indices(length as isize)?;
            if found.step != 1 {
                return Err(PyIndexError::new_err("a range of a tensor has steps of 1; gather other indices"));
            }
            let (start, end) = (found.start as usize, (found.stop.max(found.start)) as usize);
            cuts.ranges.push((start, end));
            cuts.shape.push(end - start);
        } else if key.is_instance_of::<PyInt>() {
            let index: isize = key.extract()?;
            let at = if index < 0 { index + length as isize } else { index };
            let at = usize::try_from(at).ok().filter(|at| *at < length);
            let at = at.ok_or_else(|| PyIndexError::new_err(format!("index {index} is out of range for {length}")))?;
            cuts.ranges.push((at, at + 1));
        } else {
            return Err(PyTypeError::new_err(
                "an index is a whole number or a range; use `gather` for tensors of indices",
            ));
        }
    }
    all(&mut cuts, shape.len());
    Ok(cuts)
}
