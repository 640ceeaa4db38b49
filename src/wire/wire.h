/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire: carries messages between nodes and the controller. Here the wire inside one process, whose faults are seeded: the
 * same seed loses, doubles, delays and reorders the same messages.
 */
#ifndef WW_WIRE_H
#define WW_WIRE_H

#include "msg/msg.h"

enum ww_wire_kind { WW_WIRE_SAMPLE, WW_WIRE_ACK, WW_WIRE_HELLO, WW_WIRE_COMMAND };

struct ww_wire_message {
	enum ww_wire_kind kind;
	uint32_t node; /* sender, or for a command receiver */
	union {
		const struct ww_sample *sample;
		const struct ww_ack *ack;
		const struct ww_hello *hello;
		const struct ww_command *command;
	} u; /* borrowed */
};

/* Probabilities are per message. Messages overtake each other as their delays say. */
struct ww_wire_faults {
	double loss_frac, double_frac;
	int64_t delay_least_us, delay_most_us; /* uniform between */
	double late_frac;                      /* so many are late by up to late_most_us more */
	int64_t late_most_us;
};

typedef struct ww_wire ww_wire;

ww_status ww_wire_create(uint32_t n_nodes, const struct ww_wire_faults *faults, uint64_t seed, ww_wire **out,
                         struct ww_error *err) WW_MUST_CHECK;
void ww_wire_destroy(ww_wire *wire);

/* From now on. */
void ww_wire_set_faults(ww_wire *wire, const struct ww_wire_faults *faults);

/* Cuts or joins a node: while cut nothing passes either way, also what is on its way. */
void ww_wire_cut(ww_wire *wire, uint32_t node, bool cut);

/* Copies the message. WW_ERR_NOMEM. */
ww_status ww_wire_send(ww_wire *wire, const struct ww_wire_message *message, int64_t now_us, struct ww_error *err)
	WW_MUST_CHECK;

/* mono_us of the next arrival, WW_NEVER_US = none on its way. */
int64_t ww_wire_due_us(const ww_wire *wire);

/* The next message that has arrived by now, false when there is none. Valid until the next call on the wire. */
bool ww_wire_receive(ww_wire *wire, int64_t now_us, struct ww_wire_message *out);

struct ww_wire_counts {
	uint64_t sent, lost, doubled, late, delivered;
};
struct ww_wire_counts ww_wire_counts(const ww_wire *wire);

#endif
