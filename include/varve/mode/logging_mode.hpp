// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/mode/call_log.hpp>

namespace varve {

/// A mode that passes every call to a sink when its result is available; modes below log a call first, as in PyTorch's
/// logging mode. The sink is a `call_log`, or any function of a `call_record`, which may be constexpr for static
/// values.
///
///   call_log log;
///   logging_mode mode{log};
///   { mode_guard const on{mode}; y = x * x; }      // tensors;  with(mode, f, x...) for static values
///   std::puts(log.text().c_str());                 // $1: f32[3] = mul($0, $0)
///
/// A call that throws is passed without results.
template <class Sink>
struct logging_mode : dispatch_mode<logging_mode<Sink>> {
  static constexpr bool supports_higher_order_operators = true;
  Sink* sink;
  explicit constexpr logging_mode(Sink& s) : sink(&s) {}

  constexpr auto process(auto const& op, auto const&... args) {
    call_record call = describe_call(op, args...);
    auto const logged = [&] {
      auto y = op(args...);
      describe_results(call, y);
      (*sink)(call);
      return y;
    };
    return detail::attempt<void>(logged, [&]() -> decltype(logged()) {
      if (!call.result_count) (*sink)(call); // otherwise the sink itself threw
      refuse::again();
    });
  }
};

} // namespace varve

#pragma GCC diagnostic pop
