//! Command lines of benchdnn. Nothing runs: an accepted command line must print as a line that describes the same job.

use crate::source::Source;
use benchdnn::drivers;
use benchdnn::job::Job;
use benchdnn::language::token;
use benchdnn::library::Connection;
use benchdnn::machine::{Request, read};
use std::rc::Rc;

/// Pieces of command lines. `--batch` and `--output`, which name files, are missing.
const PIECES: &[&str] = &[
    "--lnorm",
    "--softmax",
    "--gnorm",
    "g4mb2ic8ih3_n\"x\"",
    "--reorder",
    "--reset",
    "--mode=",
    "--dir=",
    "--dt=",
    "--tag=",
    "--stat_tag=",
    "--ss_dt=",
    "--flags=",
    "--eps=",
    "--inplace=",
    "--alg=",
    "--axis=",
    "--sdt=",
    "--ddt=",
    "--stag=",
    "--dtag=",
    "--attr-scales=",
    "--attr-zero-points=",
    "--attr-post-ops=",
    "--attr-scratchpad=",
    "--threads=",
    "--cpu-isa=",
    "--impl=",
    "--skip-impl=",
    "--check=",
    "--roofline=",
    "--fix-times-per-prb=",
    "--max-ms-per-prb=",
    "--cold-cache=",
    "--perf-template=",
    "--repeats-per-prb=",
    "--summary=",
    "--bogus=",
    "--",
    "-v",
    "FWD_D",
    "FWD_I",
    "BWD_D",
    "BWD_DW",
    "f32",
    "bf16",
    "f16",
    "f64",
    "s8",
    "u8",
    "f8_e4m3",
    "s32",
    "any",
    "undef",
    "abx",
    "axb",
    "abc",
    "aBx16b",
    "G",
    "C",
    "H",
    "M",
    "CHM",
    "GM",
    "true",
    "false",
    "0",
    "1",
    "3",
    "16",
    "4096",
    "99999999999999999999",
    "-1",
    "1e-5",
    "nan",
    "inf",
    "x",
    "x",
    "x",
    ",",
    ",",
    ":",
    "+",
    "=",
    "_n\"",
    "\"",
    "'",
    "\\",
    "#",
    "*",
    " ",
    "%",
    "%prb%",
    "%-time%",
    "src:common:0.5",
    "dst:per_oc",
    "relu:0.5",
    "add:f32:per_oc",
    "mul:f32:common",
    "sum:0.25:0:s8",
    "linear:2:1",
    "SOFTMAX",
    "LOGSOFTMAX",
    "PC",
    "B",
    "L",
    "I",
    "grad",
    "avx2",
    "portable",
    "ref",
    "simd",
    "--eltwise",
    "--binary",
    "--gated",
    "--rope",
    "--sdpa",
    "3x4x9x20:3x2x20x64:3x2x64x20",
    "1x2x8x16:1x2x16x8",
    "2x4x16",
    "5x33:1x33",
    "--qtag=",
    "--ktag=",
    "--vtag=",
    "--mdt=",
    "--mask=",
    "--mask-dims=",
    "--scale=",
    "--window=",
    "--diff-mask=",
    "--diff-dt=",
    "--kv-scales=",
    "--first-keys=",
    "--soft-cap=",
    "--page-size=",
    "--pairing=",
    "--angles=",
    "--positions=",
    "--rotary=",
    "--sections=",
    "--tokens=",
    "--index-dim=",
    "--tables=",
    "--magnitude=",
    "--rewrite=",
    "--packing=",
    "--alpha=",
    "--beta=",
    "--limit=",
    "--shift=",
    "--attr-dropout=",
    "with_self:7",
    "before_self:0",
    "buffer_2d",
    "causal_bottom_right",
    "cd",
    "div",
    "token",
    "head",
    "SAKQE",
    "HALF_OF_HEAD",
    "TABLES",
    "s64",
    "4:3:1",
    "MCW",
    "ac",
    "interleaved",
    "separate",
    "GELU_TANH",
    "SWISH",
    "1.702",
    "f32:bf16:s8:f16",
    "é",
    "\u{0}",
];

fn command_line(source: &mut Source<'_>) -> Vec<String> {
    let mut words = vec![String::new()];
    while !source.is_empty() && words.len() < 40 {
        match source.byte() {
            byte @ 0..=219 => {
                let piece = PIECES[usize::from(byte) % PIECES.len()];
                if piece.starts_with("--") {
                    words.push(String::new());
                }
                words.last_mut().expect("a word").push_str(piece);
            }
            220..=245 => words.push(String::new()),
            _ => words.last_mut().expect("a word").push(char::from(source.byte())),
        }
    }
    let mut lists = 0;
    words.retain(|word| {
        let names_a_file =
            ["batch", "output", "compare", "buffer"].iter().any(|n| word.contains(n));
        // Lists multiply.
        lists += word.matches(',').count();
        !word.is_empty() && !names_a_file && lists < 6
    });
    words.truncate(12);
    words
}

fn jobs(words: &[String], library: &Rc<Connection>) -> Option<Vec<Job>> {
    match read(words, drivers::all(), library) {
        Ok(Request::Jobs { jobs, .. }) => Some(jobs),
        Ok(Request::Help(text)) => {
            assert!(!text.to_string().is_empty());
            None
        }
        Err(error) => {
            assert!(!error.to_string().is_empty(), "{words:?} is refused without a reason");
            None
        }
    }
}

/// Returns the number of command lines that were accepted.
pub fn run(data: &[u8]) -> u64 {
    thread_local! {
        static LIBRARY: Rc<Connection> =
            Rc::new(Connection::linked().expect("the library is linked"));
    }
    let words = command_line(&mut Source::new(data));
    LIBRARY.with(|library| {
        let Some(made) = jobs(&words, library) else { return 0 };
        for job in made.iter().take(10) {
            let line = job.line();
            let again = token::split("line", &line).expect("balanced quotes");
            let again: Vec<String> = again.into_iter().map(|token| token.text).collect();
            let lines: Vec<String> =
                jobs(&again, library).unwrap_or_default().iter().map(Job::line).collect();
            // --repeats-per-prb is part of the line.
            assert!(!lines.is_empty(), "{line} is not understood, from {words:?}");
            assert!(lines.iter().all(|again| *again == line), "{lines:?} from {words:?}");
        }
        1
    })
}
