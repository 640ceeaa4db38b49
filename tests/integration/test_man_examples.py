#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands in the manual pages run as they stand there, on the files that come with wattweir."""
import os
import re
import subprocess

import harness
from harness import PROGRAM, SOURCE

PAGES = SOURCE / "docs/man"


def examples(page):
    """The displayed lines (.Dl) of a page that call the program, without the page's escapes."""
    lines = re.findall(r"^\.Dl (.*)$", (PAGES / page).read_text(encoding="utf-8"), re.MULTILINE)
    lines = [line.replace("\\(dq", '"').replace("\\-", "-") for line in lines]
    return [line for line in lines if line.startswith("wattweir ")]


def check(page, least):
    found = examples(page)
    assert len(found) >= least, f"{page}: {found}"
    path = f"{PROGRAM.parent}:{os.environ['PATH']}"
    for line in found:
        result = subprocess.run(["sh", "-c", line], cwd=SOURCE, env={**os.environ, "PATH": path}, capture_output=True,
                                text=True, timeout=100, check=False)
        assert result.returncode == 0 and result.stdout and not result.stderr, f"{line}: {result}"


def test_wattweir():
    check("wattweir.1", 2)


def test_pfi():
    check("wattweir-pfi.1", 1)


def test_compare():
    check("wattweir-compare.1", 1)


def test_plan():
    check("wattweir-plan.1", 3)


def test_simulate():
    check("wattweir-simulate.1", 2)


def test_replay():
    check("wattweir-replay.1", 1)


def test_no_page_is_forgotten():
    assert {page.name for page in PAGES.iterdir() if examples(page.name)} == {
        "wattweir.1", "wattweir-pfi.1", "wattweir-compare.1", "wattweir-plan.1", "wattweir-simulate.1",
        "wattweir-replay.1"}


if __name__ == "__main__":
    harness.main(globals())
