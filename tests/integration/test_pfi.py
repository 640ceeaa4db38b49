#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wattweir pfi: its table, its JSON and its plot."""
import math
import os
import tempfile
from pathlib import Path

import harness
from harness import (HOSTILE, SAMPLE, Files, accepted, curve, fails, flat, good, good_json, near, need_gnuplot, plot, run,
                     sweep_text, texts)

KEYS = ["group", "n_caps", "fit_caps_w", "p0_w", "t0", "pfi_ls", "pfi_ls_lo", "pfi_ls_hi", "pfi_30", "max_cut_frac", "r2",
        "status", "flags", "duplicate_of"]
STATUSES = {"ok", "too_few_points", "not_power_limited", "bound"}
FLAGS = {"shallow_sweep", "noise_assumed", "poor_fit", "not_monotone", "thermal"}


def groups(text, *args):
    with Files(sweep=text) as folder:
        return good_json("pfi", folder / "sweep.csv", *args)["groups"]


def table(text, *args):
    with Files(sweep=text) as folder:
        return good("pfi", folder / "sweep.csv", *args)


def test_keys():
    for group in good_json("pfi", SAMPLE)["groups"]:
        assert [key for key in KEYS if key not in group] == []
        assert group["status"] in STATUSES and set(group["flags"]) <= FLAGS
        assert len(group["fit_caps_w"]) == 2 and group["file"] == SAMPLE


def test_values_of_a_straight_line():
    cut = [(700, 700, 100), (600, 600, 100 - 100 / 14), (350, 350, 75)]
    group, = groups(sweep_text({"half": cut}))
    assert group["status"] == "ok" and group["flags"] == ["noise_assumed"]
    near(group["pfi_ls"], 2.0, 1e-6)
    near(group["pfi_30"], 2.0, 1e-6)
    near(group["max_cut_frac"], 0.5, 1e-9)
    assert group["pfi_ls_lo"] is None and group["duplicate_of"] is None and group["fit_caps_w"] == [350, 700]


def test_not_power_limited_has_no_number():
    text = table(sweep_text(flat()))
    row = next(line for line in text.splitlines() if line.startswith("flat"))
    assert "not power-limited" in row and " 0.00" not in row, row
    group, = groups(sweep_text(flat()))
    assert group["status"] == "not_power_limited"
    assert all(group[key] is None for key in ("pfi_ls", "pfi_ls_lo", "pfi_ls_hi", "pfi_30"))


def test_bound_is_rounded_down():
    text = sweep_text({"robust": [(700, 700, 100), (600, 600, 99.8), (500, 500, 99.5)]})
    group, = groups(text)
    assert group["status"] == "bound" and group["pfi_ls"] is None and group["pfi_ls_hi"] is None
    assert f">= {math.floor(group['pfi_ls_lo'] * 10) / 10:.1f}" in table(text)


def test_too_few_points():
    group, = groups(sweep_text({"one": [(700, 700, 100)]}))
    assert group["status"] == "too_few_points" and group["pfi_ls"] is None
    assert "too few points" in table(sweep_text({"one": [(700, 700, 100)]}))


def test_group_without_a_cap_in_range():
    mixed = sweep_text({"high": curve((700, 600, 500)), "low": curve((300, 200, 100))})
    high, low = groups(mixed, "--caps", "..300")
    assert high["n_caps"] == 0 and high["status"] == "too_few_points" and high["fit_caps_w"] == [None, None]
    assert low["status"] == "ok"
    assert "high" in table(mixed, "--caps", "..300")


def test_fit_range_stands_beside_every_pfi():
    for line in good("pfi", SAMPLE, "--caps", "300..600").splitlines():
        if line.startswith(("dense", "moe")):
            assert "300..600" in line, line


def test_duplicates_are_named():
    job = curve()
    text = sweep_text({"first": job, "second": [(cap, power, 7 * tps) for cap, power, tps in job]})
    first, second = groups(text)
    assert first["duplicate_of"] is None and second["duplicate_of"] == "first"
    assert "same curve as first" in table(text)


def test_legend_explains_only_what_occurs():
    text = good("pfi", SAMPLE)
    assert "not power-limited: " in text and "too few points: " not in text and "thermal: " not in text
    assert "not power-limited: " not in table(sweep_text({"job": curve()}))


