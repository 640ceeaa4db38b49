/* SPDX-License-Identifier: Apache-2.0 */
/* Words for what messages name. */
#include "msg/msg.h"

const char *ww_boundary_name(enum ww_boundary boundary)
{
	static const char *const names[] = {"gpu", "it", "meter"};
	return boundary < WW_N_BOUNDARIES ? names[boundary] : "?";
}

const char *ww_class_name(enum ww_class cls)
{
	static const char *const names[] = {"contract", "protection"};
	return cls < WW_N_CLASSES ? names[cls] : "?";
}

const char *ww_mode_name(enum ww_mode mode)
{
	static const char *const names[] = {"enforce", "freeze", "disengage"};
	return mode < WW_N_MODES ? names[mode] : "?";
}
