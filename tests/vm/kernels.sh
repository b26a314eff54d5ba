# SPDX-License-Identifier: GPL-2.0-only
# For what boots virtual machines: Debian's kernels, from its mirror by apt, into BUILD/vm, where they stay; nothing of this
# machine's apt is changed. Sourced, not run. Who sources it sets $vm, $tools ("PROGRAM:PACKAGE ..."), and counts in
# $passed, $failed and $skipped.
# shellcheck shell=sh disable=SC2154,SC2034

# Where this machine gets Debian 12 from; MIRROR=URL for one that does not.
site_of() {
	apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' 2>/dev/null | sed -n "s/ $1\$//p" | head -n 1
}
mirror=${MIRROR:-$(site_of bookworm)}
security=$(site_of bookworm-security)
# The kernel's command line. On a busy machine an emulated timer can be too late for the kernel's test of it, at which a
# kernel that was not told to do without panics.
cmdline="console=ttyS0 quiet panic=-1 no_timer_check"
skip() {
	echo "SKIPPED: $1: $2"
	skipped=$((skipped + 1))
}

finish() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
	exit
}

# Install what is missing; fails, having said so, when that cannot be done.
find_tools() {
	missing=
	for tool in $tools; do
		command -v "${tool%:*}" >/dev/null || missing="$missing ${tool#*:}"
	done
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" -ne 0 ]; then
		why="needs$missing: install them, or run it as root"
		return 1
	fi
	echo "test-vm: installing$missing"
	# shellcheck disable=SC2086 # a list of words
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >"$vm/install.log" 2>&1 && return 0
	why="cannot install$missing (see $vm/install.log)"
	return 1
}

# apt with lists and cache of our own: apt_of RELEASE COMMAND...
apt_of() {
	state=$vm/$1/apt command=$2
	shift 2
	"$command" -q -o Dir::Etc::SourceList="$state/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$state/lists" -o Dir::Cache="$state/cache" -o APT::Sandbox::User=root \
		-o APT::Architecture=amd64 "$@"
}

write_sources() {
	state=$vm/$1/apt
	key=/usr/share/keyrings/debian-archive-keyring.gpg
	mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
	echo "deb [signed-by=$key] $mirror $1 main" >"$state/sources.list"
	if [ "$1" = bookworm ] && [ -n "$security" ]; then
		echo "deb [signed-by=$key] $security $1-security main" >>"$state/sources.list"
	fi
}

# Unpack the newest kernel of a release; sets $kernel to its directory.
find_kernel() {
	release=$1
	if [ -z "$mirror" ]; then
		why="apt knows no source of Debian 12 here: MIRROR=URL of one"
		return 1
	fi
	write_sources "$release"
	if ! apt_of "$release" apt-get update >"$vm/$release/apt.log" 2>&1; then
		why="cannot reach '$mirror' (see $vm/$release/apt.log)"
		return 1
	fi
	package=$(apt_of "$release" apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-6[^ ]*\).*/\1/p')
	if [ -z "$package" ]; then
		why="$release offers no linux-image-amd64"
		return 1
	fi
	kernel=$vm/$release/$package
	[ ! -e "$kernel/complete" ] || return 0
	echo "test-vm: downloading $package"
	rm -rf "$kernel"
	mkdir -p "$kernel"
	(cd "$kernel" && apt_of "$release" apt-get download "$package" >>"$vm/$release/apt.log" 2>&1 &&
		dpkg-deb -x ./*.deb . && rm ./*.deb && touch complete) && return 0
	why="cannot download $package (see $vm/$release/apt.log)"
	return 1
}
