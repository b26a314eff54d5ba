// SPDX-License-Identifier: GPL-2.0-only
#include "report/rule_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "rules/emit.h"
#include "rules/history.h"
#include "words/json.h"

/* Names, one per line. */
static json_t *describe_files(const char *files)
{
	json_t *list = json_array();

	while (*files) {
		size_t bytes = strcspn(files, "\n");
		_cleanup_(weir_freep) char *name = strndup(files, bytes);

		weir_json_append(&list, name ? weir_json_text(name) : NULL);
		files += bytes + (files[bytes] != '\0');
	}
	return list;
}

/* The rule set as `weir show --json` writes it. NULL: out of memory. */
static json_t *describe_rules(const struct weir_ruleset *ruleset)
{
	_cleanup_(weir_freep) char *text = NULL;
	size_t bytes;
	FILE *stream = open_memstream(&text, &bytes);

	if (!stream)
		return NULL;
	weir_ruleset_emit(ruleset, WEIR_FORM_JSON, false, stream);
	if (fclose(stream))
		return NULL;
	return json_loadb(text, bytes, 0, NULL);
}

static int describe(const struct weir_instance *instance, const struct weir_kept_set *set, json_t **ret_document,
		    struct weir_diag *diag)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	char hash[17];
	int err = weir_kept_set_read(set, &ruleset, diag);

	if (err)
		return err;
	snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)set->digest);
	*ret_document = json_pack("{s:s, s:I, s:s, s:o, s:I, s:I, s:o, s:o}", "instance", instance->name, "generation",
				  (json_int_t)instance->info.generation, "hash", hash, "files",
				  describe_files(set->files), "allowCount", (json_int_t)instance->info.allow_count,
				  "denyCount", (json_int_t)instance->info.deny_count, "text", weir_json_text(set->text),
				  "rules", describe_rules(ruleset));
	return *ret_document ? 0 : weir_diag_fail(diag, ENOMEM, NULL, "cannot show the rule set");
}

int weir_rule_set_describe(const struct weir_instance *instance, json_t **ret_document, struct weir_diag *diag)
{
	_cleanup_(weir_history_free) struct weir_history history = {};
	int err = weir_instance_kept(instance, &history, diag);

	return err ?: describe(instance, history.sets[0], ret_document, diag);
}
