// SPDX-License-Identifier: GPL-2.0-only
#include "wire.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <math.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/util.h"
#include "tests/bench/wire.skel.h"

/* The ring of a veth queue holds 256 frames: a batch of 64 always fits, and is worked off before the next. */
#define BATCH 64
#define MAC "02:00:00:00:00:02"

void wire_command(const char *format, ...)
{
	char command[4096];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	if (system(command)) /* the commands are ours: nothing in them comes from outside */
		rig_fail(0, "'%s' failed", command);
}

bool wire_try(const char *command)
{
	char quiet[4096];

	snprintf(quiet, sizeof(quiet), "{ %s; } >/dev/null 2>&1", command);
	return system(quiet) == 0;
}

void wire_set_gro(const char *device, bool is_on)
{
	struct ethtool_value value = {.cmd = ETHTOOL_SGRO, .data = is_on};
	struct ifreq request = {.ifr_data = (void *)&value};
	_cleanup_(weir_closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device);
	if (fd < 0 || ioctl(fd, SIOCETHTOOL, &request))
		rig_fail(errno, "cannot set GRO of a veth device");
}

static void make_pair(void)
{
	if (if_nametoindex("in"))
		return;
	wire_command("ip link add out numtxqueues %d numrxqueues %d type veth peer name in address " MAC
		     " numtxqueues %d numrxqueues %d",
		     BENCH_CPUS, BENCH_CPUS, BENCH_CPUS, BENCH_CPUS);
	wire_command("ip link set lo up && ip link set out up && ip link set in up && ip addr add " WIRE_ADDRESS
		     "/24 dev in && ip route add 10.0.0.0/8 dev in");
	wire_command("sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.in.rp_filter=0");
	/* Without an XDP program at "in" only GRO makes a veth take redirected frames. */
	wire_set_gro("in", true);
}

static void *map_memory(const struct bpf_map *map, size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (memory == MAP_FAILED)
		rig_fail(errno, "cannot map '%s' into memory", bpf_map__name(map));
	return memory;
}

/* Element sizes of memory-mapped arrays are what the ABI of such maps makes of them: multiples of eight. */
_Static_assert(sizeof(struct wire_schedule) % 8 == 0 && sizeof(struct wire_record) % 8 == 0, "arrays match the maps");

/* From one end of the pair to the other. */
static struct rig_frame wire_frame(struct rig_frame frame)
{
	memcpy(frame.bytes, (uint8_t[])WIRE_ADDRESSES, 12);
	return frame;
}

void wire_open(struct wire *wire, struct rig *rig)
{
	*wire = (struct wire){
		.rig = rig, .xdp_link = -1, .sockets = {-1, -1, -1, -1}, .frame = wire_frame(rig_frame(4, 1, 1))};
	make_pair();
	wire->in_ifindex = if_nametoindex("in");
	wire->bpf = bench_wire__open_and_load();
	if (!wire->bpf)
		rig_fail(errno, "cannot load the generator");
	wire->schedules = map_memory(wire->bpf->maps.schedules, WIRE_CPUS_MAX * sizeof(struct wire_schedule));
	wire->setting = map_memory(wire->bpf->maps.setting, sizeof(struct wire_setting));
	wire->records =
		map_memory(wire->bpf->maps.records, WIRE_CPUS_MAX * WIRE_RECORDS_MAX * sizeof(struct wire_record));
	wire->bpf->bss->out_ifindex = if_nametoindex("out");
	/* Attached, though nothing arrives there: two CPUs' runs would take turns else (speed.c). */
	wire->send_link =
		bpf_link_create(bpf_program__fd(wire->bpf->progs.bench_send), if_nametoindex("out"), BPF_XDP, NULL);
	if (wire->send_link < 0)
		rig_fail(wire->send_link, "cannot attach the generator");
	wire->setting->second_cpu = rig->cpu_count > 1 ? (__u32)rig->cpu[1] : UINT32_MAX;
}

void wire_close(struct wire *wire)
{
	wire_attach(wire, -1);
	close(wire->send_link);
	for (int i = 0; i < WIRE_PORTS; i++)
		if (wire->sockets[i] >= 0)
			close(wire->sockets[i]);
	munmap(wire->schedules, WIRE_CPUS_MAX * sizeof(struct wire_schedule));
	munmap(wire->setting, sizeof(struct wire_setting));
	munmap((void *)wire->records, WIRE_CPUS_MAX * WIRE_RECORDS_MAX * sizeof(struct wire_record));
	bench_wire__destroy(wire->bpf);
}

void wire_attach(struct wire *wire, int program_fd)
{
	if (wire->xdp_link >= 0)
		close(wire->xdp_link);
	wire->xdp_link = -1;
	if (program_fd < 0)
		return;
	wire->xdp_link = bpf_link_create(program_fd, wire->in_ifindex, BPF_XDP, NULL);
	if (wire->xdp_link < 0)
		rig_fail(wire->xdp_link, "cannot attach to a veth device");
}

/* ---- sending ---- */

