// SPDX-License-Identifier: GPL-2.0-only
#include "words/key.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "rules/scalars.h"
#include "words/json.h"
#include "words/words.h"

/* Format an address of the key, with its length if that is not the full one. */
static const char *format_address(const uint8_t *address, const uint8_t bits[2], int family,
				  char text[WEIR_PREFIX_TEXT_BYTES])
{
	struct weir_prefix prefix = {.family = family, .bits = bits[family == 6]};

	memcpy(prefix.address, address, sizeof(prefix.address));
	return weir_format_prefix(&prefix, text);
}

/* How the fields of a key are printed, by weir_key_field_names. */
enum form { FORM_ADDRESS, FORM_PORT, FORM_PROTOCOL, FORM_NUMBER, FORM_VLAN = FORM_NUMBER };

#define KEY_SHAPE(constant, name, member, part, form)                                                                  \
	{offsetof(struct weir_flow_key, member), sizeof(((struct weir_flow_key *)0)->member), FORM_##form},
static const struct {
	size_t offset, bytes; /* in struct weir_flow_key */
	enum form form;
} key_shapes[WEIR_KEY_FIELD_COUNT] = {WEIR_KEY_FIELDS(KEY_SHAPE)};

/* The value of a field that is not an address. */
static unsigned int field_number(const struct weir_flow_key *key, enum weir_key_place place)
{
	const uint8_t *at = (const uint8_t *)key + key_shapes[place].offset;
	uint16_t half;
	uint32_t word;

	switch (key_shapes[place].bytes) {
	case sizeof(word):
		memcpy(&word, at, sizeof(word));
		return word;
	case sizeof(half):
		memcpy(&half, at, sizeof(half));
		return key_shapes[place].form == FORM_PORT ? ntohs(half) : half;
	default:
		return *at;
	}
}

/* Format the value of one field of a key as text, even if it is a number. */
static void format_field(const struct weir_rule_identity *identity, const struct weir_flow_key *key,
			 const char *interface, enum weir_key_place place, char text[WEIR_PREFIX_TEXT_BYTES])
{
	const uint8_t *bits = place == WEIR_KEY_PLACE_SOURCE ? identity->source_bits : identity->destination_bits;
	const uint8_t *at = (const uint8_t *)key + key_shapes[place].offset;
	const char *name = NULL;

	if (key_shapes[place].form == FORM_ADDRESS) {
		format_address(at, bits, key->family, text);
		return;
	}
	if (key_shapes[place].form == FORM_PROTOCOL)
		name = weir_protocol_name(field_number(key, place));
	if (place == WEIR_KEY_PLACE_INTERFACE)
		name = interface;
	if (name)
		snprintf(text, WEIR_PREFIX_TEXT_BYTES, "%s", name);
	else
		snprintf(text, WEIR_PREFIX_TEXT_BYTES, "%s%u", place == WEIR_KEY_PLACE_INTERFACE ? "if" : "",
			 field_number(key, place));
}

const char *weir_format_key(const struct weir_rule_identity *identity, const struct weir_flow_key *key,
			    const char *interface, char words[WEIR_WORDS_BYTES])
{
	char text[WEIR_PREFIX_TEXT_BYTES];
	size_t used = 0;

	words[0] = '\0';
	for (int bit = 0; bit < WEIR_KEY_FIELD_COUNT && used < WEIR_WORDS_BYTES; bit++) {
		if (!(identity->key_fields >> bit & 1))
			continue;
		format_field(identity, key, interface, bit, text);
		used += snprintf(words + used, WEIR_WORDS_BYTES - used, "%s%s %s", used ? ", " : "",
				 weir_key_field_name(identity->key_fields, bit), text);
	}
	return words;
}

json_t *weir_json_key(const struct weir_rule_identity *identity, const struct weir_flow_key *key, const char *interface)
{
	json_t *fields = json_object();
	char text[WEIR_PREFIX_TEXT_BYTES];

	for (int bit = 0; bit < WEIR_KEY_FIELD_COUNT; bit++) {
		const enum form form = key_shapes[bit].form;
		const bool is_number = form == FORM_PORT || (form == FORM_NUMBER && bit != WEIR_KEY_PLACE_INTERFACE);

		if (!(identity->key_fields >> bit & 1))
			continue;
		format_field(identity, key, interface, bit, text);
		json_object_set_new(fields, weir_key_field_name(identity->key_fields, bit),
				    is_number ? json_integer(field_number(key, bit)) : weir_json_text(text));
	}
	return fields;
}
