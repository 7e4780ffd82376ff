// SPDX-License-Identifier: BSD-2-Clause
/* Container ids and units from cgroup paths: what the runtimes write, and what nobody should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "state/container.h"

/* clang-format off */
#define A "0d1fe44cdd4ce0e9c2a7f3b5d8e6a1b4c7f0e3d6b9a2c5f8e1d4b7a0c3f6e9d2"
#define B "9bca8d63d5fa610783847915bcff0ecac1273e5b4bed3f6fa1b07350e0135961"
#define POD "pod2c48913c-b29f-11e7-9350-020968147796"
#define POD_ "pod2c48913c_b29f_11e7_9350_020968147796"
#define BURST "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-" POD_ ".slice"
#define USER "/user.slice/user-1000.slice/user@1000.service"
#define HEX63 "0d1fe44cdd4ce0e9c2a7f3b5d8e6a1b4c7f0e3d6b9a2c5f8e1d4b7a0c3f6e9d"

static const struct {
	const char *path, *id, *unit;
} paths[] = {
	/* docker */
	{"/docker/" A, A, ""},
	{"/docker/" A "/init.scope", A, "init.scope"},
	{"/docker/" A "/system.slice/nginx.service", A, "nginx.service"},
	{"/system.slice/docker-" A ".scope", A, "docker-" A ".scope"},
	{"/system.slice/docker-" A ".scope/system.slice/cron.service", A, "cron.service"},
	{"/my-parent/" A, A, ""},
	{"/" A, A, ""},
	{"/system.slice:docker:" A, A, ""},
	{USER "/user.slice/docker-" A ".scope", A, "docker-" A ".scope"},
	/* containerd, by Kubernetes and alone */
	{"/kubepods/burstable/" POD "/" A, A, ""},
	{"/kubepods/" POD "/" A, A, ""},
	{BURST "/cri-containerd-" A ".scope", A, "cri-containerd-" A ".scope"},
	{BURST "/docker-" A ".scope", A, "docker-" A ".scope"},
	{"/system.slice/containerd.service/kubepods-burstable-" POD_ ".slice:cri-containerd:" A, A, "containerd.service"},
	{"/kubepods-besteffort-" POD_ ".slice:cri-containerd:" A, A, ""},
	{"/system.slice/nerdctl-" A ".scope", A, "nerdctl-" A ".scope"},
	{"/default/" A, A, ""},
	{"/ecs/f3b5d8e6a1b4c7f0e3d6b9a2c5f8e1d4/" A, A, ""},
	{"/../../" POD "/" A, A, ""},
	/* cri-o */
	{BURST "/crio-" A ".scope", A, "crio-" A ".scope"},
	{BURST "/crio-" A ".scope/container", A, "crio-" A ".scope"},
	{"/kubepods/besteffort/" POD "/crio-" A, A, ""},
	{BURST "/crio-conmon-" A ".scope", "", "crio-conmon-" A ".scope"},
	{"/kubepods/" POD "/crio-conmon-" A, "", ""},
	/* podman */
	{"/machine.slice/libpod-" A ".scope", A, "libpod-" A ".scope"},
	{"/machine.slice/libpod-" A ".scope/container", A, "libpod-" A ".scope"},
	{"/libpod_parent/libpod-" A, A, ""},
	{USER "/user.slice/libpod-" A ".scope/container", A, "libpod-" A ".scope"},
	{"/system.slice/web.service/libpod-payload-" A, A, "web.service"},
	{USER "/app.slice/web.service/libpod-payload-" A "/system.slice/x.service", A, "x.service"},
	{"/machine.slice/libpod-conmon-" A ".scope", "", "libpod-conmon-" A ".scope"},
	{"/libpod_parent/libpod-" A "/system.slice/var-lib-docker-" B "-mounts-shm.mount", A, "var-lib-docker-" B "-mounts-shm.mount"},
	/* one within another: the inner one */
	{"/docker/" A "/docker/" B, B, ""},
	{"/docker/" A "/kubelet/kubepods/besteffort/" POD "/" B, B, ""},
	{"/docker/" A "/kubelet/kubepods/besteffort/" POD "/crio-conmon-" B, A, ""},
	{"/lxc/100/ns/system.slice/docker-" A ".scope", A, "docker-" A ".scope"},
	/* lxc */
	{"/lxc/web", "web", ""},
	{"/lxc/100/ns/init.scope", "100", "init.scope"},
	{"/lxc.payload.mail/system.slice/postfix.service", "mail", "postfix.service"},
	{"/lxc.payload/mail", "mail", ""},
	{"/system.slice/lxc.payload.web-01.scope", "web-01", "lxc.payload.web-01.scope"},
	{"/lxc.payload.outer/lxc.payload.inner", "inner", ""},
	{"/lxc.monitor.mail", "", ""},
	{"/lxc", "", ""},
	{"/lxc/", "", ""},
	{"/lxc.payload.", "", ""},
	/* systemd-nspawn, libvirt */
	{"/machine.slice/systemd-nspawn@jammy.service/payload/init.scope", "jammy", "init.scope"},
	{"/machine.slice/systemd-nspawn@jammy.service", "jammy", "systemd-nspawn@jammy.service"},
	{"/machine.slice/systemd-nspawn@jammy.service/supervisor", "", "systemd-nspawn@jammy.service"},
	{"/machine.slice/systemd-nspawn@my\\x2dbox.service/payload", "my-box", "systemd-nspawn@my\\x2dbox.service"},
	{"/machine.slice/machine-debian.scope", "debian", "machine-debian.scope"},
	{"/machine.slice/machine-lxc\\x2d12\\x2ddemo.scope/libvirt", "lxc-12-demo", "machine-lxc\\x2d12\\x2ddemo.scope"},
	{"/machine/demo.libvirt-lxc", "demo", ""},
	{"/machine.slice/machine-qemu\\x2d3\\x2dvm.scope/libvirt/emulator", "", "machine-qemu\\x2d3\\x2dvm.scope"},
	{"/machine.slice/systemd-nspawn@a\\x2.service", "a\\x2", "systemd-nspawn@a\\x2.service"},
	{"/machine.slice/systemd-nspawn@a\\x00b.service", "a\\x00b", "systemd-nspawn@a\\x00b.service"},
	/* no container */
	{"/", "", ""},
	{"/init.scope", "", "init.scope"},
	{"/system.slice/sshd.service", "", "sshd.service"},
	{"/system.slice/docker.service", "", "docker.service"},
	{"/system.slice/_cpu.service", "", "cpu.service"},
	{USER "/app.slice/app-gnome-x.scope", "", "app-gnome-x.scope"},
	{"/user.slice/user-1000.slice/session-3.scope", "", "session-3.scope"},
	{"/user.slice", "", ""},
	{BURST, "", ""},
	{"/qemu.slice/100.scope", "", "100.scope"},
	{"/system.slice/.service", "", ""},
	{"/system.slice/a b.service", "", ""},
	/* hostile */
	{"", "", ""},
	{"//", "", ""},
	{A, A, ""},
	{"docker-" A ".scope", A, "docker-" A ".scope"},
	{"/docker/" HEX63, "", ""},
	{"/docker/" A "0", "", ""},
	{"/docker/" HEX63 "g", "", ""},
	{"/docker/" HEX63 "%", "", ""},
	{"/docker/%2f" A, "", ""},
	{"/docker/0D1FE44CDD4CE0E9C2A7F3B5D8E6A1B4C7F0E3D6B9A2C5F8E1D4B7A0C3F6E9D2", "", ""},
	{"/system.slice/docker-" HEX63 ".scope", "", "docker-" HEX63 ".scope"},
	{"/system.slice/" A ".scope", "", A ".scope"},
	{"/system.slice/docker" A ".scope", "", "docker" A ".scope"},
	{"/docker-" A, "", ""},
	{"///docker///" A "///", A, ""},
	{"/\xff\xfe/lxc/\xff", "\xff", ""},
};
/* clang-format on */

