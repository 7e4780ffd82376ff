/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * put.h - numbers -> digits, into plain memory.
 *
 * Each function writes at p and returns where it ended; the caller has made room. No locale, no
 * format strings: a line holds a dozen numbers, and there are up to a million lines a second.
 */
#ifndef WEIR_SINKS_PUT_H
#define WEIR_SINKS_PUT_H

#include <stdbool.h>
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

/* 0 to 999, three digits: the part of a duration behind the point. */
static inline char *put_3(char *p, uint32_t v)
{
	*p = (char)('0' + v / 100);
	return put_2(p + 1, v % 100);
}

static inline char *put_digits(char *p, uint64_t v)
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

/* Most numbers are descriptors, counts and results: small. */
static inline char *put_u64(char *p, uint64_t v)
{
	if (v < 10) {
		*p = (char)('0' + v);
		return p + 1;
	}
	return v < 100 ? put_2(p, (uint32_t)v) : put_digits(p, v);
}

static inline char *put_i64(char *p, int64_t v)
{
	if (v >= 0)
		return put_u64(p, (uint64_t)v);
	*p++ = '-';
	return put_u64(p, 0 - (uint64_t)v);
}

/* Eight hex digits of a number as bytes, the highest in front: each nibble in a byte of one word. */
static inline char *put_hex_8(char *p, uint32_t v)
{
	const uint64_t ones = 0x0101010101010101u;
	uint64_t x = v, letters;

	x = (x << 16 | x) & 0x0000ffff0000ffffu;
	x = (x << 8 | x) & 0x00ff00ff00ff00ffu;
	x = (x << 4 | x) & 0x0f0f0f0f0f0f0f0fu;
	letters = (x + 6 * ones) >> 4 & ones; /* 10 to 15 */
	x = __builtin_bswap64(x + '0' * ones + letters * ('a' - '0' - 10));
	if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
		x = __builtin_bswap64(x);
	memcpy(p, &x, sizeof(x));
	return p + sizeof(x);
}

/* 0x..., no leading zeros. */
static inline char *put_hex(char *p, uint64_t v)
{
	unsigned int zeros = v ? (unsigned int)__builtin_clzll(v) / 4 : 15;
	char digits[32] = {0};

	put_hex_8(put_hex_8(digits, (uint32_t)(v >> 32)), (uint32_t)v);
	p = PUT(p, "0x");
	memcpy(p, digits + zeros, 16); /* all of the room, whatever lies behind the digits */
	return p + 16 - zeros;
}

/* Two hex digits. */
static inline char *put_byte(char *p, uint8_t v)
{
	*p++ = put_nibbles[v >> 4];
	*p++ = put_nibbles[v & 15];
	return p;
}

#define PUT_ONES  0x0101010101010101ull
#define PUT_HIGHS 0x8080808080808080ull

/* Do eight bytes all stand for themselves: 0x20 to 0x7e, neither quote nor backslash? */
static inline bool put_are_plain(uint64_t v)
{
	uint64_t quote = v ^ (PUT_ONES * '"'), slash = v ^ (PUT_ONES * '\\'),
		 del = v ^ (PUT_ONES * 0x7f);

	return !((v | (v - PUT_ONES * 0x20) | (quote - PUT_ONES) | (slash - PUT_ONES) |
		  (del - PUT_ONES)) &
		 PUT_HIGHS);
}

static inline bool put_is_plain(uint8_t c)
{
	static const bool plain[256] = {
		[0x20 ... '"' - 1] = true,
		['"' + 1 ... '\\' - 1] = true,
		['\\' + 1 ... 0x7e] = true,
	};

	return plain[c];
}

/* The bytes up to the first that does not stand for itself; *s moves behind them. */
static inline char *put_plain(char *p, const uint8_t **s, const uint8_t *end)
{
	const uint8_t *at = *s;
	uint64_t v;

	while (end - at >= 8) {
		memcpy(&v, at, sizeof(v));
		if (!put_are_plain(v))
			break;
		memcpy(p, &v, sizeof(v));
		p += sizeof(v);
		at += sizeof(v);
	}
	while (at < end && put_is_plain(*at))
		*p++ = (char)*at++;
	*s = at;
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
