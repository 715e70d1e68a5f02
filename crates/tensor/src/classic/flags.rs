//! The flags of the classic front, by name.
//!
//! Owns their names and what they may be.
//! Does not change how ops run: a context runs every op on its side, and values are always packed. The flags say the same
//! in the old words, and are kept for programs that read and set them.
//!
//! Always: all that is to be set is checked first; where one thing is wrong, nothing is set.

/// The flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureFlags {
    /// Whether small ops run on the CPU though a device is selected.
    pub cpu_forward: bool,
    /// Whether values are packed as densely as they can be.
    pub pack: bool,
}

/// Why flags were not set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    /// There is none of this name.
    #[error("no flag is called `{name}`; there are: cpu_forward, pack")]
    Unknown {
        /// As it was given.
        name: String,
    },
    /// A flag is on or off.
    #[error("`{name}` is to be `{value}`; a flag is `true` or `false`")]
    NotAFlag {
        /// Which flag.
        name: String,
        /// As it was given.
        value: String,
    },
}

impl FeatureFlags {
    pub(super) const CPU: FeatureFlags = FeatureFlags { cpu_forward: true, pack: false };
    pub(super) const GPU: FeatureFlags = FeatureFlags { cpu_forward: false, pack: true };

    /// A flag by its name.
    pub fn get(&self, name: &str) -> Result<bool, FlagError> {
        Ok(*FeatureFlags::of(&mut self.clone(), name)?)
    }

    /// These flags with others in them, by name; all or none.
    pub fn with(&self, settings: &[(&str, &str)]) -> Result<FeatureFlags, FlagError> {
        let mut new = *self;
        for (name, value) in settings {
            let flag = FeatureFlags::of(&mut new, name)?;
            *flag = value
                .parse()
                .map_err(|_| FlagError::NotAFlag { name: (*name).to_owned(), value: (*value).to_owned() })?;
        }
        Ok(new)
    }

    fn of<'a>(&'a mut self, name: &str) -> Result<&'a mut bool, FlagError> {
        match name {
            "cpu_forward" => Ok(&mut self.cpu_forward),
            "pack" => Ok(&mut self.pack),
            _ => Err(FlagError::Unknown { name: name.to_owned() }),
        }
    }
}
