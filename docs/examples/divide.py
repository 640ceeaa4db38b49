#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""divide.py [LIBRARY]: divides a power budget among three jobs on two feeds; divide.c in Python, through ctypes.

LIBRARY is libwattweir.so.0 unless given. The structures are those of wattweir.h, field by field; a later version of
the library may have others, so the soname is part of the name.
"""
import ctypes
import sys
from ctypes import POINTER, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from math import nan

WW_PFI_OK = 0
WW_ACCOUNT_CAP = 0
WW_OBJECTIVE_RELATIVE = 0
WW_MAX_KNOTS = 16


class Error(ctypes.Structure):
    _fields_ = [("code", c_int), ("text", c_char * 512)]


class Point(ctypes.Structure):
    _fields_ = [("cap_w", c_double), ("power_w", c_double), ("throughput", c_double), ("power_se_w", c_double),
                ("throughput_se", c_double), ("throttle", c_int64)]


class Pfi(ctypes.Structure):
    _fields_ = [("status", c_int), ("flags", c_uint32), ("n_caps", c_uint32), ("fit_lo_w", c_double),
                ("fit_hi_w", c_double), ("p0_w", c_double), ("t0", c_double), ("pfi_ls", c_double),
                ("pfi_ls_lo", c_double), ("pfi_ls_hi", c_double), ("pfi_30", c_double), ("max_cut_frac", c_double),
                ("r2", c_double), ("noise_frac", c_double)]


class PfiOptions(ctypes.Structure):
    _fields_ = [("cap_lo_w", c_double), ("cap_hi_w", c_double), ("noise_frac", c_double), ("draws", c_uint32),
                ("seed", c_uint64)]


class Knot(ctypes.Structure):
    _fields_ = [("cut_frac", c_double), ("loss_frac", c_double), ("slope", c_double)]


class Curve(ctypes.Structure):
    _fields_ = [("p0_w", c_double), ("t0_tps", c_double), ("max_cut_frac", c_double), ("var_a", c_double),
                ("var_b", c_double), ("cov_ab", c_double), ("n", c_uint32), ("flags", c_uint32), ("status", c_int),
                ("k", Knot * WW_MAX_KNOTS)]


class FitPoint(ctypes.Structure):
    _fields_ = [("cut_frac", c_double), ("loss_frac", c_double)]


class Fit(ctypes.Structure):
    _fields_ = [("points", POINTER(FitPoint)), ("n", c_size_t), ("noise_frac", c_double), ("p0_w", c_double),
                ("t0_tps", c_double)]


class RowShare(ctypes.Structure):
    _fields_ = [("row", c_uint32), ("gpus", c_double)]


class AllocJob(ctypes.Structure):
    _fields_ = [("id", c_uint64), ("gpus", c_uint32), ("n_rows", c_uint32), ("tier", c_int), ("weight", c_double),
                ("floor_frac", c_double), ("min_w", c_double), ("max_w", c_double), ("curve", POINTER(Curve)),
                ("rows", POINTER(RowShare))]


class AllocRow(ctypes.Structure):
    _fields_ = [("budget_w", c_double)]


class AllocProblem(ctypes.Structure):
    _fields_ = [("jobs", POINTER(AllocJob)), ("n_jobs", c_size_t), ("rows", POINTER(AllocRow)), ("n_rows", c_size_t),
                ("budget_w", c_double), ("objective", c_int), ("explore", c_int),
                ("fresh", c_int)]


class AllocShare(ctypes.Structure):
    _fields_ = [("cut_frac", c_double), ("throughput_frac", c_double), ("equal_cut_frac", c_double),
                ("box_cut_frac", c_double), ("floor_frac", c_double), ("trust", c_double)]


class AllocRowResult(ctypes.Structure):
    _fields_ = [("power_w", c_double), ("price", c_double), ("missing_w", c_double), ("over_w", c_double)]


class AllocSummary(ctypes.Structure):
    _fields_ = [("outcome", c_int), ("sweeps", c_uint), ("value", c_double), ("bound", c_double),
                ("bound_gap_frac", c_double), ("shrink", c_double)]


def load(path):
    """The library with the types of the calls used here. Without them ctypes would cut pointers to 32 bits."""
    lib = ctypes.CDLL(path)
    error = POINTER(Error)
    for name, result, arguments in (
            ("ww_pfi_estimate", c_int, [POINTER(Point), c_size_t, POINTER(PfiOptions), POINTER(Pfi), error]),
            ("ww_curve_measure", c_int, [POINTER(Point), c_size_t, POINTER(PfiOptions), c_int, POINTER(Curve), error]),
            ("ww_curve_fit", c_int, [POINTER(Fit), POINTER(Curve), error]),
            ("ww_alloc_create", c_int, [POINTER(c_void_p), error]),
            ("ww_alloc_destroy", None, [c_void_p]),
            ("ww_alloc_set", c_int, [c_void_p, POINTER(AllocProblem), error]),
            ("ww_alloc_run", c_int, [c_void_p, c_uint]),
            ("ww_alloc_shares", POINTER(AllocShare), [c_void_p]),
            ("ww_alloc_rows", POINTER(AllocRowResult), [c_void_p]),
            ("ww_alloc_result", AllocSummary, [c_void_p]),
            ("ww_outcome_name", c_char_p, [c_int])):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


def check(call, *arguments):
    """Calls what returns a ww_status and takes the error last."""
    error = Error()
    if call(*arguments, error):
        sys.exit("divide: " + error.text.decode())


NAMES = ["pretrain", "vision", "finetune"]
BUDGET_W = 14000.0


def sweep(*rows):
    """Cap, draw per GPU, throughput of the job. No errors are known, no throttle reasons recorded."""
    return (Point * len(rows))(*(Point(*row, nan, nan, -1) for row in rows))


PRETRAIN = sweep((700, 684, 41800), (700, 686, 41500), (600, 594, 39400), (600, 595, 39700), (500, 496, 36200),
                 (500, 495, 36000), (400, 397, 30800), (400, 398, 31100), (300, 299, 22600))
VISION = sweep((700, 561, 5230), (600, 560, 5215), (500, 488, 5110), (400, 396, 4800), (300, 299, 4120))
FINETUNE = (FitPoint * 2)((0.15, 0.04), (0.35, 0.15))


def measure(lib):
    """The curves of the three jobs, in caps: the budget is to hold whatever the jobs do."""
    options = PfiOptions(0.0, 1e300, 0.01, 2000, 1)
    pfi = Pfi()
    check(lib.ww_pfi_estimate, PRETRAIN, len(PRETRAIN), options, pfi)
    if pfi.status == WW_PFI_OK:
        print(f"{NAMES[0]}: PFI {pfi.pfi_ls:.3f} for caps from {pfi.fit_lo_w:.0f} to {pfi.fit_hi_w:.0f} W, "
              f"90 % interval {pfi.pfi_ls_lo:.3f} to {pfi.pfi_ls_hi:.3f}")
    curves = (Curve * 3)()
    check(lib.ww_curve_measure, PRETRAIN, len(PRETRAIN), options, WW_ACCOUNT_CAP, curves[0])
    check(lib.ww_curve_measure, VISION, len(VISION), options, WW_ACCOUNT_CAP, curves[1])
    check(lib.ww_curve_fit, Fit(FINETUNE, len(FINETUNE), options.noise_frac, 600, 8800), curves[2])
    return curves


def make_job(number, curve, shares, gpus, tier, floor):
    """A job with its GPUs for weight. ctypes keeps alive what the pointers of a structure point to."""
    rows = (RowShare * len(shares))(*shares)
    return AllocJob(number, gpus, len(shares), tier, gpus, floor, 200, 0, ctypes.pointer(curve), rows)


def print_division(lib, alloc, jobs):
    share, row, result = lib.ww_alloc_shares(alloc), lib.ww_alloc_rows(alloc), lib.ww_alloc_result(alloc)
    for i, job in enumerate(jobs):
        p0_w = job.curve.contents.p0_w
        print(f"{NAMES[i]:8} {job.gpus:2} GPUs: cap {p0_w * (1 - share[i].cut_frac):.1f} W "
              f"({p0_w * (1 - share[i].equal_cut_frac):.1f} W by an equal cut), "
              f"keeps {share[i].throughput_frac:.4f} of its throughput, floor {share[i].floor_frac:.2f}")
    for r in range(2):
        print(f"feed {r}: {row[r].power_w:.1f} W, one kilowatt more is worth {1000 * row[r].price:.4f}")
    print(f"budget: {row[2].power_w:.1f} W of {BUDGET_W:.1f} W, one kilowatt more is worth {1000 * row[2].price:.4f}")
    print(f"{lib.ww_outcome_name(result.outcome).decode()}: value {result.value:.6f} on the trusted curves, "
          f"no division has more than {result.bound:.6f}")


def divide(lib, curves):
    jobs = (AllocJob * 3)(make_job(1, curves[0], [(0, 16)], 16, 1, 0.75), make_job(2, curves[1], [(1, 8)], 8, 3, 0.5),
                          make_job(3, curves[2], [(0, 4), (1, 4)], 8, 2, 0.5))
    rows = (AllocRow * 2)((9200,), (5000,))
    problem = AllocProblem(jobs, 3, rows, 2, BUDGET_W, WW_OBJECTIVE_RELATIVE, 0)
    alloc = c_void_p()
    check(lib.ww_alloc_create, alloc)
    try:
        check(lib.ww_alloc_set, alloc, problem)
        lib.ww_alloc_run(alloc, 100)
        print_division(lib, alloc, jobs)
    finally:
        lib.ww_alloc_destroy(alloc)


def main():
    lib = load(sys.argv[1] if len(sys.argv) > 1 else "libwattweir.so.0")
    divide(lib, measure(lib))


if __name__ == "__main__":
    main()
