#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages in docs/ say what is so: the files, functions, tests and constants that they name are there, their links lead
somewhere, their commands run and print what stands below them. With --update behind the program's path those outputs are
written anew."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import harness
from harness import PROGRAM, SOURCE

DOCS = sorted((SOURCE / "docs").glob("*.md"))
PAGES = [*DOCS, SOURCE / "CONTRIBUTING.md"]
OPERATING = [SOURCE / "docs" / name for name in ("life-of-a-watt.md", "safety.md", "floors.md", "control.md")]
FILE = re.compile(r"[\w-][\w./-]*/|[\w-][\w./-]*\.(?:c|h|md|yaml|py|csv|svg)")
NOT_HERE = {"build/", "assert_near.h"}  # made by a build; found by an include path
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
UNITS = {"": 1, "s": 1e6, "min": 60e6, "h": 3600e6, "ms": 1, "W": 1, "%": 0.01}


def read(path):
    return path.read_text(encoding="utf-8")


def spans(page):
    """What stands in backquotes outside of fenced blocks."""
    return re.findall(r"`([^`\n]+)`", FENCE.sub("", read(page)))


def tree():
    """All sources as one text, and the names of the files in which things are named after them."""
    patterns = ("src/**/*.[ch]", "include/*.h", "tests/**/*.[ch]", "tests/**/*.py", "bench/*.c", "tools/*")
    files = [path for pattern in patterns for path in SOURCE.glob(pattern) if path.is_file()]
    return "\n".join(read(path) for path in files) + "\n".join(path.stem for path in files)


def is_defined(path, name):
    return path.is_file() and re.search(rf"^[a-z][^\n;=]*\b\*?{name}\((?:[^;{{]*)\)\s*\{{", read(path), re.MULTILINE)


def has_case(program, case):
    if program.endswith(".py"):
        return f"def {case}(" in read(SOURCE / "tests/integration" / program)
    return any(re.search(rf"cmocka_unit_test\w*\({case}\b", read(path)) for path in SOURCE.glob(f"tests/*/{program}.c"))


def exists(name):
    """A path from the root, from src/ or beside the page; a bare name may be anywhere in src/."""
    return any((base / name).exists() for base in (SOURCE, SOURCE / "src", SOURCE / "docs")) or any(
        SOURCE.glob("src/*/" + name))


def known_tests():
    names = {path.stem for path in SOURCE.glob("tests/*/*.c")} | {path.name for path in SOURCE.glob("tests/*/*.py")}
    names |= {"replay_" + path.stem for path in SOURCE.glob("tests/fuzz/fuzz_*.c")}
    for path in SOURCE.glob("tests/**/meson.build"):
        names |= set(re.findall(r"test\('(\w+)'", read(path)))
    return names


def test_functions_are_where_the_pages_say():
    found = 0
    for page in PAGES:
        for path, name in re.findall(r"^([\w/]+\.c):(\w+)$", "\n".join(spans(page)), re.MULTILINE):
            assert is_defined(SOURCE / "src" / path, name), f"{page.name}: src/{path} does not define {name}"
            found += 1
    assert found > 80, found


def test_tests_are_there():
    found = 0
    for page in PAGES:
        for program, case in re.findall(r"^(test_\w+(?:\.py)?):(\w+)$", "\n".join(spans(page)), re.MULTILINE):
            assert has_case(program, case), f"{page.name}: {program} has no case {case}"
            found += 1
    assert found > 60, found


def test_files_are_there():
    for page in [*OPERATING, SOURCE / "CONTRIBUTING.md", SOURCE / "docs/simulation.md"]:
        for name in spans(page):
            if name in NOT_HERE or "NAME" in name or not FILE.fullmatch(name):
                continue
            assert exists(name) or name in known_tests(), f"{page.name}: there is no {name}"


