//! The public declarations of the C++ headers are those of `tests/symbols/norm_cpp.txt`, which `NORM_BLESS=1` writes.
//! `norm-sys/tests/compatibility.rs` compares that list with the last release's.

mod source;

use source::{code, files, text, without_directives};
use std::collections::BTreeSet;
use std::path::Path;

/// What a brace opens.
enum Scope {
    /// A namespace, or a class or struct whose current part is public: its declarations are recorded.
    Open(String),
    /// A class whose current part is not public.
    Closed(String),
    /// An enumeration.
    Enumerators(String),
    /// A function's body or an initial value.
    Other,
}

/// The public declarations of a header, each with the scope that it is in.
#[derive(Default)]
struct Reader {
    scopes: Vec<Scope>,
    found: BTreeSet<String>,
}

impl Reader {
    fn read(mut self, header: &str) -> BTreeSet<String> {
        let code = without_directives(&code(header)).replace('\n', " ");
        let (mut statement, mut depth) = (String::new(), 0);
        for letter in code.chars() {
            // Braces in parentheses and after an equals sign have values.
            let has_value = depth > 0 || statement.trim_end().ends_with('=');
            depth += i32::from(letter == '(' || letter == '{' && has_value);
            depth -= i32::from(letter == ')' || letter == '}' && depth > 0);
            let is_label = ["public", "protected", "private"].contains(&statement.trim());
            let ends = match letter {
                ';' | '{' => depth == 0,
                '}' => !has_value,
                ':' => is_label,
                _ => false,
            };
            if !ends {
                statement.push(letter);
                continue;
            }
            let words = statement.split_whitespace().collect::<Vec<_>>().join(" ");
            let words = words.replace("( ", "(");
            statement.clear();
            match letter {
                ';' => self.declare(&words),
                '{' => self.open(&words),
                '}' => self.close(&words),
                _ => self.change_access(words == "public"),
            }
        }
        assert!(self.scopes.is_empty(), "braces");
        self.found
    }

    /// The name of the current scope, if its declarations are public.
    fn scope(&self) -> Option<&str> {
        match self.scopes.last() {
            None => Some(""),
            Some(Scope::Open(name)) => Some(name),
            Some(_) => None,
        }
    }

    fn change_access(&mut self, is_public: bool) {
        if let Some(Scope::Open(name) | Scope::Closed(name)) = self.scopes.pop() {
            self.scopes.push(if is_public { Scope::Open(name) } else { Scope::Closed(name) });
        }
    }

    /// A statement that a semicolon ends.
    fn declare(&mut self, statement: &str) {
        let words: Vec<&str> = statement.split(' ').collect();
        let is_forward = matches!(words[..], ["class" | "struct", _]);
        let ignored = ["friend ", "static_assert"];
        if !is_forward && !ignored.iter().any(|start| statement.starts_with(start)) {
            self.record(statement);
        }
    }

    fn record(&mut self, statement: &str) {
        // A member that is defined outside its class.
        let is_definition =
            statement.split_once('(').is_some_and(|(before, _)| last_word(before).contains("::"));
        if let Some(scope) = self.scope().filter(|_| !statement.is_empty() && !is_definition) {
            let declaration = without_initializers(statement.trim_start_matches("inline "));
            self.found.insert(format!("{scope}: {declaration}"));
        }
    }

    fn open(&mut self, statement: &str) {
        let words: Vec<&str> = statement.split(' ').collect();
        let kind =
            words.iter().position(|word| ["namespace", "class", "struct", "enum"].contains(word));
        let inner = |name: &str, scope: &str| {
            if scope.is_empty() { name.to_owned() } else { format!("{scope}::{name}") }
        };
        let opened = match (kind.map(|at| (words[at], &words[at + 1..])), self.scope()) {
            (_, None) => Scope::Other,
            (Some(("namespace", _)), Some(scope)) if words[0] == "inline" => {
                Scope::Open(scope.to_owned())
            }
            (Some(("namespace", name)), Some(scope)) => Scope::Open(inner(name[0], scope)),
            (Some(("enum", ["class", name, ..] | [name, ..])), Some(scope)) => {
                Scope::Enumerators(inner(name, scope))
            }
            (Some(("class", name)), Some(scope)) if !statement.contains(") ") => {
                Scope::Closed(inner(name[0], scope))
            }
            (Some(("struct", name)), Some(scope)) if !statement.contains(") ") => {
                Scope::Open(inner(name[0], scope))
            }
            _ => Scope::Other,
        };
        if kind.is_none_or(|at| words[at] != "namespace") {
            self.record(statement);
        }
        self.scopes.push(opened);
    }

