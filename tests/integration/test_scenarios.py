#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shipped scenarios that promise figures, on the first seeds: how many is the argument behind the program's path."""
import csv
import functools
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.dom import minidom

import harness
from harness import EMERALD, SOURCE, data, good, good_json, near

SEEDS = range(1, 1 + int(sys.argv[2] if len(sys.argv) > 2 else 1))
PHOENIX, PHOENIX_CURVES = "scenarios/phoenix.yaml", "scenarios/phoenix-curves.csv"
BAD_DAY = "scenarios/bad-day.yaml"
PUBLISHED = "emerald-ai-demo-may-2025/SRP_total_power.csv"
SLOW_S = 600  # a run with sanitizers on a busy machine
FOLDER = tempfile.TemporaryDirectory()


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def published():
    """kW of each minute."""
    return [float(row["total"]) / 1000 for row in rows(data(PUBLISHED))]


# ---- Phoenix --------------------------------------------------------------------------------------------------------

@functools.cache
def phoenix(seed):
    """Its figures and the path of its trace."""
    trace = Path(FOLDER.name) / f"phoenix-{seed}.csv"
    return good_json("simulate", PHOENIX, f"--seed={seed}", "--trace", trace, timeout=SLOW_S), trace


def test_phoenix():
    for seed in SEEDS:
        answer, _ = phoenix(seed)
        near(answer["budget_w"], 0.75 * answer["baseline_power_w"], 1)
        assert answer["worst_over_budget_w"] <= 0 and answer["invariant_broken"] == 0, (seed, answer)
        assert answer["unused_frac"] <= 0.012 and answer["floors_broken"] == 0, (seed, answer)
        assert answer["snapback_max_frac"] <= 1.005 and 0 <= answer["back_s"] <= 900, (seed, answer)


def test_phoenix_is_like_the_published_run():
    """The same power before, and curves of the same shape; there more than 5 % of the power before was cut beyond the 25 %."""
    before, during = mean(published()[20:80]), mean(published()[110:285])
    assert during < (0.75 - 0.05) * before, (before, during)
    answer, _ = phoenix(1)
    near(answer["before_mean_power_w"] / 1000, before, 0.03 * before)
    assert answer["event_mean_power_w"] > (0.75 - 0.012) * answer["before_mean_power_w"], answer
    kept = {(row["group"], float(row["cap_w"])): float(row["throughput_tps"]) for row in rows(SOURCE / PHOENIX_CURVES)}
    for row in rows(data(EMERALD)):
        group = {"ft": "tune", "in": "serve", "pt": "pretrain"}[row["Workload"][:2]]
        here = kept[group, float(row["GPU power cap"])] / kept[group, 400]
        near(here, float(row["normalized throughput"]), 0.06)


def test_picture_beside_the_published_run():
    harness.need_gnuplot()
    picture = Path(FOLDER.name) / "phoenix.svg"
    subprocess.run([SOURCE / "tools/beside", phoenix(1)[1], data(PUBLISHED), picture], check=True, timeout=100)
    words = " ".join(harness.texts(minidom.parse(str(picture))))
    assert all(word in words for word in ("wattweir", "published", "budget", "kW")), words


# ---- A bad day ------------------------------------------------------------------------------------------------------

GONE = {("node-4", gpu) for gpu in range(8)}
HUNG = ("node-5", 4)