def test_same_bytes_again():
    assert good("pfi", SAMPLE, "--json") == good("pfi", SAMPLE, "--json")


def test_interval_depends_on_the_name_only():
    text = Path(harness.SOURCE / SAMPLE).read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    start = next(i for i, line in enumerate(lines) if line.startswith("group"))
    mixed = "".join(lines[:start + 1] + lines[:start:-1])
    whole = {group["group"]: group for group in groups(text)}
    for group in groups(mixed):
        near(group["p0_w"], whole[group["group"]]["p0_w"], 1e-6)
        if group["pfi_ls_lo"] is not None:
            near(group["pfi_ls_lo"], whole[group["group"]]["pfi_ls_lo"], 1e-6)


def test_two_files():
    with Files(a=sweep_text({"job": curve()}), b=sweep_text({"job": curve()})) as folder:
        found = good_json("pfi", folder / "a.csv", folder / "b.csv")["groups"]
        assert [Path(group["file"]).name for group in found] == ["a.csv", "b.csv"]
        assert found[1]["duplicate_of"] is None
        assert "b.csv" in good("pfi", folder / "a.csv", folder / "b.csv")


def test_hostile_names_in_table_and_json():
    names = list(accepted(HOSTILE))
    assert len(names) > 10, names
    text = sweep_text({name: curve(power=2 + i / 10) for i, name in enumerate(names)})
    assert [group["group"] for group in groups(text)] == names
    lines = table(text).splitlines()
    assert max(len(line) for line in lines) < 400
    assert "\x1b" not in "".join(lines)


def test_file_name_that_is_not_utf8():
    with tempfile.TemporaryDirectory() as folder:
        path = os.fsencode(folder) + b"/\xff\x1b[31m.csv"
        with open(path, "w", encoding="utf-8") as out:
            out.write(sweep_text({"job": curve()}))
        name = os.fsdecode(path)
        result = harness.subprocess.run([harness.PROGRAM, "pfi", name], capture_output=True, check=True, timeout=60)
        assert b"\x1b" not in result.stdout and b"\xff" not in result.stdout
        result = harness.subprocess.run([harness.PROGRAM, "pfi", name, "--json"], capture_output=True, check=True, timeout=60)
        result.stdout.decode("utf-8")


def test_plot():
    svg, left = plot(sweep_text({"one": curve(), "two": curve(power=3), **flat()}))
    assert {"one", "two", "flat"} <= set(texts(svg)), texts(svg)
    assert left == ["out.svg", "sweep.csv"]


def test_plot_with_hostile_names():
    names = [name for name in accepted(HOSTILE) if len(name) < 60]
    for i in range(0, len(names), 6):
        part = names[i:i + 6]
        svg, left = plot(sweep_text({name: curve(power=2 + k / 10) for k, name in enumerate(part)}))
        assert left == ["out.svg", "sweep.csv"], left
        assert not (harness.SOURCE / "pwned").exists()
        assert svg.getElementsByTagName("script").length == 0 or "pwned" not in svg.toxml()
        for name in part:
            shown = name.strip().replace("&#", "& #")  # gnuplot leaves character references as they are
            assert shown in texts(svg), (name, texts(svg))


def test_plot_of_many_groups_has_no_legend():
    svg, _ = plot(sweep_text({f"job-{i}": curve(power=2 + i / 10) for i in range(13)}))
    assert "job-3" not in texts(svg)


def test_plot_without_gnuplot():
    with Files(sweep=sweep_text({"job": curve()})) as folder:
        result = run("pfi", folder / "sweep.csv", "--plot", folder / "out.svg", env={"PATH": str(folder)})
        assert result.returncode == 1 and "job" in result.stdout
        assert len(result.stderr.splitlines()) == 1 and "apt-get install gnuplot" in result.stderr, result.stderr
        assert not (folder / "out.svg").exists()


