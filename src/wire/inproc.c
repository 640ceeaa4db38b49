/* SPDX-License-Identifier: Apache-2.0 */
/* The wire inside one process: a heap of copies by time of arrival, then by order of sending. */
#include "wire/wire.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define N_KINDS (WW_WIRE_COMMAND + 1)
#define LONGEST_DELAY_US (24 * 3600 * WW_SECOND_US)

/* A copy on its way, or a free one of its kind. */
struct parcel {
	struct parcel *next_free;
	enum ww_wire_kind kind;
	uint32_t node;
	_Alignas(8) uint8_t bytes[]; /* one struct of its kind */
};

struct arrival {
	int64_t at_us;
	uint64_t order;
	struct parcel *parcel;
};

struct ww_wire {
	struct ww_wire_faults faults;
	struct ww_rng rng;
	struct ww_wire_counts counts;
	uint64_t order;
	struct arrival *heap; /* the earliest first */
	size_t n, room;
	struct parcel *free[N_KINDS];
	struct parcel *handed; /* out with the last ww_wire_receive */
	uint32_t n_nodes;
	bool cut[];
};

static size_t size_of(enum ww_wire_kind kind)
{
	static const size_t sizes[N_KINDS] = {sizeof(struct ww_sample), sizeof(struct ww_ack), sizeof(struct ww_hello),
	                                      sizeof(struct ww_command)};
	return sizes[kind];
}

/* ---- Faults -------------------------------------------------------------------------------------------------------- */

static bool is_share(double v)
{
	return v >= 0 && v <= 1;
}

static ww_status check_faults(const struct ww_wire_faults *f, struct ww_error *err)
{
	if (!is_share(f->loss_frac) || !is_share(f->double_frac) || !is_share(f->late_frac))
		return ww_fail(err, WW_ERR_RANGE, "wire: shares lost %g, doubled %g, late %g must be in 0..1",
		               f->loss_frac, f->double_frac, f->late_frac);
	if (f->delay_least_us < 0 || f->delay_most_us < f->delay_least_us || f->delay_most_us > LONGEST_DELAY_US)
		return ww_fail(err, WW_ERR_RANGE, "wire: delays of %lld..%lld us must rise within 0 and a day",
		               (long long)f->delay_least_us, (long long)f->delay_most_us);
	if (f->late_most_us < 0 || f->late_most_us > LONGEST_DELAY_US)
		return ww_fail(err, WW_ERR_RANGE, "wire: late by at most %lld us must be within 0 and a day",
		               (long long)f->late_most_us);
	return WW_OK;
}

static bool happens(ww_wire *wire, double frac)
{
	return ww_rng_uniform(&wire->rng) < frac;
}

static int64_t up_to(ww_wire *wire, int64_t most_us)
{
	return (int64_t)(ww_rng_uniform(&wire->rng) * (double)(most_us + 1));
}

static int64_t draw_delay(ww_wire *wire)
{
	const struct ww_wire_faults *f = &wire->faults;
	int64_t delay_us = f->delay_least_us + up_to(wire, f->delay_most_us - f->delay_least_us);
	bool late = happens(wire, f->late_frac);
	int64_t more_us = up_to(wire, f->late_most_us);
	wire->counts.late += late;
	return late ? delay_us + more_us : delay_us;
}

/* ---- Create, destroy, set -------------------------------------------------------------------------------------------- */

ww_status ww_wire_create(uint32_t n_nodes, const struct ww_wire_faults *faults, uint64_t seed, ww_wire **out,
                         struct ww_error *err)
{
	ww_status status = check_faults(faults, err);
	if (status != WW_OK)
		return status;
	ww_wire *wire = calloc(1, sizeof *wire + n_nodes * sizeof *wire->cut);
	if (!wire)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	wire->faults = *faults;
	wire->n_nodes = n_nodes;
	ww_rng_seed(&wire->rng, seed);
	*out = wire;
	return WW_OK;
}

static void free_list(struct parcel *parcel)
{
	while (parcel) {
		struct parcel *next = parcel->next_free;
		free(parcel);
		parcel = next;
	}
}

void ww_wire_destroy(ww_wire *wire)
{
	if (!wire)
		return;
	for (size_t i = 0; i < wire->n; i++)
		free(wire->heap[i].parcel);
	for (size_t k = 0; k < N_KINDS; k++)
		free_list(wire->free[k]);
	free(wire->handed);
	free(wire->heap);
	free(wire);
}

void ww_wire_set_faults(ww_wire *wire, const struct ww_wire_faults *faults)
{
	assert(check_faults(faults, NULL) == WW_OK);
	wire->faults = *faults;
}

void ww_wire_cut(ww_wire *wire, uint32_t node, bool cut)
{
	assert(node < wire->n_nodes);
	wire->cut[node] = cut;
}

/* ---- Parcels --------------------------------------------------------------------------------------------------------- */

