//! The batches of attention have every pair of its options.
//!
//! A problem has kinds, one for each option that is not at its default and for its direction and types. Every two kinds
//! that can go together are in a problem of `test_sdpa_ci`: in a forward one, and in a backward one, where these can
//! have both.

use benchdnn::drivers;
use benchdnn::library::Connection;
use benchdnn::machine::{self, Request, read};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The kinds, each with words for a problem of it. Of those with the same text before the `=`, a problem has one,
/// except flags.
const KINDS: &[(&str, &str)] = &[
    ("--dir=FWD_I", "--dir=FWD_I"),
    ("--dir=FWD_D", "--dir=FWD_D"),
    (BACKWARD, "--dir=BWD_D"),
    ("--dt=f32", "--dt=f32"),
    ("--dt=bf16", "--dt=bf16"),
    ("--dt=f16", "--dt=f16"),
    ("s8", "--dt=f32:s8:s8:f32 --kv-scales=head"),
    ("f8_e4m3", "--dt=f32:f8_e4m3:f8_e4m3:f32"),
    ("dst of another type", "--dt=f32:f32:f32:bf16"),
    ("--diff-dt", "--dir=BWD_D --dt=bf16 --diff-dt=f32"),
    ("--qtag", "--qtag=acbd"),
    ("--ktag", "--ktag=abdc"),
    ("--vtag", "--vtag=acbd"),
    ("--dtag=any", "--dtag=any"),
    ("--dtag=letters", "--dtag=acbd"),
    ("--mask=buffer", "--mask=buffer"),
    ("--mask=causal_top_left", "--mask=causal_top_left"),
    ("--mask=causal_bottom_right", "--mask=causal_bottom_right"),
    ("--mask-dims=abcd", "--mask=buffer --mask-dims=abcd"),
    ("--mask-dims=shared", "--mask=buffer --mask-dims=cd"),
    ("--mdt=f32", "--mask=buffer --mdt=f32"),
    ("--mdt=bf16", "--mask=buffer --mdt=bf16"),
    ("--mdt=f16", "--mask=buffer --mdt=f16"),
    ("--mdt=u8", "--mask=buffer --mdt=u8"),
    ("--scale=mul", "--scale=mul"),
    ("--scale=div", "--scale=div"),
    ("--scale=number", "--scale=0.3"),
    ("--diff-mask", "--dir=BWD_D --mask=buffer --diff-mask=true"),
    ("--kv-scales=head", "--dt=f32:s8:s8:f32 --kv-scales=head"),
    ("--kv-scales=token", "--dt=f32:s8:s8:f32 --kv-scales=token"),
    ("--window=with_self", "--window=with_self:6"),
    ("--window=before_self", "--window=before_self:5"),
    ("--first-keys", "--window=with_self:6 --first-keys=2"),
    ("--soft-cap", "--soft-cap=2"),
    ("--flags=S", "--flags=S"),
    ("--flags=A", "--flags=A"),
    ("--flags=K", "--flags=K"),
    ("--flags=Q", "--flags=Q"),
    ("--flags=E", "--flags=E"),
    ("--flags=O", "--flags=O"),
    ("--flags=T", "--flags=T"),
    ("--page-size", "--page-size=8"),
    ("--inplace", "--inplace=true"),
    ("--attr-scratchpad", "--attr-scratchpad=user"),
];

const BACKWARD: &str = "--dir=BWD_D";
const TENSORS: &[&str] = &[
    "--mask=buffer",
    "--mask-dims=abcd",
    "--mask-dims=shared",
    "--mdt=f32",
    "--mdt=bf16",
    "--mdt=f16",
    "--mdt=u8",
    "--diff-mask",
];
const SCALES: &[&str] = &["--kv-scales=head", "--kv-scales=token"];

/// Pairs that no problem can have: one kind, the others, and why.
const ILLEGAL: &[(&str, &[&str], &str)] = &[
    (BACKWARD, &["--flags=E"], "the entropy has no gradient"),
    (BACKWARD, &["--page-size"], "gradients have no pages"),
    (BACKWARD, &["--inplace"], "dst is an input"),
    (BACKWARD, &["s8", "f8_e4m3"], "keys and values have the type of queries, as their gradients"),
    (BACKWARD, SCALES, "only s8 and f8_e4m3 have scales"),
    ("--dir=FWD_I", &["--diff-dt", "--diff-mask"], "forward has no gradients"),
    ("--dir=FWD_D", &["--diff-dt", "--diff-mask"], "forward has no gradients"),
    ("--flags=Q", &["--flags=O"], "offsets imply lengths"),
    ("--flags=K", &["--flags=T"], "offsets imply lengths"),
    ("--flags=T", &["--page-size"], "a page table already says where keys are"),
    ("--flags=T", SCALES, "scales have the dimensions of keys that are not packed"),
    ("--flags=T", &["s8"], "s8 has scales"),
    ("--flags=O", TENSORS, "the mask has the dimensions of scores that are not packed"),
    ("--flags=T", TENSORS, "the mask has the dimensions of scores that are not packed"),
    ("--inplace", &["dst of another type"], "dst has the buffer of queries"),
    ("--mdt=u8", &["--diff-mask"], "a mask that hides has no gradient"),
];

