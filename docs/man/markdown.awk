# SPDX-License-Identifier: GPL-2.0-only
# The pages of docs/ as the text of a man page (man(7)): their Markdown, as far as they use it. Headings, paragraphs, lists in
# lists, code, tables. A table becomes a list, with its first column as tags: four columns in 80 of a terminal are
# hard to read. The title is left out, the list of contents under it, and pictures. -v SKIP=N leaves out all before the Nth "##".

# ---- words ----

function escape(text, is_code) {
	gsub(/\\/, "\\e", text)
	gsub(/\^/, "\\(ha", text)
	gsub(/~/, "\\(ti", text)
	if (is_code) {
		gsub(/-/, "\\-", text)
		gsub(/'/, "\\(aq", text)
		gsub(/`/, "\\(ga", text)
	}
	return text
}

# `code` and **strong** are bold, *stressed* is italic, of a [link](where) the text stays.
function inline(text,   out, rest, close_at) {
	while (match(text, /`[^`]+`|\*\*[^*]+\*\*|\*[^* ][^*]*\*|\[[^]]+\]\([^)]+\)|<[a-z\/][^>]*>/)) {
		out = out escape(substr(text, 1, RSTART - 1), 0)
		rest = substr(text, RSTART + RLENGTH)
		text = substr(text, RSTART, RLENGTH)
		if (text ~ /^`/) {
			out = out "\\fB" escape(substr(text, 2, length(text) - 2), 1) "\\fR"
		} else if (text ~ /^\*\*/) {
			out = out "\\fB" inline(substr(text, 3, length(text) - 4)) "\\fR"
		} else if (text ~ /^\*/) {
			out = out "\\fI" inline(substr(text, 2, length(text) - 2)) "\\fR"
		} else if (text ~ /^\[/) {
			close_at = index(text, "](")
			out = out inline(substr(text, 2, close_at - 2))
		}
		text = rest
	}
	return out escape(text, 0)
}

# Lines of up to 72 bytes, none of which looks like a request.
function print_filled(text,   words, count, i, line) {
	count = split(text, words, / +/)
	for (i = 1; i <= count; i++) {
		if (line != "" && length(line) + 1 + length(words[i]) > 72) {
			print_line(line)
			line = ""
		}
		line = line (line == "" ? "" : " ") words[i]
	}
	if (line != "")
		print_line(line)
}
function print_line(line) {
	gsub(/\001/, "|", line)
	print (line ~ /^[.']/ ? "\\&" : "") line
}

# A comment that would go beyond a terminal's edge stands above its line.
function print_code(line,   indent, comment) {
	if (length(line) > 69 && match(line, / +# /)) {
		comment = substr(line, RSTART + RLENGTH - 2)
		line = substr(line, 1, RSTART - 1)
		match(line, /^ */)
		indent = substr(line, 1, RLENGTH)
		print_line(escape(indent comment, 1))
	}
	print_line(escape(line, 1))
}

# ---- blocks ----

# What has been gathered is a paragraph, or an item of a list.
function flush() {
	if (gathered == "")
		return
	if (macro != "")
		print macro
	print_filled(inline(gathered))
	gathered = ""
	macro = depth > 0 ? ".IP \"\" 2" : ".PP"
}

# Lists in lists: go to the depth of an item.
function go_to_depth(wanted) {
	for (; depth < wanted; depth++)
		if (depth > 0)
			print ".RS 2"
	for (; depth > wanted; depth--)
		if (depth > 1)
			print ".RE"
}

function begin_block() {
	flush()
	go_to_depth(0)
	macro = ".PP"
}

# Right below a heading there is no paragraph to begin.
function begin_code() {
	flush()
	if (macro != "")
		print ".PP"
	print ".in +2n\n.EX"
	macro = ".PP"
}

function print_row(   cells, count, i, text) {
	count = split($0, cells, / *\| */)
	if (!has_head) {
		for (i = 2; i < count; i++)
			head[i] = cells[i]
		has_head = 1
		return
	}
	print ".TP"
	print_line(inline(cells[2] ~ /[`*]/ ? cells[2] : "**" cells[2] "**"))
	print_filled(inline(cells[count - 1]))
	for (i = 3; i < count - 1; i++)
		if (cells[i] != "")
			text = text (text == "" ? "" : "; ") head[i] ": " cells[i]
	if (text == "")
		return
	print ".br"
	print_filled(inline(text))
}

function heading(name, text) {
	begin_block()
	text = inline(text)
	gsub(/\\f[BIR]/, "", text)
	print name " \"" text "\""
	macro = ""
}

# A pipe in a cell is written so that it is no border.
{ gsub(/\\\|/, "\001") }

/^```/ {
	if (sections < SKIP) {
		# left out
	} else if (!is_code) {
		begin_code()
	} else {
		print ".EE\n.in"
		macro = depth > 0 ? ".IP \"\" 2" : ".PP"
	}
	is_code = !is_code
	next
}
is_code && sections < SKIP { next }
is_code { print_code($0); next }

/^# / { next }
/^## / { sections++ }
sections < SKIP { next }
was_blank && depth == 0 && /^    [^ -]/ {
	begin_code()
	print_code(substr($0, 5))
	print ".EE\n.in"
	next
}
/^## / { heading(".SH", substr($0, 4)); next }
/^###/ { sub(/^#+ /, ""); heading(".SS", $0); next }
/^\|[ :|-]+$/ { next }
/^\|/ {
	if (!in_table) {
		begin_block()
		in_table = 1
		has_head = 0
	}
	print_row()
	next
}
in_table { in_table = 0; macro = ".PP" }

# The list of contents: links, before the first section.
sections == 0 && /^- \[/ { flush(); in_contents = 1; next }
/^ *$/ { flush(); in_contents = 0; was_blank = 1; next }
{ was_blank = 0 }
in_contents { next }
/^!\[/ { next }

match($0, /^[0-9]+\. /) {
	indent = RLENGTH
	flush()
	go_to_depth(1)
	macro = ".IP " substr($0, 1, indent - 1) " 3"
	gathered = substr($0, indent + 1)
	next
}
match($0, /^ *[-*] /) {
	indent = RLENGTH - 2
	flush()
	go_to_depth(indent / 2 + 1)
	macro = ".IP \\(bu 2"
	gathered = substr($0, indent + 3)
	next
}
{
	if (depth > 0 && gathered == "") {
		match($0, /^ */)
		indent = RLENGTH
		if (indent / 2 < depth)
			go_to_depth(int(indent / 2))
		macro = depth > 0 ? ".IP \"\" 2" : ".PP"
	}
	sub(/^ +/, "")
	gathered = gathered (gathered == "" ? "" : " ") $0
}
END { begin_block() }
