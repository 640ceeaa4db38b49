/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces that the checks and the encoders of msg share. Each reader sets read->bad where the value is not what it says. */
#ifndef WW_MSG_INTERNAL_H
#define WW_MSG_INTERNAL_H

#include "msg/msg.h"

#define LONGEST_US (INT64_C(400) * 24 * 3600 * WW_SECOND_US) /* of a duration: sums with times of now stay in range */

/* A duration of 0 .. LONGEST_US. */
ww_status msg_check_duration(int64_t us, const char *what, struct ww_error *err) WW_MUST_CHECK;
ww_status msg_check_reading(const struct ww_reading *v, const char *what, struct ww_error *err) WW_MUST_CHECK;
/* Ends inside its array and is UTF-8 without control characters. */
ww_status msg_check_name(const char name[WW_NAME_MAX], const char *what, struct ww_error *err) WW_MUST_CHECK;

void msg_put_reading(struct ww_buf *buf, const struct ww_reading *v);
struct ww_reading msg_read_reading(struct ww_read *read);

uint8_t msg_read_below(struct ww_read *read, uint8_t bound); /* 0 .. bound - 1 */
bool msg_read_flag(struct ww_read *read);                    /* 0 or 1 */
float msg_read_cap(struct ww_read *read);                    /* finite or NAN */
double msg_read_finite(struct ww_read *read);
double msg_read_known(struct ww_read *read); /* finite or NAN */

#endif
