#!/usr/bin/env python3
"""Counts the instructions in the loops of the AVX-512 kernels and compares them with the recorded counts.

    cargo build --release -p benchdnn
    scripts/loop_instructions.py            # compares
    scripts/loop_instructions.py --bless    # records
    scripts/loop_instructions.py --cycles icelake-server    # also predicts cycles; compares nothing

instructions.py does the same for the levels that callgrind can run. This script reads the disassembly of
libnorm.so, so it also runs on machines without AVX-512. In each kernel it finds the innermost loops that load
or store 64-byte vectors, as natural loops of the control flow graph. A loop's count is its instructions per 64
bytes that its fastest pointer advances, so unrolling does not change it; the number of spilled vectors
(accesses through the stack pointer) follows after a plus sign. Every block of a loop counts once, even if it is
rarely executed. How often the compiler repeats a loop for the values of a flag, and how it arranges the long loops
of rare types and strides, varies with changes elsewhere in the library. So the four shortest loops with different
counts are recorded and compared. A kernel fails if one of them exceeds its recorded count by more than the tolerance
or spills more. Look at the loop then, and record the new count if the change is intended.
The symbols of a build in this workspace contain the types that a kernel is compiled for. Counts depend on the
compiler; the recorded ones are from the toolchain in rust-toolchain.toml. --cycles predicts cycles per 64 bytes
with llvm-mca, which models the ports of a processor and assumes that every load hits the first-level cache.
Needs binutils and Python 3.9 or later; --cycles needs LLVM.
Exit status: 0 within the tolerance, 1 not, 2 something failed.
"""

import argparse
import csv
import operator
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "scripts" / "loop_instructions.csv"
# How far a loop may exceed its record: a share, and instructions per 64 bytes. One more per vector is at least 1.
SHARE, SLACK = 0.1, 0.25
# How many loops of a kernel are compared.
COMPARED = 4
VECTOR = 64
# A kernel's module, below src/ops/ or src/, and its type and const parameters.
NORMALIZATION = [
    ("forward", "F32, F32, false, 3"),
    ("forward", "F32, F32, true, 1"),
    ("forward", "Bf16, Bf16, true, 1"),
    ("forward", "F16, F16, true, 1"),
    ("forward", "F32, Bf16, false, 3"),
    ("forward", "Bf16, F32, true, 1"),
    ("forward", "F32, Byte, false, 3"),
    ("dense", "F32, F32, false, 3, 4"),
    ("dense", "F32, F32, true, 1, 4"),
    ("dense", "Bf16, Bf16, true, 1, 2"),
    ("dense", "F32, F32, true, 1, 8"),
    ("short", "F32, F32, false"),
    ("short", "F32, F32, true"),
    ("backward", "F32, F32, F32, 0, 7"),
    ("backward", "F32, F32, F32, 1, 5"),
    ("backward", "Bf16, Bf16, Bf16, 0, 7"),
    ("backward", "Bf16, Bf16, Bf16, 1, 5"),
]
KERNELS = [(f"layer_normalization::{module}", made_for) for module, made_for in NORMALIZATION]
KERNELS += [("softmax::kernel", made_for) for made_for in ("F32", "Bf16", "F16")]
ENTRY = re.compile(r"norm::(?:ops::)?([\w:]+)::entries::avx512::entry_avx512(?:::<(.*)>)?$")
MEMORY = re.compile(r"(-?0x[0-9a-f]+)?\((%\w+)?(?:,(%\w+)(?:,([1248]))?)?\)")


def run(*command, text=None):
    """The output of a program, given its input."""
    try:
        result = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        print(f"{command[0]} is not installed", file=sys.stderr)
        sys.exit(2)
    if result.returncode != 0:
        print(result.stderr, file=sys.stderr)
        sys.exit(2)
    return result.stdout


def entries(library):
    """Address and size of each AVX-512 entry, by module and arguments."""
    found = {}
    for line in run("nm", "-C", "-S", "--defined-only", library).splitlines():
        words = line.split(maxsplit=3)
        entry = ENTRY.match(re.sub(r"\[[0-9a-f]+\]", "", words[-1]))
        if entry:
            module, arguments = entry.groups(default="")
            # Keep the last part of a type's path, and a value without its type.
            names = (re.sub(r".*::|: \w+$", "", name) for name in arguments.split(", "))
            found[module, ", ".join(names)] = (int(words[0], 16), int(words[1], 16))
    return found


