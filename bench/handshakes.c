/* Connections over TLS as fast as a broker takes them, so many at a time: each connects, shakes hands, sends one request,
 * has its answer and ends as clients end. Only the answer shows that the broker, too, has finished the handshake.
 *
 * handshakes AUTHORITY HOST:PORT FILE CONNECTIONS SECONDS ERROR_AT NEW|AGAIN [COUNT]: sends the request in FILE; its
 * answer tells its error in the two bytes at ERROR_AT. With AGAIN each connection offers the session of one before it,
 * where the broker has given one. Prints one line of JSON: connections per second, how many of them went on with a
 * session, how long one took from its first step to its answer, and the CPU time of this program. With COUNT it ends
 * when so many were answered, if that is before SECONDS have passed. */

#define _GNU_SOURCE
#include "load.h"
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_BYTES 65536
#define SILENCE_MS 10000

struct connection {
    int fd;
    SSL *tls;
    int is_secure;
    uint64_t began_ns;
    size_t received;
    unsigned char answer[ANSWER_BYTES];
};

static SSL_CTX *context;
static struct sockaddr_in address;
static const unsigned char *request;
static size_t request_bytes, error_at;
static int poll_fd, resumes;
static SSL_SESSION *session;

static void begin(struct connection *connection) {
    int yes = 1;
    connection->began_ns = now_ns(CLOCK_MONOTONIC);
    connection->is_secure = 0;
    connection->received = 0;
    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (connection->fd < 0)
        fail("no socket: %s", strerror(errno));
    if (connect(connection->fd, (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS)
        fail("the broker cannot be reached: %s", strerror(errno));
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    connection->tls = SSL_new(context);
    if (connection->tls == NULL || SSL_set_fd(connection->tls, connection->fd) != 1)
        fail("no memory for a connection");
    SSL_set_connect_state(connection->tls);
    if (session != NULL)
        SSL_set_session(connection->tls, session);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = connection};
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, connection->fd, &event);
}

static void end(struct connection *connection) {
    if (resumes && SSL_SESSION_is_resumable(SSL_get0_session(connection->tls))) {
        SSL_SESSION_free(session);
        session = SSL_get1_session(connection->tls);
    }
    SSL_shutdown(connection->tls);
    ERR_clear_error();
    SSL_free(connection->tls);
    close(connection->fd);
}

/* Whether a call of OpenSSL only has to be made again later. */
static int has_to_wait(const struct connection *connection, int result) {
    switch (SSL_get_error(connection->tls, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return 1;
    default:
        return 0;
    }
}

static int is_connected(const struct connection *connection) {
    struct sockaddr_in peer;
    socklen_t bytes = sizeof peer;
    return getpeername(connection->fd, (struct sockaddr *)&peer, &bytes) == 0;
}

/* As far as that goes without waiting; whether the answer is there. */
static int go_on(struct connection *connection) {
    if (!connection->is_secure) {
        if (!is_connected(connection))
            return 0;
        int result = SSL_connect(connection->tls);
        if (result != 1 && has_to_wait(connection, result))
            return 0;
        if (result != 1)
            fail("no handshake: %s", X509_verify_cert_error_string(SSL_get_verify_result(connection->tls)));
        connection->is_secure = 1;
        if (SSL_write(connection->tls, request, (int)request_bytes) != (int)request_bytes)
            fail("a request could not be sent");
    }
    do {
        size_t room = ANSWER_BYTES - connection->received;
        int count = SSL_read(connection->tls, connection->answer + connection->received, (int)room);
        if (count <= 0 && has_to_wait(connection, count))
            return 0;
        if (count <= 0)
            fail("the broker closed a connection");
        connection->received += (size_t)count;
        if (connection->received >= 4 && 4 + (size_t)read_u32(connection->answer) > ANSWER_BYTES)
            fail("an answer is longer than %d bytes", ANSWER_BYTES);
    } while (connection->received < 4 || connection->received < 4 + (size_t)read_u32(connection->answer));
    int error = connection->answer[error_at] << 8 | connection->answer[error_at + 1];
    if (error != 0)
        fail("the broker answered with error %d", (int16_t)error);
    return 1;
}

int main(int count, char **arguments) {
    if (count != 8 && count != 9)
        fail("usage: handshakes AUTHORITY HOST:PORT FILE CONNECTIONS SECONDS ERROR_AT NEW|AGAIN [COUNT]");
    context = new_context(arguments[1]);
    address = parse_address(arguments[2]);
    request = read_file(arguments[3], &request_bytes);
    int connections = atoi(arguments[4]);
    double seconds = atof(arguments[5]);
    if (connections < 1 || connections > 10000 || seconds <= 0)
        fail("CONNECTIONS is 1 to 10000, SECONDS more than 0");
    error_at = (size_t)atoi(arguments[6]);
    if (error_at + 2 > ANSWER_BYTES)
        fail("ERROR_AT is less than %d", ANSWER_BYTES - 1);
    resumes = strcmp(arguments[7], "AGAIN") == 0;
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    uint64_t wanted = count == 9 ? strtoull(arguments[8], NULL, 10) : UINT64_MAX, answered = 0, resumed = 0;
    poll_fd = epoll_create1(0);
    struct connection *all = calloc((size_t)connections, sizeof *all);
    struct latencies latencies = {0};
    uint64_t begin_ns = now_ns(CLOCK_MONOTONIC), last_ns = begin_ns, end_ns = begin_ns + (uint64_t)(seconds * 1e9);
    uint64_t cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int number = 0; number < connections; number++)
        begin(&all[number]);
    const struct connection *last = NULL;
    while (last == NULL) {
        struct epoll_event events[256];
        int ready = epoll_wait(poll_fd, events, 256, SILENCE_MS);
        if (ready == 0)
            fail("the broker did not answer for %d ms", SILENCE_MS);
        for (int number = 0; number < ready && last == NULL; number++) {
            struct connection *connection = events[number].data.ptr;
            if (!go_on(connection))
                continue;
            answered++;
            resumed += (uint64_t)SSL_session_reused(connection->tls);
            last_ns = now_ns(CLOCK_MONOTONIC);
            note(&latencies, last_ns - connection->began_ns);
            if (last_ns >= end_ns || answered >= wanted) {
                last = connection;
            } else {
                end(connection);
                begin(connection);
            }
        }
    }
    cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
    sort(&latencies);
    printf("{\"answered\": %llu, \"resumed\": %llu, \"connections_per_second\": %.1f, \"p50_ms\": %.4f, \"p99_ms\": %.4f, "
           "\"cpu_seconds\": %.4f, ",
           (unsigned long long)answered, (unsigned long long)resumed,
           (double)answered / ((double)(last_ns - begin_ns) / 1e9), percentile_ms(&latencies, 0.50),
           percentile_ms(&latencies, 0.99), (double)cpu_ns / 1e9);
    print_agreed(last->tls);
    printf("}\n");
    return 0;
}
