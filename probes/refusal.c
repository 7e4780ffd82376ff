// SPDX-License-Identifier: BSD-2-Clause
/*
 * refusal.c - why the kernel would not take a BPF object: one sentence with cause and way out.
 *
 * Listens to libbpf meanwhile, whose messages go to a function without a context: so the listener
 * stands in a variable of the thread, and loading in two threads at once would mix up their words.
 */
#include "probes/loaded.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static __thread struct refusal *listener;

/* "libbpf: prog 'NAME': ..." */
static void note_program(struct refusal *refusal, const char *message)
{
	static const char before[] = "prog '";
	const char *name = strstr(message, before);
	size_t len;

	if (!name)
		return;
	name += sizeof(before) - 1;
	len = strcspn(name, "'");
	if (len < sizeof(refusal->program)) {
		memcpy(refusal->program, name, len);
		refusal->program[len] = '\0';
	}
}

/* The line of the verifier's log that says what it did not like: before its statistics. */
static void note_verdict(struct refusal *refusal, char *log)
{
	char *line, *rest = log;

	while ((line = strsep(&rest, "\n"))) {
		if (!strncmp(line, "verification time", 17) || !strncmp(line, "processed ", 10))
			break;
		if (line[0])
			snprintf(refusal->words, sizeof(refusal->words), "%s", line);
	}
}

static int listen_to(enum libbpf_print_level level, const char *format, va_list args)
{
	static const char begin[] = "-- BEGIN PROG LOAD LOG --\n";
	char *message, *log;

	if (level != LIBBPF_WARN || !listener || vasprintf(&message, format, args) < 0)
		return 0;
	note_program(listener, message);
	log = strstr(message, begin);
	if (log)
		note_verdict(listener, log + sizeof(begin) - 1);
	free(message);
	return 0;
}

void refusal__listen(struct refusal *refusal)
{
	memset(refusal, 0, sizeof(*refusal));
	listener = refusal;
	refusal->before = libbpf_set_print(listen_to);
}

void refusal__end(struct refusal *refusal)
{
	libbpf_set_print(refusal->before);
	listener = NULL;
}

static bool locked_down(void)
{
	FILE *file = fopen("/sys/kernel/security/lockdown", "re");
	char line[128] = "";
	bool yes;

	if (!file)
		return false;
	yes = fgets(line, sizeof(line), file) && strstr(line, "[confidentiality]");
	fclose(file);
	return yes;
}

static bool too_old(void)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_RAW_TRACEPOINT,
				       BPF_FUNC_ringbuf_reserve_dynptr, NULL) == 0;
}

static bool is_permission(int error)
{
	return error == EPERM || error == EACCES;
}

void refusal__explain(struct refusal *refusal, const char *what, int error, char *err,
		      size_t err_len)
{
	bool has_btf = access("/sys/kernel/btf/vmlinux", F_OK) == 0;

	/* What libbpf says while the cause is looked for is not about that cause. */
	listener = NULL;
	if (!has_btf)
		snprintf(err, err_len,
			 "cannot %s: this kernel does not describe its types (no "
			 "/sys/kernel/btf/vmlinux); boot one that is built with "
			 "CONFIG_DEBUG_INFO_BTF=y",
			 what);
	else if (is_permission(error) && locked_down())
		snprintf(err, err_len,
			 "cannot %s: the kernel is locked down for confidentiality, which bars BPF "
			 "from reading its memory; boot with lockdown=integrity or without",
			 what);
	else if (is_permission(error) && !refusal->words[0])
		snprintf(err, err_len,
			 "cannot %s: no permission; run as root, or with the capabilities CAP_BPF "
			 "and CAP_PERFMON",
			 what);
	else if (too_old())
		snprintf(err, err_len,
			 "cannot %s: the kernel is too old, Linux 5.19 or newer is needed", what);
	else if (error == ENOMEM)
		snprintf(err, err_len,
			 "cannot %s: out of memory; free some, or raise the memory limit of this "
			 "cgroup",
			 what);
	else if (refusal->words[0])
		snprintf(err, err_len, "cannot %s: the kernel refuses the program %s: %s (%s)",
			 what, refusal->program, refusal->words, strerror(error));
	else
		snprintf(err, err_len, "cannot %s: %s", what, strerror(error));
}
