// SPDX-License-Identifier: GPL-2.0-only
/* Loading the program folded, and unfolded where that is too much for the verifier. */
#include "program/object.h"

#include <errno.h>

#include "base/diag.h"
#include "base/util.h"
#include "program/object_internal.h"

int weir_object_load_by(weir_object_loader *load, const void *what, struct weir_object **ret_object,
			struct weir_diag *diag)
{
	_cleanup_(weir_diag_free) struct weir_diag complaints = {};
	int err = load(what, false, ret_object, &complaints);

	/* Verifiers compare states at branches, and folding leaves fewer: by clang 19, with every kind of limit, Linux
	 * 6.18 takes only the unfolded program.
	 */
	if (err == -E2BIG)
		return load(what, true, ret_object, diag);
	weir_diag_move(diag, &complaints, false);
	return err;
}

/* ---- the rules of an image ---- */

struct request {
	const struct weir_image *image;
	const struct weir_object_options *options;
};

static int load_image(const void *what, bool is_unfolded, struct weir_object **ret_object, struct weir_diag *diag)
{
	const struct request *request = what;
	struct weir_object_options options = *request->options;

	options.is_unfolded |= is_unfolded;
	return weir_object_try_load(request->image, &options, ret_object, diag);
}

int weir_object_load(const struct weir_image *image, const struct weir_object_options *options,
		     struct weir_object **ret_object, struct weir_diag *diag)
{
	return weir_object_load_by(load_image, &(struct request){image, options}, ret_object, diag);
}
