/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What can come next on a command line: commands, options and their values, from the tables that --help prints. For
 * shell completion (completion/), which calls 'weir --complete WORD...' when Tab is pressed.
 */
#ifndef WEIR_COMPLETE_H
#define WEIR_COMPLETE_H

/*
 * `words` are all words after "weir" up to the cursor. The last is the one to complete; it may be empty, and
 * "--option=" before it has been removed. Prints lines "candidate<tab>description"; the description may be empty.
 * Instead of file names it prints ":files", or ":rules" for the names of rule files. Never fails: what cannot be found
 * out is not offered.
 */
int weir_complete(int count, char **words);

#endif
