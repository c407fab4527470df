#include "manifest.h"

#include "common.h"

#include <sys/syscall.h>
#include <unistd.h>

#define LANDLOCK_VERSION_FLAG 1

void ns_manifest_fill(const struct rv_host *host, struct rv_manifest *ret)
{
        struct rv_capability_grade *c = ret->capabilities;

        *ret = (struct rv_manifest){ .struct_size = sizeof(*ret), .is_usable = 1, .isolation = "shared-kernel" };
        for (int i = 0; i < RV_CAPABILITY_MAX_; i++)
                c[i].grade = RV_GRADE_ENFORCED;
        if (!host->has_private_uids) {
                c[RV_CAPABILITY_private_uid].grade = RV_GRADE_APPROXIMATE;
                rv_text_copy(c[RV_CAPABILITY_private_uid].reason, sizeof(c[0].reason), "an ordinary user has one id to give: PID 1 and the program share "
                             "it with the user outside; run reeve as root for ids of a run's own");
        }
        if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION_FLAG) < 2) {
                c[RV_CAPABILITY_landlock].grade = RV_GRADE_ABSENT;
                rv_text_copy(c[RV_CAPABILITY_landlock].reason, sizeof(c[0].reason), "this kernel has no Landlock, or ABI 1 only, which would forbid "
                             "every rename between directories; the read-only mounts stand without it");
        }
}
