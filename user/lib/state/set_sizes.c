// SPDX-License-Identifier: GPL-2.0-only
#include "state/set_sizes.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/util.h"

bool weir_set_file_age(const struct weir_set_size *set, uint64_t *ret_ago_ns, uint64_t *ret_unix_s)
{
	struct timespec now;
	struct stat status;
	int64_t age_ns;

	if (!set->file || stat(set->file, &status))
		return false;
	clock_gettime(CLOCK_REALTIME, &now);
	age_ns = (int64_t)(now.tv_sec - status.st_mtim.tv_sec) * WEIR_NSEC_PER_SEC + now.tv_nsec -
		 status.st_mtim.tv_nsec;
	*ret_ago_ns = age_ns > 0 ? age_ns : 0;
	if (ret_unix_s)
		*ret_unix_s = status.st_mtim.tv_sec;
	return true;
}

void weir_sets_read_note(const struct weir_instance *instance, struct weir_sets_view *view)
{
	weir_sets_note_read(instance->name, &view->note);
	if (!view->count)
		view->note.refused_ns = 0;
}

int weir_sets_read(const struct weir_instance *instance, struct weir_sets_view *ret_view, struct weir_diag *diag)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	_cleanup_(weir_history_free) struct weir_history history = {};
	_cleanup_(weir_sets_view_free) struct weir_sets_view view = {};

	weir_instance_history(instance, &history);
	if (history.sets[0] && history.sets[0]->sets_bytes && weir_kept_set_read(history.sets[0], &ruleset, diag))
		return -EIO;
	view.sets = calloc(ruleset ? ruleset->set_count + 1 : 1, sizeof(*view.sets));
	for (size_t i = 0; view.sets && ruleset && i < ruleset->set_count; i++) {
		struct weir_set *set = &ruleset->sets[i];

		view.sets[view.count++] = (struct weir_set_size){
			.name = TAKE_PTR(set->name),
			.file = TAKE_PTR(set->file),
			.prefixes = set->entry_count,
			.labels = set->label_count,
		};
	}
	if (!view.sets)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot read the sets");
	weir_sets_read_note(instance, &view);
	*ret_view = view;
	view = (struct weir_sets_view){};
	return 0;
}

void weir_sets_view_free(struct weir_sets_view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		free(view->sets[i].name);
		free(view->sets[i].file);
	}
	free(view->sets);
	*view = (struct weir_sets_view){};
}
