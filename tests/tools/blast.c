// SPDX-License-Identifier: GPL-2.0-only
/*
 * blast: send real packets at exact rates, from sources that need not exist. One thread on each CPU
 * sends its share of every source through a packet socket that bypasses the queueing discipline; what
 * is due is worked out from the clock, so that rates hold whatever the sleeping is worth. With --packets it ends when
 * each source has sent as many, however long the machine kept it waiting.
 *
 * Every packet says when it was sent (stamp.h), by the clock of its source: leap windows of 50 ms and more go by the
 * kernel's tick.
 *
 * Prints, every second and at the end, for each source: seconds, source, packets sent so far. All
 * spoofed sources together are "spoofed". Sequence and order of packets are nobody's business. The last line,
 * "held-up US", is the longest pause that a thread made which did not mean to.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/util.h"
#include "host/host.h"
#include "stamp.h"
#include "tool.h"

#define SECOND_NS 1000000000ull
#define SOURCES_MAX 64
#define THREADS_MAX 64
#define FRAME_BYTES_MAX 128
#define BATCH 64 /* packets handed to the kernel in one call */
#define PAUSE_NS_MIN 20000
#define PAUSE_NS_MAX 500000
#define SPOOFED_NET 0x0b000000u /* 11.0.0.0 */
#define SOURCE_PORT 40000	/* the first */

struct source {
	char name[INET6_ADDRSTRLEN];
	int family;
	uint8_t address[16];
	uint64_t rate; /* packets a second */
	uint16_t port; /* 0: the common one */
	uint16_t vlan; /* 0: untagged */
	bool is_tcp;
	clockid_t clock;   /* of its stamps */
	uint32_t ports;	   /* as many source ports, one after the other; 0: always the first */
	uint32_t spoofed;  /* as many addresses, one after the other; 0: this one */
	uint64_t after_ns; /* starts so much later than the others */
	uint8_t frame[FRAME_BYTES_MAX];
	size_t frame_bytes, ip_offset;
};

static struct source sources[SOURCES_MAX];
static size_t source_count;
static _Atomic uint64_t sent[SOURCES_MAX];
static struct sockaddr_ll device = {.sll_family = AF_PACKET};
static unsigned int thread_count;
static uint64_t start_ns, end_ns;
static long pause_ns;	      /* of a thread with nothing to send: until some packets are due, of all sources */
static uint64_t packets_each; /* 0: until end_ns */
static uint64_t backlog_ns;   /* what a thread that was held up makes good; more is not sent */
static atomic_bool stopped;

/* ---- frames ---- */

static uint32_t sum_words(uint32_t sum, const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i + 1 < count; i += 2)
		sum += bytes[i] << 8 | bytes[i + 1];
	return count % 2 ? sum + (bytes[count - 1] << 8) : sum;
}

static void put_checksum(uint8_t *at, uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	at[0] = ~sum >> 8;
	at[1] = ~sum;
}

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = value >> 8;
	at[1] = value;
}

/* Checksums of the IPv4 header and, over the pseudo-header too, of UDP or TCP (RFC 768, 9293, 8200). */
static void put_checksums(uint8_t *ip, bool is_ipv6, bool is_tcp, size_t transport_bytes)
{
	uint8_t *transport = ip + (is_ipv6 ? 40 : 20), *checksum = transport + (is_tcp ? 16 : 6);
	uint32_t sum = (is_tcp ? IPPROTO_TCP : IPPROTO_UDP) + transport_bytes;

	put16(checksum, 0);
	sum = sum_words(sum, is_ipv6 ? ip + 8 : ip + 12, is_ipv6 ? 32 : 8);
	put_checksum(checksum, sum_words(sum, transport, transport_bytes));
	if (!is_ipv6) {
		put16(ip + 10, 0);
		put_checksum(ip + 10, sum_words(0, ip, 20));
	}
}

