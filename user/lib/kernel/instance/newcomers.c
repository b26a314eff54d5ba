// SPDX-License-Identifier: GPL-2.0-only
/*
 * `match.interface` for interfaces that appear while rules are in force. The compiler's knowledge of names and patterns
 * (struct weir_interface_case) is pinned beside the program's map `interfaces`. So any command that puts the program on
 * an interface can first write which resources select the interface.
 *
 * The pins are replaced one by one, and a reload may be killed between two of them, so the head of the cases names the
 * map to which they belong. While rules are not confirmed, only the new rules are updated for new interfaces. If the
 * previous rules return, the next command that runs loads them again, and that load looks at all interfaces.
 */
#include "instance/instance_internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "program/array.h"
#include "program/maps.h"

static uint32_t map_id(int fd)
{
	struct bpf_map_info info = {};
	__u32 info_bytes = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &info_bytes) ? 0 : info.id;
}

/* Write the cases to a map. Returns a descriptor or -errno. */
static int write_cases(const struct weir_image *image, int interfaces_fd)
{
	const uint32_t count = image->case_count + 1;
	_cleanup_(weir_freep) struct weir_interface_case *cases = calloc(count, sizeof(*cases));
	_cleanup_(weir_closep) int fd = -1;
	int err;

	if (!cases)
		return -ENOMEM;
	cases[0] = (struct weir_interface_case){.kind = WEIR_CASE_HEAD, .map_id = map_id(interfaces_fd)};
	memcpy(cases + 1, image->cases, image->case_count * sizeof(*cases));
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "weir_cases", sizeof(uint32_t), sizeof(*cases), count, NULL);
	if (fd < 0)
		return -errno;
	err = weir_array_write(fd, cases, count, sizeof(*cases));
	return err ? err : TAKE_FD(fd);
}

int weir_cases_pin(const char *instance, const struct weir_image *image, const struct weir_object *object,
		   int (*pin_one)(const char *instance, const char *pin, int fd, struct weir_diag *diag),
		   struct weir_diag *diag)
{
	const int interfaces_fd = weir_object_own_map_fd(object, WEIR_PIN_INTERFACES);
	_cleanup_(weir_closep) int fd = -1;
	int err;

	if (!image->case_count)
		return 0;
	fd = write_cases(image, interfaces_fd);
	if (fd < 0)
		return weir_diag_fail(diag, -fd, NULL, "cannot describe the interfaces of instance '%s'", instance);
	err = pin_one(instance, WEIR_PIN_CASES, fd, diag);
	return err ? err : pin_one(instance, WEIR_PIN_INTERFACES, interfaces_fd, diag);
}

int weir_cases_take_new(const char *instance, const struct weir_image *image, struct weir_diag *diag)
{
	int err;

	if (!image->case_count) {
		weir_unpin(instance, WEIR_PIN_CASES);
		weir_unpin(instance, WEIR_PIN_INTERFACES);
		return 0;
	}
	err = weir_pin_take_new(instance, WEIR_PIN_CASES, diag);
	return err ? err : weir_pin_take_new(instance, WEIR_PIN_INTERFACES, diag);
}

void weir_cases_drop_new(const char *instance)
{
	weir_unpin_new(instance, WEIR_PIN_CASES);
	weir_unpin_new(instance, WEIR_PIN_INTERFACES);
}

/* The caller frees *ret_cases. The first element is the head. */
static int read_cases(int fd, struct weir_interface_case **ret_cases, uint32_t *ret_count)
{
	_cleanup_(weir_freep) struct weir_interface_case *cases = NULL;
	struct bpf_map_info info = {};
	__u32 info_bytes = sizeof(info);
	int err;

	if (bpf_obj_get_info_by_fd(fd, &info, &info_bytes))
		return -errno;
	if (info.value_size != sizeof(*cases))
		return -EPROTO;
	cases = calloc(info.max_entries, sizeof(*cases));
	err = cases ? weir_array_read(fd, cases, info.max_entries, sizeof(*cases)) : -ENOMEM;
	if (err)
		return err;
	*ret_cases = TAKE_PTR(cases);
	*ret_count = info.max_entries;
	return 0;
}

int weir_cases_follow(const char *instance)
{
	_cleanup_(weir_closep) int cases_fd = weir_pin_open(instance, WEIR_PIN_CASES);
	_cleanup_(weir_closep) int interfaces_fd = weir_pin_open(instance, WEIR_PIN_INTERFACES);
	_cleanup_(weir_freep) struct weir_interface_case *cases = NULL;
	uint32_t count = 0;
	int err;

	/* No resource has `interface`, or another version loaded the rules. */
	if (cases_fd == -ENOENT || interfaces_fd == -ENOENT)
		return 0;
	if (cases_fd < 0 || interfaces_fd < 0)
		return cases_fd < 0 ? cases_fd : interfaces_fd;
	err = read_cases(cases_fd, &cases, &count);
	if (err || !cases) /* -EPROTO: another layout, so another version wrote it */
		return err == -EPROTO ? 0 : err;
	if (cases[0].kind != WEIR_CASE_HEAD || cases[0].map_id != map_id(interfaces_fd))
		return 0;
	return weir_interfaces_update(interfaces_fd, cases + 1, count - 1);
}
