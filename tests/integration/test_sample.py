#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The sample sweep in examples/ is what tools/make_sample_sweep writes."""
import subprocess
import sys

import harness
from harness import SAMPLE, SOURCE, good_json


def test_regenerated():
    made = subprocess.run([sys.executable, SOURCE / "tools/make_sample_sweep"], capture_output=True, check=True, timeout=60)
    assert made.stdout == (SOURCE / SAMPLE).read_bytes()


def test_says_what_it_is():
    assert "NOT MEASURED" in (SOURCE / SAMPLE).read_text(encoding="utf-8").splitlines()[1]


def test_families_come_out_as_the_model_means_them():
    groups = {group["group"]: group for group in good_json("pfi", SAMPLE)["groups"]}
    for name, group in groups.items():
        assert group["status"] == ("not_power_limited" if name.endswith("slow-loader") else "ok"), group
    assert groups["moe-16b-lora"]["pfi_30"] > groups["moe-30b-a3b-pretrain"]["pfi_30"] > groups["dense-70b-pretrain"]["pfi_30"]


if __name__ == "__main__":
    harness.main(globals())
