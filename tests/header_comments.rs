//! Every public declaration of `include/` has a comment: one directly above it, or above the first of a group, which a
//! blank line ends.

mod source;

use source::{code, files, text, without_directives};

/// What a brace opens.
#[derive(Clone, Copy, PartialEq)]
enum Scope {
    /// A namespace or `extern "C"`.
    Namespace,
    /// A class or struct, and whether its current part is public.
    Class { public: bool },
    /// An enumeration or a C struct. After its brace comes its name, if any, and a semicolon.
    Plain,
    /// A function's body, an initial value, or what is not public.
    Other,
}

struct Line {
    /// Without strings, comments and preprocessor directives.
    code: String,
    is_comment: bool,
    /// Code with a comment beside it.
    has_comment: bool,
}

fn lines(header: &str) -> Vec<Line> {
    let all = code(header);
    let code = without_directives(&all);
    let line = |((code, all), line): ((&str, &str), &str)| {
        let blank = all.trim().is_empty();
        Line {
            code: code.to_string(),
            is_comment: blank && !line.trim().is_empty(),
            has_comment: !blank && line.contains("//"),
        }
    };
    code.lines().zip(all.lines()).zip(header.lines()).map(line).collect()
}

/// Stands for the braces of [`Scope::Plain`].
const TAIL: &str = "{}";

/// Whether a declaration needs no comment: it declares nothing of its own, the language would provide it, or it is what
/// every C++ primitive has, which norm.hpp describes once.
fn is_exempt(statement: &str) -> bool {
    [
        TAIL,
        "static_assert",
        "friend ",
        "namespace ",
        "inline namespace ",
        "extern",
        "class primitive_desc : ",
    ]
    .iter()
    .any(|start| statement.starts_with(start))
        || ["= default", "= delete", "(const primitive_desc &problem) : primitive(problem)"]
            .iter()
            .any(|end| statement.ends_with(end))
        || is_forward(statement)
        || statement.is_empty()
}

/// `class name` and no more, or the name of a pointer to such a thing.
fn is_forward(statement: &str) -> bool {
    let words: Vec<&str> = statement.split_whitespace().collect();
    matches!(
        words[..],
        ["class" | "struct", _]
            | ["typedef", "struct", _, _]
            | ["typedef", "const", "struct", _, _]
    )
}

/// The declarations that lack a comment: line and text.
fn uncommented(header: &str) -> Vec<(usize, String)> {
    let lines = lines(header);
    let mut found = Vec::new();
    let mut scopes = vec![(Scope::Namespace, false)];
    let (mut statement, mut start, mut depth) = (String::new(), 0, 0);
    for (number, line) in lines.iter().enumerate() {
        for letter in line.code.chars().chain(['\n']) {
            if statement.trim().is_empty() {
                start = number;
            }
            depth += i32::from(letter == '(') - i32::from(letter == ')');
            match letter {
                '{' | ';' if depth == 0 => {
                    let declared = statement.trim().to_string();
                    statement.clear();
                    let (scope, covered) = scopes.last_mut().expect("the file");
                    let open = matches!(scope, Scope::Namespace | Scope::Class { public: true });
                    if open && !is_exempt(&declared) {
                        let above = start.checked_sub(1).map(|above| &lines[above]);
                        let is_blank =
                            |line: &Line| line.code.trim().is_empty() && !line.is_comment;
                        *covered &=
                            !above.is_none_or(is_blank) && !declared.starts_with("NORM_API");
                        *covered |= above.is_some_and(|line| line.is_comment);
                        if !*covered && !lines[start].has_comment {
                            found.push((start + 1, declared.clone()));
                        }
                    }
                    if letter == '{' {
                        scopes.push((opened(&declared, open), false));
                    }
                }
                '}' if depth == 0 => {
                    let ended = scopes.pop().expect("what the brace ends").0;
                    statement.clear();
                    if ended == Scope::Plain {
                        statement.push_str(TAIL);
                    }
                }
                ':' if is_label(statement.trim()) => {
                    let public = statement.trim() == "public";
                    statement.clear();
                    let (scope, covered) = scopes.last_mut().expect("the file");
                    (*scope, *covered) = (Scope::Class { public }, false);
                }
                _ => statement.push(letter),
            }
        }
    }
    assert_eq!(scopes.len(), 1, "braces");
    found
}

fn is_label(statement: &str) -> bool {
    ["public", "protected", "private"].contains(&statement)
}

/// What the brace after a statement opens.
fn opened(statement: &str, inside_public: bool) -> Scope {
    let words: Vec<&str> = statement.split_whitespace().collect();
    let is = |word: &str| words.contains(&word);
    match () {
        () if is("namespace") || is("extern") => Scope::Namespace,
        () if is("enum") || is("typedef") => Scope::Plain,
        // A template's parameters may have parentheses, too.
        () if statement.ends_with(')')
            || statement.contains(") ") && !is("class")
            || !inside_public =>
        {
            Scope::Other
        }
        () if is("class") => Scope::Class { public: false },
        () if is("struct") => Scope::Class { public: true },
        () => Scope::Other,
    }
}

#[test]
fn every_declaration_has_a_comment() {
    let mut missing = String::new();
    for header in files(&["h", "hpp"]).iter().filter(|file| file.starts_with("include")) {
        for (line, declaration) in uncommented(&text(header)) {
            let first = declaration.lines().next().unwrap_or_default();
            missing += &format!("{}:{line}: {first}\n", header.display());
        }
    }
    assert!(missing.is_empty(), "declarations without a comment:\n{missing}");
}

#[test]
fn the_search_finds_what_lacks_a_comment() {
    let header = "
        namespace norm {
        // One.
        struct A {
            A() = default;
            // Two,
            int first() { return 1; }
            int second();

            int third();
            int value; // A comment beside.
        private:
            int hidden;
        public:
            int fourth();
        };
        /* Three. */
        NORM_API int f(int a = 1);
        int g();
        NORM_API int second_c_function();

        template <typename T>
        int h();
        }";
    let found: Vec<String> = uncommented(header).into_iter().map(|(_, text)| text).collect();
    assert_eq!(
        found,
        [
            "int third()",
            "int fourth()",
            "NORM_API int second_c_function()",
            "template <typename T>\n        int h()"
        ]
    );
}
