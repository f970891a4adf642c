// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/message.hpp>

#include <string>

/// @file
/// The kinds of contents of a tensor, and errors for contents that it does not have.
namespace varve::detail {

/// The contents of a tensor: memory, a value seen through a transform, the object of a subclass, or only a shape
/// (`meta`).
enum class payload : unsigned char { memory, seen, subclass, nothing };

[[noreturn]] VARVE_COLD inline void refuse_traced_number() {
  refuse::with<transform_error>(
      "varve: a value that is being traced cannot become a number, nor decide an if: the program would be the one for "
      "this value only; use where, cond or while_loop, or pass it as a plain number");
}
[[noreturn]] VARVE_COLD inline void refuse_data(payload p) {
  if (p == payload::seen)
    refuse::with<transform_error>(
        "varve: data of a tensor seen through a transform was asked for (by item, to_vector, data or an if); compute "
        "with the tensor, choose by where or cond, or read it after the transform has returned");
  if (p == payload::subclass)
    refuse::with<transform_error>(
        "varve: data of a tensor subclass was asked for, which has none of its own; unwrap it first");
  refuse::with<transform_error>("varve: data of a meta tensor was asked for, which has a shape and a dtype only");
}
[[noreturn]] VARVE_COLD inline void refuse_alias_of_seen() {
  refuse::with<transform_error>(
      "varve: alias: a tensor seen through a transform has no memory of its own to share; use "
      "detach(x), or a view");
}
[[noreturn]] VARVE_COLD inline void refuse_undefined(char const* what) {
  refuse::with<value_error>(
      (std::string("varve: ") + what +
       ": the tensor is undefined; ask defined() first, as of a gradient that may not have arrived")
          .c_str());
}

} // namespace varve::detail