static void build_frame(struct source *source, const uint8_t destination_mac[6], const uint8_t destination[16],
			uint16_t port)
{
	bool is_ipv6 = source->family == AF_INET6;
	size_t transport_bytes = (source->is_tcp ? 20 : 8) + STAMP_PAYLOAD_BYTES, header_bytes = is_ipv6 ? 40 : 20;
	uint8_t *at = source->frame;

	memcpy(at, destination_mac, 6);
	memcpy(at + 6, (uint8_t[]){2, 0, 0, 0, 0, 1}, 6);
	at += 12;
	if (source->vlan) {
		put16(at, ETHERTYPE_VLAN);
		put16(at + 2, source->vlan);
		at += 4;
	}
	put16(at, is_ipv6 ? ETHERTYPE_IPV6 : ETHERTYPE_IP);
	at += 2;
	source->ip_offset = at - source->frame;
	if (is_ipv6) {
		at[0] = 0x60;
		put16(at + 4, transport_bytes);
		at[6] = source->is_tcp ? IPPROTO_TCP : IPPROTO_UDP;
		at[7] = 64;
		memcpy(at + 8, source->address, 16);
		memcpy(at + 24, destination, 16);
	} else {
		at[0] = 0x45;
		put16(at + 2, header_bytes + transport_bytes);
		at[8] = 64;
		at[9] = source->is_tcp ? IPPROTO_TCP : IPPROTO_UDP;
		memcpy(at + 12, source->address, 4);
		memcpy(at + 16, destination, 4);
	}
	put16(at + header_bytes, SOURCE_PORT);
	put16(at + header_bytes + 2, source->port ? source->port : port);
	if (source->is_tcp) {
		at[header_bytes + 12] = 5 << 4;
		at[header_bytes + 13] = 0x02; /* SYN: nobody merges these on the way */
		put16(at + header_bytes + 14, 65535);
	} else {
		put16(at + header_bytes + 4, transport_bytes);
	}
	put_checksums(at, is_ipv6, source->is_tcp, transport_bytes);
	source->frame_bytes = source->ip_offset + header_bytes + transport_bytes;
}

/* Address number `index` instead of the one the frame was built with. */
static void spoof(const struct source *source, uint8_t *frame, uint32_t index)
{
	uint32_t address = htonl(SPOOFED_NET + index % source->spoofed);

	memcpy(frame + source->ip_offset + 12, &address, sizeof(address));
	put_checksums(frame + source->ip_offset, false, source->is_tcp, source->frame_bytes - source->ip_offset - 20);
}

/* Source port number `index`: a SYN from another port is another connection. */
static void change_port(const struct source *source, uint8_t *frame, uint32_t index)
{
	bool is_ipv6 = source->family == AF_INET6;
	uint8_t *ip = frame + source->ip_offset;
	size_t header_bytes = is_ipv6 ? 40 : 20;

	put16(ip + header_bytes, SOURCE_PORT + index % source->ports);
	put_checksums(ip, is_ipv6, source->is_tcp, source->frame_bytes - source->ip_offset - header_bytes);
}

/* ---- sending ---- */

struct sender {
	pthread_t thread;
	unsigned int which;
	int socket;
	uint64_t held_up_ns;
	uint64_t sent[SOURCES_MAX]; /* or given up, having been held up for too long */
	uint8_t frames[BATCH][FRAME_BYTES_MAX];
	struct iovec pieces[BATCH];
	struct mmsghdr messages[BATCH];
};

static bool is_done(void)
{
	if (stopped || !packets_each)
		return stopped || weir_host_now_ns() >= end_ns;
	for (size_t i = 0; i < source_count; i++)
		if (sent[i] < packets_each)
			return false;
	return true;
}

/* Packets of the source by now, of all threads. */
static uint64_t due_by_now(const struct source *source, uint64_t elapsed_ns)
{
	uint64_t due;

	if (elapsed_ns < source->after_ns)
		return 0;
	due = (unsigned __int128)(elapsed_ns - source->after_ns) * source->rate / SECOND_NS;
	return packets_each && due > packets_each ? packets_each : due;
}

