// SPDX-License-Identifier: GPL-2.0-only
/* Explains why the kernel refuses the program, from what libbpf reports, and from what it does not report. */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "program/object_internal.h"

/* ---- what libbpf reports ---- */

static __thread struct listener *listening;

__attribute__((format(printf, 2, 0))) static int listen_to_libbpf(enum libbpf_print_level level, const char *format,
								  va_list args)
{
	if (level == LIBBPF_WARN && listening && listening->stream)
		return vfprintf(listening->stream, format, args);
	return 0;
}

void weir_object_hear_libbpf(void)
{
	libbpf_set_print(listen_to_libbpf);
}

void weir_object_start_listening(struct listener *listener)
{
	listener->stream = open_memstream(&listener->text, &listener->bytes);
	listening = listener;
	weir_object_hear_libbpf();
}

void weir_object_stop_listening(struct listener *listener)
{
	listening = NULL;
	if (listener->stream)
		fclose(listener->stream);
	listener->stream = NULL;
}

void weir_object_free_listener(struct listener *listener)
{
	weir_object_stop_listening(listener);
	free(listener->text);
}

/* The last lines of libbpf's messages. */
static const char *last_lines(const struct listener *listener)
{
	const char *text = listener->text ? listener->text : "";
	const char *at = text + strlen(text);

	for (int lines = 0; at > text; at--)
		if (at[-1] == '\n' && lines++ == LOG_LINES)
			break;
	return at;
}

/* ---- what libbpf does not report ---- */

/*
 * libbpf probes the kernel's features once, and takes any failure, even one for lack of memory, to mean that the kernel
 * does not have the feature. It then leaves out function types. In that case the verifier checks each function again at
 * every call, and takes ten seconds to find the program too complex. Or libbpf leaves out the maps of global data, and
 * the verifier calls them invalid. Every kernel from 6.1 on has all these features.
 */
static const char left_out[] = "left out of the program";

/* Read what libbpf passed to the kernel through its descriptor: reading it by id takes CAP_SYS_ADMIN. */
static struct btf *read_btf(int fd)
{
	struct bpf_btf_info info = {};
	__u32 info_bytes = sizeof(info), btf_bytes;
	_cleanup_(weir_freep) void *data = NULL;

	if (bpf_obj_get_info_by_fd(fd, &info, &info_bytes))
		return NULL;
	btf_bytes = info.btf_size;
	data = malloc(btf_bytes);
	info = (struct bpf_btf_info){.btf = (uintptr_t)data, .btf_size = btf_bytes};
	if (!data || bpf_obj_get_info_by_fd(fd, &info, &info_bytes))
		return NULL;
	return btf__new(data, btf_bytes);
}

static bool has_global_function(int btf_fd)
{
	struct btf *btf = read_btf(btf_fd);
	bool has_one = false;

	for (__u32 id = 1; btf && !has_one && id < btf__type_cnt(btf); id++) {
		const struct btf_type *type = btf__type_by_id(btf, id);

		has_one = btf_is_func(type) && btf_vlen(type) == BTF_FUNC_GLOBAL;
	}
	btf__free(btf);
	return has_one;
}

int weir_object_refuse_half_a_program(const struct bpf_prog_load_opts *options)
{
	bool is_whole =
		options->func_info_cnt && options->prog_btf_fd && has_global_function((int)options->prog_btf_fd);

	if (!is_whole && listening && listening->stream)
		fputs(left_out, listening->stream);
	return is_whole ? 0 : -ENOMEM;
}

int weir_object_explain_load_failure(int err, const struct listener *listener, struct weir_diag *diag)
{
	if ((err == -EPERM || err == -EACCES) && weir_host_check_privilege(diag))
		return -EPERM;
	if (!weir_host_kernel_is_at_least(6, 1))
		return weir_diag_fail(diag, -err, last_lines(listener),
				      "cannot load the BPF program: weir needs Linux 6.1 or later");
	/* The verifier's log names missing maps of global data. */
	if (listener->text &&
	    (strstr(listener->text, left_out) || strstr(listener->text, "is referenced but wasn't created")))
		return weir_diag_fail(diag, ENOMEM,
				      "try again; if that fails, raise the memory limit of the cgroup that this runs "
				      "in, or its limit of open files",
				      "cannot load the BPF program: the kernel refused a part of it, usually for lack "
				      "of memory or file descriptors");
	if (err == -EMFILE || err == -ENFILE)
		return weir_diag_fail(diag, -err,
				      err == -EMFILE
					      ? "raise the limit of open files: 'ulimit -n 1024', or LimitNOFILE= "
						"of the service"
					      : "raise fs.file-max (sysctl)",
				      "cannot load the BPF program");
	/* Both the verifier and map creation return E2BIG. If the verifier ran, its log ends in "processed N insns", or
	 * says "too large. Processed N insn".
	 */
	if (err == -E2BIG && listener->text && strcasestr(listener->text, "processed "))
		return weir_diag_fail(diag, -err, last_lines(listener),
				      "cannot load the BPF program: this kernel's verifier finds it too complex");
	if (err == -ENOMEM || err == -E2BIG)
		return weir_diag_fail(diag, -err,
				      "lower settings.flowsPerCpu or connections ('weir check' shows what the maps "
				      "take), or raise the memory limit of the cgroup that this runs in",
				      "not enough memory for the maps");
	/* The program uses fields of kernel structures, whose offsets come from the kernel's BTF. */
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return weir_diag_fail(diag, -err,
				      "boot a kernel with CONFIG_DEBUG_INFO_BTF, as those of distributions are",
				      "cannot load the BPF program: no BTF of the kernel (/sys/kernel/btf/vmlinux)");
	/* libbpf reports ESRCH whatever the reason why it could not read the kernel's BTF. */
	if (listener->text && strstr(listener->text, "loading vmlinux BTF")) {
		weir_diag_error(diag, NULL, NULL, "try again",
				"cannot load the BPF program: the kernel's BTF (/sys/kernel/btf/vmlinux) cannot be "
				"read, usually for lack of memory or file descriptors");
		return -EIO;
	}
	return weir_diag_fail(diag, -err, last_lines(listener), "cannot load the BPF program");
}
