/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base, pure half: what every other room stands on. No clock, file, thread or log.
 */
#ifndef WW_BASE_H
#define WW_BASE_H

#include "wattweir.h"

#include <stdbool.h>

/* ---- error.c --------------------------------------------------------------------------------------------------- */

/* Fills `err` (may be NULL) and returns `code`, so that reporting and returning is one statement. Text is cut to fit;
 * control characters and invalid UTF-8 in it are replaced by '?', so that a hostile name cannot break the one line. */
ww_status ww_fail(struct ww_error *err, ww_status code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Bytes (1 to 4) of the well-formed UTF-8 character at `text`, of which `length` bytes may be read; 0 when it is none. */
size_t ww_utf8_char(const char *text, size_t length);

/* True for a character of `length` bytes that a terminal obeys instead of showing: C0, DEL, C1, separators of lines, and
 * marks that reorder text. */
bool ww_utf8_is_control(const char *text, size_t length);

/* ---- numbers.c: the only reader of numbers written by people and other programs ----------------------------------- */

enum ww_number_fault {
	WW_NUMBER_OK = 0,
	WW_NUMBER_EMPTY,         /* nothing but blanks */
	WW_NUMBER_NOT_A_NUMBER,  /* text, hexadecimal, a unit or anything else behind the digits */
	WW_NUMBER_DECIMAL_COMMA, /* 1,5 */
	WW_NUMBER_NOT_FINITE,    /* nan, inf, 1e999 */
};

/*
 * Reads a decimal number ("12", "-0.5", "1.5e3") from `length` bytes, blanks around it allowed, independent of the
 * locale. The whole text must be the number and shorter than 1024 bytes; one too small for a double is 0. `out` is
 * untouched unless WW_NUMBER_OK is returned.
 */
enum ww_number_fault ww_number_read(const char *text, size_t length, double *out);

/* What is wrong and what to write instead, for the end of an error line. */
const char *ww_number_fault_text(enum ww_number_fault fault);

/* ---- rng.c: seeded, the same sequence on every machine ----------------------------------------------------------- */

struct ww_rng {
	uint64_t s[4];
	double spare; /* second normal of a pair, NAN when none */
};

void ww_rng_seed(struct ww_rng *rng, uint64_t seed);
uint64_t ww_rng_u64(struct ww_rng *rng);
double ww_rng_uniform(struct ww_rng *rng);                 /* [0, 1) */
uint32_t ww_rng_below(struct ww_rng *rng, uint32_t bound); /* 0 .. bound-1, bound > 0, unbiased */
double ww_rng_normal(struct ww_rng *rng);                  /* mean 0, sd 1 */
uint64_t ww_hash_text(const char *text);                   /* stable hash of a name, for seeds */

#endif
