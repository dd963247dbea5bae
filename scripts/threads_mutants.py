#!/usr/bin/env python3
"""Breaks the board of src/threads in known ways and asks the models of tests/model to notice.

Each line of MUTANTS weakens one thing that the code's order rests on. A mutant that every model passes is
printed as MISSED, and the script ends with 1. Run from anywhere; needs cargo, and takes some minutes."""
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COPY = ROOT / "target" / "threads-mutants"

# Name, file of src/threads, text, replacement.
MUTANTS = [
    ("a job is published without order", "slot.rs",
     "self.job.store(job.0, Ordering::Release)", "self.job.store(job.0, Ordering::Relaxed)"),
    ("a job is seen without order", "slot.rs",
     "Job(self.job.load(Ordering::Acquire))", "Job(self.job.load(Ordering::Relaxed))"),
    ("a share of a later job is claimed", "share.rs",
     "blocks.is_empty() || self.generation() != generation", "blocks.is_empty()"),
    ("a claim does not look who came first", "slot.rs",
     "line.compare_exchange_weak(seen, rest.0, relaxed, relaxed).is_err()",
     "{ line.store(rest.0, relaxed); seen == u64::MAX }"),
    ("what is left of other shares is left", "slot.rs", "for place in own..own + count", "for place in own..own + 1"),
    ("a worker takes part without a seat", "slot.rs", "if !has_seat {", "if false {"),
    ("a thread counts once for each share", "slot.rs", "self.count(done, !ran)", "self.count(done, true)"),
    ("blocks' ends are counted without order", "slot.rs",
     "self.progress.fetch_add(change, Ordering::Release)", "self.progress.fetch_add(change, Ordering::Relaxed)"),
    ("the count is read without order", "slot.rs",
     "            let progress = Progress(self.progress.load(Ordering::Acquire))",
     "            let progress = Progress(self.progress.load(Ordering::Relaxed))"),
    ("the caller falls asleep without saying so", "slot.rs",
     "self.progress.fetch_or(flag, Ordering::Acquire)", "self.progress.load(Ordering::Acquire)"),
    ("the last block does not wait for the caller to sleep", "slot.rs", "            drop(self.lock());\n", ""),
    ("a slot is given to two", "slot.rs", "!self.taken.swap(true, Ordering::Acquire)",
     "{ self.taken.store(true, Ordering::Relaxed); true }"),
    ("a slot is given back without order", "slot.rs",
     "self.taken.store(false, Ordering::Release)", "self.taken.store(false, Ordering::Relaxed)"),
    ("a generation is not counted", "slot.rs", "last.wrapping_add(1)", "last"),
    ("advancing the epoch publishes nothing", "event_count.rs",
     "fetch_add(1 << SLEEPER_BITS, Ordering::Release)", "fetch_add(1 << SLEEPER_BITS, Ordering::Relaxed)"),
    ("a wake does not wait for the sleeper to sleep", "event_count.rs",
     "        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));\n        for", "        for"),
    ("a sleeper is counted after it checks the epoch", "event_count.rs",
     "        self.state.fetch_add(1, Ordering::Relaxed);\n        while self.epoch() == seen {\n",
     "        while self.epoch() == seen {\n            self.state.fetch_add(1, Ordering::Relaxed);\n"),
    ("a worker sleeps on a later epoch than it looked at", "board.rs",
     "self.events.wait(seen)", "self.events.wait(self.events.epoch())"),
]


def models() -> bool:
    command = ["cargo", "test", "--release", "-j1", "--manifest-path", str(COPY / "Cargo.toml"),
               "-p", "threads-model"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    except subprocess.TimeoutExpired:
        return False
    if "error: could not compile" in done.stderr:
        sys.exit(done.stderr)
    return done.returncode == 0


def main() -> int:
    shutil.rmtree(COPY / "src", ignore_errors=True)
    for part in ["src/threads", "tests/model"]:
        shutil.copytree(ROOT / part, COPY / part, dirs_exist_ok=True)
    manifest = (ROOT / "Cargo.toml").read_text()
    manifest = manifest[manifest.index("[workspace.package]"):manifest.index("[package]\n")]
    (COPY / "Cargo.toml").write_text('[workspace]\nmembers = ["tests/model"]\nresolver = "3"\n\n' + manifest)
    shutil.copy(ROOT / "Cargo.lock", COPY)
    if not models():
        sys.exit("the models fail without a mutant")
    missed = 0
    for name, file, text, replacement in MUTANTS:
        path = COPY / "src/threads" / file
        original = path.read_text()
        if original.count(text) != 1:
            sys.exit(f"{file}: {text!r} is there {original.count(text)} times")
        path.write_text(original.replace(text, replacement))
        noticed = not models()
        path.write_text(original)
        print(f"{'noticed' if noticed else 'MISSED':8}{name}", flush=True)
        missed += not noticed
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
