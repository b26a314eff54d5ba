// SPDX-License-Identifier: GPL-2.0-only
/* Files of prefixes (allow and deny): read or refused with a word; what is listed comes sorted, each prefix once. */
#include "fuzz.h"

#include <string.h>
#include <unistd.h>

#include "rules/ruleset.h"
#include "rules/scalars.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct weir_ruleset *ruleset = NULL;
	struct weir_diag diag = {};
	char path[FUZZ_PATH_BYTES], text[128];
	int fd = fuzz_file(data, bytes), err;

	snprintf(text, sizeof(text), "allow: ['@%s']\ndeny: [192.0.2.0/24]\n", fuzz_path(fd, path));
	err = weir_ruleset_parse("fuzz", text, strlen(text), &ruleset, &diag);
	FUZZ_CHECK(!err == !diag.errors);
	for (size_t i = 1; !err && i < ruleset->listed_count; i++)
		FUZZ_CHECK(weir_compare_prefixes(&ruleset->listed[i - 1].prefix, &ruleset->listed[i].prefix) < 0);
	weir_ruleset_free(ruleset);
	weir_diag_free(&diag);
	close(fd);
	return 0;
}
