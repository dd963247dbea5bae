//! The batch files: their number of problems and their coverage.
//!
//! This expansion is independent of the harness's, so the two can disagree.

use std::collections::{BTreeMap, BTreeSet};

/// Options that problems use, with their defaults.
const DEFAULTS: [(&str, &str); 11] = [
    ("dir", "FWD_D"),
    ("dt", "f32"),
    ("tag", "abx"),
    ("stat_tag", "any"),
    ("ss_dt", "f32"),
    ("flags", ""),
    ("inplace", "false"),
    ("eps", "0.0625"),
    ("attr-post-ops", ""),
    ("attr-scales", ""),
    ("residual", ""),
];

/// One problem: the value of each option, and its dimensions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Problem {
    options: BTreeMap<&'static str, String>,
    dims: Vec<usize>,
}

impl Problem {
    fn is(&self, option: &str, value: &str) -> bool {
        self.options[option] == value
    }

    /// Types of src and dst.
    fn types(&self) -> (&str, &str) {
        let dt = &self.options["dt"];
        dt.split_once(':').unwrap_or((dt, dt))
    }

    fn cols(&self) -> usize {
        *self.dims.last().unwrap()
    }

    fn is_skipped(&self) -> bool {
        self.is("inplace", "true") && self.types().0 != self.types().1
    }
}

type State = BTreeMap<&'static str, Vec<String>>;

fn defaults() -> State {
    DEFAULTS.iter().map(|(name, value)| (*name, vec![value.to_string()])).collect()
}

