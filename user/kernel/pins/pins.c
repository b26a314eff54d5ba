// SPDX-License-Identifier: GPL-2.0-only
#include "pins/pins.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "host/bpffs.h"

/* No map is called so. */
#define NATIVE_PREFIX "native-"
#define SKB_PREFIX "skb-"

/* For a pin that is about to replace the one without. */
#define NEW_SUFFIX "-new"

void weir_pin_path(const char *instance, const char *pin, char *path)
{
	snprintf(path, PATH_MAX, "%s/%s%s%s", weir_bpffs_base(), instance, pin ? "/" : "", pin ? pin : "");
}

/* '.' and the '%' that stands for it are written as in URLs (RFC 3986, 2.1). */
void weir_link_pin(const char *interface, bool is_native, char pin[WEIR_LINK_PIN_BYTES])
{
	char *out = stpcpy(pin, is_native ? NATIVE_PREFIX : SKB_PREFIX);

	for (; *interface; interface++) {
		if (*interface == '.')
			out = stpcpy(out, "%2E");
		else if (*interface == '%')
			out = stpcpy(out, "%25");
		else
			*out++ = *interface;
	}
	*out = '\0';
}

bool weir_link_pin_parse(const char *pin, char ret_interface[IF_NAMESIZE], bool *ret_is_native)
{
	size_t bytes = 0;

	*ret_is_native = !strncmp(pin, NATIVE_PREFIX, strlen(NATIVE_PREFIX));
	if (!*ret_is_native && strncmp(pin, SKB_PREFIX, strlen(SKB_PREFIX)))
		return false;
	pin += strlen(*ret_is_native ? NATIVE_PREFIX : SKB_PREFIX);
	while (*pin && bytes < IF_NAMESIZE - 1) {
		bool is_dot = !strncmp(pin, "%2E", 3), is_percent = !strncmp(pin, "%25", 3);

		ret_interface[bytes++] = is_dot ? '.' : *pin;
		pin += is_dot || is_percent ? 3 : 1;
	}
	ret_interface[bytes] = '\0';
	return true;
}

int weir_pin(const char *instance, const char *pin, int fd, struct weir_diag *diag)
{
	char path[PATH_MAX];

	weir_pin_path(instance, pin, path);
	if (bpf_obj_pin(fd, path))
		return weir_diag_fail(diag, errno, NULL, "cannot pin '%s'", path);
	return 0;
}

int weir_pin_open(const char *instance, const char *pin)
{
	char path[PATH_MAX];

	weir_pin_path(instance, pin, path);
	return bpf_obj_get(path);
}

int weir_unpin(const char *instance, const char *pin)
{
	char path[PATH_MAX];

	weir_pin_path(instance, pin, path);
	return unlink(path) && errno != ENOENT ? -errno : 0;
}

/* ---- pins that replace others ---- */

#define NEW_PIN_BYTES 64

static const char *new_pin(const char *pin, char buffer[NEW_PIN_BYTES])
{
	snprintf(buffer, NEW_PIN_BYTES, "%s" NEW_SUFFIX, pin);
	return buffer;
}

int weir_pin_new(const char *instance, const char *pin, int fd, struct weir_diag *diag)
{
	char buffer[NEW_PIN_BYTES];

	weir_unpin_new(instance, pin); /* of a reload that was killed */
	return weir_pin(instance, new_pin(pin, buffer), fd, diag);
}

int weir_pin_take_new(const char *instance, const char *pin, struct weir_diag *diag)
{
	char from[PATH_MAX], to[PATH_MAX], buffer[NEW_PIN_BYTES];

	weir_pin_path(instance, new_pin(pin, buffer), from);
	weir_pin_path(instance, pin, to);
	if (rename(from, to))
		return weir_diag_fail(diag, errno, NULL, "cannot replace '%s'", to);
	return 0;
}

void weir_unpin_new(const char *instance, const char *pin)
{
	char buffer[NEW_PIN_BYTES];

	weir_unpin(instance, new_pin(pin, buffer));
}

int weir_pin_open_new(const char *instance, const char *pin)
{
	char buffer[NEW_PIN_BYTES];

	return weir_pin_open(instance, new_pin(pin, buffer));
}

int weir_pins_read(const char *instance, struct weir_names *ret_pins)
{
	char path[PATH_MAX];

	weir_pin_path(instance, NULL, path);
	return weir_names_read(path, ret_pins);
}
