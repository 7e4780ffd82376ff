/* SPDX-License-Identifier: BSD-2-Clause */
/* metadata.h - the text that tells every CTF reader what the packets hold. */
#ifndef WEIR_CAPTURE_METADATA_H
#define WEIR_CAPTURE_METADATA_H

#include <stdint.h>
#include <stdio.h>

/* What is told of the trace itself. Strings are borrowed, and may have any bytes. */
struct metadata {
	uint8_t uuid[16];
	char boot_id[37]; /* the clock's uuid: captures of one boot share their clock */
	int64_t wall_offset_ns;
	const char *hostname, *sysname, *release; /* of uname(2) */
	const char *version;			  /* "0.1.0" */
	const char *command;			  /* as it was typed */
	uint32_t command_pid;			  /* of the COMMAND that was run; 0: none */
	uint32_t nr_cpus;			  /* configured */
	uint32_t
		selected_types; /* bit 1 << enum weir_type: the rest is state, kept for their sake */
};

void metadata__write(FILE *file, const struct metadata *metadata);

#endif /* WEIR_CAPTURE_METADATA_H */
