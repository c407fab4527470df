#include "package/drivers.h"

#include "driver_build_py.h"
#include "driver_compile_py.h"
#include "driver_resolve_cjs.h"
#include "driver_resolve_py.h"

static const struct rv_driver resolve_python = { "resolve.py", driver_resolve_py, sizeof(driver_resolve_py) - 1 };
static const struct rv_driver resolve_javascript = { "resolve.cjs", driver_resolve_cjs, sizeof(driver_resolve_cjs) - 1 };
static const struct rv_driver compile_python = { "compile.py", driver_compile_py, sizeof(driver_compile_py) - 1 };
static const struct rv_driver build_python = { "build.py", driver_build_py, sizeof(driver_build_py) - 1 };

const struct rv_driver *rv_driver_get(enum rv_driver_kind kind, enum rv_language language)
{
        if (kind == RV_DRIVER_RESOLVE)
                return language == RV_LANGUAGE_JAVASCRIPT ? &resolve_javascript : &resolve_python;
        if (language != RV_LANGUAGE_PYTHON)
                return NULL;
        return kind == RV_DRIVER_COMPILE ? &compile_python : kind == RV_DRIVER_BUILD ? &build_python : NULL;
}
