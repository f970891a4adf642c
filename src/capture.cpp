// SPDX-License-Identifier: BSL-1.0
// What traces and compiles functions at run time, behind the door at which they are erased. The headers instantiate it.
#define VARVE_DEFINES_CAPTURE 1
#include <varve/aot.hpp>
#include <varve/export/draft_export.hpp>
#include <varve/export/export_program.hpp>
#include <varve/fake/make_fx.hpp>
#include <varve/fake/pre_dispatch.hpp>
#include <varve/varve.hpp>