def disassemble(library, address, size):
    """A function's instructions: address, mnemonic, operands."""
    text = run(
        *("objdump", "-d", "--no-show-raw-insn", f"--start-address={address}"),
        *(f"--stop-address={address + size}", library),
    )
    instructions = []
    for line in text.splitlines():
        found = re.match(r"\s*([0-9a-f]+):\t(\S+)\s*(.*)", line)
        if found:
            operands = re.split(r"\s+[<#]", found[3])[0].strip()
            instructions.append((int(found[1], 16), found[2], operands))
    return instructions


def blocks_of(instructions):
    """Basic blocks: lists of instructions, and the indices of the blocks that may follow."""
    index = {address: i for i, (address, _, _) in enumerate(instructions)}
    jumps = {}
    for i, (_, verb, operands) in enumerate(instructions):
        if verb.startswith("j"):
            jumps[i] = index.get(int(operands, 16)) if re.fullmatch("[0-9a-f]+", operands) else None
    ends = {i for i, (_, verb, _) in enumerate(instructions) if verb.startswith(("ret", "ud2"))}
    heads = {0} | {target for target in jumps.values() if target is not None}
    heads |= {i + 1 for i in set(jumps) | ends if i + 1 < len(instructions)}
    order = sorted(heads)
    number = {head: n for n, head in enumerate(order)}
    blocks, follow = [], []
    for n, head in enumerate(order):
        stop = order[n + 1] if n + 1 < len(order) else len(instructions)
        blocks.append(instructions[head:stop])
        verb, target = instructions[stop - 1][1], jumps.get(stop - 1)
        after = [number[target]] if target is not None else []
        if stop < len(instructions) and verb != "jmp" and stop - 1 not in ends:
            after.append(n + 1)
        follow.append(after)
    return blocks, follow


def natural_loops(follow):
    """The blocks of each loop, by its first block. Loops with the same first block are one loop."""
    before = [[] for _ in follow]
    for block, after in enumerate(follow):
        for next_block in after:
            before[next_block].append(block)
    everything = frozenset(range(len(follow)))
    dominators = [everything] * len(follow)
    dominators[0] = frozenset([0])
    changed = True
    while changed:
        changed = False
        for block in range(1, len(follow)):
            known = [dominators[other] for other in before[block]]
            new = frozenset.intersection(*known) | {block} if known else everything
            if new != dominators[block]:
                dominators[block], changed = new, True
    loops = {}
    for block, after in enumerate(follow):
        for head in after:
            if head in dominators[block] and dominators[block] != everything:
                body, open_blocks = loops.setdefault(head, {head}), [block]
                while open_blocks:
                    one = open_blocks.pop()
                    if one not in body:
                        body.add(one)
                        open_blocks += before[one]
    return loops


def follow_registers(instructions):
    """The registers of each address in one iteration of a loop, as an original register and an offset from its
    value at the start of the iteration; and a function that gives how much a register grows per iteration."""
    held, addresses = {}, []

    def value(register):
        return held.get(register, (register, 0))

    def shifted(register, constant):
        place = value(register)
        return place and (place[0], place[1] + constant)

    for _, verb, operands in instructions:
        memory = MEMORY.search(operands)
        places = [name and name[1:] for name in memory.groups()[1:3]] if memory else [None, None]
        addresses.append([name and value(name) for name in places])
        target = re.search(r"%(r\w+|e\w\w)$", operands)
        if not target or verb.startswith(("cmp", "test", "j", "push", "bt")):
            continue
        new, constant = None, re.match(r"\$(-?0x[0-9a-f]+),", operands)
        amount = int(constant[1], 16) if constant else None
        if amount is not None and amount >= 1 << 63:
            amount -= 1 << 64
        if verb.startswith("add") and constant:
            new = shifted(target[1], amount)
        elif verb.startswith("sub") and constant:
            new = shifted(target[1], -amount)
        elif verb.startswith(("inc", "dec")):
            new = shifted(target[1], 1 if verb.startswith("inc") else -1)
        elif verb.startswith("lea") and memory and places[0] and not places[1]:
            new = shifted(places[0], int(memory[1] or "0", 16))
        elif verb == "mov" and re.fullmatch(r"%r\w+,%r\w+", operands):
            new = value(operands[1:].split(",")[0])
        held[target[1]] = new
    grown = {name: place[1] for name, place in held.items() if place and place[0] == name}
    return addresses, lambda name: grown.get(name, None if name in held else 0)


