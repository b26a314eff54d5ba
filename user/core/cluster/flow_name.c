// SPDX-License-Identifier: GPL-2.0-only
#include "cluster/flow_name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LEDGER_CHARS 256
#define NAME_BYTES 16

/* What the hash is for: its first byte. So no two uses have the same input. */
enum use { USE_NAME = 'n', USE_STREAM = 's' };

static void write_digits(const uint8_t *bytes, size_t count, char *ret_text)
{
	for (size_t i = 0; i < count; i++)
		snprintf(ret_text + 2 * i, 3, "%02x", bytes[i]);
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_digits(const char *text, size_t count, uint8_t *ret_bytes)
{
	if (strlen(text) != 2 * count)
		return false;
	for (size_t i = 0; i < count; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		ret_bytes[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

int weir_flow_secret_read(const char *line, uint8_t ret_secret[WEIR_SIPHASH_KEY_BYTES])
{
	return read_digits(line, WEIR_SIPHASH_KEY_BYTES, ret_secret) ? 0 : -EINVAL;
}

/* Two hashes of 64 bits, of inputs that differ in their second byte. */
static void make_name(const uint8_t *secret, const char *ledger, const uint8_t *flow, uint8_t ret_name[NAME_BYTES])
{
	uint8_t input[2 + WEIR_FLOW_BYTES + LEDGER_CHARS] = {USE_NAME};
	size_t ledger_bytes = strnlen(ledger, LEDGER_CHARS);

	memcpy(input + 2, flow, WEIR_FLOW_BYTES);
	memcpy(input + 2 + WEIR_FLOW_BYTES, ledger, ledger_bytes);
	for (uint8_t half = 0; half < 2; half++) {
		uint64_t hash;

		input[1] = half;
		hash = weir_siphash(secret, input, 2 + WEIR_FLOW_BYTES + ledger_bytes);
		memcpy(ret_name + half * sizeof(hash), &hash, sizeof(hash));
	}
}

/* Encrypts, and the same decrypts. */
static void add_stream(const uint8_t *secret, const uint8_t name[NAME_BYTES], uint8_t flow[WEIR_FLOW_BYTES])
{
	uint8_t input[2 + NAME_BYTES] = {USE_STREAM};

	memcpy(input + 2, name, NAME_BYTES);
	for (size_t at = 0; at < WEIR_FLOW_BYTES; at += sizeof(uint64_t)) {
		uint64_t stream;

		input[1] = (uint8_t)at;
		stream = weir_siphash(secret, input, sizeof(input));
		for (size_t i = 0; i < sizeof(stream); i++)
			flow[at + i] ^= (uint8_t)(stream >> 8 * i);
	}
}

void weir_flow_seal(const uint8_t secret[WEIR_SIPHASH_KEY_BYTES], const char *ledger,
		    const uint8_t flow[WEIR_FLOW_BYTES], char ret_name[WEIR_FLOW_NAME_CHARS],
		    char ret_sealed[WEIR_FLOW_SEALED_CHARS])
{
	uint8_t name[NAME_BYTES], sealed[WEIR_FLOW_BYTES];

	make_name(secret, ledger, flow, name);
	memcpy(sealed, flow, sizeof(sealed));
	add_stream(secret, name, sealed);
	write_digits(name, sizeof(name), ret_name);
	write_digits(sealed, sizeof(sealed), ret_sealed);
}

bool weir_flow_open(const uint8_t secret[WEIR_SIPHASH_KEY_BYTES], const char *ledger, const char *name,
		    const char *sealed, uint8_t ret_flow[WEIR_FLOW_BYTES])
{
	uint8_t called[NAME_BYTES], due[NAME_BYTES];

	if (!read_digits(name, sizeof(called), called) || !read_digits(sealed, WEIR_FLOW_BYTES, ret_flow))
		return false;
	add_stream(secret, called, ret_flow);
	make_name(secret, ledger, ret_flow, due);
	return !memcmp(called, due, sizeof(due));
}
