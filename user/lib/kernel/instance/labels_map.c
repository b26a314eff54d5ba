// SPDX-License-Identifier: GPL-2.0-only
/*
 * The labels of an instance's flow keys (tables/labels.h), in a map of its own that no program reads: it is pinned with
 * the others, so that commands without any capability can show labels. Present if a flow key has a set.
 */
#include "instance/instance_internal.h"

#include <sys/mman.h>

#include "base/util.h"
#include "program/array.h"

int weir_labels_pin(const char *instance, const struct weir_object *object,
		    int (*pin_one)(const char *instance, const char *pin, int fd, struct weir_diag *diag),
		    struct weir_diag *diag)
{
	const struct weir_key_labels *labels = weir_object_labels(object);
	_cleanup_(weir_closep) int fd =
		labels ? weir_bytes_write("weir_labels", labels, weir_labels_bytes(labels->count)) : -1;

	if (!labels)
		return 0;
	if (fd < 0)
		return weir_diag_fail(diag, -fd, NULL, "cannot keep the labels of instance '%s'", instance);
	return pin_one(instance, WEIR_PIN_LABELS, fd, diag);
}

int weir_labels_take_new(const char *instance, const struct weir_object *object, struct weir_diag *diag)
{
	if (weir_object_labels(object))
		return weir_pin_take_new(instance, WEIR_PIN_LABELS, diag);
	weir_unpin(instance, WEIR_PIN_LABELS);
	return 0;
}

static bool has_labels(const struct weir_instance *instance)
{
	for (uint32_t slot = 0; slot < instance->info.rule_slots; slot++)
		if (instance->rules[slot].identity.key_fields & WEIR_KEY_LABELS)
			return true;
	return false;
}

void weir_labels_map(struct weir_instance *instance)
{
	_cleanup_(weir_closep) int fd = has_labels(instance) ? weir_pin_open(instance->name, WEIR_PIN_LABELS) : -1;
	const struct weir_key_labels *labels;
	size_t bytes;
	void *mapped;

	if (fd < 0 || weir_bytes_map(fd, &mapped, &bytes))
		return;
	labels = mapped;
	instance->labels = labels;
	instance->labels_bytes = bytes;
	if (labels->version != WEIR_LABELS_VERSION || labels->set_count > WEIR_KEY_SETS_MAX ||
	    labels->count > (bytes - sizeof(*labels)) / sizeof(labels->label[0]))
		weir_labels_unmap(instance); /* another version's: labels are shown by their hashes */
}

void weir_labels_unmap(struct weir_instance *instance)
{
	if (instance->labels)
		munmap((void *)(uintptr_t)instance->labels, instance->labels_bytes);
	instance->labels = NULL;
}
