/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * records.h - records built by hand, and decoded ones as text, so that a test is one line.
 */
#ifndef TEST_RECORDS_H
#define TEST_RECORDS_H

#include <weir/decode.h>
#include <weir/probes.h>

struct record {
	uint16_t type;
	uint32_t len;
	_Alignas(8) char bytes[1024];
};

/* A record that is its fixed part so far; record__add() and record__add_blob() go behind it. */
struct record record__new(uint16_t type, const void *fixed, size_t len);
void record__add(struct record *record, const void *bytes, size_t len);
void record__add_blob(struct record *record, struct weir_blob blob, const void *bytes);

#define RECORD(type, payload) record__new(type, &(payload), sizeof(payload))

/*
 * Decodes a copy that ends where its memory ends, so that a sanitizer sees a step too far. The
 * result points into the copy, which the next call frees.
 */
int record__decode(const struct record *record, struct weir_decoded *out);

/*
 * A decoded record as text; valid until the next call:
 *
 *	event pid/tid 'comm' syscall(nr)@abi name=value ...
 *
 * What is absent is left out; an argument's flags follow its value as ~cut or ~unread.
 */
const char *record__text(const struct weir_decoded *decoded);

/* One whole record of each type, and those with something behind them in every form. */
extern const size_t sample_count;
struct record sample__get(size_t index);

#endif /* TEST_RECORDS_H */
