#include "session.h"

#include "image.h"

/* Why an image cannot be used is told by the spawner, which is asked for the run. */
void session_identify_runtime(struct session *s)
{
        const struct rv_config_runtime *rt = rv_config_runtime(s->config, s->tenant->runtime);

        if (!rt->image || image_digest(rt, s->runtime_digest, NULL) < 0)
                return;
        s->core.runtime = rt;
        s->core.runtime_digest = s->runtime_digest;
}
