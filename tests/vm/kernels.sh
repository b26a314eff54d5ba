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
# What machine it is: its name in Debian, its emulator, and the console that goes to qemu's first serial line.
arch=${ARCH:-amd64}
case $arch in
arm64) emulator="qemu-system-aarch64 -M virt" emulator_package=qemu-system-arm console=ttyAMA0 ;;
*) emulator="qemu-system-x86_64 -M q35" emulator_package=qemu-system-x86 console=ttyS0 ;;
esac
# The kernel's command line. On a busy machine an emulated timer can be too late for the kernel's test of it, at which a
# kernel that was not configured to do without panics.
cmdline="console=$console quiet panic=-1 no_timer_check"
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
		-o APT::Architecture="$arch" -o APT::Architectures="$arch" "$@"
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

# Unpack the newest kernel of a release; sets $kernel to its directory, and $image to what boots. Kernels later than 6.12
# come in parts.
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
	package=$(parts_of "$release" "linux-image-$arch" image)
	if [ -z "$package" ]; then
		why="$release offers no linux-image-$arch"
		return 1
	fi
	kernel=$vm/$release/$package
	if [ ! -e "$kernel/complete" ]; then
		echo "test-vm: downloading $package"
		download_kernel && touch "$kernel/complete" || return 1
	fi
	image=$(find "$kernel" -name 'vmlinuz*' -type f | head -n 1)
}

# What a package depends on of the parts of one kernel: parts_of RELEASE PACKAGE PART, which is a regular expression.
parts_of() {
	apt_of "$1" apt-cache depends "$2" | sed -nE "s/^ *Depends: (linux-($3)-[0-9][^ ]*)$/\1/p"
}

download_kernel() {
	rm -rf "$kernel"
	mkdir -p "$kernel"
	# shellcheck disable=SC2046 # a list of words
	(cd "$kernel" && apt_of "$release" apt-get download "$package" $(parts_of "$release" "$package" 'binary|modules') \
		>>"$vm/$release/apt.log" 2>&1 || exit 1
		for part in ./*.deb; do
			dpkg-deb -x "$part" . || exit 1
		done
		rm ./*.deb) && return 0
	why="cannot download $package (see $vm/$release/apt.log)"
	return 1
}
