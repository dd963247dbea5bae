//! Primitive attributes.

/// Who provides temporary memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ScratchpadMode {
    #[default]
    Library,
    User,
}

/// How a primitive is to be made, beyond its operation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attr {
    pub(crate) scratchpad_mode: ScratchpadMode,
}

impl Attr {
    /// For verbose lines; empty for the defaults.
    pub(crate) fn describe(&self) -> &'static str {
        match self.scratchpad_mode {
            ScratchpadMode::Library => "",
            ScratchpadMode::User => "attr-scratchpad:user",
        }
    }
}
