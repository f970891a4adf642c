// SPDX-License-Identifier: BSL-1.0
// What traces and compiles functions at run time, behind the door at which they are erased.
#define VARVE_DEFINES_CAPTURE 1
#include <varve/aot.hpp>
#include <varve/export/draft_export.hpp>
#include <varve/export/export_program.hpp>
#include <varve/fake/make_fx.hpp>
#include <varve/fake/pre_dispatch.hpp>
#include <varve/varve.hpp>

namespace varve::detail {
template graph trace_boxed<on_real_values>(boxed_function_ref, boxed_args const&, on_real_values::options const&,
                                           capture_policy, boxed_args*);
template graph trace_boxed<on_fake_values<>>(boxed_function_ref, boxed_args const&, on_fake_values<>::options const&,
                                             capture_policy, boxed_args*);
template graph trace_boxed<on_symbolic_values<>>(boxed_function_ref, boxed_args const&,
                                                 on_symbolic_values<>::options const&, capture_policy, boxed_args*);
template graph trace_boxed<on_composites<>>(boxed_function_ref, boxed_args const&, on_composites<>::options const&,
                                            capture_policy, boxed_args*);
template std::shared_ptr<function_programs> fused_programs<tensor>(graph_fuser);
template std::shared_ptr<function_programs> ahead_of_time_programs<tensor>(aot_options);
template std::shared_ptr<function_programs> ahead_of_time_programs<tensor>();
template exported_joint export_joint<tensor>(boxed_function_ref, boxed_args const&, int);
template exported_program export_call<tensor>(boxed_call const&, export_options const&);
template drafted_program draft_call<tensor>(boxed_call const&, export_options const&);
} // namespace varve::detail
