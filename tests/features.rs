//! `docs/features.md` has every row, and every test that it names exists.

use std::collections::BTreeSet;
use std::path::Path;

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).ok()
}

/// The cells of the rows of tables.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let lines = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix('|'));
    lines.map(|line| line.split('|').map(str::trim).collect()).collect()
}

/// Whether a file defines a function of this name, in Rust, C or Python.
fn defines(path: &str, function: &str) -> bool {
    let Some(text) = read(path) else { return false };
    let named = |start: &str| {
        text.match_indices(&format!("{start}{function}"))
            .any(|(at, found)| text[at + found.len()..].starts_with(['(', '<']))
    };
    ["fn ", "static void ", "static long ", "def "].iter().any(|start| named(start))
}

/// The tests named in a cell that do not exist.
fn missing(cell: &str) -> Vec<String> {
    let proofs = cell.split('`').skip(1).step_by(2);
    let exists = |proof: &&str| {
        proof.split_once("::").is_some_and(|(path, function)| defines(path, function))
    };
    proofs.filter(|proof| !exists(proof)).map(str::to_owned).collect()
}

/// The rows of the documents.
fn expected() -> BTreeSet<String> {
    let rows = |document: u32, last: u32| (1..=last).map(move |row| format!("{document}.{row}"));
    let transformers = [2, 4, 6, 7, 8, 9, 10, 11, 12, 27, 30];
    let transformers = transformers.map(|row| format!("5.{row}"));
    rows(3, 21).chain(rows(4, 12)).chain(transformers).collect()
}

#[test]
fn every_row_has_its_proof() {
    let page = read("docs/features.md").expect("the page exists");
    let rows = rows(&page);
    let is_number = |cell: &str| cell.starts_with(|c: char| c.is_ascii_digit());
    let listed: BTreeSet<String> = (rows.iter())
        .filter(|row| row.len() == 2 && is_number(row[0]))
        .map(|row| row[0].to_owned())
        .collect();
    let (mut seen, mut open) = (BTreeSet::new(), BTreeSet::new());
    for row in rows.iter().filter(|row| row.len() == 4 && is_number(row[0])) {
        let number = row[0].split(' ').next().unwrap_or_default().to_owned();
        match row[1] {
            "x" => {
                assert!(row[3].contains('`'), "row {number} is done and names no test");
                assert_eq!(missing(row[3]), [""; 0], "row {number}: there is no such test");
            }
            "open" => assert!(open.insert(number.clone())),
            "-" => assert!(row[3].is_empty(), "row {number} has nothing to build and a proof"),
            state => panic!("row {number} has the state {state:?}"),
        }
        assert!(seen.insert(number.clone()), "row {number} is there twice");
    }
    assert_eq!(seen, expected());
    assert_eq!(open, listed, "the rows that are open, in the table and in the list");
}

/// The recorded instructions per element of forward in f32, `64x1024`.
fn instructions(record: &str, isa: &str, flags: &str) -> f64 {
    let start = format!("{isa},FWD_I,f32,{flags},64x1024,");
    let count = record.lines().find_map(|line| line.strip_prefix(&start));
    count.and_then(|count| count.parse().ok()).expect("scripts/instructions.csv has the problem")
}

/// RMSNorm with scale, and LayerNorm with scale and shift, as the page says.
#[test]
fn rms_normalization_has_fewer_instructions() {
    let record = read("scripts/instructions.csv").expect("the record exists");
    let page = read("docs/features.md").expect("the page exists");
    for (isa, words) in
        [("avx2", "of the instructions with AVX2"), ("portable", "in portable code")]
    {
        let share = instructions(&record, isa, "CM") / instructions(&record, isa, "CH");
        assert!(share < 2.0 / 3.0, "{isa}: {share}");
        assert!(page.contains(&format!("{share:.2} {words}")), "{isa}: the page needs {share:.2}");
    }
}

#[test]
fn what_does_not_exist_is_found() {
    let this = "tests/features.rs";
    assert!(defines(this, "defines") && defines("tests/c/explain.c", "warnings"));
    assert!(!defines(this, "define") && !defines(this, "nothing") && !defines("tests/no.rs", "x"));
    let cell = format!("`{this}::defines`, `{this}::undefined`, `{this}`");
    assert_eq!(missing(&cell), [format!("{this}::undefined"), this.to_owned()]);
}
