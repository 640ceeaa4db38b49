#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wattweir compare: its table, its JSON, its three sentences and its plot."""
import re

import harness
from harness import (HOSTILE, SAMPLE, SOURCE, Files, accepted, curve, fails, flat, good, good_json, near, plot, run,
                     sweep_text, texts)

KEYS = ["file", "cut_frac", "n_jobs", "outcome", "equal", "uniform", "linear_pfi", "pfi_proportional", "curve", "oracle",
        "oracle_box", "recovered_frac", "recovered_box_frac", "shrink", "baseline_w", "budget_w", "missing_w",
        "utilisation", "utilisation_over_w"]
POLICIES = KEYS[4:11]
CAPS = tuple(range(700, 199, -50))


def two_kinds():
    """Jobs that differ so much that the division matters."""
    return {"stiff": curve(CAPS, loss=0.24, power=1.5), "loose": curve(CAPS, loss=0.06, power=2.5),
            "middle": curve(CAPS, loss=0.12, power=2.0)}


def compare(groups, *args, code=0):
    with Files(sweep=sweep_text(groups)) as folder:
        return good_json("compare", folder / "sweep.csv", *args, code=code)["rows"]


def story(groups, *args, code=0):
    """The last three lines for people."""
    with Files(sweep=sweep_text(groups)) as folder:
        return good("compare", folder / "sweep.csv", *args, code=code).splitlines()[-3:]


def test_keys():
    rows = good_json("compare", SAMPLE, "--cut", "10,20,30,40")["rows"]
    assert [row["cut_frac"] for row in rows] == [0.1, 0.2, 0.3, 0.4]
    for row in rows:
        assert [key for key in KEYS if key not in row] == []
        assert row["file"] == SAMPLE and row["outcome"] == "optimal" and row["n_jobs"] == 9
        assert all(0 < row[policy] <= 1 for policy in POLICIES) and 0 <= row["shrink"] <= 1
        near(row["budget_w"], (1 - row["cut_frac"]) * row["baseline_w"], 1e-6)
        assert row["missing_w"] == 0


def test_the_manual_names_every_key():
    for page, command, key in (("wattweir-compare.1", ["compare", "--cut=30"], "rows"), ("wattweir-pfi.1", ["pfi"], "groups")):
        words = set(re.findall(r"\w+", (SOURCE / "docs/man" / page).read_text(encoding="utf-8").split("Prints JSON")[1]))
        assert set(good_json(*command, SAMPLE)[key][0]) <= words, set(good_json(*command, SAMPLE)[key][0]) - words


def test_oracle_is_the_best_and_curve_no_worse_than_equal():
    for row in good_json("compare", SAMPLE, "--cut", "5,10,15,20,25,30,35,40,45,50")["rows"]:
        assert all(row["oracle"] >= row[policy] - 1e-9 for policy in POLICIES), row
        assert row["oracle"] >= row["oracle_box"] >= row["equal"] - 1e-9
        assert row["curve"] >= row["equal"] - 0.0005, row


def test_sample_shows_a_difference():
    row, = good_json("compare", SAMPLE, "--cut", "30")["rows"]
    assert row["oracle"] - row["equal"] > 0.004 and row["recovered_frac"] > 0.3, row


def test_order_of_jobs_and_options_does_not_matter():
    jobs = two_kinds()
    first = compare(jobs, "--cut=30")[0]
    second = compare(dict(reversed(jobs.items())), "--cut=30")[0]
    for policy in POLICIES:
        near(first[policy], second[policy], 1e-12)


def test_zero_cut_keeps_everything():
    row, = compare(two_kinds(), "--cut=0")
    assert row["outcome"] == "unchanged" and row["recovered_frac"] is None
    for policy in POLICIES:
        near(row[policy], 1, 1e-9)
    assert "takes nothing" in story(two_kinds(), "--cut=0")[0]


def test_infeasible():
    row, = compare(two_kinds(), "--cut=90", code=3)
    assert row["outcome"] == "infeasible"
    near(row["missing_w"], 3 * (200 - 70), 0.5)
    text = "\n".join(story(two_kinds(), "--cut=90", code=3))
    assert "390 W" in text and "90 % cut" in text, text
    with Files(sweep=sweep_text(two_kinds())) as folder:
        text = good("compare", folder / "sweep.csv", "--cut=30,90", code=3)
    assert "infeasible" in text and "missed by 390 W" in text
    assert "A 30 % cut takes" in text.splitlines()[-3]


def test_sentences():
    lines = story(two_kinds(), "--cut=10,30")
    row = compare(two_kinds(), "--cut=30")[0]
    assert lines[0] == "A 30 % cut takes 630 W from 3 jobs that drew 2,100 W (one GPU each).", lines[0]
    assert f"keeps {100 * row['equal']:.1f} %" in lines[1] and f"keeps {100 * row['curve']:.1f} %" in lines[1]
    assert "at most two others" in lines[1]
    assert f"keeps {100 * row['oracle']:.1f} %" in lines[2]
    assert re.search(r"recovered (\d+ %|all) of that gap", lines[2]), lines[2]


def test_sentences_follow_the_depths():
    assert "at most one other," in story(two_kinds(), "--cut=30", "--fit-depths=30")[1]
    assert "at most three others," in story(two_kinds(), "--cut=30", "--fit-depths=15,35,50")[1]


def test_sentences_when_there_is_nothing_to_gain():
    same = {f"job-{i}": [(c, p, t * (1 + i / 1000)) for c, p, t in curve(CAPS, loss=0.1 + i / 500)] for i in range(3)}
    lines = story(same, "--cut=30")
    assert compare(same, "--cut=30")[0]["recovered_frac"] is None
    assert "too little to speak of" in lines[2], lines
    assert "practically the same" in lines[1] or "less" not in lines[1], lines


