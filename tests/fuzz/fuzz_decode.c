// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz_decode.c - any payload under any type, through the decoder and every sink (G8).
 *
 * Owns nothing but one input: { u16 type; u16 flags } and the payload. The payload lies in memory of
 * exactly its length, so that AddressSanitizer sees a read past it.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/probes.h"
#include "sinks/out.h"
#include "sinks/sink.h"

static const char *const formats[] = {"json", "text"};

static void print(struct out *out, const struct weir_event *event,
		  const struct weir_decoded *decoded)
{
	const struct sink_event item = {
		.event = event, .decoded = decoded, .source = "cpu0", .comm = decoded->comm};
	size_t i;

	for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		sink__find(formats[i])->event(out, &item);
		out__end(out, true, 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static struct out *out;
	struct weir_event event = {.kind = WEIR_KIND_RECORD};
	struct weir_decoded decoded;
	void *payload;

	if (!out)
		out = out__new(open("/dev/null", O_WRONLY | O_CLOEXEC), 65536, NULL, 0);
	if (size < 4)
		return 0;
	memcpy(&event.type, bytes, 2);
	memcpy(&event.flags, bytes + 2, 2);
	event.len = size - 4;
	payload = malloc(event.len);
	memcpy(payload, bytes + 4, event.len);
	event.data = payload;
	if (!probes__decode(&event, &decoded))
		print(out, &event, &decoded);
	free(payload);
	return 0;
}
