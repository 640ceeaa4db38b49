#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans for the measured sweeps on a site of three levels with a rack on two feeds. Skipped where they are absent."""
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
import harness
from cluster import Name, places, row_power, shares_above, text_of
from harness import A40, EMERALD, V100, data, good_json, near, run

CUTS = (0, 10, 20, 30)
RACKS = 4
FREE = 0.90  # a row may have this part of what its jobs draw at most


def jobs_of(path):
    """Each group once, 8 or 16 GPUs, over the racks in turn; every fifth spans two racks."""
    jobs, draws = [], {}
    for i, group in enumerate(good_json("pfi", path)["groups"]):
        name, gpus = Name(group["group"]), 8 * (1 + i % 2)
        here, there = f"rack-{i % RACKS}", f"rack-{(i + 1) % RACKS}"
        on = [{"row": here, "gpus": gpus // 2}, {"row": there, "gpus": gpus // 2}] if i % 5 == 4 else here
        jobs.append({"job": name, "gpus": gpus, "on": on, "floor": "30%", "tier": i % 4})
        draws[str(name)] = group["p0_w"]
    return jobs, draws


def rows_of(jobs, draws):
    """Limits that bind on some rows: less than is drawn, the less the lower the row."""
    rows = [{"name": "site"}, {"name": "feed-a", "on": "site"}, {"name": "feed-b", "on": "site"}]
    for i in range(RACKS - 1):
        rows.append({"name": f"rack-{i}", "on": f"feed-{'ab'[i % 2]}"})
    rows.append({"name": f"rack-{RACKS - 1}", "on": [{"row": "feed-a", "part": "50%"}, {"row": "feed-b", "part": "50%"}]})
    power = row_power(jobs, rows, draws)
    for i, row in enumerate(rows):
        fixed = {"site": 400, "feed-a": 250, "feed-b": 150}.get(row["name"], 100)
        row["limit"] = f"{(FREE + 0.05 * (i % 4)) * power[row['name']] + fixed:.1f} W"
        if row["name"].startswith("rack"):
            row["fixed"] = "100 W"
    return rows


def check(name, account):
    path = data(name)
    jobs, draws = jobs_of(path)
    rows = rows_of(jobs, draws)
    with tempfile.TemporaryDirectory() as folder:
        cluster = Path(folder) / "cluster.yaml"
        cluster.write_text(text_of(jobs, rows), encoding="utf-8")
        for cut in CUTS:
            result = run("plan", path, "--cluster", cluster, f"--cut={cut}", f"--account={account}", "--json")
            answer = harness.json.loads(result.stdout, parse_constant=harness.reject_constant)
            assert result.returncode == (3 if answer["outcome"] == "infeasible" else 0), result
            check_plan(answer, jobs, rows)
            if result.returncode == 0:
                equal = good_json("plan", path, "--cluster", cluster, f"--cut={cut}", f"--account={account}", "--policy=equal")
                assert answer["total"]["relative"] >= equal["total"]["relative"] - 0.0005, (name, account, cut)


def check_plan(answer, jobs, rows):
    assert answer["bound_gap_frac"] <= 1e-3, answer["bound_gap_frac"]
    told = {row["row"]: row for row in answer["rows"]}
    power = row_power(jobs, rows, {job["job"]: job["charge_w"] for job in answer["jobs"]})
    for row in rows:
        here, limit = told[row["name"]], float(row["limit"].split()[0]) - told[row["name"]]["fixed_w"]
        near(here["power_w"], power[row["name"]], 1e-3)
        assert power[row["name"]] <= limit + here["over_w"] + 1e-3, (row, power)
    total = sum(job["gpus"] * job["charge_w"] for job in answer["jobs"])
    assert total <= answer["budget_w"] + answer["over_w"] + 1e-3
    if answer["outcome"] == "optimal":
        assert all(job["throughput_frac"] >= job["floor_frac"] - 1e-6 for job in answer["jobs"])
        check_nothing_is_left(answer, jobs, rows, total)


def check_nothing_is_left(answer, jobs, rows, total):
    """What a plan keeps from a job, some row above it or the budget needs."""
    full = {row["row"] for row in answer["rows"] if row["state"] == "full"}
    above = {row["name"]: row for row in rows}
    if total >= answer["budget_w"] * (1 - 1e-6):
        return
    for job, told in zip(jobs, answer["jobs"]):
        carriers = {up for start, _ in places(job) for up in shares_above(start, above)}
        assert told["throughput_frac"] == 1 or carriers & full, (told, full)


def check_shipped(name, cluster):
    """The cluster files that are shipped for the public sweeps: rows kept (told by plan and added up again), a proved gap."""
    for cut in CUTS:
        for account in ("cap", "draw"):
            answer = good_json("plan", data(name), "--cluster", f"examples/{cluster}", f"--cut={cut}", f"--account={account}")
            assert answer["outcome"] == "optimal" and answer["bound_gap_frac"] <= 1e-3, answer
            assert len(answer["rows"]) == 7 and sum(job["gpus"] * job["charge_w"] for job in answer["jobs"]) <= (
                answer["budget_w"] * (1 + 1e-9))
            for row in answer["rows"]:
                assert row["power_w"] + row["fixed_w"] <= row["limit_w"] * (1 + 1e-9), row
            for job in answer["jobs"]:
                assert job["throughput_frac"] >= job["floor_frac"] - 1e-6, job


def test_shipped_emerald():
    check_shipped(EMERALD, "cluster-emerald.yaml")


def test_shipped_zeus_a40():
    check_shipped(A40, "cluster-zeus.yaml")


def test_shipped_zeus_v100():
    check_shipped(V100, "cluster-zeus.yaml")


def test_emerald():
    check(EMERALD, "cap")


def test_emerald_by_draw():
    check(EMERALD, "draw")


def test_a40():
    check(A40, "cap")


def test_a40_by_draw():
    check(A40, "draw")


def test_v100():
    check(V100, "cap")


def test_v100_by_draw():
    check(V100, "draw")


if __name__ == "__main__":
    harness.main(globals())
