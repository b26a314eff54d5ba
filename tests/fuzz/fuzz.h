/* SPDX-License-Identifier: GPL-2.0-only */
/* What the fuzz targets share. Each *_fuzz.c is a program of its own: libFuzzer's main() calls its function. */
#ifndef WEIR_TEST_FUZZ_H
#define WEIR_TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* libFuzzer's names. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes); // NOLINT(readability-identifier-naming)

/* What must hold of every input: else libFuzzer keeps the input and says where. */
#define FUZZ_CHECK(what)                                                                                               \
	do {                                                                                                           \
		if (!(what)) {                                                                                         \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #what);                      \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

/* A file of these bytes that has no name in any directory: opened by fuzz_path(fd), closed by the caller. */
int fuzz_file(const uint8_t *data, size_t bytes);

#define FUZZ_PATH_BYTES 32
const char *fuzz_path(int fd, char ret_path[FUZZ_PATH_BYTES]);

#endif
