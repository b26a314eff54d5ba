// SPDX-License-Identifier: GPL-2.0-only
#include "control/controller.h"

#include <errno.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/util.h"
#include "control/controller_internal.h"
#include "host/host.h"
#include "host/memory.h"
#include "host/service.h"
#include "network/netlink.h"
#include "program/signals.h"
#include "program/thresholds.h"

#define SECOND_NS WEIR_NSEC_PER_SEC

/* The shortest validity, a second, has several heartbeats. The period divides a second because warm-up advances in
 * whole seconds.
 */
#define PERIOD_NS (SECOND_NS / 4)

/* Twice as often as docs/semantics.md requires, so that a late tick is still soon enough. */
#define MEMORY_PERIOD_NS (SECOND_NS / 20)

/* How long after the start of a second the tick runs, so that packets evaluated before that start have been counted. A
 * CPU that is descheduled in between sometimes takes longer, and then its current packets are not counted. Chosen, not
 * derived.
 */
#define TICK_DELAY_NS 1000000

/* How often the controller looks for new interfaces, at most, however many events arrive; also the delay until it tries
 * again after another command was at work. Chosen, not derived: a fifth of the 100 ms that an interface may be without
 * limits.
 */
#define FOLLOW_MS 20

/* The delay until a failed tick is retried. Chosen, not derived: often enough for a brief failure, and rarely enough
 * that the messages do not fill a log.
 */
#define RETRY_MS 1000

/* How much longer drops are reported after the last request for them (weir_controller_hear). The page asks once a
 * second, or later if answers are slow. Chosen, not derived.
 */
#define LISTENS_NS (3 * SECOND_NS)

/* ---- ticking ---- */

void weir_controller_warn_of_memory(const struct weir_instance *instance, int err, struct weir_diag *diag)
{
	const char *cgroup = instance->info.memory_cgroup;

	weir_diag_warning(diag, NULL, NULL,
			  "until it can be read, MemoryAdaptive rules use highMemUsageThreshold; 'memory' in the "
			  "settings says where to read it",
			  "the memory in use of %s%s%s cannot be read: %s", *cgroup ? "cgroup '" : "the system", cgroup,
			  *cgroup ? "'" : "", weir_memory_explain(cgroup, err));
}

static void read_memory(struct weir_controller *controller, uint64_t now_ns, struct weir_diag *diag)
{
	uint64_t used_bytes;
	int err = weir_memory_read(controller->memory, &used_bytes);

	if (err && !controller->misses_memory)
		weir_controller_warn_of_memory(controller->instance, err, diag);
	else if (!err && controller->misses_memory)
		weir_diag_warning(diag, NULL, NULL, NULL,
				  "the memory in use can be read again: MemoryAdaptive rules follow it");
	controller->misses_memory = err != 0;
	if (err)
		return; /* the last reading stays valid for its time */
	controller->memory_use = (struct weir_memory_use){
		.is_known = true,
		.used_bytes = used_bytes,
		.holds_until_ns = now_ns + weir_controller_validity_ns(controller->instance),
	};
}

/* Take a sample once a second. A signal that cannot be read counts as unknown, and rules that depend on it admit
 * packets.
 */
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

/* Each link costs some system calls, so look once a second, however often the memory is read. */
static void watch_links(struct weir_controller *controller, uint64_t now_ns, struct weir_diag *diag)
{
	if (now_ns - controller->watched_ns < SECOND_NS - PERIOD_NS / 2)
		return;
	controller->watched_ns = now_ns;
	if (weir_instance_watch_links(controller->instance, diag) || controller->follow.refused_count)
		controller->must_follow |= controller->link_watch_fd >= 0;
}

/* When the published thresholds expire, or have expired; 0: long ago. */
static uint64_t expiry_ns(const struct weir_control *control)
{
	return control->heartbeat_ns ? control->heartbeat_ns + control->validity_ns : 0;
}

static void listen_for_others(struct weir_controller *controller, uint64_t now_ns)
{
	const uint64_t wanted =
		controller->drops_wanted ? __atomic_load_n(controller->drops_wanted, __ATOMIC_RELAXED) : 0;

	if (wanted == controller->drops_received)
		return;
	controller->drops_received = wanted;
	weir_instance_listen(controller->name, now_ns + LISTENS_NS);
}

