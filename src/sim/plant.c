/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim.h"
