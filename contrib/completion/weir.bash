# SPDX-License-Identifier: GPL-2.0-only
# bash completion of weir. The candidates are weir's own: 'weir --complete WORD...' prints them.
# shellcheck shell=bash

_weir() {
	local cur=${COMP_WORDS[COMP_CWORD]} weir=${COMP_WORDS[0]} words=() candidates i name
	# "--mode=skb" is three words to bash, of which the last alone is replaced; to weir, "--mode skb".
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} == = ]] || words+=("${COMP_WORDS[i]}")
	done
	[[ $cur != = ]] || cur=
	COMPREPLY=()
	candidates=$("$weir" --complete "${words[@]}" "$cur" 2>/dev/null) || return
	case $candidates in
	:files | :rules)
		compopt -o filenames 2>/dev/null
		while IFS= read -r name; do
			[[ $candidates == :files || -d $name || $name == *.@(yaml|yml|json) ]] && COMPREPLY+=("$name")
		done < <(compgen -f -- "$cur") ;;
	*)
		while IFS=$'\t' read -r name _; do
			[[ -z $name ]] || COMPREPLY+=("$name")
		done <<<"$candidates" ;;
	esac
}
complete -F _weir weir
