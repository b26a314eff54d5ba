// SPDX-License-Identifier: GPL-2.0-only
#include "host/host.h"

#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/util.h"

/* ---- names in the file system ---- */

static int compare_names(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

static void close_directory(DIR **directory)
{
	if (*directory)
		closedir(*directory);
}

/* Append a copy of `name`. Returns 0 or -ENOMEM. */
static int names_add(struct weir_names *names, const char *name)
{
	char **slot = weir_array_add((void **)&names->names, names->count, sizeof(*slot));

	if (!slot)
		return -ENOMEM;
	*slot = strdup(name);
	if (!*slot)
		return -ENOMEM;
	names->count++;
	return 0;
}

int weir_names_read(const char *path, struct weir_names *ret_names)
{
	_cleanup_(close_directory) DIR *directory = opendir(path);
	_cleanup_(weir_names_free) struct weir_names names = {};
	struct dirent *entry;

	if (!directory)
		return -errno;
	while (errno = 0, (entry = readdir(directory)))
		if (entry->d_name[0] != '.' && names_add(&names, entry->d_name))
			return -ENOMEM;
	if (errno)
		return -errno;
	if (names.count)
		qsort(names.names, names.count, sizeof(*names.names), compare_names);
	*ret_names = names;
	names = (struct weir_names){};
	return 0;
}

void weir_names_free(struct weir_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->names[i]);
	free(names->names);
	*names = (struct weir_names){};
}

/*
 * The part of the available memory that stays free. Maps take 1 to 3 % more than their bytes (docs/scale.md), and other
 * processes need some. Chosen, not derived.
 */
#define SPARED_PART 16

int weir_host_read_text(const char *path, char *text, size_t text_bytes)
{
	_cleanup_(weir_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t bytes;

	if (fd < 0)
		return -errno;
	bytes = read(fd, text, text_bytes - 1);
	if (bytes < 0)
		return -errno;
	while (bytes > 0 && (text[bytes - 1] == '\n' || text[bytes - 1] == ' '))
		bytes--;
	text[bytes] = '\0';
	return 0;
}

int weir_host_cpus(void)
{
	return libbpf_num_possible_cpus();
}

bool weir_host_cpus_have_gaps(void)
{
	char text[256];

	/* "0-15", or a list of such ranges (Linux, Documentation/admin-guide/cputopology.rst). */
	return !weir_host_read_text("/sys/devices/system/cpu/possible", text, sizeof(text)) &&
	       (text[0] != '0' || strchr(text, ','));
}

uint64_t weir_host_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

uint64_t weir_host_cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return used.tv_sec * 1000000000ull + used.tv_nsec;
}

uint64_t weir_host_wall_ns(uint64_t monotonic_ns)
{
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	return wall.tv_sec * 1000000000ull + wall.tv_nsec - (weir_host_now_ns() - monotonic_ns);
}

uint64_t weir_host_boot_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

uint64_t weir_host_tick_ns(void)
{
	struct timespec tick;

	/* The coarse clock advances with jiffies, so its resolution is their length. */
	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) || tick.tv_sec)
		return 0;
	return tick.tv_nsec;
}

bool weir_host_is_weakly_ordered(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return false;
#else
	return true;
#endif
}

bool weir_host_is_realtime(void)
{
	struct utsname kernel;
	char text[16] = "";

	if (!weir_host_read_text("/sys/kernel/realtime", text, sizeof(text)))
		return text[0] == '1';
	return !uname(&kernel) && strstr(kernel.version, "PREEMPT_RT");
}

bool weir_host_kernel_is_at_least(unsigned int major, unsigned int minor)
{
	unsigned int own_major = 0, own_minor = 0;
	struct utsname kernel;

	if (uname(&kernel) || sscanf(kernel.release, "%u.%u", &own_major, &own_minor) < 2)
		return false;
	return own_major > major || (own_major == major && own_minor >= minor);
}

const char *weir_libbpf_version(void)
{
	const char *version = libbpf_version_string();

	/* skip the 'v', which the versions of other libraries do not have */
	return version[0] == 'v' ? version + 1 : version;
}

/* The number after `label` at the start of a line of a /proc file; false if there is none. */
static bool read_field(const char *path, const char *label, int base, unsigned long long *ret_value)
{
	_cleanup_(weir_fclosep) FILE *file = fopen(path, "re");
	size_t label_bytes = strlen(label);
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, label, label_bytes))
			continue;
		*ret_value = strtoull(line + label_bytes, NULL, base);
		return true;
	}
	return false;
}

uint64_t weir_host_memory_available_bytes(void)
{
	unsigned long long kib;

	return read_field("/proc/meminfo", "MemAvailable:", 10, &kib) ? kib * 1024 : 0;
}