static int step(struct weir_controller *controller, struct weir_diag *diag)
{
	uint64_t now_ns = weir_host_now_ns();
	int err;

	if (controller->memory)
		read_memory(controller, now_ns, diag);
	sample(controller, now_ns);
	for (size_t i = 0; weir_calculators()[i]; i++)
		if (controller->calculated[i])
			weir_calculators()[i]->step(controller->calculated[i], diag);
	watch_links(controller, now_ns, diag);
	listen_for_others(controller, now_ns);
	if (controller->must_follow) {
		/* Look for new interfaces. A failure is reported, and retried at the next event. */
		controller->followed_ns = now_ns;
		weir_link_watch_drain(controller->link_watch_fd);
		weir_instance_watch_links(controller->instance, diag);
		controller->must_follow =
			weir_instance_follow(controller->instance, &controller->follow, diag) == -EBUSY;
	}
	weir_thresholds_expire(controller->thresholds, expiry_ns(controller->control), now_ns);
	err = weir_thresholds_step(controller->thresholds, now_ns, &controller->memory_use);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the counts of instance '%s'", controller->name);
	/* The heartbeat is published after the data that it vouches for. */
	__atomic_store_n(&controller->control->validity_ns, weir_controller_validity_ns(controller->instance),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&controller->control->heartbeat_ns, weir_host_now_ns(), __ATOMIC_RELEASE);
	return 0;
}

/* A generation that answers needs to know this host's addresses as they change. A failure costs just that. */
static void watch_addresses(struct weir_controller *controller)
{
	const bool answers = weir_instance_answers(controller->instance);

	if (controller->link_watch_fd < 0)
		return;
	weir_link_watch_addresses(controller->link_watch_fd, answers);
	controller->must_follow |= answers; /* some may have changed since it was loaded */
}

/* The program has already returned to the previous rules by itself; from now on the controller moves their thresholds.
 * Tried once, because the rules may have been confirmed instead.
 */
static void return_unconfirmed(struct weir_controller *controller, struct weir_diag *diag)
{
	struct weir_unconfirmed *unconfirmed = &controller->instance->unconfirmed;

	if (!weir_unconfirmed_is_over(unconfirmed))
		return;
	unconfirmed->is_so = false;
	weir_instance_return(controller->name, diag); /* a warning reports the result */
}

static int tick(struct weir_controller *controller, struct weir_diag *diag)
{
	uint64_t generation;
	int err;

	if (controller->instance)
		return_unconfirmed(controller, diag);

	if (controller->signals) { /* otherwise the last tick failed to open everything */
		err = weir_controller_read_generation(controller, &generation);
		if (err)
			return weir_diag_fail(diag, -err, NULL, "cannot read instance '%s'", controller->name);
		if (generation == controller->instance->info.generation)
			return step(controller, diag);
	}
	/* An interface may have gone during this tick, and the reopened instance would not know about it. */
	if (controller->instance)
		weir_instance_watch_links(controller->instance, diag);
	err = weir_controller_open_all(controller, diag);
	if (err)
		return err;
	controller->is_reloaded = true;
	watch_addresses(controller);
	return step(controller, diag);
}

/* Set the time of the next tick. Needed even if no rule's threshold moves, since a reload may bring one. */
static int arm(const struct weir_controller *controller, struct weir_diag *diag)
{
	uint64_t period_ns = controller->memory ? MEMORY_PERIOD_NS : PERIOD_NS;
	uint64_t next_ns = (weir_host_now_ns() - TICK_DELAY_NS) / period_ns * period_ns + period_ns + TICK_DELAY_NS;
	struct itimerspec due = {};

	for (size_t i = 0; weir_calculators()[i]; i++) {
		const void *state = controller->calculated[i];
		uint64_t due_ns = state ? weir_calculators()[i]->due_ns(state) + 1 : 0; /* 0 means no time */

		if (due_ns && due_ns < next_ns)
			next_ns = due_ns;
	}
	due.it_value = (struct timespec){.tv_sec = next_ns / SECOND_NS, .tv_nsec = next_ns % SECOND_NS};

	if (timerfd_settime(controller->timer_fd, TFD_TIMER_ABSTIME, &due, NULL))
		return weir_diag_fail(diag, errno, NULL, "cannot set the controller's timer");
	return 0;
}

/* The time until interfaces may be looked for again, in milliseconds; -1: no need to wait. */
static int follow_pause_ms(const struct weir_controller *controller)
{
	const uint64_t passed_ms = (weir_host_now_ns() - controller->followed_ns) / 1000000;

	if (controller->link_watch_fd < 0)
		return -1;
	if (passed_ms < FOLLOW_MS)
		return FOLLOW_MS - passed_ms;
	return controller->must_follow ? 0 : -1;
}

/* The descriptors that the controller itself waits for. */
#define WATCHED 4

/* Wait until the next tick is due or interfaces have changed (0), or wake_fd is readable (1). */
static int wait_for_tick(struct weir_controller *controller, int wake_fd, struct weir_diag *diag)
{
	struct pollfd polled[WATCHED + WEIR_CALCULATORS_MAX] = {
		{.fd = wake_fd, .events = POLLIN},
		{.fd = controller->timer_fd, .events = POLLIN},
		{.fd = controller->memory ? weir_memory_pressure_fd(controller->memory) : -1, .events = POLLPRI},
		{.fd = -1, .events = POLLIN},
	};
	nfds_t count = WATCHED;
	const int pause_ms = follow_pause_ms(controller);
	int err = arm(controller, diag);

	if (err)
		return err;
	if (pause_ms < 0)
		polled[3].fd = controller->link_watch_fd;
	for (size_t i = 0; weir_calculators()[i]; i++)
		if (controller->calculated[i])
			polled[count++] = weir_calculators()[i]->poll(controller->calculated[i]);
	if (poll(polled, count, pause_ms) < 0 && errno != EINTR)
		return weir_diag_fail(diag, errno, NULL, "cannot wait for the next tick");
	if (polled[2].revents & (POLLERR | POLLHUP | POLLNVAL)) /* its cgroup is gone: it would stay ready */
		weir_memory_forget_pressure(controller->memory);
	controller->must_follow |= polled[3].revents != 0;
	return polled[0].revents != 0;
}

