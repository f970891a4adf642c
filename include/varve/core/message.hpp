// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/config.hpp>
#include <varve/core/dims.hpp>
#include <varve/core/error.hpp>
#include <varve/core/shape_recorder.hpp>

#include <cstdlib>
#include <cstring>
#include <string>

/// @file
/// The texts of the exceptions. They are separate from `error.hpp`, so that constant-expression code compiles no
/// strings.
namespace varve {

/// Returns a size as text: a number, the name of a symbolic size, or an expression as its environment writes it. An
/// expression of a finished graph or of a destroyed environment is written as its index.
std::string text_of_size(extent size);
/// Returns a shape as PyTorch prints it: `[2, 3]`, or `[]` for rank 0.
std::string to_string(dims const& d);

#if VARVE_DEFINES
namespace detail {
VARVE_COLD VARVE_LIBRARY char* copy_text(char const* text) noexcept {
  if (!text) return nullptr;
  std::size_t const n = std::strlen(text) + 1;
  auto* p = static_cast<char*>(std::malloc(n));
  if (p) std::memcpy(p, text, n);
  return p;
}
} // namespace detail

VARVE_LIBRARY_MEMBER error::error(char const* text) noexcept : text_(detail::copy_text(text)) {}
VARVE_LIBRARY_MEMBER error::error(error const& other) noexcept
    : std::exception(other), text_(detail::copy_text(other.text_)) {}
VARVE_LIBRARY_MEMBER error& error::operator=(error const& other) noexcept {
  if (this != &other) {
    std::free(text_);
    text_ = detail::copy_text(other.text_);
  }
  return *this;
}
VARVE_LIBRARY_MEMBER error::~error() { std::free(text_); }

VARVE_COLD VARVE_LIBRARY std::string text_of_size(extent size) {
  if (size.is_number()) return std::to_string(size.number());
  if (size.is_entry()) {
    shape_recorder const* const r = shape_recorder::find(size.environment());
    return r ? r->text(size) : "expression " + std::to_string(size.entry());
  }
  std::string s;
  for (int k = 48; k >= 0; k -= 8)
    if (char const c = static_cast<char>(size.number() >> k & 255)) s += c;
  return s;
}
VARVE_COLD VARVE_LIBRARY std::string to_string(dims const& d) {
  std::string s = "[";
  for (int k = 0; k < d.n; ++k) {
    if (k) s += ", ";
    s += text_of_size(d.v[k]);
  }
  return s += "]";
}

namespace refuse {
VARVE_COLD VARVE_LIBRARY void shapes_do_not_broadcast(dims const& a, dims const& b) {
  refuse::with<shape_error>(("varve: shapes " + to_string(a) + " and " + to_string(b) + " do not broadcast").c_str());
}
VARVE_COLD VARVE_LIBRARY void shapes_do_not_match(char const* op, dims const& a, dims const& b) {
  refuse::with<shape_error>(
      ("varve: " + std::string(op) + ": shapes " + to_string(a) + " and " + to_string(b) + " do not fit").c_str());
}
VARVE_COLD VARVE_LIBRARY void dtype_does_not_fit(char const* op, char const* result, char const* into) {
  refuse::with<dtype_error>(
      ("varve: " + std::string(op) + ": a result of dtype " + result + " cannot be written into " + into).c_str());
}
VARVE_COLD VARVE_LIBRARY void rank_exceeds_eight_dimensions(int rank) {
  refuse::with<rank_error>(("varve: rank " + std::to_string(rank) + " exceeds the " + std::to_string(max_rank) +
                            " dimensions a value may have")
                               .c_str());
}
VARVE_COLD VARVE_LIBRARY void axis_out_of_range(std::int64_t axis, int rank) {
  int const r = rank > 0 ? rank : 1;
  refuse::with<index_error>(("varve: axis " + std::to_string(axis) + " is out of range for rank " +
                             std::to_string(rank) + ": expected " + std::to_string(-r) + " to " + std::to_string(r - 1))
                                .c_str());
}
VARVE_COLD VARVE_LIBRARY void index_out_of_range(char const* op, std::int64_t index, std::int64_t size) {
  refuse::with<index_error>(("varve: " + std::string(op) + ": index " + std::to_string(index) +
                             " is out of range for size " + std::to_string(size))
                                .c_str());
}
VARVE_COLD VARVE_LIBRARY void a_value_of_rank_0_has_no_axis(char const* op) {
  refuse::with<index_error>(
      ("varve: " + std::string(op) + ": a value of rank 0 has no axis: there are more indices than axes").c_str());
}
VARVE_COLD VARVE_LIBRARY void argument_is_invalid(char const* op, char const* what) {
  refuse::with<value_error>(("varve: " + std::string(op) + ": " + what).c_str());
}
VARVE_COLD VARVE_LIBRARY void item_of_other_than_one_element(dims const& sizes) {
  argument_is_invalid("item", ("the tensor must have exactly one element, not shape " + to_string(sizes) +
                               "; take one of them, as in x[0].item(), or all by x.to_vector()")
                                  .c_str());
}
VARVE_COLD VARVE_LIBRARY void bound_lies_beyond_what_a_symbolic_size_is_while_traced(char const* op) {
  argument_is_invalid(op,
                      "a bound lies beyond all that a symbolic size is while it is traced, so that the program could "
                      "not tell whether it is inside; use end, or a size that is a number");
}
VARVE_COLD VARVE_LIBRARY void grad_of_a_function_that_does_not_return_a_scalar(dims const& sizes) {
  refuse::with<transform_error>(("varve: grad: the function must return a scalar (rank 0), not shape " +
                                 to_string(sizes) + "; reduce its result, for example by sum")
                                    .c_str());
}
VARVE_COLD VARVE_LIBRARY void lengths_differ(char const* op, dims const& a, dims const& b) {
  refuse::with<shape_error>(("varve: " + std::string(op) +
                             ": the lengths of what is walked through differ: " + to_string(a) + " and " + to_string(b))
                                .c_str());
}
VARVE_COLD VARVE_LIBRARY void loop_takes_more_steps_than_its_bound(char const* op, std::int64_t bound) {
  refuse::with<step_limit_error>(("varve: " + std::string(op) + " is not done after the " + std::to_string(bound) +
                                  " steps that bound it; give it a greater bound")
                                     .c_str());
}
VARVE_COLD VARVE_LIBRARY void trees_differ_in_size(std::size_t a, std::size_t b) {
  refuse::with<shape_error>(
      ("varve: two trees of values differ: a vector of " + std::to_string(a) + " meets one of " + std::to_string(b))
          .c_str());
}
VARVE_COLD VARVE_LIBRARY void mapped_sizes_differ(dims const& a, dims const& b) {
  refuse::with<transform_error>(("varve: vmap: the mapped dimensions of the arguments have different sizes: " +
                                 to_string(a) + " and " + to_string(b))
                                    .c_str());
}
VARVE_COLD VARVE_LIBRARY void a_value_of_rank_0_has_no_axis_to_map() {
  refuse::with<index_error>("varve: vmap: a value of rank 0 has no axis to map; give it in_dims none, which leaves it "
                            "the same in every lane");
}
VARVE_COLD VARVE_LIBRARY void result_is_mapped_but_out_dims_says_none() {
  refuse::with<transform_error>("varve: vmap: a result is mapped although out_dims says none; give it a dimension");
}
VARVE_COLD VARVE_LIBRARY void dtype_is_not_supported(char const* op, char const* dtype) {
  std::string what(op);
  if (!what.empty() && what.back() == ':') what.pop_back(); // the text below adds the colon
  refuse::with<dtype_error>(("varve: " + what + ": dtype " + dtype + " is not supported").c_str());
}
VARVE_COLD VARVE_LIBRARY void condition_is_not_of_bool(char const* op, char const* dtype) {
  refuse::with<dtype_error>(
      ("varve: " + std::string(op) + ": the condition is of " + dtype + ", not of bool; compare it, as in ne(c, 0)")
          .c_str());
}
VARVE_COLD VARVE_LIBRARY void dtypes_differ(char const* op, char const* a, char const* b) {
  refuse::with<dtype_error>(
      ("varve: " + std::string(op) + " of two dtypes, " + a + " and " + b + "; convert one of them by to(x, type)")
          .c_str());
}
} // namespace refuse

#endif

} // namespace varve
