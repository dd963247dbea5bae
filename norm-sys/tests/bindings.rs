//! `src/bindings.rs` is bindgen's output for `include/norm.h`.
//!
//! bindgen loads libclang at run time. Without libclang the test prints that it did not compare.
//! `NORM_BLESS=1` writes the file instead.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

fn generate() -> Option<String> {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../include/norm.h");
    let made = std::panic::catch_unwind(|| {
        bindgen::Builder::default()
            .header(header.to_str().expect("the path is text"))
            .allowlist_item("(const_)?(norm|NORM)_.*")
            .use_core()
            .default_macro_constant_type(bindgen::MacroTypeVariation::Signed)
            .prepend_enum_name(false)
            .generate_comments(false)
            .disable_header_comment()
            .raw_line(
                "// Made by bindgen from include/norm.h: `NORM_BLESS=1 cargo test -p norm-sys`.",
            )
            .generate()
    });
    // clang-sys panics if libclang is missing; a bad header is an error.
    let text = made.ok()?.expect("bindgen reads norm.h").to_string();
    // The sizes and offsets that bindgen records are those of 64-bit pointers.
    Some(text.replace("const _: () = {", "#[cfg(target_pointer_width = \"64\")]\nconst _: () = {"))
}

/// What bindgen makes of the header, or `None` without libclang, and `src/bindings.rs`, which `NORM_BLESS=1` writes first.
fn bindings() -> &'static (Option<String>, String) {
    static BINDINGS: OnceLock<(Option<String>, String)> = OnceLock::new();
    BINDINGS.get_or_init(|| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bindings.rs");
        let fresh = generate();
        if std::env::var_os("NORM_BLESS").is_some() {
            let needs = "NORM_BLESS=1 needs libclang (Debian: libclang-dev) to write bindings.rs";
            std::fs::write(&path, fresh.as_ref().expect(needs))
                .expect("bindings.rs can be written");
        }
        (fresh, std::fs::read_to_string(&path).expect("bindings.rs exists"))
    })
}

#[test]
fn bindings_match_the_header() {
    let (Some(fresh), committed) = bindings() else {
        println!("no libclang here: not compared");
        return;
    };
    let flat = |s: &str| s.split_whitespace().collect::<String>();
    assert_eq!(
        flat(committed),
        flat(fresh),
        "norm.h changed: run NORM_BLESS=1 cargo test -p norm-sys"
    );
}

/// The constants whose values are in the range of this library's own: value and name.
fn own_values(bindings: &str) -> BTreeSet<(i64, &str)> {
    let constants = bindings.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("pub const ")?.split_once(": ")?;
        let (_, value) = rest.strip_suffix(';')?.split_once(" = ")?;
        Some((value.parse().ok()?, name))
    });
    constants.filter(|(value, _)| *value >= 0x0100_0000).collect()
}

#[test]
fn own_values_are_listed() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../include/norm_own.h");
    let header = std::fs::read_to_string(header).expect("norm_own.h is text");
    let table = header.split("They are").nth(1).and_then(|rest| rest.split("*/").next());
    let table = table.expect("norm_own.h has a table");
    let entries = table.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let value = words.next()?.strip_prefix("0x")?;
        Some((i64::from_str_radix(value, 16).ok()?, words.next()?))
    });
    let listed: BTreeSet<(i64, &str)> = entries.collect();
    let values = own_values(&bindings().1);
    assert!(values.len() > 75, "{values:?}");
    let missing: Vec<_> = values.difference(&listed).collect();
    assert!(missing.is_empty(), "add these values to the table in norm_own.h: {missing:x?}");
    let gone: Vec<_> = listed.difference(&values).collect();
    assert!(gone.is_empty(), "norm_own.h lists values that no header has: {gone:x?}");
}
