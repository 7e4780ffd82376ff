/* SPDX-License-Identifier: BSD-2-Clause */
#include "source/reason.h"

#include <stdarg.h>
#include <stdio.h>

int reason__say(const struct reason *reason, int result, const char *format, ...)
{
	va_list args;

	if (!reason->text || !reason->len)
		return result;
	va_start(args, format);
	vsnprintf(reason->text, reason->len, format, args);
	va_end(args);
	return result;
}