const SHAPE: &str = "5x4x9x12:5x2x12x40:5x2x40x12";

/// The options of a problem's line; those at their defaults are missing.
fn options(line: &str) -> BTreeMap<&str, &str> {
    let words = line.split_whitespace().filter_map(|word| word.strip_prefix("--"));
    words.filter_map(|word| word.split_once('=')).collect()
}

/// The kinds of a problem.
fn kinds(line: &str) -> BTreeSet<String> {
    let options = options(line);
    let get = |name| options.get(name).copied().unwrap_or_default();
    let mut all = BTreeSet::new();
    let mut add = |has: bool, kind: &str| {
        if has {
            all.insert(kind.to_owned());
        }
    };
    for (name, default) in [("dir", "FWD_I"), ("mask", ""), ("kv-scales", "")] {
        let value = options.get(name).copied().unwrap_or(default);
        // buffer_1d and buffer_2d are dimensions.
        let value = if value.starts_with("buffer") { "buffer" } else { value };
        add(!value.is_empty(), &format!("--{name}={value}"));
    }
    let types = options.get("dt").copied().unwrap_or("f32");
    let types: Vec<&str> = types.split(':').cycle().take(4).collect();
    add(true, &format!("--dt={}", types[0]));
    add(types.contains(&"s8"), "s8");
    add(types.contains(&"f8_e4m3"), "f8_e4m3");
    add(types[3] != types[0], "dst of another type");
    let letters = match (get("mask-dims"), get("mask")) {
        ("", "buffer") => "abcd",
        ("", "buffer_1d") => "d",
        ("", "buffer_2d") => "cd",
        (letters, _) => letters,
    };
    let tensor = !letters.is_empty();
    add(tensor && letters == "abcd", "--mask-dims=abcd");
    add(tensor && letters != "abcd", "--mask-dims=shared");
    let mask_type = options.get("mdt").copied().unwrap_or("f32");
    add(tensor, &format!("--mdt={mask_type}"));
    let scale = if get("scale").parse::<f32>().is_ok() { "number" } else { get("scale") };
    add(!scale.is_empty(), &format!("--scale={scale}"));
    let window = get("window").split(':').next().unwrap_or_default();
    add(!window.is_empty(), &format!("--window={window}"));
    let order = if get("dtag") == "any" { "any" } else { "letters" };
    add(!get("dtag").is_empty(), &format!("--dtag={order}"));
    let backward = get("dir") == "BWD_D";
    add(backward && !get("diff-dt").is_empty(), "--diff-dt");
    for name in ["qtag", "ktag", "vtag", "diff-mask", "first-keys", "soft-cap", "page-size"] {
        add(!get(name).is_empty(), &format!("--{name}"));
    }
    for name in ["inplace", "attr-scratchpad"] {
        add(!get(name).is_empty(), &format!("--{name}"));
    }
    get("flags").chars().for_each(|letter| add(true, &format!("--flags={letter}")));
    all
}

/// The lines of the problems, without those that are skipped.
fn lines(words: &[&str]) -> Vec<String> {
    let library = Rc::new(Connection::linked().expect("a library that can be used"));
    let words: Vec<String> = ["--sdpa"].iter().chain(words).map(|word| word.to_string()).collect();
    match read(&words, drivers::all(), &library) {
        Ok(Request::Jobs { jobs, .. }) => {
            let run = jobs.iter().filter(|job| job.problem.skip_reason().is_none());
            run.map(|job| job.problem.line(false)).collect()
        }
        Ok(Request::Help(_)) => panic!("{words:?} asks for help"),
        Err(error) => panic!("{words:?}: {error}"),
    }
}

/// The option of a kind, if its values exclude each other.
fn option(kind: &str) -> Option<&str> {
    kind.split_once('=').map(|(option, _)| option).filter(|option| *option != "--flags")
}

