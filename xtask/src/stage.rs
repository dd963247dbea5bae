//! `cargo xtask stage`: builds the files of an installation and lays them out below `target/stage/prefix`, from where
//! `make install` copies them.
//!
//! Nothing in the tree contains the prefix: norm.pc and the CMake files find it relative to their own location. They
//! only depend on the folder of the libraries below it.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const MAJOR: &str = env!("CARGO_PKG_VERSION_MAJOR");
const DESCRIPTION: &str =
    "Normalizations, attention, rope, gated activations and softmax on the CPU";

/// What a program needs beside `libnorm.a`: `rustc --print native-static-libs` on Linux with glibc.
const STATIC_LIBS: [&str; 6] = ["gcc_s", "util", "rt", "pthread", "m", "dl"];

/// A tree of files below a prefix.
struct Tree {
    prefix: PathBuf,
    /// The folder of the libraries, relative to the prefix.
    libdir: String,
}

/// Builds with the flags for cargo and lays out the tree.
pub(crate) fn stage(root: &Path, arguments: &[String]) -> Result<(), String> {
    let (libdir, flags) = match arguments {
        [option, libdir, flags @ ..] if option == "--libdir" => (libdir.as_str(), flags),
        flags => ("lib", flags),
    };
    check(libdir)?;
    let target = target(root);
    build(root, &target, flags)?;
    let stage = target.join("stage");
    // Make's stamps are removed together with the tree that they belong to.
    match fs::remove_dir_all(&stage) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(format!("{}: {error}", stage.display()));
        }
        _ => {}
    }
    let tree = Tree { prefix: stage.join("prefix"), libdir: libdir.to_owned() };
    tree.fill(root, &target.join("dist"))
        .map_err(|error| format!("{}: {error}", stage.display()))?;
    println!("staged in {}", tree.prefix.display());
    Ok(())
}

/// The build folder that cargo uses.
pub(crate) fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir))
}

fn check(libdir: &str) -> Result<(), String> {
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    if !libdir.split('/').all(plain) {
        return Err(format!("the folder of the libraries, {libdir}, is not below the prefix"));
    }
    if !cfg!(all(target_os = "linux", target_env = "gnu")) {
        return Err("only Linux with glibc is supported; cargo cinstall may do it here".to_owned());
    }
    Ok(())
}

/// The libraries, benchdnn and its pages, in one run of cargo.
fn build(root: &Path, target: &Path, flags: &[String]) -> Result<(), String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root).args(["build", "--profile", "dist", "--target-dir"]).arg(target);
    cargo.args(["-p", "libnorm", "--lib", "--features", "libnorm/capi"]);
    cargo.args(["-p", "benchdnn", "--bin", "benchdnn", "--example", "pages"]).args(flags);
    if let Some(revision) = revision(root) {
        cargo.env("NORM_REVISION", revision);
    }
    let status = cargo.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{cargo:?}: {status}")) }
}

/// The revision for `norm_version()`: the environment's, or else that of the repository.
fn revision(root: &Path) -> Option<String> {
    if std::env::var_os("NORM_REVISION").is_some() || !root.join(".git").exists() {
        return None;
    }
    let git = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root).output().ok()?;
    git.status.success().then(|| String::from_utf8_lossy(&git.stdout).trim().to_owned())
}

impl Tree {
    fn fill(&self, root: &Path, built: &Path) -> io::Result<()> {
        self.copy(&built.join("benchdnn"), "bin", 0o755)?;
        self.pages(&built.join("examples/pages"))?;
        for entry in fs::read_dir(root.join("include"))? {
            self.copy(&entry?.path(), "include", 0o644)?;
        }
        for document in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
            self.copy(&root.join(document), "share/doc/libnorm", 0o644)?;
        }
        self.libraries(built)?;
        let templates = root.join("packaging");
        self.template(&templates.join("norm.pc.in"), "pkgconfig", &pkg_config_libs())?;
        for name in ["normConfig.cmake.in", "normConfigVersion.cmake.in"] {
            self.template(&templates.join(name), "cmake/norm", &STATIC_LIBS.join(";"))?;
        }
        Ok(())
    }

    /// The static library, and the shared one under its full version with the links to it.
    fn libraries(&self, built: &Path) -> io::Result<()> {
        self.copy(&built.join("libnorm.a"), &self.libdir, 0o644)?;
        self.copy(&built.join("libnorm.so"), &self.libdir, 0o755)?;
        let folder = self.prefix.join(&self.libdir);
        let (file, soname) = (format!("libnorm.so.{VERSION}"), soname());
        fs::rename(folder.join("libnorm.so"), folder.join(&file))?;
        symlink(&file, folder.join(&soname))?;
        symlink(&soname, folder.join("libnorm.so"))
    }

    /// The manual page and the completions, which the example `pages` of benchdnn prints.
    fn pages(&self, program: &Path) -> io::Result<()> {
        for (page, path) in [
            ("man", "share/man/man1/benchdnn.1"),
            ("bash", "share/bash-completion/completions/benchdnn"),
            ("zsh", "share/zsh/site-functions/_benchdnn"),
            ("fish", "share/fish/vendor_completions.d/benchdnn.fish"),
        ] {
            let output = Command::new(program).arg(page).output()?;
            if !output.status.success() || output.stdout.is_empty() {
                return Err(io::Error::other(format!("{} {page} fails", program.display())));
            }
            self.write(path, &output.stdout)?;
        }
        Ok(())
    }

    /// A file of `packaging/` without `.in`, with its `@NAMES@` replaced.
    fn template(&self, file: &Path, folder: &str, static_libs: &str) -> io::Result<()> {
        let text = fs::read_to_string(file)?
            // The steps up to the prefix, less those from a folder directly below it.
            .replace("@UP@", &"../".repeat(self.libdir.split('/').count() - 1))
            .replace("@LIBDIR@", &self.libdir)
            .replace("@VERSION@", VERSION)
            .replace("@MAJOR@", MAJOR)
            .replace("@SONAME@", &soname())
            .replace("@DESCRIPTION@", DESCRIPTION)
            .replace("@STATIC_LIBS@", static_libs)
            .replace("@POINTER_BYTES@", &size_of::<*const u8>().to_string());
        let stem = file.file_stem().expect("a template has a name").to_string_lossy();
        self.write(&format!("{}/{folder}/{stem}", self.libdir), text.as_bytes())
    }

    fn write(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.prefix.join(path);
        fs::create_dir_all(path.parent().expect("it is below the prefix"))?;
        fs::write(path, bytes)
    }

    fn copy(&self, file: &Path, folder: &str, mode: u32) -> io::Result<()> {
        let folder = self.prefix.join(folder);
        fs::create_dir_all(&folder)?;
        let to = folder.join(file.file_name().expect("a file has a name"));
        let context = |error| io::Error::other(format!("{}: {error}", file.display()));
        fs::copy(file, &to).map_err(context)?;
        fs::set_permissions(&to, fs::Permissions::from_mode(mode))
    }
}

fn soname() -> String {
    format!("libnorm.so.{MAJOR}")
}

fn pkg_config_libs() -> String {
    STATIC_LIBS.map(|library| format!("-l{library}")).join(" ")
}
