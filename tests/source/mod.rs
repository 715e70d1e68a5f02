//! Lists the repository's files, and reduces Rust text to its code.
//!
//! The reduction of Rust is only good enough for rules about words.
//!
//! Invariant: everything that is removed is replaced by blanks, so that line numbers stay correct.

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file that is tracked by git or could be, sorted, with `/` between folders.
pub(crate) fn files() -> Vec<String> {
    let listed = Command::new("git")
        .args(["ls-files", "-co", "--exclude-standard", "-z"])
        .current_dir(root())
        .output()
        .ok()
        .filter(|git| git.status.success() && !git.stdout.is_empty());
    let mut paths: Vec<String> = match listed {
        Some(git) => String::from_utf8_lossy(&git.stdout).split_terminator('\0').map(str::to_owned).collect(),
        None => walk(root()),
    };
    paths.retain(|path| root().join(path).is_file());
    paths.sort();
    paths.dedup();
    paths
}

/// Every file below a folder, except the output of builds.
pub(crate) fn walk(folder: &Path) -> Vec<String> {
    const LEFT_BY_BUILDS: &[&str] = &["target", "target-wasm", ".git", "corpus", "artifacts"];
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in next.read_dir().expect("a folder of the repository can be listed").flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            if path.is_dir() && !path.is_symlink() {
                if !LEFT_BY_BUILDS.iter().any(|left| name == *left) {
                    open.push(path);
                }
            } else if let Ok(inside) = path.strip_prefix(folder) {
                found.push(inside.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn is_rust(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|end| end == "rs")
}

/// Rust text with comments and the contents of strings and characters blanked.
pub(crate) fn code(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code: Vec<char> = chars.clone();
    let mut at = 0;
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => until(&chars, at, |i| chars[i] == '\n'),
            '/' if chars.get(at + 1) == Some(&'*') => comment_end(&chars, at),
            '"' => string_end(&chars, at + 1),
            'r' => raw_string_end(&chars, at + 1).unwrap_or(at),
            '\'' => char_end(&chars, at).unwrap_or(at),
            _ => at,
        };
        for masked in &mut code[at..end] {
            if *masked != '\n' {
                *masked = ' ';
            }
        }
        at = end.max(at + 1);
    }
    code.into_iter().collect()
}

/// Code with every item under `#[cfg(test)]` blanked.
pub(crate) fn outside_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut rest = code.to_owned();
    while let Some(start) = rest.find(MARK) {
        let end = item_end(&rest, start + MARK.len());
        let blank: String = rest[start..end].chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
        rest.replace_range(start..end, &blank);
    }
    rest
}

/// The lines, counted from 1, on which the code contains `word`, but not as a part of a longer name.
pub(crate) fn lines_with(code: &str, word: &str) -> Vec<usize> {
    let starts_as_name = word.starts_with(|c: char| is_word(Some(c)));
    let ends_as_name = word.ends_with(|c: char| is_word(Some(c)));
    code.match_indices(word)
        .filter(|(at, _)| !(starts_as_name && is_word(code[..*at].chars().next_back())))
        .filter(|(at, _)| !(ends_as_name && is_word(code[at + word.len()..].chars().next())))
        .map(|(at, _)| 1 + code[..at].matches('\n').count())
        .collect()
}

fn is_word(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_alphanumeric() || c == '_')
}

fn until(chars: &[char], from: usize, stop: impl Fn(usize) -> bool) -> usize {
    (from..chars.len()).find(|&i| stop(i)).unwrap_or(chars.len())
}

fn comment_end(chars: &[char], start: usize) -> usize {
    let (mut depth, mut at) = (0, start);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn string_end(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// The end of a raw string, if `"..."` or `#"..."#` follows an `r`.
fn raw_string_end(chars: &[char], after_r: usize) -> Option<usize> {
    let quote = until(chars, after_r, |i| chars[i] != '#');
    let hashes = quote - after_r;
    (chars.get(quote) == Some(&'"')).then(|| {
        let close = until(chars, quote + 1, |i| {
            chars[i] == '"' && chars[i + 1..].iter().take_while(|c| **c == '#').count() >= hashes
        });
        (close + 1 + hashes).min(chars.len())
    })
}

/// The end of a character literal. `None` if the quote starts a lifetime.
fn char_end(chars: &[char], quote: usize) -> Option<usize> {
    if chars.get(quote + 1) == Some(&'\\') {
        return Some((until(chars, quote + 3, |i| chars[i] == '\'') + 1).min(chars.len()));
    }
    (chars.get(quote + 2) == Some(&'\'')).then_some(quote + 3)
}

/// The end of the item at `start`: its closing brace or its semicolon.
fn item_end(code: &str, start: usize) -> usize {
    let mut depth = 0;
    for (at, c) in code[start..].char_indices() {
        let end = start + at + 1;
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' => depth -= 1,
            '}' => {
                depth -= 1;
                if depth <= 0 {
                    return end;
                }
            }
            ';' if depth == 0 => return end,
            _ => {}
        }
    }
    code.len()
}
