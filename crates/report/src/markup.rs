//! Writes HTML. Every text and every value of an attribute is escaped, and every element is closed, because there is no
//! other way to write them: markup itself can only be a literal.
//!
//! Names and passwords in addresses, such as `rtsp://name:password@camera/`, are not shown: pages are made to be passed
//! on.

use std::borrow::Cow;

/// Elements that have no content and no end tag.
const VOID: &[&str] = &["meta", "br"];

#[derive(Debug, Default)]
pub(crate) struct Markup {
    out: String,
}

/// The attributes of an element.
pub(crate) type Attributes<'a> = &'a [(&'static str, &'a str)];

impl Markup {
    /// An element with content.
    pub(crate) fn element(
        &mut self,
        name: &'static str,
        attributes: Attributes<'_>,
        content: impl FnOnce(&mut Markup),
    ) {
        self.out.push('<');
        self.out.push_str(name);
        for (key, value) in attributes {
            self.out.push(' ');
            self.out.push_str(key);
            self.out.push_str("=\"");
            self.escaped(value);
            self.out.push('"');
        }
        self.out.push('>');
        if VOID.contains(&name) {
            return;
        }
        content(self);
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    /// An element without content.
    pub(crate) fn empty(&mut self, name: &'static str, attributes: Attributes<'_>) {
        self.element(name, attributes, |_| {});
    }

    /// An element that contains only text.
    pub(crate) fn words(&mut self, name: &'static str, attributes: Attributes<'_>, text: &str) {
        self.element(name, attributes, |page| page.text(text));
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.escaped(text);
    }

    /// Markup, styles or a script of this crate.
    pub(crate) fn literal(&mut self, markup: &'static str) {
        self.out.push_str(markup);
    }

    /// An element with JSON as its content. No JSON text can end the element or begin a comment.
    pub(crate) fn json(&mut self, attributes: Attributes<'_>, json: &str) {
        self.element("script", attributes, |page| page.out.push_str(&json.replace('<', "\\u003c")));
    }

    pub(crate) fn line(&mut self) {
        self.out.push('\n');
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }

    fn escaped(&mut self, text: &str) {
        for c in without_credentials(text).chars() {
            match c {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '"' => self.out.push_str("&quot;"),
                '\'' => self.out.push_str("&#39;"),
                // Control characters have no meaning in HTML, and some are not allowed at all.
                '\t' | '\n' => self.out.push(c),
                c if c.is_control() => self.out.push('\u{fffd}'),
                c => self.out.push(c),
            }
        }
    }
}

/// The text without the names and passwords of its addresses.
pub(crate) fn without_credentials(text: &str) -> Cow<'_, str> {
    const MARK: &str = "://";
    if !text.contains(MARK) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(MARK) {
        let (before, after) = rest.split_at(at + MARK.len());
        out.push_str(before);
        let host = after.find(|c: char| "/?#\"'<>\\`".contains(c) || c.is_whitespace()).unwrap_or(after.len());
        let credentials = after[..host].rfind('@');
        if credentials.is_some() {
            out.push_str("***");
        }
        rest = &after[credentials.unwrap_or(0)..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_attributes_cannot_become_markup() {
        let mut page = Markup::default();
        page.words("p", &[("title", "\"><script>'&")], "</p><script>alert(\"1\")</script>&\u{0}\u{1b}");
        assert_eq!(
            page.finish(),
            "<p title=\"&quot;&gt;&lt;script&gt;&#39;&amp;\">&lt;/p&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;\
             &amp;\u{fffd}\u{fffd}</p>"
        );
    }

    #[test]
    fn json_cannot_end_its_element() {
        let mut page = Markup::default();
        page.json(&[("type", "application/json")], r#"{"a":"</script><!-- <script>"}"#);
        let text = page.finish();
        assert_eq!(
            (text.matches("</").count(), text.matches("<!").count(), text.matches("<script").count()),
            (1, 0, 1)
        );
        let inside = text.split_once('>').unwrap().1.strip_suffix("</script>").unwrap();
        let read: serde_json::Value = serde_json::from_str(inside).unwrap();
        assert_eq!(read["a"], "</script><!-- <script>");
    }

    #[test]
    fn passwords_in_addresses_are_not_shown() {
        for (text, shown) in [
            ("rtsp://me:secret@cam/1?a=b@c and x@y", "rtsp://***@cam/1?a=b@c and x@y"),
            ("\"http://token@host\" ftp://a:b@c@d:1/", "\"http://***@host\" ftp://***@d:1/"),
            ("https://host/a@b", "https://host/a@b"),
            ("://", "://"),
            ("no address@all", "no address@all"),
        ] {
            assert_eq!(without_credentials(text), shown);
        }
    }
}
