// SPDX-License-Identifier: GPL-2.0-only
#include "rules/store_url.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char advice[] =
	"write redis://HOST:PORT/DATABASE, such as redis://192.0.2.10:6379/0, rediss:// for TLS, or "
	"unix:///PATH";

static int refuse(struct weir_refusal *refusal, const char *url)
{
	weir_refuse(refusal, "redis: '%.*s' is not the address of a store", WEIR_SHOWN(url));
	return weir_advise(refusal, "%s", advice);
}

/* Remove "USER@" from the start of *rest. */
static int take_user(char **rest, struct weir_store_address *address, struct weir_refusal *refusal)
{
	char *end = strchr(*rest, '@');

	if (!end)
		return 0;
	*end = '\0';
	if (strchr(*rest, ':')) {
		weir_refuse(refusal, "redis: everybody who may see the rules can read a password in a rule file");
		return weir_advise(refusal, "put the password in a file, and name that as 'passwordFile'");
	}
	if (strlen(*rest) >= sizeof(address->user)) {
		weir_refuse(refusal, "redis: the user's name is too long");
		return weir_advise(refusal, "write at most %zu bytes", sizeof(address->user) - 1);
	}
	strcpy(address->user, *rest);
	*rest = end + 1;
	return 0;
}

static int read_database(const char *text, struct weir_store_address *address, struct weir_refusal *refusal)
{
	uint64_t number;
	int err = weir_parse_number(text, 0, WEIR_STORE_DATABASES - 1, &number, refusal);

	if (!err)
		address->database = (uint32_t)number;
	return err;
}

static int read_port(const char *text, struct weir_store_address *address, struct weir_refusal *refusal)
{
	uint64_t number;
	int err = weir_parse_number(text, 1, UINT16_MAX, &number, refusal);

	if (!err)
		address->port = (uint16_t)number;
	return err;
}

/* Some resolvers read a name whose last part is a number as an old-style address: "10.1" as 10.0.0.1. */
static bool is_name(const char *host)
{
	const char *last = strrchr(host, '.');

	last = last ? last + 1 : host;
	return *host && *host != '-' && *host != '.' && last[strspn(last, "0123456789")] &&
	       strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == strlen(host);
}

static int read_host(const char *host, struct weir_store_address *address, struct weir_refusal *refusal)
{
	if (!strcmp(host, "localhost"))
		host = "127.0.0.1";
	address->family = strchr(host, ':') ? 6 : 4;
	if (inet_pton(address->family == 6 ? AF_INET6 : AF_INET, host, address->address) == 1)
		return 0;
	if (is_name(host)) {
		address->family = 0;
		strcpy(address->name, host);
		return 0;
	}
	weir_refuse(refusal, "redis: '%.*s' is neither an address nor a name", WEIR_SHOWN(host));
	return weir_advise(refusal, "write a name, an IPv4 address, or an IPv6 one in brackets");
}

/* "HOST[:PORT][/DATABASE]" */
static int read_tcp(char *rest, struct weir_store_address *address, struct weir_refusal *refusal)
{
	char *database = strchr(rest, '/'), *port;
	int err = 0;

	address->port = WEIR_STORE_PORT;
	if (database) {
		*database++ = '\0';
		err = *database ? read_database(database, address, refusal) : 0;
	}
	if (err)
		return err;
	if (*rest == '[') {
		char *end = strchr(rest, ']');

		if (!end || (end[1] && end[1] != ':'))
			return refuse(refusal, rest);
		port = end[1] ? end + 2 : NULL;
		*end = '\0';
		rest++;
		if (!strchr(rest, ':'))
			return refuse(refusal, rest);
	} else {
		port = strchr(rest, ':');
		if (port)
			*port++ = '\0';
	}
	if (port)
		err = read_port(port, address, refusal);
	return err ? err : read_host(rest, address, refusal);
}

/* "/PATH[?db=DATABASE]" */
static int read_unix(char *rest, struct weir_store_address *address, struct weir_refusal *refusal)
{
	char *query = strchr(rest, '?');

	if (query)
		*query++ = '\0';
	if (*rest != '/' || strlen(rest) >= sizeof(address->path)) {
		weir_refuse(refusal, "redis: '%.*s' is not a socket path", WEIR_SHOWN(rest));
		return weir_advise(refusal, "write an absolute path, at most %zu bytes: unix:///run/redis/redis.sock",
				   sizeof(address->path) - 1);
	}
	strcpy(address->path, rest);
	if (!query)
		return 0;
	if (strncmp(query, "db=", 3))
		return refuse(refusal, query);
	return read_database(query + 3, address, refusal);
}

int weir_parse_store(const char *url, struct weir_store_address *ret_address, struct weir_refusal *reterr_refusal)
{
	struct weir_store_address address = {};
	char text[WEIR_STORE_URL_CHARS], *rest;
	bool is_unix = !strncmp(url, "unix://", 7);
	int err;

	*reterr_refusal = (struct weir_refusal){};
	address.is_tls = !strncmp(url, "rediss://", 9);
	if ((!is_unix && !address.is_tls && strncmp(url, "redis://", 8)) || strlen(url) >= sizeof(text))
		return refuse(reterr_refusal, url);
	strcpy(text, url);
	rest = strstr(text, "://") + 3;
	err = take_user(&rest, &address, reterr_refusal);
	if (!err)
		err = is_unix ? read_unix(rest, &address, reterr_refusal) : read_tcp(rest, &address, reterr_refusal);
	if (!err)
		*ret_address = address;
	return err;
}
