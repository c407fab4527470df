/*
 * common.h - what a built-in backend may use besides reeve/backend.h: the small pieces of core/base
 *
 * A backend sees the plugin interface and backends/common, never the core's folders; this is the door.
 */
#pragma once

#include "base/child.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/test_point.h"
#include "base/text.h"
