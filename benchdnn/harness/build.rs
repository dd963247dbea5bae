//! Lists the batch files of `inputs/<driver>/` to compile in.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed=inputs");
    let mut rows = String::new();
    for driver in entries(&root.join("inputs")) {
        for file in entries(&driver) {
            // Batch files have no dot in their names, unlike the buffers, scripts and texts beside them.
            if file.is_file() && !base(&file).contains('.') {
                let name = format!("{}/{}", base(&driver), base(&file));
                rows.push_str(&format!("({name:?}, include_str!({:?})),\n", path(&file)));
            }
        }
    }
    fs::write(out.join("embedded.rs"), format!("&[\n{rows}]\n")).expect("OUT_DIR is writable");
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| entry.expect("a readable folder").path()).collect(),
        Err(_) => Vec::new(),
    };
    entries.sort();
    entries
}

fn base(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).expect("names of inputs are UTF-8")
}

fn path(path: &Path) -> &str {
    path.to_str().expect("the path of the sources is UTF-8")
}
