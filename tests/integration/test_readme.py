#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A person who knows only the README or docs/sweep-format.md: every command in them runs, on the files that they show."""
import os
import re
import shutil
import subprocess
import tempfile
import textwrap
from pathlib import Path
from xml.dom import minidom

import harness
from harness import PROGRAM, SOURCE

FORMAT = (SOURCE / "docs/sweep-format.md").read_text(encoding="utf-8")
README = (SOURCE / "README.md").read_text(encoding="utf-8")


def blocks(language, page=README):
    """(rest of the opening line, text) of each fenced block in this language."""
    for indent, name, text in re.findall(rf"^( *)```{language}\b([^\n]*)\n(.*?)^ *```$", page, re.MULTILINE | re.DOTALL):
        yield name.strip(), textwrap.dedent(text) if indent else text


def commands():
    return [line for _, text in blocks("sh") for line in text.splitlines() if line.strip()]


def as_a_reader(folder):
    """The files of the README, and the program where the README says that it is."""
    for language in ("csv", "yaml"):
        for name, text in blocks(language):
            (folder / name).write_text(text, encoding="utf-8")
    (folder / "build/src/cli").mkdir(parents=True)
    (folder / "build/src/cli/wattweir").symlink_to(PROGRAM)
    for name in ("examples", "scenarios"):
        (folder / name).symlink_to(SOURCE / name)


def run_all(lines):
    """Every command must end well, with something to read and no complaint."""
    with tempfile.TemporaryDirectory() as name:
        as_a_reader(Path(name))
        for line in lines:
            if "--plot" in line and not shutil.which("gnuplot"):
                continue
            result = subprocess.run(["sh", "-c", line], cwd=name, capture_output=True, text=True, timeout=100, check=False)
            assert result.returncode == 0 and result.stdout, f"{line}: {result}"
            assert not result.stderr or harness.drawn(line, result.stderr), f"{line}: {result}"


def test_commands_of_wattweir():
    lines = [line for line in commands() if line.startswith("build/src/cli/wattweir ")]
    assert len(lines) > 5
    run_all(lines)


def test_make_run():
    printed = subprocess.run(["make", "-n", "run"], cwd=SOURCE, capture_output=True, text=True, check=True, timeout=60).stdout
    lines = [line for line in printed.splitlines() if line.startswith("build/src/cli/wattweir ")]
    assert lines == ["build/src/cli/wattweir simulate scenarios/demo.yaml"], printed
    run_all(lines)


def test_make_targets_exist():
    lines = [line for line in commands() if line.startswith("make ")]
    assert len(lines) >= 3
    for line in lines:
        subprocess.run(line.replace("make ", "make -n ", 1), shell=True, cwd=SOURCE, stdout=subprocess.DEVNULL, check=True,
                       timeout=60)


def test_no_other_commands():
    for line in commands():
        assert line.startswith(("make ", "build/src/cli/wattweir ")), line


def test_commands_of_the_sweep_format():
    with tempfile.TemporaryDirectory() as folder:
        for name, text in blocks("csv", FORMAT):
            (Path(folder) / name).write_text(text, encoding="utf-8")
        path = f"{PROGRAM.parent}:{os.environ['PATH']}"
        for _, script in blocks("sh", FORMAT):
            result = subprocess.run(["sh", "-ec", script], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True,
                                    text=True, timeout=100, check=False)
            assert result.returncode == 0 and result.stdout and not result.stderr, f"{script}: {result}"
        made = harness.good_json("pfi", Path(folder) / "power.csv", "--map",
                                 "throughput=1/step_s,power=power_w,cap=limit,group=model,rep=run")["groups"]
    assert [(group["group"], group["status"]) for group in made] == [("llama", "ok")] and made[0]["pfi_ls_lo"], made
    harness.near(made[0]["p0_w"], 640, 0.2)


def test_links():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (SOURCE / target).is_file(), f"{target} is not there"
    for name in re.findall(r"!\[[^\]]*\]\(([^)]+\.svg)\)", README):
        minidom.parse(str(SOURCE / name))


def test_exit_codes_and_words_of_the_tables():
    pfi, compare = harness.good("pfi", harness.SAMPLE), harness.good("compare", harness.SAMPLE, "--cut=30")
    for word in ("fit range", "P0", "T0", "PFI_ls", "90 % range", "PFI_30", "deepest", "r2", "status"):
        assert word in pfi and word in README, word
    for word in ("equal", "uniform", "linear", "propor.", "curve", "(wattweir)", "oracle", "recovered", "shrink"):
        assert word in compare and word in README, word
    plan = harness.good("plan", harness.SAMPLE, "--cluster=examples/cluster.yaml", "--cut=30")
    for word in ("GPUs", "cap", "cut", "throughput", "floor", "why", "limit", "fixed", "free", "one watt more"):
        assert word in plan and word in README, word
    simulate = harness.good("simulate", "scenarios/demo.yaml")
    for word in ("cut begins", "at the target", "left unused", "afterwards", "floors", "their excess told", "moved", "floor",
                 "a watt is worth as much here as elsewhere", "as deep as was measured for its job"):
        assert word in simulate and word in README, word


if __name__ == "__main__":
    harness.main(globals())
