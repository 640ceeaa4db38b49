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
from harness import EMERALD, SOURCE, data, good_json, near

SEEDS = range(1, 1 + int(sys.argv[2] if len(sys.argv) > 2 else 1))
PHOENIX, PHOENIX_CURVES = "scenarios/phoenix.yaml", "scenarios/phoenix-curves.csv"
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


def test_picture_mistakes():
    tool = SOURCE / "tools/beside"
    for args in ((), ("none.csv", "none.csv", "out.svg"), (Path(__file__), Path(__file__), "out.svg")):
        result = subprocess.run([tool, *args], capture_output=True, text=True, check=False, timeout=100)
        assert result.returncode == 1 and len(result.stderr.splitlines()) == 1, result
        assert result.stderr.startswith("beside: "), result


if __name__ == "__main__":
    harness.main(globals())
