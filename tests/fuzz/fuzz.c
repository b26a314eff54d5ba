// SPDX-License-Identifier: GPL-2.0-only
#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

int fuzz_file(const uint8_t *data, size_t bytes)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	FUZZ_CHECK(fd >= 0);
	for (size_t written = 0; written < bytes;) {
		ssize_t more = write(fd, data + written, bytes - written);

		FUZZ_CHECK(more > 0);
		written += (size_t)more;
	}
	return fd;
}

const char *fuzz_path(int fd, char ret_path[FUZZ_PATH_BYTES])
{
	snprintf(ret_path, FUZZ_PATH_BYTES, "/proc/self/fd/%d", fd);
	return ret_path;
}
