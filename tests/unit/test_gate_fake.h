/*
 * test_gate_fake.h - a gate that serves nothing: it is on the test's own loop and answers as it is told to
 *
 *   fake_gate_open -> (the test's loop runs) -> fake_gate_close
 *
 * The descriptors that come with a run are counted and closed. One thread.
 */
#pragma once

#include "base/rv.h"
#include "egress/gate_msg.h"

#include <reeve/backend.h>

#define FAKE_GATE_REPORT                                                                                                       \
        "{\"contacts\":[{\"name\":\"a.example.com\",\"address\":\"192.0.2.1\",\"port\":443,\"protocol\":\"tls\",\"connections\":2," \
        "\"bytes_out\":10,\"bytes_in\":20}],\"denials\":[{\"name\":\"b.example.com\",\"address\":\"\",\"port\":0,\"protocol\":"     \
        "\"dns\",\"rule\":\"name\",\"count\":3}],\"more_contacts\":0,\"more_denials\":4}"

enum fake_gate_mood {
        FAKE_GATE_GOOD = 0,
        FAKE_GATE_MUTE,         /* no answer */
        FAKE_GATE_REFUSES,
        FAKE_GATE_HANGS_UP,     /* the channel ends in place of the answer */
        FAKE_GATE_TALKS,        /* a message of another size */
};

struct fake_gate {
        const struct rv_host *host;
        int fd;
        struct rv_host_watch *watch;
        enum fake_gate_mood at_add, at_remove;
        const char *report;      /* NULL: FAKE_GATE_REPORT */
        unsigned n_adds, n_removes;
        uint32_t drain_ms;       /* of the last REMOVE */
        size_t n_fds;            /* with the last ADD, the rules too */
        int seals;               /* of the rules */
        char rules[8192];        /* of the last ADD */
};

/** fake_gate_open() - make one. Context: a test. Ownership: @ret_fd, the loop's end of the channel, is the caller's; fake_gate_close(). Return: none */
void fake_gate_open(struct fake_gate *gate, const struct rv_host *host, int *ret_fd);
/** fake_gate_send() - say anything; @fd is lent, or -1. Context: a test. Ownership: borrows. Return: none */
void fake_gate_send(const struct fake_gate *gate, const void *message, size_t n, int fd);
/** fake_gate_close() - hang up. Context: a test; harmless when it has. Ownership: takes what it holds. Return: none */
void fake_gate_close(struct fake_gate *gate);
