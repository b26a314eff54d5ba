// SPDX-License-Identifier: GPL-2.0-only
/*
 * notified: the ear of a service manager. Binds the datagram socket that NOTIFY_SOCKET is to name, says "listening",
 * and prints each line that it receives, until it is ended.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int main(int argc, char **argv)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char text[4096];
	ssize_t bytes;
	int fd;

	if (argc != 2 || strlen(argv[1]) >= sizeof(address.sun_path)) {
		fputs("usage: notified SOCKET\n", stderr);
		return 2;
	}
	memcpy(address.sun_path, argv[1], strlen(argv[1]));
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address))) {
		perror("notified");
		return 1;
	}
	puts("listening");
	fflush(stdout);
	while ((bytes = recv(fd, text, sizeof(text), 0)) >= 0) {
		fwrite(text, 1, bytes, stdout);
		fflush(stdout);
	}
	return 1;
}