def test_names_are_in_the_sources():
    text, tests = tree(), known_tests()
    for page in OPERATING:
        for span in spans(page):
            for name in re.findall(r"(?<![\w./:-])[A-Za-z]\w*_\w+\b(?![\w./:])", span):
                assert name in tests or re.search(rf"\b{name}\b", text), f"{page.name}: nothing is called {name}"


def value_of(expression):
    """A C expression of numbers as a number."""
    plain = re.sub(r"/\*.*?\*/", "", expression).replace("WW_SECOND_US", "1000000").replace("WW_STEPS_MAX", "12")
    plain = re.sub(r"\b([\d.]+(?:e\d+)?)f\b", r"\1", plain)
    assert re.fullmatch(r"[\d.e+*/() -]+", plain.strip()), expression
    return eval(plain)  # pylint: disable=eval-used # only digits and operators are left


def test_constants_are_the_true_ones():
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) ?(\S*) \| `([\w/.]+)` \|", read(OPERATING[0]), re.MULTILINE)
    assert len(rows) > 25, rows
    for name, number, unit, path in rows:
        text = read(SOURCE / "src" / path).replace("\\\n", " ")
        found = re.search(rf"^#define {name}\s+([^\n]*)", text, re.MULTILINE)
        assert found, f"src/{path} defines no {name}"
        expected, actual = float(number) * UNITS[unit], value_of(found.group(1))
        assert abs(actual - expected) <= 1e-9 * expected, f"{name} is {found.group(1)}, the page says {number} {unit}"


def test_words_of_control_are_quoted_as_they_are():
    texts = re.findall(r'^\t\t"([^"]+)",$', read(SOURCE / "src/control/control.c"), re.MULTILINE)
    quoted = re.findall(r'^\| "([^"]+)" \|', read(OPERATING[0]), re.MULTILINE)
    assert len(quoted) > 3 and set(quoted) <= set(texts), set(quoted) - set(texts)


def test_every_reason_is_explained():
    texts = re.findall(r'^\t\t"([^"]+)",$', read(SOURCE / "src/control/control.c"), re.MULTILINE)
    rows = re.findall(r'^\| "([^"]+)" \| ([^|]+) \| ([^|]+) \|$', read(SOURCE / "docs/control.md"), re.MULTILINE)
    assert len(texts) > 10 and [row[0] for row in rows] == texts, set(texts) ^ {row[0] for row in rows}


def test_links():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", read(page)):
            assert (page.parent / target).is_file(), f"{page.name}: {target} is not there"


def test_pages_are_installed():
    listed = set(re.findall(r"'docs/([\w-]+\.md)'", read(SOURCE / "meson.build")))
    assert listed == {page.name for page in DOCS}, listed ^ {page.name for page in DOCS}


def run_script(folder, script):
    (folder / "build/src/cli").mkdir(parents=True, exist_ok=True)
    links = {"build/src/cli/wattweir": PROGRAM, "scenarios": SOURCE / "scenarios", "examples": SOURCE / "examples",
             "build/tests": PROGRAM.parents[2] / "tests"}
    for name, target in links.items():
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(target)
    result = subprocess.run(["sh", "-ec", script], cwd=folder, capture_output=True, text=True, timeout=110, check=False)
    assert result.returncode == 0 and result.stdout and not result.stderr, f"{script}: {result}"
    return result.stdout


def check_other_command(line):
    words = line.split()
    if words[0] == "make":
        subprocess.run(["make", "-n", *words[1:]], cwd=SOURCE, stdout=subprocess.DEVNULL, check=True, timeout=60)
        return
    assert words[:4] == ["meson", "test", "-C", "build"], line
    suites = {path.name for path in (SOURCE / "tests").iterdir()}
    rest = words[4:]
    for before, word in zip(["", *rest], rest):
        assert word == "--suite" or word in (suites if before == "--suite" else known_tests()), f"{line}: no {word}"


