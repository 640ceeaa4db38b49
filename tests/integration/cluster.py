# SPDX-License-Identifier: Apache-2.0
"""Cluster files for tests: written from dictionaries, and power on their rows recomputed by other means than wattweir's."""
import json


def text_of(jobs, rows=()):
    """A cluster file. Values are written as they are, but names as JSON strings, which YAML reads as they are."""
    lines = ["# wattweir cluster 1"]
    for kind, items in (("rows", rows), ("jobs", jobs)):
        lines += [f"{kind}:"] if items else []
        for item in items:
            lines.append("  - {" + ", ".join(f"{key}: {value_of(value)}" for key, value in item.items()) + "}")
    return "\n".join(lines) + "\n"


def value_of(value):
    if isinstance(value, list):
        return "[" + ", ".join("{" + ", ".join(f"{k}: {value_of(v)}" for k, v in part.items()) + "}" for part in value) + "]"
    if isinstance(value, Name):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


class Name(str):
    """Text that has to be quoted."""


def parents(row):
    """[(row above, part)]"""
    on = row.get("on", [])
    if not isinstance(on, list):
        return [(on, 1.0)]
    return [(up["row"], float(str(up.get("part", "100%")).rstrip("%")) / 100) for up in on]


def places(job):
    on = job["on"]
    return [(place["row"], place["gpus"]) for place in on] if isinstance(on, list) else [(on, job["gpus"])]


def shares_above(start, rows):
    """Row -> part of the load on `start` that it carries; no row carries more than all of it."""
    carried = {start: 1.0}
    for name in below_first(start, rows):
        for up, part in parents(rows[name]):
            carried[up] = min(1.0, carried.get(up, 0.0) + part * carried[name])
    return carried


def below_first(start, rows):
    """The rows that feed `start`, each after all that it feeds."""
    order, left = [], [start]
    while left:
        name = left.pop(0)
        if name in order:
            order.remove(name)
        order.append(name)
        left += [up for up, _ in parents(rows[name])]
    return order


def row_power(jobs, rows, watts_of):
    """Row -> watts of the jobs' GPUs on it; watts_of: job -> watts per GPU."""
    rows = {str(row["name"]): row for row in rows}
    power = dict.fromkeys(rows, 0.0)
    for job in jobs:
        for place, gpus in places(job):
            for name, part in shares_above(place, rows).items():
                power[name] += gpus * part * watts_of[str(job["job"])]
    return power
