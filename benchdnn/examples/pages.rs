//! Prints benchdnn's manual page or the completions of a shell, made from the options that the program
//! itself reads.
//!
//! ```sh
//! cargo run --release -p benchdnn --example pages -- man|bash|zsh|fish
//! ```

use benchdnn::{drivers, machine};
use clap::{Arg, Command};
use clap_complete::{Generator, Shell};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let commands = machine::commands(&drivers::all());
    let page = match std::env::args().nth(1).as_deref() {
        Some("man") => manual(&commands),
        Some("bash") => Ok(bash(&commands).into_bytes()),
        Some("zsh") => Ok(completions(Shell::Zsh, &commands)),
        Some("fish") => Ok(completions(Shell::Fish, &commands)),
        _ => {
            eprintln!("usage: pages man|bash|zsh|fish");
            return ExitCode::from(2);
        }
    };
    match page.and_then(|page| io::stdout().write_all(&page)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pages: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Completions for bash: the options of the driver that was named last before the cursor. clap's own would add a space
/// to an option that needs `=` and a value.
fn bash(commands: &[Command]) -> String {
    let drivers = commands[1..].iter().zip(drivers::all()).map(|(command, driver)| {
        format!("            --{}) options='{}' ;;\n", driver.name(), words(command))
    });
    format!(
        "_benchdnn() {{
    local word options='{}'
    COMPREPLY=()
    [[ $2 == -* ]] || return
    for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do
        case $word in
{}        esac
    done
    COMPREPLY=($(compgen -W \"$options\" -- \"$2\"))
    [[ ${{COMPREPLY[0]-}} != *= ]] || compopt -o nospace 2>/dev/null
}}
complete -F _benchdnn -o bashdefault -o default benchdnn
",
        words(&commands[0]),
        drivers.collect::<String>()
    )
}

/// The long options, with `=` if they need a value.
fn words(command: &Command) -> String {
    let word = |argument: &Arg| {
        let least = argument.get_num_args().map_or(0, |number| number.min_values());
        Some(format!("--{}{}", argument.get_long()?, if least > 0 { "=" } else { "" }))
    };
    command.get_arguments().filter_map(word).collect::<Vec<_>>().join(" ")
}

/// The options of every driver in one command, each name once.
fn completions(shell: Shell, commands: &[Command]) -> Vec<u8> {
    let mut all = Command::new("benchdnn").disable_help_flag(true).disable_version_flag(true);
    for argument in commands.iter().flat_map(Command::get_arguments) {
        if !all.get_arguments().any(|known| known.get_id() == argument.get_id()) {
            all = all.arg(argument.clone());
        }
    }
    all.set_bin_name("benchdnn");
    all.build();
    let mut page = Vec::new();
    shell.generate(&all, &mut page);
    page
}

/// The page: the program with its default driver, then what each other driver adds.
fn manual(commands: &[Command]) -> io::Result<Vec<u8>> {
    let program = &commands[0];
    let mut page = Vec::new();
    let version = concat!("libnorm ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(program.clone()).section("1").source(version).manual("libnorm");
    man.render_title(&mut page)?;
    let mut roff = Roff::new();
    roff.control("SH", ["NAME"]).text([roman("benchdnn - checks and times libnorm's primitives")]);
    roff.control("SH", ["SYNOPSIS"]).text([
        bold("benchdnn"),
        roman(" ["),
        italic("driver"),
        roman("] ["),
        italic("options"),
        roman("] "),
        italic("problem"),
        roman(" ... ["),
        italic("options"),
        roman("] "),
        italic("problem"),
        roman(" ..."),
    ]);
    roff.control("SH", ["DESCRIPTION"]).text([roman(about(program))]);
    for heading in headings(program) {
        roff.control("SH", [heading.to_uppercase().as_str()]);
        let under = |argument: &&Arg| argument.get_help_heading() == Some(&heading);
        program.get_arguments().filter(under).for_each(|argument| option(&mut roff, argument));
    }
    for (command, driver) in commands[1..].iter().zip(drivers::all()) {
        roff.control("SH", [format!("DRIVER --{}", driver.name()).as_str()]);
        roff.text([roman(format!("{}.", driver.about()))]);
        example(&mut roff, driver.manual());
        let known = |argument: &Arg| {
            program
                .get_arguments()
                .any(|other| other.get_id() == argument.get_id() && text(other) == text(argument))
        };
        let own = command.get_arguments().filter(|argument| !known(argument));
        own.for_each(|argument| option(&mut roff, argument));
    }
    roff.control("SH", ["ENVIRONMENT"]);
    for (name, effect) in [
        (
            "NORM_NUM_THREADS",
            "Threads per execution; by default the processors available to the process.",
        ),
        (
            "NORM_MAX_CPU_ISA",
            "The highest instruction set: portable, avx2, avx512, neon or a oneDNN name.",
        ),
        ("NORM_VERBOSE", "1 prints a line per execution; 2 also per creation."),
    ] {
        roff.control("TP", []).text([bold(name)]).text([roman(effect)]);
    }
    roff.to_writer(&mut page)?;
    Ok(page)
}

fn about(command: &Command) -> String {
    command.get_about().map(|about| about.to_string().replace('\n', " ")).unwrap_or_default()
}

fn text(argument: &Arg) -> String {
    argument.get_help().map(|help| help.to_string()).unwrap_or_default()
}

/// The headings of the options, in their order.
fn headings(command: &Command) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for heading in command.get_arguments().filter_map(Arg::get_help_heading) {
        if !found.iter().any(|known| known == heading) {
            found.push(heading.to_owned());
        }
    }
    found
}

/// An option with its help as a tagged paragraph.
fn option(roff: &mut Roff, argument: &Arg) {
    let mut head: Vec<Inline> = Vec::new();
    if let Some(letter) = argument.get_short() {
        head.extend([bold(format!("-{letter}")), roman(", ")]);
    }
    head.push(bold(format!("--{}", argument.get_long().unwrap_or_default())));
    if let Some(value) = argument.get_value_names().filter(|_| argument.get_action().takes_values())
    {
        head.extend([roman("="), italic(value[0].as_str())]);
    }
    roff.control("TP", []).text(head).text([roman(text(argument).replace('\n', " "))]);
}

/// Text whose lines stay as they are.
fn example(roff: &mut Roff, text: &str) {
    roff.control("PP", []).control("nf", []);
    for line in text.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
}
