// SPDX-License-Identifier: GPL-2.0-only
#include "store/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text_file.h"
#include "base/util.h"
#include "rules/cluster.h"

/* A bundle of all authorities of the web has some 200 kB. Chosen, not derived. */
#define CA_FILE_BYTES_MAX (4u << 20)

/* The number of characters shown of a certificate's name or issuer. */
#define SHOWN_CHARS 48

struct weir_tls {
	gnutls_session_t session;
	gnutls_certificate_credentials_t credentials;
	char name[WEIR_STORE_URL_CHARS];
	/* GnuTLS keeps a pointer to these two. */
	gnutls_typed_vdata_st wanted[2];
	bool is_sending; /* the socket has not accepted the whole record yet */
	char trouble[160];
};

static int fail(struct weir_tls *tls, const char *why)
{
	snprintf(tls->trouble, sizeof(tls->trouble), "%s", why);
	return -EPROTO;
}

/* ---- trusted authorities ---- */

/* Read the whole file, or return NULL with errno. */
static char *read_whole(const char *path, size_t *ret_bytes)
{
	_cleanup_(weir_freep) char *text = malloc(CA_FILE_BYTES_MAX);
	FILE *stream;
	int err = text ? -weir_text_file_open(path, &stream) : ENOMEM;

	if (!err) {
		*ret_bytes = fread(text, 1, CA_FILE_BYTES_MAX, stream);
		err = ferror(stream) ? errno : *ret_bytes == CA_FILE_BYTES_MAX ? EFBIG : 0;
		fclose(stream);
	}
	errno = err;
	return err ? NULL : TAKE_PTR(text);
}

static int trust_file(gnutls_certificate_credentials_t credentials, const char *path, char *trouble, size_t bytes)
{
	_cleanup_(weir_freep) char *text = NULL;
	gnutls_datum_t datum = {};
	size_t size = 0;
	int count;

	text = read_whole(path, &size);
	if (!text) {
		snprintf(trouble, bytes, "'caFile' '%.80s' cannot be read: %s", path, weir_text_file_explain(-errno));
		return -EINVAL;
	}
	datum.data = (unsigned char *)text;
	datum.size = (unsigned int)size;
	count = gnutls_certificate_set_x509_trust_mem(credentials, &datum, GNUTLS_X509_FMT_PEM);
	if (count > 0)
		return 0;
	snprintf(trouble, bytes, "'caFile' '%.80s' holds no certificate: name a file in PEM", path);
	return -EINVAL;
}

static int trust_system(gnutls_certificate_credentials_t credentials, char *trouble, size_t bytes)
{
	if (gnutls_certificate_set_x509_system_trust(credentials) > 0)
		return 0;
	snprintf(trouble, bytes,
		 "this system trusts no certificate authority: name the store's as 'caFile', or install "
		 "ca-certificates");
	return -EINVAL;
}

/* ---- a session ---- */

static bool is_address(const char *name)
{
	unsigned char address[16];

	return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

static int begin(struct weir_tls *tls, int fd)
{
	int err = gnutls_init(&tls->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);

	if (!err)
		err = gnutls_priority_set_direct(tls->session, "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2", NULL);
	if (!err)
		err = gnutls_credentials_set(tls->session, GNUTLS_CRD_CERTIFICATE, tls->credentials);
	if (!err && !is_address(tls->name)) /* RFC 6066, 3: addresses are not allowed */
		err = gnutls_server_name_set(tls->session, GNUTLS_NAME_DNS, tls->name, strlen(tls->name));
	if (err)
		return err;
	tls->wanted[0] = (gnutls_typed_vdata_st){GNUTLS_DT_DNS_HOSTNAME, (unsigned char *)tls->name, 0};
	tls->wanted[1] =
		(gnutls_typed_vdata_st){GNUTLS_DT_KEY_PURPOSE_OID, (unsigned char *)GNUTLS_KP_TLS_WWW_SERVER, 0};
	gnutls_session_set_verify_cert2(tls->session, tls->wanted, ARRAY_SIZE(tls->wanted), 0);
	gnutls_handshake_set_timeout(tls->session, GNUTLS_INDEFINITE_TIMEOUT); /* the store has a time-out */
	gnutls_transport_set_int(tls->session, fd);
	return 0;
}

struct weir_tls *weir_tls_open(int fd, const char *name, const char *ca_file, char *trouble, size_t trouble_bytes)
{
	struct weir_tls *tls = calloc(1, sizeof(*tls));
	int err = tls ? gnutls_certificate_allocate_credentials(&tls->credentials) : GNUTLS_E_MEMORY_ERROR;
	bool is_reported = false;

	if (!err) {
		snprintf(tls->name, sizeof(tls->name), "%s", name);
		is_reported = *ca_file ? trust_file(tls->credentials, ca_file, trouble, trouble_bytes)
				       : trust_system(tls->credentials, trouble, trouble_bytes);
	}
	if (!err && !is_reported)
		err = begin(tls, fd);
	if (!err && !is_reported)
		return tls;
	if (!is_reported)
		snprintf(trouble, trouble_bytes, "TLS cannot start: %s", gnutls_strerror(err));
	weir_tls_free(tls);
	return NULL;
}

void weir_tls_free(struct weir_tls *tls)
{
	if (!tls)
		return;
	if (tls->session)
		gnutls_deinit(tls->session);
	if (tls->credentials)
		gnutls_certificate_free_credentials(tls->credentials);
	free(tls);
}

/* ---- errors of a certificate ---- */

static gnutls_x509_crt_t certificate_of(const struct weir_tls *tls)
{
	unsigned int count = 0;
	const gnutls_datum_t *shown = gnutls_certificate_get_peers(tls->session, &count);
	gnutls_x509_crt_t certificate;

	if (!shown || !count || gnutls_x509_crt_init(&certificate))
		return NULL;
	if (!gnutls_x509_crt_import(certificate, &shown[0], GNUTLS_X509_FMT_DER))
		return certificate;
	gnutls_x509_crt_deinit(certificate);
	return NULL;
}

/* The text comes from an untrusted party, so nothing in it may control a terminal. */
static void make_plain(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~' || *text == '\'')
			*text = '?';
}

