/* SPDX-License-Identifier: BSD-2-Clause */
/* sanitized.h - which sanitizer this is built with: gcc defines a macro, clang answers when asked. */
#ifndef WEIR_SANITIZED_H
#define WEIR_SANITIZED_H

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SANITIZED_ADDRESS 1
#else
#define SANITIZED_ADDRESS 0
#endif

#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define SANITIZED_THREAD 1
#else
#define SANITIZED_THREAD 0
#endif

#endif /* WEIR_SANITIZED_H */
