// SPDX-License-Identifier: GPL-2.0-only
/* CSV files of replay, --memory and --system: read in order of time, or refused with a word. */
#include "fuzz.h"

#include <unistd.h>

#include "replay/series_csv.h"

static void read_memory(const char *path)
{
	struct weir_memory_reading *readings = NULL;
	struct weir_diag diag = {};
	size_t count = 0;
	int err = weir_memory_csv_read(path, &readings, &count, &diag);

	FUZZ_CHECK(!err == !diag.errors);
	for (size_t i = 1; !err && i < count; i++)
		FUZZ_CHECK(readings[i - 1].time_ns <= readings[i].time_ns);
	free(readings);
	weir_diag_free(&diag);
}

static void read_system(const char *path)
{
	struct weir_system_sample *samples = NULL;
	struct weir_diag diag = {};
	size_t count = 0;
	int err = weir_system_csv_read(path, &samples, &count, &diag);

	FUZZ_CHECK(!err == !diag.errors);
	for (size_t i = 0; !err && i < count; i++) {
		FUZZ_CHECK(samples[i].cpu_micro <= 1000000);
		FUZZ_CHECK(!i || samples[i - 1].time_ns <= samples[i].time_ns);
	}
	free(samples);
	weir_diag_free(&diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char path[FUZZ_PATH_BYTES];
	int fd = fuzz_file(data, bytes);

	read_memory(fuzz_path(fd, path));
	read_system(path);
	close(fd);
	return 0;
}
