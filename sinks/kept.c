// SPDX-License-Identifier: BSD-2-Clause
/*
 * kept.c - how a kept text is made.
 */
#include "sinks/kept.h"

#include <stdarg.h>
#include <stdio.h>

bool kept__print(char *text, size_t room, uint8_t *len, const char *format, ...)
{
	va_list args;
	int needed;

	va_start(args, format);
	needed = vsnprintf(text, room, format, args);
	va_end(args);
	*len = (uint8_t)needed;
	return needed >= 0 && (size_t)needed < room && room <= UINT8_MAX;
}

const struct kept_shape *kept_shape__make(struct kept_shape *kept, const struct weir_decoded *d,
					  kept_shape_make make)
{
	bool fits = d->nargs <= KEPT_ARGS && make(kept, d);

	kept->shape = fits ? d->shape : 0;
	return fits ? kept : NULL;
}
