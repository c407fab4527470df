#include "session.h"

#include "base/fetch.h"

/* Where packages come from: files are read with the caller's privilege, tools and servers are asked without. */

int session_find_registries(struct session *s, enum rv_language language)
{
        int r;

        r = rv_registry_find(s->config, s->tenant, language, NULL, &s->registries[language]);
        if (r == 0 && s->fetch_fd < 0)
                (void)rv_fetch_find(&s->fetch_fd, NULL);
        return rv_trace(r);
}

void session_complete_registry(void *arg, struct rv_registry *registry)
{
        struct session *s = arg;

        rv_registry_complete(registry, s->state_fd, s->fetch_fd);
}
