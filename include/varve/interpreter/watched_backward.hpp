// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/recorded_call.hpp>

namespace varve::detail {

/// True if there is a NaN among the elements. Values seen through transforms are not examined.
inline bool has_nan(tensor const& t) {
  if (t.is_wrapped() || !t.has_data() || !has_derivatives(t.dtype())) return false;
  if (is_complex(t.dtype())) return has_nan(parts_in_memory(t));
  tensor const c = t.is_contiguous() ? t : contiguous_copy(t);
  return on_stored_dtype(c.dtype(), "anomaly_mode", [&]<class E>() {
    if constexpr (!std::is_integral_v<E>)
      for (index_t k = 0; k < c.numel(); ++k)
        if (E const v = static_cast<E const*>(c.raw())[k]; v != v) return true;
    return false;
  });
}
/// Runs a node under `anomaly_mode`: an error, or a NaN in a result, names the call that recorded the node.
template <class = void>
VARVE_COLD boxed_args watched_backward(grad_node& n, boxed_args& g, bool const* wanted) {
  char label[64];
  n.type->name(n, label);
  std::string const where =
      n.extra && n.extra->call()[0]
          ? std::string("; it was recorded at") + n.extra->call()
          : std::string("; it was recorded outside of anomaly_mode, so that the call is not known");
  auto const attempt = [&] {
    return detail::attempt<autograd_error>([&] { return n.type->backward(n, g, wanted); },
                                           [&](autograd_error const& e) -> boxed_args {
                                             if (std::strstr(e.what(), "recorded")) refuse::again();
                                             refuse::with<autograd_error>(
                                                 (e.what() + std::string("; in ") + label + where).c_str());
                                           });
  };
  boxed_args out = attempt();
  for (int k = 0; k < out.size(); ++k)
    if (out[k].defined() && has_nan(out[k]))
      refuse::with<autograd_error>(
          (std::string("varve: ") + label + " returned nan in its " + std::to_string(k) + "th output" + where).c_str());
  return out;
}

} // namespace varve::detail
