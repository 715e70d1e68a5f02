//! The sections of a page, in the order in which they stand.

pub(crate) mod details;
pub(crate) mod frames;
pub(crate) mod graph;
pub(crate) mod head;
pub(crate) mod losses;
pub(crate) mod over_time;
pub(crate) mod times;

use crate::markup::Markup;

/// A section with its heading and one sentence about it.
fn section(page: &mut Markup, title: &str, about: &str, content: impl FnOnce(&mut Markup)) {
    page.element("section", &[], |page| {
        page.words("h2", &[], title);
        if !about.is_empty() {
            page.words("p", &[("class", "about")], about);
        }
        content(page);
    });
    page.line();
}

/// A table. On a phone each row becomes a card, whose lines have the column's name.
fn table(page: &mut Markup, columns: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    page.element("div", &[("class", "scroll")], |page| {
        page.element("table", &[], |page| {
            page.element("thead", &[], |page| {
                page.element("tr", &[], |page| columns.iter().for_each(|name| page.words("th", &[], name)));
            });
            page.element("tbody", &[], |page| {
                for row in rows {
                    page.element("tr", &[], |page| {
                        for (name, cell) in columns.iter().zip(&row) {
                            page.words("td", &[("data-name", name)], cell);
                        }
                    });
                    page.line();
                }
            });
        });
    });
}

/// Names and values in two columns.
fn pairs(page: &mut Markup, rows: &[(&str, String)]) {
    page.element("dl", &[], |page| {
        for (name, value) in rows {
            page.words("dt", &[], name);
            page.words("dd", &[], value);
        }
    });
}
