#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that commands write: a run that fails leaves what was there, rights are kept, signals leave nothing half behind."""
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import harness
from harness import PROGRAM, SAMPLE, SOURCE, Files, Skip, fails, good, run
from test_simulate import DEMO, Folder, kinds, names, umask

BESIDE = SOURCE / "tools/beside"
OTHERS = (["pfi", SAMPLE], ["compare", SAMPLE, "--cut=30"], ["plan", SAMPLE, "--cut=30"])


def put_old(folder, *files):
    for name in files:
        (folder / name).write_text("old", encoding="utf-8")


def check_old(folder, *files):
    """They are as they were, and nothing is beside them but the scenario."""
    assert names(folder) == sorted((*files, "small.yaml")), names(folder)
    for name in files:
        assert (folder / name).read_text(encoding="utf-8") == "old", name


def full():
    if not os.path.exists("/dev/full"):
        raise Skip("no /dev/full")
    return open("/dev/full", "w", encoding="utf-8")


def closed_stdout(*args):
    return subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", PROGRAM, *args], cwd=SOURCE, stderr=subprocess.PIPE, text=True,
                          check=False, timeout=60)


# ---- All or nothing ---------------------------------------------------------------------------------------------------

def test_gnuplot_is_looked_for_before_the_runs():
    with Folder() as folder:
        put_old(folder, "q.csv", "q.svg")
        args = ("simulate", folder / "small.yaml", "--trace", folder / "q.csv", "--plot", folder / "q.svg")
        result = run(*args, env={"PATH": str(folder)})
        assert result.returncode == 1 and result.stdout == "" and "apt-get install gnuplot" in result.stderr, result
        assert len(result.stderr.splitlines()) == 1, result
        check_old(folder, "q.csv", "q.svg")


def test_a_picture_that_fails_spoils_the_run():
    harness.need_gnuplot()
    with Folder() as folder:
        put_old(folder, "q.csv", "q.svg")
        gnuplot = folder / "bin" / "gnuplot"
        gnuplot.parent.mkdir()
        gnuplot.write_text("#!/bin/sh\ngrep -q multiplot || exit 0\necho out of ink >&2\nexit 7\n", encoding="utf-8")
        gnuplot.chmod(0o755)
        for more in ((), ("--json",)):
            result = run("simulate", folder / "small.yaml", "--trace", folder / "q.csv", "--plot", folder / "q.svg", *more,
                         env={"PATH": f"{gnuplot.parent}:/bin:/usr/bin"})
            assert result.returncode == 1 and "out of ink" in result.stderr and result.stdout, result
        shutil.rmtree(gnuplot.parent)
        check_old(folder, "q.csv", "q.svg")


def test_a_report_that_is_not_out_spoils_the_run():
    """A full disk behind standard output, none at all, and a closed pipe."""
    with Folder() as folder:
        put_old(folder, "q.csv", "q.wj")
        args = ("simulate", folder / "small.yaml", "--trace", folder / "q.csv", "--journal", folder / "q.wj")
        for more in ((), ("--json",)):
            with full() as out:
                fails(1, *args, *more, stdout=out, says="cannot write the output")
            result = closed_stdout(*args, *more)
            assert result.returncode == 1 and len(result.stderr.splitlines()) == 1, result
            reader, writer = os.pipe()
            os.close(reader)
            fails(1, *args, *more, stdout=writer, says="cannot write the output")
            os.close(writer)
            check_old(folder, "q.csv", "q.wj")


def test_a_report_that_is_not_out_spoils_the_picture():
    harness.need_gnuplot()
    with Folder() as folder:
        put_old(folder, "o.svg")
        for args in (*OTHERS, ["simulate", folder / "small.yaml"]):
            for more in ((), ("--json",)):
                with full() as out:
                    fails(1, *args, *more, "--plot", folder / "o.svg", stdout=out, says="cannot write")
                result = closed_stdout(*args, *more, "--plot", folder / "o.svg")
                assert result.returncode == 1 and len(result.stderr.splitlines()) == 1, result
                check_old(folder, "o.svg")


def test_a_trace_that_is_not_out_is_told_once():
    with Folder() as folder:
        for option in ("--trace=-", "--journal=-"):
            with full() as out:
                fails(1, "simulate", folder / "small.yaml", option, stdout=out, says="No space left")
            result = closed_stdout("simulate", folder / "small.yaml", option)
            assert result.returncode == 1 and len(result.stderr.splitlines()) == 1, result


def test_closed_streams_are_not_written_into_files():
    """No file that is opened gets the number of a stream that is closed."""
    with Folder() as folder:
        good("simulate", folder / "small.yaml", "--trace", folder / "t")
        trace = (folder / "t").read_bytes()
        for closed in ("<&-", "2>&-", "<&- 2>&-"):
            subprocess.run(f"exec {PROGRAM} simulate {folder}/small.yaml --live --trace {folder}/t {closed}", shell=True,
                           cwd=SOURCE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=60)
            assert (folder / "t").read_bytes() == trace, closed


