#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The measured sweeps: Emerald (A100, six distinct jobs) and the Zeus traces (A40, V100). Skipped where they are absent."""
import math
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
import harness
from harness import A40, EMERALD, V100, curve, data, good_json, near, sweep_text

CUTS = (0.10, 0.20, 0.30, 0.40)
RANGES = ("200..400", "100..400")
PFI = {  # caps 200..400, 100..400
    "ft_llama_8b_dolly": (2.526, 1.228), "ft_llama_8b_p3": (2.175, 1.178), "infer_llama_8b_48g": (2.403, 1.275),
    "pt_mpt_13b_lg": (1.431, 1.084), "pt_mpt_13b_sm": (1.460, 1.085), "pt_mpt_7b_fast": (1.477, 1.088),
}
KEPT = {
    EMERALD: {"equal": (.9516, .9085, .8569, .7779), "oracle": (.9654, .9170, .8592, .7874),
              "uniform": (.9489, .9081, .8545, .7735)},
    A40: {"equal": (.9792, .9443, .8401, .6203), "oracle": (.9885, .9599, .8826, .7038),
          "uniform": (.9804, .9461, .8598, .6499)},
    V100: {"equal": (.9760, .9432, .8953, .8166), "oracle": (.9821, .9498, .9053, .8282),
           "uniform": (.9747, .9413, .8930, .8111)},
}


def pfi(name, *args):
    return {group["group"]: group for group in good_json("pfi", data(name), *args)["groups"]}


def compare(name, *args):
    rows = good_json("compare", data(name), "--cut=10,20,30,40", *args)["rows"]
    assert [row["cut_frac"] for row in rows] == list(CUTS) and all(row["outcome"] == "optimal" for row in rows)
    return rows


def everything():
    """(name, range or None, rows) of all sets."""
    yield from ((EMERALD, caps, compare(EMERALD, "--caps", caps)) for caps in RANGES)
    yield from ((name, None, compare(name)) for name in (A40, V100))


def check_numbers(group):
    """No negative, infinite or NaN PFI: a JSON number or null."""
    for key in ("pfi_ls", "pfi_ls_lo", "pfi_ls_hi", "pfi_30"):
        assert group[key] is None or (group[key] > 0 and math.isfinite(group[key])), group


def check_statuses(name, ok, not_limited, bound):
    groups = pfi(name)
    for group in groups.values():
        check_numbers(group)
    found = [group["status"] for group in groups.values()]
    assert {status: found.count(status) for status in set(found)} == {"ok": ok, "not_power_limited": not_limited, "bound": bound}
    return groups


def test_emerald_pfi():
    for i, caps in enumerate(RANGES):
        groups = pfi(EMERALD, "--caps", caps)
        for name, expected in PFI.items():
            near(groups[name]["pfi_ls"], expected[i], 0.001)
            assert groups[name]["duplicate_of"] is None and groups[name]["fit_caps_w"][1] == 400
        for group in groups.values():
            check_numbers(group)


def test_emerald_warns_on_the_wide_range():
    groups = pfi(EMERALD, "--caps", "100..400")
    assert sum("poor_fit" in groups[name]["flags"] for name in PFI) == 3


def test_emerald_duplicates():
    groups = pfi(EMERALD)
    assert {name: group["duplicate_of"] for name, group in groups.items() if group["duplicate_of"]} == {
        "infer_llama_8b": "infer_llama_8b_48g", "infer_llama_8b_32g": "infer_llama_8b_48g"}


def test_a40_statuses():
    check_statuses(A40, 36, 16, 1)


def test_v100_statuses():
    groups = check_statuses(V100, 45, 20, 3)
    bound = sorted(name for name, group in groups.items() if group["status"] == "bound")
    assert all("shufflenetv2" in name for name in bound), bound
    assert sorted(name.split("/")[2] for name in bound) == ["128", "128", "64"], bound


def test_values_kept():
    for name, _, rows in everything():
        for policy, expected in KEPT[name].items():
            for row, value in zip(rows, expected):
                near(row[policy], value, 0.0002)


def test_curve_is_not_below_equal():
    for name, caps, rows in everything():
        for row in rows:
            assert row["curve"] >= row["equal"] - 0.0005, (name, caps, row)


def test_curve_is_not_below_uniform_up_to_30():
    for name, caps, rows in everything():
        for row in rows[:3]:
            assert row["curve"] >= row["uniform"] - 0.0005, (name, caps, row)


def test_recovered_share():
    cells = [row["recovered_frac"] for name in (A40, V100) for row in compare(name)[:3]]
    assert cells[2] >= 0.6 and cells[5] >= 0.6, cells
    assert statistics.mean(cells) >= 0.5, cells


def test_figures_in_the_documentation():
    text = (harness.SOURCE / "docs/compare.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith(("| A40 | ", "| V100 | "))]
    told = {(cells[0], int(cells[1].split()[0])): list(map(float, cells[2:])) for cells in rows}
    assert len(told) == 8, rows
    for name, short in ((A40, "A40"), (V100, "V100")):
        for row in compare(name):
            gap = row["oracle"] - row["equal"]
            kept = [row[key] for key in ("equal", "uniform", "curve", "oracle")]
            shares = [row["recovered_frac"], (row["oracle_box"] - row["equal"]) / gap, row["shrink"]]
            for value, figure in zip(kept + shares, told[short, round(100 * row["cut_frac"])]):
                near(value, figure, 0.0001 if value in kept else 0.01)


def test_shrink_falls_with_sigma():
    for name in (A40, V100):
        runs = [compare(name, f"--sigma={sigma}") for sigma in ("0.01", "0.02", "0.04")]
        for low, middle, high in zip(*runs):
            assert low["shrink"] > middle["shrink"] > high["shrink"], (name, low["cut_frac"], low["shrink"],
                                                                       middle["shrink"], high["shrink"])


def test_shrink_at_sigma_0_on_noiseless_curves():
    caps = range(700, 199, -25)
    jobs = {f"job-{i}": curve(caps, loss=0.05 + 0.02 * i, power=1.5 + 0.1 * (i % 4)) for i in range(8)}
    with harness.Files(sweep=sweep_text(jobs)) as folder:
        for row in good_json("compare", folder / "sweep.csv", "--cut=10,20,30", "--sigma=0")["rows"]:
            assert row["shrink"] >= 0.95, row


if __name__ == "__main__":
    harness.main(globals())
