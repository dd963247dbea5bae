//! With the feature `system`, finds the installed libnorm and links it; otherwise links nothing.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "system")]
    if let Err(message) = system::link() {
        eprintln!("{message}");
        std::process::exit(1);
    }
}

#[cfg(feature = "system")]
mod system {
    use std::path::{Path, PathBuf};
    use std::{env, fs, io};

    /// Links the library of the folder `NORM_LIB_DIR`, or the one that pkg-config finds.
    pub(crate) fn link() -> Result<(), String> {
        println!("cargo::rerun-if-env-changed=NORM_LIB_DIR");
        let folders = match env::var_os("NORM_LIB_DIR").filter(|folder| !folder.is_empty()) {
            Some(folder) => vec![given(PathBuf::from(folder))?],
            None => probe()?,
        };
        if let Some(folder) = folders.iter().find(|folder| !libraries(folder).is_empty()) {
            // Build scripts of direct dependents read it as DEP_NORM_LIBDIR.
            println!("cargo::metadata=libdir={}", folder.display());
            show_to_cargo(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        Ok(())
    }

    /// Links the library of this folder, which must have one.
    fn given(folder: PathBuf) -> Result<PathBuf, String> {
        let shown = folder.display();
        let is_library = |name: &str| {
            name.starts_with("libnorm.") || ["norm.lib", "norm.dll.lib"].contains(&name)
        };
        let mut entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        if !entries.any(|entry| entry.file_name().to_str().is_some_and(is_library)) {
            return Err(format!(
                "NORM_LIB_DIR={shown} has no libnorm.so or libnorm.a. Set it to the folder of the installed library, \
                 such as /usr/local/lib, or unset it, so that pkg-config finds the library."
            ));
        }
        println!("cargo::rustc-link-search=native={shown}");
        println!("cargo::rustc-link-lib=dylib=norm");
        Ok(folder)
    }

    fn probe() -> Result<Vec<PathBuf>, String> {
        // The library may be newer than these declarations, up to the next major release.
        let major: u32 = env!("CARGO_PKG_VERSION_MAJOR").parse().expect("a version is of numbers");
        let next = (major + 1).to_string();
        let library = pkg_config::Config::new()
            .range_version(env!("CARGO_PKG_VERSION")..next.as_str())
            .probe("norm")
            .map_err(|error| {
                format!(
                    "The feature `system` of norm-sys needs an installed libnorm. If it is not in the system's \
                     folders, set PKG_CONFIG_PATH to the folder of norm.pc, or NORM_LIB_DIR to the folder of \
                     the library.\n\n{error}"
                )
            })?;
        // pkg-config does not name the system's own folders as search paths.
        let libdir = pkg_config::get_variable("norm", "libdir").map(PathBuf::from);
        Ok(library.link_paths.into_iter().chain(libdir).collect())
    }

    /// The shared libraries of the folder.
    fn libraries(folder: &Path) -> Vec<PathBuf> {
        let is_shared = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.starts_with("libnorm.so")
                || (name.starts_with("libnorm.") && name.ends_with(".dylib"))
        };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(is_shared).collect()
    }

    /// Lets programs that cargo runs find the library. Cargo hands no rpath of a dependency on to programs, but it
    /// puts search folders below its build folder into the loader's path: this one, with links to the library.
    fn show_to_cargo(folder: &Path) -> io::Result<()> {
        let shown = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("lib");
        match fs::remove_dir_all(&shown) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => fs::create_dir_all(&shown)?,
        }
        for file in libraries(&fs::canonicalize(folder)?) {
            println!("cargo::rerun-if-changed={}", file.display());
            #[cfg(unix)]
            std::os::unix::fs::symlink(&file, shown.join(file.file_name().unwrap_or_default()))?;
        }
        println!("cargo::rustc-link-search=native={}", shown.display());
        Ok(())
    }
}
