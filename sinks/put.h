/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * put.h - numbers -> digits, into plain memory.
 *
 * Each function writes at p and returns where it ended; the caller has made room. No locale, no
 * format strings: a line holds a dozen numbers, and there are up to a million lines a second.
 */
#ifndef WEIR_SINKS_PUT_H
#define WEIR_SINKS_PUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PUT_U64_MAX 20 /* "18446744073709551615" */
#define PUT_I64_MAX 20 /* "-9223372036854775808" */
#define PUT_HEX_MAX 18 /* "0xffffffffffffffff" */

static const char put_pairs[] =
	"00010203040506070809101112131415161718192021222324252627282930313233"
	"34353637383940414243444546474849505152535455565758596061626364656667"
	"6869707172737475767778798081828384858687888990919293949596979899";

static const char put_nibbles[] = "0123456789abcdef";

/* A string literal, without its NUL. */
#define PUT(p, literal) ((char *)memcpy((p), (literal), sizeof(literal) - 1) + sizeof(literal) - 1)

/* 0 to 99, two digits. */
static inline char *put_2(char *p, uint32_t v)
{
	memcpy(p, put_pairs + 2 * v, 2);
	return p + 2;
}

/* 0 to 999,999,999, nine digits: the part of a time behind the point. */
static inline char *put_9(char *p, uint32_t v)
{
	uint32_t high = v / 100000, low = v % 100000;

	*p++ = (char)('0' + high / 1000);
	high %= 1000;
	p = put_2(p, high / 10);
	*p++ = (char)('0' + high % 10);
	*p++ = (char)('0' + low / 10000);
	low %= 10000;
	p = put_2(p, low / 100);
	return put_2(p, low % 100);
}

static inline char *put_u64(char *p, uint64_t v)
{
	char digits[PUT_U64_MAX];
	char *at = digits + sizeof(digits);
	size_t len;

	while (v >= 100) {
		at -= 2;
		memcpy(at, put_pairs + 2 * (v % 100), 2);
		v /= 100;
	}
	if (v >= 10) {
		at -= 2;
		memcpy(at, put_pairs + 2 * v, 2);
	} else {
		*--at = (char)('0' + v);
	}
	len = (size_t)(digits + sizeof(digits) - at);
	memcpy(p, at, len);
	return p + len;
}

static inline char *put_i64(char *p, int64_t v)
{
	if (v >= 0)
		return put_u64(p, (uint64_t)v);
	*p++ = '-';
	return put_u64(p, 0 - (uint64_t)v);
}

/* 0x..., no leading zeros. */
static inline char *put_hex(char *p, uint64_t v)
{
	int shift = v ? (63 - __builtin_clzll(v)) & ~3 : 0;

	*p++ = '0';
	*p++ = 'x';
	for (; shift >= 0; shift -= 4)
		*p++ = put_nibbles[(v >> shift) & 15];
	return p;
}

/* Two hex digits. */
static inline char *put_byte(char *p, uint8_t v)
{
	*p++ = put_nibbles[v >> 4];
	*p++ = put_nibbles[v & 15];
	return p;
}

/* Seconds since 1970, rounded down also before it, and the nanoseconds above them. */
static inline int64_t wall_sec(int64_t wall_ns, uint32_t *ns)
{
	int64_t sec = wall_ns / 1000000000, rest = wall_ns % 1000000000;

	if (rest < 0) {
		rest += 1000000000;
		sec--;
	}
	*ns = (uint32_t)rest;
	return sec;
}

#endif /* WEIR_SINKS_PUT_H */
