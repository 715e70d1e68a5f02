//! One figure of a profile: a number and its origin.
//!
//! In TOML a figure is a plain number, `{ value = N, from = "..." }` or `{ value = N, estimate = "..." }`.
//! `Profile::read` checks the range of a figure, because the message must name the figure's key.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap as _, Serializer};

/// A number and its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub value: f64,
    pub origin: FigureOrigin,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FigureOrigin {
    /// The file gives no origin.
    Unsaid,
    /// Measured, or stated by a reliable source.
    From(String),
    /// Not measured; the text gives the reason for the value.
    Estimate(String),
}

impl Figure {
    /// The value rounded to an integer.
    pub fn whole(&self) -> u64 {
        self.value.round() as u64
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("value", &self.value)?;
        match &self.origin {
            FigureOrigin::Unsaid => {}
            FigureOrigin::From(text) => map.serialize_entry("from", text)?,
            FigureOrigin::Estimate(text) => map.serialize_entry("estimate", text)?,
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(FigureVisitor)
    }
}

struct FigureVisitor;

impl<'de> Visitor<'de> for FigureVisitor {
    type Value = Figure;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or { value = NUMBER, from = \"...\" }, or { value = NUMBER, estimate = \"...\" }")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Figure, E> {
        self.visit_f64(value as f64)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Figure, E> {
        self.visit_f64(value as f64)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Figure, E> {
        Ok(Figure { value, origin: FigureOrigin::Unsaid })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Figure, A::Error> {
        let (mut value, mut origin) = (None, FigureOrigin::Unsaid);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "value" => value = Some(map.next_value::<Figure>()?.value),
                "from" | "estimate" if origin != FigureOrigin::Unsaid => {
                    return Err(A::Error::custom("a figure has either `from` or `estimate`, not both"));
                }
                "from" => origin = FigureOrigin::From(map.next_value()?),
                "estimate" => origin = FigureOrigin::Estimate(map.next_value()?),
                other => return Err(A::Error::unknown_field(other, &["value", "from", "estimate"])),
            }
        }
        Ok(Figure { value: value.ok_or_else(|| A::Error::missing_field("value"))?, origin })
    }
}
