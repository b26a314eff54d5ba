// SPDX-License-Identifier: GPL-2.0-only
/*
 * spacing: send bursts of UDP packets out of one end of a veth, take them from a socket behind the other, and say
 * how they were spaced when they arrived. Both ends are in the present network namespace; the receiving one has
 * the address 10.1.0.254. (A packet socket would not do: it sees what an ifb holds back when it comes in.)
 *
 * Prints one line:
 *
 *	sent N received N disordered N gaps-us least N p10 N median N p90 N most N inside N
 *
 * Gaps are between arrivals by the kernel's stamps; those across the first packet of a burst count as well. INSIDE
 * is how many of 100 gaps are within 20 % of --gap-us.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include "base/util.h"
#include "host/host.h"
#include "tool.h"

#define MILLISECOND_NS 1000000ull
#define PACKETS_MAX 100000
#define RECEIVER "10.1.0.254"
#define SENDER "10.1.0.1"
#define PAYLOAD_BYTES 18 /* the shortest frame that needs no padding */
#define VLAN_BYTES 4
#define PAYLOAD_BYTES_MAX 1472
#define FRAME_BYTES_MAX (ETH_HLEN + 2 * VLAN_BYTES + 20 + 8 + PAYLOAD_BYTES_MAX)

struct frame {
	uint8_t bytes[FRAME_BYTES_MAX];
	size_t length, payload; /* payload: its place */
};

static uint64_t arrivals_ns[PACKETS_MAX];
static size_t arrived, disordered;
static uint32_t next_number;

static void fail(const char *what)
{
	fprintf(stderr, "spacing: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- sending ---- */

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static void read_mac(const char *interface, uint8_t mac[6])
{
	_cleanup_(weir_closep) int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq ifr = {};

	strncpy(ifr.ifr_name, interface, IFNAMSIZ - 1);
	if (fd < 0 || ioctl(fd, SIOCGIFHWADDR, &ifr))
		fail("cannot read the address of the receiving end");
	memcpy(mac, ifr.ifr_hwaddr.sa_data, 6);
}

/* IPv4 and UDP; no UDP checksum (RFC 768 allows that). */
static void put_packet(uint8_t *ip, uint16_t port, uint16_t payload_bytes)
{
	uint32_t sum = 0;

	ip[0] = 0x45;
	put16(ip + 2, 20 + 8 + payload_bytes);
	ip[8] = 64;
	ip[9] = IPPROTO_UDP;
	inet_pton(AF_INET, SENDER, ip + 12);
	inet_pton(AF_INET, RECEIVER, ip + 16);
	for (size_t i = 0; i < 20; i += 2)
		sum += ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	put16(ip + 10, ~((sum & 0xffff) + (sum >> 16)));
	put16(ip + 20, 40000);
	put16(ip + 22, port);
	put16(ip + 24, 8 + payload_bytes);
}

static void build_frame(struct frame *frame, const char *to, uint16_t port, uint16_t vlan, uint16_t payload_bytes)
{
	uint8_t *at = frame->bytes;

	read_mac(to, at);
	memcpy(at + 6, (uint8_t[]){2, 0, 0, 0, 0, 1}, 6);
	at += 12;
	if (vlan) {
		put16(at, ETHERTYPE_VLAN);
		put16(at + 2, vlan);
		at += VLAN_BYTES;
	}
	put16(at, ETHERTYPE_IP);
	put_packet(at + 2, port, payload_bytes);
	frame->payload = at + 2 + 20 + 8 - frame->bytes;
	frame->length = frame->payload + payload_bytes;
}

static void send_burst(int fd, const struct sockaddr_ll *device, struct frame *frame, uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++) {
		memcpy(frame->bytes + frame->payload, &i, sizeof(i));
		if (sendto(fd, frame->bytes, frame->length, 0, (const void *)device, sizeof(*device)) < 0 &&
		    errno != ENOBUFS) /* dropped on its way out: the receiver will miss it */
			fail("cannot send");
	}
}

/* ---- receiving ---- */

static int open_receiver(uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_DGRAM, 0), on = 1, bytes = 8 << 20;

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		fail("cannot open the receiving socket");
	return fd;
}

static void receive_one(int fd)
{
	char control[CMSG_SPACE(sizeof(struct timespec)) + 64];
	uint32_t got;
	struct iovec piece = {&got, sizeof(got)};
	struct msghdr message = {
		.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct timespec stamp = {};

	if (recvmsg(fd, &message, MSG_DONTWAIT) < (ssize_t)sizeof(got) || arrived == PACKETS_MAX)
		return;
	for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); at; at = CMSG_NXTHDR(&message, at))
		if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SO_TIMESTAMPNS)
			memcpy(&stamp, CMSG_DATA(at), sizeof(stamp));
	disordered += got < next_number;
	next_number = got + 1;
	arrivals_ns[arrived++] = stamp.tv_sec * 1000 * MILLISECOND_NS + stamp.tv_nsec;
}

