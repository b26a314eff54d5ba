/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the clients of crowd have open, for echo_server: a file that both map, a byte for each port of each client, by
 * the last byte of its address. Set when a connection is open, and taken back before the client ends it: a packet that
 * ends it may be evaluated, and then lie with a CPU that stands still while the server still has the connection.
 */
#ifndef WEIR_TEST_SHOWN_H
#define WEIR_TEST_SHOWN_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SHOWN_BYTES (256 * 65536) /* mostly a hole */

static inline volatile uint8_t *shown_at(volatile uint8_t *shown, struct in_addr address, uint16_t port)
{
	return &shown[(ntohl(address.s_addr) & 255) << 16 | port];
}

static inline uint8_t *shown_map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	void *map = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, SHOWN_BYTES))
		map = mmap(NULL, SHOWN_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	close(fd);
	return map;
}

#endif
