/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How large things may be: resources, rules, names, CPUs. The program and userspace size maps and arrays by these
 * numbers. All are chosen, not derived, unless a comment says otherwise.
 */
#ifndef WEIR_ABI_SIZES_H
#define WEIR_ABI_SIZES_H

#include <linux/types.h>

/* The program lays counts and tags of 8 to 32 bits beside each other in words of 64, and userspace reads them as
 * structs: both are the same only where the first byte of a word is its lowest. All of weir includes this file.
 */
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weir does not work on a big-endian machine: it reads parts of words by their place (include/weir_sizes.h)"
#endif

#define WEIR_RESOURCES_MAX 4096			 /* resources of one load; one bit each in a vector */
#define WEIR_RULES_MAX 8192			 /* rules of one load */
#define WEIR_RULE_SLOTS_MAX (2 * WEIR_RULES_MAX) /* rules of one instance, so that a reload finds room */
/* Vector numbers have 16 bits. Vector 0 always holds all resources. */
#define WEIR_VECTORS_MAX 65535
#define WEIR_PACKET_RULES_MAX 16     /* rules that one packet may match */
#define WEIR_ANSWERED_MAX 16	     /* breakers that an answer to this host is shown to */
#define WEIR_PACKET_RESOURCES_MAX 32 /* resources that one packet may match, with or without rules */
#define WEIR_WINDOW_SPECS_MAX 1024   /* different window specs (bucket length and window) of one instance */
#define WEIR_SPECS_NARROW 16	     /* of these, how many a narrow or medium row can name: four bits of its tag */
#define WEIR_NOTE_PAIRS 2	     /* of notes that a set of narrow rows has (bpf/window/notes.h) */
#define WEIR_NOTES_BYTES 16
#define WEIR_CLOCK_BYTES 64 /* of the program's own clock of a window spec (bpf/scratch.h) */
#define WEIR_NAME_BYTES 128 /* a name of up to 127 bytes and its zero */
#define WEIR_CPUS_MAX 1024  /* possible CPUs */
#define WEIR_NSEC_PER_SEC 1000000000ull

#endif
