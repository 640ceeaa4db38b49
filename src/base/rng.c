/* SPDX-License-Identifier: Apache-2.0 */
/* xoshiro256** seeded by splitmix64, both by Blackman and Vigna (public domain algorithms). */
#include "base/base.h"

#include <math.h>
#include <string.h>

static uint64_t splitmix64(uint64_t *state)
{
	uint64_t z = *state += 0x9E3779B97F4A7C15u;
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

static uint64_t rotate(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

void ww_rng_seed(struct ww_rng *rng, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		rng->s[i] = splitmix64(&seed);
	rng->spare = NAN;
}

uint64_t ww_rng_u64(struct ww_rng *rng)
{
	uint64_t *s = rng->s, result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate(s[3], 45);
	return result;
}

double ww_rng_uniform(struct ww_rng *rng)
{
	return (double)(ww_rng_u64(rng) >> 11) * 0x1p-53;
}

/* Lemire's multiplication with rejection of the unfair remainder. */
uint32_t ww_rng_below(struct ww_rng *rng, uint32_t bound)
{
	uint32_t unfair = -bound % bound;
	uint64_t product;
	do
		product = (ww_rng_u64(rng) >> 32) * bound;
	while ((uint32_t)product < unfair);
	return (uint32_t)(product >> 32);
}

/* The C library's log differs by a last bit between machines; +, * and / do not. 0 < x < 1. */
static double same_log(double x)
{
	int exponent;
	double m = frexp(x, &exponent), term, sum = 0;
	if (m < 0.70710678118654752) {
		m *= 2;
		exponent--;
	}
	double f = (m - 1) / (m + 1), f2 = f * f; /* |f| < 0.172: log m = 2 atanh f */
	term = f;
	for (int k = 1; k < 27; k += 2) {
		sum += term / k;
		term *= f2;
	}
	return exponent * 0.69314718055994531 + 2 * sum;
}

/* Marsaglia's polar method. */
double ww_rng_normal(struct ww_rng *rng)
{
	double x, y, r2;
	if (!isnan(rng->spare)) {
		x = rng->spare;
		rng->spare = NAN;
		return x;
	}
	do {
		x = 2 * ww_rng_uniform(rng) - 1;
		y = 2 * ww_rng_uniform(rng) - 1;
		r2 = x * x + y * y;
	} while (r2 >= 1 || r2 == 0);
	double scale = sqrt(-2 * same_log(r2) / r2);
	rng->spare = y * scale;
	return x * scale;
}

uint64_t ww_hash_text(const char *text)
{
	uint64_t hash = 0xCBF29CE484222325u; /* FNV-1a */
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001B3u;
	return hash;
}

uint64_t ww_sum_bytes(const void *bytes, size_t n)
{
	uint64_t sum = n * 0x9E3779B97F4A7C15u, word;
	const unsigned char *at = bytes;
	for (; n > 0; at += n < 8 ? n : 8, n -= n < 8 ? n : 8) {
		word = 0;
		memcpy(&word, at, n < 8 ? n : 8);
		sum = (sum ^ word) * 0xD6E8FEB86659FD93u; /* each step can be undone: no single change is lost */
		sum ^= sum >> 32;
	}
	return sum;
}
