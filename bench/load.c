/* Small requests as fast as brokers answer them, each connection with one request in flight.
 *
 * load ADDRESSES FILE CONNECTIONS SECONDS ERROR_AT [COUNT]: sends the requests in FILE, as many as there are
 * connections, each over its own, again and again; an answer tells its error in the two bytes at ERROR_AT. ADDRESSES
 * are HOST:PORT, with commas between them: the first connection goes to the first of them, the next one to the next, and
 * so on in a circle. Prints one line of JSON: requests per second and the latency of a request. What happens in the
 * first fifth of the time is not counted. With COUNT it ends when so many were answered, if that is before SECONDS have
 * passed, and everything is counted. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
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
};

struct latencies {
    uint32_t *each_ns;
    size_t count, room;
};

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

/* The connections */

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

static void send_request(struct connection *connection) {
    connection->received = 0;
    connection->sent_ns = now_ns(CLOCK_MONOTONIC);
    ssize_t bytes = (ssize_t)connection->request_bytes;
    if (send(connection->fd, connection->request, connection->request_bytes, MSG_NOSIGNAL) != bytes)
        fail("a request could not be sent: %s", strerror(errno));
}

static uint32_t read_u32(const unsigned char *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Whether the whole answer is there. An answer that tells an error ends the program. */
static int receive_answer(struct connection *connection, size_t error_at) {
    size_t room = ANSWER_BYTES - connection->received;
    ssize_t count = recv(connection->fd, connection->answer + connection->received, room, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN)
        return 0;
    if (count <= 0)
        fail("the broker closed a connection");
    connection->received += (size_t)count;
    if (connection->received < 4)
        return 0;
    if (4 + (size_t)read_u32(connection->answer) > ANSWER_BYTES)
        fail("an answer is longer than %d bytes", ANSWER_BYTES);
    if (connection->received < 4 + (size_t)read_u32(connection->answer))
        return 0;
    int error = connection->answer[error_at] << 8 | connection->answer[error_at + 1];
    if (error != 0)
        fail("the broker answered with error %d", (int16_t)error);
    return 1;
}

/* The measurement */

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

static double percentile_ms(const struct latencies *latencies, double fraction) {
    return latencies->each_ns[(size_t)(fraction * (double)(latencies->count - 1))] / 1e6;
}

int main(int count, char **arguments) {
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
    qsort(latencies.each_ns, latencies.count, sizeof *latencies.each_ns, ascending);
    double counted_seconds = (double)(last_ns - counted_from_ns) / 1e9;
    printf("{\"answered\": %llu, \"requests_per_second\": %.1f, \"p50_ms\": %.4f, \"p99_ms\": %.4f}\n",
           (unsigned long long)answered, (double)latencies.count / counted_seconds, percentile_ms(&latencies, 0.50), percentile_ms(&latencies, 0.99));
    return 0;
}