def test_bad_day():
    """The budget is kept in every second; who can be reached has the limit of before, and the others are named."""
    for seed in SEEDS:
        trace = Path(FOLDER.name) / "bad-day.csv"
        answer = good_json("simulate", BAD_DAY, f"--seed={seed}", "--trace", trace, code=3, timeout=SLOW_S)
        budgets = [row for row in rows(trace) if row["budget_w"]]
        assert len(budgets) == 65 * 60, len(budgets)
        assert all(float(row["power_w"]) <= float(row["budget_w"]) for row in budgets), seed
        assert answer["worst_over_budget_w"] <= 0 and answer["invariant_broken"] == 0, (seed, answer)
        assert answer["floors_broken"] == 0 and answer["rows_missing"] == [], (seed, answer)
        assert answer["snapback_max_frac"] <= 1.005 and answer["led_s"] == answer["seconds"], (seed, answer)
        assert answer["back_s"] is None, (seed, answer["back_s"])  # one job has lost its machine
        left = {(gpu["node"], gpu["gpu"]): gpu["why"] for gpu in answer["not_back"]}
        assert GONE <= left.keys() <= GONE | {HUNG}, (seed, left)
        assert all(left[gpu] == "no power" for gpu in GONE), (seed, left)
        assert all(gpu["before_w"] == 700 for gpu in answer["not_back"]), (seed, answer["not_back"])
        assert left.get(HUNG, "its limit cannot be written") == "its limit cannot be written", (seed, left)


def test_bad_day_is_told():
    """Everything that happened, with its time and what came of it."""
    answer = good_json("simulate", BAD_DAY, code=3, timeout=SLOW_S)
    messages, faults = answer["messages"], answer["faults"]
    near(messages["lost"] / messages["sent"], 0.03, 0.005)
    assert messages["late"] > 0 and messages["doubled"] > 0, messages
    assert [(fault["what"], fault["at_s"] / 60) for fault in faults] == [
        ("hung-gpu", 25), ("meter-late", 31), ("foreign", 36), ("foreign", 38), ("foreign", 40), ("foreign", 41), ("foreign", 42),
        ("dead", 45), ("meter-late", 60), ("foreign", 70), ("hung-gpu", 72)], faults
    stuck, dead, left = faults[0], faults[7], faults[10]
    assert (stuck["node"], stuck["gpu"], stuck["counted_w"]) == ("node-3", 2, 700) and 2100 < stuck["obeyed_again_s"] < 2120, stuck
    assert all(fault["obeyed_again_s"] <= 3 for fault in faults[2:5]), faults[2:5]  # written over
    assert all(fault["obeyed_again_s"] > 400 and fault["counted_w"] == 700 for fault in faults[5:7]), faults[5:7]
    assert dead["obeyed_again_s"] is None and dead["until_s"] is None and dead["counted_w"] >= 8 * 300, dead
    assert left["obeyed_again_s"] is None and left["until_s"] > answer["seconds"], left
    assert [(fault["row"], fault["late_s"]) for fault in (faults[1], faults[8])] == [("site", 2), ("site", 20)], faults
    assert all(fault["counted_w"] > 0 for fault in (faults[1], faults[8])), faults
    told = {(alarm["node"], alarm["gpu"], alarm["told"].split()[-1]): alarm for alarm in answer["alarms"]}
    assert told["node-2", 5, "over"]["times"] == 4 and told["node-2", 5, "managed"]["first_s"] >= 41 * 60, told
    assert told["node-5", 1, "limit"]["first_s"] >= 70 * 60 and told["node-3", 2, "period"]["first_s"] > 25 * 60, told
    report = good("simulate", BAD_DAY, code=3, timeout=SLOW_S)
    for word in ("were lost", "hung-gpu", "foreign, 650 W", "meter-late, 20 s", "never", "raised again and again",
                 "somebody lowered", "NOT BACK  node-4 gpu 0 to 7: no power", "of 48 GPUs have their limits"):
        assert word in report, (word, report)


# ---- Pictures -------------------------------------------------------------------------------------------------------

def test_picture_mistakes():
    tool = SOURCE / "tools/beside"
    for args in ((), ("none.csv", "none.csv", "out.svg"), (Path(__file__), Path(__file__), "out.svg")):
        result = subprocess.run([tool, *args], capture_output=True, text=True, check=False, timeout=100)
        assert result.returncode == 1 and len(result.stderr.splitlines()) == 1, result
        assert result.stderr.startswith("beside: "), result


if __name__ == "__main__":
    harness.main(globals())