bool weir_host_has_memory(uint64_t needed_bytes, uint64_t *ret_available_bytes)
{
	uint64_t available_bytes = weir_host_memory_available_bytes();

	*ret_available_bytes = available_bytes;
	return !available_bytes || needed_bytes <= available_bytes - available_bytes / SPARED_PART;
}

int weir_host_check_privilege(struct weir_diag *diag)
{
	static const struct {
		int number;
		const char *name;
	} needed[] = {{CAP_BPF, "CAP_BPF"}, {CAP_NET_ADMIN, "CAP_NET_ADMIN"}, {CAP_PERFMON, "CAP_PERFMON"}};
	unsigned long long effective;
	char missing[64] = "";

	/* Without /proc the kernel itself refuses later, only with a less clear error. */
	if (!read_field("/proc/self/status", "CapEff:", 16, &effective) || effective >> CAP_SYS_ADMIN & 1)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
		if (effective >> needed[i].number & 1)
			continue;
		if (missing[0])
			strcat(missing, ", ");
		strcat(missing, needed[i].name);
	}
	if (!missing[0])
		return 0;
	weir_diag_error(diag, NULL, NULL, "run it as root", "not permitted to load BPF programs: %s missing", missing);
	return -EPERM;
}

static void free_interfaces(struct if_nameindex **interfaces)
{
	if (*interfaces) /* glibc inspects the name */
		if_freenameindex(*interfaces);
}

int weir_host_interfaces(struct weir_names *ret_names)
{
	_cleanup_(free_interfaces) struct if_nameindex *interfaces = if_nameindex();
	_cleanup_(weir_names_free) struct weir_names names = {};

	if (!interfaces)
		return -errno;
	for (struct if_nameindex *i = interfaces; i->if_index; i++)
		if (names_add(&names, i->if_name))
			return -ENOMEM;
	*ret_names = names;
	names = (struct weir_names){};
	return 0;
}

/* "lo, eth0, ...": the interfaces of the present network namespace. */
static void list_interfaces(char *text, size_t text_bytes)
{
	_cleanup_(weir_names_free) struct weir_names names = {};
	size_t used = 0;

	text[0] = '\0';
	if (weir_host_interfaces(&names))
		return;
	for (size_t i = 0; i < names.count && used + IF_NAMESIZE + 8 < text_bytes; i++)
		used += snprintf(text + used, text_bytes - used, "%s%s", used ? ", " : "the interfaces are ",
				 names.names[i]);
}

/* The interface's index, or -errno. Like if_nametoindex(), which however returns ENOENT for any reason why it cannot
 * open a socket.
 */
static int find_ifindex(const char *name)
{
	struct ifreq request = {};
	_cleanup_(weir_closep) int fd = -1;

	if (strlen(name) >= sizeof(request.ifr_name))
		return -ENODEV;
	strcpy(request.ifr_name, name);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCGIFINDEX, &request))
		return -errno;
	return request.ifr_ifindex;
}

/* The network namespace that weir_host_enter_netns() entered; empty: the one that this process started in. */
static char entered_netns[128];
static uint64_t first_netns; /* 0: none was entered */

const char *weir_host_netns_words(char ret_words[WEIR_NETNS_WORDS_BYTES])
{
	snprintf(ret_words, WEIR_NETNS_WORDS_BYTES, "%s%s%s", entered_netns[0] ? "network namespace '" : "",
		 entered_netns[0] ? entered_netns : "this network namespace", entered_netns[0] ? "'" : "");
	return ret_words;
}

bool weir_host_netns_option(char ret_words[WEIR_NETNS_WORDS_BYTES])
{
	snprintf(ret_words, WEIR_NETNS_WORDS_BYTES, "%s%s", entered_netns[0] ? " --netns " : "", entered_netns);
	return entered_netns[0];
}

uint64_t weir_host_first_netns(void)
{
	return first_netns ? first_netns : weir_host_netns();
}

int weir_host_ifindex(const char *name, struct weir_diag *diag)
{
	int ifindex = find_ifindex(name);
	char others[512], netns[WEIR_NETNS_WORDS_BYTES];

	if (ifindex > 0)
		return ifindex;
	if (ifindex != -ENODEV)
		return weir_diag_fail(diag, -ifindex, NULL, "cannot look up interface '%s'", name);
	list_interfaces(others, sizeof(others));
	weir_diag_error(diag, NULL, NULL, others[0] ? others : NULL, "no interface '%s' in %s", name,
			weir_host_netns_words(netns));
	return -ENODEV;
}

