// SPDX-License-Identifier: GPL-2.0-only
#include "serve/answer.h"

#include <stddef.h>
#include <string.h>

#include "base/util.h"

/* The path of Debian's libjs-dygraphs; the Makefile may set another one. */
#ifndef WEIR_DYGRAPHS
#define WEIR_DYGRAPHS "/usr/share/javascript/dygraphs"
#endif

/* The assembler includes the file unchanged. Paths are relative to the top of the source tree, where make runs. */
#define EMBED(name, file)                                                                                              \
	__asm__(".section .rodata\n"                                                                                   \
		"weir_asset_" #name ":\n"                                                                              \
		".incbin \"" file "\"\n"                                                                               \
		"weir_asset_" #name "_end:\n"                                                                          \
		".previous\n");                                                                                        \
	extern const char weir_asset_##name[], weir_asset_##name##_end[]

EMBED(html, "user/serve/page/index.html");
EMBED(style, "user/serve/page/page.css");
EMBED(script, "user/serve/page/page.js");
EMBED(icon, "user/serve/page/icon.svg");
EMBED(charts_script, WEIR_DYGRAPHS "/dygraph.min.js");
EMBED(charts_style, WEIR_DYGRAPHS "/dygraph.min.css");

#define ASSET(path, type, name)                                                                                        \
	{                                                                                                              \
		path, type, weir_asset_##name, weir_asset_##name##_end                                                 \
	}
static const struct weir_asset assets[] = {
	ASSET("/", "text/html; charset=utf-8", html),
	ASSET("/page.css", "text/css; charset=utf-8", style),
	ASSET("/page.js", "text/javascript; charset=utf-8", script),
	ASSET("/icon.svg", "image/svg+xml", icon),
	ASSET("/dygraph.js", "text/javascript; charset=utf-8", charts_script),
	ASSET("/dygraph.css", "text/css; charset=utf-8", charts_style),
};

const struct weir_asset *weir_page_find(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(assets); i++)
		if (!strcmp(assets[i].path, path))
			return &assets[i];
	return NULL;
}

bool weir_page_is_built(void)
{
	return true;
}
