// SPDX-License-Identifier: GPL-2.0-only
/*
 * sink: count what comes in on an interface, by source address, with the kernel's time of each arrival.
 * Packets that XDP dropped do not get here. Only the sources asked for are looked at: the kernel
 * filters the others out, so that a flood does not cost what it counts.
 *
 * Prints, every --report-ms, for each source: milliseconds, source, packets so far. At the end, for each:
 *
 *	final SOURCE PACKETS windows COUNT least LEAST most MOST worst WORST
 *
 * When a packet was evaluated is not known to the nanosecond, but between when: after it was sent, which it says itself
 * (blast, stamp.h), and before the kernel's time of its arrival; with --skb, where that is taken before XDP, before it
 * was received here. The same holds of the tick by which it was evaluated if it says the tick by which it was sent: no
 * tick is ahead of the time, however late it is. So what follows holds however long anybody was held up. MOST and WORST
 * count those that were surely evaluated within, LEAST those that may have been. LEAST and MOST are over the COUNT
 * windows of --interval-ms that begin on a bucket (--bucket-ms) of CLOCK_MONOTONIC, from a whole interval after the
 * first packet to the last packet. WORST is the fullest interval that begins with any packet. --margin-us is for
 * turning one clock into the other.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/util.h"
#include "stamp.h"
#include "tool.h"

#define SECOND_NS 1000000000ull
#define SOURCES_MAX 64
#define BATCH 256
#define HEAD_BYTES 128 /* all of what blast sends */
#define BUFFER_BYTES (64 << 20)
/* Where a packet socket sees the source address: the kernel has taken a VLAN tag off. */
#define IPV4_SOURCE (ETH_HLEN + 12)
#define IPV6_SOURCE (ETH_HLEN + 8)

struct source {
	char name[INET6_ADDRSTRLEN];
	int family;
	uint8_t address[16];
	/* When each was evaluated at the earliest and at the latest, CLOCK_MONOTONIC; each ascending after sorting. */
	uint64_t *earliest_ns, *latest_ns;
	size_t count;
};

static struct source sources[SOURCES_MAX];
static size_t source_count;
static uint64_t interval_ns = SECOND_NS, bucket_ns = SECOND_NS / 10, margin_ns = 50000, report_ns = SECOND_NS / 10;
static bool is_skb_mode;
static volatile sig_atomic_t stopped;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* How far the clock of socket stamps is ahead of CLOCK_MONOTONIC: the least of several looks, as a pause spoils one. */
static uint64_t realtime_ahead_ns(void)
{
	uint64_t best_ns = UINT64_MAX, ahead_ns = 0;

	for (int i = 0; i < 32; i++) {
		uint64_t before_ns = clock_ns(CLOCK_MONOTONIC), real_ns = clock_ns(CLOCK_REALTIME);
		uint64_t took_ns = clock_ns(CLOCK_MONOTONIC) - before_ns;

		if (took_ns >= best_ns)
			continue;
		best_ns = took_ns;
		ahead_ns = real_ns - before_ns - took_ns / 2;
	}
	return ahead_ns;
}

static void fail(const char *what)
{
	fprintf(stderr, "sink: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- the socket ---- */

static uint32_t address_word(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
}

/* Accept packets whose source, or the last word of it in IPv6, is one of ours. Classic BPF. */
static void set_filter(int fd)
{
	struct sock_filter code[8 + 2 * SOURCES_MAX];
	struct sock_fprog program = {.filter = code};
	unsigned short at = 0;

	code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_H | BPF_ABS, ETH_HLEN - 2);
	code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_IP, 0, 2);
	code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, IPV4_SOURCE);
	code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, 2, 0, 0);
	code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_IPV6, 0, 2 * source_count + 1);
	code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, IPV6_SOURCE + 12);
	for (size_t i = 0; i < source_count; i++) {
		size_t word = sources[i].family == AF_INET6 ? 12 : 0;

		code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							  address_word(sources[i].address + word), 0, 1);
		code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, HEAD_BYTES);
	}
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	program.len = at;
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0)
		fail("cannot filter");
}

static int open_socket(int ifindex)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = ifindex};
	int fd = socket(AF_PACKET, SOCK_RAW, 0), on = 1, bytes = BUFFER_BYTES;

	if (fd < 0)
		fail("cannot open a packet socket");
	set_filter(fd);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) < 0)
		fail("cannot set up the packet socket");
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		fail("cannot listen");
	return fd;
}

/* ---- arrivals ---- */

static struct source *find_source(const uint8_t *head)
{
	bool is_ipv6 = (head[ETH_HLEN - 2] << 8 | head[ETH_HLEN - 1]) == ETHERTYPE_IPV6;

