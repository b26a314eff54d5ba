/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What could come next on a command line: commands, options and their values, of the tables that --help prints. For the
 * completion of shells (completion/), which call 'weir --complete WORD...' at a Tab.
 */
#ifndef WEIR_COMPLETE_H
#define WEIR_COMPLETE_H

/*
 * Words: all after "weir" up to the cursor; the last is the one to complete, perhaps empty, without "--option=" before
 * it. Prints lines "candidate<tab>what it is", the second part perhaps empty. Instead of names of files it prints
 * ":files", or ":rules" for those that rule files have. Never fails: what cannot be known is not offered.
 */
int weir_complete(int count, char **words);

#endif