def test_one_job():
    lines = story({"alone": curve(CAPS)}, "--cut=30")
    assert "from 1 job that drew 700 W" in lines[0] and "nothing to divide" in lines[2], lines


def test_left_out_jobs_are_named_with_the_reason():
    jobs = two_kinds()
    jobs["twin"] = [(cap, power, 3 * tps) for cap, power, tps in jobs["stiff"]]
    jobs.update(flat())
    jobs["short"] = [(700, 700, 100)]
    with Files(sweep=sweep_text(jobs)) as folder:
        text = good("compare", folder / "sweep.csv", "--cut=30")
        row, = good_json("compare", folder / "sweep.csv", "--cut=30")["rows"]
    line = next(line for line in text.splitlines() if line.startswith("Left out"))
    assert line == ("Left out: 1 not power-limited (flat); 1 too few points (short); 1 same curve as another (twin)."), line
    assert row["n_jobs"] == 3
    assert "Left out" not in "".join(story(two_kinds(), "--cut=30"))


def test_of_two_with_one_curve_the_later_name_is_left_out():
    jobs = {"zebra": two_kinds()["stiff"], "ape": two_kinds()["stiff"], **two_kinds()}
    del jobs["stiff"]
    with Files(sweep=sweep_text(jobs)) as folder:
        text = good("compare", folder / "sweep.csv", "--cut=30")
    assert "Left out: 1 same curve as another (zebra)." in text, text


def test_broken_budgets_are_marked():
    jobs = {"idle": [(700, 120, 100), (300, 118, 99), (118, 100, 80)], **two_kinds()}
    with Files(sweep=sweep_text(jobs)) as folder:
        text = good("compare", folder / "sweep.csv", "--cut=1,5,10")
        rows = good_json("compare", folder / "sweep.csv", "--cut=1,5,10")["rows"]
    broken = [row for row in rows if row["utilisation_over_w"] > 0]
    assert 0 < len(broken) < 3, rows
    for line, row in zip(text.splitlines()[4:7], rows):
        mark = "*" if row in broken else ""
        assert line.split()[6] == f"{100 * row['utilisation']:.1f}{mark}", (line, row)
    cuts = ", ".join(f"{100 * row['cut_frac']:.4g}" for row in broken)
    assert f"* By use breaks the budget at {cuts} %: its caps add up to as much as " in text, text
    assert "*" not in good("compare", SAMPLE, "--cut=30")


def test_it_says_which_cut_is_told():
    with Files(sweep=sweep_text(two_kinds())) as folder:
        def lead(*args, code=0):
            return good("compare", folder / "sweep.csv", *args, code=code).splitlines()[-4]
        assert lead("--cut=10,25,90", code=3) == "In words, the cut nearest to 30 % that is feasible:"
        assert lead("--cut=80,90", code=3) == "In words, the least cut:"
        assert "In words" not in good("compare", folder / "sweep.csv", "--cut=10")


def test_nothing_to_compare():
    with Files(sweep=sweep_text(flat())) as folder:
        fails(1, "compare", folder / "sweep.csv", "--cut=30", says="nothing to compare")


def test_caps_are_obeyed():
    narrow, = compare(two_kinds(), "--cut=30", "--caps=400..700")
    wide, = compare(two_kinds(), "--cut=30")
    assert narrow["oracle"] < wide["oracle"] + 1e-9
    assert compare(two_kinds(), "--cut=50", "--caps=400..700", code=3)[0]["outcome"] == "infeasible"


def test_sigma_lowers_the_trust():
    shrinks = [compare(two_kinds(), "--cut=30", f"--sigma={sigma}")[0]["shrink"] for sigma in ("0.01", "0.02", "0.04")]
    assert shrinks[0] > shrinks[1] > shrinks[2], shrinks


def test_two_files():
    rows = good_json("compare", SAMPLE, SAMPLE, "--cut", "30,40")["rows"]
    assert [row["cut_frac"] for row in rows] == [0.3, 0.4, 0.3, 0.4] and rows[:2] == rows[2:]
    assert good("compare", SAMPLE, SAMPLE, "--cut=30").count("A 30 % cut takes") == 2


def test_hostile_names():
    names = list(accepted(HOSTILE))
    jobs = {name: curve(CAPS, power=2 + i / 20) for i, name in enumerate(names)}
    jobs.update({name + " flat": flat()["flat"] for name in names[:4]})
    with Files(sweep=sweep_text(jobs)) as folder:
        text = good("compare", folder / "sweep.csv", "--cut=30")
    assert "\x1b" not in text and f"from {len(names)} jobs" in text


def test_plot():
    svg, left = plot(sweep_text(two_kinds()), "--cut=10,20,30,40", command="compare")
    assert {"curve (wattweir)", "equal cut", "oracle"} <= set(texts(svg)), texts(svg)
    assert left == ["out.svg", "sweep.csv"]


def test_plot_without_gnuplot():
    with Files(sweep=sweep_text(two_kinds())) as folder:
        result = run("compare", folder / "sweep.csv", "--cut=30", "--plot", folder / "out.svg", env={"PATH": str(folder)})
    assert result.returncode == 1 and "A 30 % cut" in result.stdout and "apt-get install gnuplot" in result.stderr


def test_same_bytes_again():
    assert (SOURCE / SAMPLE).is_file()
    assert good("compare", SAMPLE, "--cut=10,30", "--json") == good("compare", SAMPLE, "--cut=10,30", "--json")


if __name__ == "__main__":
    harness.main(globals())
