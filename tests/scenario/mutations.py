#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mutations.py ROOT [NAME...]: the fault schedules find the mistakes they are there for.

Each mutation replaces one exact text in a copy of the tree, compiles it with the fault schedules and passes only when a
schedule is found in which (a) or (b) is broken, within the first SCHEDULES of them or as many as it says itself. TAP on stdout. $CC compiles, cc where it is not set.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SCHEDULES = 10000
BATCH = 500
FLAGS = ["-std=gnu17", "-O2", "-D_GNU_SOURCE", "-ffp-contract=off", "-w", "-Iinclude", "-Isrc"]
SOURCES = ["src/base/*.c", "src/core/*.c", "src/msg/*.c", "src/control/*.c", "src/node/*.c", "src/sim/*.c",
           "src/wire/*.c", "src/files/journal.c", "src/cli/world*.c", "tests/scenario/fault_schedules.c",
           "tests/scenario/schedule.c"]

MUTATIONS = [
    ("read-back dropped: watts are free once a lower cap is sent", "src/control/charges.c",
     "gpu->charge_w = has_come_down(c, node, gpu) ? w : most_known(gpu->charge_w, w);",
     "gpu->charge_w = isnan(gpu->cap_w) ? gpu->charge_w : gpu->cap_w;"),
    ("seq check dropped: a node obeys older commands", "src/node/accept.c",
     "if (c->fence.epoch == node->seen.epoch && c->fence.seq <= node->seen.seq)\n\t\treturn WW_ACK_OLD;",
     ""),
    ("fallback charge dropped: a silent node keeps its charge", "src/control/charges.c",
     "bool booted = may_have_booted(c, node);",
     "bool booted = false;"),
    ("epoch check dropped: a node compares seq alone", "src/node/accept.c",
     "if (c->fence.epoch < node->seen.epoch)\n\t\treturn WW_ACK_OLD;\n"
     "\tif (c->fence.epoch == node->seen.epoch && c->fence.seq <= node->seen.seq)",
     "if (c->fence.seq <= node->seen.seq)"),
    ("own-epoch rule dropped: a new leader believes any message", "src/control/heard.c",
     "if (from->seen.epoch != c->leader.epoch)\n\t\treturn disbelieve(c, node);",
     ""),
    ("commands on their way are not charged", "src/control/charges.c",
     "\t\t\ttop = most_known(top, o->top_w[i]);",
     "\t\t\t;"),
    ("raises are sent before they are stored", "src/control/orders.c",
     "= is_above_stored(c, node, command);",
     "= false && is_above_stored(c, node, command);"),
    ("what nodes report is not stored", "src/control/control.c",
     "if (c->gpus[g].decided_w > c->gpus[g].stored_w)\n\t\t\treturn true;",
     ""),
    ("a new leader goes by the clock of the one before", "src/control/charges.c",
     "return !node->believed && !greets(c);",
     "return false && !node->believed && !greets(c);"),
    ("a node put back is believed at once", "src/control/heard.c",
     "if (from->seen.seq < node->since_seq)\n\t\treturn disbelieve(c, node);",
     "", 20000),
    ("frozen raises are sent", "src/control/orders.c",
     "if (c->mode == WW_MODE_FREEZE && !is_short(c, node))\n\t\treturn no_higher(c, gpu, level_w);",
     ""),
    ("disengaged, protection is let go as well", "src/control/timeline.c",
     "return c->mode == WW_MODE_DISENGAGE && e->told.cls == WW_CLASS_CONTRACT;",
     "return c->mode == WW_MODE_DISENGAGE;"),
]


def compile_one(tree, source):
    """The object of a source; raises with the compiler's words where it cannot be compiled."""
    target = tree / (source.replace("/", "_") + ".o")
    done = subprocess.run([os.environ.get("CC", "cc").split()[0], *FLAGS, "-c", source, "-o", target], cwd=tree,
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{source} cannot be compiled: {done.stderr.strip()}")
    return target


def link(tree, objects, name):
    subprocess.run([os.environ.get("CC", "cc").split()[0], "-o", tree / name, *objects, "-lm"], check=True)
    return tree / name


def mutate(tree, mutation):
    """The program with the mutation, or the reason why there is none; the tree is as before."""
    name, path, old, new = mutation[:4]
    text = (tree / path).read_text()
    if text.count(old) != 1:
        return None, f"its text occurs {text.count(old)} times in {path}: update mutations.py"
    objects = {p.name: p for p in tree.glob("*.o")}
    kept = (tree / (path.replace("/", "_") + ".o")).read_bytes()
    try:
        (tree / path).write_text(text.replace(old, new))
        compile_one(tree, path)
        return link(tree, objects.values(), "mutant"), None
    except RuntimeError as error:
        return None, str(error)
    finally:
        (tree / path).write_text(text)
        (tree / (path.replace("/", "_") + ".o")).write_bytes(kept)


def first_breach(program, count):
    """The line of the first breach within the first `count` schedules, None where there is none."""
    for seed in range(1, count, BATCH):
        done = subprocess.run([program, "--seed", str(seed), "--count", str(BATCH), "--jobs", str(os.cpu_count() or 1)],
                              capture_output=True, text=True, check=False)
        found = re.search(r"^first breach: (.*)$", done.stdout, re.MULTILINE)
        if found:
            return found.group(1)
        if done.returncode:
            return None
    return None


def main():
    root = Path(sys.argv[1])
    wanted = [m for m in MUTATIONS if not sys.argv[2:] or any(m[0].startswith(name) for name in sys.argv[2:])]
    failed = 0
    print(f"1..{len(wanted) + 1}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory)
        for part in ("src", "include", "tests/scenario"):
            shutil.copytree(root / part, tree / part)
        sources = [str(p.relative_to(tree)) for pattern in SOURCES for p in sorted(tree.glob(pattern))]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(lambda source: compile_one(tree, source), sources))
        breach = first_breach(link(tree, objects, "sound"), BATCH)
        failed += breach is not None
        print(f"{'not ok' if breach else 'ok'} 1 - nothing mutated, nothing broken" + (f" # {breach}" if breach else ""))
        for number, mutation in enumerate(wanted, 2):
            program, reason = mutate(tree, mutation)
            count = mutation[4] if len(mutation) > 4 else SCHEDULES
            breach = first_breach(program, count) if program else None
            failed += breach is None
            print(f"{'ok' if breach else 'not ok'} {number} - {mutation[0]}", flush=True)
            print(f"# {breach or reason or f'no breach in {count} schedules'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
