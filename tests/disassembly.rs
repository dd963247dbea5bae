//! The per-level kernel entries call only memory functions, panics and entries of their level.
//!
//! A closure or function in a kernel without `#[inline(always)]` is compiled for the baseline
//! instruction set: its results are right, but it is thirty times slower. The portable level may
//! also call `fma`, `fmaf` and `rintf`, which implement `mul_add` and rounding without the instruction.
//!
//! The test examines the library beside its executable. It must be an optimized build, as in every
//! profile of this workspace; other builds fail because of their calls.
#![cfg(target_os = "linux")]

mod skipped;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

const LEVELS: &[&str] = &[
    #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
    "entry_avx512",
    #[cfg(all(target_arch = "x86_64", feature = "avx2"))]
    "entry_avx2",
    #[cfg(target_arch = "aarch64")]
    "entry_neon",
    "entry_portable",
];

/// The functions that an entry of a level may call, directly or through a register.
fn allowed(level: &str, function: &str) -> bool {
    let name = function.split('@').next().unwrap_or(function);
    matches!(name, "memcpy" | "memmove" | "memset")
        || (level == "entry_portable"
            && (matches!(name, "fma" | "fmaf" | "rintf") || is_portable_vector(name)))
        || name.contains(level)
        || name.contains("panicking")
        || name.contains("unwrap_failed")
        || name.contains("expect_failed")
        || (name.contains("slice") && name.contains("_fail"))
}

/// Whether a function is an operation of the portable vectors, or one for them. Neither is inlined.
fn is_portable_vector(name: &str) -> bool {
    name.contains("4simd8portable") || name.contains("8portable8Portable")
}

/// A shared library as disassembled by objdump.
struct Library<'a> {
    /// Functions by their addresses.
    functions: HashMap<u64, &'a str>,
    /// Functions that the dynamic linker resolves, by the addresses of their slots.
    slots: HashMap<u64, &'a str>,
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
}

/// `0000000000001234 <name>:`
fn function_head(line: &str) -> Option<(u64, &str)> {
    let (address, rest) = line.split_once(" <")?;
    Some((hex(address)?, rest.strip_suffix(">:")?))
}

impl<'a> Library<'a> {
    fn new(code: &'a str, relocations: &'a str) -> Self {
        let functions: HashMap<u64, &str> = code.lines().filter_map(function_head).collect();
        let slot = |line: &'a str| {
            let mut words = line.split_whitespace();
            let (offset, _, value) = (hex(words.next()?)?, words.next()?, words.next()?);
            let function = match value.strip_prefix("*ABS*+") {
                Some(address) => functions.get(&hex(address)?)?,
                None => value,
            };
            Some((offset, function))
        };
        let slots = relocations.lines().filter_map(slot).collect();
        Self { functions, slots }
    }

    /// The function whose address an instruction loads, from objdump's `# address <...>` remark.
    fn taken(&self, instruction: &str) -> Option<&'a str> {
        let (_, remark) = instruction.split_once("# ")?;
        let address = hex(remark.split(' ').next()?)?;
        self.slots.get(&address).or_else(|| self.functions.get(&address)).copied()
    }
}

/// The target of a call or jump: `call 1234 <name+0x10>`.
fn named(instruction: &str) -> Option<&str> {
    let (_, rest) = instruction.split_once('<')?;
    rest.split(['+', '>']).next()
}

/// The entry under examination.
struct Entry<'a> {
    name: &'a str,
    level: &'static str,
    /// Whether it loads the address of a function anywhere, which a register may then contain.
    takes: bool,
    wrong: Vec<String>,
    register_calls: Vec<String>,
}

impl<'a> Entry<'a> {
    fn step(&mut self, instruction: &'a str, library: &Library<'a>) {
        let refusal = |what: &str| format!("{}: {instruction} ({what})", self.name);
        if let Some(function) = library.taken(instruction) {
            self.takes = true;
            if !allowed(self.level, function) {
                self.wrong.push(refusal(function));
            }
            return;
        }
        let verb = instruction.split_whitespace().next().unwrap_or_default();
        let target = instruction[verb.len()..].trim_start();
        let calls = verb.starts_with("call") || verb == "bl" || verb == "blr";
        let jumps = verb.starts_with('j') || verb == "b" || verb.starts_with("b.");
        if calls && (target.starts_with("*%") || target.contains("(%rsp)")) {
            // A register's value was loaded, and checked, somewhere in this entry.
            self.register_calls.push(refusal("a function from elsewhere"));
        } else if calls && (target.starts_with('*') || verb == "blr") {
            self.wrong.push(refusal("a function from memory"));
        } else if calls || (jumps && !target.starts_with('*')) {
            match named(instruction) {
                Some(function) if function == self.name && jumps => {}
                Some(function) if allowed(self.level, function) => {}
                function => self.wrong.push(refusal(function.unwrap_or("unknown"))),
            }
        }
    }