#define NR_PATHS (sizeof(paths) / sizeof(paths[0]))

static void expect(const char *what, const char *path, size_t len, const char *got, size_t n,
		   const char *expected)
{
	if (n != strlen(expected) || memcmp(got, expected, n))
		fail_msg("%s of '%.*s' is '%.*s', not '%s'", what, (int)len, path, (int)n, got,
			 expected);
	if (n)
		assert_int_equal(got[n], '\0');
}

static void check(const char *path, size_t len, const char *id, const char *unit)
{
	/* On the heap, so that a sanitizer sees a read behind the path. */
	char *copy = malloc(len ? len : 1);
	char out[CONTAINER_NAME_MAX];

	memcpy(copy, path, len);
	expect("container", path, len, out, container__id(copy, len, out), id);
	expect("unit", path, len, out, container__unit(copy, len, out), unit);
	free(copy);
}

static void test_known_paths(void **state)
{
	for (size_t i = 0; i < NR_PATHS; i++)
		check(paths[i].path, strlen(paths[i].path), paths[i].id, paths[i].unit);
}

/* The length counts, not a NUL: an id cut short is none. */
static void test_every_prefix(void **state)
{
	static const char docker[] = "/docker/" A;

	for (size_t len = 0; len < sizeof(docker) - 1; len++)
		check(docker, len, "", "");
	check(docker, sizeof(docker) - 1, A, "");
}

