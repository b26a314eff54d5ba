// SPDX-License-Identifier: GPL-2.0-only
#include "timers.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

#define WAIT_S 1 /* chosen, not derived: a CPU that is busy with others takes milliseconds */

/* Shared by a thread for each CPU, which may be kept from running for ever, and by who waits for them all. */
struct lesson {
	pthread_mutex_t mutex;
	pthread_cond_t done;
	int program_fd; /* our own */
	int cpus;
	int next_cpu; /* that no thread has taken yet */
	int waiting_for;
	int holders;
};

static struct lesson *lesson_new(int program_fd)
{
	struct lesson *lesson = calloc(1, sizeof(*lesson));

	if (!lesson)
		return NULL;
	lesson->program_fd = fcntl(program_fd, F_DUPFD_CLOEXEC, 0);
	lesson->cpus = weir_host_cpus();
	lesson->holders = 1;
	pthread_mutex_init(&lesson->mutex, NULL);
	pthread_cond_init(&lesson->done, NULL);
	return lesson;
}

/* Unlocks; the last one to leave cleans up. */
static void lesson_leave(struct lesson *lesson)
{
	int holders = --lesson->holders;

	pthread_mutex_unlock(&lesson->mutex);
	if (holders)
		return;
	if (lesson->program_fd >= 0)
		close(lesson->program_fd);
	pthread_cond_destroy(&lesson->done);
	pthread_mutex_destroy(&lesson->mutex);
	free(lesson);
}

static bool pin_to(int cpu, int cpus)
{
	cpu_set_t *set = CPU_ALLOC(cpus);
	size_t bytes = CPU_ALLOC_SIZE(cpus);
	bool is_pinned;

	if (!set)
		return false;
	CPU_ZERO_S(bytes, set);
	CPU_SET_S(cpu, bytes, set);
	is_pinned = !sched_setaffinity(0, bytes, set);
	CPU_FREE(set);
	return is_pinned;
}

static void *learn_here(void *data)
{
	const struct lesson *lesson = data;
	char frame[ETH_HLEN] = {};
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = sizeof(frame), .repeat = 1);

	bpf_prog_test_run_opts(lesson->program_fd, &options);
	return NULL;
}

/* A thread that was made on the CPU: that is what weir_learn_timers() goes by. */
static void *learn_on_next(void *data)
{
	struct lesson *lesson = data;
	pthread_t thread;
	int cpu;

	pthread_mutex_lock(&lesson->mutex);
	cpu = lesson->next_cpu++;
	pthread_mutex_unlock(&lesson->mutex);
	if (pin_to(cpu, lesson->cpus) && !pthread_create(&thread, NULL, learn_here, lesson))
		pthread_join(thread, NULL);

	pthread_mutex_lock(&lesson->mutex);
	lesson->waiting_for--;
	pthread_cond_signal(&lesson->done);
	lesson_leave(lesson);
	return NULL;
}

static void begin_on_every_cpu(struct lesson *lesson)
{
	pthread_attr_t detached;

	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	for (int i = 0; i < lesson->cpus; i++) {
		pthread_t thread;

		if (pthread_create(&thread, &detached, learn_on_next, lesson))
			break;
		lesson->waiting_for++;
		lesson->holders++;
	}
	pthread_attr_destroy(&detached);
}

void weir_timers_learn(int program_fd)
{
	struct lesson *lesson = lesson_new(program_fd);
	struct timespec until;

	if (!lesson)
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_S;
	pthread_mutex_lock(&lesson->mutex);
	if (lesson->program_fd >= 0)
		begin_on_every_cpu(lesson);
	while (lesson->waiting_for && pthread_cond_timedwait(&lesson->done, &lesson->mutex, &until) != ETIMEDOUT)
		;
	lesson_leave(lesson);
}
