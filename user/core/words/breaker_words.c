// SPDX-License-Identifier: GPL-2.0-only
#include "words/breaker_words.h"

#include <stdio.h>

#include "words/json.h"

static bool was_evaluated(const struct weir_breaker_view *view)
{
	return view->requests > 0;
}

json_t *weir_json_breaker(const struct weir_breaker_view *view, enum weir_breaker_strategy strategy)
{
	return json_pack(
		"{s:s, s:f, s:I, s:I, s:o, s:I}", "state", weir_breaker_kind_names[view->kind], "leftSeconds",
		view->left_ns / 1e9, "requests", (json_int_t)view->requests, "bad", (json_int_t)view->bad, "value",
		was_evaluated(view) ? weir_json_threshold(weir_breaker_value_micro(view, strategy)) : json_null(),
		"changes", (json_int_t)view->changes);
}

json_t *weir_json_breaker_sum(const struct weir_breaker_sum *sum, enum weir_breaker_strategy strategy, bool has_flows)
{
	if (!has_flows)
		return weir_json_breaker(&sum->lone, strategy);
	return json_pack("{s:I, s:I, s:I, s:I}", "closed", (json_int_t)sum->count[WEIR_BREAKER_CLOSED], "open",
			 (json_int_t)sum->count[WEIR_BREAKER_OPEN], "halfOpen",
			 (json_int_t)sum->count[WEIR_BREAKER_HALF_OPEN], "changes", (json_int_t)sum->changes);
}

const char *weir_breaker_kind_word(enum weir_breaker_kind kind)
{
	return kind == WEIR_BREAKER_HALF_OPEN ? "half-open" : weir_breaker_kind_names[kind];
}

const char *weir_format_breaker_state(const struct weir_breaker_view *view, char words[WEIR_WORDS_BYTES])
{
	if (view->kind == WEIR_BREAKER_OPEN && view->left_ns)
		snprintf(words, WEIR_WORDS_BYTES, "open, retry in %.3f s", view->left_ns / 1e9);
	else if (view->kind == WEIR_BREAKER_OPEN)
		snprintf(words, WEIR_WORDS_BYTES, "open, the next request probes");
	else
		snprintf(words, WEIR_WORDS_BYTES, "%s", weir_breaker_kind_word(view->kind));
	return words;
}

const char *weir_format_breaker_sum(const struct weir_breaker_sum *sum, bool has_flows, char words[WEIR_WORDS_BYTES])
{
	const unsigned long long open = sum->count[WEIR_BREAKER_OPEN], half_open = sum->count[WEIR_BREAKER_HALF_OPEN];

	if (!has_flows)
		return weir_format_breaker_state(&sum->lone, words);
	snprintf(words, WEIR_WORDS_BYTES, "%llu open, %llu half-open of %llu", open, half_open,
		 sum->count[WEIR_BREAKER_CLOSED] + open + half_open);
	return words;
}

const char *weir_format_breaker_value(const struct weir_breaker_view *view, enum weir_breaker_strategy strategy,
				      char words[WEIR_WORDS_BYTES])
{
	if (!was_evaluated(view))
		snprintf(words, WEIR_WORDS_BYTES, "-");
	else
		snprintf(words, WEIR_WORDS_BYTES, "%g (%llu of %llu)",
			 weir_breaker_value_micro(view, strategy) / (double)WEIR_MICRO, (unsigned long long)view->bad,
			 (unsigned long long)view->requests);
	return words;
}
