// SPDX-License-Identifier: GPL-2.0-only
#include "pins/pins.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "host/bpffs.h"

/* Suffix of a pin that is about to replace the one without the suffix. */
#define NEW_SUFFIX "-new"

void weir_pin_path(const char *instance, const char *pin, char *path)
{
	snprintf(path, PATH_MAX, "%s/%s%s%s", weir_bpffs_base(), instance, pin ? "/" : "", pin ? pin : "");
}

/* By enum weir_hook. */
static const char *const program_pins[] = {"program", "program_tc_in", "program_tc_out", "program_tc_bare_in",
					   "program_tc_bare_out"};
static const char *const guard_pins[] = {"guard", "guard_tc_in", "guard_tc_out", "guard_tc_bare_in",
					 "guard_tc_bare_out"};
_Static_assert(ARRAY_SIZE(program_pins) == WEIR_HOOKS && ARRAY_SIZE(guard_pins) == WEIR_HOOKS, "a pin for each hook");

const char *weir_pin_of_program(enum weir_hook hook)
{
	return program_pins[hook];
}

const char *weir_pin_of_guard(enum weir_hook hook)
{
	return guard_pins[hook];
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

bool weir_pin_is_there(const char *instance, const char *pin)
{
	char path[PATH_MAX];

	weir_pin_path(instance, pin, path);
	return !access(path, F_OK);
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

	weir_unpin_new(instance, pin); /* left by a reload that was killed */
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
