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

/// Base of every exception varve throws. The text is owned by the exception; values, version counters and stacks are as
/// they were before the refused call. A call that runs a function of the user's (a transform, a higher-order operator,
/// a custom function, `interpret`) ends this promise where that function has written: what it wrote before the call was
/// refused stays written. `compile` keeps it: its trace runs on copies, and its program writes when all is computed.
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

/// Shapes do not fit together; the text holds both.
struct shape_error : error {
  using error::error;
};
/// An element type is not supported or does not fit; the text names the operator and the types.
struct dtype_error : error {
  using error::error;
};
/// An axis or index lies outside its range; the text holds the range.
struct index_error : error {
  using error::error;
};
/// More dimensions than `max_rank`.
struct rank_error : error {
  using error::error;
};
/// An operator lacks the rule that an interpreter asks for; the text names both.
struct missing_rule : error {
  using error::error;
};
/// The dispatcher cannot choose: ambiguous kernels, a mode or subclass that no candidate accepts, an infra slot taken
/// twice, a faulty registration.
struct dispatch_error : error {
  using error::error;
};
/// A transform was used wrongly: unequal mapped sizes, a result that is no scalar, an escaped value.
struct transform_error : error {
  using error::error;
};
/// Reverse mode was asked for what it cannot give: a value overtaken by an in-place operator, a graph already freed, a
/// leaf written to.
struct autograd_error : error {
  using error::error;
};
/// A loop was given a bound on its steps and needs more; the text names it and the bound.
struct step_limit_error : error {
  using error::error;
};
/// A number, or a shape, was asked for that depends on data which are not there: those of a fake tensor (FK-7).
struct data_dependent_error : error {
  using error::error;
};
/// A symbolic size was asked for what only its environment knows, and has none: it is gone, or was never there, as for
/// the sizes of a finished graph and the names in a spec; or sizes of two environments meet (`shape_recorder`).
struct size_error : error {
  using error::error;
};
/// An argument has a value the operator does not accept.
struct value_error : error {
  using error::error;
};

/// What a program without exceptions (`-fno-exceptions`) does with an error: it may leave by `std::exit` or `longjmp`,
/// and must not return; should it do so, the program is aborted.
using error_handler = void (*)(std::exception const& e);
namespace detail {
inline void print_error(std::exception const& e) { std::fprintf(stderr, "%s\n", e.what()); }
inline constinit error_handler handler_of_errors = &print_error;
} // namespace detail
/// Sets it for all threads, and gives the one before: by default the text is printed, and the program aborted. A
/// program with exceptions catches them and does not need it.
inline error_handler set_error_handler(error_handler h) {
  error_handler const before = detail::handler_of_errors;
  detail::handler_of_errors = h ? h : &detail::print_error;
  return before;
}

namespace refuse {
/// Throws an `E` of these arguments, or without exceptions tells the error handler and ends the program. Inlined:
/// callers are cold themselves.
template <class E, class... A>
[[noreturn]] VARVE_INLINE void with(A const&... a) {
#if VARVE_HAS_EXCEPTIONS()
  throw E(a...);
#else
  if constexpr (std::is_base_of_v<std::exception, E>) detail::handler_of_errors(E(a...));
  std::abort();
#endif
}
/// Throws again what is being handled.
[[noreturn]] VARVE_INLINE void again() {
#if VARVE_HAS_EXCEPTIONS()
  throw;
#else
  std::abort(); // nothing is ever handled
#endif
}
} // namespace refuse

namespace detail {
/// `body()`, and where it throws an `E`, `otherwise(e)`; of `E` void `otherwise()` of whatever it throws.
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

/// Functions that are *not* usable in constant expressions, named so that the compiler's message is the remedy; at run
/// time they throw.
namespace refuse {
[[noreturn]] void shapes_do_not_broadcast(dims const& a, dims const& b);
[[noreturn]] void shapes_do_not_match(char const* op, dims const& a, dims const& b);
[[noreturn]] void rank_exceeds_eight_dimensions(int rank);
[[noreturn]] void axis_out_of_range(std::int64_t axis, int rank);
[[noreturn]] void index_out_of_range(char const* op, std::int64_t index, std::int64_t size);
[[noreturn]] void a_value_of_rank_0_has_no_axis(char const* op);
[[noreturn]] void argument_is_invalid(char const* op, char const* what);
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
