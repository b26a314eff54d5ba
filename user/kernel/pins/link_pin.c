// SPDX-License-Identifier: GPL-2.0-only
#include "pins/link_pin.h"

#include <string.h>

#include "base/util.h"

/* No map or program has such a name, and no prefix begins with another one. */
static const struct {
	const char *prefix;
	enum weir_hook hook;
	bool is_native, is_filter;
} kinds[] = {
	{"native-", WEIR_HOOK_XDP, true, false},
	{"skb-", WEIR_HOOK_XDP, false, false},
	{"tcx-in-", WEIR_HOOK_TC_IN, false, false},
	{"tcx-out-", WEIR_HOOK_TC_OUT, false, false},
	{"tcx-bare-in-", WEIR_HOOK_TC_BARE_IN, false, false},
	{"tcx-bare-out-", WEIR_HOOK_TC_BARE_OUT, false, false},
	{"filter-in-", WEIR_HOOK_TC_IN, false, true},
	{"filter-out-", WEIR_HOOK_TC_OUT, false, true},
	{"filter-bare-in-", WEIR_HOOK_TC_BARE_IN, false, true},
	{"filter-bare-out-", WEIR_HOOK_TC_BARE_OUT, false, true},
};

static const char *prefix_of(const struct weir_link *link)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(kinds) - 1 && (kinds[i].hook != link->hook || kinds[i].is_native != link->is_native ||
					     kinds[i].is_filter != link->is_filter))
		i++;
	return kinds[i].prefix;
}

/* '.' and '%', the escape character itself, are escaped as in URLs (RFC 3986, 2.1). */
void weir_link_pin(const struct weir_link *link, char pin[WEIR_LINK_PIN_BYTES])
{
	char *out = stpcpy(pin, prefix_of(link));

	for (const char *at = link->attached_as; *at; at++) {
		if (*at == '.')
			out = stpcpy(out, "%2E");
		else if (*at == '%')
			out = stpcpy(out, "%25");
		else
			*out++ = *at;
	}
	*out = '\0';
}

static void parse_interface(const char *text, char ret_interface[IF_NAMESIZE])
{
	size_t bytes = 0;

	while (*text && bytes < IF_NAMESIZE - 1) {
		bool is_dot = !strncmp(text, "%2E", 3), is_percent = !strncmp(text, "%25", 3);

		ret_interface[bytes++] = is_dot ? '.' : *text;
		text += is_dot || is_percent ? 3 : 1;
	}
	ret_interface[bytes] = '\0';
}

bool weir_link_pin_parse(const char *pin, struct weir_link *ret_link)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const size_t bytes = strlen(kinds[i].prefix);

		if (strncmp(pin, kinds[i].prefix, bytes) != 0)
			continue;
		*ret_link = (struct weir_link){
			.hook = kinds[i].hook, .is_native = kinds[i].is_native, .is_filter = kinds[i].is_filter};
		parse_interface(pin + bytes, ret_link->attached_as);
		return true;
	}
	return false;
}

const char *weir_link_mode_name(const struct weir_link *link)
{
	if (link->hook != WEIR_HOOK_XDP)
		return "tc";
	return link->is_native ? "native" : "skb";
}
