/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The address of a cluster's store: `settings.cluster.redis`, in the format of redis-cli. Pure: names are not looked up
 * here; "localhost" is 127.0.0.1.
 */
#ifndef WEIR_RULES_CLUSTER_H
#define WEIR_RULES_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "rules/scalars.h"

#define WEIR_STORE_PORT 6379
#define WEIR_STORE_URL_CHARS 128  /* same as WEIR_CLUSTER_URL_CHARS */
#define WEIR_STORE_PATH_CHARS 108 /* socket path: size of sun_path */
#define WEIR_STORE_USER_CHARS 64
#define WEIR_STORE_DATABASES 16384 /* the most that Redis can be configured for. Chosen, not derived */

struct weir_store_address {
	char path[WEIR_STORE_PATH_CHARS]; /* of a socket; empty: there is an address instead */
	char name[WEIR_STORE_URL_CHARS];  /* host name to look up; empty: `address` is set */
	uint8_t family;			  /* 4 or 6 */
	uint8_t address[16];		  /* network order, IPv4 in the first four */
	uint16_t port;
	bool is_tls;
	uint32_t database;
	char user[WEIR_STORE_USER_CHARS]; /* empty: the default user */
};

/*
 * Parse "redis://[USER@]HOST[:PORT][/DATABASE]", "rediss://..." for TLS, or "unix://[USER@]/PATH[?db=DATABASE]".
 * Returns -EINVAL with the reason. Passwords are refused, because everyone who may see the rules can read the words of
 * a rule file.
 */
int weir_parse_store(const char *url, struct weir_store_address *ret_address, struct weir_refusal *reterr_refusal);

#endif