	for (size_t i = 0; i < source_count; i++) {
		if ((sources[i].family == AF_INET6) != is_ipv6)
			continue;
		if (!memcmp(head + (is_ipv6 ? IPV6_SOURCE : IPV4_SOURCE), sources[i].address, is_ipv6 ? 16 : 4))
			return &sources[i];
	}
	return NULL;
}

static void note_arrival(struct source *source, uint64_t earliest_ns, uint64_t latest_ns)
{
	uint64_t *earliest = weir_array_add((void **)&source->earliest_ns, source->count, sizeof(*earliest));
	uint64_t *latest = weir_array_add((void **)&source->latest_ns, source->count, sizeof(*latest));

	if (!earliest || !latest)
		fail("cannot remember arrivals");
	*earliest = earliest_ns;
	*latest = latest_ns;
	source->count++;
}

static uint64_t stamp_ns(struct msghdr *message)
{
	struct cmsghdr *control = CMSG_FIRSTHDR(message);
	struct timespec stamp = {};

	for (; control; control = CMSG_NXTHDR(message, control))
		if (control->cmsg_level == SOL_SOCKET && control->cmsg_type == SO_TIMESTAMPNS)
			memcpy(&stamp, CMSG_DATA(control), sizeof(stamp));
	return stamp.tv_sec * SECOND_NS + stamp.tv_nsec;
}

/* The two times of a packet received by now. */
static void evaluate_arrival(struct mmsghdr *message, const uint8_t *head, uint64_t ahead_ns, uint64_t now_ns)
{
	struct source *source = find_source(head);
	uint64_t arrived_ns, earliest_ns;

	if (!source)
		return;
	arrived_ns = stamp_ns(&message->msg_hdr) - ahead_ns;
	if (!stamp_get(head, message->msg_len, &earliest_ns))
		earliest_ns = arrived_ns - margin_ns;
	arrived_ns += margin_ns;
	note_arrival(source, earliest_ns, is_skb_mode || arrived_ns > now_ns ? now_ns : arrived_ns);
}

static void receive(int fd, uint64_t ahead_ns)
{
	static uint8_t heads[BATCH][HEAD_BYTES];
	static char controls[BATCH][CMSG_SPACE(sizeof(struct timespec)) + 64];
	struct mmsghdr messages[BATCH];
	struct iovec pieces[BATCH];
	uint64_t now_ns;
	int count;

	for (int i = 0; i < BATCH; i++) {
		pieces[i] = (struct iovec){heads[i], HEAD_BYTES};
		messages[i].msg_hdr = (struct msghdr){.msg_iov = &pieces[i],
						      .msg_iovlen = 1,
						      .msg_control = controls[i],
						      .msg_controllen = sizeof(controls[i])};
	}
	count = recvmmsg(fd, messages, BATCH, MSG_DONTWAIT, NULL);
	now_ns = clock_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < count; i++)
		evaluate_arrival(&messages[i], heads[i], ahead_ns, now_ns);
}

/* ---- what they amount to ---- */

static int ascending(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

/* Of so many times in ascending order, those before at_ns. */
static size_t count_before(const uint64_t *times_ns, size_t count, uint64_t at_ns)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (times_ns[middle] < at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* At least so many were evaluated from from_ns on and before to_ns: those before `to`, less what may be before `from`.
 */
static size_t surely_between(const struct source *source, uint64_t from_ns, uint64_t to_ns)
{
	size_t before = count_before(source->earliest_ns, source->count, from_ns);
	size_t by_then = count_before(source->latest_ns, source->count, to_ns);

	return by_then > before ? by_then - before : 0;
}

/* At most so many were. */
static size_t perhaps_between(const struct source *source, uint64_t from_ns, uint64_t to_ns)
{
	return count_before(source->earliest_ns, source->count, to_ns) -
	       count_before(source->latest_ns, source->count, from_ns);
}

static void print_windows(const struct source *source)
{
	size_t windows = 0, least = SIZE_MAX, most = 0, worst = 0;
	uint64_t first_ns, last_ns, at_ns;

	if (source->count) {
		first_ns = source->latest_ns[0] + interval_ns;
		last_ns = source->earliest_ns[source->count - 1];
		for (at_ns = (first_ns / bucket_ns + 1) * bucket_ns; at_ns + interval_ns < last_ns;
		     at_ns += bucket_ns) {
			size_t within = surely_between(source, at_ns, at_ns + interval_ns);
			size_t perhaps = perhaps_between(source, at_ns, at_ns + interval_ns);

			windows++;
			most = within > most ? within : most;
			least = perhaps < least ? perhaps : least;
		}
	}
	for (size_t i = 0; i < source->count; i++) {
		size_t within;

		at_ns = source->earliest_ns[i];
		within = surely_between(source, at_ns, at_ns + interval_ns);
		worst = within > worst ? within : worst;
	}
	printf("final %s %zu windows %zu least %zu most %zu worst %zu\n", source->name, source->count, windows,
	       windows ? least : 0, most, worst);
}

static void report(uint64_t since_start_ns)
{
	for (size_t i = 0; i < source_count; i++)
		printf("%llu %s %zu\n", (unsigned long long)(since_start_ns / 1000000), sources[i].name,
		       sources[i].count);
	fflush(stdout);
}

static void stop(int signal_number)
{
	stopped = 1;
}

static void listen_for(int fd, uint64_t seconds)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), ahead_ns = realtime_ahead_ns();
	uint64_t next_report_ns = start_ns + report_ns;

	while (!stopped && clock_ns(CLOCK_MONOTONIC) < start_ns + seconds * SECOND_NS) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};

		if (poll(&ready, 1, report_ns / 2000000) > 0)
			receive(fd, ahead_ns);
		if (clock_ns(CLOCK_MONOTONIC) < next_report_ns)
			continue;
		report(next_report_ns - start_ns);
		next_report_ns += report_ns;
	}
	for (struct pollfd ready = {.fd = fd, .events = POLLIN}; poll(&ready, 1, 0) > 0;)
		receive(fd, ahead_ns);
}

