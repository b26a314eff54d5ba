// SPDX-License-Identifier: GPL-2.0-only
#include "machine.h"

#include <dirent.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "host/host.h"

#define MITIGATIONS "/sys/devices/system/cpu/vulnerabilities"

/* The value of "name : value" in /proc/cpuinfo, of the first CPU. */
static void read_cpuinfo(const char *name, char *text, size_t bytes)
{
	FILE *stream = fopen("/proc/cpuinfo", "re");
	char line[4096];

	snprintf(text, bytes, "unknown");
	while (stream && fgets(line, sizeof(line), stream)) {
		char *colon = strchr(line, ':');

		if (!colon || strncmp(line, name, strlen(name)))
			continue;
		colon[strcspn(colon, "\n")] = 0;
		snprintf(text, bytes, "%s", colon + 2);
		break;
	}
	if (stream)
		fclose(stream);
}

static void describe_cpu(char *text, size_t bytes)
{
	char model[128], family[16], number[16], flags[4096];

	read_cpuinfo("model name", model, sizeof(model));
	read_cpuinfo("cpu family", family, sizeof(family));
	read_cpuinfo("model\t", number, sizeof(number));
	read_cpuinfo("flags", flags, sizeof(flags));
	snprintf(text, bytes, "%s (family %s, model %s)%s", model, family, number,
		 strstr(flags, " hypervisor") ? ", virtual" : "");
}

/* Only what is mitigated costs time. */
static json_t *describe_mitigations(void)
{
	struct dirent **entries = NULL;
	int count = scandir(MITIGATIONS, &entries, NULL, alphasort);
	char text[2048] = "", path[512], state[256];

	for (int i = 0; i < count; i++) {
		size_t length = strlen(text);

		snprintf(path, sizeof(path), MITIGATIONS "/%s", entries[i]->d_name);
		if (entries[i]->d_name[0] != '.' && !weir_host_read_text(path, state, sizeof(state)) &&
		    strcmp(state, "Not affected"))
			snprintf(text + length, sizeof(text) - length, "%s%s: %s", length ? "; " : "",
				 entries[i]->d_name, state);
		free(entries[i]);
	}
	free(entries);
	return json_string(text);
}

static bool set_words(json_t *machine, const char *name, const char *text)
{
	return json_object_set_new(machine, name, json_string(text)) == 0;
}

json_t *machine_describe(const char *busy)
{
	uint64_t tick_ns = weir_host_tick_ns();
	time_t now = time(NULL);
	json_t *machine = json_object();
	struct utsname system;
	char text[256];

	uname(&system);
	describe_cpu(text, sizeof(text));
	set_words(machine, "CPU", text);
	snprintf(text, sizeof(text), "%d online of %d possible; the bench uses at most two", get_nprocs(),
		 weir_host_cpus());
	set_words(machine, "cores", text);
	snprintf(text, sizeof(text), "%.0f GB", sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 1e9);
	set_words(machine, "memory", text);
	/* What follows the version names a build, and often a place. */
	system.release[strcspn(system.release, "-")] = 0;
	snprintf(text, sizeof(text), "%.63s %.63s, HZ %.0f", system.sysname, system.release,
		 tick_ns ? 1e9 / tick_ns : 0.0);
	set_words(machine, "kernel", text);
	json_object_set_new(machine, "mitigations", describe_mitigations());
	set_words(machine, "busy with other things", busy);
	strftime(text, sizeof(text), "%Y-%m-%d", gmtime(&now));
	set_words(machine, "date", text);
	return machine;
}
