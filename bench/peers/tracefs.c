/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tracefs - a tracer on libtracefs: the kernel's own buffers through tracefs_iterate_raw_events().
 *
 *	tracefs sys|uname|switch FILE COMMAND...
 *
 * In an instance of its own, 8 MiB a CPU. Of calls, those of COMMAND and what it forks. The last line says
 * how many events the kernel dropped or overwrote.
 */
#include <err.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tracefs.h>
#include <unistd.h>

static int print_event(struct tep_event *event, struct tep_record *record, int cpu, void *ctx)
{
	unsigned long long args[6] = {0};
	const char *name = event->name;

	/* The calls' first argument is what the others print, too. */
	if (!strcmp(name, "sys_enter") && record->size >= 16 + (int)sizeof(args))
		memcpy(args, (char *)record->data + 16, sizeof(args));
	else if (!strcmp(name, "sys_enter_newuname") && record->size >= 24)
		memcpy(args, (char *)record->data + 16, 8);
	fprintf(ctx, "%llu %d %s %llx\n", record->ts, cpu, name, args[0]);
	return 0;
}

static void set(struct tracefs_instance *instance, const char *file, const char *value)
{
	if (tracefs_instance_file_write(instance, file, value) < 0)
		err(1, "%s", file);
}

static void enable(struct tracefs_instance *instance, const char *system, const char *event)
{
	if (tracefs_event_enable(instance, system, event))
		err(1, "%s:%s", system, event);
}

static struct tracefs_instance *make_instance(const char *what)
{
	char name[32];
	struct tracefs_instance *instance;

	snprintf(name, sizeof(name), "weir-bench-%d", getpid());
	instance = tracefs_instance_create(name);
	if (!instance)
		err(1, "an instance of tracefs");
	set(instance, "buffer_size_kb", "8192");
	set(instance, "trace_clock", "mono");
	set(instance, "options/event-fork", "1");
	if (!strcmp(what, "switch")) {
		enable(instance, "sched", "sched_switch");
	} else if (!strcmp(what, "uname")) {
		enable(instance, "syscalls", "sys_enter_newuname");
	} else {
		enable(instance, "raw_syscalls", "sys_enter");
		enable(instance, "raw_syscalls", "sys_exit");
	}
	return instance;
}

/* What /sys/kernel/tracing/.../per_cpu/cpuN/stats has as `key`. */
static uint64_t sum_of_stats(struct tracefs_instance *instance, const char *key)
{
	uint64_t sum = 0;

	for (long cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++) {
		char file[64], *text, *at;

		snprintf(file, sizeof(file), "per_cpu/cpu%ld/stats", cpu);
		text = tracefs_instance_file_read(instance, file, NULL);
		at = text ? strstr(text, key) : NULL;
		if (at)
			sum += strtoull(at + strlen(key), NULL, 10);
		free(text);
	}
	return sum;
}

static pid_t start(struct tracefs_instance *instance, bool alone, char **argv)
{
	int go[2];
	char pid_text[16], byte;
	pid_t pid;

	if (pipe(go))
		err(1, "pipe");
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		close(go[1]);
		if (read(go[0], &byte, 1) < 0)
			err(1, "pipe");
		execvp(argv[0], argv);
		err(127, "%s", argv[0]);
	}
	snprintf(pid_text, sizeof(pid_text), "%d", pid);
	if (alone)
		set(instance, "set_event_pid", pid_text);
	close(go[0]);
	close(go[1]);
	return pid;
}

int main(int argc, char **argv)
{
	const char *systems[] = {"raw_syscalls", "syscalls", "sched", NULL};
	struct tracefs_instance *instance;
	struct tep_handle *tep;
	int status;
	FILE *out;
	pid_t pid;

	if (argc < 4)
		errx(2, "usage: tracefs sys|uname|switch FILE COMMAND...");
	instance = make_instance(argv[1]);
	tep = tracefs_local_events_system(NULL, systems);
	out = fopen(argv[2], "we");
	if (!tep || !out)
		err(1, "%s", tep ? argv[2] : "the events");
	pid = start(instance, strcmp(argv[1], "switch"), argv + 3);
	while (!waitpid(pid, &status, WNOHANG))
		if (tracefs_iterate_raw_events(tep, instance, NULL, 0, print_event, out) < 0)
			usleep(1000);
	tracefs_trace_off(instance);
	tracefs_iterate_raw_events(tep, instance, NULL, 0, print_event, out);
	fprintf(out, "lost %" PRIu64 "\n",
		sum_of_stats(instance, "overrun: ") + sum_of_stats(instance, "dropped events: "));
	if (fclose(out))
		err(1, "%s", argv[2]);
	tracefs_instance_destroy(instance);
	return status ? 1 : 0;
}
