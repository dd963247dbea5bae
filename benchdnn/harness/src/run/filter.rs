//! `--impl` and `--skip-impl`.

use crate::language::value::{BadValue, list};

/// Which implementations of the library's list may run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ImplFilter {
    /// All of them.
    #[default]
    All,
    /// Those whose name contains one of the texts.
    Only(Vec<String>),
    /// Those whose name contains none of the texts.
    Without(Vec<String>),
}

impl ImplFilter {
    /// Whether the implementation of this name may run.
    pub fn admits(&self, implementation: &str) -> bool {
        match self {
            ImplFilter::All => true,
            ImplFilter::Only(names) => names.iter().any(|name| implementation.contains(name)),
            ImplFilter::Without(names) => !names.iter().any(|name| implementation.contains(name)),
        }
    }

    /// The texts.
    pub fn texts(&self) -> &[String] {
        match self {
            ImplFilter::All => &[],
            ImplFilter::Only(names) | ImplFilter::Without(names) => names,
        }
    }

    pub(super) fn parse(
        text: &str,
        filter: fn(Vec<String>) -> ImplFilter,
    ) -> Result<ImplFilter, BadValue> {
        if text.is_empty() {
            return Ok(ImplFilter::All);
        }
        let names = list(text, ',', |name| match name {
            // Every name contains the empty text, so it can only be a typing error.
            "" => Err(BadValue::new("an empty implementation name")),
            name => Ok(name.to_owned()),
        })?;
        Ok(filter(names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_match_parts_of_names() {
        let only = ImplFilter::parse("ref,avx2", ImplFilter::Only).expect("two names");
        assert!(only.admits("simd:avx2") && only.admits("ref:any") && !only.admits("simd:avx512"));
        let without = ImplFilter::parse("ref", ImplFilter::Without).expect("a name");
        assert!(without.admits("simd:avx2") && !without.admits("ref:any"));
        assert!(ImplFilter::parse("a,,b", ImplFilter::Only).is_err());
    }
}
