// SPDX-License-Identifier: GPL-2.0-only
#include "control/controller.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/util.h"
#include "host/bound.h"
#include "host/bpffs.h"
#include "host/host.h"
#include "host/load.h"
#include "host/memory.h"
#include "host/service.h"
#include "network/link_watch.h"
#include "program/array.h"
#include "program/signals.h"
#include "program/thresholds.h"
#include "tables/share_schedule.h"

#define SECOND_NS WEIR_NSEC_PER_SEC
/* Several heartbeats in the shortest validity there is, a second. Divides a second: warm-up goes by whole ones. */
#define PERIOD_NS (SECOND_NS / 4)
/* Twice as often as docs/semantics.md asks for, so that a tick that is late is still soon enough. */
#define MEMORY_PERIOD_NS (SECOND_NS / 20)

/* After the begin of a second, so that packets judged before it have been counted: CPUs that are taken away in
 * between take longer now and then, and what they had in hand is then not counted. Chosen, not derived.
 */
#define TICK_DELAY_NS 1000000

/* A reload writes descriptions in two steps, a few milliseconds apart. Who reads in between reads again. */
#define SETTLE_ATTEMPTS 50
#define SETTLE_PAUSE_NS 10000000

/* Interfaces that come are looked for at most so often, however many events there are, and as soon again when another
 * command is at work. Chosen, not derived: a fifth of the 100 ms that one may go without limits.
 */
#define FOLLOW_MS 20

/* Until a tick that failed is tried again. Chosen, not derived: often enough for what is over soon, and not so often
 * that its words fill a log.
 */
#define RETRY_MS 1000

/* Who asks for drops (weir_controller_hear) is heard so much longer. The page asks once a second, and later when
 * answers are slow. Chosen, not derived.
 */
#define HEARD_NS (3 * SECOND_NS)

/* What it reads and writes, beside the descriptions. */
#define CONTROLLER_TABLES                                                                                              \
	(WEIR_TABLE_BIT(WEIR_TABLE_CONTROL) | WEIR_TABLE_BIT(WEIR_TABLE_THRESHOLDS) |                                  \
	 WEIR_TABLE_BIT(WEIR_TABLE_RULE_SECONDS) | WEIR_TABLE_BIT(WEIR_TABLE_WARM_STATES) |                            \
	 WEIR_TABLE_BIT(WEIR_TABLE_SIGNALS))
#define LOOK_TABLES (WEIR_TABLE_BIT(WEIR_TABLE_CONTROL) | WEIR_TABLE_BIT(WEIR_TABLE_THRESHOLDS))

struct weir_controller {
	char name[WEIR_INSTANCE_NAME_BYTES];
	int lock_fd; /* the instance's directory; -1: a fork gave it up */
	int timer_fd;
	struct weir_instance *instance;
	struct weir_thresholds *thresholds;
	const struct weir_sharing_calls *sharing_calls;
	struct weir_sharing *sharing; /* NULL: hosts share no rule */
	struct weir_memory *memory;   /* NULL: no rule asks for it */
	struct weir_memory_use memory_use;
	bool misses_memory;  /* the last reading failed, which has been told */
	bool has_failed;     /* the last tick did, which has been told */
	bool is_noted;	     /* in the journal: that it begins */
	uint64_t watched_ns; /* when the links were looked at */
	struct weir_signals_map *signals;
	uint32_t sampled_rules; /* that go by samples; 0: none are taken */
	uint64_t sampled_ns;
	struct weir_cpu_times cpu_times;
	struct weir_control *control; /* mapped */
	int link_watch_fd;	      /* -1: of another network namespace, which nobody watches from here */
	struct weir_follow follow;
	uint64_t followed_ns;
	const uint64_t *drops_wanted; /* another process counts it up; NULL: there is none */
	uint64_t drops_heard;	      /* what it said last */
	bool must_follow;	      /* something has come or gone, or another command was at work the last time */
};

static size_t control_bytes(void)
{
	return sysconf(_SC_PAGESIZE);
}

/* ---- becoming the one ---- */