/* Packets of the source that this thread should have sent by now and has not; at most a batch. */
static unsigned int due_packets(struct sender *self, size_t which_source, uint64_t elapsed_ns)
{
	const struct source *source = &sources[which_source];
	/* Shares are taken one packet after the other, so that they add up to the rate. */
	uint64_t due = (due_by_now(source, elapsed_ns) + thread_count - 1 - self->which) / thread_count;
	uint64_t backlog_max = source->rate * backlog_ns / SECOND_NS / thread_count + 1;

	if (due <= self->sent[which_source])
		return 0;
	if (!packets_each && due - self->sent[which_source] > backlog_max)
		self->sent[which_source] = due - backlog_max;
	due -= self->sent[which_source];
	return due < BATCH ? due : BATCH;
}

/* A time before which nothing that is sent now is evaluated, by the source's clock. The coarse clock shows when the
 * tick was updated, by as many whole ticks as had passed: the latest one's own time is less than a tick before.
 */
static uint64_t stamp_of(const struct source *source)
{
	struct timespec now, tick = {};

	clock_gettime(source->clock, &now);
	if (source->clock == CLOCK_MONOTONIC_COARSE)
		clock_getres(source->clock, &tick);
	return (now.tv_sec - tick.tv_sec) * SECOND_NS + now.tv_nsec - tick.tv_nsec;
}

static void send_packets(struct sender *self, size_t which_source, unsigned int count)
{
	const struct source *source = &sources[which_source];
	bool differ = source->spoofed || source->ports;
	uint64_t stamp_ns = stamp_of(source);
	int done;

	for (unsigned int i = 0; i < count; i++) {
		uint8_t *frame = self->frames[differ ? i : 0];

		self->pieces[i].iov_len = source->frame_bytes;
		self->pieces[i].iov_base = frame;
		if (i > 0 && !differ)
			continue;
		memcpy(frame, source->frame, source->frame_bytes);
		stamp_put(frame, source->frame_bytes, stamp_ns);
		if (source->spoofed)
			spoof(source, frame, (self->sent[which_source] + i) * thread_count + self->which);
		if (source->ports)
			change_port(source, frame, (self->sent[which_source] + i) * thread_count + self->which);
	}
	done = sendmmsg(self->socket, self->messages, count, 0);
	if (done < 0 && errno != ENOBUFS && errno != EAGAIN && errno != EINTR) {
		perror("blast: cannot send");
		exit(1);
	}
	if (done > 0)
		atomic_fetch_add_explicit(&sent[which_source], done, memory_order_relaxed);
	self->sent[which_source] += done > 0 ? done : 0;
}

static void *send_all(void *data)
{
	struct sender *self = data;
	uint64_t at_ns, before_ns = weir_host_now_ns();

	for (size_t i = 0; i < BATCH; i++)
		self->messages[i].msg_hdr = (struct msghdr){
			.msg_name = &device,
			.msg_namelen = sizeof(device),
			.msg_iov = &self->pieces[i],
			.msg_iovlen = 1,
		};
	while (!is_done()) {
		unsigned int total = 0;

		at_ns = weir_host_now_ns();
		if (at_ns - before_ns > self->held_up_ns)
			self->held_up_ns = at_ns - before_ns;
		before_ns = at_ns;
		for (size_t i = 0; i < source_count && at_ns > start_ns; i++) {
			unsigned int due = due_packets(self, i, at_ns - start_ns);

			if (due)
				send_packets(self, i, due);
			total += due;
		}
		if (total < BATCH / 8)
			nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
	}
	return NULL;
}

static void start_sender(struct sender *self, int cpu)
{
	pthread_attr_t attributes;
	cpu_set_t set;
	int on = 1;

	self->socket = socket(AF_PACKET, SOCK_RAW, 0);
	if (self->socket < 0 || setsockopt(self->socket, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)) < 0) {
		perror("blast: cannot open a packet socket");
		exit(1);
	}
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_attr_init(&attributes);
	pthread_attr_setaffinity_np(&attributes, sizeof(set), &set);
	if (pthread_create(&self->thread, &attributes, send_all, self)) {
		fputs("blast: cannot start a thread\n", stderr);
		exit(1);
	}
}

