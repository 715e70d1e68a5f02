//! Readable errors from `main`: if `main` returns an error, Rust prints the error with `Debug`, not with `Display`.

/// Makes `Debug` of these errors print the same text as `Display`.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_as_display {
    ($($error:ty),+) => {$(
        impl ::std::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(self, f)
            }
        }
    )+};
}
