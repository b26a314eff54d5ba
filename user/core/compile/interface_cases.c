// SPDX-License-Identifier: GPL-2.0-only
/* For interfaces that appear while rules are in force: which of the compiler's vectors applies to them. */
#include "compile/build_steps.h"

#include <fnmatch.h>
#include <string.h>

#include "base/util.h"
#include "rules/interface_words.h"

struct meaning {
	uint64_t meant[WEIR_INTERFACE_GROUPS_MAX / 64], excepted[WEIR_INTERFACE_GROUPS_MAX / 64];
};

static void note_pattern(const struct weir_interface_case *one, const char *name, struct meaning *meaning)
{
	const bool excepts = one->word[0] == WEIR_WORD_EXCEPTS;
	uint64_t *groups = excepts ? meaning->excepted : meaning->meant;

	if (one->group < WEIR_INTERFACE_GROUPS_MAX && !fnmatch(one->word + excepts, name, 0))
		groups[one->group / 64] |= 1ull << one->group % 64;
}

bool weir_interface_cases_find(const struct weir_interface_case *cases, uint32_t count, const char *name,
			       uint32_t *ret_vector)
{
	struct meaning meaning = {};

	for (uint32_t i = 0; i < count; i++) {
		if (cases[i].kind == WEIR_CASE_NAME && !strcmp(cases[i].word, name)) {
			*ret_vector = cases[i].vector;
			return true;
		}
		if (cases[i].kind == WEIR_CASE_PATTERN)
			note_pattern(&cases[i], name, &meaning);
	}
	if (!strcmp(name, "lo")) /* as weir_words_mean() */
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(meaning.meant); i++)
		meaning.meant[i] &= ~meaning.excepted[i];
	for (uint32_t i = 0; i < count; i++) {
		if (cases[i].kind != WEIR_CASE_GROUPS || memcmp(cases[i].groups, meaning.meant, sizeof(meaning.meant)))
			continue;
		*ret_vector = cases[i].vector;
		return true;
	}
	return false;
}

int weir_image_add_interface(struct weir_image *image, const char *name, uint32_t ifindex)
{
	uint32_t vector;

	if (!weir_interface_cases_find(image->cases, image->case_count, name, &vector))
		return 0;
	for (uint32_t i = 0; i < image->interface_count; i++)
		if (image->interfaces[i].ifindex == ifindex)
			return 0;
	if (!weir_array_add((void **)&image->interfaces, image->interface_count, sizeof(*image->interfaces)))
		return -ENOMEM;
	image->interfaces[image->interface_count++] = (struct weir_image_interface){ifindex, vector};
	return 0;
}
