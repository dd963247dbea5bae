//! Sets what to link: nothing with `bundled`, where the library is a crate, and `-lnorm` with
//! `system`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=NORM_LIB_DIR");
    if std::env::var_os("CARGO_FEATURE_SYSTEM").is_none() {
        return;
    }
    if let Some(dir) = std::env::var_os("NORM_LIB_DIR") {
        println!("cargo::rustc-link-search=native={}", dir.display());
    }
    println!("cargo::rustc-link-lib=dylib=norm");
}