static struct parcel *take_parcel(ww_wire *wire, enum ww_wire_kind kind)
{
	struct parcel *parcel = wire->free[kind];
	if (parcel)
		wire->free[kind] = parcel->next_free;
	else
		parcel = malloc(sizeof *parcel + size_of(kind));
	return parcel;
}

static void give_back(ww_wire *wire, struct parcel *parcel)
{
	parcel->next_free = wire->free[parcel->kind];
	wire->free[parcel->kind] = parcel;
}

static const void *contents(const struct ww_wire_message *message)
{
	switch (message->kind) {
	case WW_WIRE_SAMPLE:
		return message->u.sample;
	case WW_WIRE_ACK:
		return message->u.ack;
	case WW_WIRE_HELLO:
		return message->u.hello;
	case WW_WIRE_COMMAND:
		return message->u.command;
	}
	return NULL;
}

/* ---- The heap -------------------------------------------------------------------------------------------------------- */

static bool is_before(const struct arrival *a, const struct arrival *b)
{
	return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static bool has_room(ww_wire *wire)
{
	size_t room = wire->room ? 2 * wire->room : 64;
	if (wire->n < wire->room)
		return true;
	struct arrival *heap = realloc(wire->heap, room * sizeof *heap);
	if (!heap)
		return false;
	wire->heap = heap;
	wire->room = room;
	return true;
}

static void push(ww_wire *wire, struct arrival arrival)
{
	size_t i = wire->n++;
	for (; i > 0 && is_before(&arrival, &wire->heap[(i - 1) / 2]); i = (i - 1) / 2)
		wire->heap[i] = wire->heap[(i - 1) / 2];
	wire->heap[i] = arrival;
}

static struct parcel *pop(ww_wire *wire)
{
	struct arrival *heap = wire->heap, last = heap[--wire->n];
	struct parcel *first = heap[0].parcel;
	size_t i = 0, child;
	while ((child = 2 * i + 1) < wire->n) {
		child += child + 1 < wire->n && is_before(&heap[child + 1], &heap[child]);
		if (!is_before(&heap[child], &last))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return first;
}

/* ---- Send and receive ------------------------------------------------------------------------------------------------ */

static ww_status post(ww_wire *wire, const struct ww_wire_message *message, int64_t now_us, struct ww_error *err)
{
	struct parcel *parcel = has_room(wire) ? take_parcel(wire, message->kind) : NULL;
	if (!parcel)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	parcel->kind = message->kind;
	parcel->node = message->node;
	memcpy(parcel->bytes, contents(message), size_of(message->kind));
	push(wire, (struct arrival){now_us + draw_delay(wire), wire->order++, parcel});
	return WW_OK;
}

ww_status ww_wire_send(ww_wire *wire, const struct ww_wire_message *message, int64_t now_us, struct ww_error *err)
{
	assert(message->node < wire->n_nodes && (unsigned)message->kind < N_KINDS);
	bool lost = happens(wire, wire->faults.loss_frac), twice = happens(wire, wire->faults.double_frac);
	wire->counts.sent++;
	if (lost || wire->cut[message->node]) {
		wire->counts.lost++;
		return WW_OK;
	}
	ww_status status = post(wire, message, now_us, err);
	if (status == WW_OK && twice) {
		wire->counts.doubled++;
		status = post(wire, message, now_us, err);
	}
	return status;
}

int64_t ww_wire_due_us(const ww_wire *wire)
{
	return wire->n > 0 ? wire->heap[0].at_us : WW_NEVER_US;
}

static void hand_out(ww_wire *wire, struct parcel *parcel, struct ww_wire_message *out)
{
	wire->handed = parcel;
	wire->counts.delivered++;
	out->kind = parcel->kind;
	out->node = parcel->node;
	switch (parcel->kind) {
	case WW_WIRE_SAMPLE:
		out->u.sample = (const void *)parcel->bytes;
		break;
	case WW_WIRE_ACK:
		out->u.ack = (const void *)parcel->bytes;
		break;
	case WW_WIRE_HELLO:
		out->u.hello = (const void *)parcel->bytes;
		break;
	case WW_WIRE_COMMAND:
		out->u.command = (const void *)parcel->bytes;
		break;
	}
}

bool ww_wire_receive(ww_wire *wire, int64_t now_us, struct ww_wire_message *out)
{
	if (wire->handed)
		give_back(wire, wire->handed);
	wire->handed = NULL;
	while (wire->n > 0 && wire->heap[0].at_us <= now_us) {
		struct parcel *parcel = pop(wire);
		if (!wire->cut[parcel->node]) {
			hand_out(wire, parcel, out);
			return true;
		}
		wire->counts.lost++;
		give_back(wire, parcel);
	}
	return false;
}

struct ww_wire_counts ww_wire_counts(const ww_wire *wire)
{
	return wire->counts;
}
