# SPDX-License-Identifier: GPL-2.0-only
# tests/budgets with the values of what was counted. Comments, order, musts and aims stay; what is new comes last.
FNR == 1 { file++ }
file == 1 { line[++lines] = $0; next }
$1 == "budget:" { counted[$2] = $3; order[++names] = $2 }

function row(name, value, must, aim) { printf "%-32s %10s %10s %10s\n", name, value, must, aim }

END {
	for (i = 1; i <= lines; i++) {
		count = split(line[i], word, " ")
		if (line[i] ~ /^# clang: /)
			print "# clang: " clang
		else if (line[i] ~ /^# clang-19: / && clang_19 != "")
			print "# clang-19: " clang_19
		else if (line[i] ~ /^# kernel: /)
			print "# kernel: " kernel
		else if (count == 0 || word[1] ~ /^#/)
			print line[i]
		else if (word[1] in counted) {
			row(word[1], counted[word[1]], word[3], word[4])
			delete counted[word[1]]
		} else if (!all || (clang_19 == "" && word[1] ~ /-clang-19$/))
			print line[i]
	}
	for (i = 1; i <= names; i++)
		if (order[i] in counted)
			row(order[i], counted[order[i]], "-", "-")
}