    /// Ends a scope; the statement before the brace is an enumeration's list.
    fn close(&mut self, statement: &str) {
        if let Some(Scope::Enumerators(name)) = self.scopes.pop() {
            let enumerators = statement.split(',').map(str::trim).filter(|one| !one.is_empty());
            self.found.extend(enumerators.map(|one| format!("{name}: {one}")));
        }
    }
}

fn last_word(text: &str) -> &str {
    text.rsplit([' ', '*', '&']).next().unwrap_or_default()
}

/// A constructor's declaration without what it does with its members and bases.
fn without_initializers(statement: &str) -> &str {
    let mut depth = 0;
    let end = statement.match_indices(['(', ')', ':']).find(|(at, mark)| {
        depth += i32::from(*mark == "(") - i32::from(*mark == ")");
        *mark == ":" && depth == 0 && statement[..*at].ends_with(") ")
    });
    end.map_or(statement, |(at, _)| statement[..at].trim_end())
}

fn public(headers: &[String]) -> BTreeSet<String> {
    headers.iter().flat_map(|header| Reader::default().read(header)).collect()
}

#[test]
fn the_record_has_the_declarations() {
    let headers = files(&["hpp"]).into_iter().filter(|file| file.starts_with("include"));
    let declared = public(&headers.map(|file| text(&file)).collect::<Vec<_>>());
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/symbols/norm_cpp.txt");
    if std::env::var_os("NORM_BLESS").is_some() {
        let lines: String = declared.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&record, lines).expect("the record can be written");
    }
    let record = std::fs::read_to_string(&record).expect("the record can be read");
    let recorded: BTreeSet<String> = record.lines().map(str::to_owned).collect();
    assert!(recorded.len() > 500, "only {} declarations are recorded", recorded.len());
    let news: Vec<_> = declared.difference(&recorded).collect();
    let gone: Vec<_> = recorded.difference(&declared).collect();
    assert!(
        news.is_empty() && gone.is_empty(),
        "not in tests/symbols/norm_cpp.txt: {news:#?}\nonly there: {gone:#?}\n`NORM_BLESS=1 cargo test --release -p \
         libnorm --test cpp_interface` writes it"
    );
}

#[test]
fn public_declarations_are_found() {
    let header = "
        #define X(a) \\
            int hidden_in_a_macro;
        namespace norm {
        inline namespace MODE {
        template <typename T, int (*f)(T *)>
        class A : public B<T, f> {
            int hidden;
        public:
            A() = default;
            explicit A(int a = {}) : B(a), hidden(a) {}  // with a comment
            using type = int;
            template <typename U>
            static int get(const U &one,
                    int two = 2) { if (two) { return 1; } return 0; }
            struct C { int value = 1, list[2] = {1, 2}; };
        private:
            struct D { int hidden_too; };
        };
        enum class E : unsigned { one = 1, two = norm_two, };
        std::atomic<int> global {3};
        class forward;
        inline int A::declared_above(int) { return 1; }
        constexpr E operator|(E a, E b) { return a; }
        } }";
    let found = public(&[header.to_owned()]);
    let expected = [
        "norm: constexpr E operator|(E a, E b)",
        "norm: enum class E : unsigned",
        "norm: std::atomic<int> global",
        "norm: template <typename T, int (*f)(T *)> class A : public B<T, f>",
        "norm::A: A() = default",
        "norm::A: explicit A(int a = {})",
        "norm::A: struct C",
        "norm::A: template <typename U> static int get(const U &one, int two = 2)",
        "norm::A: using type = int",
        "norm::A::C: int value = 1, list[2] = {1, 2}",
        "norm::E: one = 1",
        "norm::E: two = norm_two",
    ];
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}
