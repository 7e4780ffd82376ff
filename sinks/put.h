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

/* Eight characters from one word, the first of them in its lowest byte. */
static inline char *put_word(char *p, uint64_t chars)
{
	if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
		chars = __builtin_bswap64(chars);
	memcpy(p, &chars, sizeof(chars));
	return p + sizeof(chars);
}

#define PUT_ONES  0x0101010101010101ull
#define PUT_HIGHS 0x8080808080808080ull
#define PUT_ZEROS (PUT_ONES * '0')

/*
 * 0 to 99,999,999 as eight digits, one in a byte: halved three times, all parts of a step by one
 * multiplication. Quotients by 100 and by 10 are exact for what can stand there.
 */
static inline uint64_t put_split_8(uint32_t v)
{
	uint64_t x = (uint64_t)(v % 10000) << 32 | v / 10000, high;

	high = (x * 10486 >> 20) & 0x0000007f0000007fu;
	x = (x << 16) - high * ((100u << 16) - 1);
	high = (x * 103 >> 10) & 0x000f000f000f000fu;
	return (x << 8) - high * ((10u << 8) - 1);
}

/* 0 to 99,999,999, eight digits. */
static inline char *put_8(char *p, uint32_t v)
{
	return put_word(p, put_split_8(v) | PUT_ZEROS);
}

/* 0 to 999,999,999, nine digits: the part of a time behind the point. */
static inline char *put_9(char *p, uint32_t v)
{
	*p = (char)('0' + v / 100000000);
	return put_8(p + 1, v % 100000000);
}

/* 0 to 999, three digits: the part of a duration behind the point. */
static inline char *put_3(char *p, uint32_t v)
{
	*p = (char)('0' + v / 100);
	return put_2(p + 1, v % 100);
}

/* Eight of the room are written, whatever lies behind the digits. */
static inline char *put_digits(char *p, uint64_t v)
{
	uint64_t digits;
	unsigned int zeros;

	if (v > 99999999)
		return put_8(put_digits(p, v / 100000000), (uint32_t)(v % 100000000));
	digits = put_split_8((uint32_t)v);
	zeros = (unsigned int)__builtin_ctzll(digits | 1ull << 56) / 8; /* one digit at least */
	put_word(p, digits >> 8 * zeros | PUT_ZEROS);
	return p + 8 - zeros;
}

/* Most numbers are descriptors, counts and results: small. */
static inline char *put_u64(char *p, uint64_t v)
{
	if (v < 10) {
		*p = (char)('0' + v);
		return p + 1;
	}
	return put_digits(p, v);
}

static inline char *put_i64(char *p, int64_t v)
{
	if (v >= 0)
		return put_u64(p, (uint64_t)v);
	*p++ = '-';
	return put_u64(p, 0 - (uint64_t)v);
}

/* Eight hex digits of a number, the highest in the lowest byte: each nibble in a byte of one word. */
static inline uint64_t put_split_hex(uint32_t v)
{
	uint64_t x = v, letters;

	x = (x << 16 | x) & 0x0000ffff0000ffffu;
	x = (x << 8 | x) & 0x00ff00ff00ff00ffu;
	x = (x << 4 | x) & 0x0f0f0f0f0f0f0f0fu;
	letters = (x + 6 * PUT_ONES) >> 4 & PUT_ONES; /* 10 to 15 */
	return __builtin_bswap64(x + PUT_ZEROS + letters * ('a' - '0' - 10));
}

/* 0 to 2^32 - 1 without leading zeros. Eight of the room are written. */
static inline char *put_hex_low(char *p, uint32_t v)
{
	unsigned int zeros = (unsigned int)__builtin_clz(v | 1) / 4;

	put_word(p, put_split_hex(v) >> 8 * zeros);
	return p + 8 - zeros;
}

/* 0x..., no leading zeros. */
static inline char *put_hex(char *p, uint64_t v)
{
	p = PUT(p, "0x");
	if (v >> 32)
		return put_word(put_hex_low(p, (uint32_t)(v >> 32)), put_split_hex((uint32_t)v));
	if (v < 10) {
		*p = (char)('0' + v);
		return p + 1;
	}
	return put_hex_low(p, (uint32_t)v);
}

/* Two hex digits. */
static inline char *put_byte(char *p, uint8_t v)
{
	*p++ = put_nibbles[v >> 4];
	*p++ = put_nibbles[v & 15];
	return p;
}

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

static inline bool put_8_plain(char *p, const uint8_t *s)
{
	uint64_t v;

	memcpy(&v, s, sizeof(v));
	if (!put_are_plain(v))
		return false;
	memcpy(p, &v, sizeof(v));
	return true;
}

/* 4 to 7 bytes, as the first four and the last four of them. */
static inline bool put_4_plain(char *p, const uint8_t *s, size_t len)
{
	uint32_t first, last;

	memcpy(&first, s, sizeof(first));
	memcpy(&last, s + len - sizeof(last), sizeof(last));
	if (!put_are_plain((uint64_t)last << 32 | first))
		return false;
	memcpy(p, &first, sizeof(first));
	memcpy(p + len - sizeof(last), &last, sizeof(last));
	return true;
}

/* The bytes up to the first that does not stand for itself; *s moves behind them. */
static inline char *put_plain(char *p, const uint8_t **s, const uint8_t *end)
{
	const uint8_t *at = *s;
	size_t left = (size_t)(end - at);

	for (; left >= 8 && put_8_plain(p, at); left -= 8) {
		p += 8;
		at += 8;
	}
	if (left >= 4 && left < 8 && put_4_plain(p, at, left)) {
		p += left;
		at += left;
	}
	while (at < end && put_is_plain(*at))
		*p++ = (char)*at++;
	*s = at;
	return p;
}

/*
 * A text that was made before, in steps of 16: from memory that ends with a step, into room for as
 * much. Faster than a copy of just its length.
 */
#define PUT_STEP	 16
#define PUT_STEPS(bytes) (((bytes) + PUT_STEP - 1) / PUT_STEP * PUT_STEP)

static inline char *put_steps(char *p, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i += PUT_STEP)
		memcpy(p + i, text + i, PUT_STEP);
	return p + len;
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
