/* SPDX-License-Identifier: Apache-2.0 */
/* Included before every source that clang-tidy reads: ww_fail returns its code, which the analyzer cannot see. */
#include "base/base.h"

#define ww_fail(err, code, ...) (ww_fail((err), (code), __VA_ARGS__), (code))
