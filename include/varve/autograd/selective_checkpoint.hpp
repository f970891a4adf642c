// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/autograd/checkpoint.hpp>

namespace varve {

namespace detail {
/// Results of the selected operators, in the order of their calls.
struct kept_results {
  struct result {
    std::string op;
    tensor value;
    std::uint32_t version;
  };
  std::vector<result> all;
  std::size_t next = 0;
};
/// True if results of the operator can be kept. Views and operators that write have no result of their own.
inline bool may_be_kept(boxed_op const& op) {
  return op.table->kind != op_kind::view && op.table->kind != op_kind::mutation;
}

template <class Policy>
struct keeping_mode : dispatch_mode<keeping_mode<Policy>> {
  Policy policy;
  std::shared_ptr<kept_results> kept;
  keeping_mode(Policy p, std::shared_ptr<kept_results> k) : policy(std::move(p)), kept(std::move(k)) {}
  template <class X>
  tensor process(boxed_op const& op, X const& x) {
    tensor y = op(x);
    if (may_be_kept(op) && policy(op.name()))
      static_cast<dependent<kept_results, X>&>(*kept).all.push_back({op.name(), y.alias(), y.writes()});
    return y;
  }
};
template <class Policy>
struct reusing_mode : dispatch_mode<reusing_mode<Policy>> {
  Policy policy;
  std::shared_ptr<kept_results> kept;
  reusing_mode(Policy p, std::shared_ptr<kept_results> k) : policy(std::move(p)), kept(std::move(k)) {}
  void start() { kept->next = 0; }
  template <class X>
  tensor process(boxed_op const& op, X const& x) {
    if (!may_be_kept(op) || !policy(op.name())) return op(x);
    if (kept->next == kept->all.size() || kept->all[kept->next].op != op.name())
      refuse::with<autograd_error>(
          (std::string("varve: selective_checkpoint: ") + op.name() +
           " was not called at this place in the forward pass; the function must do the same each time")
              .c_str());
    auto const& r = kept->all[kept->next++];
    if (r.value.writes() != r.version) refuse_stale(r.value, op.name(), r.version);
    return r.value.alias();
  }
};
} // namespace detail

/// Makes modes for `checkpoint` that keep the results of the operators for which `policy(name)` is true, so that only
/// the others run again: `checkpoint(selective_checkpoint([](std::string_view op) { return op == "matmul_op"; }), f,
/// x)`. The backward pass throws `autograd_error` if a kept result was written in place. Results of views are never
/// kept. Use the modes for one call of `checkpoint`.
template <class Policy>
auto selective_checkpoint(Policy policy) {
  auto const kept = std::make_shared<detail::kept_results>();
  return checkpoint_contexts{detail::keeping_mode<Policy>(policy, kept), detail::reusing_mode<Policy>(policy, kept)};
}

} // namespace varve