def test_a_place_for_the_picture_is_looked_for_before_the_runs():
    harness.need_gnuplot()
    with Folder() as folder:
        put_old(folder, "q.csv")
        fails(1, "simulate", folder / "small.yaml", "--trace", folder / "q.csv", "--plot", folder / "none/o.svg",
              says="none/o.svg")
        check_old(folder, "q.csv")


# ---- Standard output --------------------------------------------------------------------------------------------------

def test_a_trace_in_place_of_json():
    with Folder() as folder:
        for option, what in (("--trace", "trace"), ("--journal", "journal")):
            for path in ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
                told = fails(2, "simulate", folder / "small.yaml", option, path, "--json", says="--json")
                assert f"name a file for the {what}" in told, told
        good("simulate", folder / "small.yaml", "--json", "--trace=/dev/null")
        with open("/dev/null", "w", encoding="utf-8") as null:
            assert run("simulate", folder / "small.yaml", "--json", "--trace=/dev/null", stdout=null).returncode == 0


def test_other_names_of_standard_output():
    with Folder() as folder:
        path = folder / "small.yaml"
        trace = good("simulate", path, "--trace=-")
        assert trace.startswith("time_s") and len(trace.splitlines()) == 1201, trace[:100]
        for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            assert good("simulate", path, "--trace", name) == trace, name
        for name in ("/dev/stdout", folder / "out"):
            with open(folder / "out", "w", encoding="utf-8") as out:
                good("simulate", path, "--trace", name, stdout=out)
            assert (folder / "out").read_text(encoding="utf-8") == trace, name
        os.mkfifo(folder / "pipe")
        command = f"exec {PROGRAM} simulate {path} --trace {folder}/pipe > {folder}/pipe"
        with subprocess.Popen(command, shell=True, cwd=SOURCE) as process:
            assert (folder / "pipe").read_text(encoding="utf-8") == trace
            assert process.wait(60) == 0


def test_a_picture_is_not_standard_output():
    harness.need_gnuplot()
    with Folder() as folder:
        for args, code in [(args, 1) for args in OTHERS] + [(["simulate", folder / "small.yaml"], 2)]:
            with open(folder / "o.svg", "w", encoding="utf-8") as out:
                fails(code, *args, "--plot", folder / "o.svg", stdout=out, says="is standard output")
            assert names(folder) == ["o.svg", "small.yaml"], names(folder)


def as_nobody(*args):
    """A run for which rights count, also where root tests."""
    who = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        return subprocess.run([PROGRAM, *args], cwd=SOURCE, capture_output=True, text=True, check=False, timeout=60, **who)
    except PermissionError as problem:
        raise Skip("others may not look into the build") from problem


# ---- Rights -----------------------------------------------------------------------------------------------------------

def mode(path):
    return path.stat().st_mode & 0o7777


def test_rights_are_kept():
    with Folder() as folder:
        args = ["simulate", folder / "small.yaml", "--trace", folder / "t", "--journal", folder / "j"]
        if shutil.which("gnuplot"):
            args += ["--plot", folder / "o.svg"]
        files = args[3::2]
        assert run(*args).returncode == 0
        assert {mode(path) for path in files} == {0o666 & ~umask()}, [mode(path) for path in files]
        for rights in (0o600, 0o640, 0o666, 0o755):
            for path in files:
                path.chmod(rights)
            (folder / "link").unlink(missing_ok=True)
            (folder / "link").symlink_to("t")
            assert run(*args).returncode == 0
            good("simulate", folder / "small.yaml", "--trace", folder / "link")
            assert [mode(path) for path in files] == [rights] * len(files), [oct(mode(path)) for path in files]
        for other in OTHERS if shutil.which("gnuplot") else ():
            (folder / "o.svg").chmod(0o600)
            assert run(*other, "--plot", folder / "o.svg").returncode == 0
            assert mode(folder / "o.svg") == 0o600, other


def test_owners_are_kept():
    if os.geteuid() != 0:
        raise Skip("only root may give files away")
    with Folder() as folder:
        put_old(folder, "t")
        os.chown(folder / "t", 1234, 2345)
        (folder / "t").chmod(0o640)
        good("simulate", folder / "small.yaml", "--trace", folder / "t")
        is_now = (folder / "t").stat()
        assert (is_now.st_uid, is_now.st_gid, is_now.st_mode & 0o7777) == (1234, 2345, 0o640), is_now
        (folder / "t").chmod(0o666)
        folder.chmod(0o777)
        result = as_nobody("simulate", folder / "small.yaml", "--trace", folder / "t")
        assert result.returncode == 0, result
        assert mode(folder / "t") == 0o606, oct(mode(folder / "t"))


def test_what_may_not_be_written_is_not_replaced():
    with Folder() as folder:
        folder.chmod(0o777)
        put_old(folder, "out.svg")
        (folder / "out.svg").chmod(0o444)
        options = ("--trace", "--journal") + (("--plot",) if shutil.which("gnuplot") else ())
        for args in [["simulate", folder / "small.yaml", option] for option in options] + [
                [*other, "--plot"] for other in OTHERS if "--plot" in options]:
            result = as_nobody(*args, folder / "out.svg")
            assert result.returncode == 1 and len(result.stderr.splitlines()) == 1, result
            assert "out.svg': Permission denied" in result.stderr, result
            check_old(folder, "out.svg")


