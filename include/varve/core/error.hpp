// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/config.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <type_traits>

namespace varve {

struct dims;

/// The base of every exception that varve throws. The exception owns its text. A call that throws leaves values,
/// version counters and stacks unchanged.
///
/// This guarantee does not cover calls that run a function of the user (a transform, a higher-order operator, a custom
/// function, `interpret`): what that function wrote before the error stays written. `compile` does keep it. Its trace
/// runs on copies, and its program writes only after all is computed.
class error : public std::exception {
public:
  explicit error(char const* text) noexcept;
  error(error const& other) noexcept;
  error& operator=(error const& other) noexcept;
  ~error() override;
  char const* what() const noexcept override { return text_ ? text_ : "varve: error"; }

private:
  char* text_;
};

/// Shapes do not fit together; the text contains both.
struct shape_error : error {
  using error::error;
};
/// An element type is not supported or does not fit; the text names the operator and the types.
struct dtype_error : error {
  using error::error;
};
/// An axis or index lies outside its range; the text contains the range.
struct index_error : error {
  using error::error;
};
/// A value would have more dimensions than `max_rank`.
struct rank_error : error {
  using error::error;
};
/// An operator lacks the rule that an interpreter requires; the text names both.
struct missing_rule : error {
  using error::error;
};
/// The dispatcher cannot choose: ambiguous kernels, a mode or subclass that no candidate accepts, an infra slot taken
/// twice, or an invalid registration.
struct dispatch_error : error {
  using error::error;
};
/// A transform was used wrongly: unequal mapped sizes, a result that is not a scalar, or an escaped value.
struct transform_error : error {
  using error::error;
};
/// Reverse mode cannot compute a gradient: an in-place operator changed a saved value, a graph was already freed, or a
/// leaf was written to.
struct autograd_error : error {
  using error::error;
};
/// A loop needs more steps than its bound allows; the text names the loop and the bound.
struct step_limit_error : error {
  using error::error;
};
/// A number or a shape depends on data that are missing, because a tensor is fake.
struct data_dependent_error : error {
  using error::error;
};
/// A symbolic size needs its environment, which is missing: it was destroyed, or the size belongs to a finished graph
/// or is a name in a spec. Also thrown when sizes of two environments meet (`shape_recorder`).
struct size_error : error {
  using error::error;
};
/// An argument has a value that the operator does not accept.
struct value_error : error {
  using error::error;
};

/// A function that handles errors in a program without exceptions (`-fno-exceptions`). It may leave by `std::exit` or
/// `longjmp` and must not return; if it does, the program is aborted.
using error_handler = void (*)(std::exception const& e);
namespace detail {
inline void print_error(std::exception const& e) { std::fprintf(stderr, "%s\n", e.what()); }
inline constinit error_handler handler_of_errors = &print_error;
} // namespace detail
/// Sets the error handler of all threads and returns the previous one. The default, restored by null, prints the text;
/// then the program is aborted. Programs with exceptions catch errors instead and do not need a handler.
inline error_handler set_error_handler(error_handler h) {
  error_handler const before = detail::handler_of_errors;
  detail::handler_of_errors = h ? h : &detail::print_error;
  return before;
}

namespace refuse {
/// Throws an `E` made from the arguments. Without exceptions, calls the error handler and ends the program. Inlined,
/// because its callers are cold themselves.
template <class E, class... A>
[[noreturn]] VARVE_INLINE void with(A const&... a) {
#if VARVE_HAS_EXCEPTIONS()
  throw E(a...);
#else
  if constexpr (std::is_base_of_v<std::exception, E>) detail::handler_of_errors(E(a...));
  std::abort();
#endif
}
/// Rethrows the exception that is being handled.
[[noreturn]] VARVE_INLINE void again() {
#if VARVE_HAS_EXCEPTIONS()
  throw;
#else
  std::abort(); // without exceptions nothing is ever handled
#endif
}
} // namespace refuse

namespace detail {
/// Returns `body()`, or `otherwise(e)` if that throws an `E`. If `E` is void, every exception is caught and
/// `otherwise()` is returned.
template <class E, class F, class G>
constexpr auto attempt(F const& body, [[maybe_unused]] G const& otherwise) {
#if VARVE_HAS_EXCEPTIONS()
  if constexpr (std::is_void_v<E>) {
    try {
      return body();
    } catch (...) { return otherwise(); }
  } else {
    try {
      return body();
    } catch (E const& e) { return otherwise(e); }
  }
#else
  return body();
#endif
}
} // namespace detail

/// Functions that throw. They are *not* usable in constant expressions, where the compiler's message names the
/// function: the name describes the error.
namespace refuse {
[[noreturn]] void shapes_do_not_broadcast(dims const& a, dims const& b);
[[noreturn]] void shapes_do_not_match(char const* op, dims const& a, dims const& b);
[[noreturn]] void rank_exceeds_eight_dimensions(int rank);
[[noreturn]] void axis_out_of_range(std::int64_t axis, int rank);
[[noreturn]] void index_out_of_range(char const* op, std::int64_t index, std::int64_t size);
[[noreturn]] void a_value_of_rank_0_has_no_axis(char const* op);
[[noreturn]] void argument_is_invalid(char const* op, char const* what);
[[noreturn]] void item_of_other_than_one_element(dims const& sizes);
[[noreturn]] void bound_lies_beyond_what_a_symbolic_size_is_while_traced(char const* op);
[[noreturn]] void grad_of_a_function_that_does_not_return_a_scalar(dims const& sizes);
[[noreturn]] void mapped_sizes_differ(dims const& a, dims const& b);
[[noreturn]] void a_value_of_rank_0_has_no_axis_to_map();
[[noreturn]] void lengths_differ(char const* op, dims const& a, dims const& b);
[[noreturn]] void loop_takes_more_steps_than_its_bound(char const* op, std::int64_t bound);
[[noreturn]] void trees_differ_in_size(std::size_t a, std::size_t b);
[[noreturn]] void result_is_mapped_but_out_dims_says_none();
[[noreturn]] void dtype_does_not_fit(char const* op, char const* result, char const* into);
[[noreturn]] void dtype_is_not_supported(char const* op, char const* dtype);
[[noreturn]] void condition_is_not_of_bool(char const* op, char const* dtype);
[[noreturn]] void dtypes_differ(char const* op, char const* a, char const* b);
} // namespace refuse

} // namespace varve