uint32_t weir_host_find_ifindex(const char *name, void *unused)
{
	int ifindex = find_ifindex(name);

	return ifindex > 0 ? ifindex : 0;
}

int weir_host_enter_netns(const char *netns, struct weir_diag *diag)
{
	_cleanup_(weir_freep) char *path = NULL;
	_cleanup_(weir_closep) int fd = -1;
	const uint64_t before = weir_host_netns();
	int err;

	if (asprintf(&path, "%s%s", strchr(netns, '/') ? "" : "/run/netns/", netns) < 0) {
		path = NULL;
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot enter network namespace '%s'", netns);
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return weir_diag_fail(diag, errno, "write a name that 'ip netns list' shows, or a path",
				      "cannot open network namespace '%s'", path);
	if (!setns(fd, CLONE_NEWNET)) {
		snprintf(entered_netns, sizeof(entered_netns), "%s", netns);
		first_netns = first_netns ? first_netns : before;
		return 0;
	}
	err = weir_diag_fail(diag, errno,
			     errno == EPERM ? "run it as root" : "write a name that 'ip netns list' shows, or a path",
			     "cannot enter network namespace '%s'", path);
	return err == -EINVAL ? -ENOENT : err; /* the kernel's -EINVAL does not mean a wrong request */
}

uint64_t weir_host_netns(void)
{
	struct stat status;

	/* thread-self, because the threads of a process can be in different network namespaces. */
	return stat("/proc/thread-self/ns/net", &status) ? 0 : status.st_ino;
}

/* ---- load average ---- */

int weir_load_read(uint64_t *ret_load1_micro)
{
	unsigned int whole, hundredths;
	char text[128];
	int err = weir_host_read_text("/proc/loadavg", text, sizeof(text));

	if (err)
		return err;
	/* "0.42 0.30 0.25 1/234 5678": always with two decimals (fs/proc/loadavg.c) */
	if (sscanf(text, "%u.%2u", &whole, &hundredths) != 2)
		return -EINVAL;
	*ret_load1_micro = whole * 1000000ull + hundredths * 10000ull;
	return 0;
}

static int read_times(struct weir_cpu_times *ret_times)
{
	uint64_t user, nice, system, idle, iowait, irq, softirq, steal;
	char text[512];
	int err = weir_host_read_text("/proc/stat", text, sizeof(text));

	if (err)
		return err;
	/* The first line is the sum over all CPUs. `user` and `nice` already include the time of guests (proc(5)). */
	if (sscanf(text,
		   "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
		   &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal) != 8)
		return -EINVAL;
	ret_times->busy = user + nice + system + irq + softirq + steal;
	ret_times->total = ret_times->busy + idle + iowait;
	return 0;
}

int weir_cpu_usage_read(struct weir_cpu_times *times, uint64_t *ret_micro)
{
	const struct weir_cpu_times before = *times;
	uint64_t busy, total;
	int err = read_times(times);

	if (err)
		return err;
	/* The kernel's sums of idle time can decrease a little (proc(5)). */
	if (!before.total || times->total <= before.total)
		return -EAGAIN;
	total = times->total - before.total;
	busy = times->busy > before.busy ? times->busy - before.busy : 0;
	*ret_micro = busy < total ? (uint64_t)((unsigned __int128)busy * 1000000 / total) : 1000000;
	return 0;
}

/* ---- bounds ---- */

/* Room for what a later reload may need in addition: descriptions twice, and counters of up to 8,192 rules on each CPU.
 * Chosen, not derived: well above all of that, and well below what would harm a machine.
 */
#define MORE_BYTES (256ull << 20)
#define MORE_BYTES_A_CPU (1ull << 20)

static bool read_data_bytes(uint64_t *ret_bytes)
{
	_cleanup_(weir_fclosep) FILE *status = fopen("/proc/self/status", "re");
	unsigned long long kib;
	char line[128];

	while (status && fgets(line, sizeof(line), status)) {
		if (sscanf(line, "VmData: %llu kB", &kib) == 1) {
			*ret_bytes = kib * 1024;
			return true;
		}
	}
	return false;
}

static void set_limit(rlim_t bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_DATA, &limit))
		return;
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	(void)setrlimit(RLIMIT_DATA, &limit);
}

void weir_bound_memory(void)
{
	int cpus = weir_host_cpus();
	uint64_t bytes;

	if (read_data_bytes(&bytes))
		set_limit(bytes + MORE_BYTES + (uint64_t)(cpus > 0 ? cpus : 1) * MORE_BYTES_A_CPU);
}

void weir_unbound_memory(void)
{
	set_limit(RLIM_INFINITY);
}