/* The process that has the lock; 0: none, or it cannot be seen from here. */
static pid_t find_holder(const char *name)
{
	_cleanup_(weir_fclosep) FILE *locks = fopen("/proc/locks", "re");
	char path[PATH_MAX], line[256], wanted[64], place[64];
	struct stat status;
	int pid;

	weir_pin_path(name, NULL, path);
	if (!locks || stat(path, &status))
		return 0;
	snprintf(wanted, sizeof(wanted), "%02x:%02x:%lu", major(status.st_dev), minor(status.st_dev), status.st_ino);
	/* "1: FLOCK  ADVISORY  WRITE 4711 00:1f:12345 0 EOF"; who waits has "->" before FLOCK */
	while (fgets(line, sizeof(line), locks))
		if (sscanf(line, "%*s FLOCK %*s %*s %d %63s", &pid, place) == 2 && !strcmp(place, wanted))
			return pid > 0 ? pid : 0;
	return 0;
}

static int fail_locked(const char *name, struct weir_diag *diag)
{
	pid_t pid = find_holder(name);
	char hint[160] = "it is another 'weir run' or 'weir control'; one is enough";

	if (pid)
		snprintf(hint, sizeof(hint),
			 "it is process %d, and one is enough; should that be a 'weir run', the limits go with it",
			 pid);
	weir_diag_error(diag, NULL, NULL, hint, "instance '%s' has a controller already", name);
	return -EBUSY;
}

static int lock(struct weir_controller *controller, struct weir_diag *diag)
{
	char path[PATH_MAX];

	weir_pin_path(controller->name, NULL, path);
	controller->lock_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (controller->lock_fd < 0)
		return weir_diag_fail(diag, errno, NULL, "cannot open '%s'", path);
	if (!flock(controller->lock_fd, LOCK_EX | LOCK_NB))
		return 0;
	if (errno != EWOULDBLOCK)
		return weir_diag_fail(diag, errno, NULL, "cannot lock '%s'", path);
	return fail_locked(controller->name, diag);
}

/* Its directory went with it, and ours is none any more; one of the same name is another instance. What cannot be
 * looked at is there: who took it for gone would leave it attached.
 */
static bool is_gone(const struct weir_controller *controller)
{
	struct stat status;

	return !fstat(controller->lock_fd, &status) && status.st_nlink == 0;
}

/* ---- what is attached ---- */

static int read_generation(const struct weir_controller *controller, uint64_t *ret_generation)
{
	struct weir_instance_info info;
	int err = weir_array_read(controller->instance->map_fd[WEIR_TABLE_INSTANCE], &info, 1, sizeof(info));

	if (!err)
		*ret_generation = info.generation;
	return err;
}

/* The words of a reload that has not come to its end: it died, or it takes its time. */
static int fail_unsettled(const char *name, struct weir_diag *diag)
{
	if (!weir_bpffs_is_locked())
		return weir_instance_fail_unsettled(name, diag);
	weir_diag_error(diag, NULL, NULL, NULL, "a reload of instance '%s' is taking its time", name);
	return -EAGAIN;
}

static int open_settled(struct weir_controller *controller, struct weir_diag *diag)
{
	const struct timespec pause = {.tv_nsec = SETTLE_PAUSE_NS};
	uint64_t generation;

	for (int attempt = 0; attempt < SETTLE_ATTEMPTS; attempt++) {
		int err;

		weir_instance_free(TAKE_PTR(controller->instance));
		err = weir_instance_open_now(controller->name, &controller->instance, diag);
		if (err)
			return err;
		if (controller->instance->is_settled && !read_generation(controller, &generation) &&
		    generation == controller->instance->info.generation)
			return 0;
		nanosleep(&pause, NULL);
	}
	return fail_unsettled(controller->name, diag);
}

