/*
 * splice_proxy.c - the least that stands between two sockets: what the gate's streams are measured against
 *
 *     splice_proxy ADDRESS PORT TO_ADDRESS TO_PORT
 *
 * Takes one connection after another, dials the one destination and splices both ways until both have ended. It
 * judges nothing, counts nothing, bounds nothing and serves nobody else meanwhile.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE_BYTES (256 << 10)      /* of a splice, and a pipe: larger gave nothing */

struct way {
        int from, to, pipe[2];
        size_t in_pipe;
        bool is_eof, is_shut;
};

static _Noreturn void die(const char *what)
{
        fprintf(stderr, "splice_proxy: %s: %s\n", what, strerror(errno));
        exit(2);
}

static int make_socket(const char *address, const char *port, struct sockaddr_in *ret)
{
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        *ret = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
        if (fd < 0 || inet_pton(AF_INET, address, &ret->sin_addr) != 1)
                die(address);
        return fd;
}

/* Moves what there is now. A destination that is gone ends the whole. */
static bool move(struct way *way)
{
        for (;;) {
                ssize_t n;

                if (!way->in_pipe) {
                        n = way->is_eof ? -1
                                        : splice(way->from, NULL, way->pipe[1], NULL, PIECE_BYTES,
                                                  SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
                        if (n < 0)
                                return way->is_eof || errno == EAGAIN;
                        way->in_pipe = (size_t)n;
                        way->is_eof = n == 0;
                }
                while (way->in_pipe) {
                        n = splice(way->pipe[0], NULL, way->to, NULL, way->in_pipe, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
                        if (n <= 0)
                                return n < 0 && errno == EAGAIN;
                        way->in_pipe -= (size_t)n;
                }
                if (way->is_eof && !way->is_shut) {
                        way->is_shut = true;
                        return shutdown(way->to, SHUT_WR) == 0;
                }
        }
}

static void serve(int client, int server)
{
        struct way ways[] = { { .from = client, .to = server }, { .from = server, .to = client } };

        for (int i = 0; i < 2; i++) {
                if (pipe2(ways[i].pipe, O_CLOEXEC | O_NONBLOCK) < 0)
                        die("pipe");
                (void)fcntl(ways[i].pipe[0], F_SETPIPE_SZ, PIECE_BYTES);
        }
        while (!ways[0].is_shut || !ways[1].is_shut) {
                struct pollfd p[2] = { { .fd = client }, { .fd = server } };

                for (int i = 0; i < 2; i++) {
                        p[i].events |= ways[i].is_eof || ways[i].in_pipe ? 0 : POLLIN;
                        p[!i].events |= ways[i].in_pipe ? POLLOUT : 0;
                }
                for (int i = 0; i < 2; i++)
                        p[i].fd = p[i].events ? p[i].fd : -1;
                if (poll(p, 2, -1) < 0)
                        die("poll");
                if (!move(&ways[0]) || !move(&ways[1]))
                        break;
        }
        for (int i = 0; i < 2; i++) {
                close(ways[i].pipe[0]);
                close(ways[i].pipe[1]);
        }
}

int main(int argc, char **argv)
{
        struct sockaddr_in here, there;
        const int one = 1;
        int listener;

        if (argc != 5) {
                fprintf(stderr, "usage: splice_proxy ADDRESS PORT TO_ADDRESS TO_PORT\n");
                return 2;
        }
        listener = make_socket(argv[1], argv[2], &here);
        (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (bind(listener, (struct sockaddr *)&here, sizeof(here)) < 0 || listen(listener, 16) < 0)
                die("listen");
        for (;;) {
                int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK),
                    server = make_socket(argv[3], argv[4], &there);

                if (client < 0 || connect(server, (struct sockaddr *)&there, sizeof(there)) < 0 ||
                        fcntl(server, F_SETFL, O_NONBLOCK) < 0)
                        die("connect");
                serve(client, server);
                close(client);
                close(server);
        }
}
