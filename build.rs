//! Link arguments of the shared library, nothing else.
//!
//! In the cargo tree, the SONAME has no version: with one, no program linked against `target/` would start, because
//! there is no file of that name. The feature `capi` builds the library for an installation, whose SONAME has the major
//! version (docs/compatibility.md).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        let suffix = match std::env::var("CARGO_FEATURE_CAPI") {
            Ok(_) => concat!(".", env!("CARGO_PKG_VERSION_MAJOR")),
            Err(_) => "",
        };
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libnorm.so{suffix}");
        // Threads of the library may outlive a dlclose().
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
