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
	WW_NUMBER_SEPARATORS,    /* 1.210.5, 1 210 or 1'210 */
	/* Only from ww_number_read_unit: */
	WW_NUMBER_NO_UNIT,      /* 12 where 12 kW is meant */
	WW_NUMBER_OTHER_UNIT,   /* a unit that does not belong here, or one where none does */
	WW_NUMBER_LEADING_ZERO, /* 010, which YAML and C read as 8 */
	WW_NUMBER_NOT_WHOLE,    /* 1.5, -1 or 1e3 where things are counted */
	WW_NUMBER_TOO_LARGE,    /* a count above 2^31 */
};

/*
 * Reads a decimal number ("12", "-0.5", "1.5e3") from `length` bytes, blanks around it allowed, independent of the
 * locale. The whole text must be the number and shorter than 1024 bytes; one too small for a double is 0. `out` is
 * untouched unless WW_NUMBER_OK is returned.
 */
enum ww_number_fault ww_number_read(const char *text, size_t length, double *out);

/* What is wrong and what to write instead, for the end of an error line. */
const char *ww_number_fault_text(enum ww_number_fault fault);

/* What a number counts, for texts in which people write its unit. */
enum ww_unit {
	WW_UNIT_NONE,     /* "1.5": no unit allowed */
	WW_UNIT_WHOLE,    /* "64": digits only, 0 to 2^31 */
	WW_UNIT_PERCENT,  /* "30%" or "30 %": the sign required; read as a fraction, 0.3 */
	WW_UNIT_POWER,    /* "300 W", "12.5kW", "2 MW": the unit required, in just these letters; read as watts */
	WW_UNIT_DURATION, /* "20 us", "500 ms", "30 s", "5 min", "2h": the unit required; read as seconds */
};

/*
 * Reads a number and its unit; between them and around them blanks may stand. The number is as for ww_number_read, but
 * no zero may stand before its first digit ("010"; "0" and "0.5" are fine). Neither sign nor size is judged but for
 * WW_UNIT_WHOLE. `out` is untouched unless WW_NUMBER_OK is returned.
 */
enum ww_number_fault ww_number_read_unit(const char *text, size_t length, enum ww_unit unit, double *out);

/* What is wrong with a number that has this unit, without the remedy: "has no unit". Static. */
const char *ww_unit_fault_text(enum ww_number_fault fault);

/* How to write a number with this unit: "write a percentage, like 30%". Static. */
const char *ww_unit_remedy(enum ww_unit unit);

/* ---- near.c: names that were meant, perhaps ----------------------------------------------------------------------- */

#define WW_NEAR_MAX 3

/* Begins with `wanted` set and the rest zero; all names are borrowed. */
struct ww_near {
	const char *wanted;
	size_t n, n_all;
	size_t distance[WW_NEAR_MAX];   /* letters to change */
	const char *names[WW_NEAR_MAX]; /* the nearest of those that are near at all, best first */
	const char *first[WW_NEAR_MAX]; /* the first of all */
};

/* Tells of one more name that there is. */
void ww_near_add(struct ww_near *near, const char *name);

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
uint64_t ww_sum_bytes(const void *bytes, size_t n); /* tells torn from whole on this machine; not against malice */
uint64_t ww_hash_text(const char *text);            /* stable hash of a name, for seeds and identities */

/* ---- buf.c: bytes that are written and read back, the same on every machine ---------------------------------------- */

/* All zero is an empty buffer. */
struct ww_buf {
	uint8_t *bytes;
	size_t n, room;
	bool failed; /* memory ran out while writing: `bytes` are not whole */
};

