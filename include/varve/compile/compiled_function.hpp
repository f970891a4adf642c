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
  /// Runs a call by a program, which is made if none fits: gives the results, and the structure of their tree in
  /// `call.returned`. False: nothing was run, and the function itself is to be called.
  virtual bool run(boxed_call& call, boxed_args& results) = 0;
  /// Makes a program for a call if none fits, and runs nothing.
  virtual void prepare(boxed_call const& call) = 0;
  virtual std::size_t size() const = 0;
  /// What a call would run, and if nothing, why not the program that was called last.
  virtual std::string explain(boxed_call const& call) const = 0;
};
/// What `compile(f)` makes programs with where `set_default_backend` says so; null: as `compile` describes.
using programs_maker = std::shared_ptr<function_programs> (*)();
inline constinit std::atomic<programs_maker> default_programs = nullptr;
} // namespace detail

/// A function of tensors that runs as programs which are made of it when it is called: what `compile` and
/// `aot_function` return. Threads may share it; copies share the programs.
template <class F>
class compiled_function {
public:
  explicit compiled_function(F f, std::shared_ptr<detail::function_programs> programs)
      : f_(std::move(f)), programs_(std::move(programs)) {}

  /// Arguments are tensors, or trees in which numbers are constants of the program.
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
  /// For how many kinds of arguments a program is kept.
  std::size_t versions() const { return programs_->size(); }
  /// What a call with these arguments would run: a program that is kept, or another one and why. Runs nothing. (Where
  /// transforms, modes or autograd watch, calls run the function itself.)
  template <class... X>
  std::string explain(X const&... x) const {
    return programs_->explain(detail::boxed_call_with<X...>(&f_, &detail::run_boxed<F, X...>, x...));
  }

private:
  F f_;
  std::shared_ptr<detail::function_programs> programs_;
};

} // namespace varve
