#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The frame around the commands: exit codes, one-line errors, help, output that cannot be written."""
import os
import subprocess

import harness
from harness import PROGRAM, SAMPLE, SOURCE, Skip, fails, good, run

COMMANDS = ("pfi", "compare", "plan")


def test_version():
    assert good("--version").startswith("wattweir 0.")


def test_no_command():
    fails(2, says="--help")


def test_unknown_command_names_the_nearest():
    line = fails(2, "compair", SAMPLE, says="compare")
    assert "pfi" not in line
    fails(2, "pif", says="pfi")
    fails(2, "", says="there are")
    fails(2, "x" * 5000, says="there are")


def test_hostile_command_name():
    line = fails(2, "\x1b[31mred")
    assert "\x1b" not in line


def test_unknown_option():
    fails(2, "--frobnicate")
    for command in COMMANDS:
        fails(2, command, "--frobnicate", SAMPLE, says=f"wattweir {command}: ")
        fails(2, command, SAMPLE, "--caps", says=f"wattweir {command}: ")


def test_unknown_option_names_the_nearest():
    for args, option in ((["pfi", "--cap2", "3"], "--caps"), (["compare", "--fit-depht", "3"], "--fit-depths"),
                         (["plan", "--bugdet-w=3"], "--budget-w"), (["--versoin"], "--version")):
        assert f"nearest: {option};" in fails(2, *args, SAMPLE, says="unknown option"), args
    for args in (["pfi", "--frobnicate"], ["-x"], ["plan", "-c", "20"]):
        line = fails(2, *args, SAMPLE, says="--help'")
        assert "nearest" not in line, line
    assert good("pfi", SAMPLE, "--cap", "300..", "--js") == good("pfi", SAMPLE, "--caps=300..", "--json")
    fails(2, "pfi", SAMPLE, "--caps", "--frobnicate", says="--caps: '--frobnicate' is not a range")
    fails(1, "pfi", "--", "--frobnicate", says="no such file")


def test_h_is_help():
    assert good("-h") == good("--help")
    for command in COMMANDS:
        assert good(command, "-h") == good(command, "--help")


def test_surplus_words():
    fails(2, "plan", SAMPLE, "20", says="surplus word '20'; did you mean --cut 20?")
    fails(2, "plan", SAMPLE, "20%", says="did you mean --cut 20%?")
    fails(2, "plan", SAMPLE, "examples/cluster.yaml", "--cut=20", says="did you mean --cluster examples/cluster.yaml?")
    fails(2, "plan", SAMPLE, "20", "--cut=30", says="surplus word '20'")
    fails(2, "compare", SAMPLE, "20", says="surplus word '20'; did you mean --cut 20?")


def test_help():
    for text in (good("--help"), good("help")):
        for command in COMMANDS:
            assert f"\n  {command} " in text, text
    for command in COMMANDS:
        assert good("help", command) == good(command, "--help")
        assert "Example:" in good(command, "--help")
    fails(2, "help", "nothing")
    fails(2, "help", "pfi", "compare")


def test_no_file():
    for command in COMMANDS:
        fails(2, command, says="FILE")
    fails(2, "compare", SAMPLE, says="--cut")


def test_bad_caps():
    for text in ("200", "..", "400..200", "a..b", "200..400W", "-5..100", "1,5..7", "nan..", ""):
        fails(2, "pfi", SAMPLE, f"--caps={text}", says="--caps")


def test_caps_outside_the_file():
    fails(1, "pfi", SAMPLE, "--caps", "900..1000", says="from 900 to 1000 W; the caps here are 200 to 700 W")
    fails(1, "pfi", SAMPLE, "--caps", "900..", says="of 900 W or more; the caps here are 200 to 700 W")
    fails(1, "pfi", SAMPLE, "--caps", "..50.5", says="from 0 to 50.5 W")


def test_open_caps():
    assert "400..700" in good("pfi", SAMPLE, "--caps", "400..")
    assert "200..400" in good("pfi", SAMPLE, "--caps", "..400")


def test_bad_sigma():
    for text in ("-0.1", "1", "1%", "x", "", "nan", "0,01"):
        fails(2, "pfi", SAMPLE, f"--sigma={text}", says="--sigma")


def test_bad_percents():
    for text in ("", "x", "-1", "100", "1e9", "nan", "inf", "30 W", "10,,20", "10,", ",".join(["1"] * 101), "0x1f"):
        fails(2, "compare", SAMPLE, f"--cut={text}", says="--cut")
    for text in ("0", "", "x", "100", ",".join(["5"] * 9)):
        fails(2, "compare", SAMPLE, "--cut=30", f"--fit-depths={text}", says="--fit-depths")


