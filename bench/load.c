/* Small requests as fast as brokers answer them, each connection with one request in flight.
 *
 * load ADDRESSES FILE CONNECTIONS SECONDS ERROR_AT [COUNT]: sends the requests in FILE, as many as there are
 * connections, each over its own, again and again; an answer tells its error in the two bytes at ERROR_AT. ADDRESSES
 * are HOST:PORT, with commas between them: the first connection goes to the first of them, the next one to the next, and
 * so on in a circle. Prints one line of JSON: requests per second and the latency of a request. What happens in the
 * first fifth of the time is not counted. With COUNT it ends when so many were answered, if that is before SECONDS have
 * passed, and everything is counted.
 *
 * Compiled with -DWITH_TLS it speaks TLS: its first argument is then the file of the authority that it trusts. */

#define _GNU_SOURCE
#include "load.h"
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_BYTES 8192
#define SILENCE_MS 10000

struct connection {
    int fd;
    const unsigned char *request;
    size_t request_bytes;
    uint64_t sent_ns;
    size_t received;
    unsigned char answer[ANSWER_BYTES];
#ifdef WITH_TLS
    SSL *tls;
#endif
};

/* The connections */

/* The addresses in a circle: the one behind this one. */
static const char *next_address(const char *text, const char *first) {
    const char *comma = strchr(text, ',');
    return comma == NULL ? first : comma + 1;
}

static int connect_to(const char *text) {
    struct sockaddr_in address = parse_address(text);
    int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        fail("%s cannot be reached: %s", text, strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return fd;
}

#ifdef WITH_TLS

/* From then on nothing waits: a request is smaller than any socket's buffer. */
static void secure(struct connection *connection, SSL_CTX *context) {
    connection->tls = SSL_new(context);
    if (connection->tls == NULL || SSL_set_fd(connection->tls, connection->fd) != 1)
        fail("no memory for a connection");
    if (SSL_connect(connection->tls) != 1)
        fail("no handshake: %s", X509_verify_cert_error_string(SSL_get_verify_result(connection->tls)));
    fcntl(connection->fd, F_SETFL, O_NONBLOCK);
}

static ssize_t put(struct connection *connection) {
    return SSL_write(connection->tls, connection->request, (int)connection->request_bytes);
}

static ssize_t get(struct connection *connection, unsigned char *into, size_t room) {
    int count = SSL_read(connection->tls, into, (int)room);
    if (count > 0)
        return count;
    errno = SSL_get_error(connection->tls, count) == SSL_ERROR_WANT_READ ? EAGAIN : ECONNRESET;
    return -1;
}

#else

static ssize_t put(struct connection *connection) {
    return send(connection->fd, connection->request, connection->request_bytes, MSG_NOSIGNAL);
}

static ssize_t get(struct connection *connection, unsigned char *into, size_t room) {
    return recv(connection->fd, into, room, MSG_DONTWAIT);
}

#endif

static void send_request(struct connection *connection) {
    connection->received = 0;
    connection->sent_ns = now_ns(CLOCK_MONOTONIC);
    if (put(connection) != (ssize_t)connection->request_bytes)
        fail("a request could not be sent: %s", strerror(errno));
}

/* Whether the whole answer is there. An answer that tells an error ends the program. */
static int receive_answer(struct connection *connection, size_t error_at) {
    /* Until nothing more has come: the system does not tell of what TLS has decrypted already. */
    do {
        ssize_t count = get(connection, connection->answer + connection->received, ANSWER_BYTES - connection->received);
        if (count < 0 && errno == EAGAIN)
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

/* The measurement */

int main(int count, char **arguments) {
#ifdef WITH_TLS
    SSL_CTX *context = new_context(count > 1 ? arguments[1] : "");
    arguments++;
    count--;
#endif
    if (count != 6 && count != 7)
        fail("usage: load ADDRESSES FILE CONNECTIONS SECONDS ERROR_AT [COUNT]");
    const char *address = arguments[1];
    int connections = atoi(arguments[3]);
    double seconds = atof(arguments[4]);
    if (connections < 1 || connections > 10000 || seconds <= 0)
        fail("CONNECTIONS is 1 to 10000, SECONDS more than 0");
    size_t prepared_bytes, error_at = (size_t)atoi(arguments[5]), place = 0;
    if (error_at + 2 > ANSWER_BYTES)
        fail("ERROR_AT is less than %d", ANSWER_BYTES - 1);
    uint64_t wanted = count == 7 ? strtoull(arguments[6], NULL, 10) : UINT64_MAX;
    unsigned char *prepared = read_file(arguments[2], &prepared_bytes);
    int poll = epoll_create1(0);
    struct connection *all = calloc((size_t)connections, sizeof *all);
    for (int number = 0; number < connections; number++) {
        if (place + 4 > prepared_bytes || place + 4 + read_u32(prepared + place) > prepared_bytes)
            fail("the file holds %d requests, not %d", number, connections);
        all[number].request = prepared + place;
        all[number].request_bytes = 4 + read_u32(prepared + place);
        place += all[number].request_bytes;
        all[number].fd = connect_to(address);
#ifdef WITH_TLS
        secure(&all[number], context);
#endif
        address = next_address(address, arguments[1]);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[number]};
        epoll_ctl(poll, EPOLL_CTL_ADD, all[number].fd, &event);
    }
    struct latencies latencies = {0};
    uint64_t answered = 0;
    uint64_t begin_ns = now_ns(CLOCK_MONOTONIC), end_ns = begin_ns + (uint64_t)(seconds * 1e9);
    uint64_t counted_from_ns = count == 7 ? begin_ns : begin_ns + (end_ns - begin_ns) / 5, last_ns = begin_ns;
    for (int number = 0; number < connections; number++)
        send_request(&all[number]);
    while (last_ns < end_ns && answered < wanted) {
        struct epoll_event events[256];
        int ready = epoll_wait(poll, events, 256, SILENCE_MS);
        if (ready == 0)
            fail("the broker did not answer for %d ms", SILENCE_MS);
        for (int number = 0; number < ready; number++) {
            struct connection *connection = events[number].data.ptr;
            if (!receive_answer(connection, error_at))
                continue;
            answered++;
            last_ns = now_ns(CLOCK_MONOTONIC);
            if (last_ns >= counted_from_ns)
                note(&latencies, last_ns - connection->sent_ns);
            send_request(connection);
        }
    }
    if (latencies.count == 0)
        fail("no request was answered in the time that counts");
    sort(&latencies);
    double counted_seconds = (double)(last_ns - counted_from_ns) / 1e9;
    printf("{\"answered\": %llu, \"requests_per_second\": %.1f, \"p50_ms\": %.4f, \"p99_ms\": %.4f",
           (unsigned long long)answered, (double)latencies.count / counted_seconds, percentile_ms(&latencies, 0.50),
           percentile_ms(&latencies, 0.99));
#ifdef WITH_TLS
    printf(", ");
    print_agreed(all[0].tls);
#endif
    printf("}\n");
    return 0;
}