static void receive_until(int fd, uint64_t end_ns)
{
	for (uint64_t at_ns = weir_host_now_ns(); at_ns < end_ns; at_ns = weir_host_now_ns()) {
		struct timespec patience = {.tv_nsec = (end_ns - at_ns) % (1000 * MILLISECOND_NS)};
		struct pollfd ready = {.fd = fd, .events = POLLIN};

		if (ppoll(&ready, 1, &patience, NULL) > 0)
			receive_one(fd);
	}
}

/* ---- the figures ---- */

static int ascending(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

static void report(uint32_t sent, uint64_t gap_ns)
{
	uint64_t *gaps_ns = arrivals_ns; /* turned into gaps in place */
	size_t gaps = arrived ? arrived - 1 : 0, inside = 0;

	for (size_t i = 0; i < gaps; i++) {
		gaps_ns[i] = arrivals_ns[i + 1] - arrivals_ns[i];
		inside += gaps_ns[i] * 10 >= gap_ns * 8 && gaps_ns[i] * 10 <= gap_ns * 12;
	}
	qsort(gaps_ns, gaps, sizeof(*gaps_ns), ascending);
	printf("sent %u received %zu disordered %zu", sent, arrived, disordered);
	if (gaps)
		printf(" gaps-us least %llu p10 %llu median %llu p90 %llu most %llu inside %zu",
		       (unsigned long long)gaps_ns[0] / 1000, (unsigned long long)gaps_ns[gaps / 10] / 1000,
		       (unsigned long long)gaps_ns[gaps / 2] / 1000, (unsigned long long)gaps_ns[gaps * 9 / 10] / 1000,
		       (unsigned long long)gaps_ns[gaps - 1] / 1000, inside * 100 / gaps);
	putchar('\n');
}

static const char help[] = "usage: spacing -o SENDING-END -i RECEIVING-END [options]\n"
			   "  --port N          destination port (9)\n"
			   "  --vlan N          in a VLAN tag\n"
			   "  --payload N       bytes of a packet behind its UDP header (18)\n"
			   "  --burst N         packets of a burst (50)\n"
			   "  --bursts N        how many (40)\n"
			   "  --every-ms N      a burst (50)\n"
			   "  --gap-us N        expected between packets (1000)\n"
			   "  --wait-ms N       for the last ones (1500)\n";

int main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"port", required_argument, NULL, 'p'},
		{"vlan", required_argument, NULL, 'v'},
		{"burst", required_argument, NULL, 'b'},
		{"bursts", required_argument, NULL, 'n'},
		{"every-ms", required_argument, NULL, 'e'},
		{"gap-us", required_argument, NULL, 'g'},
		{"wait-ms", required_argument, NULL, 'w'},
		{"payload", required_argument, NULL, 'l'},
		{},
	};
	uint64_t port = 9, vlan = 0, burst = 50, bursts = 40, every_ms = 50, gap_us = 1000, wait_ms = 1500, start_ns;
	uint64_t payload_bytes = PAYLOAD_BYTES;
	struct sockaddr_ll device = {.sll_family = AF_PACKET, .sll_halen = ETH_ALEN};
	const char *to = NULL;
	struct frame frame = {};
	int option, out_fd, in_fd;

	while ((option = getopt_long(argc, argv, "o:i:", long_options, NULL)) >= 0) {
		switch (option) {
		case 'o':
			device.sll_ifindex = if_nametoindex(optarg);
			break;
		case 'i':
			to = optarg;
			break;
		case 'p':
			port = number("not a number", optarg);
			break;
		case 'v':
			vlan = number("not a number", optarg);
			break;
		case 'b':
			burst = number("not a number", optarg);
			break;
		case 'n':
			bursts = number("not a number", optarg);
			break;
		case 'e':
			every_ms = number("not a number", optarg);
			break;
		case 'g':
			gap_us = number("not a number", optarg);
			break;
		case 'l':
			payload_bytes = number("not a number", optarg);
			break;
		case 'w':
			wait_ms = number("not a number", optarg);
			break;
		default:
			fputs(help, stderr);
			return 2;
		}
	}
	if (!device.sll_ifindex || !to || burst * bursts > PACKETS_MAX || payload_bytes > PAYLOAD_BYTES_MAX) {
		fputs(help, stderr);
		return 2;
	}
	build_frame(&frame, to, port, vlan, payload_bytes);
	in_fd = open_receiver(port);
	out_fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (out_fd < 0)
		fail("cannot open a packet socket");
	start_ns = weir_host_now_ns();
	for (uint64_t i = 0; i < bursts; i++) {
		send_burst(out_fd, &device, &frame, i * burst, burst);
		receive_until(in_fd, start_ns + (i + 1) * every_ms * MILLISECOND_NS);
	}
	receive_until(in_fd, weir_host_now_ns() + wait_ms * MILLISECOND_NS);
	report(burst * bursts, gap_us * 1000);
	return 0;
}
