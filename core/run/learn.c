#include "run/packages.h"
#include "run/run_private.h"

#include <string.h>

/* Where the files are, of an index that has no page by which that was found out. */

enum rv_step rv__resolve_learn(struct rv_run *run)
{
        struct rv_packages_work *w = &run->packages.work;

        w->what = RV_WORK_LEARN;
        w->packages = run->request->packages;
        w->n_packages = run->request->n_packages;
        return rv__packages_work(run);
}

/* Is all before the path the same? Most of a page's files are in one place. */
static bool has_same_host(const char *a, const char *b)
{
        int slashes = 0;

        for (; *a && *a == *b && slashes < 3; a++, b++)
                slashes += *a == '/';
        return slashes == 3;
}

/* What a page says there counts for as much as it did before: the hosts have to be public. */
enum rv_step rv__resolve_take_learned(struct rv_run *run)
{
        struct rv_registry *registry = run->core->registries[run->request->language];
        json_t *page, *version;
        const json_t *file;
        const char *name, *key, *before = "";
        size_t i;

        json_object_foreach(run->packages.work.pages, name, page)
                json_object_foreach(json_object_get(page, "versions"), key, version)
                        json_array_foreach(json_object_get(version, "files"), i, file) {
                                const char *url = rv_json_get_string(file, "url", "");

                                if (!has_same_host(url, before))
                                        rv_registry_learn(registry, url);
                                before = url;
                        }
        if (!run->packages.work.pages)
                run->packages.work.pages = json_object();
        return rv__resolve_start_job(run);
}