static void report(const char *when)
{
	for (size_t i = 0; i < source_count; i++)
		printf("%s %s %llu\n", when, sources[i].name, (unsigned long long)sent[i]);
	fflush(stdout);
}

static void stop(int signal_number)
{
	stopped = true;
}

/* As exact as the machine allows at high rates; at low ones, a thread that looks all the time would only cost a CPU. */
static long pause_for_rates(void)
{
	uint64_t rate = 1, pause;

	for (size_t i = 0; i < source_count; i++)
		rate += sources[i].rate;
	pause = BATCH / 8 * SECOND_NS / rate;
	return pause < PAUSE_NS_MIN ? PAUSE_NS_MIN : pause > PAUSE_NS_MAX ? PAUSE_NS_MAX : pause;
}

static void report_every_second(void)
{
	for (unsigned int second = 1; !is_done(); second++) {
		char when[16];

		while (!is_done() && weir_host_now_ns() < start_ns + second * SECOND_NS)
			nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		snprintf(when, sizeof(when), "%u", second);
		report(when);
	}
}

static void send_from_all_cpus(unsigned int cpus_wanted)
{
	static struct sender senders[THREADS_MAX];
	cpu_set_t allowed;
	uint64_t held_up_ns = 0;
	int cpu[THREADS_MAX] = {};

	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int i = 0; i < CPU_SETSIZE && thread_count < cpus_wanted; i++)
		if (CPU_ISSET(i, &allowed))
			cpu[thread_count++] = i;
	for (unsigned int i = 0; i < thread_count; i++) {
		senders[i].which = i;
		start_sender(&senders[i], cpu[i]);
	}
	report_every_second();
	for (unsigned int i = 0; i < thread_count; i++) {
		pthread_join(senders[i].thread, NULL);
		if (senders[i].held_up_ns > held_up_ns)
			held_up_ns = senders[i].held_up_ns;
	}
	report("final");
	printf("held-up %llu\n", (unsigned long long)held_up_ns / 1000);
}

/* ---- command line ---- */

static const char help[] =
	"usage: blast -i IFACE --dst-mac MAC --dst ADDRESS [--dst6 ADDRESS] --source SOURCE... [options]\n"
	"  SOURCE            ADDRESS,rate=PACKETS_A_SECOND[,tcp][,port=N][,ports=N][,vlan=N][,tick]\n"
	"                    tcp: SYNs; port: the destination's; ports: from so many source ports in turn;\n"
	"                    tick: stamped by the kernel's tick\n"
	"  --port N          destination port (53)\n"
	"  --seconds N       how long (5)\n"
	"  --packets N       so many of each source instead, and none is given up\n"
	"  --backlog-ms N    made good after a pause; what was due before is not sent (200)\n"
	"  --cpus N          threads, one a CPU (2)\n"
	"  --spoof N         flood from so many IPv4 sources from 11.0.0.0 on\n"
	"  --spoof-rate R    at so many packets a second (100000)\n"
	"  --spoof-after N   from second N on (0)\n"
	"Sends through a packet socket; needs root. Example:\n"
	"  blast -i veth0 --dst-mac 02:00:00:00:00:02 --dst 10.1.0.254 --source 10.1.0.1,rate=500\n";

static struct source *add_source(void)
{
	if (source_count == SOURCES_MAX)
		wrong("too many sources", "--source");
	sources[source_count].clock = CLOCK_MONOTONIC;
	return &sources[source_count++];
}

