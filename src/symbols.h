/* SPDX-License-Identifier: BSD-2-Clause */
/* symbols.h - what the shared library exports; all else is hidden (-fvisibility=hidden). */
#ifndef WEIR_SYMBOLS_H
#define WEIR_SYMBOLS_H

#define WEIR_API __attribute__((visibility("default")))

#endif /* WEIR_SYMBOLS_H */
