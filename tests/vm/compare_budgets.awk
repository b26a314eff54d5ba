# SPDX-License-Identifier: GPL-2.0-only
# tests/budgets, tests/budgets-parts, what was counted: is each count that matches `pattern` within 2 % of what is written?
# `some`: not all were counted.
FNR == 1 { file++ }
/^#/ || NF == 0 { next }
file == 1 { if ($1 ~ pattern) written[$1] = $2; next }
$1 == "part:" { part[file, $2, $3] = $4; parts[$2, $3]; next }
$1 == "budget:" && $2 ~ pattern { counted[$2] = $3 }

function size(number) { return number < 0 ? -number : number }

# The three parts that differ most, one after the other.
function differing_parts(name,    known, key, names, difference, best, text, times) {
	for (times = 0; times < 3; times++) {
		best = ""
		for (key in parts) {
			split(key, names, SUBSEP)
			if (names[1] != name || names[2] in known)
				continue
			difference = part[3, name, names[2]] - part[2, name, names[2]]
			if (size(difference) >= 0.5 && (best == "" || size(difference) > size(part[3, name, best] - part[2, name, best])))
				best = names[2]
		}
		if (best == "")
			break
		known[best]
		text = text sprintf("%s %s %s -> %s", text == "" ? "" : ",", best, part[2, name, best] + 0, part[3, name, best] + 0)
	}
	return text
}

# What a count is of: that of x86 instructions has the parts of BPF instructions.
function parts_of(name) {
	sub(/^x86[.]/, "bpf.", name)
	sub(/^stack[.]/, "verified.", name)
	return name
}

END {
	for (name in written) {
		if (!(name in counted)) {
			if (some == "") {
				print name ": not counted"
				failed = 1
			}
			continue
		}
		change = counted[name] - written[name]
		if (size(change) <= 0.02 * written[name])
			continue
		failed = 1
		text = differing_parts(parts_of(name))
		printf "%s: %s instead of %s (%+.1f %%)%s\n", name, counted[name], written[name],
			written[name] ? 100 * change / written[name] : 100,
			text == "" ? "" : ";" (name ~ /^(verified|stack)/ ? " bytes of code:" : "") text
	}
	for (name in counted)
		if (!(name in written)) {
			print name ": " counted[name] ", and not in tests/budgets"
			failed = 1
		}
	if (failed)
		print "A gain or a price that is meant: `make budgets` writes the counts; the commit says why."
	exit failed
}