static void explain_dates(struct weir_tls *tls, gnutls_x509_crt_t certificate, bool is_expired)
{
	const time_t when = is_expired ? gnutls_x509_crt_get_expiration_time(certificate)
				       : gnutls_x509_crt_get_activation_time(certificate);
	char date[32] = "?";
	struct tm parts;

	if (gmtime_r(&when, &parts))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", &parts);
	if (is_expired)
		snprintf(tls->trouble, sizeof(tls->trouble),
			 "its certificate expired at %s: renew it, or set this host's clock", date);
	else
		snprintf(tls->trouble, sizeof(tls->trouble),
			 "its certificate is not valid before %s: is this host's clock right?", date);
}

/* The first name of the certificate: an alternative name or, if it has none, the subject. */
static void explain_name(struct weir_tls *tls, gnutls_x509_crt_t certificate)
{
	char name[SHOWN_CHARS + 1] = "";
	size_t bytes = sizeof(name);

	if (gnutls_x509_crt_get_subject_alt_name(certificate, 0, name, &bytes, NULL) != GNUTLS_SAN_DNSNAME) {
		bytes = sizeof(name);
		if (gnutls_x509_crt_get_dn(certificate, name, &bytes))
			name[0] = '\0';
	}
	name[SHOWN_CHARS] = '\0';
	make_plain(name);
	snprintf(tls->trouble, sizeof(tls->trouble),
		 "its certificate is not for '%.40s' but for '%s': use that name for the store", tls->name, name);
}

static void explain_authority(struct weir_tls *tls, gnutls_x509_crt_t certificate)
{
	char issuer[SHOWN_CHARS + 1] = "";
	size_t bytes = sizeof(issuer);

	if (gnutls_x509_crt_get_issuer_dn(certificate, issuer, &bytes))
		issuer[0] = '\0';
	make_plain(issuer);
	snprintf(tls->trouble, sizeof(tls->trouble),
		 "its certificate authority is not trusted ('%s'): name the authority's certificate as 'caFile'",
		 issuer);
}

/* If there are several faults, report the one to repair first. */
static void explain_certificate(struct weir_tls *tls)
{
	const unsigned int status = gnutls_session_get_verify_cert_status(tls->session);
	gnutls_x509_crt_t certificate = certificate_of(tls);

	if (!certificate)
		(void)fail(tls, "its certificate cannot be read");
	else if (status & (GNUTLS_CERT_SIGNER_NOT_FOUND | GNUTLS_CERT_SIGNER_NOT_CA))
		explain_authority(tls, certificate);
	else if (status & GNUTLS_CERT_UNEXPECTED_OWNER)
		explain_name(tls, certificate);
	else if (status & GNUTLS_CERT_EXPIRED)
		explain_dates(tls, certificate, true);
	else if (status & GNUTLS_CERT_NOT_ACTIVATED)
		explain_dates(tls, certificate, false);
	else if (status & GNUTLS_CERT_PURPOSE_MISMATCH)
		(void)fail(tls, "its certificate is not for a server: issue one for 'serverAuth'");
	else if (status & GNUTLS_CERT_INSECURE_ALGORITHM)
		(void)fail(tls, "its certificate has an insecure signature algorithm: issue a new one");
	else
		(void)fail(tls, "its certificate is not valid: 'openssl verify' may say why");
	if (certificate)
		gnutls_x509_crt_deinit(certificate);
}

