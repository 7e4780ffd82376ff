// SPDX-License-Identifier: BSD-2-Clause
/* tiny - ends with the status that its first argument says: a child that is little else than a life. */
#include <stdlib.h>

int main(int argc, char **argv)
{
	return argc > 1 ? atoi(argv[1]) : 0;
}
