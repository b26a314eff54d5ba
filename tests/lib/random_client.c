// SPDX-License-Identifier: GPL-2.0-only
#include "random_client.h"

#include "base/util.h"

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define PSH 0x08
#define ACK 0x10

#define TCP 6

struct say {
	unsigned int percent; /* of all lines of a phase: 100 */
	uint8_t flags;
	enum random_phase next;
};

static const struct say silent[] = {
	{84, SYN, RANDOM_OPENED},
	{4, SYN | 0xc0, RANDOM_OPENED}, /* asks for ECN */
	{8, ACK, RANDOM_TALKED},	/* in the middle */
	{4, SYN | ACK, RANDOM_TALKED},	/* answers what this host opened */
};

static const struct say opened[] = {
	{25, SYN, RANDOM_OPENED}, /* once more: the answer was lost */
	{60, ACK, RANDOM_TALKED},     {5, RST, RANDOM_ENDED},
	{5, FIN | ACK, RANDOM_ENDED}, {5, SYN | ACK, RANDOM_TALKED}, /* both at once */
};

static const struct say talked[] = {
	{40, ACK, RANDOM_TALKED}, {30, PSH | ACK, RANDOM_TALKED}, {16, FIN | ACK, RANDOM_ENDED},
	{7, RST, RANDOM_ENDED},	  {4, SYN, RANDOM_OPENED}, /* begins again on the same port */
	{3, 0, RANDOM_TALKED},
};

static const struct say ended[] = {
	{40, ACK, RANDOM_ENDED}, /* late, or behind the FIN */
	{18, FIN | ACK, RANDOM_ENDED},
	{12, RST | ACK, RANDOM_ENDED},
	{30, SYN, RANDOM_OPENED}, /* the port is used again */
};

/* What a scanner or a broken stack sends. */
static const uint8_t odd_flags[] = {SYN | FIN, SYN | RST, 0, 0xff, FIN | RST, FIN, RST | ACK | FIN, SYN | FIN | ACK};

static const struct say *next_of(struct random *random, enum random_phase phase)
{
	static const struct say *const says[] = {silent, opened, talked, ended};
	unsigned int left = random_below(random, 100);
	const struct say *say = says[phase];

	for (; left >= say->percent; say++)
		left -= say->percent;
	return say;
}

bool random_client_speaks(struct random *random, struct random_client *client, struct packet_spec *ret_spec,
			  bool *ret_is_gone)
{
	const struct say *say = next_of(random, client->phase);

	*ret_is_gone = random_percent(random, client->phase == RANDOM_ENDED ? 15 : 3);
	if (*ret_is_gone)
		return false;
	*ret_spec = client->spec;
	if (client->spec.protocol == TCP) {
		ret_spec->tcp_flags = say->flags;
		if (random_percent(random, 3))
			ret_spec->tcp_flags = odd_flags[random_below(random, ARRAY_SIZE(odd_flags))];
		else
			client->phase = say->next;
	}
	return !random_percent(random, 5);
}