/* ---- other errors ---- */

static int explain_alert(struct weir_tls *tls)
{
	const gnutls_alert_description_t alert = gnutls_alert_get(tls->session);
	const char *name = gnutls_alert_get_name(alert);

	if (alert == GNUTLS_A_CERTIFICATE_REQUIRED)
		return fail(tls, "it requires a client certificate: set 'tls-auth-clients no' there");
	snprintf(tls->trouble, sizeof(tls->trouble), "it refuses TLS: %s", name ? name : "an unknown alert");
	return -EPROTO;
}

static int explain(struct weir_tls *tls, int err)
{
	switch (err) {
	case GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR:
		explain_certificate(tls);
		(void)gnutls_alert_send_appropriate(tls->session, err); /* so that the store can log the reason */
		return -EPROTO;
	case GNUTLS_E_FATAL_ALERT_RECEIVED:
	case GNUTLS_E_WARNING_ALERT_RECEIVED:
		return explain_alert(tls);
	case GNUTLS_E_UNEXPECTED_PACKET_LENGTH:
	case GNUTLS_E_UNSUPPORTED_VERSION_PACKET:
	case GNUTLS_E_UNEXPECTED_PACKET:
	case GNUTLS_E_RECORD_OVERFLOW:
		return fail(tls, "it does not speak TLS: name its 'tls-port', or write redis://");
	case GNUTLS_E_PREMATURE_TERMINATION:
		return fail(tls, "it closed the connection");
	case GNUTLS_E_PUSH_ERROR:
	case GNUTLS_E_PULL_ERROR:
		return fail(tls, strerror(errno));
	default:
		return fail(tls, gnutls_strerror(err));
	}
}

/* ---- a connection ---- */

int weir_tls_shake_hands(struct weir_tls *tls)
{
	int err;

	do
		err = gnutls_handshake(tls->session);
	while (err == GNUTLS_E_INTERRUPTED);
	if (err == GNUTLS_E_AGAIN)
		return -EAGAIN;
	if (!err)
		return 0;
	return explain(tls, err);
}

short weir_tls_poll_events(const struct weir_tls *tls)
{
	return gnutls_record_get_direction(tls->session) ? POLLOUT : POLLIN;
}

static ssize_t result_of(struct weir_tls *tls, ssize_t result)
{
	if (result >= 0)
		return result;
	if (result == GNUTLS_E_AGAIN || result == GNUTLS_E_INTERRUPTED) {
		errno = result == GNUTLS_E_AGAIN ? EAGAIN : EINTR;
	} else {
		(void)explain(tls, (int)result);
		errno = EPROTO;
	}
	return -1;
}

/* A peer that closes a connection gives the reason in an alert. When sending fails, the alert can still be read. */
static ssize_t why_closed(struct weir_tls *tls, ssize_t sent)
{
	char ignored[1];
	const ssize_t received = gnutls_record_recv(tls->session, ignored, sizeof(ignored));

	return received == GNUTLS_E_FATAL_ALERT_RECEIVED ? received : sent;
}

/* GnuTLS has already copied a record that the socket did not accept. To continue with such a record, it must be called
 * without data.
 */
ssize_t weir_tls_send(struct weir_tls *tls, const void *data, size_t bytes)
{
	ssize_t sent = gnutls_record_send(tls->session, tls->is_sending ? NULL : data, tls->is_sending ? 0 : bytes);

	tls->is_sending = sent == GNUTLS_E_AGAIN || sent == GNUTLS_E_INTERRUPTED;
	return result_of(tls, sent < 0 && !tls->is_sending ? why_closed(tls, sent) : sent);
}

ssize_t weir_tls_recv(struct weir_tls *tls, void *data, size_t bytes)
{
	return result_of(tls, gnutls_record_recv(tls->session, data, bytes));
}

const char *weir_tls_trouble(const struct weir_tls *tls)
{
	return tls->trouble;
}

const char *weir_tls_version(void)
{
	static char words[32];

	snprintf(words, sizeof(words), "GnuTLS %s", gnutls_check_version(NULL));
	return words;
}
