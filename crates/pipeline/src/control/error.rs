//! Why a setting could not be changed or read.
//!
//! Invariant: after an error, the pipeline has the settings that it had before.

use vramp_handlers::files::Clash;
use vramp_plan::NoPlan;
use vramp_plan::catalog::DeclareError;
use vramp_runtime::engine::ChangeError;

/// Why a setting was not changed.
#[derive(thiserror::Error)]
pub enum SetError {
    #[error("`{name}` does not name a setting; expected HANDLER.SETTING, such as {example}")]
    Name { name: String, example: String },
    #[error("there is no handler `{handler}`; {}", instead(nearest.as_deref(), known))]
    NoHandler { handler: String, nearest: Option<String>, known: Vec<String> },
    #[error("{handler} has no setting `{key}`; {}", instead(nearest.as_deref(), known))]
    NoSetting { handler: String, key: String, nearest: Option<String>, known: Vec<String> },
    #[error(
        "{handler}.{key} is read when the pipeline starts and cannot change while it runs; {}",
        others(handler, live)
    )]
    Fixed {
        handler: String,
        key: String,
        /// The settings of the handler that can change.
        live: Vec<String>,
    },
    #[error(
        "{handler}: `{text}` is not a valid {key}; expected {expects}{}",
        nearest.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
    )]
    Value { handler: String, key: String, text: String, expects: String, nearest: Option<String> },
    #[error("{name} is given twice; give it once")]
    Twice { name: String },
    #[error("{handler}: {} are alternatives; set one of them", keys.join(" and "))]
    Alternatives { handler: String, keys: Vec<String> },
    /// The settings are valid one by one, but not together.
    #[error("{handler}: {problem}")]
    Together { handler: String, problem: String },
    #[error("{handler}: {error}")]
    Shader {
        handler: String,
        #[source]
        error: DeclareError,
    },
    #[error(
        "{handler}: the shader no longer declares the setting `{key}`, which has the value {value}; keep it in the \
         shader, or restart the run without it"
    )]
    Undeclared { handler: String, key: String, value: String },
    /// No plan is possible with these settings.
    #[error(transparent)]
    NoPlan(#[from] NoPlan),
    #[error(
        "{handlers}: the frames from {from} to {to} would change from {was} to {becomes}; sizes, formats and rates stay \
         as they are while a pipeline runs, so restart the run with these settings"
    )]
    OtherFrames { handlers: String, from: String, to: String, was: String, becomes: String },
    #[error("{handlers}: these settings need another plan; restart the run with them")]
    OtherPlan { handlers: String },
    /// The handler would read a file that the run writes.
    #[error(transparent)]
    Files(#[from] Clash),
    /// The engine refused the change.
    #[error(transparent)]
    Refused(#[from] ChangeError),
    #[error("{name} has no value")]
    Unset { name: String },
}

vramp_plan::debug_as_display!(SetError);

fn instead(nearest: Option<&str>, known: &[String]) -> String {
    match (nearest, known) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, []) => "it has no settings".to_owned(),
        (None, known) => format!("expected one of {}", known.join(", ")),
    }
}

fn others(handler: &str, live: &[String]) -> String {
    match live {
        [] => format!("no setting of {handler} can"),
        live => format!("these can: {}", live.join(", ")),
    }
}