void ww_buf_finish(struct ww_buf *buf); /* frees; the struct may be reused */
void ww_buf_clear(struct ww_buf *buf);  /* empty, the room kept */
void ww_buf_u8(struct ww_buf *buf, uint8_t v);
void ww_buf_u32(struct ww_buf *buf, uint32_t v);
void ww_buf_u64(struct ww_buf *buf, uint64_t v);
void ww_buf_i64(struct ww_buf *buf, int64_t v);
void ww_buf_f32(struct ww_buf *buf, float v); /* bits: a NAN stays the NAN it was */
void ww_buf_f64(struct ww_buf *buf, double v);
void ww_buf_bytes(struct ww_buf *buf, const void *bytes, size_t n);
void ww_buf_text(struct ww_buf *buf, const char *text); /* length and bytes */

/* Reads what ww_buf_* wrote. After the first read past the end, or a value that a caller refused with ww_read_bad, `bad` is
 * set and every read gives 0: one check at the end is enough. */
struct ww_read {
	const uint8_t *bytes;
	size_t n, at;
	bool bad;
};

uint8_t ww_read_u8(struct ww_read *read);
uint32_t ww_read_u32(struct ww_read *read);
uint64_t ww_read_u64(struct ww_read *read);
int64_t ww_read_i64(struct ww_read *read);
float ww_read_f32(struct ww_read *read);
double ww_read_f64(struct ww_read *read);
void ww_read_bytes(struct ww_read *read, void *to, size_t n);
void ww_read_text(struct ww_read *read, char *to, size_t size); /* bad when it does not fit or holds a NUL */
/* A number of things to come, each at least `least_bytes` long: bad above `most` or when so many cannot follow. */
uint32_t ww_read_count(struct ww_read *read, uint32_t most, size_t least_bytes);
void ww_read_bad(struct ww_read *read);

/* ---- Time is an argument ------------------------------------------------------------------------------------------- */

/* mono_us never goes back and means nothing on another machine or after a boot; wall_us is UTC since 1970. */
struct ww_now {
	int64_t mono_us, wall_us;
};

#define WW_SECOND_US INT64_C(1000000)
#define WW_NEVER_US INT64_MAX

/* Far from the ends of their range, so that sums with durations stay whole. */
static inline bool ww_time_is_sound(struct ww_now now)
{
	const int64_t latest_us = INT64_MAX / 16;
	return now.mono_us > -latest_us && now.mono_us < latest_us && now.wall_us > -latest_us &&
	       now.wall_us < latest_us;
}

/* ---- Edge half: clock.c, source.c ----------------------------------------------------------------------------------- */

struct ww_clock {
	struct ww_now (*now)(void *ctx);
	void *ctx;
};

/* The machine's own clocks. */
struct ww_clock ww_clock_real(void);

/* Runs `speed` times as fast as the machine's from the moment of its set-up on; for demonstrations. */
struct ww_scaled_clock {
	struct ww_now start, base; /* base: the machine's time at set-up */
	double speed;
};
struct ww_clock ww_clock_scaled(struct ww_scaled_clock *state, double speed);

/* Stands still until it is set; for tests and simulation. */
struct ww_manual_clock {
	struct ww_now now;
};
struct ww_clock ww_clock_manual(struct ww_manual_clock *state);

/* An edge: something that has work at certain times or when a descriptor is readable. */
struct ww_source {
	int (*fd)(void *ctx);         /* descriptor to wait on, -1 or a NULL function: none */
	int64_t (*due_us)(void *ctx); /* mono_us of its next work, WW_NEVER_US = none known */
	void (*dispatch)(void *ctx, struct ww_now now);
	void *ctx;
};

/* Steps sources in virtual time: the clock jumps from one due time to the next. Sources due at the same time run in the
 * order of the array. */
struct ww_driver {
	struct ww_manual_clock *clock;
	const struct ww_source *sources; /* borrowed */
	size_t n;
};

/* Runs all work that is due up to and including `until_us` (mono) and sets the clock there. The wall clock moves along
 * with the monotonic one. A source that stays due after its dispatch runs again at the same time. */
void ww_driver_run(struct ww_driver *driver, int64_t until_us);

#endif