static void parse_source(char *text)
{
	struct source *source = add_source();
	char *address = strtok(text, ","), *part;

	source->family = address && strchr(address, ':') ? AF_INET6 : AF_INET;
	if (!address || inet_pton(source->family, address, source->address) != 1)
		wrong("not an address", address ? address : text);
	strncpy(source->name, address, sizeof(source->name) - 1);
	while ((part = strtok(NULL, ","))) {
		if (!strncmp(part, "rate=", 5))
			source->rate = number("rate", part + 5);
		else if (!strncmp(part, "port=", 5))
			source->port = number("port", part + 5);
		else if (!strncmp(part, "ports=", 6))
			source->ports = number("ports", part + 6);
		else if (!strncmp(part, "vlan=", 5))
			source->vlan = number("vlan", part + 5);
		else if (!strcmp(part, "tcp"))
			source->is_tcp = true;
		else if (!strcmp(part, "tick"))
			source->clock = CLOCK_MONOTONIC_COARSE;
		else
			wrong("unknown part of a source", part);
	}
}

static void parse_mac(const char *text, uint8_t mac[6])
{
	if (sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4], &mac[5]) != 6)
		wrong("not a MAC address", text);
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"dst-mac", required_argument, NULL, 'm'},
		{"source", required_argument, NULL, 's'},
		{"dst", required_argument, NULL, 'd'},
		{"dst6", required_argument, NULL, 'D'},
		{"port", required_argument, NULL, 'p'},
		{"seconds", required_argument, NULL, 't'},
		{"cpus", required_argument, NULL, 'c'},
		{"spoof", required_argument, NULL, 'n'},
		{"spoof-rate", required_argument, NULL, 'r'},
		{"spoof-after", required_argument, NULL, 'a'},
		{"packets", required_argument, NULL, 'k'},
		{"backlog-ms", required_argument, NULL, 'b'},
		{"help", no_argument, NULL, 'h'},
		{},
	};
	uint8_t mac[6] = {}, destination4[16] = {}, destination6[16] = {};
	uint64_t port = 53, seconds = 5, cpus = 2, spoofed = 0, spoof_rate = 100000, spoof_after = 0;
	uint64_t backlog_ms = 200;
	int option;

	while ((option = getopt_long(argc, argv, "i:h", long_options, NULL)) >= 0) {
		switch (option) {
		case 'i':
			device.sll_ifindex = if_nametoindex(optarg);
			if (!device.sll_ifindex)
				wrong("no such interface", optarg);
			break;
		case 'm':
			parse_mac(optarg, mac);
			break;
		case 's':
			parse_source(optarg);
			break;
		case 'd':
			if (inet_pton(AF_INET, optarg, destination4) != 1)
				wrong("not an IPv4 address", optarg);
			break;
		case 'D':
			if (inet_pton(AF_INET6, optarg, destination6) != 1)
				wrong("not an IPv6 address", optarg);
			break;
		case 'p':
			port = number("port", optarg);
			break;
		case 't':
			seconds = number("seconds", optarg);
			break;
		case 'c':
			cpus = number("cpus", optarg);
			break;
		case 'n':
			spoofed = number("spoof", optarg);
			break;
		case 'r':
			spoof_rate = number("spoof-rate", optarg);
			break;
		case 'a':
			spoof_after = number("spoof-after", optarg);
			break;
		case 'k':
			packets_each = number("packets", optarg);
			break;
		case 'b':
			backlog_ms = number("backlog-ms", optarg);
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			fputs(help, stderr);
			return 2;
		}
	}
	backlog_ns = backlog_ms * 1000000;
	if (spoofed)
		*add_source() = (struct source){.name = "spoofed",
						.family = AF_INET,
						.rate = spoof_rate,
						.clock = CLOCK_MONOTONIC,
						.spoofed = spoofed,
						.after_ns = spoof_after * SECOND_NS};
	if (!device.sll_ifindex || !source_count || optind < argc || !cpus || cpus > THREADS_MAX) {
		fputs(help, stderr);
		return 2;
	}
	for (size_t i = 0; i < source_count; i++)
		build_frame(&sources[i], mac, sources[i].family == AF_INET6 ? destination6 : destination4, port);
	signal(SIGINT, stop);
	signal(SIGTERM, stop);
	pause_ns = pause_for_rates();
	start_ns = weir_host_now_ns();
	end_ns = start_ns + seconds * SECOND_NS;
	send_from_all_cpus(cpus);
	return 0;
}
