//! The line of a job reproduces it, for generated command lines.

use benchdnn::drivers;
use benchdnn::job::Job;
use benchdnn::language::token;
use benchdnn::library::Connection;
use benchdnn::machine::{Request, read};
use rayon::prelude::*;
use std::rc::Rc;

/// A small random number generator, the same on every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % limit as u64) as usize
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

fn jobs(arguments: &[String]) -> Vec<Job> {
    let library = Rc::new(Connection::linked().expect("a library that can be used"));
    match read(arguments, drivers::all(), &library) {
        Ok(Request::Jobs { jobs, .. }) => jobs,
        Ok(Request::Help(_)) => panic!("{arguments:?} asks for help"),
        Err(error) => panic!("{arguments:?}: {error}"),
    }
}

const NAMES: &[&str] = &[
    "",
    "_n\"plain\"",
    "_nbare:0",
    "n\"with space # and * ;\"",
    "_n\"$HOME `x` \\ !\"",
    "_n\"é\"",
];

fn command_line(numbers: &mut Numbers) -> Vec<String> {
    let options: &[(&str, &[&str])] = &[
        ("mode", &["C", "l", "CP", "bpc", "R", "F", "i"]),
        ("cold-cache", &["none", "wei", "all"]),
        ("compare", &["", "libdnnl.so.3", "a b/lib.so,A=1,B=x y"]),
        ("roofline", &["true", "0"]),
        ("cpu-isa", &["default", "portable", "avx2,avx512", "avx512_bf16", "avx512_amx", "neon"]),
        ("threads", &["0", "1", "2,3"]),
        ("max-ms-per-prb", &["3000", "1", "99999", "500"]),
        ("fix-times-per-prb", &["0", "7"]),
        ("check-ref-impl", &["0", "true"]),
        ("buffer-prefix", &["", "dir/x", "a b", "it's", "\"q\""]),
        ("impl", &["", "ref", "simd:avx2,ref:any"]),
        ("skip-impl", &["ref", "x"]),
        ("dir", &["FWD_D", "fwd_i", "BWD_D,BWD_DW"]),
        ("dt", &["f32", "bf16", "f16:f32,f32:f32", "f32:bf16"]),
        ("tag", &["abx", "axb", "xba:axb", "abx:any,axb:abx", "any", "abx:undef"]),
        ("stat_tag", &["any", "undef", "abx,axb"]),
        ("ss_dt", &["f32", "bf16,f16"]),
        ("residual", &["", "f32,bf16:f32:exact", "f16:none"]),
        ("residual_tag", &["any", "abx:axb", "row,row:abx"]),
        ("gate", &["", "bf16:swish:1.5,f32:logistic"]),
        ("gate_tag", &["any", "axb"]),
        ("partial", &["0", "1,12.5%"]),
        ("flags", &["", "HC", "M,", "GCHM", "CMPBO,chI"]),
        ("eps", &["0.0625", "0", "1e-12", "1e-5,0.1", "123456.7", "3e38", "1e-45"]),
        ("inplace", &["false", "true", "0,1", "residual,both,sum"]),
    ];
    let mut words = Vec::new();
    for (name, values) in options {
        // These are refused in modes that do not measure.
        let timing = ["cold-cache", "roofline", "max-ms-per-prb", "fix-times-per-prb"];
        let measures = ["P", "pc", "CP", "F"];
        let is_measured = words.first().is_some_and(|word: &String| {
            word.strip_prefix("--mode=")
                .is_some_and(|mode| measures.iter().any(|m| mode.ends_with(m)))
        });
        let compares = words.first().is_none_or(|word| word != "--mode=R");
        let has_effect = match *name {
            "compare" => compares,
            name => !timing.contains(&name) || is_measured,
        };
        if numbers.below(3) == 0 && has_effect {
            words.push(format!("--{name}={}", numbers.one_of(values)));
        }
    }
    let dims: Vec<String> =
        (0..2 + numbers.below(4)).map(|_| numbers.below(40).to_string()).collect();
    words.push(format!("{}{}", dims.join("x"), numbers.one_of(NAMES)));
    words
}

#[test]
fn a_line_makes_its_job_again() {
    let mut numbers = Numbers(1);
    let lines: Vec<_> = (0..1000).map(|_| command_line(&mut numbers)).collect();
    let made = |arguments: &Vec<String>| {
        let jobs = jobs(arguments);
        for job in &jobs {
            let line = job.line();
            let words: Vec<String> = token::split("line", &line)
                .expect("balanced quotes")
                .into_iter()
                .map(|token| token.text)
                .collect();
            let again = self::jobs(&words);
            assert_eq!(again.len(), 1, "{line} from {arguments:?}");
            assert_eq!(again[0].line(), line, "from {arguments:?}");
            // The same problem runs, not only the same text is printed.
            assert_eq!(format!("{:?}", again[0].run), format!("{:?}", job.run), "{line}");
            assert_eq!(format!("{:?}", again[0].problem), format!("{:?}", job.problem), "{line}");
        }
        jobs.len()
    };
    let seen: usize = lines.par_iter().map(made).sum();
    assert!(seen > 2000, "only {seen} jobs were made");
}

#[test]
fn a_shell_reads_a_line_as_the_batch_reader_does() {
    let mut numbers = Numbers(2);
    for _ in 0..20 {
        let Some(job) = jobs(&command_line(&mut numbers)).pop() else { continue };
        let line = job.line();
        let output = std::process::Command::new("sh")
            .args(["-c", &format!("printf '%s\\n' {line}")])
            .output()
            .expect("a shell");
        let shell = String::from_utf8(output.stdout).expect("UTF-8");
        let own: Vec<String> = token::split("line", &line)
            .expect("balanced quotes")
            .into_iter()
            .map(|token| token.text)
            .collect();
        assert_eq!(shell.lines().collect::<Vec<_>>(), own, "{line}");
    }
}