# ---- Signals ----------------------------------------------------------------------------------------------------------

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def listen():
    """Whatever the tests themselves were told to ignore; and no core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in ENDS:
        signal.signal(number, signal.SIG_DFL)


def begin(folder, scenario, **how):
    """A run that has begun its files."""
    args = [PROGRAM, "simulate", scenario, "--live", "--trace", folder / "t", "--journal", folder / "j"]
    process = subprocess.Popen(args, cwd=SOURCE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **how)
    until = time.monotonic() + 60
    while kinds(folder) != ["j.part", "small.yaml", "t", "t.part"] and time.monotonic() < until:
        time.sleep(0.01)
    return process


def test_signals_leave_nothing_half():
    with Folder() as folder:
        put_old(folder, "t")
        for number in ENDS:
            with begin(folder, DEMO, preexec_fn=listen) as process:
                process.send_signal(number)
                assert process.wait(60) == -number, process.returncode
            check_old(folder, "t")


def test_a_signal_that_is_ignored_stays_ignored():
    with Folder() as folder:
        put_old(folder, "t")
        with begin(folder, folder / "small.yaml", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as process:
            process.send_signal(signal.SIGHUP)
            assert process.wait(60) == 0
        assert names(folder) == ["j", "small.yaml", "t"], names(folder)


# ---- tools/beside -------------------------------------------------------------------------------------------------------

def trace_text(seconds=120, power="1000", budget="900"):
    return "time_s,power_w,budget_w,meter_w\n" + "".join(f"{i},{power},{budget},1000\n" for i in range(seconds))


def beside(folder, limit="", env=None):
    command = f'{limit} exec "$0" "$@"'
    return subprocess.run(["/bin/sh", "-c", command, sys.executable, "-B", BESIDE, "t.csv", "p.csv", "o.svg"], cwd=folder,
                          capture_output=True, text=True, check=False, timeout=60, env={**os.environ, **(env or {})})


def test_beside():
    harness.need_gnuplot()
    with Files(t=trace_text(), p="minute,w\n0,1000\n1,1100\n") as folder:
        result = beside(folder)
        assert result.returncode == 0 and result.stderr == "" and "published" in (folder / "o.svg").read_text(), result
        assert mode(folder / "o.svg") == 0o666 & ~umask()
        (folder / "o.svg").chmod(0o600)
        assert beside(folder).returncode == 0 and mode(folder / "o.svg") == 0o600
        (folder / "o.svg").write_text("old", encoding="utf-8")
        assert beside(folder, "ulimit -f 1;").returncode == 1
        assert beside(folder, env={"PATH": str(folder)}).stderr.startswith("beside: needs gnuplot")
        assert (folder / "o.svg").read_text(encoding="utf-8") == "old" and names(folder) == ["o.svg", "p.csv", "t.csv"]
        (folder / "o.svg").unlink()
        (folder / "o.svg").symlink_to("t.csv")
        assert "is read" in beside(folder).stderr and (folder / "t.csv").read_text() == trace_text()


def test_mistakes_of_beside():
    harness.need_gnuplot()
    fine, minute = trace_text(), "minute,w\n0,1000\n"
    for trace, published, says in (
            (fine, "", "p.csv: holds no row"), (fine, "minute,w\n", "p.csv: holds no row"),
            (fine, "minute,w\n0,1000\n1,abc\n", "p.csv: line 3, column 2: 'abc'"),
            (fine, "minute,w\n0,nan\n", "p.csv: line 2, column 2: 'nan'"),
            (fine, "minute,w\n0,\n", "p.csv: line 2, column 2: is empty"),
            ("", minute, "t.csv: holds no row"), (minute, minute, "t.csv: line 1, column 1: is no trace"),
            (trace_text(30), minute, "t.csv: line 31, column 1: ends after 30 seconds"),
            (trace_text(30) + "30,abc,1,1\n", minute, "t.csv: line 32, column 2: 'abc'"),
            (trace_text(30) + "30,1,inf,1\n", minute, "t.csv: line 32, column 3: 'inf'"),
            (fine + "120,1\n", minute, "t.csv: line 122: has 2 columns"),
            (trace_text(power=""), minute, "t.csv: line 2, column 2: no minute has power"),
            (fine.replace("time_s", "\0"), minute, "t.csv: ")):
        with Files(t=trace, p=published) as folder:
            (folder / "o.svg").write_text("old", encoding="utf-8")
            result = beside(folder)
            assert result.returncode == 1 and result.stderr.startswith("beside: " + says), (says, result)
            assert len(result.stderr.splitlines()) == 1 and ";" in result.stderr, result
            assert (folder / "o.svg").read_text(encoding="utf-8") == "old" and len(names(folder)) == 3, names(folder)
    with Files(t=trace_text(budget=""), p=minute) as folder:
        assert beside(folder).returncode == 0


if __name__ == "__main__":
    harness.main(globals())