void wire_schedule(struct wire *wire, int cpu, const struct wire_item *items, size_t count)
{
	struct wire_schedule *schedule = &wire->schedules[cpu];

	memcpy(schedule->item, items, count * sizeof(*items));
	schedule->item_count = count;
	schedule->present = schedule->sent = 0;
}

double wire_send(struct wire *wire, uint32_t packets)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = wire->frame.bytes, .data_size_in = wire->frame.byte_count,
		    .repeat = packets, .flags = BPF_F_TEST_XDP_LIVE_FRAMES, .batch_size = BATCH);
	int err = bpf_prog_test_run_opts(bpf_program__fd(wire->bpf->progs.bench_send), &options);
	if (err)
		rig_fail(err, "cannot send live frames");
	return options.duration;
}

double wire_measure(struct wire *wire, const struct wire_item *item, uint32_t packets)
{
	uint64_t before = wire_arrived(), arrived;
	double ns;

	wire_schedule(wire, 0, item, 1);
	ns = wire_send(wire, packets);
	arrived = wire_arrived() - before;
	return arrived + packets / 50 < packets ? NAN : ns * packets / arrived;
}

#define TCP_FRAME_BYTES 60 /* the least, so that answers leave it as long */
#define IP_OFFSET 14
#define LENGTH_OFFSET (IP_OFFSET + 2)
#define SOURCE_OFFSET (IP_OFFSET + 12)
#define DESTINATION_OFFSET (IP_OFFSET + 16)
#define TCP_OFFSET (IP_OFFSET + 20)
#define TCP_DPORT_OFFSET (TCP_OFFSET + 2)

/* Words as they lie in memory: so does the generator add the rest. */
static uint32_t sum_words(const uint8_t *bytes, size_t count)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < count; i += 2) {
		uint16_t word;

		memcpy(&word, bytes + i, sizeof(word));
		sum += word;
	}
	return sum;
}

void wire_use_tcp(struct wire *wire, uint8_t flags, uint32_t destination)
{
	struct rig_frame *frame = &wire->frame;
	const uint16_t tcp_bytes = 20, ip_bytes = htons(20 + tcp_bytes);

	*frame = wire_frame(rig_frame_tcp(1, flags));
	frame->byte_count = TCP_FRAME_BYTES;
	memcpy(frame->bytes + LENGTH_OFFSET, &ip_bytes, sizeof(ip_bytes));
	memcpy(frame->bytes + DESTINATION_OFFSET, &destination, sizeof(destination));
	memset(frame->bytes + TCP_DPORT_OFFSET, 0, 2);
	memset(frame->bytes + TCP_OFFSET + 16, 0, 2); /* the checksum */
	wire->setting->tcp_sum = sum_words(frame->bytes + DESTINATION_OFFSET, 4) + htons(IPPROTO_TCP) +
				 htons(tcp_bytes) + sum_words(frame->bytes + TCP_OFFSET, tcp_bytes);
	memcpy(wire->setting->headers, frame->bytes + IP_OFFSET, sizeof(wire->setting->headers));
}

/* The first number behind the name: packets are the second, after bytes. /sys shows another namespace's devices. */
uint64_t wire_arrived(void)
{
	FILE *stream = fopen("/proc/thread-self/net/dev", "re");
	unsigned long long packets = 0;
	bool is_found = false;
	char line[512];

	while (stream && !is_found && fgets(line, sizeof(line), stream))
		is_found = sscanf(line, " in: %*u %llu", &packets) == 1;
	if (!is_found)
		rig_fail(0, "cannot read what a veth device has received");
	fclose(stream);
	return packets;
}

/* ---- listening ---- */

void wire_listen(struct wire *wire)
{
	int hear_fd = bpf_program__fd(wire->bpf->progs.bench_hear);

	for (int i = 0; i < WIRE_PORTS; i++) {
		struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(i + 1)};
		int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
		    setsockopt(fd, SOL_SOCKET, SO_ATTACH_BPF, &hear_fd, sizeof(hear_fd)))
			rig_fail(errno, "cannot listen at port %d", i + 1);
		wire->sockets[i] = fd;
	}
}

void wire_note_from(struct wire *wire, uint64_t from_ns, const uint32_t noted_flows[WIRE_GROUPS])
{
	struct wire_count none = {};

	wire->setting->from_ns = 0;
	if (!from_ns)
		return;
	for (__u32 cpu = 0; cpu < WIRE_CPUS_MAX; cpu++)
		bpf_map_update_elem(bpf_map__fd(wire->bpf->maps.record_counts), &cpu, &none, BPF_ANY);
	memcpy(wire->setting->noted_flows, noted_flows, sizeof(wire->setting->noted_flows));
	__atomic_store_n(&wire->setting->from_ns, from_ns, __ATOMIC_RELEASE);
}

uint64_t wire_noted(const struct wire *wire, int cpu)
{
	struct wire_count count;
	__u32 key = cpu;
	int err = bpf_map_lookup_elem(bpf_map__fd(wire->bpf->maps.record_counts), &key, &count);

	if (err)
		rig_fail(err, "cannot tell how much was noted");
	return count.records;
}