/* Packets that the socket had no room for would be missing from every figure: say so and fail. */
static int lost_packets(int fd)
{
	struct tpacket_stats statistics = {};
	socklen_t bytes = sizeof(statistics);

	if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &statistics, &bytes) < 0 || !statistics.tp_drops)
		return 0;
	fprintf(stderr, "sink: too slow, lost %u packets: its figures are not to be trusted\n", statistics.tp_drops);
	return 1;
}

static const char help[] = "usage: sink -i IFACE|any --source ADDRESS... [options]\n"
			   "  --seconds N       how long (until SIGTERM or SIGINT)\n"
			   "  --interval-ms N   windows to look at (1000)\n"
			   "  --bucket-ms N     where they may begin (100)\n"
			   "  --margin-us N     doubt about an arrival's time (50)\n"
			   "  --report-ms N     how often it reports (100)\n"
			   "  --skb             XDP runs in skb mode\n";

static void parse_source(const char *text)
{
	struct source *source = &sources[source_count];

	if (source_count == SOURCES_MAX)
		wrong("too many sources", text);
	source->family = strchr(text, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(source->family, text, source->address) != 1)
		wrong("not an address", text);
	strncpy(source->name, text, sizeof(source->name) - 1);
	source_count++;
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"source", required_argument, NULL, 's'},
		{"seconds", required_argument, NULL, 't'},
		{"interval-ms", required_argument, NULL, 'w'},
		{"bucket-ms", required_argument, NULL, 'b'},
		{"margin-us", required_argument, NULL, 'm'},
		{"report-ms", required_argument, NULL, 'r'},
		{"skb", no_argument, NULL, 'k'},
		{"help", no_argument, NULL, 'h'},
		{},
	};
	uint64_t seconds = UINT32_MAX;
	int option, fd, ifindex = -1;

	while ((option = getopt_long(argc, argv, "i:h", long_options, NULL)) >= 0) {
		switch (option) {
		case 'i':
			ifindex = if_nametoindex(optarg); /* 0 is all of them to a packet socket */
			if (!ifindex && strcmp(optarg, "any"))
				wrong("no such interface", optarg);
			break;
		case 's':
			parse_source(optarg);
			break;
		case 't':
			seconds = number("seconds", optarg);
			break;
		case 'w':
			interval_ns = number("interval-ms", optarg) * 1000000;
			break;
		case 'b':
			bucket_ns = number("bucket-ms", optarg) * 1000000;
			break;
		case 'm':
			margin_ns = number("margin-us", optarg) * 1000;
			break;
		case 'r':
			report_ns = number("report-ms", optarg) * 1000000;
			break;
		case 'k':
			is_skb_mode = true;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			fputs(help, stderr);
			return 2;
		}
	}
	if (ifindex < 0 || !source_count || optind < argc || !bucket_ns || !report_ns) {
		fputs(help, stderr);
		return 2;
	}
	signal(SIGINT, stop);
	signal(SIGTERM, stop);
	fd = open_socket(ifindex);
	puts("ready");
	fflush(stdout);
	listen_for(fd, seconds);
	for (size_t i = 0; i < source_count; i++) {
		qsort(sources[i].earliest_ns, sources[i].count, sizeof(uint64_t), ascending);
		qsort(sources[i].latest_ns, sources[i].count, sizeof(uint64_t), ascending);
		print_windows(&sources[i]);
	}
	return lost_packets(fd);
}