def test_plot_with_a_broken_gnuplot():
    with Files(sweep=sweep_text({"job": curve()})) as folder:
        (folder / "gnuplot").write_text("#!/bin/sh\necho out of ink >&2\nexit 7\n", encoding="utf-8")
        (folder / "gnuplot").chmod(0o755)
        (folder / "out.svg").write_text("old", encoding="utf-8")
        result = run("pfi", folder / "sweep.csv", "--plot", folder / "out.svg", env={"PATH": f"{folder}:/bin:/usr/bin"})
        assert result.returncode == 1 and "out of ink" in result.stderr and len(result.stderr.splitlines()) == 1
        assert (folder / "out.svg").read_text(encoding="utf-8") == "old"


def test_plot_that_cannot_be_written():
    need_gnuplot()
    result = run("pfi", SAMPLE, "--plot", "/nonexistent/out.svg")
    assert result.returncode == 1 and len(result.stderr.splitlines()) == 1 and "/nonexistent/out.svg" in result.stderr
    with Files() as folder:
        if os.path.exists("/dev/full"):
            (folder / "full.svg").symlink_to("/dev/full")
            fails(1, "pfi", SAMPLE, "--plot", folder / "full.svg", says="no regular file")
        (folder / "folder.svg").mkdir()
        fails(1, "pfi", SAMPLE, "--plot", folder / "folder.svg", says="no regular file")


def test_plot_that_fails_keeps_the_old_picture():
    need_gnuplot()
    with Files() as folder:
        (folder / "out.svg").write_text("old")
        assert run("pfi", SAMPLE, "--plot", folder / "out.svg").returncode == 0
        assert "<svg" in (folder / "out.svg").read_text()
        (folder / "out.svg").write_text("old")
        # No file may grow beyond one block of the shell's: the picture does not fit.
        result = harness.subprocess.run(["sh", "-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh", harness.PROGRAM, "pfi", SAMPLE,
                                         "--plot", folder / "out.svg"], capture_output=True, text=True, check=False,
                                        cwd=harness.SOURCE)
        assert result.returncode == 1, result
        assert (folder / "out.svg").read_text() == "old" and [f.name for f in folder.iterdir()] == ["out.svg"]


def test_plot_needs_the_name_of_a_picture():
    for name in ("", "-", ".svg", "curves", "curves.png", SAMPLE, "curves.svg/"):
        for command in (["pfi"], ["compare", "--cut=30"], ["plan", "--cut=30"]):
            fails(2, *command, SAMPLE, f"--plot={name}", says="does not end in .svg")


def test_plot_never_overwrites_an_input():
    text = sweep_text({"one": curve(), "two": curve(power=3)})
    with Files() as folder:
        (folder / "in.svg").write_text(text, encoding="utf-8")
        (folder / "link.svg").symlink_to("in.svg")
        os.link(folder / "in.svg", folder / "hard.SVG")
        (folder / "cluster.svg").write_text("jobs: [{job: one, gpus: 1}]\n", encoding="utf-8")
        for name in ("in.svg", "link.svg", "hard.SVG"):
            for command in (["pfi"], ["pfi", SAMPLE], ["compare", "--cut=30"], ["plan", "--cut=30"]):
                fails(1, *command, folder / "in.svg", "--plot", folder / name, says="is an input")
        with open(folder / "in.svg", encoding="utf-8") as stdin:
            result = harness.subprocess.run([harness.PROGRAM, "pfi", "-", "--plot", folder / "in.svg"], stdin=stdin, text=True,
                                            capture_output=True, check=False, timeout=60)
        assert result.returncode == 1 and "is an input" in result.stderr, result
        fails(1, "plan", folder / "in.svg", "--cut=30", "--cluster", folder / "cluster.svg", "--plot", folder / "cluster.svg",
              says="is an input")
        assert (folder / "in.svg").read_text(encoding="utf-8") == text


def test_a_time_read_as_throughput_is_asked_about():
    slower = sweep_text({"steps": [(700, 700, 0.20), (600, 600, 0.21), (500, 500, 0.23), (400, 400, 0.27)]})
    assert "is this column a time? use throughput=1/COLUMN in --map" in table(slower)
    once = [(700, 700, 100), (600, 600, 95), (500, 500, 96), (400, 400, 80)]
    assert "not monotone" in table(sweep_text({"once": once})) and "a time?" not in table(sweep_text({"once": once}))
    assert "a time?" not in good("pfi", SAMPLE)


if __name__ == "__main__":
    harness.main(globals())