static int map_control(struct weir_controller *controller, struct weir_diag *diag)
{
	int fd = controller->instance->map_fd[WEIR_TABLE_CONTROL];
	void *control = mmap(NULL, control_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	/* A reload may have replaced it. */
	if (controller->control)
		munmap(controller->control, control_bytes());
	controller->control = NULL;
	if (control == MAP_FAILED)
		return weir_diag_fail(diag, errno, NULL, "cannot map the heartbeat of instance '%s'", controller->name);
	controller->control = control;
	return 0;
}

static uint64_t validity_ns(const struct weir_instance *instance)
{
	return instance->info.controller_timeout_ms * 1000000ull;
}

static int open_thresholds(struct weir_controller *controller, struct weir_diag *diag)
{
	const struct weir_instance *instance = controller->instance;
	const struct weir_thresholds_maps maps = {
		.rules = instance->rules,
		.rule_slots = instance->info.rule_slots,
		.rule_count = instance->rule_count,
		.fds.thresholds = instance->thresholds_fd,
		.fds.rule_seconds = instance->map_fd[WEIR_TABLE_RULE_SECONDS],
		.fds.warm_states = instance->map_fd[WEIR_TABLE_WARM_STATES],
		.saves_states = true,
	};
	int err = weir_thresholds_open(&maps, &controller->thresholds, diag);

	if (err || !weir_thresholds_need_memory(controller->thresholds)) {
		weir_memory_free(TAKE_PTR(controller->memory));
		return err;
	}
	/* Whoever is confined may not hear of pressure as soon as it did before: what is open stays so. */
	if (controller->memory && weir_memory_is_of(controller->memory, instance->info.memory_cgroup))
		return 0;
	weir_memory_free(TAKE_PTR(controller->memory));
	controller->memory = weir_memory_open(instance->info.memory_cgroup);
	if (!controller->memory)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot watch the memory");
	controller->memory_use = (struct weir_memory_use){}; /* another cgroup's, perhaps */
	controller->misses_memory = false;
	return 0;
}

/* Samples of an earlier time must not look like those of now. */
static int open_signals(struct weir_controller *controller, struct weir_diag *diag)
{
	const struct weir_instance *instance = controller->instance;
	static const struct weir_signals unknown;
	int err = weir_signals_open(instance->map_fd[WEIR_TABLE_SIGNALS], &controller->signals, diag);

	if (err)
		return err;
	controller->sampled_ns = 0;
	controller->sampled_rules = 0;
	for (uint32_t i = 0; i < instance->rule_count; i++)
		controller->sampled_rules += weir_needs_samples(&instance->rules[instance->rule_order[i]]);
	if (!controller->sampled_rules)
		controller->cpu_times = (struct weir_cpu_times){};
	weir_signals_publish(controller->signals, &unknown);
	return 0;
}

/* At the start, and after a reload. */
static int open_all(struct weir_controller *controller, struct weir_diag *diag)
{
	int err;

	weir_thresholds_free(TAKE_PTR(controller->thresholds));
	weir_signals_close(TAKE_PTR(controller->signals));
	err = open_settled(controller, diag);
	if (!err)
		err = weir_instance_expect_tables(controller->instance, CONTROLLER_TABLES, "the thresholds", diag);
	if (!err)
		err = map_control(controller, diag);
	if (!err)
		err = open_thresholds(controller, diag);
	if (!err)
		err = open_signals(controller, diag);
	if (!err)
		err = controller->sharing_calls->follow(&controller->sharing, controller->instance, diag);
	weir_bound_memory();
	return err;
}

/* ---- ticking ---- */

static void warn_of_memory(const struct weir_instance *instance, int err, struct weir_diag *diag)
{
	const char *cgroup = instance->info.memory_cgroup;

	weir_diag_warning(diag, NULL, NULL,
			  "until it can be, MemoryAdaptive rules are at highMemUsageThreshold; 'memory' in the "
			  "settings says where it is read",
			  "the memory of %s%s%s cannot be read: %s", *cgroup ? "cgroup '" : "the system", cgroup,
			  *cgroup ? "'" : "", weir_memory_explain(cgroup, err));
}

static void read_memory(struct weir_controller *controller, uint64_t now_ns, struct weir_diag *diag)
{
	uint64_t used_bytes;
	int err = weir_memory_read(controller->memory, &used_bytes);

	if (err && !controller->misses_memory)
		warn_of_memory(controller->instance, err, diag);
	else if (!err && controller->misses_memory)
		weir_diag_warning(diag, NULL, NULL, NULL,
				  "the memory can be read again: MemoryAdaptive rules follow it");
	controller->misses_memory = err != 0;
	if (err)
		return; /* the last reading holds for its time */
	controller->memory_use = (struct weir_memory_use){
		.is_known = true,
		.used_bytes = used_bytes,
		.holds_until_ns = now_ns + validity_ns(controller->instance),
	};
}

/* Once a second. What cannot be read is not known, and rules that go by it admit. */
static void sample(struct weir_controller *controller, uint64_t now_ns)
{
	struct weir_signals signals = {};
	uint64_t load1_micro = 0, cpu_micro = 0;

	if (!controller->sampled_rules || now_ns - controller->sampled_ns < SECOND_NS - PERIOD_NS / 2)
		return;
	controller->sampled_ns = now_ns;
	if (!weir_load_read(&load1_micro))
		signals.load1_ns = now_ns;
	if (!weir_cpu_usage_read(&controller->cpu_times, &cpu_micro))
		signals.cpu_ns = now_ns;
	signals.load1_micro = load1_micro;
	signals.cpu_micro = cpu_micro;
	weir_signals_publish(controller->signals, &signals);
}

/* The heartbeat comes after what it vouches for. */
static void beat(struct weir_controller *controller)
{
	__atomic_store_n(&controller->control->validity_ns, validity_ns(controller->instance), __ATOMIC_RELAXED);
	__atomic_store_n(&controller->control->heartbeat_ns, weir_host_now_ns(), __ATOMIC_RELEASE);
}

/* Interfaces that have come since. What fails is told, and tried with the next event. */
static void follow_interfaces(struct weir_controller *controller, uint64_t now_ns, struct weir_diag *diag)
{
	controller->followed_ns = now_ns;
	weir_link_watch_drain(controller->link_watch_fd);
	weir_instance_watch_links(controller->instance, diag);
	controller->must_follow = weir_instance_follow(controller->instance, &controller->follow, diag) == -EBUSY;
}

/* Each costs some calls of the kernel: once a second, however often the memory is read. */
static void watch_links(struct weir_controller *controller, uint64_t now_ns, struct weir_diag *diag)
{
	if (now_ns - controller->watched_ns < SECOND_NS - PERIOD_NS / 2)
		return;
	controller->watched_ns = now_ns;
	weir_instance_watch_links(controller->instance, diag);
	controller->must_follow |= controller->follow.refused_count && controller->link_watch_fd >= 0;
}

/* When what was pushed expires, or has expired; 0: long ago. */
static uint64_t expiry_ns(const struct weir_control *control)
{
	return control->heartbeat_ns ? control->heartbeat_ns + control->validity_ns : 0;
}

static void listen_for_others(struct weir_controller *controller, uint64_t now_ns)
{
	const uint64_t wanted =
		controller->drops_wanted ? __atomic_load_n(controller->drops_wanted, __ATOMIC_RELAXED) : 0;

	if (wanted == controller->drops_heard)
		return;
	controller->drops_heard = wanted;
	weir_instance_listen(controller->name, now_ns + HEARD_NS);
}

static int step(struct weir_controller *controller, struct weir_diag *diag)
{
	uint64_t now_ns = weir_host_now_ns();
	int err;

	if (controller->memory)
		read_memory(controller, now_ns, diag);
	sample(controller, now_ns);
	if (controller->sharing)
		controller->sharing_calls->step(controller->sharing, diag);
	watch_links(controller, now_ns, diag);
	listen_for_others(controller, now_ns);
	if (controller->must_follow)
		follow_interfaces(controller, now_ns, diag);
	weir_thresholds_expire(controller->thresholds, expiry_ns(controller->control), now_ns);
	err = weir_thresholds_step(controller->thresholds, now_ns, &controller->memory_use);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read what passed in instance '%s'", controller->name);
	beat(controller);
	return 0;
}

/* The program has returned to the rules before by itself: their thresholds move from now on. It is tried once; the
 * rules may have been confirmed, too.
 */
static void return_unconfirmed(struct weir_controller *controller, struct weir_diag *diag)
{
	struct weir_unconfirmed *unconfirmed = &controller->instance->unconfirmed;

	if (!weir_unconfirmed_is_over(unconfirmed))
		return;
	unconfirmed->is_so = false;
	weir_instance_return(controller->name, diag); /* a warning says what comes of it */
}

static int tick(struct weir_controller *controller, struct weir_diag *diag)
{
	uint64_t generation;
	int err;

	if (controller->instance)
		return_unconfirmed(controller, diag);

	if (controller->signals) { /* else the last tick failed to open it all */
		err = read_generation(controller, &generation);
		if (err)
			return weir_diag_fail(diag, -err, NULL, "cannot read instance '%s'", controller->name);
		if (generation == controller->instance->info.generation)
			return step(controller, diag);
	}
	/* An interface may have gone in this very tick: what is opened anew does not know it. */
	if (controller->instance)
		weir_instance_watch_links(controller->instance, diag);
	err = open_all(controller, diag);
	return err ? err : step(controller, diag);
}

/* When the next tick is due. Without a rule that moves too, since a reload may bring one. */
static int arm(const struct weir_controller *controller, struct weir_diag *diag)
{
	uint64_t period_ns = controller->memory ? MEMORY_PERIOD_NS : PERIOD_NS;
	uint64_t next_ns = (weir_host_now_ns() - TICK_DELAY_NS) / period_ns * period_ns + period_ns + TICK_DELAY_NS;
	uint64_t sharing_ns =
		controller->sharing_calls->due_ns(controller->sharing) + 1; /* a time of 0 would be none */
	struct itimerspec due = {};

	if (sharing_ns && sharing_ns < next_ns)
		next_ns = sharing_ns;
	due.it_value = (struct timespec){.tv_sec = next_ns / SECOND_NS, .tv_nsec = next_ns % SECOND_NS};

	if (timerfd_settime(controller->timer_fd, TFD_TIMER_ABSTIME, &due, NULL))
		return weir_diag_fail(diag, errno, NULL, "cannot set the controller's timer");
	return 0;
}

/* How long until interfaces may be looked for again, in milliseconds; -1: nothing keeps us. */
static int follow_pause_ms(const struct weir_controller *controller)
{
	const uint64_t passed_ms = (weir_host_now_ns() - controller->followed_ns) / 1000000;

	if (controller->link_watch_fd < 0)
		return -1;
	if (passed_ms < FOLLOW_MS)
		return FOLLOW_MS - passed_ms;
	return controller->must_follow ? 0 : -1;
}

/* The next tick is due, or there are interfaces to look at (0), or wake_fd can be read (1). */
static int wait_for_tick(struct weir_controller *controller, int wake_fd, struct weir_diag *diag)
{
	struct pollfd polled[] = {
		{.fd = wake_fd, .events = POLLIN},
		{.fd = controller->timer_fd, .events = POLLIN},
		{.fd = controller->memory ? weir_memory_pressure_fd(controller->memory) : -1, .events = POLLPRI},
		{.fd = -1, .events = POLLIN},
		controller->sharing_calls->poll(controller->sharing),
	};
	const int pause_ms = follow_pause_ms(controller);
	int err = arm(controller, diag);

	if (err)
		return err;
	if (pause_ms < 0)
		polled[3].fd = controller->link_watch_fd;
	if (poll(polled, ARRAY_SIZE(polled), pause_ms) < 0 && errno != EINTR)
		return weir_diag_fail(diag, errno, NULL, "cannot wait for the next tick");
	if (polled[2].revents & (POLLERR | POLLHUP | POLLNVAL)) /* the cgroup is gone: it would never end */
		weir_memory_forget_pressure(controller->memory);
	controller->must_follow |= polled[3].revents != 0;
	return polled[0].revents != 0;
}

/* The same after a tick that failed, by what hardly can. */
static int wait_to_retry(int wake_fd)
{
	return poll(&(struct pollfd){.fd = wake_fd, .events = POLLIN}, 1, RETRY_MS) > 0;
}

int weir_controller_serve(struct weir_controller *controller, int wake_fd, struct weir_diag *diag)
{
	for (;;) {
		int err = controller->has_failed ? wait_to_retry(wake_fd) : wait_for_tick(controller, wake_fd, diag);

		weir_service_alive();
		if (err > 0)
			return 0;
		if (!err && !is_gone(controller))
			err = tick(controller, diag);
		if (err == -EPROTO) /* reloaded by another version, for good */
			return err;
		if (is_gone(controller)) { /* whatever failed, that is why */
			weir_diag_free(diag);
			return -ENOENT;
		}
		controller->has_failed = err != 0;
		if (diag->count)
			return WEIR_CONTROLLER_WARNS;
	}
}

/* ---- the contract ---- */

/* From here on none is missed: those that came before are looked for in the first step. */
static int watch_interfaces(struct weir_controller *controller, struct weir_diag *diag)
{
	if (controller->instance->info.netns != weir_host_netns())
		return 0;
	controller->link_watch_fd = weir_link_watch_open();
	if (controller->link_watch_fd < 0)
		return weir_diag_fail(diag, -controller->link_watch_fd, NULL, "cannot watch for interfaces");
	controller->must_follow = true;
	return 0;
}

int weir_controller_open(const char *instance, uint64_t attached_ns, const struct weir_sharing_calls *sharing_calls,
			 struct weir_controller **ret_controller, struct weir_diag *diag)
{
	_cleanup_(weir_controller_freep) struct weir_controller *controller = calloc(1, sizeof(*controller));
	int err;

	if (!controller)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot control instance '%s'", instance);
	snprintf(controller->name, sizeof(controller->name), "%s", instance);
	controller->lock_fd = controller->timer_fd = controller->link_watch_fd = -1;
	controller->sharing_calls = sharing_calls;

	/* First, as it says it best when nothing is attached. */
	err = weir_instance_open_now(instance, &controller->instance, diag);
	if (!err && attached_ns && controller->instance->info.attached_ns != attached_ns) {
		weir_diag_error(diag, NULL, NULL, NULL, "instance '%s' was attached anew by another command", instance);
		err = -ESTALE;
	}
	if (!err)
		err = lock(controller, diag);
	if (!err)
		err = open_all(controller, diag);
	if (err)
		return err;
	controller->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (controller->timer_fd < 0)
		return weir_diag_fail(diag, errno, NULL, "cannot make the controller's timer");
	err = watch_interfaces(controller, diag);
	if (!err)
		err = step(controller, diag);
	if (err)
		return err;
	controller->is_noted = true;
	weir_instance_note(controller->name, WEIR_JOURNAL_CONTROLLER, "a controller begins, process %d", (int)getpid());
	*ret_controller = TAKE_PTR(controller);
	return 0;
}

/* The program is to go by the rules' own rates from now on. */
static void expire_now(struct weir_controller *controller)
{
	const uint64_t now_ns = weir_host_now_ns();

	if (!controller->thresholds)
		return;
	weir_thresholds_expire(controller->thresholds, expiry_ns(controller->control), now_ns);
	weir_thresholds_expire(controller->thresholds, now_ns, now_ns);
}

void weir_controller_free(struct weir_controller *controller)
{
	if (!controller)
		return;
	if (controller->control) {
		/* Whoever has it mapped has the lock: the next controller's heartbeat is not undone. */
		expire_now(controller);
		__atomic_store_n(&controller->control->heartbeat_ns, 0, __ATOMIC_RELEASE);
		if (controller->is_noted)
			weir_instance_note(controller->name, WEIR_JOURNAL_CONTROLLER,
					   "the controller ends: thresholds that move are at their safe values");
		munmap(controller->control, control_bytes());
	}
	weir_thresholds_free(controller->thresholds);
	controller->sharing_calls->free(controller->sharing);
	weir_memory_free(controller->memory);
	weir_signals_close(controller->signals);
	weir_instance_free(controller->instance);
	weir_follow_free(&controller->follow);
	weir_closep(&controller->link_watch_fd);
	weir_closep(&controller->timer_fd);
	weir_closep(&controller->lock_fd);
	free(controller);
}

void weir_controller_give_back(struct weir_controller *controller)
{
	if (controller->sharing)
		controller->sharing_calls->leave(controller->sharing);
}

void weir_controller_leave(struct weir_controller *controller)
{
	weir_closep(&controller->lock_fd);
	controller->lock_fd = -1;
}

void weir_controller_hear(struct weir_controller *controller, const uint64_t *drops_wanted)
{
	controller->drops_wanted = drops_wanted;
}

uint32_t weir_controller_rule_count(const struct weir_controller *controller)
{
	return weir_thresholds_count(controller->thresholds) + controller->sampled_rules +
	       controller->sharing_calls->rule_count(controller->sharing);
}

/* ---- looking on ---- */

static bool needs_controller(const struct weir_rule_info *rule)
{
	return rule->moves || rule->cluster || weir_needs_samples(rule);
}

static enum weir_controller_state state_of(const struct weir_control *control, uint32_t rules, uint64_t now_ns)
{
	if (control->heartbeat_ns && now_ns < control->heartbeat_ns + control->validity_ns)
		return WEIR_CONTROLLER_RUNNING;
	if (!rules)
		return WEIR_CONTROLLER_NOT_NEEDED;
	return control->heartbeat_ns ? WEIR_CONTROLLER_STALE : WEIR_CONTROLLER_ABSENT;
}

/* What the program would go by now. */
static uint64_t in_force(const struct weir_rule_info *rule, const struct weir_pushed *pushed, bool is_running)
{
	return (rule->moves && is_running ? pushed->word : rule->threshold_word) & WEIR_THRESHOLD_MASK;
}

static void look_at_memory(const struct weir_instance *instance, struct weir_controller_report *report)
{
	for (uint32_t i = 0; i < instance->rule_count; i++) {
		const struct weir_rule_info *rule = &instance->rules[instance->rule_order[i]];

		report->needs_memory |= rule->moves && !weir_control_warms_up(rule);
	}
	if (report->needs_memory)
		report->memory_err = weir_memory_read_once(instance->info.memory_cgroup, &report->used_bytes);
}

/* Of rules that hosts share, whoever is running. */
static int look_at_shares(const struct weir_instance *instance, uint64_t *thresholds, uint64_t now_ns,
			  struct weir_diag *diag)
{
	for (uint32_t i = 0; i < instance->rule_count; i++) {
		uint32_t slot = instance->rule_order[i];
		struct weir_shared_threshold shared;

		if (!instance->rules[slot].cluster)
			continue;
		if (instance->is_foreign[WEIR_TABLE_SHARES] ||
		    bpf_map_lookup_elem(instance->map_fd[WEIR_TABLE_SHARES], &slot, &shared))
			return weir_diag_fail(diag, errno, NULL, "cannot read the shares of instance '%s'",
					      instance->name);
		thresholds[i] = weir_share_in_force(&shared, now_ns);
	}
	return 0;
}

int weir_controller_look(const struct weir_instance *instance, struct weir_controller_report *ret_report,
			 struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_pushed *pushed = calloc(instance->rule_count + 1, sizeof(*pushed));
	_cleanup_(weir_freep) uint64_t *thresholds = calloc(instance->rule_count + 1, sizeof(*thresholds));
	struct weir_controller_report report = {};
	uint64_t now_ns = weir_host_now_ns();
	struct weir_control control = {};
	int err = weir_instance_expect_tables(instance, LOOK_TABLES, "the thresholds", diag);

	if (err)
		return err;
	err = pushed && thresholds ? 0 : -ENOMEM;
	if (!err)
		err = weir_array_read(instance->map_fd[WEIR_TABLE_CONTROL], &control, 1, sizeof(control));
	if (!err)
		err = weir_array_read(instance->thresholds_fd, pushed, instance->rule_count, sizeof(*pushed));
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the thresholds of instance '%s'", instance->name);
	for (uint32_t i = 0; i < instance->rule_count; i++)
		report.rule_count += needs_controller(&instance->rules[instance->rule_order[i]]);
	report.state = state_of(&control, report.rule_count, now_ns);
	report.pid = find_holder(instance->name);
	if (report.state == WEIR_CONTROLLER_STALE)
		report.stale_ns = now_ns - control.heartbeat_ns - control.validity_ns;
	for (uint32_t i = 0; i < instance->rule_count; i++)
		thresholds[i] = in_force(&instance->rules[instance->rule_order[i]], &pushed[i],
					 report.state == WEIR_CONTROLLER_RUNNING);
	err = look_at_shares(instance, thresholds, now_ns, diag);
	if (err)
		return err;
	look_at_memory(instance, &report);
	report.thresholds = TAKE_PTR(thresholds);
	*ret_report = report;
	return 0;
}

void weir_controller_warn(const char *name, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	char hint[256], option[WEIR_INSTANCE_OPTION_BYTES];
	struct weir_controller_report report = {};
	struct weir_diag mistakes = {};
	int err = weir_instance_open_now(name, &instance, &mistakes);

	weir_diag_free(&mistakes);
	if (err || !instance->is_settled)
		return; /* the next command is at work already, and will look itself */
	err = weir_controller_look(instance, &report, &mistakes);
	free(report.thresholds);
	/* What the command was for has been done: it did not fail. */
	weir_diag_move(diag, &mistakes, true);
	if (err)
		return;
	if (report.memory_err)
		warn_of_memory(instance, report.memory_err, diag);
	if (report.state != WEIR_CONTROLLER_STALE && report.state != WEIR_CONTROLLER_ABSENT)
		return;
	snprintf(
		hint, sizeof(hint),
		"start 'weir control%s'; until then WarmUp rules are at their plain threshold, MemoryAdaptive rules at "
		"highMemUsageThreshold, rules that hosts share at what their store has left them last, and Load and "
		"CpuUsage rules admit",
		weir_instance_option(name, option));
	weir_diag_warning(diag, NULL, NULL, hint, "%u rule%s of instance '%s' need%s a controller, and none is running",
			  report.rule_count, report.rule_count == 1 ? "" : "s", name,
			  report.rule_count == 1 ? "s" : "");
}
