/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room base: what every other room builds on, without any knowledge of rules or packets: owners that clean up after
 * themselves, mistakes and how they are shown (diag.h), UTF-8, and text files that a user names.
 *
 * This header has small things that every file needs: owners that clean up after themselves, growing arrays, digests.
 * No I/O. `_cleanup_(f)` calls f(&variable) at the end of the scope; TAKE_PTR and TAKE_FD hand the thing over and
 * disarm the cleanup.
 */
#ifndef WEIR_BASE_UTIL_H
#define WEIR_BASE_UTIL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

#define TAKE_PTR(pointer)                                                                                              \
	({                                                                                                             \
		__typeof__(pointer) *_owner = &(pointer);                                                              \
		__typeof__(pointer) _taken = *_owner;                                                                  \
		*_owner = NULL;                                                                                        \
		_taken;                                                                                                \
	})

#define TAKE_FD(fd)                                                                                                    \
	({                                                                                                             \
		int *_owner = &(fd);                                                                                   \
		int _taken = *_owner;                                                                                  \
		*_owner = -1;                                                                                          \
		_taken;                                                                                                \
	})

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

static inline void weir_freep(void *pointer)
{
	free(*(void **)pointer);
}

static inline void weir_closep(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void weir_fclosep(FILE **file)
{
	if (*file)
		fclose(*file);
}

/*
 * Make room for one more element in the array *items, which holds `count` elements of `item_bytes` each. Returns the
 * new, zeroed element, or NULL if there is no memory (the array is unchanged). The caller increments the count. The
 * capacity is always a power of two, so it needs no field.
 */
void *weir_array_add(void **items, size_t count, size_t item_bytes);

/* Cut these characters off both ends of the text. Returns where it begins now. */
char *weir_trim(char *text, const char *blanks);

/* Sort, and return how many to keep: at most `most`. Whoever collects the first of many has room for twice as many, and
 * calls this whenever that is full, and at the end.
 */
static inline size_t weir_keep_first(void *items, size_t count, size_t most, size_t item_bytes,
				     int (*compare)(const void *left, const void *right))
{
	if (count) /* qsort() takes no NULL */
		qsort(items, count, item_bytes, compare);
	return count < most ? count : most;
}

/* ---- digests, to distinguish things where there is no attacker: FNV-1a, 64 bits (Fowler, Noll, Vo) ---- */

/* The initial value. */
#define WEIR_DIGEST_BASIS 0xcbf29ce484222325ull

static inline uint64_t weir_digest(uint64_t digest, const void *bytes, size_t count)
{
	const uint8_t *at = bytes;

	while (count--)
		digest = (digest ^ *at++) * 0x100000001b3ull;
	return digest;
}

/* The same of 64-bit words, eight times as fast; of what is left at the end, nothing. */
static inline uint64_t weir_digest_words(uint64_t digest, const void *words, size_t bytes)
{
	const uint64_t *at = words;

	for (size_t count = bytes / sizeof(*at); count--;)
		digest = (digest ^ *at++) * 0x100000001b3ull;
	return digest;
}

#endif
