/* What both load generators have: an end with a sentence, the time, requests from a file, addresses, latencies; and of
 * TLS, with -DWITH_TLS, how a broker's certificate is checked and what was agreed on. */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef WITH_TLS
#include <openssl/ssl.h>
#include <signal.h>
#endif

static void fail(const char *sentence, ...) {
    va_list arguments;
    va_start(arguments, sentence);
    vfprintf(stderr, sentence, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static uint64_t now_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Prepared requests, each with its length in front; where the next one begins. */
static unsigned char *read_file(const char *name, size_t *bytes) {
    FILE *file = fopen(name, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        fail("%s cannot be read: %s", name, strerror(errno));
    *bytes = (size_t)ftell(file);
    rewind(file);
    unsigned char *content = malloc(*bytes);
    if (content == NULL || fread(content, 1, *bytes, file) != *bytes)
        fail("%s cannot be read", name);
    fclose(file);
    return content;
}

static uint32_t read_u32(const unsigned char *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* HOST:PORT, the first of a list. */
static struct sockaddr_in parse_address(const char *text) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    char host[INET_ADDRSTRLEN] = "";
    size_t length = strcspn(text, ":,");
    if (length < sizeof host)
        memcpy(host, text, length);
    if (text[length] != ':' || inet_pton(AF_INET, host, &address.sin_addr) != 1)
        fail("%s does not begin with an IPv4 address and a port", text);
    address.sin_port = htons((uint16_t)atoi(text + length + 1));
    return address;
}

/* Latencies */

struct latencies {
    uint32_t *each_ns;
    size_t count, room;
};

static void note(struct latencies *latencies, uint64_t ns) {
    if (latencies->count == latencies->room) {
        latencies->room = latencies->room ? 2 * latencies->room : 1 << 16;
        latencies->each_ns = realloc(latencies->each_ns, latencies->room * sizeof *latencies->each_ns);
        if (latencies->each_ns == NULL)
            fail("no memory for %zu latencies", latencies->room);
    }
    latencies->each_ns[latencies->count++] = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

static int ascending(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static void sort(struct latencies *latencies) {
    qsort(latencies->each_ns, latencies->count, sizeof *latencies->each_ns, ascending);
}

/* Of sorted ones. */
static double percentile_ms(const struct latencies *latencies, double fraction) {
    return latencies->each_ns[(size_t)(fraction * (double)(latencies->count - 1))] / 1e6;
}

#ifdef WITH_TLS

/* TLS */

static SSL_CTX *new_context(const char *authority) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (context == NULL || SSL_CTX_load_verify_locations(context, authority, NULL) != 1)
        fail("%s is not the certificate of an authority", authority);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    /* A write to who has gone is an error like any other. */
    signal(SIGPIPE, SIG_IGN);
    return context;
}

/* Such as "TLSv1.3 TLS_AES_256_GCM_SHA384 X25519". */
static void print_agreed(SSL *tls) {
    const char *group = SSL_group_to_name(tls, (int)SSL_get_negotiated_group(tls));
    printf("\"agreed\": \"%s %s %s\"", SSL_get_version(tls), SSL_get_cipher_name(tls), group ? group : "?");
}

#endif