    fn end(mut self, wrong: &mut BTreeSet<String>) {
        wrong.extend(self.wrong);
        if !self.takes {
            wrong.extend(self.register_calls.drain(..));
        }
    }
}

/// The violations, and the number of entries per level.
fn examine(code: &str, relocations: &str) -> (BTreeSet<String>, BTreeMap<&'static str, usize>) {
    let library = Library::new(code, relocations);
    let mut wrong = BTreeSet::new();
    let mut counts = BTreeMap::new();
    let mut current: Option<Entry<'_>> = None;
    for line in code.lines() {
        if let Some((_, name)) = function_head(line) {
            if let Some(entry) = current.take() {
                entry.end(&mut wrong);
            }
            if let Some(level) = LEVELS.iter().find(|level| name.contains(**level)) {
                *counts.entry(*level).or_insert(0) += 1;
                let (takes, wrong, register_calls) = (false, Vec::new(), Vec::new());
                current = Some(Entry { name, level, takes, wrong, register_calls });
            }
        } else if let (Some(entry), Some(instruction)) = (&mut current, line.split('\t').nth(1)) {
            entry.step(instruction.trim(), &library);
        }
    }
    if let Some(entry) = current {
        entry.end(&mut wrong);
    }
    (wrong, counts)
}

fn objdump(options: &[&str], library: &Path) -> Option<String> {
    let output = Command::new("objdump").args(options).arg(library).output().ok()?;
    assert!(output.status.success(), "objdump: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("objdump prints text"))
}

#[test]
fn kernels_make_no_calls() {
    let test = std::env::current_exe().expect("the test knows its executable");
    let library = test.with_file_name("libnorm.so");
    let Some(code) = objdump(&["-d", "--no-show-raw-insn"], &library) else {
        skipped::skipped("there is no objdump here");
        return;
    };
    let relocations = objdump(&["-R"], &library).expect("objdump ran a moment ago");
    let (wrong, counts) = examine(&code, &relocations);
    println!("entries: {counts:?}");
    for level in LEVELS {
        assert!(counts.get(level).is_some_and(|count| *count >= 10), "{level}: {counts:?}");
    }
    let some: Vec<_> = wrong.iter().take(20).cloned().collect();
    assert!(wrong.is_empty(), "{} calls, among them\n{}", wrong.len(), some.join("\n"));
}

#[test]
#[cfg(all(target_arch = "x86_64", feature = "avx2"))]
fn calls_are_detected() {
    let relocations = "0000000000009000 R_X86_64_GLOB_DAT  memcpy@GLIBC_2.14\n\
                       0000000000009008 R_X86_64_RELATIVE  *ABS*+0x0000000000005000\n\
                       0000000000009010 R_X86_64_RELATIVE  *ABS*+0x0000000000006000\n";
    let examine_body = |name: &str, body: &str| {
        let code = format!(
            "0000000000001000 <{name}>:\n{body}\n0000000000005000 <a_closure>:\n    5000:\tret\n\
             0000000000006000 <fmaf>:\n    6000:\tret\n"
        );
        examine(&code, relocations).0.len()
    };
    let avx2 = |body: &str| examine_body("_ZN4norm10entry_avx217h00E", body);
    assert_eq!(
        avx2(
            "    1000:\tvaddps %ymm0,%ymm1,%ymm2\n    1004:\tjne    1000 <_ZN4norm10entry_avx217h00E+0x0>"
        ),
        0
    );
    assert_eq!(avx2("    1000:\tcall   *0x8000(%rip)        # 9000 <_DYNAMIC+0x20>"), 0);
    assert_eq!(
        avx2("    1000:\tmov    0x8000(%rip),%rbx        # 9000 <x>\n    1007:\tcall   *%rbx"),
        0
    );
    assert_eq!(avx2("    1000:\tcall   7000 <_RNvNtCs_4core9panicking18panic_bounds_check>"), 0);
    assert_eq!(avx2("    1000:\tlea    0x8000(%rip),%rbx        # 9900 <a_table>"), 0);
    assert_eq!(avx2("    1000:\tcall   5000 <a_closure>"), 1);
    assert_eq!(avx2("    1000:\tjmp    5000 <a_closure>"), 1);
    assert_eq!(avx2("    1000:\tlea    0x4000(%rip),%rbx        # 5000 <a_closure>"), 1);
    assert_eq!(avx2("    1000:\tcall   *0x8000(%rip)        # 9008 <_DYNAMIC+0x28>"), 1);
    assert_eq!(avx2("    1000:\tmov    0x8000(%rip),%rbx        # 9008 <x>"), 1);
    assert_eq!(avx2("    1000:\tcall   *%rbx"), 1);
    assert_eq!(avx2("    1000:\tcall   *0x18(%rax)"), 1);
    let fmaf = "    1000:\tcall   *0x8000(%rip)        # 9010 <_DYNAMIC+0x30>";
    assert_eq!(avx2(fmaf), 1);
    assert_eq!(examine_body("_ZN4norm14entry_portable17h00E", fmaf), 0);
}
