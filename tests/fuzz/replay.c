// SPDX-License-Identifier: BSD-2-Clause
/*
 * replay.c - runs a fuzz target over the files of a folder, without libFuzzer.
 *
 *	replay DIRECTORY
 *
 * Fails when there is none. What a file does wrong ends the program, as it does under the fuzzer; its
 * name stands in the last line.
 */
#include <dirent.h>
#include <stdio.h>

#include "fuzz.h"

#define INPUT_MAX 65536

static int is_file(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* From memory of exactly its length. */
static void run(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	memcpy(copy, bytes, len);
	LLVMFuzzerTestOneInput(copy, len);
	free(copy);
}

static int replay(const char *directory, const char *name)
{
	static uint8_t bytes[INPUT_MAX];
	char path[4096];
	size_t len;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "rb");
	if (!file) {
		perror(path);
		return -1;
	}
	len = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	run(bytes, len);
	return 0;
}

int main(int argc, char **argv)
{
	FILE *report = stdout; /* a target may turn its own off */
	struct dirent **entries;
	int i, count;

	count = argc == 2 ? scandir(argv[1], &entries, is_file, alphasort) : -1;
	if (count <= 0) {
		fprintf(stderr, "replay: no inputs\n");
		return 1;
	}
	for (i = 0; i < count; i++) {
		fprintf(report, "%s\n", entries[i]->d_name);
		fflush(report);
		if (replay(argv[1], entries[i]->d_name))
			return 1;
		free(entries[i]);
	}
	free(entries);
	return 0;
}