def outputs(page):
    """(script, text below it or None) of each sh block of the program."""
    blocks = list(FENCE.finditer(read(page)))
    for block, below in zip(blocks, [*blocks[1:], None]):
        if block.group(1) == "sh":
            yield block.group(2), below if below and below.group(1) == "text" else None


# How far a printed number may be from the shown one, by its column: (part of it, at least), so that a page need not follow
# each change of what decides them. What is free is a small difference of large numbers.
ROUGHLY = {"time": (0, 0), "sent": (0.1, 1), "free": (0.15, 100)}
WATTS = (0.15, 0)


def agree(shown, printed):
    """A table under its head, word by word."""
    columns, shown, printed = shown.splitlines()[0].split(), shown.split(), printed.split()
    assert len(shown) == len(printed), f"{len(printed)} words are printed, {len(shown)} shown: run this test with --update"
    for i, (a, b) in enumerate(zip(shown, printed)):
        part, least = ROUGHLY.get(columns[i % len(columns)], WATTS)
        try:
            same = abs(float(a) - float(b)) <= max(least, part * abs(float(a)))
        except ValueError:
            same = a == b
        assert same, f"{b} is printed, {a} is shown: read the page again and run this test with --update"


def test_what_agrees():
    """A command more is the same table; half as many again, a limit 20 % off and another time are not."""
    table = "time free sent large\n3600 5 20 500\n"
    for changed, fine in ((table, True), ("3600 90 22 560", True), ("3600 5 23 500", False), ("3600 5 20 600", False),
                          ("3601 5 20 500", False), ("3600 5 20 -", False)):
        try:
            agree(table, changed if changed == table else table.splitlines()[0] + "\n" + changed)
            assert fine, changed
        except AssertionError:
            assert not fine, changed


def test_commands():
    with tempfile.TemporaryDirectory() as name:
        for page in OPERATING:
            for script, below in outputs(page):
                if not script.startswith("build/"):
                    for line in script.splitlines():
                        check_other_command(line)
                    continue
                printed = run_script(Path(name), script)
                if below:
                    agree(below.group(2), printed)


def test_the_hour_is_as_told():
    """What life-of-a-watt.md says of its lines."""
    script = next(script for script, _ in outputs(OPERATING[0]) if "demo.yaml" in script)
    with tempfile.TemporaryDirectory() as name:
        lines = run_script(Path(name), script).splitlines()
    names = lines[0].split()
    at = {int(line.split()[0]): dict(zip(names, line.split())) for line in lines[1:]}
    at = {time: {name: float(v) for name, v in row.items() if v != "-"} for time, row in at.items()}
    assert at[3299]["free"] > 0 and at[3300]["large"] == at[3300]["lora-1"] == 700, at
    assert at[3594]["charge"] == 64 * 700 and at[3594]["free"] < -10000 and at[3594]["large"] < 400, at
    assert at[3596]["large"] < at[3594]["large"] and at[3596]["lora-1"] == at[3594]["lora-1"] and at[3596]["free"] < 0, at
    assert at[3597]["free"] >= 0 and abs(at[3597]["free"]) < 100, at
    assert at[3600]["power"] < at[3600]["budget"] and at[3599]["power"] < at[3600]["budget"], at
    assert at[3597]["lora-1"] > at[3596]["lora-1"], at
    assert at[3615]["gpus"] > at[3600]["gpus"] and abs(at[3615]["charge"] - at[3600]["charge"]) < 100, at
    assert at[7199]["free"] > 10000 and at[7209]["large"] < at[7299]["large"] < at[7399]["large"] == 700, at


def update():
    with tempfile.TemporaryDirectory() as name:
        for page in OPERATING:
            text = read(page)
            for script, below in outputs(page):
                if below:
                    text = text.replace(f"{script}```\n{text[below.start() - 1:below.start()]}{below.group(0)}",
                                        f"{script}```\n\n```text\n{run_script(Path(name), script)}```")
            page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if "--update" in sys.argv:
        os.chdir(SOURCE)
        update()
    else:
        harness.main(globals())
