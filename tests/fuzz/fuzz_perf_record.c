// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz_perf_record.c - one record of a perf ring under any layout (G8).
 *
 * The record lies in memory of exactly its length, so that AddressSanitizer sees a read past it.
 */
#include "perf_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct input in = {bytes, size};
	struct perf_layout layout;
	void *record;
	size_t len;

	if (!input__layout(&in, &layout))
		return 0;
	len = in.left;
	record = malloc(len ? len : 1);
	input__take(&in, record, len);
	check_record(&layout, record, (uint32_t)len);
	free(record);
	return 0;
}