fn can_go_together(a: &str, b: &str) -> bool {
    let named = |x, y| ILLEGAL.iter().any(|(one, others, _)| *one == x && others.contains(&y));
    (option(a).is_none() || option(a) != option(b)) && !named(a, b) && !named(b, a)
}

/// Pairs that can go together, in forward or in backward, and are in no problem.
fn missing(lines: &[String]) -> Vec<String> {
    let all: Vec<BTreeSet<String>> = lines.iter().map(|line| kinds(line)).collect();
    let (backward, forward) = all.into_iter().partition::<Vec<_>, _>(|it| it.contains(BACKWARD));
    let mut missing = Vec::new();
    for (direction, problems) in [("forward", forward), ("backward", backward)] {
        let is_possible = |kind: &str| match direction {
            "forward" => kind.starts_with("--dir=FWD") || can_go_together(kind, "--dir=FWD_D"),
            _ => kind == BACKWARD || can_go_together(kind, BACKWARD),
        };
        let kinds = KINDS.iter().map(|(kind, _)| *kind);
        let kinds: Vec<&str> = kinds.filter(|kind| is_possible(kind)).collect();
        for (at, a) in kinds.iter().enumerate() {
            for b in kinds[..at].iter().filter(|b| can_go_together(a, b)) {
                if !problems.iter().any(|kinds| kinds.contains(*a) && kinds.contains(*b)) {
                    missing.push(format!("{direction}: {b} with {a}"));
                }
            }
        }
    }
    missing
}

#[test]
fn every_pair_of_options_is_in_a_batch() {
    let lines = lines(&["--batch=test_sdpa_ci"]);
    assert!(lines.len() >= 1500, "{}", lines.len());
    let missing = missing(&lines);
    assert!(missing.is_empty(), "{} are missing:\n{}", missing.len(), missing.join("\n"));
}

#[test]
fn a_pair_in_no_problem_is_missing() {
    let missing = missing(&lines(&["--soft-cap=2", "--flags=S", "--window=with_self:3", SHAPE]));
    let is_missing = |pair: &str| missing.iter().any(|other| other == pair);
    assert!(!is_missing("forward: --soft-cap with --flags=S"));
    assert!(is_missing("backward: --soft-cap with --flags=S"));
    assert!(is_missing("forward: --flags=S with --inplace"));
    assert!(!is_missing("forward: --flags=Q with --flags=O"));
}

#[test]
fn every_option_and_value_has_a_kind() {
    let drivers = drivers::all();
    let sdpa = drivers.iter().position(|driver| driver.name() == "sdpa").expect("the driver");
    for info in machine::options(&drivers, sdpa) {
        let option = format!("--{}", info.name);
        let own = info.topic.starts_with("Problems of sdpa");
        let mut kinds = KINDS.iter().flat_map(|(_, words)| words.split_whitespace());
        assert!(!own || kinds.any(|word| word.starts_with(&option)), "{option}");
    }
    for (kind, words) in KINDS {
        let words: Vec<&str> = words.split_whitespace().chain([SHAPE]).collect();
        let [line] = &lines(&words)[..] else { panic!("{kind}: not one problem") };
        assert!(kinds(line).contains(*kind), "{kind}: {line}");
    }
    for line in lines(&["--batch=test_sdpa_ci"]) {
        for kind in kinds(&line) {
            assert!(KINDS.iter().any(|(known, _)| *known == kind), "{kind}: {line}");
        }
        // Options without an effect.
        let tensor = kinds(&line).iter().any(|kind| kind.starts_with("--mdt"));
        assert!(tensor || !options(&line).contains_key("mdt"), "{line}");
    }
}

#[test]
fn no_problem_has_a_pair_that_is_named_as_illegal() {
    let words_of = |kind| KINDS.iter().find(|(known, _)| *known == kind).expect("a kind").1;
    for (a, others, reason) in ILLEGAL {
        for b in *others {
            let mut both: BTreeMap<&str, String> = BTreeMap::new();
            for (name, value) in [a, b].into_iter().flat_map(|kind| options(words_of(*kind))) {
                let old = both.insert(name, value.to_owned()).unwrap_or_default();
                if name == "flags" {
                    both.insert(name, old + value);
                }
            }
            let words: Vec<String> =
                both.iter().map(|(name, value)| format!("--{name}={value}")).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).chain([SHAPE]).collect();
            for line in lines(&words) {
                let kinds = kinds(&line);
                let has_both = kinds.contains(*a) && kinds.contains(*b);
                assert!(!has_both, "{a} with {b} ({reason}) is possible: {line}");
            }
        }
    }
}
