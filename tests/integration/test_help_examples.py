#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every --help ends in an example, and every example runs."""
import os
import subprocess

import harness
from harness import PROGRAM, SOURCE, good


def commands():
    """The commands that `wattweir --help` lists."""
    text = good("--help")
    listed = text[text.index("Commands:\n"):].splitlines()[1:]
    return [line.split()[0] for line in listed[:listed.index("")]]


def examples(text):
    """The indented lines below "Example:"."""
    lines = text[text.index("Example:\n"):].splitlines()[1:]
    return [line.strip() for line in lines if line.startswith("  ")]


def check(text):
    found = examples(text)
    assert found, text
    path = f"{PROGRAM.parent}:{os.environ['PATH']}"
    for line in found:
        assert line.startswith("wattweir "), line
        result = subprocess.run(["sh", "-c", line], cwd=SOURCE, env={**os.environ, "PATH": path}, capture_output=True,
                                text=True, timeout=100, check=False)
        assert result.returncode == 0 and result.stdout and not result.stderr, f"{line}: {result}"


def test_program():
    check(good("--help"))


def test_commands():
    names = commands()
    assert "pfi" in names and "compare" in names, names
    for name in names:
        check(good("help", name))


if __name__ == "__main__":
    harness.main(globals())
