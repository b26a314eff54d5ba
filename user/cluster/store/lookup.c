// SPDX-License-Identifier: GPL-2.0-only
#include "store/lookup.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"

/* Either the thread ends first or the owner cancels first. The second of the two frees the lookup. */
enum { UNDER_WAY, ENDED, GIVEN_UP };

struct weir_lookup {
	int state; /* atomic; `found` may be read when this is ENDED */
	int event_fd;
	char name[256];
	struct weir_looked_up found;
};

/* The resolver needs some 70 kB in glibc 2.36, and more in modules of nsswitch.conf(5). Chosen, not derived. */
#define STACK_BYTES (512ul * 1024)

static void take_address(const struct addrinfo *one, struct weir_looked_up *found)
{
	struct weir_found_address *address = &found->addresses[found->count];
	struct sockaddr_in ipv4;
	struct sockaddr_in6 ipv6;

	if (found->count == WEIR_LOOKUP_ADDRESSES)
		return;
	if (one->ai_family == AF_INET) {
		memcpy(&ipv4, one->ai_addr, sizeof(ipv4));
		memcpy(address->address, &ipv4.sin_addr, sizeof(ipv4.sin_addr));
		address->family = 4;
	} else if (one->ai_family == AF_INET6) {
		memcpy(&ipv6, one->ai_addr, sizeof(ipv6));
		memcpy(address->address, &ipv6.sin6_addr, sizeof(ipv6.sin6_addr));
		address->family = 6;
		address->scope = ipv6.sin6_scope_id;
	} else {
		return;
	}
	found->count++;
}

static void look_up(const char *name, struct weir_looked_up *found)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
	struct addrinfo *list = NULL;
	int err = getaddrinfo(name, NULL, &hints, &list);
	const char *reason = err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err);

	for (const struct addrinfo *one = list; one; one = one->ai_next)
		take_address(one, found);
	if (list)
		freeaddrinfo(list);
	if (!found->count)
		snprintf(found->trouble, sizeof(found->trouble), "its name does not resolve: %s",
			 err ? reason : "it has no address");
}

static void free_it(struct weir_lookup *lookup)
{
	weir_closep(&lookup->event_fd);
	free(lookup);
}

/* Wake the owner first: as soon as the state is set, the lookup may be freed. */
static void *run(void *argument)
{
	struct weir_lookup *lookup = argument;
	const uint64_t one = 1;

	look_up(lookup->name, &lookup->found);
	if (write(lookup->event_fd, &one, sizeof(one)) < 0)
		snprintf(lookup->found.trouble, sizeof(lookup->found.trouble), "%s", strerror(errno));
	if (__atomic_exchange_n(&lookup->state, ENDED, __ATOMIC_ACQ_REL) == GIVEN_UP)
		free_it(lookup);
	return NULL;
}

static int start_thread(struct weir_lookup *lookup)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	pthread_t thread;
	int err = pthread_attr_init(&attributes);

	if (err)
		return -err;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	/* Signals must go to the thread that waits for them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, &attributes, run, lookup);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -err;
}

int weir_lookup_begin(const char *name, struct weir_lookup **ret_lookup)
{
	struct weir_lookup *lookup = calloc(1, sizeof(*lookup));
	int err;

	if (!lookup)
		return -ENOMEM;
	snprintf(lookup->name, sizeof(lookup->name), "%s", name);
	lookup->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = lookup->event_fd < 0 ? -errno : start_thread(lookup);
	if (err) {
		free_it(lookup);
		return err;
	}
	*ret_lookup = lookup;
	return 0;
}

int weir_lookup_fd(const struct weir_lookup *lookup)
{
	return lookup->event_fd;
}

bool weir_lookup_has_ended(const struct weir_lookup *lookup, struct weir_looked_up *ret)
{
	if (__atomic_load_n(&lookup->state, __ATOMIC_ACQUIRE) != ENDED)
		return false;
	*ret = lookup->found;
	return true;
}

void weir_lookup_free(struct weir_lookup *lookup)
{
	if (lookup && __atomic_exchange_n(&lookup->state, GIVEN_UP, __ATOMIC_ACQ_REL) == ENDED)
		free_it(lookup);
}
