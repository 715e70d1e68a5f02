//! Prints a graph as TOML, with handlers and links in the graph's order.
//!
//! Invariant: a value is written as a number, boolean or list only if reading the TOML gives the same text.

use std::fmt::{self, Write};

use crate::graph::{GraphSpec, HandlerSpec, LinkEnd, LinkSpec};
use crate::words::OnError;

use super::print::printed_policy;

/// Prints a graph as TOML: a table per handler, then a table per link.
///
/// Reading the result gives the same graph, under the conditions of [`write_text`](crate::write_text).
pub fn write_toml(spec: &GraphSpec) -> String {
    let mut out = String::new();
    print(spec, &mut out).expect("writing to a string cannot fail");
    out
}

fn print(spec: &GraphSpec, out: &mut String) -> fmt::Result {
    for handler in spec.handlers() {
        print_handler(handler, out)?;
    }
    let names = spec.names();
    for link in spec.links() {
        print_link(&names, link, out)?;
    }
    Ok(())
}

fn begin(table: &str, out: &mut String) {
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(table);
    out.push('\n');
}

fn print_handler(handler: &HandlerSpec, out: &mut String) -> fmt::Result {
    begin("[[handlers]]", out);
    writeln!(out, "kind = {}", Quoted(&handler.kind))?;
    if let Some(name) = &handler.name {
        writeln!(out, "name = {}", Quoted(name))?;
    }
    if handler.on_error != OnError::default() {
        writeln!(out, "on-error = {}", Quoted(handler.on_error.name()))?;
    }
    for (index, (key, setting)) in handler.settings.iter().enumerate() {
        out.push_str(if index == 0 { "settings = { " } else { ", " });
        if !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')) {
            out.push_str(key);
        } else {
            write!(out, "{}", Quoted(key))?;
        }
        out.push_str(" = ");
        print_value(&setting.value, out)?;
    }
    if !handler.settings.is_empty() {
        out.push_str(" }\n");
    }
    Ok(())
}

fn print_link(names: &[String], link: &LinkSpec, out: &mut String) -> fmt::Result {
    begin("[[links]]", out);
    for (key, end) in [("from", &link.from), ("to", &link.to)] {
        writeln!(out, "{key} = {}", Quoted(&reference(names, end)))?;
    }
    if let Some(policy) = printed_policy(link) {
        writeln!(out, "policy = {}", Quoted(policy.name()))?;
    }
    if let Some(depth) = link.depth {
        writeln!(out, "depth = {depth}")?;
    }
    Ok(())
}

fn reference(names: &[String], end: &LinkEnd) -> String {
    let name = names.get(end.handler.0).map_or("?", String::as_str);
    match &end.port {
        Some(port) => format!("{name}.{port}"),
        None => name.to_owned(),
    }
}

fn print_value(value: &str, out: &mut String) -> fmt::Result {
    if matches!(value, "true" | "false") || is_canonical_number(value) {
        out.push_str(value);
    } else if value.contains(',') && value.split(',').all(is_canonical_number) {
        write!(out, "[{}]", value.replace(',', ", "))?;
    } else {
        write!(out, "{}", Quoted(value))?;
    }
    Ok(())
}

/// True if TOML reads this text as a number that prints as the same text: `2` and `0.5`, not `007`, `1e3` or `2.50`.
fn is_canonical_number(text: &str) -> bool {
    let whole = text.parse::<i64>().is_ok_and(|n| n.to_string() == text);
    // TOML reads a number without a point as an integer, and the number may be too large for an integer.
    whole || text.contains('.') && text.parse::<f64>().is_ok_and(|n| n.is_finite() && n.to_string() == text)
}

/// A TOML basic string.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\t' => f.write_str("\\t")?,
                '\r' => f.write_str("\\r")?,
                c if c.is_control() => write!(f, "\\u{:04X}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}
