//! Link arguments of the shared library, nothing else.
//!
//! In the cargo tree the SONAME carries no version: a versioned one would stop every program linked
//! against `target/` from starting, as no file of that name is there. An installation sets its own.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libnorm.so");
        // Threads of the library may outlive a dlclose().
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
