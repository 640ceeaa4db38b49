/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of numbers on any bytes; what it accepts must be what printf gives back, bit by bit. */
#include "fuzz.h"

#include <math.h>
#include <stdio.h>

/* The same bytes with each unit: a bare number is read as ww_number_read reads it, or refused. */
static void check_units(const char *text, size_t size, enum ww_number_fault bare, double bare_value)
{
	for (int unit = WW_UNIT_NONE; unit <= WW_UNIT_DURATION; unit++) {
		double value = -77.25;
		enum ww_number_fault fault = ww_number_read_unit(text, size, (enum ww_unit)unit, &value);
		require(strlen(ww_unit_fault_text(fault)) > 0);
		require(fault == WW_NUMBER_OK ? isfinite(value) : value == -77.25);
		if (unit == WW_UNIT_NONE && fault == WW_NUMBER_OK)
			require(bare == WW_NUMBER_OK && value == bare_value);
		if (unit == WW_UNIT_WHOLE && fault == WW_NUMBER_OK)
			require(value >= 0 && value <= 0x1p31 && value == floor(value));
		if (unit >= WW_UNIT_PERCENT)
			require(fault != WW_NUMBER_OK || bare != WW_NUMBER_OK);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	double value = -77.25, again = 0;
	char *text = malloc(size + 1); /* of its exact size, so that a byte read too far is seen */
	char printed[64];

	require(text != NULL);
	memcpy(text, data, size);
	char *exact = realloc(text, size ? size : 1);
	require(exact != NULL);
	enum ww_number_fault fault = ww_number_read(exact, size, &value);
	require(strlen(ww_number_fault_text(fault)) > 0);
	if (fault == WW_NUMBER_OK) {
		require(isfinite(value));
		for (size_t i = 0; i < size; i++)
			require(strchr("0123456789.eE+- \t", exact[i]) != NULL && exact[i] != '\0');
		snprintf(printed, sizeof printed, "%.17g", value);
		require(ww_number_read(printed, strlen(printed), &again) == WW_NUMBER_OK);
		require(again == value && !signbit(again) == !signbit(value));
	} else {
		require(value == -77.25);
	}
	check_units(exact, size, fault, value);
	free(exact);
	return 0;
}
