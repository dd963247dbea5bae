//! The build script of docs/installing.md: the program finds the library that it was linked with.

// ANCHOR: rpath
fn main() {
    let folder = std::env::var("DEP_NORM_LIBDIR").expect("norm-sys found the library");
    println!("cargo::rustc-link-arg-bins=-Wl,-rpath,{folder}");
}
// ANCHOR_END: rpath
