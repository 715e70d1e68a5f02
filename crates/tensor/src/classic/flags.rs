//! The flags of the classic API.
//!
//! The flags can be set and read, but they do not change how ops run: a context runs every op on its device, or on the
//! host if it has no device, and values are always packed. The flags exist for programs that expect them.

/// The flags of the classic API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureFlags {
    /// By its name, small ops run on the CPU even if a device is selected. Has no effect, like all flags.
    pub cpu_forward: bool,
    /// By its name, values are packed as densely as possible. Has no effect, like all flags.
    pub pack: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    #[error("there is no flag `{name}`; use cpu_forward or pack")]
    Unknown { name: String },
    #[error("`{value}` is not a value of the flag `{name}`; use `true` or `false`")]
    NotAFlag { name: String, value: String },
}

impl FeatureFlags {
    pub(super) const CPU: FeatureFlags = FeatureFlags { cpu_forward: true, pack: false };
    pub(super) const GPU: FeatureFlags = FeatureFlags { cpu_forward: false, pack: true };

    pub fn get(&self, name: &str) -> Result<bool, FlagError> {
        Ok(*FeatureFlags::of(&mut self.clone(), name)?)
    }

    /// A copy with some flags changed by name. Fails if a name or a value is invalid.
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