int weir_controller_serve(struct weir_controller *controller, int wake_fd, struct weir_diag *diag)
{
	for (;;) {
		struct pollfd wake = {.fd = wake_fd, .events = POLLIN};
		/* After a failed tick, wait only by a call that hardly ever fails. */
		int err = controller->has_failed ? poll(&wake, 1, RETRY_MS) > 0
						 : wait_for_tick(controller, wake_fd, diag);

		weir_service_alive();
		if (err > 0)
			return 0;
		if (!err && !weir_controller_is_gone(controller))
			err = tick(controller, diag);
		if (err == -EPROTO) /* another version reloaded the instance: this cannot be retried */
			return err;
		if (weir_controller_is_gone(controller)) { /* this is the cause, whatever failed */
			weir_diag_free(diag);
			return -ENOENT;
		}
		controller->has_failed = err != 0;
		if (diag->count)
			return WEIR_CONTROLLER_WARNS;
		if (controller->is_reloaded) {
			controller->is_reloaded = false;
			return WEIR_CONTROLLER_RELOADED;
		}
	}
}

/* ---- the contract ---- */

/* From now on no new interface is missed. The first step looks for those that appeared earlier. */
static int watch_interfaces(struct weir_controller *controller, struct weir_diag *diag)
{
	if (controller->instance->info.netns != weir_host_netns())
		return 0;
	controller->link_watch_fd = weir_link_watch_open();
	if (controller->link_watch_fd < 0)
		return weir_diag_fail(diag, -controller->link_watch_fd, NULL, "cannot watch for interfaces");
	watch_addresses(controller);
	controller->must_follow = true;
	return 0;
}

int weir_controller_open(const char *instance, uint64_t attached_ns, struct weir_controller **ret_controller,
			 struct weir_diag *diag)
{
	_cleanup_(weir_controller_freep) struct weir_controller *controller = calloc(1, sizeof(*controller));
	int err;

	if (!controller)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot control instance '%s'", instance);
	snprintf(controller->name, sizeof(controller->name), "%s", instance);
	controller->lock_fd = controller->timer_fd = controller->link_watch_fd = -1;

	/* First, because this gives the best message if nothing is attached. */
	err = weir_instance_open_now(instance, &controller->instance, diag);
	if (!err && attached_ns && controller->instance->info.attached_ns != attached_ns) {
		weir_diag_error(diag, NULL, NULL, NULL, "another command detached instance '%s' and attached it again",
				instance);
		err = -ESTALE;
	}
	if (!err)
		err = weir_controller_lock(controller, diag);
	if (!err)
		err = weir_controller_open_all(controller, diag);
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
	weir_instance_note(controller->name, WEIR_JOURNAL_CONTROLLER, "controller started, process %d", (int)getpid());
	*ret_controller = TAKE_PTR(controller);
	return 0;
}

void weir_controller_free(struct weir_controller *controller)
{
	if (!controller)
		return;
	if (controller->control) {
		/* We have the map open and hold the lock, so this cannot undo the next controller's heartbeat. */
		if (controller->thresholds) { /* from now on the program uses the rules' own rates */
			const uint64_t now_ns = weir_host_now_ns();

			weir_thresholds_expire(controller->thresholds, expiry_ns(controller->control), now_ns);
			weir_thresholds_expire(controller->thresholds, now_ns, now_ns);
		}
		__atomic_store_n(&controller->control->heartbeat_ns, 0, __ATOMIC_RELEASE);
		if (controller->is_noted)
			weir_instance_note(controller->name, WEIR_JOURNAL_CONTROLLER,
					   "controller ended: moving thresholds are at their safe values");
		munmap(controller->control, weir_controller_control_bytes());
	}
	weir_thresholds_free(controller->thresholds);
	for (size_t i = 0; weir_calculators()[i]; i++)
		if (controller->calculated[i])
			weir_calculators()[i]->free(controller->calculated[i]);
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
	for (size_t i = 0; weir_calculators()[i]; i++)
		if (controller->calculated[i])
			weir_calculators()[i]->leave(controller->calculated[i]);
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
	uint32_t count = weir_thresholds_count(controller->thresholds) + controller->sampled_rules;

	for (size_t i = 0; weir_calculators()[i]; i++)
		if (controller->calculated[i])
			count += weir_calculators()[i]->rule_count(controller->calculated[i]);
	return count;
}
