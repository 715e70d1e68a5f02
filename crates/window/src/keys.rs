//! What keys mean in a window.

use winit::event::{ElementState, KeyEvent};
use winit::keyboard::{Key, NamedKey};

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyAction {
    Pause,
    Step,
    Save,
    Fullscreen,
    /// Leaves the overlay, or fullscreen.
    Back,
    Overlay,
    PreviousSetting,
    NextSetting,
    Lower,
    Raise,
}

/// The action of a key press; `None` for releases and keys without a meaning. Keys of settings have a meaning only
/// while the overlay is shown. A key that is held down repeats only steps, the choice and the change of a setting.
pub(crate) fn action(event: &KeyEvent, has_overlay: bool) -> Option<KeyAction> {
    (event.state == ElementState::Pressed).then(|| meaning(&event.logical_key, event.repeat, has_overlay)).flatten()
}

fn meaning(key: &Key, is_repeated: bool, has_overlay: bool) -> Option<KeyAction> {
    let action = match key.as_ref() {
        Key::Named(NamedKey::Space) | Key::Character(" ") => KeyAction::Pause,
        Key::Character(".") => KeyAction::Step,
        Key::Character("s" | "S") => KeyAction::Save,
        Key::Character("f" | "F") => KeyAction::Fullscreen,
        Key::Character("h" | "H") => KeyAction::Overlay,
        Key::Named(NamedKey::Escape) => KeyAction::Back,
        Key::Named(NamedKey::ArrowUp) if has_overlay => KeyAction::PreviousSetting,
        Key::Named(NamedKey::ArrowDown) if has_overlay => KeyAction::NextSetting,
        Key::Named(NamedKey::ArrowLeft) | Key::Character("-") if has_overlay => KeyAction::Lower,
        Key::Named(NamedKey::ArrowRight) | Key::Character("+" | "=") if has_overlay => KeyAction::Raise,
        _ => return None,
    };
    let repeats = matches!(
        action,
        KeyAction::Step | KeyAction::PreviousSetting | KeyAction::NextSetting | KeyAction::Lower | KeyAction::Raise
    );
    (repeats || !is_repeated).then_some(action)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Key {
        Key::Character(text.into())
    }

    #[test]
    fn keys_have_their_documented_meaning() {
        let plain = |key| meaning(&key, false, false);
        assert_eq!(plain(Key::Named(NamedKey::Space)), Some(KeyAction::Pause));
        assert_eq!(plain(typed(".")), Some(KeyAction::Step));
        assert_eq!(plain(typed("s")), Some(KeyAction::Save));
        assert_eq!(plain(typed("F")), Some(KeyAction::Fullscreen));
        assert_eq!(plain(typed("h")), Some(KeyAction::Overlay));
        assert_eq!(plain(typed("x")), None);
    }

    #[test]
    fn keys_of_settings_work_only_over_the_settings() {
        for (key, action) in [
            (Key::Named(NamedKey::ArrowUp), KeyAction::PreviousSetting),
            (Key::Named(NamedKey::ArrowDown), KeyAction::NextSetting),
            (Key::Named(NamedKey::ArrowLeft), KeyAction::Lower),
            (typed("-"), KeyAction::Lower),
            (Key::Named(NamedKey::ArrowRight), KeyAction::Raise),
            (typed("="), KeyAction::Raise),
        ] {
            assert_eq!(meaning(&key, false, false), None);
            assert_eq!(meaning(&key, true, true), Some(action), "and repeat");
        }
    }

    #[test]
    fn a_held_key_pauses_once_and_steps_on() {
        assert_eq!(meaning(&Key::Named(NamedKey::Space), true, false), None);
        assert_eq!(meaning(&typed("."), true, false), Some(KeyAction::Step));
    }
}
