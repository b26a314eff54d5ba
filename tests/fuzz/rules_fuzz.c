// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rule files, YAML and JSON, and Sentinel's lists, which begin with a bracket. A text is read or refused with a word;
 * and what `weir show` prints of what was read is read again, to the same text, in both forms.
 */
#include "fuzz.h"

#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "rules/emit.h"
#include "rules/ruleset.h"
#include "sentinel/sentinel.h"

/* The resources that the samples of Sentinel's lists speak of. */
static const char for_lists[] =
	"resources: [{name: dns}, {name: web}, {name: a, flow: source}, {name: b}, {name: all}]\n";

static int read_list(const uint8_t *data, size_t bytes, struct weir_ruleset **ret_ruleset, struct weir_diag *diag)
{
	int resources_fd = fuzz_file((const uint8_t *)for_lists, strlen(for_lists)), list_fd = fuzz_file(data, bytes);
	char resources[FUZZ_PATH_BYTES], list[FUZZ_PATH_BYTES];
	const char *paths[] = {fuzz_path(resources_fd, resources), fuzz_path(list_fd, list)};
	int err = weir_ruleset_read(paths, ARRAY_SIZE(paths), ret_ruleset, diag);

	close(resources_fd);
	close(list_fd);
	return err;
}

static char *emit(const struct weir_ruleset *ruleset, enum weir_form form, size_t *ret_bytes)
{
	char *text = NULL;
	FILE *stream = open_memstream(&text, ret_bytes);

	FUZZ_CHECK(stream);
	weir_ruleset_emit(ruleset, form, true, stream);
	fclose(stream);
	return text;
}

static void check_the_way_back(const struct weir_ruleset *ruleset, enum weir_form form)
{
	struct weir_ruleset *again = NULL;
	struct weir_diag diag = {};
	size_t bytes, again_bytes;
	char *text = emit(ruleset, form, &bytes), *again_text;
	int err = weir_ruleset_parse("again", text, bytes, &again, &diag);

	if (err) {
		fputs(text, stderr);
		weir_diag_print(&diag, stderr);
	}
	FUZZ_CHECK(!err);
	again_text = emit(again, form, &again_bytes);
	FUZZ_CHECK(bytes == again_bytes && !memcmp(text, again_text, bytes));
	free(text);
	free(again_text);
	weir_ruleset_free(again);
	weir_diag_free(&diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct weir_ruleset *ruleset = NULL;
	struct weir_diag diag = {};
	char *text = malloc(bytes + 1);
	int err;

	FUZZ_CHECK(text);
	if (bytes)
		memcpy(text, data, bytes);
	text[bytes] = '\0';
	/* "@FILE" would read any file of this machine: lists_fuzz has files of its own. */
	if (memchr(text, '@', bytes) || strstr(text, "\\x40") || strstr(text, "\\u0040")) {
		free(text);
		return 0;
	}
	weir_use_foreign_reader(&weir_sentinel_reader);
	if (text[0] == '[')
		err = read_list(data, bytes, &ruleset, &diag);
	else
		err = weir_ruleset_parse("fuzz", text, bytes, &ruleset, &diag);
	FUZZ_CHECK(!err == !diag.errors);
	FUZZ_CHECK(!err == !!ruleset);
	if (!err) {
		check_the_way_back(ruleset, WEIR_FORM_YAML);
		check_the_way_back(ruleset, WEIR_FORM_JSON);
	}
	weir_ruleset_free(ruleset);
	weir_diag_free(&diag);
	free(text);
	return 0;
}
