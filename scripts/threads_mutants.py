#!/usr/bin/env python3
"""Checks that the models of tests/model catch known mistakes in src/threads.

    scripts/threads_mutants.py

Each mutant weakens one thing on which the correctness of the job board depends: an atomic ordering, a check, a
count. The script applies one mutant at a time to a copy of the tree in target/ and runs the models there. A
mutant that passes every model is printed as MISSED. Needs cargo; takes some minutes.
Exit status: 0 every mutant was caught, 1 one was missed or the models fail without a mutant.
"""

import argparse
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
    ("half of a job's body is stored", "slot.rs", "zip(body.words())", "zip(body.words()).take(1)"),
    ("a job is read without order", "slot.rs",
     "Job(self.job.load(Ordering::Acquire))", "Job(self.job.load(Ordering::Relaxed))"),
    ("a share of a later job is claimed", "share.rs",
     "blocks.is_empty() || self.generation() != generation", "blocks.is_empty()"),
    ("a claim ignores a concurrent claim", "slot.rs",
     "line.compare_exchange_weak(seen, rest.0, relaxed, relaxed).is_err()",
     "{ line.store(rest.0, relaxed); seen == u64::MAX }"),
    ("the blocks left in other shares are not claimed", "slot.rs",
     "for place in own..own + count", "for place in own..own + 1"),
    ("a worker takes part without a seat", "slot.rs", "if !has_seat {", "if false {"),
    ("a thread is counted once per share", "slot.rs", "self.count(done, !ran)", "self.count(done, true)"),
    ("finished blocks are counted without order", "slot.rs",
     "self.progress.fetch_add(change, Ordering::Release)", "self.progress.fetch_add(change, Ordering::Relaxed)"),
    ("the count of finished blocks is read without order", "slot.rs",
     "            let progress = Progress(self.progress.load(Ordering::Acquire))",
     "            let progress = Progress(self.progress.load(Ordering::Relaxed))"),
    ("the caller falls asleep without saying so", "slot.rs",
     "self.progress.fetch_or(flag, Ordering::Acquire)", "self.progress.load(Ordering::Acquire)"),
    ("the last block does not wait for the caller to sleep", "slot.rs", "            drop(self.lock());\n", ""),
    ("a slot is handed out twice", "slot.rs", "!self.taken.swap(true, Ordering::Acquire)",
     "{ self.taken.store(true, Ordering::Relaxed); true }"),
    ("a slot is returned without order", "slot.rs",
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
    """Whether the models of the copy pass."""
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
    """Runs the models on the unchanged copy, then with each mutant."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
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
            sys.exit(f"{file}: {text!r} occurs {original.count(text)} times")
        path.write_text(original.replace(text, replacement))
        caught = not models()
        path.write_text(original)
        print(f"{'caught' if caught else 'MISSED':8}{name}", flush=True)
        missed += not caught
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
