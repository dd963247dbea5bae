//! `src/bindings.rs` is bindgen's output for `include/norm.h`.
//!
//! bindgen loads libclang at run time. Without libclang the test prints that it did not compare.
//! `NORM_BLESS=1` writes the file instead.

use std::path::Path;

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

#[test]
fn bindings_match_the_header() {
    let blesses = std::env::var_os("NORM_BLESS").is_some();
    let Some(fresh) = generate() else {
        assert!(
            !blesses,
            "NORM_BLESS=1 needs libclang (Debian: libclang-dev) to write bindings.rs"
        );
        println!("no libclang here: not compared");
        return;
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bindings.rs");
    if blesses {
        std::fs::write(&path, &fresh).expect("bindings.rs can be written");
    }
    let committed = std::fs::read_to_string(&path).expect("bindings.rs exists");
    let flat = |s: &str| s.split_whitespace().collect::<String>();
    assert_eq!(
        flat(&committed),
        flat(&fresh),
        "norm.h changed: run NORM_BLESS=1 cargo test -p norm-sys"
    );
}