static void test_overlong(void **state)
{
	char path[4096];

	/* The longest name that a directory can have is one; anything longer is nothing. */
	memset(path, 'a', sizeof(path));
	memcpy(path, "/lxc/", 5);
	for (size_t len = 5 + 250; len <= 5 + 260; len++) {
		char out[CONTAINER_NAME_MAX];

		assert_int_equal(container__id(path, len, out), len - 5 < 256 ? len - 5 : 0);
	}
	check(path, sizeof(path), "", "");
	/* And it does not spoil what stood before it. */
	memcpy(path, "/docker/" A "/lxc/", 8 + 64 + 5);
	check(path, sizeof(path), A, "");
	memcpy(path + sizeof(path) - 8, ".service", 8);
	check(path, sizeof(path), A, "");
	/* A path of nothing but slashes, and of nothing but short names. */
	memset(path, '/', sizeof(path));
	check(path, sizeof(path), "", "");
	for (size_t i = 1; i < sizeof(path); i += 2)
		path[i] = 'l';
	check(path, sizeof(path), "", "");
}

/* Whatever stands next to what, names stay within their bounds and end in a NUL. */
static void test_random_bytes(void **state)
{
	static const char *const parts[] = {
		"/", "lxc", "docker-", A,	   ".scope",	      "machine-", "\\x2d", "\\x",
		":", "-",   HEX63,     ".service", "systemd-nspawn@", "crio-",	  "\0",	   "\xff"};
	uint64_t seed = 42;

	for (int round = 0; round < 20000; round++) {
		char path[1024], out[CONTAINER_NAME_MAX];
		size_t len = 0, n;

		for (int i = 0; i < 12; i++) {
			const char *part;
			size_t part_len;

			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
			part = parts[(seed >> 33) % (sizeof(parts) / sizeof(parts[0]))];
			part_len = part[0] ? strlen(part) : 1;
			memcpy(path + len, part, part_len);
			len += part_len;
		}
		n = container__id(path, len, out);
		assert_true(n < CONTAINER_NAME_MAX);
		assert_true(n == 0 || out[n] == '\0');
		n = container__unit(path, len, out);
		assert_true(n < CONTAINER_NAME_MAX);
		assert_int_equal(out[n], '\0');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_paths),
		cmocka_unit_test(test_every_prefix),
		cmocka_unit_test(test_overlong),
		cmocka_unit_test(test_random_bytes),
	};

	return cmocka_run_group_tests_name("container", tests, NULL, NULL) ? 1 : 0;
}
