// SPDX-License-Identifier: BSD-2-Clause
/*
 * pinned - a program as other people write them, whose map is pinned for who wants to look.
 *
 *	pinned KIND COUNT PIN [MS]
 *
 * KIND: `array` of perf events, `ring`, or something that has no records: `counts`, an array, and
 * `program`. Makes COUNT system calls on each CPU in turn, of each of which its BPF program sends a record;
 * with MS it does so each millisecond, for that long. Prints "sent COUNT" of all.
 */
#include "load.h"

#include "tests/live/others.h"
#include "others.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NO_CALL 4095

static int fd_of(const struct others *others, const char *kind)
{
	if (!strcmp(kind, "array"))
		return bpf_map__fd(others->maps.others_events);
	if (!strcmp(kind, "ring"))
		return bpf_map__fd(others->maps.others_ring);
	if (!strcmp(kind, "counts"))
		return bpf_map__fd(others->maps.others_lost);
	return bpf_program__fd(others->progs.others_enter);
}

static uint64_t call_everywhere(unsigned count)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	uint64_t sent = 0;

	for (int cpu = 0; cpu < cpus; cpu++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			continue;
		for (unsigned i = 0; i < count; i++, sent++)
			syscall(NO_CALL);
	}
	return sent;
}

int main(int argc, char **argv)
{
	struct others *others = others__open();
	uint64_t at_ns, end_ns, sent = 0;

	if (argc < 4 || argc > 5 || !others)
		errx(1, "pinned KIND COUNT PIN [MS]");
	others->rodata->others_nr = NO_CALL;
	others->bss->others_tgid = (__u32)getpid();
	others->bss->others_into_ring = !strcmp(argv[1], "ring");
	if (others__load(others) || others__attach(others))
		errx(1, "cannot load");
	if (bpf_obj_pin(fd_of(others, argv[1]), argv[3]))
		err(1, "%s", argv[3]);
	load__wait_for_go();
	at_ns = load__now_ns();
	end_ns = at_ns + (argc == 5 ? strtoull(argv[4], NULL, 10) * 1000000 : 0);
	do {
		sent += call_everywhere((unsigned)atoi(argv[2]));
		load__sleep_until(at_ns += 1000000);
	} while (load__now_ns() < end_ns);
	unlink(argv[3]);
	others__destroy(others);
	printf("sent %llu\n", (unsigned long long)sent);
	return 0;
}
