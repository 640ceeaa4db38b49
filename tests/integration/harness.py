# SPDX-License-Identifier: Apache-2.0
"""What the whole-program tests share: running wattweir, and cases printed as TAP.

A test file defines functions test_* that raise AssertionError or Skip, and ends with harness.main(). It gets the path of
wattweir as its argument, the source root in WATTWEIR_SOURCE and measured data, where there is any, in WATTWEIR_DATA.
"""
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from xml.dom import minidom

SOURCE = Path(os.environ.get("WATTWEIR_SOURCE", Path(__file__).resolve().parents[2]))
PROGRAM = Path(sys.argv[1] if len(sys.argv) > 1 else SOURCE / "build/src/cli/wattweir").resolve()
SAMPLE = "examples/sample-sweep.csv"
EMERALD = "emerald-ai-demo-may-2025/dvfs_sweep.csv"
A40 = "zeus-nsdi23-trace/summary_power_a40.csv"
V100 = "zeus-nsdi23-trace/summary_power_v100.csv"
HOSTILE = ["a&#27;b", "5#3 50%7", "a\u061cb\u200bc", "\x1b[31mred\x1b[0m", "`touch pwned`",
           "'; system('touch pwned'); '", '"; system("touch pwned"); "', "a'b\"c\\",
           "@pwned", "$d0", "x' , system(\"touch pwned\")", "<script>alert(1)</script>&amp;", "\\", "'", "%s%n%d", "{/Bold x}",
           "EOD", "#", "группа 🙂 組", "a" * 400]


class Skip(Exception):
    """The case cannot run here."""


def run(*args, env=None, stdin=None, stdout=subprocess.PIPE, timeout=100):
    """wattweir with these arguments, from the source root; output as text."""
    return subprocess.run([PROGRAM, *map(str, args)], cwd=SOURCE, env={**os.environ, **(env or {})}, input=stdin,
                          stdout=stdout, stderr=subprocess.PIPE, text=True, errors="replace", timeout=timeout, check=False)


def good(*args, code=0, **how):
    """The output of a run that must end with this exit code and no word on stderr."""
    result = run(*args, **how)
    assert result.returncode == code, f"exit {result.returncode}, not {code}: {result.stderr}"
    assert result.stderr == "", f"unexpected on stderr: {result.stderr}"
    return result.stdout


def reject_constant(name):
    raise AssertionError(f"{name} in JSON")


def good_json(*args, **how):
    return json.loads(good(*args, "--json", **how), parse_constant=reject_constant)


def fails(code, *args, says="", **how):
    """A run that must fail with one line on stderr that names the program."""
    result = run(*args, **how)
    assert result.returncode == code, f"{args}: exit {result.returncode}, not {code}: {result.stderr!r}"
    lines = result.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("wattweir"), f"{args}: not one line: {result.stderr!r}"
    assert says in lines[0], f"{args}: {says!r} is not in {lines[0]!r}"
    return lines[0]


def near(actual, expected, tolerance):
    assert actual is not None and math.isfinite(actual), f"{actual} is no number, expected {expected}"
    assert abs(actual - expected) <= tolerance, f"{actual} is not within {tolerance} of {expected}"


def data(name):
    """A file of measured data, or Skip."""
    path = Path(os.environ.get("WATTWEIR_DATA", SOURCE / "../shared/data")) / name
    if not path.is_file():
        raise Skip(f"{name} is not here")
    return path


def drawn(line, stderr):
    """True when all that a command said on stderr is that it wrote its plot."""
    return "--plot" in line and len(stderr.splitlines()) == 1 and ": wrote " in stderr


def sweep_text(groups):
    """A sweep in wattweir's format: {group: [(cap, power, throughput), ...]}."""
    rows = ["group,cap_w,rep,power_w,throughput_tps"]
    for group, points in groups.items():
        name = '"' + group.replace('"', '""') + '"'
        rows += [f"{name},{cap},1,{power},{tps}" for cap, power, tps in points]
    return "\n".join(rows) + "\n"


def curve(caps=(700, 600, 500, 400, 300), loss=0.05, power=2.0, scale=1000.0):
    """A job that draws its cap and loses loss (d / 0.3)^power."""
    top = max(caps)
    return [(cap, cap, round(scale * (1 - loss * ((1 - cap / top) / 0.3) ** power), 6)) for cap in caps]


class Files:
    """A folder that goes away at the end, with the given files in it."""

    def __init__(self, **contents):
        self.contents = contents

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name)
        for name, text in self.contents.items():
            (path / f"{name}.csv").write_text(text, encoding="utf-8")
        return path

    def __exit__(self, *problem):
        self.folder.cleanup()


def flat(name="flat"):
    return {name: [(cap, 150, 100) for cap in (700, 500, 300)]}


def accepted(names):
    """The hostile names that the reader lets in; it may refuse control characters."""
    for name in names:
        with Files(sweep=sweep_text({name: curve()})) as folder:
            result = run("pfi", folder / "sweep.csv")
            assert result.returncode in (0, 1), result
            assert "\x1b" not in result.stdout + result.stderr
            if result.returncode == 0:
                yield name


def need_gnuplot():
    if not shutil.which("gnuplot"):
        raise Skip("gnuplot is not installed")


def plot(text, *args, command="pfi"):
    """The SVG of a sweep, parsed, and the folder's other files."""
    need_gnuplot()
    with Files(sweep=text) as folder:
        cwd = os.getcwd()
        os.chdir(folder)
        try:
            result = run(command, folder / "sweep.csv", "--plot", folder / "out.svg", *args)
            assert result.returncode == 0, result.stderr
            assert result.stderr == f"wattweir {command}: wrote {folder / 'out.svg'}\n", result.stderr
            left = sorted(path.name for path in folder.iterdir())
            return minidom.parse(str(folder / "out.svg")), left
        finally:
            os.chdir(cwd)


def texts(svg):
    def inner(node):
        return node.data if node.nodeType == node.TEXT_NODE else "".join(map(inner, node.childNodes))
    return [inner(node).strip() for node in svg.getElementsByTagName("text")]


def run_case(number, name, case):
    try:
        case()
        print(f"ok {number} - {name}")
        return True
    except Skip as reason:
        print(f"ok {number} - {name} # SKIP {reason}")
        return True
    except Exception:  # a case that breaks is a case that failed
        for line in traceback.format_exc().splitlines():
            print("#", line)
        print(f"not ok {number} - {name}")
        return False


def main(scope):
    """Runs every test_* of a module's globals()."""
    cases = [(name, case) for name, case in scope.items() if name.startswith("test_")]
    print(f"1..{len(cases)}", flush=True)
    results = [run_case(number, name, case) for number, (name, case) in enumerate(cases, 1)]
    sys.exit(0 if all(results) else 1)
