// SPDX-License-Identifier: GPL-2.0-only
#include "shares/flow_name.h"

#include <errno.h>
#include <nettle/siv-cmac.h>
#include <stdio.h>
#include <string.h>

_Static_assert(WEIR_FLOW_SECRET_BYTES == SIV_CMAC_AES128_KEY_SIZE, "the secret is AES-SIV's key");
_Static_assert(WEIR_FLOW_NAME_CHARS == 2 * SIV_DIGEST_SIZE + 1, "the name is AES-SIV's digest");

#define SEALED_BYTES (SIV_DIGEST_SIZE + WEIR_FLOW_BYTES)

/* No nonce, because equal flows must get equal names; SIV is designed for that. */
static const uint8_t nonce[] = {'w', 'e', 'i', 'r'};

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

int weir_flow_secret_read(const char *line, uint8_t ret_secret[WEIR_FLOW_SECRET_BYTES])
{
	return read_digits(line, WEIR_FLOW_SECRET_BYTES, ret_secret) ? 0 : -EINVAL;
}

void weir_flow_seal(const uint8_t secret[WEIR_FLOW_SECRET_BYTES], const char *ledger,
		    const uint8_t flow[WEIR_FLOW_BYTES], char ret_name[WEIR_FLOW_NAME_CHARS],
		    char ret_sealed[WEIR_FLOW_SEALED_CHARS])
{
	struct siv_cmac_aes128_ctx siv;
	uint8_t sealed[SEALED_BYTES];

	siv_cmac_aes128_set_key(&siv, secret);
	siv_cmac_aes128_encrypt_message(&siv, sizeof(nonce), nonce, strlen(ledger), (const uint8_t *)ledger,
					sizeof(sealed), sealed, flow);
	write_digits(sealed, SIV_DIGEST_SIZE, ret_name);
	write_digits(sealed + SIV_DIGEST_SIZE, WEIR_FLOW_BYTES, ret_sealed);
	explicit_bzero(&siv, sizeof(siv));
}

bool weir_flow_open(const uint8_t secret[WEIR_FLOW_SECRET_BYTES], const char *ledger, const char *name,
		    const char *sealed, uint8_t ret_flow[WEIR_FLOW_BYTES])
{
	struct siv_cmac_aes128_ctx siv;
	uint8_t bytes[SEALED_BYTES];
	bool is_whole;

	if (!read_digits(name, SIV_DIGEST_SIZE, bytes) ||
	    !read_digits(sealed, WEIR_FLOW_BYTES, bytes + SIV_DIGEST_SIZE))
		return false;
	siv_cmac_aes128_set_key(&siv, secret);
	is_whole = siv_cmac_aes128_decrypt_message(&siv, sizeof(nonce), nonce, strlen(ledger), (const uint8_t *)ledger,
						   WEIR_FLOW_BYTES, ret_flow, bytes);
	explicit_bzero(&siv, sizeof(siv));
	return is_whole;
}