def test_a_fraction_is_not_taken_for_a_percentage():
    for text in ("0.2", "30,0.15", "1e-3", " 0.5 "):
        fails(2, "compare", SAMPLE, f"--cut={text}", says="--cut: ")
        fails(2, "compare", SAMPLE, "--cut=30", f"--fit-depths={text}", says="--fit-depths: ")
    assert "--cut: 0.2 means 0.2 %; write 20% or 0.2%" in fails(2, "plan", SAMPLE, "--cut=0.2")
    assert "\n0.2 " in good("compare", SAMPLE, "--cut=0.2%")
    good("compare", SAMPLE, "--cut=0,1")
    fails(2, "plan", SAMPLE, "--cut=10,20", says="'10,20': plan takes one cut; write 20.5 with a point")
    fails(2, "compare", SAMPLE, "--cut=20%%", says="'20%%' is not a percentage")


def test_budget_with_a_unit():
    plain = good("plan", SAMPLE, "--budget-w=32000")
    for text in ("32 kW", "32kW", "0.032 MW", "32000 W", "3.2e4"):
        assert good("plan", SAMPLE, f"--budget-w={text}") == plain, text
    fails(2, "plan", SAMPLE, "--budget-w=0.5", says="'0.5' is below 1 W")
    for text in ("32 kg", "32%", "32,000", "kW", "", "32 KW"):
        fails(2, "plan", SAMPLE, f"--budget-w={text}", says="write watts, like 12000, or a unit: 12 kW, 0.8 MW")


def test_a_mistake_in_the_map_is_usage():
    for command in (["pfi"], ["compare", "--cut=30"], ["plan", "--cut=30"]):
        fails(2, *command, SAMPLE, "--map=nonsense", says="--map: a part has no '='")
        fails(2, *command, "nowhere.csv", "--map=cap=a,cap=b", says="--map: key 'cap' is given twice")
        fails(1, *command, SAMPLE, "--map=throughput=a,power=b,cap=c,group=d", says="no column")


def test_good_percents():
    plain = good("compare", SAMPLE, "--cut", "10,30")
    assert plain == good("compare", SAMPLE, "--cut", "10%, 30 %")
    assert plain == good("compare", "--cut=10.0,3e1", SAMPLE)


def test_missing_file():
    for command in COMMANDS:
        fails(1, command, "nowhere.csv", "--json" if command == "pfi" else "--cut=30", says="nowhere.csv")
    fails(1, "pfi", "examples", says="examples")


def test_one_bad_file_spoils_the_run():
    result = run("pfi", SAMPLE, "nowhere.csv")
    assert result.returncode == 1 and result.stdout == ""


def test_standard_input():
    text = (SOURCE / SAMPLE).read_text(encoding="utf-8")
    for command in (["pfi"], ["compare", "--cut=30"]):
        from_file = harness.good_json(*command, SAMPLE)
        from_pipe = harness.good_json(*command, "-", stdin=text)
        for key in ("groups", "rows"):
            for row in from_file.get(key, []) + from_pipe.get(key, []):
                del row["file"]
        assert from_file == from_pipe
    fails(2, "pfi", "-", "-", says="once")
    fails(1, "pfi", "-", stdin="", says="standard input")


def test_full_disk():
    if not os.path.exists("/dev/full"):
        raise Skip("no /dev/full")
    for args in (["pfi", SAMPLE], ["pfi", SAMPLE, "--json"], ["compare", SAMPLE, "--cut=30"], ["--help"], ["help", "pfi"],
                 ["pfi", "--help"], ["--version"], ["compare", SAMPLE, "--cut=30", "--json"]):
        with open("/dev/full", "w", encoding="utf-8") as full:
            fails(1, *args, stdout=full, says="write")


def test_closed_pipe():
    for args in (["pfi", SAMPLE], ["pfi", SAMPLE, "--json"], ["compare", SAMPLE, "--cut=30"]):
        reader, writer = os.pipe()
        os.close(reader)
        try:
            fails(1, *args, stdout=writer, says="write")
        finally:
            os.close(writer)


def test_closed_stdout():
    script = f"exec '{PROGRAM}' pfi {SAMPLE} >&-"
    result = subprocess.run(["sh", "-c", script], cwd=SOURCE, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert result.returncode == 1 and len(result.stderr.splitlines()) == 1, result
    result = subprocess.run(["sh", "-c", f"exec '{PROGRAM}' nothing >&-"], stderr=subprocess.PIPE, check=False, timeout=60)
    assert result.returncode == 2


def test_no_colours_in_a_pipe():
    assert "\x1b" not in good("pfi", SAMPLE) + good("compare", SAMPLE, "--cut=30")


def test_any_locale():
    plain = good("pfi", SAMPLE)
    for locale in ("de_DE.UTF-8", "C", "tr_TR.UTF-8"):
        assert good("pfi", SAMPLE, env={"LC_ALL": locale, "LANG": locale}) == plain


if __name__ == "__main__":
    harness.main(globals())
