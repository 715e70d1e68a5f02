//! Inputs and outputs of a model as text, and which of them a word of the command line means.

use anyhow::anyhow;
use vramp::model::Port;
use vramp::model::onnx::Dim;
use vramp::plan::catalog::nearest;

use crate::failure::CliError;

/// A shape as text: `1x3x224x224`, or `scalar` without axes.
pub(super) fn shape(lengths: &[usize]) -> String {
    joined(lengths.iter().map(usize::to_string))
}

/// The declared shape as text: an axis without a fixed length has its name, or `?`.
pub(super) fn declared(port: &Port) -> String {
    joined(port.dims.iter().map(|dim| match dim {
        Dim::Fixed(length) => length.to_string(),
        Dim::Named(name) => printable(name),
        Dim::Unknown => "?".to_owned(),
    }))
}

/// Text from a model without the characters that could change a terminal.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn joined(axes: impl Iterator<Item = String>) -> String {
    let axes: Vec<String> = axes.collect();
    if axes.is_empty() { "scalar".to_owned() } else { axes.join("x") }
}

/// The value of an option in the form `[NAME=]VALUE`, with the input that it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Assigned<'a> {
    pub(super) port: usize,
    pub(super) value: &'a str,
}

/// Assigns words of the form `[NAME=]VALUE` to inputs. A word without a name is for the next input that no word names.
/// `is_value` tells values that contain `=` from names of inputs that do not exist.
pub(super) fn assign<'a>(
    option: &str,
    words: &[&'a str],
    ports: &[Port],
    is_value: impl Fn(&str) -> bool,
) -> Result<Vec<Assigned<'a>>, CliError> {
    let wrong = |problem: String| Err(CliError::Wrong(anyhow!("{option} {problem}; {}", names_of(ports))));
    let mut named = Vec::new();
    for word in words {
        let own = ports.iter().enumerate().filter_map(|(port, Port { name, .. })| {
            let value = word.strip_prefix(name.as_str())?.strip_prefix('=')?;
            Some((name.len(), Assigned { port, value }))
        });
        // Names may contain `=`, so the longest one is meant.
        let own = own.max_by_key(|(length, _)| *length).map(|(_, assigned)| assigned);
        if own.is_none()
            && let Some((name, _)) = word.split_once('=')
            && !is_value(word)
        {
            let near = nearest(name, ports.iter().map(|port| port.name.as_str()));
            let near = near.map_or_else(String::new, |near| format!(" (did you mean `{}`?)", printable(near)));
            return wrong(format!("{word}: the model has no input `{name}`{near}"));
        }
        named.push(own);
    }
    let mut is_taken = vec![false; ports.len()];
    for assigned in named.iter().flatten() {
        if std::mem::replace(&mut is_taken[assigned.port], true) {
            return wrong(format!("is given twice for `{}`", printable(&ports[assigned.port].name)));
        }
    }
    let mut assigned = Vec::with_capacity(words.len());
    for (word, own) in words.iter().zip(named) {
        let own = match own {
            Some(own) => own,
            None => match is_taken.iter().position(|taken| !taken) {
                Some(port) => {
                    is_taken[port] = true;
                    Assigned { port, value: word }
                }
                None => return wrong(format!("{word}: no input is left for it")),
            },
        };
        assigned.push(own);
    }
    Ok(assigned)
}

/// The names of all inputs, for messages.
pub(super) fn names_of(ports: &[Port]) -> String {
    let name = |port: &Port| format!("`{}` ({} {})", printable(&port.name), port.dtype.name(), declared(port));
    match ports {
        [] => "the model has no inputs".to_owned(),
        [port] => format!("its input is {}", name(port)),
        ports => format!("its inputs are {}", ports.iter().map(name).collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use vramp::model::onnx::OnnxType;

    use super::*;

    fn ports(names: &[&str]) -> Vec<Port> {
        let dims = vec![Dim::Fixed(1), Dim::Named("n".to_owned()), Dim::Unknown];
        names.iter().map(|name| Port { name: (*name).to_owned(), dtype: OnnxType::F32, dims: dims.clone() }).collect()
    }

    fn assigned(words: &[&str], names: &[&str]) -> Result<Vec<(usize, String)>, String> {
        let all = assign("--input", words, &ports(names), |word| word == "a=b.npy");
        let all = all.map_err(|error| error.words().unwrap_or_default())?;
        Ok(all.into_iter().map(|Assigned { port, value }| (port, value.to_owned())).collect())
    }

    #[test]
    fn words_without_a_name_are_for_the_inputs_that_are_left() {
        let of = |port: usize, value: &str| (port, value.to_owned());
        assert_eq!(assigned(&["x.npy"], &["image"]), Ok(vec![of(0, "x.npy")]));
        assert_eq!(assigned(&["1.npy", "a=2.npy", "3.npy"], &["a", "b", "c"]).unwrap().len(), 3);
        assert_eq!(assigned(&["1.npy", "a=2.npy"], &["a", "b"]), Ok(vec![of(1, "1.npy"), of(0, "2.npy")]));
        assert_eq!(assigned(&["a=b=x.npy"], &["a", "a=b"]), Ok(vec![of(1, "x.npy")]));
        assert_eq!(assigned(&["a=b.npy"], &["image"]), Ok(vec![of(0, "a=b.npy")]));
    }

    #[test]
    fn words_that_fit_no_input_are_refused_with_the_names() {
        let words = assigned(&["imag=x.npy"], &["image", "mask"]).unwrap_err();
        assert!(
            words.contains("has no input `imag` (did you mean `image`?); its inputs are `image` (f32 1xnx?)"),
            "{words}"
        );
        assert!(assigned(&["x.npy", "y.npy"], &["image"]).unwrap_err().contains("y.npy: no input is left for it"));
        assert!(assigned(&["a=x.npy", "a=y.npy"], &["a"]).unwrap_err().contains("is given twice for `a`"));
        assert!(assigned(&["x.npy"], &[]).unwrap_err().ends_with("the model has no inputs"));
    }
}
