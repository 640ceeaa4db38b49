#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Never worse than equal: 200 fleets of 24 jobs drawn from the Zeus traces, each at four cuts."""
import csv
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
import harness
from harness import A40, V100, data, good_json

FLEETS, JOBS, CUTS = 200, 24, "10,20,30,40"
GROUP = ("dataset", "network", "batch_size", "optimizer")


def jobs_that_take_part(path):
    """{job: its rows}, and the column names."""
    statuses = {group["group"]: group["status"] for group in good_json("pfi", path)["groups"]}
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    jobs = {}
    for row in rows:
        name = "/".join(row[key] for key in GROUP)
        if statuses[name] in ("ok", "bound"):
            jobs.setdefault(name, []).append(row)
    return jobs, reader.fieldnames


def losses(name):
    """Equal minus curve, of every fleet at every cut."""
    jobs, columns = jobs_that_take_part(data(name))
    source = random.Random(24)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.csv"
        for _ in range(FLEETS):
            with open(path, "w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, columns)
                writer.writeheader()
                for job in source.sample(sorted(jobs), JOBS):
                    writer.writerows(jobs[job])
            yield [row["equal"] - row["curve"] for row in good_json("compare", path, "--cut", CUTS)["rows"]]


def check(name):
    for cut, column in zip(CUTS.split(","), zip(*losses(name))):
        worse = sum(loss > 0.0005 for loss in column)
        assert worse <= 0.01 * FLEETS, f"{name} at {cut} %: {worse} of {FLEETS} fleets are worse than equal by 0.0005"
        assert max(column) <= 0.003, f"{name} at {cut} %: worse than equal by {max(column)}"


def test_a40():
    check(A40)


def test_v100():
    check(V100)


if __name__ == "__main__":
    harness.main(globals())