fn text(name: &str) -> String {
    let path = format!("{}/inputs/lnorm/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn read(name: &str, state: &mut State, problems: &mut Vec<Problem>) {
    for (number, line) in text(name).lines().enumerate() {
        let line = line.split('#').next().unwrap();
        for word in line.split_whitespace() {
            let Some(option) = word.strip_prefix("--") else {
                multiply(word, state, problems);
                continue;
            };
            match option.split_once('=') {
                None => {
                    assert_eq!(option, "reset", "{name}:{}", number + 1);
                    *state = defaults();
                }
                Some(("batch", file)) => read(file, state, problems),
                Some((option, values)) => {
                    let known = state.get_mut(option);
                    let known = known.unwrap_or_else(|| panic!("{name}:{}: {word}", number + 1));
                    *known = values.split(',').map(str::to_owned).collect();
                }
            }
        }
    }
}

fn multiply(descriptor: &str, state: &State, problems: &mut Vec<Problem>) {
    let dims = descriptor.split("_n\"").next().unwrap();
    let dims: Vec<usize> = dims.split('x').map(|dim| dim.parse().expect(descriptor)).collect();
    let mut all = vec![BTreeMap::new()];
    for (option, values) in state {
        all = all
            .into_iter()
            .flat_map(|chosen| {
                values.iter().map(move |value| {
                    let mut chosen: BTreeMap<&'static str, String> = chosen.clone();
                    chosen.insert(option, value.clone());
                    chosen
                })
            })
            .collect();
    }
    problems.extend(all.into_iter().map(|options| Problem { options, dims: dims.clone() }));
}

fn expand(name: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    read(name, &mut defaults(), &mut problems);
    problems
}

/// The number that the file states.
fn stated(name: &str) -> usize {
    let text = text(name);
    let line = text.lines().find_map(|line| line.strip_prefix("# Problems: ")).expect(name);
    line.split_whitespace().next().unwrap().parse().expect(line)
}

#[test]
fn every_file_states_how_many_problems_it_stands_for() {
    let tests = ["test_lnorm_smoke", "test_lnorm_ci", "test_lnorm_all"];
    let suites = [
        "perf_llm",
        "perf_narrow",
        "perf_odd",
        "perf_long",
        "perf_types",
        "perf_chains",
        "perf_f64",
        "perf_residual",
        "perf_dynamic",
    ];
    for name in tests.into_iter().chain(suites) {
        assert_eq!(expand(name).len(), stated(name), "{name}");
    }
}

#[test]
fn values_are_those_of_the_language() {
    let allowed: BTreeMap<&str, &str> = BTreeMap::from([
        ("dir", "FWD_D FWD_I BWD_D BWD_DW"),
        ("ss_dt", "f32 bf16 f16"),
        ("stat_tag", "any undef abx axb xba"),
        ("inplace", "true false"),
        ("eps", "0.0625 0 1e-12 1e-5 1"),
    ]);
    for problem in expand("test_lnorm_all") {
        for (option, values) in &allowed {
            let value = &problem.options[option];
            assert!(values.split(' ').any(|allowed| allowed == value), "--{option}={value}");
        }
        let (src, dst) = problem.types();
        assert!(["f32", "bf16", "f16"].contains(&src) && ["f32", "bf16", "f16"].contains(&dst));
        for tag in problem.options["tag"].split(':') {
            assert!(["abx", "axb", "xba"].contains(&tag), "--tag={tag}");
        }
        let flags = &problem.options["flags"];
        assert!(
            flags.is_empty() || "GCHM".matches(|c| flags.contains(c)).collect::<String>() == *flags
        );
        assert!((2..=5).contains(&problem.dims.len()));
    }
}

#[test]
fn the_ci_batch_is_large_enough_and_not_too_large() {
    let problems = expand("test_lnorm_ci");
    assert!((2200..=4000).contains(&problems.len()), "{} problems", problems.len());
    let skipped = problems.iter().filter(|problem| problem.is_skipped()).count();
    assert!(skipped > 0 && problems.len() - skipped > 2000, "{skipped} skipped");
    let elements: usize = problems.iter().map(|p| p.dims.iter().product::<usize>()).sum();
    println!("{} problems, {:.0} million elements", problems.len(), elements as f64 / 1e6);
    assert!(elements < 300_000_000, "{elements} elements take more than a minute");
    let different: BTreeSet<&Problem> = problems.iter().collect();
    assert!(different.len() * 100 >= problems.len() * 98, "{} different problems", different.len());
}

#[test]
fn the_ci_batch_covers_every_value_and_what_acts_together() {
    let problems: Vec<Problem> =
        expand("test_lnorm_ci").into_iter().filter(|problem| !problem.is_skipped()).collect();
    let values =
        |of: &dyn Fn(&Problem) -> String| -> BTreeSet<String> { problems.iter().map(of).collect() };
    let option = |name: &'static str| move |problem: &Problem| problem.options[name].clone();

    assert_eq!(values(&option("dir")).len(), 4);
    assert_eq!(values(&option("flags")).len(), 16);
    assert_eq!(values(&|p| format!("{:?}", p.types())).len(), 9);
    assert_eq!(values(&option("ss_dt")).len(), 3);
    let stat_tags = values(&option("stat_tag"));
    assert!(["any", "undef", "abx", "axb"].iter().all(|tag| stat_tags.contains(*tag)));
    assert_eq!(values(&|p| p.dims.len().to_string()).len(), 4, "2 to 5 dimensions");

    // Directions x flags x pairs of types.
    let all = values(&|p| format!("{} {} {:?}", p.options["dir"], p.options["flags"], p.types()));
    assert_eq!(all.len(), 4 * 16 * 9);
    // Directions x types x orders of data and statistics x dimensions, for more than 2 dimensions.
    let all = values(&|p| {
        let Problem { options, dims } = p;
        let plain = dims.len() > 2 && p.types().0 == p.types().1 && !options["tag"].contains(':');
        let key = [&options["dir"], &options["dt"], &options["tag"], &options["stat_tag"]];
        if plain { format!("{key:?} {}", dims.len()) } else { String::new() }
    });
    assert_eq!(all.len(), 4 * 3 * 2 * 4 * 3 + 1);
    // Directions x types x whether in place.
    let all = values(&|p| {
        let same = p.types().0 == p.types().1;
        let key = [&p.options["dir"], &p.options["dt"], &p.options["inplace"]];
        if same { format!("{key:?}") } else { String::new() }
    });
    assert_eq!(all.len(), 4 * 3 * 2 + 1);
    // Types of the parameters x types of src.
    assert_eq!(values(&|p| format!("{} {}", p.options["ss_dt"], p.types().0)).len(), 3 * 3);
    // Lengths around the lanes, with each type and direction.
    for cols in [1, 2, 3, 15, 16, 17, 31, 32, 33, 127, 128, 129, 130, 255, 256, 257, 301] {
        for dt in ["f32", "bf16", "f16"] {
            for dir in ["FWD_D", "FWD_I", "BWD_D", "BWD_DW"] {
                let covered =
                    problems.iter().any(|p| p.cols() == cols && p.is("dt", dt) && p.is("dir", dir));
                assert!(covered, "{cols} columns, {dt}, {dir}");
            }
        }
    }
}

/// Layer normalization of a single column by its own statistics is 0, whatever the data.
#[test]
fn no_problem_of_the_ci_batch_proves_nothing() {
    for problem in expand("test_lnorm_ci") {
        let flags = &problem.options["flags"];
        let zero = problem.cols() == 1 && !flags.contains(['G', 'H', 'M']);
        assert!(!(zero && problem.is("dir", "FWD_I")), "{problem:?}");
    }
}