def measure(instructions):
    """A loop's instructions per vector that it advances, and its spills; None if it handles no vectors."""
    addresses, growth = follow_registers(instructions)
    advance, spills = 0, 0
    for (_, verb, operands), (base, index) in zip(instructions, addresses):
        memory = MEMORY.search(operands)
        if not memory or not verb.startswith("v") or not re.search("%[xyz]mm", operands):
            continue
        if ("rsp", 0) in (base, index):
            spills += 1
            continue
        parts = [(base, memory[2], 1), (index, memory[3], int(memory[4] or 1))]
        moves = [
            growth(place[0]) if place else None for place, register, _ in parts if register
        ]
        if None not in moves:
            factors = [factor for _, register, factor in parts if register]
            advance = max(advance, abs(sum(map(operator.mul, moves, factors))))
    if advance < VECTOR or not any("%zmm" in operands for _, _, operands in instructions):
        return None
    return len(instructions) * VECTOR / advance, spills


def vector_loops(library, address, size):
    """A kernel's loops over vectors, shortest first: instructions per vector, spills, the instructions."""
    blocks, follow = blocks_of(disassemble(library, address, size))
    loops, measured = natural_loops(follow), []
    for head, body in loops.items():
        if not any(other in body for other in loops if other != head):
            instructions = [line for block in sorted(body) for line in blocks[block]]
            found = measure(instructions)
            if found:
                measured.append((*found, instructions))
    return sorted(measured)


def cycles(processor, per_vector, instructions):
    """The cycles per vector that llvm-mca predicts for a loop."""
    lines = ["head:"]
    for _, verb, operands in instructions:
        lines.append(f"{verb} {'head' if verb.startswith('j') else operands}")
    times = 200
    command = ("llvm-mca", f"-mcpu={processor}", f"-iterations={times}")
    report = run(*command, text="\n".join(lines) + "\n")
    total = int(re.search(r"Total Cycles:\s+(\d+)", report)[1])
    return total / times / (len(instructions) / per_vector)


def compared(loops):
    """The loops of a kernel that are compared, the shortest with different counts."""
    different = {f"{value:.2f}": (value, spills) for value, spills in reversed(loops)}
    return sorted(different.values())[:COMPARED]


def shown(loops):
    """`7.25` for a loop, `7.25+2` for one with two spills."""
    return " ".join(f"{value:.2f}" + (f"+{spills}" if spills else "") for value, spills in loops)


def recorded():
    """The recorded loops of each kernel."""
    with RECORD.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    record = {}
    for *kernel, loops in rows:
        pairs = (loop.partition("+") for loop in loops.split())
        record[tuple(kernel)] = [(float(value), int(spills or 0)) for value, _, spills in pairs]
    return record


def verdict(loops, known):
    """What is wrong with the compared loops of a kernel; empty if nothing is."""
    if not known:
        return "not recorded"
    for (now, spills), (then, spilled) in zip(loops, known):
        if now > then * (1 + SHARE) + SLACK:
            return f"{now - then:.2f} instructions more in a loop, recorded {shown(known)}"
        if spills > spilled:
            return f"{spills - spilled} spills more in a loop, recorded {shown(known)}"
    return ""


def main():
    """Reads the options, counts, and compares or records."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--library", default=ROOT / "target" / "release" / "deps" / "libnorm.so")
    task = parser.add_mutually_exclusive_group()
    task.add_argument("--bless", action="store_true", help="record the counts")
    task.add_argument(
        "--cycles", metavar="CPU", help="print predicted cycles per 64 bytes for a processor that llvm-mca knows"
    )
    arguments = parser.parse_args()
    places, counted = entries(arguments.library), {}
    for kernel in KERNELS:
        if kernel not in places:
            print(f"{' '.join(kernel)}: not in {arguments.library}", file=sys.stderr)
            return 2
        loops = vector_loops(arguments.library, *places[kernel])
        if not loops:
            print(f"{' '.join(kernel)}: no loop over vectors was found", file=sys.stderr)
            return 2
        counted[kernel] = [(value, spills) for value, spills, _ in loops]
        if arguments.cycles:
            print(f"{' '.join(kernel)}: instructions and cycles per 64 bytes")
            for value, spills, instructions in loops:
                predicted = cycles(arguments.cycles, value, instructions)
                print(f"    {shown([(value, spills)]):8} {predicted:.2f}")
    if arguments.cycles:
        return 0
    if arguments.bless:
        with RECORD.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            columns = "instructions per 64 bytes + spills of the shortest loops"
            writer.writerow(["kernel", "made for", columns])
            for kernel, loops in counted.items():
                writer.writerow([*kernel, shown(compared(loops))])
        return 0
    record, wrong = recorded(), 0
    for kernel, loops in counted.items():
        said = verdict(compared(loops), record.get(kernel))
        wrong += bool(said)
        print(f"{' '.join(kernel):55} {said or 'ok'}: {shown(loops)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
