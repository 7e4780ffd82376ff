// SPDX-License-Identifier: BSD-2-Clause
/*
 * paths - opens files whose names stand on pages that are not in memory at the call.
 *
 *	paths FILE COUNT
 *
 * Writes the n-th name, "/nowhere/N", to the n-th page of FILE, lets go of the page, and opens the
 * name from there. No such file exists. Prints "opened COUNT".
 */
#include "load.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define PAGE 4096u

/* As it is on disk: neither in this process's page table nor, if the kernel heeds us, in its cache. */
static void drop(int fd, char *page, off_t at)
{
	if (madvise(page, PAGE, MADV_DONTNEED))
		err(1, "madvise");
	posix_fadvise(fd, at, PAGE, POSIX_FADV_DONTNEED);
}

int main(int argc, char **argv)
{
	int fd, count;
	char *pages;

	if (argc != 3)
		errx(1, "see the source");
	count = atoi(argv[2]);
	fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)count * PAGE))
		err(1, "%s", argv[1]);
	pages = mmap(NULL, (size_t)count * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (pages == MAP_FAILED)
		err(1, "mmap");
	/* No neighbours are mapped along with a page that is touched. */
	madvise(pages, (size_t)count * PAGE, MADV_RANDOM);
	for (int n = 0; n < count; n++)
		snprintf(pages + (size_t)n * PAGE, PAGE, "/nowhere/%d", n);
	if (msync(pages, (size_t)count * PAGE, MS_SYNC))
		err(1, "msync");

	load__wait_for_go();
	for (int n = 0; n < count; n++) {
		char *page = pages + (size_t)n * PAGE;

		drop(fd, page, (off_t)n * PAGE);
		if (syscall(SYS_openat, AT_FDCWD, page, O_RDONLY) >= 0)
			errx(1, "a file that does not exist");
	}
	printf("opened %d\n", count);
	return 0;
}
