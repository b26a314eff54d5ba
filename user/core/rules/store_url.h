/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the store of a cluster is: `settings.cluster.redis`, as redis-cli writes it. Pure: nothing is looked up here.
 * "localhost" is 127.0.0.1.
 */
#ifndef WEIR_RULES_STORE_URL_H
#define WEIR_RULES_STORE_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "rules/scalars.h"

#define WEIR_STORE_PORT 6379
#define WEIR_STORE_URL_CHARS 128  /* as WEIR_CLUSTER_URL_CHARS */
#define WEIR_STORE_PATH_CHARS 108 /* of a socket: sun_path */
#define WEIR_STORE_USER_CHARS 64
#define WEIR_STORE_DATABASES 16384 /* as many as Redis can be configured to have. Chosen, not derived */

struct weir_store_address {
	char path[WEIR_STORE_PATH_CHARS]; /* of a socket; empty: an address */
	char name[WEIR_STORE_URL_CHARS];  /* to be looked up; empty: it is an address already */
	uint8_t family;			  /* 4 or 6 */
	uint8_t address[16];		  /* network order, IPv4 in the first four */
	uint16_t port;
	bool is_tls;
	uint32_t database;
	char user[WEIR_STORE_USER_CHARS]; /* empty: the default user */
};

/*
 * "redis://[USER@]HOST[:PORT][/DATABASE]", "rediss://..." for TLS, or "unix://[USER@]/PATH[?db=DATABASE]". -EINVAL says
 * why not; passwords are refused, as the words of a rule file are shown to everybody who may see the rules.
 */
int weir_parse_store(const char *url, struct weir_store_address *ret_address, struct weir_refusal *reterr_refusal);

#endif
