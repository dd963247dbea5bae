//! Programs compiled for the last release run on this library: every function, struct, type and
//! enumerator of `released.txt` is still declared, in the same way.
//!
//! `released.txt` holds the declarations of `src/bindings.rs` at the last release, one a line, with
//! sizes and offsets of structs, and the lists of [`LISTS`]. docs/compatibility.md says what a
//! release may change. After a release, `NORM_RELEASE=1 cargo test -p norm-sys --test compatibility`
//! records it.

use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use syn::Item;

/// What programs use besides the declarations of `norm.h`: lists in `tests/symbols/`, and of what.
const LISTS: [(&str, &str); 3] = [
    ("onednn.txt", "with onednn-abi"),
    ("norm_cpp.txt", "in norm.hpp"),
    ("python.txt", "in the Python package"),
];

/// Declarations by name; an enumerator is a constant.
type Declarations = BTreeMap<String, String>;

/// The declarations of generated bindings.
fn declarations(bindings: &str) -> Declarations {
    let file = syn::parse_file(bindings).expect("the bindings are Rust");
    let mut found = Declarations::new();
    let mut add = |name: String, item: &dyn ToTokens| {
        let text = item.to_token_stream().to_string();
        assert!(found.insert(name, text).is_none(), "a name is declared twice");
    };
    for item in &file.items {
        match item {
            // Sizes and offsets.
            Item::Const(item) if item.ident == "_" => add(layout_of(item), &item.expr),
            Item::Const(item) => add(item.ident.to_string(), item),
            Item::Type(item) => add(item.ident.to_string(), item),
            Item::Struct(item) => add(item.ident.to_string(), item),
            Item::Union(item) => add(item.ident.to_string(), item),
            Item::ForeignMod(block) => {
                for function in &block.items {
                    let syn::ForeignItem::Fn(function) = function else {
                        panic!("norm.h declares functions only");
                    };
                    add(function.sig.ident.to_string(), function);
                }
            }
            other => panic!("bindgen made something new: {}", other.to_token_stream()),
        }
    }
    found
}

/// A name for the sizes and offsets of a struct: the first text is `Size of NAME`.
fn layout_of(item: &syn::ItemConst) -> String {
    let text = item.expr.to_token_stream().to_string();
    let name = text.split("Size of ").nth(1).and_then(|rest| rest.split('"').next());
    format!("layout of {}", name.expect("bindgen's check of a layout"))
}

/// The versions that the header gives change with each release.
fn is_version(name: &str) -> bool {
    name.starts_with("NORM_VERSION_")
}

/// What a program compiled for the last release misses.
fn broken(released: &Declarations, now: &Declarations) -> Vec<String> {
    let kept = released.iter().filter(|(name, _)| !is_version(name));
    kept.filter_map(|(name, was)| match now.get(name) {
        None => Some(format!("{name} is gone: {was}")),
        Some(is) if is != was => Some(format!("{name} was {was}\n    and is {is}")),
        Some(_) => None,
    })
    .collect()
}

fn record() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("released.txt")
}

/// Reads a record: a line with the version, then `NAME<tab>DECLARATION`.
fn read(text: &str) -> (&str, Declarations) {
    let (version, lines) = text.split_once('\n').expect("the record begins with a version");
    let pair = |line: &str| {
        let (name, declaration) = line.split_once('\t').expect("a name, a tab, a declaration");
        (name.to_owned(), declaration.to_owned())
    };
    (version, lines.lines().map(pair).collect())
}

fn write(version: &str, declarations: &Declarations) -> String {
    let lines = declarations.iter().map(|(name, text)| format!("{name}\t{text}\n"));
    std::iter::once(format!("{version}\n")).chain(lines).collect()
}

/// What this library declares, and what is in the lists.
fn present() -> Declarations {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let text = |path: &str| std::fs::read_to_string(here.join(path)).expect("it can be read");
    let mut found = declarations(&text("src/bindings.rs"));
    for (list, whose) in LISTS {
        let lines = text(&format!("../tests/symbols/{list}"));
        assert!(lines.lines().count() > 100, "{list} is incomplete");
        found.extend(lines.lines().map(|line| (line.to_owned(), whose.to_owned())));
    }
    found
}

#[test]
fn what_was_released_is_still_there() {
    let now = present();
    if std::env::var_os("NORM_RELEASE").is_some() {
        std::fs::write(record(), write(env!("CARGO_PKG_VERSION"), &now))
            .expect("it can be written");
    }
    let text = std::fs::read_to_string(record()).expect("released.txt exists");
    let (version, released) = read(&text);
    assert!(released.len() > 1000, "only {} declarations are recorded", released.len());
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    if major(version) != major(env!("CARGO_PKG_VERSION")) {
        println!("a major release after {version} may change everything");
        return;
    }
    let broken = broken(&released, &now);
    assert!(
        broken.is_empty(),
        "programs compiled for {version} break (docs/compatibility.md):\n{}",
        broken.join("\n")
    );
}

/// The structs that docs/compatibility.md names: the words in backquotes of its item "Structs".
fn documented_structs(page: &str) -> BTreeSet<&str> {
    let (_, item) = page.split_once("- **Structs.**").expect("an item on structs");
    let item = item.split("\n- ").next().expect("an item has text");
    item.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_struct_is_documented() {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let text = |path: PathBuf| std::fs::read_to_string(path).expect("it can be read");
    let (record, page) = (text(record()), text(here.join("../docs/compatibility.md")));
    let (_, released) = read(&record);
    let released: BTreeSet<&str> =
        released.keys().filter_map(|name| name.strip_prefix("layout of ")).collect();
    assert!(released.len() >= 5, "{released:?}");
    assert_eq!(documented_structs(&page), released, "docs/compatibility.md, and released.txt");
    let page = "- **Other.** `x`\n- **Structs.** `a` and\n  `b` only.\n- **Next.** `c`";
    assert_eq!(documented_structs(page), BTreeSet::from(["a", "b"]));
}

#[test]
fn changes_are_seen() {
    let before = "pub const NORM_VERSION_MINOR: i32 = 1;\npub const norm_f32: norm_t = 3;\npub type norm_t = u32;\n\
                  #[repr(C)] pub struct norm_s { pub a: i32 }\n\
                  const _: () = { [\"Size of norm_s\"][core::mem::size_of::<norm_s>() - 4usize]; };\n\
                  unsafe extern \"C\" { pub fn norm_f(a: i32) -> i32; }";
    let released = declarations(before);
    assert_eq!(read(&write("0.1.0", &released)), ("0.1.0", released.clone()));
    for (from, to, name) in [
        ("norm_f32: norm_t = 3", "norm_f32: norm_t = 4", "norm_f32 was"),
        ("pub const norm_f32: norm_t = 3;", "", "norm_f32 is gone"),
        ("norm_t = u32", "norm_t = i32", "norm_t was"),
        ("a: i32 }", "a: i32, pub b: i32 }", "norm_s was"),
        ("4usize", "8usize", "layout of norm_s was"),
        ("fn norm_f(a: i32)", "fn norm_f(a: i64)", "norm_f was"),
        ("fn norm_f(", "fn norm_g(", "norm_f is gone"),
    ] {
        let now = declarations(&before.replace(from, to));
        let said = broken(&released, &now);
        assert!(said.len() == 1 && said[0].starts_with(name), "{from} -> {to}: {said:?}");
    }
    let more = format!("{before}\npub const norm_f64: norm_t = 7;")
        .replace("MINOR: i32 = 1", "MINOR: i32 = 2");
    assert!(broken(&released, &declarations(&more)).is_empty());
}
