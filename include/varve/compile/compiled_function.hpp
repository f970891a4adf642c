// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/trace/boxed_call.hpp>

#include <atomic>
#include <string>

namespace varve {

namespace detail {
/// The programs of a compiled function, one for each kind of arguments that it was called with. Threads may share them.
class function_programs {
public:
  virtual ~function_programs() = default;
  /// Runs a call by a program, which is made if none fits. Sets the results, and the structure of their tree in
  /// `call.returned`. Returns false if nothing was run, so that the caller must call the function itself.
  virtual bool run(boxed_call& call, boxed_args& results) = 0;
  /// Makes a program for a call if none fits, and runs nothing.
  virtual void prepare(boxed_call const& call) = 0;
  virtual std::size_t size() const = 0;
  /// Returns what a call would run. If there is no program for it, returns why the last one called does not fit.
  virtual std::string explain(boxed_call const& call) const = 0;
};
/// A function that makes the programs of `compile(f)` after `set_default_backend`; null for the default that `compile`
/// describes.
using programs_maker = std::shared_ptr<function_programs> (*)();
inline constinit std::atomic<programs_maker> default_programs = nullptr;
} // namespace detail

/// A function of tensors that runs as programs, which are made when it is called: the result of `compile` and
/// `aot_function`. Threads may share it; copies share the programs.
template <class F>
class compiled_function {
public:
  explicit compiled_function(F f, std::shared_ptr<detail::function_programs> programs)
      : f_(std::move(f)), programs_(std::move(programs)) {}

  /// Calls the function. Arguments are tensors, or trees in which numbers are constants of the program.
  template <class... X>
    requires(detail::compilable<X>() && ...)
  auto operator()(X const&... x) const {
    using Y = detail::result_of_call<F, X...>;
    detail::boxed_call_with<X...> call(&f_, &detail::run_boxed<F, X...>, x...);
    boxed_args y;
    if (!programs_->run(call, y)) return static_cast<Y>(detail::call_with(f_, std::tuple<X const&...>(x...)));
    return detail::returned_tree<Y>(call.returned, y);
  }
  /// Makes the program for these arguments, and runs nothing.
  template <class... X>
  void prepare(X const&... x) const {
    programs_->prepare(detail::boxed_call_with<X...>(&f_, &detail::run_boxed<F, X...>, x...));
  }
  /// Returns the number of programs that are kept, one for each kind of arguments.
  std::size_t versions() const { return programs_->size(); }
  /// Returns what a call with these arguments would run: a program that is kept, or a new one and the reason. Runs
  /// nothing. (Under transforms, modes or autograd, calls may run the function itself.)
  template <class... X>
  std::string explain(X const&... x) const {
    return programs_->explain(detail::boxed_call_with<X...>(&f_, &detail::run_boxed<F, X...>, x...));
  }

private:
  F f_;
  std::shared_ptr<detail::function_programs> programs_;
};

} // namespace varve
